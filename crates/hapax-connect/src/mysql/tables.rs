//! Our own tables, named `hapax_…`, in the database that the address names: made and migrated by `hapax setup`, checked
//! by everybody else.
//!
//! Reads `information_schema` and `hapax_meta`; writes tables, under a lock that two setups share. Invariant: `meta`
//! says a version only if all tables of that version are there; lost ones are refused, because an empty progress table
//! beside full user tables would deliver everything a second time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hapax_engine::sink::SinkError;
use hapax_sql::mysql::{FaultClass, Flavour, Server, Session, Value};

use super::ask::{self, values};
use super::error::{During, FOREIGN_TABLES, target_name};
use super::layout::{LAYOUT, MARK, Steps, TABLES, for_server};
use super::rights::{self, Missing};

/// The server is older than the collation that our keys need.
pub const TOO_OLD: &str = "HX4453";

/// Where `meta` keeps the version of the tables, and the database's own id.
const VERSION: &str = "version";
const DATABASE: &str = "database";

/// How long a setup waits for another one, and a step for workers that are in the middle of an epoch, in seconds.
const PATIENCE: u64 = 50;
/// What a statement of a step is told whose work is done already: a column, an index, or nothing left to drop.
const DONE: [u16; 3] = [1060, 1061, 1091];

/// Since this version MySQL has a collation that compares byte by byte, spaces at the end included.
const EXACT_SINCE: (u16, u16, u16) = (8, 0, 17);
/// A statement names a table that is not there.
pub(super) const NO_SUCH_TABLE: u16 = 1146;

/// The name of the lock; names have 64 characters at most, and are shared by all databases of the server.
macro_rules! lock_name {
    () => {
        "CONCAT('hapax setup ', LEFT(SHA2(DATABASE(), 256), 40))"
    };
}

/// What [`ensure`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The database's own random id, made once.
    pub database: String,
    /// The version that was there before; 0 for none.
    pub before: usize,
    /// The version that is there now.
    pub after: usize,
}

/// The statements that make the tables in a database that has none, for people who want to read them first or to run
/// them themselves. They may be run again if they were interrupted.
#[must_use]
pub fn ddl(flavour: Flavour) -> String {
    let mut text = String::new();
    for statement in pending_statements(LAYOUT, 0, flavour) {
        writeln!(text, "{statement};").expect("writing to a String never fails");
    }
    text
}

/// Makes the tables where they are not there yet, and brings older ones to this program's version.
///
/// Safe to call from any number of processes at once, and to be killed in: the next call goes on where this one ended.
///
/// # Errors
/// If the tables are newer than this program, or some of them are missing while the others say they were made, or a
/// stranger's have their names, or the rights do not suffice.
pub async fn ensure(session: &mut Session) -> Result<Made, SinkError> {
    migrate(session, LAYOUT).await
}

/// [`ensure`] for any layout: what the tests of the machinery pass in is longer than what is released.
async fn migrate(session: &mut Session, layout: Steps) -> Result<Made, SinkError> {
    refuse_old(session.server(), target_name(session))?;
    lock_setup(session).await?;
    let made = take_steps(session, layout).await;
    unlock_setup(session).await;
    made
}

async fn take_steps(session: &mut Session, layout: Steps) -> Result<Made, SinkError> {
    let before = present(session).await?;
    before.refuse_damaged(session, layout)?;
    for statement in pending_statements(layout, before.version, session.server().flavour) {
        match session.text(&statement).await {
            Ok(_) => {}
            Err(fault) if fault.number.is_some_and(|number| DONE.contains(&number)) => {}
            Err(fault) => return Err(ask::own(session, During::Look, &fault)),
        }
    }
    let after = present(session).await?;
    after.refuse_damaged(session, layout)?;
    let gone = "the tables vanished while they were being made";
    let database = after.database.ok_or_else(|| damaged(session, gone))?;
    Ok(Made { database, before: before.version, after: after.version })
}

/// Two setups of one database wait for each other; a step over a table in use waits for the epoch in work.
///
/// The lock belongs to the session: if it is closed while it holds the lock, the server frees it.
async fn lock_setup(session: &mut Session) -> Result<(), SinkError> {
    let sql = concat!("SELECT CAST(GET_LOCK(", lock_name!(), ", ?) AS SIGNED)");
    let row = ask::one(session, During::Look, sql, values![PATIENCE]).await?;
    let held: Option<i64> = ask::get(session, &row, 0)?;
    if held != Some(1) {
        let holder = "another `hapax setup` of this database".to_owned();
        return Err(SinkError::Locked { target: target_name(session), holder });
    }
    let limit = format!("SET @hapax_lock_wait = @@SESSION.lock_wait_timeout, SESSION lock_wait_timeout = {PATIENCE}");
    ask::run(session, During::Look, &limit).await
}

/// Whatever came of the steps: the next setup may begin, and the session has its own limits again.
async fn unlock_setup(session: &mut Session) {
    let sql =
        concat!("SET SESSION lock_wait_timeout = @hapax_lock_wait, @hapax_lock = RELEASE_LOCK(", lock_name!(), ")");
    if let Err(error) = ask::run(session, During::Look, sql).await {
        tracing::debug!(%error, "no answer to RELEASE_LOCK");
        session.spoil();
    }
    session.forget_statements();
}

/// Checks that the tables are here, whole, in this program's version, and that this user may use them. Returns the
/// database's own random id. Makes nothing: that is `hapax setup`'s.
///
/// # Errors
/// [`SinkError::OwnTables`] with what is wrong and the cure; [`SinkError::Denied`] with the GRANT that is missing.
pub async fn check(session: &mut Session) -> Result<String, SinkError> {
    let present = match present(session).await {
        Ok(present) => present,
        Err(denied @ SinkError::Denied { .. }) => {
            // All that is missing is named at once.
            rights::check(session).await?;
            return Err(denied);
        }
        Err(error) => return Err(error),
    };
    present.refuse_version(session, LAYOUT)?;
    if let Some(message) = behind(present.version, LAYOUT.len()) {
        return Err(damaged(session, &message));
    }
    // Tables that this user has no right on are not shown to it: they would look as if they were gone.
    rights::check(session).await?;
    present.refuse_damaged(session, LAYOUT)?;
    present
        .database
        .ok_or_else(|| damaged(session, "hapax_meta no longer names the database; restore it from a backup"))
}

/// The database's own random id, if our tables are here in this program's version. Makes nothing.
///
/// # Errors
/// If the tables are newer than this program or damaged, or the database cannot be read.
pub async fn database_id(session: &mut Session) -> Result<Option<String>, SinkError> {
    let present = present(session).await?;
    present.refuse_damaged(session, LAYOUT)?;
    Ok(present.database)
}

/// Whether one of our tables is here.
///
/// # Errors
/// If the database cannot be read: a table that this user may not read is not taken for one that is not there.
pub async fn has_table(session: &mut Session, name: &'static str) -> Result<bool, SinkError> {
    let sql = format!("SELECT 1 FROM {name} LIMIT 0");
    match session.rows(&sql, values![]).await {
        Ok(_) => Ok(true),
        Err(fault) if fault.number == Some(NO_SUCH_TABLE) => Ok(false),
        Err(fault) if fault.class == FaultClass::Denied => {
            let missing = Missing { run: vec![(name, "SELECT")], person: Vec::new() };
            Err(rights::denied(session, &missing).await)
        }
        Err(fault) => Err(ask::own(session, During::Look, &fault)),
    }
}

/// Drops all our tables: the deliveries into this database are forgotten.
///
/// # Errors
/// If this user may not drop them.
pub async fn drop_all(session: &mut Session) -> Result<(), SinkError> {
    lock_setup(session).await?;
    let dropped = drop_locked(session).await;
    unlock_setup(session).await;
    dropped
}

/// A drop that is ended in the middle leaves tables that everybody refuses, because `meta` goes last.
async fn drop_locked(session: &mut Session) -> Result<(), SinkError> {
    for name in TABLES.iter().rev() {
        ask::run(session, During::Look, &format!("DROP TABLE IF EXISTS {name}")).await?;
    }
    Ok(())
}

/// What is in the database, as far as this user may see it.
#[derive(Debug, Clone, Default)]
struct Present {
    /// Engine and comment of each table that has one of our names.
    tables: BTreeMap<String, (String, String)>,
    version: usize,
    /// A version that is no number.
    unreadable: Option<String>,
    database: Option<String>,
}

async fn present(session: &mut Session) -> Result<Present, SinkError> {
    let places = vec!["?"; TABLES.len()].join(", ");
    let sql = format!(
        "SELECT TABLE_NAME, COALESCE(ENGINE, ''), TABLE_COMMENT FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ({places})"
    );
    let names = TABLES.iter().map(|name| Value::from(*name)).collect();
    let mut found = Present::default();
    for row in ask::rows(session, During::Look, &sql, names).await? {
        let name: String = ask::get(session, &row, 0)?;
        found.tables.insert(name, (ask::get(session, &row, 1)?, ask::get(session, &row, 2)?));
    }
    if has_table(session, "hapax_meta").await? {
        found.refuse_foreign(session)?;
        found.read_meta(session).await?;
    }
    Ok(found)
}

impl Present {
    async fn read_meta(&mut self, session: &mut Session) -> Result<(), SinkError> {
        let rows = ask::rows(session, During::Look, "SELECT name, value FROM hapax_meta", values![]).await?;
        let mut kept: BTreeMap<String, String> = BTreeMap::new();
        for row in &rows {
            kept.insert(ask::get(session, row, 0)?, ask::get(session, row, 1)?);
        }
        if let Some(text) = kept.get(VERSION) {
            match text.parse() {
                Ok(version) => self.version = version,
                Err(_) => self.unreadable = Some(text.clone()),
            }
        }
        self.database = kept.remove(DATABASE);
        Ok(())
    }

    /// A table of our name that somebody else made.
    fn refuse_foreign(&self, session: &Session) -> Result<(), SinkError> {
        let foreign = self.tables.iter().find(|(_, (_, comment))| !comment.starts_with(MARK));
        let Some((name, _)) = foreign else { return Ok(()) };
        let message = format!(
            "the table {name} is here and Hapax did not make it: rename or drop it, then run `hapax setup` again; if it \
             is Hapax's and only lost its comment, run ALTER TABLE {name} COMMENT '{MARK}restored'"
        );
        Err(SinkError::Unfit { code: FOREIGN_TABLES, target: target_name(session), message })
    }

    /// Newer than this program, or of no version at all.
    fn refuse_version(&self, session: &Session, layout: Steps) -> Result<(), SinkError> {
        if let Some(text) = &self.unreadable {
            let message = format!("the version of our tables is \"{text}\", which is no number; restore hapax_meta");
            return Err(damaged(session, &message));
        }
        if self.version > layout.len() {
            return Err(damaged(session, &newer(self.version, layout.len())));
        }
        Ok(())
    }

    /// A stranger's, of a version that is not ours, incomplete, or losable.
    fn refuse_damaged(&self, session: &Session, layout: Steps) -> Result<(), SinkError> {
        self.refuse_foreign(session)?;
        self.refuse_version(session, layout)?;
        if self.version > 0
            && let Some(name) = TABLES.iter().find(|name| !self.tables.contains_key(**name))
        {
            let message = format!(
                "the table {name} is gone while hapax_meta is here; restore it from a backup, or forget all \
                 deliveries into this database with hapax setup --drop"
            );
            return Err(damaged(session, &message));
        }
        match self.tables.iter().find(|(_, (engine, _))| !engine.eq_ignore_ascii_case("InnoDB")) {
            None => Ok(()),
            Some((name, (engine, _))) => {
                let message = format!(
                    "the table {name} is of the engine {engine}, which knows no transactions: progress would not be \
                     written together with the rows; run ALTER TABLE {name} ENGINE = InnoDB"
                );
                Err(damaged(session, &message))
            }
        }
    }
}

fn newer(found: usize, known: usize) -> String {
    format!(
        "our tables are of version {found}, and this program knows up to version {known}; use the newer program, or \
         restore a backup from before its setup"
    )
}

/// Why `hapax setup` must run first, if it must.
fn behind(found: usize, needed: usize) -> Option<String> {
    match found {
        0 => Some(
            "our tables are not in this database, or a setup was ended before they were whole; run `hapax setup`, or let \
             somebody who may create tables run what `hapax setup --sql` prints"
                .to_owned(),
        ),
        older if older < needed => Some(format!(
            "our tables are of version {older} and this program needs version {needed}; run `hapax setup`, which \
             migrates them"
        )),
        _ => None,
    }
}

/// Why this server cannot hold our tables, if it cannot.
fn refuse_old(server: Server, target: String) -> Result<(), SinkError> {
    if server.flavour == Flavour::MariaDb || server.version >= EXACT_SINCE {
        return Ok(());
    }
    let message = format!(
        "the server is {server}, and our tables need MySQL 8.0.17 or later: older ones compare \"a\" and \"a \" as one \
         key; upgrade it, or keep progress elsewhere (progress: state)"
    );
    Err(SinkError::Unfit { code: TOO_OLD, target, message })
}

/// Pure: what leads from version `found` to the newest one of `layout`; nothing if it is that. The version follows each
/// step, and the first version follows the id: whoever reads a version finds all that belongs to it.
fn pending_statements(layout: Steps, found: usize, flavour: Flavour) -> Vec<String> {
    let mut statements = Vec::new();
    for (version, step) in (1..).zip(layout).skip(found) {
        statements.extend(step.iter().map(|statement| for_server(statement, flavour)));
        if version == 1 {
            statements.push(format!(
                "INSERT INTO hapax_meta (name, value) VALUES ('{DATABASE}', REPLACE(UUID(), '-', '')) \
                 ON DUPLICATE KEY UPDATE value = value"
            ));
        }
        statements.push(format!(
            "INSERT INTO hapax_meta (name, value) VALUES ('{VERSION}', '{version}') \
             ON DUPLICATE KEY UPDATE value = '{version}'"
        ));
    }
    statements
}

/// Our tables are not as we left them.
pub(crate) fn damaged(session: &Session, message: &str) -> SinkError {
    SinkError::OwnTables { target: target_name(session), message: message.to_owned() }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
