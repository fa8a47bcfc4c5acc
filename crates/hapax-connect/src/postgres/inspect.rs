//! The live table, read and judged: how it is written, what this role may do to it, and what it is to the contract.
//!
//! Identity = the server's own number + the database's + the table's, all of which die with what they number.
//! Reads: the catalogue. Writes: nothing, anywhere.

use hapax_engine::sink::{SinkError, TargetIdentity};
use hapax_model::contract::{Difference, TARGET};
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::position::DeliveryId;
use hapax_sql::postgres::{Session, SqlFault, TableName, quote_identifier};

use super::column::PostgresColumn;
use super::config::{Deletes, PostgresSinkConfig};
use super::error::{During, connect_error, sink_error};
use super::rights;
use super::schema::{self, Found, NoTable, PostgresTable, RowSecurity};
use super::snapshots::{TOO_OLD, oldest_snapshot};
use super::statement::Named;
use super::tables::{self, Role};
use crate::table::ddl::suggested_ddl;
use crate::table::mapping::{Feed, Mapping, NO_DELETES, NO_PLAIN_TABLE, NO_TABLE, Unfit, no_such_table};
use crate::table::rights::cures_on_one_line;
use crate::table::seen::Inspection;

/// The table, or a partition of it, lives on another server.
pub const FOREIGN: &str = "HX4250";
/// The table, or a partition of it, is emptied by a crash.
pub const UNLOGGED: &str = "HX4251";
/// The table dies with its session.
pub const TEMPORARY: &str = "HX4252";
/// Rewrite rules change what an INSERT does.
pub const RULES: &str = "HX4253";
/// Row security decides which rows this role may see and write.
pub const ROW_SECURITY: &str = "HX4254";
/// Other tables inherit from it, over which its unique index does not reach.
pub const HEIRS: &str = "HX4255";

/// The live table as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    pub(super) mapping: Mapping<PostgresColumn>,
    pub(super) named: Named,
    pub(super) oid: u32,
    /// Changes with every change of the table's columns and indexes.
    pub(super) version: String,
    pub(super) identity: TargetIdentity,
}

impl Inspection for Inspected {
    type Column = PostgresColumn;

    fn mapping(&self) -> &Mapping<PostgresColumn> {
        &self.mapping
    }

    fn mapping_mut(&mut self) -> &mut Mapping<PostgresColumn> {
        &mut self.mapping
    }

    fn identity(&self) -> &TargetIdentity {
        &self.identity
    }
}

/// What `check` may know of a live table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCheck {
    /// How the table would be written: the mode, why it is this one, and the columns.
    pub mapping: Mapping<PostgresColumn>,
    /// What the table is to the contract.
    pub identity: Option<TargetIdentity>,
    /// What is no reason to refuse it, but good to know.
    pub notes: Vec<String>,
    /// Why a run would stop although the table is fit, with the code of its page: our own tables.
    pub would_stop: Option<(&'static str, String)>,
}

/// Reads the live table for `check`; writes nothing.
///
/// # Errors
/// If the database cannot be reached, a right is missing, or the table is not fit.
pub async fn check_live(config: &PostgresSinkConfig) -> Result<LiveCheck, SinkError> {
    let target = config.target_name();
    let connected = Session::connect(&config.url, &config.limits).await;
    let session = connected.map_err(|error| connect_error(&target, &error))?;
    let (table, mapping) = read(&session, config).await?;
    let identity = identity(&session, table.oid).await.map_err(|fault| look(config, &fault))?;
    let mut notes = notes(&table);
    notes.extend(mapping.order.note());
    notes.extend(old_snapshot(&session).await?);
    let mut would_stop = None;
    if config.table.progress == ProgressPlace::Sink
        && let Err(error) = tables::check(&session, Role::Target).await
    {
        would_stop = Some((error.code(), error.to_string()));
    }
    Ok(LiveCheck { mapping, identity: Some(identity), notes, would_stop })
}

/// Reads and judges the live table, and checks that our own tables are there.
pub(super) async fn inspect(session: &Session, config: &PostgresSinkConfig) -> Result<Inspected, SinkError> {
    let inspected = inspect_foreign(session, config).await?;
    tables::check(session, Role::Target).await?;
    if let Some(note) = old_snapshot(session).await? {
        tracing::warn!(target = config.target_name(), "{note}");
    }
    Ok(inspected)
}

/// Reads and judges the live table where none of ours may be.
pub(super) async fn inspect_foreign(session: &Session, config: &PostgresSinkConfig) -> Result<Inspected, SinkError> {
    let (table, mapping) = read(session, config).await?;
    let identity = identity(session, table.oid).await.map_err(|fault| look(config, &fault))?;
    let named = Named { quoted: table.name.quoted(), partitioned: table.partitioned };
    Ok(Inspected { mapping, named, oid: table.oid, version: table.version, identity })
}

/// Reads the table again, because it changed.
///
/// # Errors
/// [`SinkError::ContractChanged`] if it is another table now, [`SinkError::SchemaEvolution`] if it no longer fits.
pub(super) async fn inspect_again(
    session: &Session,
    config: &PostgresSinkConfig,
    id: &DeliveryId,
    was: &Inspected,
) -> Result<Inspected, SinkError> {
    session.forget_statements();
    let mut now = match inspect_foreign(session, config).await {
        Ok(now) => now,
        Err(error) => return Err(evolved(error, renamed(session, was.oid).await)),
    };
    now.mapping.remember(&was.mapping);
    if now.identity != was.identity {
        let difference = Difference { name: TARGET.to_owned(), was: was.identity.0.clone(), is: now.identity.0 };
        return Err(SinkError::ContractChanged { id: id.clone(), differences: vec![difference] });
    }
    Ok(now)
}

/// Reads a table of nobody's contract again.
pub(super) async fn inspect_foreign_again(
    session: &Session,
    config: &PostgresSinkConfig,
    was: &Inspected,
) -> Result<Inspected, SinkError> {
    session.forget_statements();
    match inspect_foreign(session, config).await {
        Ok(mut now) => {
            now.mapping.remember(&was.mapping);
            Ok(now)
        }
        Err(error) => Err(evolved(error, renamed(session, was.oid).await)),
    }
}

/// A table that was fit and is not any more has evolved.
fn evolved(error: SinkError, renamed: Option<String>) -> SinkError {
    match (error, renamed) {
        (SinkError::Unfit { code: NO_TABLE, target, .. }, Some(name)) => {
            let message = format!("it was renamed to {name}; name it so, or rename it back");
            SinkError::SchemaEvolution { target, message }
        }
        (SinkError::Unfit { target, message, .. }, _) => SinkError::SchemaEvolution { target, message },
        (other, _) => other,
    }
}

/// What the table of this number is called now; none if it is gone, or that cannot be asked.
async fn renamed(session: &Session, oid: u32) -> Option<String> {
    let sql = "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";
    let row = session.client().query_opt(sql, &[&oid]).await.ok()??;
    let (schema, table): (String, String) = (row.try_get(0).ok()?, row.try_get(1).ok()?);
    TableName::new(Some(&schema), &table).ok().map(|name| name.to_string())
}

fn look(config: &PostgresSinkConfig, fault: &SqlFault) -> SinkError {
    sink_error(&config.target_name(), During::Look, fault)
}

async fn read(
    session: &Session,
    config: &PostgresSinkConfig,
) -> Result<(PostgresTable, Mapping<PostgresColumn>), SinkError> {
    let refuse =
        |unfit: Unfit| SinkError::Unfit { code: unfit.code, target: config.target_name(), message: unfit.message };
    let unreadable = |error: hapax_sql::QuoteError| refuse(Unfit { code: NO_TABLE, message: error.to_string() });
    let name: TableName = config.table.name.parse().map_err(unreadable)?;
    let found = schema::read(session, &name).await.map_err(|fault| look(config, &fault))?;
    let table = match found {
        Found::Table(table) => table,
        Found::Nothing => {
            let known = schema::table_names(session, &name).await.map_err(|fault| look(config, &fault))?;
            let create = suggested_ddl::<PostgresColumn>(&config.table);
            return Err(refuse(no_such_table(name.table(), &known, &create)));
        }
        Found::Other(what) => return Err(refuse(no_table(what))),
    };
    check_table(&table).map_err(refuse)?;
    let mapping = Mapping::resolve(&config.table, &table.live).map_err(refuse)?;
    check_mapping(config, &table, &mapping).map_err(refuse)?;
    check_rights(session, config, &table, &mapping).await?;
    Ok((*table, mapping))
}

fn no_table(what: NoTable) -> Unfit {
    let (code, message) = match what {
        NoTable::Kind(kind) => {
            (NO_PLAIN_TABLE, format!("it is {kind}; rows are delivered into ordinary and partitioned tables only"))
        }
        NoTable::Foreign => (
            FOREIGN,
            "it is a foreign table: its rows are committed by another server, apart from our progress; deliver into that \
             server itself"
                .to_owned(),
        ),
        NoTable::Unlogged => (
            UNLOGGED,
            "it is UNLOGGED: a crash of the server empties it while progress stays, and rows are lost; make it durable \
             with ALTER TABLE … SET LOGGED"
                .to_owned(),
        ),
        NoTable::Temporary => {
            (TEMPORARY, "it is a temporary table, which dies with its session; make an ordinary one".to_owned())
        }
    };
    Unfit { code, message }
}

fn check_table(table: &PostgresTable) -> Result<(), Unfit> {
    if !table.unfit_partitions.is_empty() {
        let message = format!(
            "its partitions {} are unlogged or foreign: a crash empties them, or another server commits them, apart from \
             our progress; make them ordinary tables (ALTER TABLE … SET LOGGED)",
            table.unfit_partitions.join(", ")
        );
        return Err(Unfit { code: UNLOGGED, message });
    }
    if !table.rules.is_empty() {
        let message = format!(
            "it has rewrite rules ({}), which turn an INSERT into something else; use triggers instead (DROP RULE …)",
            table.rules.join(", ")
        );
        return Err(Unfit { code: RULES, message });
    }
    if table.row_security == RowSecurity::Active {
        let message = format!(
            "row security is on and binds the role \"{}\": policies would hide rows from us or refuse them; deliver with \
             a role that has BYPASSRLS, or with the table's owner (unless FORCE ROW LEVEL SECURITY is set)",
            table.user
        );
        return Err(Unfit { code: ROW_SECURITY, message });
    }
    Ok(())
}

fn check_mapping(
    config: &PostgresSinkConfig,
    table: &PostgresTable,
    mapping: &Mapping<PostgresColumn>,
) -> Result<(), Unfit> {
    if mapping.mode != ConflictMode::Append && !table.heirs.is_empty() {
        let message = format!(
            "onConflict is {}, but {} inherit from it, and its unique index does not reach over them, so a key could be \
             there twice; deliver into a partitioned table, or write onConflict: append",
            mapping.mode.name(),
            table.heirs.join(", ")
        );
        return Err(Unfit { code: HEIRS, message });
    }
    let tombstones = mapping.mode == ConflictMode::Newer && config.table.deletes == Deletes::Some;
    let unfilled = mapping.columns.iter().enumerate().find(|(at, column)| {
        let bound = mapping.key.contains(at) || mapping.version == Some(*at) || column.feed == Feed::Deleted;
        !bound && column.live.required && !column.live.fills_itself && column.live.kind.neutral().is_none()
    });
    match unfilled.filter(|_| tombstones) {
        None => Ok(()),
        Some((_, column)) => Err(Unfit {
            code: NO_DELETES,
            message: format!(
                "a removed row stays as a tombstone, and column \"{}\" ({}) must have a value of which none is neutral; \
                 give it a default",
                column.live.name, column.live.declared
            ),
        }),
    }
}

/// What this role must be allowed to do with the table. Whoever lacks a right there often lacks others: all are named.
async fn check_rights(
    session: &Session,
    config: &PostgresSinkConfig,
    table: &PostgresTable,
    mapping: &Mapping<PostgresColumn>,
) -> Result<(), SinkError> {
    let mut needed = vec!["USAGE", "INSERT"];
    if mapping.mode != ConflictMode::Append {
        needed.push("SELECT");
    }
    if matches!(mapping.mode, ConflictMode::Update | ConflictMode::Newer) {
        needed.push("UPDATE");
    }
    if mapping.mode == ConflictMode::Update && config.table.deletes == Deletes::Some {
        needed.push("DELETE");
    }
    let missing: Vec<&str> = needed.into_iter().filter(|right| table.lacks.iter().any(|lack| lack == right)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let user = quote_identifier(&table.user).unwrap_or_else(|_| table.user.clone());
    let mut cures = Vec::new();
    if let (true, Some(schema)) = (missing.contains(&"USAGE"), table.name.schema()) {
        let schema = quote_identifier(schema).unwrap_or_else(|_| schema.to_owned());
        cures.push(format!("GRANT USAGE ON SCHEMA {schema} TO {user};"));
    }
    let rights: Vec<&str> = missing.iter().copied().filter(|right| *right != "USAGE").collect();
    if !rights.is_empty() {
        cures.push(format!("GRANT {} ON TABLE {} TO {user};", rights.join(", "), table.name.quoted()));
    }
    let mut person = Vec::new();
    if config.table.progress == ProgressPlace::Sink {
        let missing = rights::missing(session, Role::Target).await?;
        cures.extend(missing.run);
        person = missing.person;
    }
    let cures = cures_on_one_line(&cures, &person);
    let message = format!("the role {user} may not write it; let its owner run: {cures}");
    Err(SinkError::Denied { target: config.target_name(), message })
}

/// What is no reason to refuse a table, but good to know.
fn notes(table: &PostgresTable) -> Vec<String> {
    let mut notes = Vec::new();
    if table.row_security == RowSecurity::Bypassed {
        notes.push(format!("row security is on, and does not bind the role \"{}\": every row is written", table.user));
    }
    if !table.triggers.is_empty() {
        notes.push(format!(
            "rows pass the triggers {}: a row that one of them drops or refuses becomes a dead letter",
            table.triggers.join(", ")
        ));
    }
    for column in &table.numbered {
        notes.push(format!(
            "column \"{column}\" is GENERATED ALWAYS AS IDENTITY: the server numbers it, and no field feeds it; declare it \
             GENERATED BY DEFAULT to fill it from events"
        ));
    }
    notes
}

/// The identity of a table: survives a rename and a failover, not a restore into another server.
async fn identity(session: &Session, oid: u32) -> Result<TargetIdentity, SqlFault> {
    let fault = |error: tokio_postgres::Error| session.fault(&error);
    let sql = "SELECT d.oid, pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE') \
               FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()";
    let row = session.client().query_one(sql, &[]).await.map_err(fault)?;
    let (database, allowed): (u32, bool) = (row.try_get(0).map_err(fault)?, row.try_get(1).map_err(fault)?);
    let system = match allowed {
        true => {
            let sql = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()";
            session.client().query_one(sql, &[]).await.and_then(|row| row.try_get::<_, String>(0)).map_err(fault)?
        }
        // Without that right two servers are told apart by their databases' and tables' numbers only.
        false => "unnumbered".to_owned(),
    };
    Ok(TargetIdentity(format!("postgres:{system}/{database}/{oid}")))
}

async fn old_snapshot(session: &Session) -> Result<Option<String>, SinkError> {
    let oldest = oldest_snapshot(session).await?;
    Ok(oldest.filter(|oldest| oldest.age > TOO_OLD).map(|oldest| oldest.to_string()))
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
