//! Statements that we suggest and never run: a table for a target that has none, and what a table lacks.

use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;
use hapax_sql::sqlite::quote_identifier;

use super::config::{Deletes, SqliteSinkConfig};
use super::mapping::{DELETED_COLUMN, VERSION_COLUMN};

/// A name as a suggestion spells it; one that no table can have is shown as it is.
fn quoted(name: &str) -> String {
    quote_identifier(name).unwrap_or_else(|_| format!("{name:?}"))
}

/// `CREATE UNIQUE INDEX … ON t (a, b)`.
#[must_use]
pub fn unique_index(table: &str, columns: &[&str]) -> String {
    let name = format!("{table}_{}", columns.join("_"));
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    format!("CREATE UNIQUE INDEX {} ON {} ({})", quoted(&name), quoted(table), columns.join(", "))
}

/// `ALTER TABLE t ADD COLUMN …`.
#[must_use]
pub fn add_column(table: &str, column: &str, declared: &str) -> String {
    format!("ALTER TABLE {} ADD COLUMN {} {declared}", quoted(table), quoted(column))
}

/// A `CREATE TABLE` that fits the configuration, as far as it tells: key, mapped columns, and what the mode needs.
///
/// Columns of the user's own are theirs to add and to type; SQLite takes any value in a column without a type.
#[must_use]
pub fn suggested_ddl(config: &SqliteSinkConfig) -> String {
    let mode = config.mode.unwrap_or(if config.key_fields.is_empty() && config.key_column.is_none() {
        ConflictMode::Append
    } else {
        ConflictMode::Update
    });
    let column_of = |path: &FieldPath| {
        let mapped = config.columns.map.iter().find(|(_, field)| field == path).map(|(column, _)| column.clone());
        mapped.unwrap_or_else(|| path.names().last().cloned().unwrap_or_default())
    };
    let key: Vec<String> = match (&config.key_column, mode) {
        (_, ConflictMode::Append) => Vec::new(),
        (Some(column), _) => vec![column.clone()],
        (None, _) => config.key_fields.iter().map(column_of).collect(),
    };
    let mut lines: Vec<String> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str, rest: &str| {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            names.push(name.to_owned());
            lines.push(format!("  {}{rest}", quoted(name)));
        }
    };
    for name in &key {
        add(name, if config.key_column.as_ref() == Some(name) { " BLOB NOT NULL" } else { " NOT NULL" });
    }
    if let Some(name) = &config.key_column {
        add(name, " BLOB");
    }
    for path in &config.key_fields {
        add(&column_of(path), "");
    }
    for (name, _) in &config.columns.map {
        add(name, "");
    }
    if mode == ConflictMode::Newer {
        match &config.version_column {
            Some(name) => add(name, ""),
            None => add(VERSION_COLUMN, " BLOB"),
        }
        if config.deletes == Deletes::Some {
            add(DELETED_COLUMN, " INTEGER NOT NULL DEFAULT 0");
        }
    }
    if lines.is_empty() {
        lines.push("  \"id\"".to_owned());
    }
    if !key.is_empty() {
        let key: Vec<String> = key.iter().map(|name| quoted(name)).collect();
        lines.push(format!("  PRIMARY KEY ({})", key.join(", ")));
    }
    format!("CREATE TABLE {} (\n{}\n);", quoted(&config.table), lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::mapping::Mapping;
    use crate::sqlite::schema::{Found, read};

    fn path(text: &str) -> FieldPath {
        text.parse().unwrap()
    }

    /// Goal: what we suggest is what we then accept. Method: make the table, for each mode, under a hostile name.
    #[test]
    fn a_suggested_table_is_fit() {
        for mode in [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer] {
            for key_column in [None, Some("hapax_key".to_owned())] {
                let mut config = SqliteSinkConfig::new("x.db", "a\"; DROP TABLE x; --");
                config.mode = Some(mode);
                config.key_fields = vec![path(".order.id"), path("line")];
                config.key_column = key_column;
                config.columns.map =
                    vec![("order_id".to_owned(), path(".order.id")), ("total".to_owned(), path("sum"))];
                if mode == ConflictMode::Newer {
                    config.deletes = Deletes::Some;
                }
                let connection = rusqlite::Connection::open_in_memory().unwrap();
                connection.execute_batch(&suggested_ddl(&config)).unwrap();
                let Found::Table(live) = read(&connection, &config.table).unwrap() else { panic!("no table") };
                let mapping = Mapping::resolve(&config, &live);
                assert_eq!(mapping.map(|m| m.mode), Ok(mode), "{}", suggested_ddl(&config));
            }
        }
    }

    /// Goal: what a message tells people to type works. Method: type it.
    #[test]
    fn suggested_cures_are_statements() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE \"t \"\"x\" (a)").unwrap();
        connection.execute_batch(&unique_index("t \"x", &["a"])).unwrap();
        connection.execute_batch(&add_column("t \"x", VERSION_COLUMN, "BLOB")).unwrap();
    }
}
