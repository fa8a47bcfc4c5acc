//! The live table: its columns, keys and indexes, as SQLite itself describes them.
//!
//! Reads: the schema. Writes: nothing. Invariant: everything here was read in one go; `version` tells when it is old.
//! Not here: whether the table is fit for what the workflow asks (`mapping`).

use rusqlite::{Connection, OptionalExtension};

use crate::table::live::{DeferredKey, LiveTable, LookedAt, OrderShows, SilentDrop, UniqueIndex};

/// What SQLite does with a value on its way into a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affinity {
    /// Whole numbers.
    Integer,
    /// Doubles.
    Real,
    /// Text.
    Text,
    /// Numbers, and what is declared with a name that SQLite does not know (`DATE`, `BOOLEAN`, `DECIMAL(10,2)`).
    Numeric,
    /// Bytes: declared as BLOB.
    Blob,
    /// As it comes: declared without a type, or `ANY` in a STRICT table.
    Any,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteColumn {
    /// Its name.
    pub name: String,
    /// Its type as declared; empty if none.
    pub declared: String,
    /// What that means.
    pub affinity: Affinity,
    /// Whether NULL is refused, or (in an `INTEGER PRIMARY KEY`) never stored.
    pub required: bool,
    /// Whether SQLite fills it in by itself when an INSERT leaves it out.
    pub fills_itself: bool,
}

/// Whether rows have a number of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowNumbers {
    /// An ordinary table.
    Rowid,
    /// `WITHOUT ROWID`.
    None,
}

/// A table as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteTable {
    /// What all dialects tell of a table.
    pub live: LiveTable<SqliteColumn>,
    /// Whether rows have numbers.
    pub row_numbers: RowNumbers,
}

/// Whether a table checks the types of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typing {
    Strict,
    Loose,
}

/// What was found under the table's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// An ordinary table.
    Table(SqliteTable),
    /// Nothing.
    Nothing,
    /// Something that rows cannot be delivered into: says what.
    Other(&'static str),
}

/// The schema's own version: moves with every change of any table of the file.
///
/// # Errors
/// What the database said.
pub fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA main.schema_version")?.query_row([], |row| row.get(0))
}

/// Reads what is there under `name`.
///
/// # Errors
/// What the database said.
pub fn read(connection: &Connection, name: &str) -> rusqlite::Result<Found> {
    let temporary = "SELECT 1 FROM temp.sqlite_schema WHERE name = ?1 COLLATE NOCASE";
    if connection.prepare(temporary)?.exists([name])? {
        return Ok(Found::Other("a temporary table, which dies with its session"));
    }
    let sql = "SELECT type, name, wr, strict FROM pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE NOCASE";
    let found = connection.prepare(sql)?.query_row([name], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?, row.get::<_, bool>(3)?))
    });
    let Some((kind, name, without_rowid, strict)) = found.optional()? else { return Ok(Found::Nothing) };
    match kind.as_str() {
        "table" => {}
        "view" => return Ok(Found::Other("a view")),
        "virtual" => return Ok(Found::Other("a virtual table")),
        _ => return Ok(Found::Other("an internal table of a virtual table")),
    }
    let typing = if strict { Typing::Strict } else { Typing::Loose };
    let (columns, primary_key) = columns(connection, &name, typing)?;
    let mut unique = unique_indexes(connection, &name)?;
    if unique.iter().all(|index| index.columns != primary_key) && !primary_key.is_empty() {
        // An INTEGER PRIMARY KEY is the row's number itself and has no index.
        unique.push(UniqueIndex { name: String::new(), columns: primary_key.clone(), flaw: None });
    }
    let row_numbers = if without_rowid { RowNumbers::None } else { RowNumbers::Rowid };
    let deferred = deferred_keys(connection, &name)?;
    let order_shows = order_shows(connection, &name)?;
    let live = LiveTable { name, columns, primary_key, unique, deferred, order_shows };
    Ok(Found::Table(SqliteTable { live, row_numbers }))
}

/// The names of the user's tables, of at most a thousand.
///
/// # Errors
/// What the database said.
pub fn table_names(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' \
               AND name NOT LIKE 'hapax\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name LIMIT 1000";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

fn columns(connection: &Connection, table: &str, typing: Typing) -> rusqlite::Result<(Vec<SqliteColumn>, Vec<String>)> {
    struct Raw {
        name: String,
        declared: String,
        not_null: bool,
        has_default: bool,
        key_place: u32,
        hidden: i64,
    }
    let sql =
        "SELECT name, type, \"notnull\", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?1) ORDER BY cid";
    let mut statement = connection.prepare(sql)?;
    let raw: Vec<Raw> = statement
        .query_map([table], |row| {
            Ok(Raw {
                name: row.get(0)?,
                declared: row.get(1)?,
                not_null: row.get(2)?,
                has_default: row.get(3)?,
                key_place: row.get(4)?,
                hidden: row.get(5)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut key: Vec<(u32, String)> =
        raw.iter().filter(|c| c.key_place > 0).map(|c| (c.key_place, c.name.clone())).collect();
    key.sort();
    let key: Vec<String> = key.into_iter().map(|(_, name)| name).collect();
    let is_row_number =
        |column: &Raw| key.len() == 1 && column.key_place > 0 && column.declared.eq_ignore_ascii_case("integer");
    let row_number = if has_key_index(connection, table)? { None } else { raw.iter().position(is_row_number) };
    // Hidden is 1 in virtual tables, 2 and 3 for generated columns: nobody can write those.
    let writable = raw.iter().enumerate().filter(|(_, column)| column.hidden == 0);
    let columns = writable.map(|(at, column)| {
        let numbers_itself = row_number == Some(at);
        SqliteColumn {
            name: column.name.clone(),
            declared: column.declared.clone(),
            affinity: affinity(&column.declared, typing),
            required: column.not_null || numbers_itself,
            fills_itself: column.has_default || numbers_itself,
        }
    });
    Ok((columns.collect(), key))
}

/// Whether the primary key has an index of its own: an `INTEGER PRIMARY KEY` has none (one declared `DESC` does), and
/// a `WITHOUT ROWID` table always has.
fn has_key_index(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    connection.prepare("SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk'")?.exists([table])
}

fn unique_indexes(connection: &Connection, table: &str) -> rusqlite::Result<Vec<UniqueIndex>> {
    let sql = "SELECT name, partial FROM pragma_index_list(?1) WHERE \"unique\" ORDER BY origin = 'pk' DESC, seq";
    let mut statement = connection.prepare(sql)?;
    let found: Vec<(String, bool)> =
        statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let some_rows = |name: &str| format!("the index \"{name}\" covers only some rows (it has a WHERE)");
    found
        .into_iter()
        .map(|(name, partial)| {
            let flaw = partial.then(|| some_rows(&name));
            unique_index(connection, name, flaw)
        })
        .collect()
}

fn unique_index(connection: &Connection, name: String, mut flaw: Option<String>) -> rusqlite::Result<UniqueIndex> {
    let sql = "SELECT name, coll FROM pragma_index_xinfo(?1) WHERE key ORDER BY seqno";
    let mut statement = connection.prepare(sql)?;
    let parts: Vec<(Option<String>, String)> =
        statement.query_map([&name], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (column, collation) in &parts {
        match column {
            None => flaw = flaw.or_else(|| Some(format!("the index \"{name}\" is on an expression"))),
            Some(column) if !collation.eq_ignore_ascii_case("binary") => {
                let why = format!(
                    "column \"{column}\" of the index \"{name}\" is compared by {collation}, to which different keys are equal"
                );
                flaw = flaw.or(Some(why));
            }
            Some(_) => {}
        }
    }
    let columns = parts.into_iter().map(|(column, _)| column.unwrap_or_default()).collect();
    Ok(UniqueIndex { name, columns, flaw })
}

/// Triggers are run row by row; foreign keys are looked at when all rows of a statement are there.
fn order_shows(connection: &Connection, table: &str) -> rusqlite::Result<Vec<OrderShows>> {
    let triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE \
                    AND name NOT LIKE 'hapax\\_%' ESCAPE '\\' ORDER BY name";
    let mut triggers = connection.prepare(triggers)?;
    let triggers = triggers.query_map([table], |row| row.get::<_, String>(0))?.map(|name| {
        let what = format!("the trigger \"{}\"", name?);
        Ok(OrderShows { what, looked_at: LookedAt::EachRow, silent_drop: SilentDrop::Possible })
    });
    let mut shows: Vec<OrderShows> = triggers.collect::<rusqlite::Result<_>>()?;
    let own = "SELECT 1 FROM pragma_foreign_key_list(?1) WHERE \"table\" = ?1 COLLATE NOCASE";
    if connection.prepare(own)?.exists([table])? {
        let what = "a foreign key to the table itself".to_owned();
        shows.push(OrderShows { what, looked_at: LookedAt::StatementEnd, silent_drop: SilentDrop::Impossible });
    }
    Ok(shows)
}

fn deferred_keys(connection: &Connection, table: &str) -> rusqlite::Result<Vec<DeferredKey>> {
    let mut statement =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql IS NOT NULL")?;
    let tables: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let mut found = Vec::new();
    for (name, _) in tables.into_iter().filter(|(_, sql)| says_deferred(sql)) {
        let refers = "SELECT 1 FROM pragma_foreign_key_list(?1) WHERE ?2 IS NULL OR \"table\" = ?2 COLLATE NOCASE";
        let mut refers = connection.prepare(refers)?;
        if name.eq_ignore_ascii_case(table) {
            if refers.exists((&name, None::<&str>))? {
                found.push(DeferredKey::Own);
            }
        } else if refers.exists((&name, Some(table)))? {
            found.push(DeferredKey::Of(name));
        }
    }
    Ok(found)
}

/// SQLite describes no foreign key as deferred; only the statement that made the table says so.
fn says_deferred(sql: &str) -> bool {
    let words: Vec<String> = sql.split_ascii_whitespace().map(str::to_ascii_uppercase).collect();
    words.windows(2).any(|pair| pair[0].ends_with("INITIALLY") && pair[1].starts_with("DEFERRED"))
}

/// SQLite's own rules, in its own order.
fn affinity(declared: &str, typing: Typing) -> Affinity {
    let name = declared.to_ascii_uppercase();
    let has = |part: &str| name.contains(part);
    if typing == Typing::Strict && name == "ANY" {
        Affinity::Any
    } else if has("INT") {
        Affinity::Integer
    } else if has("CHAR") || has("CLOB") || has("TEXT") {
        Affinity::Text
    } else if has("BLOB") {
        Affinity::Blob
    } else if name.is_empty() {
        Affinity::Any
    } else if has("REAL") || has("FLOA") || has("DOUB") {
        Affinity::Real
    } else {
        Affinity::Numeric
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
