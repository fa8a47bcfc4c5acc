//! The live table: its columns, keys, indexes and rights, as PostgreSQL's own catalogue describes them.
//!
//! Reads: the catalogue, in one statement and therefore of one moment. Writes: nothing.
//! Not here: whether the table is fit for what the workflow asks (`mapping`, `inspect`).

use hapax_sql::postgres::{Session, SqlFault, TableName};
use serde_json::Value;

use super::column::{Kind, PostgresColumn};
use crate::table::live::{LiveTable, LookedAt, OrderShows, SilentDrop, UniqueIndex};

/// A table as it is now, and what the role of this session may do to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresTable {
    /// What all dialects tell of a table.
    pub live: LiveTable<PostgresColumn>,
    /// Its name with its schema.
    pub name: TableName,
    /// Its number: another one is another table.
    pub oid: u32,
    /// Changes with every change of the table's columns and indexes.
    pub version: String,
    /// Whether rows go into partitions.
    pub partitioned: Partitioned,
    /// Partitions that a crash empties, or that live elsewhere, as people name them.
    pub unfit_partitions: Vec<String>,
    /// Tables that inherit from it and are no partitions.
    pub heirs: Vec<String>,
    /// Rewrite rules of it.
    pub rules: Vec<String>,
    /// Triggers of the user's, that are enabled.
    pub triggers: Vec<String>,
    /// Whether row security is on, and whether it binds this role.
    pub row_security: RowSecurity,
    /// Columns that the server numbers by itself, always.
    pub numbered: Vec<String>,
    /// The role of this session.
    pub user: String,
    /// Rights that this role lacks, of those that may be needed.
    pub lacks: Vec<String>,
}

/// Whether rows go into partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioned {
    /// They do.
    Yes,
    /// It is one table.
    No,
}

/// Whether policies decide which rows a role may see and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSecurity {
    /// There is none.
    Off,
    /// There is, but this role is above it.
    Bypassed,
    /// It binds this role.
    Active,
}

/// What was found under the table's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A table that rows can be delivered into.
    Table(Box<PostgresTable>),
    /// Nothing.
    Nothing,
    /// Something that rows cannot be delivered into.
    Other(NoTable),
}

/// Why rows cannot be delivered into something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTable {
    /// A view, an index and the like.
    Kind(&'static str),
    /// A foreign table: another server's transactions are not ours.
    Foreign,
    /// An unlogged table: a crash empties it.
    Unlogged,
    /// A temporary table: it dies with its session.
    Temporary,
}

/// Changes whenever the table's columns, indexes or triggers (those of foreign keys, too) do: the transactions that last wrote each of their catalogue rows.
macro_rules! version {
    () => {
        "c.oid || ' ' || c.xmin || ' ' || coalesce((SELECT string_agg(a.attnum || ':' || a.xmin, ' ' ORDER BY a.attnum) \
         FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), '') || ' ' || \
         coalesce((SELECT string_agg(i.indexrelid || ':' || i.xmin, ' ' ORDER BY i.indexrelid) \
         FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid), '') || ' ' || \
         coalesce((SELECT string_agg(t.oid || ':' || t.xmin, ' ' ORDER BY t.oid) \
         FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid), '')"
    };
}

/// Answers with the version of the table named by `$1`; no row if there is none.
pub(super) const VERSION: &str =
    concat!("SELECT ", version!(), " FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)");

const COLUMNS: &str = "(SELECT json_agg(json_build_object('name', a.attname, \
     'declared', pg_catalog.format_type(a.atttypid, a.atttypmod), 'type', base.oid::int8, 'modifier', base.modifier, \
     'array', base.is_array, 'range', base.is_range, 'element', base.element::int8, 'element_modifier', base.element_modifier, 'not_null', a.attnotnull, 'default', a.atthasdef, 'identity', a.attidentity, \
     'generated', a.attgenerated) ORDER BY a.attnum) \
     FROM pg_catalog.pg_attribute a CROSS JOIN LATERAL ( \
       WITH RECURSIVE down AS ( \
         SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typcategory, t.typelem, a.atttypmod AS modifier \
         FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid \
         UNION ALL SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, t.typcategory, t.typelem, down.typtypmod \
         FROM down JOIN pg_catalog.pg_type t ON t.oid = down.typbasetype WHERE down.typtype = 'd'), \
       within AS ( \
         SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, down.modifier FROM down \
         LEFT JOIN pg_catalog.pg_range r ON r.rngtypid = down.oid \
         JOIN pg_catalog.pg_type t ON t.oid = coalesce(r.rngsubtype, down.typelem) WHERE down.typtype <> 'd' \
         UNION ALL SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod, within.typtypmod \
         FROM within JOIN pg_catalog.pg_type t ON t.oid = within.typbasetype WHERE within.typtype = 'd') \
       SELECT down.oid, down.modifier, down.typcategory = 'A' AS is_array, down.typtype = 'r' AS is_range, \
         within.oid AS element, \
         within.modifier AS element_modifier \
       FROM down LEFT JOIN within ON within.typtype <> 'd' WHERE down.typtype <> 'd') base \
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)";

const INDEXES: &str = "(SELECT json_agg(json_build_object('name', n.relname, 'primary', i.indisprimary, \
     'partial', i.indpred IS NOT NULL, 'immediate', i.indimmediate, 'usable', i.indisvalid AND i.indisready, \
     'loose', (SELECT min(l.collname) FROM unnest(i.indcollation) AS used (oid) \
       JOIN pg_catalog.pg_collation l ON l.oid = used.oid WHERE NOT l.collisdeterministic), \
     'columns', (SELECT json_agg(a.attname ORDER BY k.nth) FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (num, nth) \
       LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.num AND k.num > 0 \
       WHERE k.nth <= i.indnkeyatts)) ORDER BY i.indisprimary DESC, n.relname) \
     FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class n ON n.oid = i.indexrelid \
     WHERE i.indrelid = c.oid AND i.indisunique)";

fn question() -> String {
    let names = "json_agg(format('%I.%I', hn.nspname, h.relname) ORDER BY h.relname)";
    let joined =
        "JOIN pg_catalog.pg_class h ON h.oid = p.relid JOIN pg_catalog.pg_namespace hn ON hn.oid = h.relnamespace";
    format!(
        "SELECT json_build_object('schema', n.nspname, 'table', c.relname, 'oid', c.oid::int8, 'kind', c.relkind, \
         'persistence', c.relpersistence, 'version', {version}, 'security', c.relrowsecurity, \
         'bound', pg_catalog.row_security_active(c.oid), 'columns', {COLUMNS}, 'indexes', {INDEXES}, \
         'unfit', (SELECT {names} FROM pg_catalog.pg_partition_tree(c.oid) p {joined} \
           WHERE c.relkind = 'p' AND h.relkind <> 'p' AND (h.relpersistence <> 'p' OR h.relkind <> 'r')), \
         'heirs', (SELECT {names} FROM (SELECT inhrelid AS relid FROM pg_catalog.pg_inherits \
           WHERE inhparent = c.oid AND c.relkind = 'r') p {joined}), \
         'rules', (SELECT json_agg(r.rulename ORDER BY r.rulename) FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid), \
         'triggers', (SELECT json_agg(DISTINCT t.tgname ORDER BY t.tgname) FROM pg_catalog.pg_trigger t \
           WHERE (t.tgrelid = c.oid OR t.tgrelid IN (SELECT relid FROM pg_catalog.pg_partition_tree(c.oid))) \
           AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')), \
         'own_rules', (SELECT json_agg(json_build_object('name', k.conname, 'type', k.contype, 'deferrable', k.condeferrable) \
           ORDER BY k.conname) FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND (k.contype = 'x' \
           OR (k.contype = 'u' AND k.condeferrable) OR (k.contype = 'f' AND k.confrelid = c.oid))), \
         'user', current_user::text, 'usage', pg_catalog.has_schema_privilege(n.oid, 'USAGE'), \
         'lacks', (SELECT json_agg(r.name) FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS r (name) \
           WHERE NOT pg_catalog.has_table_privilege(c.oid, r.name) AND (r.name = 'DELETE' \
           OR NOT pg_catalog.has_any_column_privilege(c.oid, CASE r.name WHEN 'DELETE' THEN 'SELECT' ELSE r.name END))))::text \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE CASE WHEN $1::text IS NULL THEN c.oid = pg_catalog.to_regclass($3) \
           ELSE n.nspname = $1 AND c.relname = $2 END",
        version = version!(),
    )
}

/// Reads what is there under `name`.
///
/// # Errors
/// What the server said.
pub async fn read(session: &Session, name: &TableName) -> Result<Found, SqlFault> {
    let fault = |error: tokio_postgres::Error| session.fault(&error);
    // Not by `to_regclass` where a schema is named: it refuses one that this role may not use, and we say what to grant.
    let rows =
        session.client().query(&question(), &[&name.schema(), &name.table(), &name.quoted()]).await.map_err(fault)?;
    let Some(row) = rows.first() else { return Ok(Found::Nothing) };
    let text: String = row.try_get(0).map_err(fault)?;
    let facts: Value = serde_json::from_str(&text)
        .map_err(|error| SqlFault::lost(format!("the catalogue's answer cannot be read: {error}")))?;
    Ok(judge(&facts))
}

/// The names of the tables where `name` would be, of at most a thousand.
///
/// # Errors
/// What the server said.
pub async fn table_names(session: &Session, name: &TableName) -> Result<Vec<String>, SqlFault> {
    let sql = "SELECT c.relname::text FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'p') \
               AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) \
                        AND c.relnamespace <> 'pg_catalog'::regnamespace \
                   ELSE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = $1) END \
               ORDER BY 1 LIMIT 1000";
    let fault = |error: tokio_postgres::Error| session.fault(&error);
    let rows = session.client().query(sql, &[&name.schema()]).await.map_err(fault)?;
    rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(fault)
}

fn judge(facts: &Value) -> Found {
    let kind = match text(facts, "kind") {
        "r" | "p" => None,
        "f" => Some(NoTable::Foreign),
        "v" => Some(NoTable::Kind("a view")),
        "m" => Some(NoTable::Kind("a materialized view")),
        "S" => Some(NoTable::Kind("a sequence")),
        "i" | "I" => Some(NoTable::Kind("an index")),
        "c" => Some(NoTable::Kind("a composite type")),
        _ => Some(NoTable::Kind("no table")),
    };
    let persistence = match text(facts, "persistence") {
        "u" => Some(NoTable::Unlogged),
        "t" => Some(NoTable::Temporary),
        _ => None,
    };
    match kind.or(persistence) {
        Some(other) => Found::Other(other),
        None => table(facts).map_or(Found::Nothing, |table| Found::Table(Box::new(table))),
    }
}

fn table(facts: &Value) -> Option<PostgresTable> {
    let name = TableName::new(Some(text(facts, "schema")), text(facts, "table")).ok()?;
    let (mut columns, mut numbered) = (Vec::new(), Vec::new());
    for column in list(facts, "columns") {
        let spelled = text(column, "name").to_owned();
        match (text(column, "generated"), text(column, "identity")) {
            ("", "a") => numbered.push(spelled),
            ("", _) => columns.push(live_column(column)),
            // Generated: nobody can write it.
            (_, _) => {}
        }
    }
    let unique: Vec<UniqueIndex> = list(facts, "indexes").map(unique_index).collect();
    let primary = list(facts, "indexes").find(|index| flag(index, "primary")).map(index_columns).unwrap_or_default();
    // A key that nobody can write is no key to us.
    let writable = |name: &String| columns.iter().any(|column: &PostgresColumn| column.name == *name);
    let primary_key = if primary.iter().all(writable) { primary } else { Vec::new() };
    // Foreign keys that wait for COMMIT are none here: every transaction begins with SET CONSTRAINTS ALL IMMEDIATE.
    let order_shows = order_shows(facts);
    let live = LiveTable { name: name.to_string(), columns, primary_key, unique, deferred: Vec::new(), order_shows };
    let row_security = match (flag(facts, "security"), flag(facts, "bound")) {
        (false, _) => RowSecurity::Off,
        (true, false) => RowSecurity::Bypassed,
        (true, true) => RowSecurity::Active,
    };
    let mut lacks = texts(facts, "lacks");
    if !flag(facts, "usage") {
        lacks.insert(0, "USAGE".to_owned());
    }
    Some(PostgresTable {
        live,
        name,
        oid: facts.get("oid").and_then(Value::as_u64).and_then(|oid| u32::try_from(oid).ok())?,
        version: text(facts, "version").to_owned(),
        partitioned: if text(facts, "kind") == "p" { Partitioned::Yes } else { Partitioned::No },
        unfit_partitions: texts(facts, "unfit"),
        heirs: texts(facts, "heirs"),
        rules: texts(facts, "rules"),
        triggers: texts(facts, "triggers"),
        row_security,
        numbered,
        user: text(facts, "user").to_owned(),
        lacks,
    })
}

/// Triggers and foreign keys are looked at when all rows of a statement are there, and so is what is deferrable; an
/// exclusion constraint row by row.
fn order_shows(facts: &Value) -> Vec<OrderShows> {
    let triggers = texts(facts, "triggers").into_iter().map(|name| OrderShows {
        what: format!("the trigger \"{name}\""),
        looked_at: LookedAt::StatementEnd,
        silent_drop: SilentDrop::Possible,
    });
    let rules = list(facts, "own_rules").map(|rule| {
        let name = text(rule, "name");
        let (what, each_row) = match text(rule, "type") {
            "f" => (format!("the foreign key \"{name}\" to the table itself"), false),
            "x" => (format!("the exclusion constraint \"{name}\""), !flag(rule, "deferrable")),
            _ => (format!("the deferrable constraint \"{name}\""), false),
        };
        let looked_at = if each_row { LookedAt::EachRow } else { LookedAt::StatementEnd };
        OrderShows { what, looked_at, silent_drop: SilentDrop::Impossible }
    });
    triggers.chain(rules).collect()
}

fn live_column(facts: &Value) -> PostgresColumn {
    let number = |name: &str| facts.get(name).and_then(Value::as_i64).unwrap_or_default();
    let oid = |name: &str| u32::try_from(number(name)).unwrap_or_default();
    let modifier = |name: &str| i32::try_from(number(name)).unwrap_or(-1);
    let kind = match flag(facts, "range") {
        true => Kind::Range,
        false => Kind::of(oid("type"), modifier("modifier"), flag(facts, "array")),
    };
    let element = || Kind::of(oid("element"), modifier("element_modifier"), false);
    PostgresColumn {
        name: text(facts, "name").to_owned(),
        declared: text(facts, "declared").to_owned(),
        kind,
        element: if matches!(kind, Kind::Array | Kind::Range) { element() } else { kind },
        required: flag(facts, "not_null"),
        fills_itself: flag(facts, "default") || text(facts, "identity") == "d",
    }
}

fn unique_index(facts: &Value) -> UniqueIndex {
    let name = text(facts, "name").to_owned();
    let columns = index_columns(facts);
    let flaw = if flag(facts, "partial") {
        Some(format!("the index \"{name}\" covers only some rows (it has a WHERE)"))
    } else if columns.iter().any(String::is_empty) {
        Some(format!("the index \"{name}\" is on an expression"))
    } else if !flag(facts, "immediate") {
        Some(format!("the constraint \"{name}\" is DEFERRABLE, and ON CONFLICT cannot use such a one"))
    } else if !flag(facts, "usable") {
        Some(format!("the index \"{name}\" is not valid (its creation failed or goes on): drop it, or wait"))
    } else {
        let loose = facts.get("loose").and_then(Value::as_str);
        loose.map(|collation| {
            format!(
                "the index \"{name}\" is compared by the collation \"{collation}\", to which different keys are equal"
            )
        })
    };
    UniqueIndex { name, columns, flaw }
}

fn index_columns(facts: &Value) -> Vec<String> {
    list(facts, "columns").map(|name| name.as_str().unwrap_or_default().to_owned()).collect()
}

fn text<'a>(facts: &'a Value, name: &str) -> &'a str {
    facts.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(facts: &Value, name: &str) -> bool {
    facts.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn list<'a>(facts: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    facts.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn texts(facts: &Value, name: &str) -> Vec<String> {
    list(facts, name).filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
