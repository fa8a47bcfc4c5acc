//! Our own tables: made by themselves, in one transaction, whoever comes first.
//!
//! Invariant: a database that says it has our tables has all of them; one that lost some is refused, because an
//! empty progress table beside full user tables would deliver everything a second time.

use hapax_engine::sink::SinkError;
use hapax_sql::sqlite::{checked_commit, quote_identifier};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::error::{During, after_commit, path_of, sink_error, target_name};

/// The version of the tables that this program makes and understands.
pub const VERSION: u32 = 1;

/// What a database is used for. One file may be used for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Progress, epoch log and dead letters, beside the user's data or in the state store.
    Target,
    /// All of that, and leases, witnesses, notes, intents and pauses.
    State,
}

/// The tables of every role.
pub const DDL: &str = "\
CREATE TABLE IF NOT EXISTS hapax_meta (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hapax_progress (
  workflow TEXT NOT NULL,
  sink TEXT NOT NULL,
  lane TEXT NOT NULL,
  generation INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  position TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  contract TEXT NOT NULL,
  snapshot TEXT,
  session TEXT NOT NULL,
  read INTEGER NOT NULL,
  delivered INTEGER NOT NULL,
  filtered INTEGER NOT NULL,
  dead INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hapax_epochs (
  workflow TEXT NOT NULL,
  sink TEXT NOT NULL,
  lane TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  from_position TEXT NOT NULL,
  to_position TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  read INTEGER NOT NULL,
  delivered INTEGER NOT NULL,
  filtered INTEGER NOT NULL,
  dead INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  opened_at_ms INTEGER NOT NULL,
  closed_at_ms INTEGER NOT NULL,
  committed_at_ms INTEGER NOT NULL,
  PRIMARY KEY (workflow, sink, lane, epoch, generation)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hapax_dead_letters (
  id INTEGER PRIMARY KEY,
  workflow TEXT NOT NULL,
  sink TEXT NOT NULL,
  lane TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  position TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  stage TEXT NOT NULL,
  code TEXT NOT NULL,
  message TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  bytes BLOB NOT NULL,
  length INTEGER NOT NULL,
  sha256 BLOB,
  event_key TEXT,
  in_doubt INTEGER NOT NULL DEFAULT 0,
  safe_until_ms INTEGER,
  written_at_ms INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'dead' CHECK (state IN ('dead', 'replayed', 'discarded')),
  state_at_ms INTEGER,
  replay_count INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX IF NOT EXISTS hapax_dead_letters_dead ON hapax_dead_letters (workflow, sink, id) WHERE state = 'dead';

CREATE INDEX IF NOT EXISTS hapax_dead_letters_causes ON hapax_dead_letters (fingerprint, code, stage, written_at_ms) WHERE state = 'dead';

CREATE TABLE IF NOT EXISTS hapax_adopted (
  workflow TEXT NOT NULL,
  sink TEXT NOT NULL,
  lane TEXT NOT NULL,
  by_workflow TEXT NOT NULL,
  adopted_at_ms INTEGER NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) STRICT, WITHOUT ROWID;
";

/// The tables that only a state store has.
pub const STATE_DDL: &str = "\
CREATE TABLE IF NOT EXISTS hapax_leases (
  workflow TEXT NOT NULL,
  sink TEXT NOT NULL,
  lane TEXT NOT NULL,
  holder TEXT NOT NULL,
  token TEXT NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  machine TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started INTEGER NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hapax_witness (
  workflow TEXT NOT NULL,
  sink TEXT NOT NULL,
  lane TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  position TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  saved_at_ms INTEGER NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hapax_notes (
  workflow TEXT NOT NULL,
  sink TEXT NOT NULL,
  lane TEXT NOT NULL,
  state TEXT NOT NULL,
  exit_code INTEGER,
  code TEXT,
  message TEXT NOT NULL,
  session TEXT NOT NULL,
  noted_at_ms INTEGER NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hapax_intents (
  workflow TEXT NOT NULL,
  sink TEXT NOT NULL,
  lane TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  from_position TEXT NOT NULL,
  from_incarnation TEXT NOT NULL,
  to_position TEXT NOT NULL,
  to_incarnation TEXT NOT NULL,
  digest BLOB NOT NULL,
  saved_at_ms INTEGER NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hapax_pauses (
  workflow TEXT PRIMARY KEY,
  by TEXT NOT NULL,
  why TEXT NOT NULL,
  since_ms INTEGER NOT NULL,
  until_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS hapax_suspects (
  workflow TEXT NOT NULL,
  sink TEXT NOT NULL,
  lane TEXT NOT NULL,
  position TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  lives INTEGER NOT NULL,
  verdict TEXT,
  noted_at_ms INTEGER NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) STRICT, WITHOUT ROWID;
";

const TARGET_TABLES: [&str; 5] =
    ["hapax_meta", "hapax_progress", "hapax_epochs", "hapax_dead_letters", "hapax_adopted"];
const STATE_TABLES: [&str; 6] =
    ["hapax_leases", "hapax_witness", "hapax_notes", "hapax_intents", "hapax_pauses", "hapax_suspects"];

/// The statements that make the tables of `role`, for people who want to read them first.
#[must_use]
pub fn ddl(role: Role) -> String {
    match role {
        Role::Target => DDL.to_owned(),
        Role::State => format!("{DDL}\n{STATE_DDL}"),
    }
}

/// Makes the tables of `role` where they are not there yet, and returns the database's own random id, made once.
///
/// Safe to call from any number of processes at once, and to be killed in: it is one transaction.
///
/// # Errors
/// If the tables are of a newer version, or some of them are missing while the others say they were made.
pub fn ensure(connection: &Connection, role: Role) -> Result<String, SinkError> {
    if let Some(id) = found(connection, role)? {
        return Ok(id);
    }
    let fail = |error| sink_error(&path_of(connection), During::Look, &error);
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
    if version(&transaction)?.is_some() {
        check_complete(&transaction)?;
    }
    transaction.execute_batch(&ddl(role)).map_err(fail)?;
    let meta = "INSERT INTO hapax_meta (name, value) VALUES ('version', ?1), ('database', lower(hex(randomblob(16)))) \
                ON CONFLICT (name) DO NOTHING";
    transaction.execute(meta, [VERSION.to_string()]).map_err(fail)?;
    after_commit(&path_of(connection), During::Look, checked_commit(&transaction))?;
    drop(transaction);
    found(connection, role)?.ok_or_else(|| damaged(connection, "the tables vanished while they were being made"))
}

/// The database's own random id, if our tables are here. Makes nothing.
///
/// # Errors
/// If the tables are of a newer version or incomplete, or the database cannot be read.
pub fn database_id(connection: &Connection) -> Result<Option<String>, SinkError> {
    found(connection, Role::Target)
}

/// Whether all tables of `role` are here. Makes nothing.
///
/// # Errors
/// If the tables are of a newer version or incomplete, or the database cannot be read.
pub fn has_tables(connection: &Connection, role: Role) -> Result<bool, SinkError> {
    found(connection, role).map(|found| found.is_some())
}

/// Whether one of our tables is here.
///
/// # Errors
/// If the database cannot be read.
pub fn has_table(connection: &Connection, name: &str) -> Result<bool, SinkError> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(|error| look_error(connection, &error))?;
    statement.exists([name]).map_err(|error| look_error(connection, &error))
}

/// Drops all our tables, and our marker triggers on the user's tables: the deliveries into this database are forgotten.
///
/// # Errors
/// If the database cannot be written.
pub fn drop_all(connection: &Connection) -> Result<(), SinkError> {
    let fail = |error| sink_error(&path_of(connection), During::Look, &error);
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
    for name in marker_triggers(&transaction).map_err(fail)? {
        let quoted = quote_identifier(&name).map_err(|error| damaged(connection, &error.to_string()))?;
        transaction.execute_batch(&format!("DROP TRIGGER IF EXISTS {quoted}")).map_err(fail)?;
    }
    for name in TARGET_TABLES.iter().chain(&STATE_TABLES) {
        transaction.execute_batch(&format!("DROP TABLE IF EXISTS {name}")).map_err(fail)?;
    }
    after_commit(&path_of(connection), During::Look, checked_commit(&transaction))
}

fn marker_triggers(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'hapax_marker_*'";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// The id, if every table of `role` is here in our version.
pub(super) fn found(connection: &Connection, role: Role) -> Result<Option<String>, SinkError> {
    if version(connection)?.is_none() {
        return Ok(None);
    }
    check_complete(connection)?;
    if role == Role::State && first_missing(connection, &STATE_TABLES)?.is_some() {
        return Ok(None);
    }
    let sql = "SELECT value FROM hapax_meta WHERE name = 'database'";
    let id = connection.query_row(sql, [], |row| row.get(0)).optional();
    id.map_err(|error| look_error(connection, &error))
}

fn version(connection: &Connection) -> Result<Option<u32>, SinkError> {
    if !has_table(connection, "hapax_meta")? {
        return Ok(None);
    }
    let sql = "SELECT value FROM hapax_meta WHERE name = 'version'";
    let text: Option<String> =
        connection.query_row(sql, [], |row| row.get(0)).optional().map_err(|error| look_error(connection, &error))?;
    let Some(text) = text else { return Ok(None) };
    match text.parse::<u32>() {
        Ok(version) if version <= VERSION => Ok(Some(version)),
        Ok(version) => Err(damaged(
            connection,
            &format!(
                "our tables are of version {version} and this program knows up to {VERSION}; use the newer program"
            ),
        )),
        Err(_) => Err(damaged(connection, &format!("the version of our tables is \"{text}\", which is no number"))),
    }
}

fn check_complete(connection: &Connection) -> Result<(), SinkError> {
    match first_missing(connection, &TARGET_TABLES)? {
        None => Ok(()),
        Some(name) => Err(damaged(
            connection,
            &format!(
                "the table {name} is gone while hapax_meta is here; restore the file from a backup, \
                 or forget all its deliveries with hapax setup --drop"
            ),
        )),
    }
}

fn first_missing(connection: &Connection, names: &[&'static str]) -> Result<Option<&'static str>, SinkError> {
    for name in names {
        if !has_table(connection, name)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Our tables are not as we left them.
pub(crate) fn damaged(connection: &Connection, message: &str) -> SinkError {
    SinkError::OwnTables { target: target_name(&path_of(connection)), message: message.to_owned() }
}

/// An error of a statement that only reads.
pub(crate) fn look_error(connection: &Connection, error: &rusqlite::Error) -> SinkError {
    sink_error(&path_of(connection), During::Look, error)
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
