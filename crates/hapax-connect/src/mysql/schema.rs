//! The live table: its columns, keys, indexes and rights, as the server's own catalogue describes them.
//!
//! Reads: `information_schema`, and the table's definition before and after, so that all of it is of one moment.
//! Writes: nothing. Not here: whether the table is fit for what the workflow asks (`mapping`, `inspect`).

use hapax_sql::mysql::{Flavour, Row, Session, SqlFault, TableName, Value};

use super::column::{Declared, Kind, MysqlColumn, members};
use crate::table::live::{LiveTable, LookedAt, OrderShows, SilentDrop, UniqueIndex};

/// How often the table may change while it is read.
const READS: u32 = 5;

/// A table as it is now, and what the user of this session may do to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MysqlTable {
    /// What all dialects tell of a table.
    pub live: LiveTable<MysqlColumn>,
    /// Its name with its database.
    pub name: TableName,
    /// Changes with every change of the table's definition.
    pub version: String,
    /// Its storage engine, as the server spells it.
    pub engine: String,
    /// When it was made, or altered, for servers that do not say which table it is.
    pub created: String,
    /// Whether rows go into partitions.
    pub partitioned: Partitioned,
    /// Triggers of it, as far as this user may see them.
    pub triggers: Vec<String>,
    /// The columns that the server numbers by itself, if an event does not.
    pub numbered: Vec<String>,
    /// Rights that this user lacks on the table, of SELECT, INSERT and UPDATE.
    pub lacks: Vec<&'static str>,
}

/// Whether rows go into partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioned {
    /// They do.
    Yes,
    /// It is one table.
    No,
}

/// What was found under the table's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A table.
    Table(Box<MysqlTable>),
    /// Nothing, or nothing that this user may see.
    Nothing,
    /// Something that rows cannot be delivered into, such as a view.
    Other(&'static str),
}

/// The statements that answer with the table's definition, with the time when it was made or altered, and with the
/// server's number among those that replicate each other: what answers on the same address may be another server, whose
/// table of the same definition was made in the same second.
///
/// From the first one on nobody can change the table until the transaction ends, if one is open.
pub(super) fn version_question(name: &TableName) -> String {
    let quoted = name.quoted();
    let database = name.database().map_or_else(|| "DATABASE()".to_owned(), literal);
    format!(
        "SELECT 1 FROM {quoted} LIMIT 0; SHOW CREATE TABLE {quoted}; SELECT CREATE_TIME, @@GLOBAL.server_id \
         FROM information_schema.TABLES WHERE TABLE_SCHEMA = {database} AND TABLE_NAME = {}",
        literal(name.table())
    )
}

/// A name as a text in a statement, spelled so that nothing in it can end it.
fn literal(name: &str) -> String {
    // Not by CONVERT: MariaDB would then open every table of every database to answer.
    format!("_utf8mb4 x'{}'", data_encoding::HEXLOWER.encode(name.as_bytes()))
}

/// The version in the answer to [`version_question`].
pub(super) fn version_of(rows: &[Row]) -> String {
    let definition = rows.first().and_then(|row| text(row, 1)).unwrap_or_default();
    let [made, server] = [0, 1].map(|column| rows.get(1).and_then(|row| text(row, column)).unwrap_or_default());
    format!("{made} {server} {}", without_counter(&definition))
}

/// A definition without the next number of its counter, which changes with every row. It is the option right behind the
/// engine; a comment, which may say anything, comes later.
fn without_counter(definition: &str) -> String {
    const COUNTER: &str = " AUTO_INCREMENT=";
    const ENGINE: &str = " ENGINE=";
    let counter = || {
        let options = definition.rfind("\n) ")?;
        let engine = options + definition[options..].find(ENGINE)? + ENGINE.len();
        let at = engine + definition[engine..].find(' ')?;
        let number = definition[at..].strip_prefix(COUNTER)?;
        Some((at, number.trim_start_matches(|character: char| character.is_ascii_digit())))
    };
    match counter() {
        Some((at, rest)) => format!("{}{rest}", &definition[..at]),
        None => definition.to_owned(),
    }
}

/// Reads what is there under `name`.
///
/// # Errors
/// What the server said.
pub async fn read(session: &mut Session, name: &TableName) -> Result<Found, SqlFault> {
    let sql = "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, CREATE_TIME, CREATE_OPTIONS \
               FROM information_schema.TABLES WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ?";
    for _ in 0..READS {
        let rows = session.rows(sql, vec![name.database().into(), name.table().into()]).await?;
        let Some(facts) = rows.first() else { return Ok(Found::Nothing) };
        let kind = text(facts, 2).unwrap_or_default();
        match kind.as_str() {
            "BASE TABLE" | "SYSTEM VERSIONED" => {}
            "VIEW" | "SYSTEM VIEW" => return Ok(Found::Other("a view")),
            "SEQUENCE" => return Ok(Found::Other("a sequence")),
            _ => return Ok(Found::Other("no table")),
        }
        let (database, table) = (text(facts, 0).unwrap_or_default(), text(facts, 1).unwrap_or_default());
        let Ok(found) = TableName::new(Some(&database), &table) else { return Ok(Found::Nothing) };
        let question = version_question(&found);
        let version = version_of(&session.text_rows(&question).await?);
        let table = read_table(session, found, version.clone(), facts).await?;
        if version_of(&session.text_rows(&question).await?) == version {
            return Ok(Found::Table(Box::new(table)));
        }
    }
    Err(SqlFault::again("the table changes faster than it can be read"))
}

/// The names of the tables where `name` would be, of at most a thousand.
///
/// # Errors
/// What the server said.
pub async fn table_names(session: &mut Session, name: &TableName) -> Result<Vec<String>, SqlFault> {
    let sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) \
               AND TABLE_NAME NOT LIKE 'hapax|_%' ESCAPE '|' ORDER BY TABLE_NAME LIMIT 1000";
    let rows = session.rows(sql, vec![name.database().into()]).await?;
    Ok(rows.iter().filter_map(|row| text(row, 0)).collect())
}

async fn read_table(
    session: &mut Session,
    name: TableName,
    version: String,
    facts: &Row,
) -> Result<MysqlTable, SqlFault> {
    let place = || -> Vec<Value> { vec![name.database().into(), name.table().into()] };
    let json = json_columns(session, place()).await?;
    let sql = "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, \
               NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, \
               COLUMN_DEFAULT, EXTRA, PRIVILEGES FROM information_schema.COLUMNS \
               WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION";
    let (mut columns, mut numbered, mut lacks) = (Vec::new(), Vec::new(), Vec::new());
    for row in session.rows(sql, place()).await? {
        let extra = text(&row, 12).unwrap_or_default().to_ascii_uppercase();
        // Generated: nobody can write it. DEFAULT_GENERATED is a default that is an expression.
        if extra.split(' ').any(|word| word == "GENERATED" || word == "VIRTUAL" || word == "PERSISTENT") {
            continue;
        }
        let column = live_column(&row, session.server().flavour, &extra, &json);
        if extra.contains("AUTO_INCREMENT") {
            numbered.push(column.name.clone());
        }
        let granted = text(&row, 13).unwrap_or_default().to_ascii_uppercase();
        for right in ["SELECT", "INSERT", "UPDATE"] {
            if !granted.split(',').any(|held| held == right) && !lacks.contains(&right) {
                lacks.push(right);
            }
        }
        columns.push(column);
    }
    let unique = unique_indexes(session, place()).await?;
    let primary = unique.iter().find(|index| index.name == "PRIMARY").map(|index| index.columns.clone());
    // A key that nobody can write is no key to us.
    let writable = |name: &String| columns.iter().any(|column: &MysqlColumn| column.name == *name);
    let primary_key = primary.filter(|names| names.iter().all(writable)).unwrap_or_default();
    let triggers = "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS \
                    WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ? ORDER BY TRIGGER_NAME";
    let triggers: Vec<String> = session.rows(triggers, place()).await?.iter().filter_map(|row| text(row, 0)).collect();
    let own_keys = "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = ? \
                    AND TABLE_NAME = ? AND REFERENCED_TABLE_NAME = TABLE_NAME ORDER BY CONSTRAINT_NAME";
    let own_keys = session.rows(own_keys, place()).await?;
    let own_keys = own_keys.iter().filter_map(|row| text(row, 0));
    // Both are looked at row by row here.
    let order_shows = triggers.iter().map(|name| format!("the trigger \"{name}\""));
    let order_shows = order_shows.chain(own_keys.map(|name| format!("the foreign key \"{name}\" to the table itself")));
    let order_shows = order_shows
        .map(|what| OrderShows { what, looked_at: LookedAt::EachRow, silent_drop: SilentDrop::Impossible })
        .collect();
    let options = text(facts, 5).unwrap_or_default();
    Ok(MysqlTable {
        // Foreign keys are checked row by row here: none waits for COMMIT.
        live: LiveTable { name: name.to_string(), columns, primary_key, unique, deferred: Vec::new(), order_shows },
        version,
        engine: text(facts, 3).unwrap_or_default(),
        created: text(facts, 4).unwrap_or_default(),
        partitioned: if options.contains("partitioned") { Partitioned::Yes } else { Partitioned::No },
        triggers,
        numbered,
        lacks,
        name,
    })
}

/// MariaDB's `json` is a `longtext` with a rule: the columns that have it.
async fn json_columns(session: &mut Session, place: Vec<Value>) -> Result<Vec<String>, SqlFault> {
    if session.server().flavour != Flavour::MariaDb {
        return Ok(Vec::new());
    }
    let sql = "SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS \
               WHERE CONSTRAINT_SCHEMA = ? AND TABLE_NAME = ?";
    let clauses = session.rows(sql, place).await?;
    let column = |row: &Row| {
        let clause = text(row, 0)?;
        let name = clause.strip_prefix("json_valid(`")?.strip_suffix("`)")?;
        Some(name.replace("``", "`"))
    };
    Ok(clauses.iter().filter_map(column).collect())
}

fn live_column(row: &Row, flavour: Flavour, extra: &str, json: &[String]) -> MysqlColumn {
    let name = text(row, 0).unwrap_or_default();
    let count = |at| text(row, at).and_then(|number| number.parse().ok());
    let declared = Declared {
        data_type: text(row, 1).unwrap_or_default(),
        column_type: text(row, 2).unwrap_or_default(),
        characters: count(3),
        octets: count(4),
        precision: count(5),
        scale: count(6),
        digits: count(7),
        character_set: text(row, 8),
    };
    let is_json = json.contains(&name);
    let kind = if is_json { Kind::Json } else { Kind::of(&declared) };
    // MariaDB spells out that the default is NULL, and quotes a text.
    let has_default = text(row, 11).is_some_and(|default| flavour == Flavour::Mysql || default != "NULL");
    MysqlColumn {
        name,
        kind,
        members: if matches!(kind, Kind::Enum | Kind::Set) { members(&declared.column_type) } else { Vec::new() },
        declared: declared.column_type,
        collation: text(row, 9),
        required: text(row, 10).as_deref() == Some("NO"),
        fills_itself: has_default || extra.contains("AUTO_INCREMENT"),
    }
}

async fn unique_indexes(session: &mut Session, place: Vec<Value>) -> Result<Vec<UniqueIndex>, SqlFault> {
    let sql = "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS \
               WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX";
    let mut indexes: Vec<UniqueIndex> = Vec::new();
    for row in session.rows(sql, place).await? {
        let name = text(&row, 0).unwrap_or_default();
        if indexes.last().is_none_or(|index| index.name != name) {
            indexes.push(UniqueIndex { name: name.clone(), columns: Vec::new(), flaw: None });
        }
        let Some(index) = indexes.last_mut() else { continue };
        let column = text(&row, 1).unwrap_or_default();
        if column.is_empty() {
            index.flaw = Some(format!("the index \"{name}\" is on an expression"));
        } else if let Some(length) = text(&row, 2) {
            index.flaw = Some(format!(
                "the index \"{name}\" compares only the first {length} characters or bytes of column \"{column}\", so \
                 different keys are one to it"
            ));
        }
        index.columns.push(column);
    }
    // The primary key first, as messages name them.
    indexes.sort_by_key(|index| index.name != "PRIMARY");
    Ok(indexes)
}

/// A value of the catalogue as text, however the server sends it; none for NULL.
pub(super) fn text(row: &Row, at: usize) -> Option<String> {
    match row.as_ref(at)? {
        Value::NULL => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Double(number) => Some(number.to_string()),
        Value::Date(year, month, day, hour, minute, second, _) => {
            Some(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"))
        }
        Value::Time(..) => Some(row.as_ref(at)?.as_sql(true)),
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
