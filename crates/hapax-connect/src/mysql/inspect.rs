//! The live table, read and judged: how it is written, what this user may do to it, and what it is to the contract.
//!
//! Identity = the server's own number + the database + the table's number, which dies with it; where the server does not
//! tell that number, the time when the table was made. Reads: the catalogue. Writes: nothing, anywhere.

use hapax_engine::sink::{SinkError, TargetIdentity};
use hapax_model::contract::{Difference, TARGET};
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::position::DeliveryId;
use hapax_sql::mysql::{FaultClass, Flavour, Session, SqlFault, TableName, Value};

use super::column::MysqlColumn;
use super::config::{Deletes, MysqlSinkConfig};
use super::ddl::suggested_for;
use super::error::{During, connect_error, sink_error};
use super::schema::{self, Found, MysqlTable, Partitioned};
use super::statement::{Named, NewRow};
use super::{proof, rights, tables};
use crate::table::LiveColumn as _;
use crate::table::mapping::{Feed, Mapping, NO_DELETES, NO_PLAIN_TABLE, NO_TABLE, Unfit, listed, no_such_table};
use crate::table::rights::cures_on_one_line;
use crate::table::seen::Inspection;

/// The table's engine knows no transactions.
pub const ENGINE: &str = "HX4400";
/// A second unique index makes an upsert overwrite another row than the key's.
pub const SECOND_INDEX: &str = "HX4401";
/// A column of the key is compared so that different keys are one.
pub const WEAK_COLLATION: &str = "HX4402";

/// The live table as it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    pub(super) mapping: Mapping<MysqlColumn>,
    pub(super) named: Named,
    /// Changes with every change of the table's definition.
    pub(super) version: String,
    /// The statements that answer with the version.
    pub(super) version_question: String,
    pub(super) identity: TargetIdentity,
    pub(super) renumbered: Renumbered,
}

impl Inspection for Inspected {
    type Column = MysqlColumn;

    fn mapping(&self) -> &Mapping<MysqlColumn> {
        &self.mapping
    }

    fn mapping_mut(&mut self) -> &mut Mapping<MysqlColumn> {
        &mut self.mapping
    }

    fn identity(&self) -> &TargetIdentity {
        &self.identity
    }
}

/// Whether the server gave the table a new number while we delivered into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renumbered {
    /// It did, and what we delivered is there: the contract is to name the new one.
    Yes,
    /// It did not.
    No,
}

/// What `check` may know of a live table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCheck {
    /// How the table would be written: the mode, why it is this one, and the columns.
    pub mapping: Mapping<MysqlColumn>,
    /// What the table is to the contract.
    pub identity: Option<TargetIdentity>,
    /// Its storage engine.
    pub engine: String,
    /// What is no reason to refuse it, but good to know.
    pub notes: Vec<String>,
    /// Why a run would stop although the table is fit, with the code of its page: our own tables.
    pub would_stop: Option<(&'static str, String)>,
}

/// Reads the live table for `check`; writes nothing.
///
/// # Errors
/// If the database cannot be reached, a right is missing, or the table is not fit.
pub async fn check_live(config: &MysqlSinkConfig) -> Result<LiveCheck, SinkError> {
    let target = config.target_name();
    let connected = Session::connect(&config.url, &config.limits).await;
    let mut session = connected.map_err(|error| connect_error(&target, &error))?;
    let (table, mapping) = read(&mut session, config).await?;
    let number = table_number(&mut session, &table).await.map_err(|fault| look(config, &fault))?;
    let identity = identity(&mut session, &table, number).await.map_err(|fault| look(config, &fault))?;
    let mut notes = notes(&table, number);
    notes.extend(mapping.order.note());
    notes.extend(narrow_columns(&mapping));
    let mut would_stop = None;
    if config.table.progress == ProgressPlace::Sink
        && let Err(error) = tables::check(&mut session).await
    {
        would_stop = Some((error.code(), error.to_string()));
    }
    Ok(LiveCheck { mapping, identity: Some(identity), engine: table.engine, notes, would_stop })
}

/// Reads and judges the live table, and checks that our own tables are there.
pub(super) async fn inspect(session: &mut Session, config: &MysqlSinkConfig) -> Result<Inspected, SinkError> {
    let inspected = inspect_foreign(session, config).await?;
    tables::check(session).await?;
    Ok(inspected)
}

/// Reads and judges the live table where none of ours may be.
pub(super) async fn inspect_foreign(session: &mut Session, config: &MysqlSinkConfig) -> Result<Inspected, SinkError> {
    let (table, mapping) = read(session, config).await?;
    let number = table_number(session, &table).await.map_err(|fault| look(config, &fault))?;
    let identity = identity(session, &table, number).await.map_err(|fault| look(config, &fault))?;
    let new_row = if session.server().has_row_alias() { NewRow::Alias } else { NewRow::Values };
    Ok(Inspected {
        mapping,
        named: Named { quoted: table.name.quoted(), new_row },
        version: table.version,
        version_question: schema::version_question(&table.name),
        identity,
        renumbered: Renumbered::No,
    })
}

/// Reads the table again, because it changed. A table with another number is the same one if `proof`, a row that we
/// wrote, is in it.
///
/// # Errors
/// [`SinkError::ContractChanged`] if it is another table now, [`SinkError::SchemaEvolution`] if it no longer fits.
pub(super) async fn inspect_again(
    session: &mut Session,
    config: &MysqlSinkConfig,
    id: &DeliveryId,
    was: &Inspected,
    proof: &[Value],
) -> Result<Inspected, SinkError> {
    session.forget_statements();
    let mut now = match inspect_foreign(session, config).await {
        Ok(now) => now,
        Err(SinkError::Unfit { code: NO_TABLE, target, message }) => {
            let name = renamed(session, &was.identity).await;
            let message =
                name.map_or(message, |name| format!("it was renamed to {name}; name it so, or rename it back"));
            return Err(SinkError::SchemaEvolution { target, message });
        }
        Err(error) => return Err(evolved(error)),
    };
    now.mapping.remember(&was.mapping);
    if now.identity == was.identity {
        return Ok(Inspected { renumbered: was.renumbered, ..now });
    }
    if !proof::is_there(session, &now, proof).await.map_err(|fault| look(config, &fault))? {
        let difference = Difference { name: TARGET.to_owned(), was: was.identity.0.clone(), is: now.identity.0 };
        return Err(SinkError::ContractChanged { id: id.clone(), differences: vec![difference] });
    }
    let (target, was, is) = (config.target_name(), &was.identity.0, &now.identity.0);
    tracing::warn!(target, was, is, "the table was rebuilt or exchanged, and what was delivered is in it: it goes on");
    Ok(Inspected { renumbered: Renumbered::Yes, ..now })
}

/// What the table of this identity is called now; none if it is gone, or that cannot be asked.
async fn renamed(session: &mut Session, was: &TargetIdentity) -> Option<String> {
    let number: u64 = was.0.rsplit_once('/')?.1.parse().ok()?;
    let sql = format!("SELECT NAME FROM information_schema.{} WHERE TABLE_ID = ?", numbers(session.server().flavour));
    let rows = session.rows(&sql, vec![number.into()]).await.ok()?;
    let name = schema::text(rows.first()?, 0)?;
    name.contains('/').then(|| name.replace('/', "."))
}

/// Where InnoDB tells the numbers of its tables.
const fn numbers(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::MariaDb => "INNODB_SYS_TABLES",
        Flavour::Mysql => "INNODB_TABLES",
    }
}

/// Reads a table of nobody's contract again.
pub(super) async fn inspect_foreign_again(
    session: &mut Session,
    config: &MysqlSinkConfig,
    was: &Inspected,
) -> Result<Inspected, SinkError> {
    session.forget_statements();
    let mut now = inspect_foreign(session, config).await.map_err(evolved)?;
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

fn look(config: &MysqlSinkConfig, fault: &SqlFault) -> SinkError {
    sink_error(&config.target_name(), During::Look, fault)
}

async fn read(
    session: &mut Session,
    config: &MysqlSinkConfig,
) -> Result<(MysqlTable, Mapping<MysqlColumn>), SinkError> {
    let refuse =
        |unfit: Unfit| SinkError::Unfit { code: unfit.code, target: config.target_name(), message: unfit.message };
    let unreadable = |error: hapax_sql::QuoteError| refuse(Unfit { code: NO_TABLE, message: error.to_string() });
    let name: TableName = config.table.name.parse().map_err(unreadable)?;
    let table = match schema::read(session, &name).await {
        Ok(Found::Table(table)) => *table,
        Ok(Found::Nothing) => return Err(not_seen(session, config, &name).await),
        Ok(Found::Other(kind)) => {
            let message = format!("it is {kind}; rows are delivered into tables only");
            return Err(refuse(Unfit { code: NO_PLAIN_TABLE, message }));
        }
        Err(fault) if fault.class == FaultClass::Denied => {
            return Err(denied(session, config, &name, &needed_unseen(config)).await);
        }
        Err(fault) => return Err(look(config, &fault)),
    };
    check_engine(config, &table).map_err(refuse)?;
    let mapping = Mapping::resolve(&config.table, &table.live).map_err(refuse)?;
    check_mapping(config, &table, &mapping).map_err(refuse)?;
    check_rights(session, config, &table, &mapping).await?;
    Ok((table, mapping))
}

/// The catalogue shows nothing to those who have no right on it: the table itself says which it is.
async fn not_seen(session: &mut Session, config: &MysqlSinkConfig, name: &TableName) -> SinkError {
    let probed = session.text(&format!("SELECT 1 FROM {} LIMIT 0", name.quoted())).await;
    match probed {
        Err(fault) if fault.class == FaultClass::Denied => denied(session, config, name, &needed_unseen(config)).await,
        Err(fault) if !matches!(fault.class, FaultClass::Schema) => look(config, &fault),
        Ok(_) | Err(_) => {
            let create = suggested_for(&config.table, session.server().flavour);
            let known = schema::table_names(session, name).await.unwrap_or_default();
            let Unfit { code, message } = no_such_table(name.table(), &known, &create);
            SinkError::Unfit { code, target: config.target_name(), message }
        }
    }
}

/// Only InnoDB commits rows and progress together.
fn check_engine(config: &MysqlSinkConfig, table: &MysqlTable) -> Result<(), Unfit> {
    if table.engine.eq_ignore_ascii_case("InnoDB") || config.table.progress == ProgressPlace::State {
        return Ok(());
    }
    let message = format!(
        "its engine is {}, which has no transactions: rows would stay when an epoch is rolled back, and a crash could \
         lose rows while progress stays; convert it with ALTER TABLE {} ENGINE = InnoDB, or keep progress elsewhere \
         (progress: state) with a weaker guarantee",
        table.engine,
        table.name.quoted()
    );
    Err(Unfit { code: ENGINE, message })
}

fn check_mapping(config: &MysqlSinkConfig, table: &MysqlTable, mapping: &Mapping<MysqlColumn>) -> Result<(), Unfit> {
    if mapping.mode == ConflictMode::Append {
        return Ok(());
    }
    check_indexes(table, mapping)?;
    check_collations(table, mapping)?;
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

/// `ON DUPLICATE KEY UPDATE` names no index: it would overwrite whatever row another one finds.
fn check_indexes(table: &MysqlTable, mapping: &Mapping<MysqlColumn>) -> Result<(), Unfit> {
    let key: Vec<&str> = mapping.key.iter().map(|at| mapping.columns[*at].live.name.as_str()).collect();
    let over_key =
        |columns: &[String]| columns.len() == key.len() && columns.iter().all(|column| key.contains(&column.as_str()));
    let Some(second) = table.live.unique.iter().find(|index| !over_key(&index.columns)) else { return Ok(()) };
    let columns: Vec<&str> = second.columns.iter().map(String::as_str).collect();
    let message = format!(
        "onConflict is {}, and the table has a second unique index, \"{}\" over {}: MySQL's upsert takes whichever index \
         finds a row, and would overwrite another row than the key's; make that index a plain one, or write \
         onConflict: append",
        mapping.mode.name(),
        second.name,
        listed(&columns)
    );
    Err(Unfit { code: SECOND_INDEX, message })
}

/// A hash is safe in every collation; what comes from an event is not.
fn check_collations(table: &MysqlTable, mapping: &Mapping<MysqlColumn>) -> Result<(), Unfit> {
    let fields = mapping.key.iter().map(|at| &mapping.columns[*at]).filter(|column| column.feed != Feed::Key);
    for column in fields {
        let Some(collation) = column.live.weak_collation() else { continue };
        let name = MysqlColumn::quoted(&column.live.name);
        let message = format!(
            "column \"{}\" is part of the key and is compared by {collation}, to which texts that differ in case, accents \
             or spaces at their end are one key; compare it exactly with ALTER TABLE {} MODIFY {name} {} CHARACTER SET \
             utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL (MySQL: utf8mb4_0900_bin), or name a keyColumn for the key's \
             hash",
            column.live.name,
            table.name.quoted(),
            column.live.declared
        );
        return Err(Unfit { code: WEAK_COLLATION, message });
    }
    Ok(())
}

/// What this user must be allowed to do with the table.
async fn check_rights(
    session: &mut Session,
    config: &MysqlSinkConfig,
    table: &MysqlTable,
    mapping: &Mapping<MysqlColumn>,
) -> Result<(), SinkError> {
    let mut needed = vec!["SELECT", "INSERT"];
    if mapping.mode != ConflictMode::Append {
        needed.push("UPDATE");
    }
    let mut missing: Vec<&str> = needed.into_iter().filter(|right| table.lacks.contains(right)).collect();
    if mapping.mode == ConflictMode::Update && config.table.deletes == Deletes::Some {
        // The catalogue tells no right to delete that comes from a role or from the whole database; the server does.
        let probe = session.text(&format!("EXPLAIN DELETE FROM {} WHERE FALSE", table.name.quoted())).await;
        if probe.is_err_and(|fault| fault.class == FaultClass::Denied) {
            missing.push("DELETE");
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(denied(session, config, &table.name, &missing).await) }
}

/// Whoever lacks a right on the table often lacks others: all are named.
async fn denied(session: &mut Session, config: &MysqlSinkConfig, name: &TableName, lacking: &[&str]) -> SinkError {
    let who = session.text_rows("SELECT CURRENT_USER(), DATABASE()").await.ok();
    let [user, database] = [0, 1].map(|at| who.as_ref().and_then(|rows| schema::text(rows.first()?, at)));
    let (user, database) = (user.unwrap_or_default(), database.unwrap_or_default());
    let account = rights::quote_account(&user).unwrap_or(user);
    let table = TableName::new(name.database().or(Some(&database)), name.table());
    let table = table.map_or_else(|_| name.quoted(), |table| table.quoted());
    let mut cures = vec![format!("GRANT {} ON {table} TO {account};", lacking.join(", "))];
    let mut person = Vec::new();
    if config.table.progress == ProgressPlace::Sink {
        match rights::missing(session).await {
            Ok(missing) => {
                cures.extend(rights::cures(&account, &database, &missing.run));
                person = rights::cures(&account, &database, &missing.person);
            }
            Err(error) => return error,
        }
    }
    let cures = cures_on_one_line(&cures, &person);
    let message = format!("the user {account} may not write it; let somebody who may grant it run: {cures}");
    SinkError::Denied { target: config.target_name(), message }
}

/// What is needed on a table that cannot be read, as far as the configuration tells.
fn needed_unseen(config: &MysqlSinkConfig) -> Vec<&'static str> {
    let table = &config.table;
    let keyed = !table.key_fields.is_empty() || table.key_column.is_some();
    let mode = table.mode.unwrap_or(if keyed { ConflictMode::Update } else { ConflictMode::Append });
    rights::on_target(mode, table.deletes)
}

/// What is no reason to refuse a table, but good to know.
fn notes(table: &MysqlTable, number: Option<u64>) -> Vec<String> {
    let mut notes = Vec::new();
    if !table.engine.eq_ignore_ascii_case("InnoDB") {
        notes
            .push(format!("its engine is {}: a row that was sent stays, whatever becomes of the others", table.engine));
    }
    if !table.triggers.is_empty() {
        notes.push(format!(
            "rows pass the triggers {}: a row that one of them refuses becomes a dead letter",
            table.triggers.join(", ")
        ));
    }
    for column in &table.numbered {
        notes.push(format!(
            "column \"{column}\" is AUTO_INCREMENT: the server numbers rows whose event has no such field"
        ));
    }
    if number.is_none() && table.engine.eq_ignore_ascii_case("InnoDB") && table.partitioned == Partitioned::No {
        notes.push(
            "the server does not tell this user the table's number (GRANT PROCESS ON *.* would), so the table is known by \
             the time when it was made, and every ALTER TABLE stops the workflow as if it were another table"
                .to_owned(),
        );
    }
    notes
}

/// Columns whose text cannot have every character that an event may have.
fn narrow_columns(mapping: &Mapping<MysqlColumn>) -> Option<String> {
    let fed = mapping.columns.iter().filter(|column| matches!(column.feed, Feed::Field(_)));
    let narrow: Vec<String> = fed
        .filter_map(|column| Some(format!("{} ({})", column.live.name, column.live.narrow_character_set()?)))
        .collect();
    (!narrow.is_empty()).then(|| {
        format!(
            "not every character fits {}: a row with another one becomes a dead letter; MODIFY the column with CHARACTER SET \
             utf8mb4",
            narrow.join(", ")
        )
    })
}

/// The number that InnoDB gave the table; none if this user may not ask, or it is none of InnoDB's single tables.
async fn table_number(session: &mut Session, table: &MysqlTable) -> Result<Option<u64>, SqlFault> {
    let path = [table.name.database().unwrap_or_default(), table.name.table()].map(file_name);
    let [Some(database), Some(name)] = path else { return Ok(None) };
    if table.partitioned == Partitioned::Yes {
        return Ok(None);
    }
    let view = numbers(session.server().flavour);
    let sql = format!("SELECT TABLE_ID FROM information_schema.{view} WHERE NAME = ?");
    match session.rows(&sql, vec![format!("{database}/{name}").into()]).await {
        Ok(rows) => Ok(rows.first().and_then(|row| schema::text(row, 0)).and_then(|number| number.parse().ok())),
        Err(fault) if fault.class == FaultClass::Denied => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// A name as InnoDB spells it: everything but letters, digits and `_` by its number. Letters beyond ASCII have
/// spellings of their own; such a table is known by the time when it was made.
fn file_name(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => out.push(character),
            _ if character.is_ascii() => out.push_str(&format!("@{:04x}", u32::from(character))),
            _ => return None,
        }
    }
    Some(out)
}

/// The identity of a table: survives a rename and changes of columns that InnoDB makes in place; not a restore into
/// another server, and not a copy under the same name.
async fn identity(session: &mut Session, table: &MysqlTable, number: Option<u64>) -> Result<TargetIdentity, SqlFault> {
    let sql = match session.server().flavour {
        Flavour::MariaDb => "SELECT @@GLOBAL.server_uid",
        Flavour::Mysql => "SELECT @@GLOBAL.server_uuid",
    };
    let server = match session.text_rows(sql).await {
        Ok(rows) => rows.first().and_then(|row| schema::text(row, 0)),
        // Old servers have no such number: two of them are told apart by their tables only.
        Err(fault) if fault.class == FaultClass::Schema => None,
        Err(fault) => return Err(fault),
    };
    let server = server.unwrap_or_else(|| "unnumbered".to_owned());
    let place = table.name.database().unwrap_or_default();
    Ok(TargetIdentity(match number {
        Some(number) => format!("mysql:{server}/{place}/{number}"),
        None => format!("mysql:{server}/{place}/{} of {}", table.name.table(), table.created),
    }))
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
