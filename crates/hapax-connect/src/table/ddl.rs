//! Statements that we suggest and never run: a table for a target that has none, and what a table lacks.

use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;

use super::column::LiveColumn;
use super::config::{Deletes, TableConfig};
use super::described::InKey;
use super::mapping::{DELETED_COLUMN, VERSION_COLUMN};

/// `CREATE UNIQUE INDEX … ON t (a, b)`.
#[must_use]
pub fn unique_index<C: LiveColumn>(table: &str, columns: &[&str]) -> String {
    let name = format!("{}_{}", C::bare_table(table), columns.join("_"));
    let columns: Vec<String> = columns.iter().map(|column| C::quoted(column)).collect();
    format!("CREATE UNIQUE INDEX {} ON {} ({})", C::quoted(&name), C::quoted_table(table), columns.join(", "))
}

/// `ALTER TABLE t ADD COLUMN …`.
#[must_use]
pub fn add_column<C: LiveColumn>(table: &str, column: &str, declared: &str) -> String {
    format!("ALTER TABLE {} ADD COLUMN {} {declared}", C::quoted_table(table), C::quoted(column))
}

/// A `CREATE TABLE` that fits the configuration: key, mapped columns, what the mode needs, and every field that the first
/// events have a column for, with its type. Without a look at events, columns of the user's own are theirs to add and type.
#[must_use]
pub fn suggested_ddl<C: LiveColumn>(config: &TableConfig) -> String {
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
        if !names.iter().any(|known| C::same_name(known, name)) {
            names.push(name.to_owned());
            lines.push(format!("  {}{rest}", C::quoted(name)));
        }
    };
    let field_of = |column: &str| {
        let mapped = config.columns.map.iter().find(|(name, _)| C::same_name(name, column));
        mapped.map_or_else(|| FieldPath::of_name(column), |(_, path)| path.clone())
    };
    let type_of = |column: &str, key: InKey, unseen: &'static str| {
        let seen = config.sampled.iter().find(|field| field.path == field_of(column));
        seen.map_or(unseen, |field| C::type_for(field.sort, key))
    };
    for name in &key {
        let is_hash = config.key_column.as_ref() == Some(name);
        let declared = if is_hash { C::HASH_TYPE } else { type_of(name, InKey::Yes, C::KEY_TYPE) };
        add(name, &format!("{} NOT NULL", typed(declared)));
    }
    if let Some(name) = &config.key_column {
        add(name, &typed(C::HASH_TYPE));
    }
    for path in &config.key_fields {
        let name = column_of(path);
        add(&name, &typed(type_of(&name, InKey::No, C::ANY_TYPE)));
    }
    for field in &config.sampled {
        if let Some(name) = column_for(config, &field.path) {
            add(&name, &typed(C::type_for(field.sort, InKey::No)));
        }
    }
    for (name, _) in &config.columns.map {
        add(name, &typed(type_of(name, InKey::No, C::ANY_TYPE)));
    }
    if mode == ConflictMode::Newer {
        match &config.version_column {
            Some(name) => add(name, &typed(type_of(name, InKey::No, C::VERSION_TYPE))),
            None => add(VERSION_COLUMN, &typed(C::POSITION_TYPE)),
        }
        if config.deletes == Deletes::Some {
            add(DELETED_COLUMN, &typed(C::DELETED_TYPE));
        }
    }
    if lines.is_empty() {
        lines.push(format!("  {}{}", C::quoted("id"), typed(C::ANY_TYPE)));
    }
    if !key.is_empty() {
        let key: Vec<String> = key.iter().map(|name| C::quoted(name)).collect();
        lines.push(format!("  PRIMARY KEY ({})", key.join(", ")));
    }
    format!("CREATE TABLE {} (\n{}\n);", C::quoted_table(&config.name), lines.join(",\n"))
}

/// The column that a field feeds: the one that is mapped to it, else the one of its own name if it is at the top.
fn column_for(config: &TableConfig, path: &FieldPath) -> Option<String> {
    let mapped = config.columns.map.iter().find(|(_, field)| field == path).map(|(column, _)| column.clone());
    mapped.or_else(|| match path.names() {
        [name] if config.columns.map.iter().all(|(column, _)| column != name) => Some(name.clone()),
        _ => None,
    })
}

/// A type behind a column's name; nothing for no type.
fn typed(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" {name}") }
}
