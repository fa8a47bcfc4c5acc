//! The live table, read and judged: how it is written, and what it is to the contract.
//!
//! Identity = the database's random id + a marker trigger on the table, which does nothing and dies with the table.
//! Writes: our tables and the marker, on first use only, and nothing where the file is opened to look ([`Open::ToLook`]).

use hapax_engine::sink::{SinkError, TargetIdentity};
use hapax_model::contract::{Difference, TARGET};
use hapax_model::position::DeliveryId;
use hapax_sql::sqlite::{Open, checked_commit, open_to_look, quote_identifier};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use super::config::SqliteSinkConfig;
use super::error::{During, after_commit, open_error, path_of, sink_error};
use super::schema::{self, Found, RowNumbers, SqliteColumn};
use super::tables::{Role, database_id, ensure};
use crate::table::ddl::suggested_ddl;
use crate::table::mapping::{Mapping, NO_PLAIN_TABLE, NO_TABLE, Unfit, no_such_table};
use crate::table::seen::Inspection;

/// Stands for the marker of a table that has none.
const NO_MARKER: &str = "none";

/// The live table as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    pub(super) mapping: Mapping<SqliteColumn>,
    pub(super) row_numbers: RowNumbers,
    /// The schema's version at that moment.
    pub(super) version: i64,
    pub(super) identity: TargetIdentity,
}

impl Inspection for Inspected {
    type Column = SqliteColumn;

    fn mapping(&self) -> &Mapping<SqliteColumn> {
        &self.mapping
    }

    fn mapping_mut(&mut self) -> &mut Mapping<SqliteColumn> {
        &mut self.mapping
    }

    fn identity(&self) -> &TargetIdentity {
        &self.identity
    }
}

/// What `check` may know of a live table without touching it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCheck {
    /// How the table would be written: the mode, why it is this one, and the columns.
    pub mapping: Mapping<SqliteColumn>,
    /// What the table is to the contract; none if nothing was ever delivered into it.
    pub identity: Option<TargetIdentity>,
}

/// Reads the live table for `check`; writes nothing.
///
/// # Errors
/// If the file cannot be read, or the table is not fit.
pub async fn check_live(config: &SqliteSinkConfig) -> Result<LiveCheck, SinkError> {
    let config = config.clone();
    let name = config.target_name();
    let work = tokio::task::spawn_blocking(move || check(&config));
    work.await.unwrap_or_else(|error| Err(SinkError::ConnectionFailed { target: name, message: error.to_string() }))
}

fn check(config: &SqliteSinkConfig) -> Result<LiveCheck, SinkError> {
    let path = std::path::absolute(&config.path).unwrap_or_else(|_| config.path.clone());
    if !path.exists() {
        return Err(open_error(&hapax_sql::sqlite::OpenError::Missing { path }));
    }
    if path.is_dir() {
        return Err(open_error(&hapax_sql::sqlite::OpenError::Folder { path }));
    }
    let connection =
        open_to_look(&path, config.busy_timeout).map_err(|error| sink_error(&path, During::Look, &error))?;
    let (mut mapping, _) = read(&connection, config)?;
    if let Some(note) = mapping.order.note() {
        mapping.why = format!("{}; {note}", mapping.why);
    }
    let marker = find_marker(&connection, &mapping.table).map_err(|error| sink_error(&path, During::Look, &error))?;
    let identity = match (database_id(&connection)?, marker) {
        (Some(database), Some(marker)) => Some(identity(&database, &mapping.table, &marker)),
        (None, _) | (_, None) => None,
    };
    Ok(LiveCheck { mapping, identity })
}

/// Reads and judges the live table, and makes what the contract needs, our tables and the marker, unless this is a look.
pub(super) fn inspect(connection: &Connection, config: &SqliteSinkConfig) -> Result<Inspected, SinkError> {
    // Judged first: a target that is refused is not written to.
    let (mapping, _) = read(connection, config)?;
    let (database, marker) = match config.open {
        Open::Existing | Open::OrCreate => {
            (ensure(connection, Role::Target)?, ensure_marker(connection, &mapping.table)?)
        }
        // A table that has none is another one than any that was delivered into: so says a run, which makes a new one.
        Open::ToLook => {
            let fail = |error| sink_error(&path_of(connection), During::Look, &error);
            let marker = find_marker(connection, &mapping.table).map_err(fail)?;
            (database_id(connection)?.unwrap_or_default(), marker.unwrap_or_else(|| NO_MARKER.to_owned()))
        }
    };
    let identity = identity(&database, &mapping.table, &marker);
    let (mapping, row_numbers, version) = read_at_version(connection, config)?;
    Ok(Inspected { mapping, row_numbers, version, identity })
}

/// Reads the live table where none of ours may be: its name is all there is to identify it by.
pub(super) fn inspect_foreign(connection: &Connection, config: &SqliteSinkConfig) -> Result<Inspected, SinkError> {
    let (mapping, row_numbers, version) = read_at_version(connection, config)?;
    let identity = TargetIdentity(format!("sqlite:{}:{}", path_of(connection).display(), mapping.table));
    Ok(Inspected { mapping, row_numbers, version, identity })
}

/// Reads the table again inside the epoch's transaction, because the schema moved.
///
/// # Errors
/// [`SinkError::ContractChanged`] if it is another table now, [`SinkError::SchemaEvolution`] if it no longer fits.
pub(super) fn inspect_again(
    connection: &Connection,
    config: &SqliteSinkConfig,
    id: &DeliveryId,
    was: &Inspected,
) -> Result<Inspected, SinkError> {
    let fail = |error| sink_error(&path_of(connection), During::Look, &error);
    let marker = find_marker(connection, &was.mapping.table).map_err(fail)?;
    let database = database_id(connection)?.unwrap_or_default();
    let now = identity(&database, &was.mapping.table, marker.as_deref().unwrap_or(NO_MARKER));
    if now != was.identity {
        let difference = Difference { name: TARGET.to_owned(), was: was.identity.0.clone(), is: now.0 };
        return Err(SinkError::ContractChanged { id: id.clone(), differences: vec![difference] });
    }
    let (mut mapping, row_numbers, version) = read_at_version(connection, config).map_err(evolved)?;
    mapping.remember(&was.mapping);
    Ok(Inspected { mapping, row_numbers, version, identity: now })
}

/// Reads a table of nobody's contract again.
pub(super) fn inspect_foreign_again(
    connection: &Connection,
    config: &SqliteSinkConfig,
    was: &Inspected,
) -> Result<Inspected, SinkError> {
    let mut now = inspect_foreign(connection, config).map_err(evolved)?;
    now.mapping.remember(&was.mapping);
    Ok(now)
}

/// A table that was fit and is not any more has evolved.
fn evolved(error: SinkError) -> SinkError {
    if let SinkError::Unfit { target, message, .. } = error {
        return SinkError::SchemaEvolution { target, message };
    }
    error
}

fn identity(database: &str, table: &str, marker: &str) -> TargetIdentity {
    TargetIdentity(format!("sqlite:{database}:{table}:{marker}"))
}

/// The table and the schema's version, of one moment.
fn read_at_version(
    connection: &Connection,
    config: &SqliteSinkConfig,
) -> Result<(Mapping<SqliteColumn>, RowNumbers, i64), SinkError> {
    let fail = |error| sink_error(&path_of(connection), During::Look, &error);
    // Inside a transaction of the caller's it is one moment anyway.
    let snapshot = connection
        .is_autocommit()
        .then(|| Transaction::new_unchecked(connection, TransactionBehavior::Deferred))
        .transpose()
        .map_err(fail)?;
    let version = schema::version(connection).map_err(fail)?;
    let (mapping, row_numbers) = read(connection, config)?;
    if let Some(snapshot) = snapshot {
        snapshot.commit().map_err(fail)?;
    }
    Ok((mapping, row_numbers, version))
}

pub(super) fn read(
    connection: &Connection,
    config: &SqliteSinkConfig,
) -> Result<(Mapping<SqliteColumn>, RowNumbers), SinkError> {
    let refuse =
        |unfit: Unfit| SinkError::Unfit { code: unfit.code, target: config.target_name(), message: unfit.message };
    quote_identifier(&config.table.name)
        .map_err(|error| refuse(Unfit { code: NO_TABLE, message: error.to_string() }))?;
    let found = schema::read(connection, &config.table.name)
        .map_err(|error| sink_error(&path_of(connection), During::Look, &error))?;
    match found {
        Found::Table(found) => {
            let mapping = Mapping::resolve(&config.table, &found.live).map_err(refuse)?;
            Ok((mapping, found.row_numbers))
        }
        Found::Nothing => {
            let known = schema::table_names(connection)
                .map_err(|error| sink_error(&path_of(connection), During::Look, &error))?;
            let create = suggested_ddl::<SqliteColumn>(&config.table);
            Err(refuse(no_such_table(&config.table.name, &known, &create)))
        }
        Found::Other(what) => {
            let message = format!("it is {what}; rows are delivered into ordinary tables only");
            Err(refuse(Unfit { code: NO_PLAIN_TABLE, message }))
        }
    }
}

fn find_marker(connection: &Connection, table: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT min(name) FROM main.sqlite_schema \
               WHERE type = 'trigger' AND name GLOB 'hapax_marker_*' AND tbl_name = ?1 COLLATE NOCASE";
    connection.prepare_cached(sql)?.query_row([table], |row| row.get(0)).optional().map(Option::flatten)
}

fn ensure_marker(connection: &Connection, table: &str) -> Result<String, SinkError> {
    let path = path_of(connection);
    let fail = |error| sink_error(&path, During::Look, &error);
    if let Some(marker) = find_marker(connection, table).map_err(fail)? {
        return Ok(marker);
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
    if let Some(marker) = find_marker(&transaction, table).map_err(fail)? {
        return Ok(marker);
    }
    let random: String =
        transaction.query_row("SELECT lower(hex(randomblob(8)))", [], |row| row.get(0)).map_err(fail)?;
    let marker = format!("hapax_marker_{random}");
    let quoted = quote_identifier(table).map_err(|error| SinkError::Unfit {
        code: NO_TABLE,
        target: super::error::target_name(&path),
        message: error.to_string(),
    })?;
    // On DELETE and never true: writes cost nothing more, deletes one comparison.
    let sql = format!("CREATE TRIGGER main.\"{marker}\" AFTER DELETE ON {quoted} WHEN 0 BEGIN SELECT 1; END");
    transaction.execute_batch(&sql).map_err(fail)?;
    after_commit(&path, During::Look, checked_commit(&transaction))?;
    Ok(marker)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
