//! Our own tables in the schema `hapax`: made and migrated by `hapax setup`, checked by everybody else.
//!
//! Reads the catalogue and `hapax.meta`; writes tables, in one transaction, under a lock that two setups share.
//! Invariant: `meta` says a version only if all tables of that version are there; lost ones are refused, because an
//! empty progress table beside full user tables would deliver everything a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use hapax_engine::sink::SinkError;
use hapax_sql::postgres::Session;

use super::ask;
use super::error::{During, target_name};
use super::layout::{LAYOUT, Layout, STATE_TABLES, Steps, TARGET_TABLES};
use super::rights;

/// What a database is used for. One database may be used for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Progress, epoch log and dead letters, beside the user's data or in the state store.
    Target,
    /// All of that, and leases, witnesses, notes, intents and pauses.
    State,
}

/// The encoding of the database cannot hold every text.
pub const ENCODING: &str = "HX4300";

/// Where `meta` keeps the version of the tables of every role, of those of a state store, and the database's own id.
const VERSION: &str = "version";
const STATE_VERSION: &str = "state_version";
const DATABASE: &str = "database";

/// Two setups of one database wait for each other at this advisory lock; the number is "hapax" in ASCII.
const SETUP_LOCK: i64 = 0x68_61_70_61_78;

/// Which versions of our tables a database has; 0 where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Versions {
    /// Of the tables of every role.
    pub target: usize,
    /// Of the tables that only a state store has.
    pub state: usize,
}

/// What [`ensure`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The database's own random id, made once.
    pub database: String,
    /// What was there before.
    pub before: Versions,
    /// What is there now.
    pub after: Versions,
}

/// The statements that make the tables of `role` in a database that has none, for people who want to read them first
/// or to run them themselves.
#[must_use]
pub fn ddl(role: Role) -> String {
    let statements = pending_statements(LAYOUT, role, &Present::default());
    format!("BEGIN;\n{statements}COMMIT;\n")
}

/// Makes the tables of `role` where they are not there yet, and brings older ones to this program's version.
///
/// Safe to call from any number of processes at once, and to be killed in: it is one transaction.
///
/// # Errors
/// If the tables are newer than this program, or some of them are missing while the others say they were made, or the
/// rights do not suffice.
pub async fn ensure(session: &Session, role: Role) -> Result<Made, SinkError> {
    migrate(session, role, LAYOUT).await
}

/// [`ensure`] for any layout: what the tests of the machinery pass in is shorter than what is released.
async fn migrate(session: &Session, role: Role, layout: Layout) -> Result<Made, SinkError> {
    refuse_encoding(session).await?;
    ask::begin_perhaps_empty(session).await?;
    let made = take_steps(session, role, layout).await;
    let made = ask::end(session, During::Look, made).await;
    // A statement prepared for a table that has changed would fail at its next use.
    session.forget_statements();
    made
}

async fn take_steps(session: &Session, role: Role, layout: Layout) -> Result<Made, SinkError> {
    lock_setup(session).await?;
    let before = present(session).await?;
    before.refuse_damaged(session, layout)?;
    let statements = pending_statements(layout, role, &before);
    if !statements.is_empty() {
        ask::batch(session, During::Look, &statements).await?;
    }
    let after = present(session).await?;
    let gone = "the tables vanished while they were being made";
    let database = after.database.ok_or_else(|| damaged(session, gone))?;
    Ok(Made { database, before: before.versions, after: after.versions })
}

/// Waits for another setup, and then for workers that are in the middle of an epoch; a step over a large table may take
/// its time.
async fn lock_setup(session: &Session) -> Result<(), SinkError> {
    let limits = "SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = 0";
    ask::batch(session, During::Look, limits).await?;
    ask::execute(session, During::Look, "SELECT pg_advisory_xact_lock($1)", &[&SETUP_LOCK]).await.map(|_| ())
}

/// Checks that the tables of `role` are here, whole, in this program's version, and that this role may use them.
/// Returns the database's own random id. Makes nothing: that is `hapax setup`'s.
///
/// # Errors
/// [`SinkError::OwnTables`] with what is wrong and the cure; [`SinkError::Denied`] with the GRANT that is missing.
pub async fn check(session: &Session, role: Role) -> Result<String, SinkError> {
    // First, so that all that is missing is named at once; of tables that are not there nothing is.
    rights::check(session, role).await?;
    let present = present(session).await?;
    present.refuse_damaged(session, LAYOUT)?;
    if let Some(message) = outdated(&present, role) {
        return Err(damaged(session, &message));
    }
    present
        .database
        .ok_or_else(|| damaged(session, "hapax.meta no longer names the database; restore it from a backup"))
}

/// The database's own random id, if our tables are here in this program's version. Makes nothing.
///
/// # Errors
/// If the tables are newer than this program or damaged, or the database cannot be read.
pub async fn database_id(session: &Session) -> Result<Option<String>, SinkError> {
    let present = present(session).await?;
    present.refuse_damaged(session, LAYOUT)?;
    Ok(present.database)
}

/// Whether one of our tables is here; `name` without the schema.
///
/// # Errors
/// If the database cannot be read.
pub async fn has_table(session: &Session, name: &str) -> Result<bool, SinkError> {
    let sql = "SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = 'hapax' AND c.relname = $1 AND c.relkind = 'r'";
    Ok(ask::optional(session, During::Look, sql, &[&name]).await?.is_some())
}

/// Drops all our tables, and the schema if nothing else is in it: the deliveries into this database are forgotten.
///
/// # Errors
/// If this role does not own them.
pub async fn drop_all(session: &Session) -> Result<(), SinkError> {
    let tables: Vec<String> = TARGET_TABLES.iter().chain(&STATE_TABLES).map(|name| format!("hapax.{name}")).collect();
    let schema = "DO $$ BEGIN DROP SCHEMA IF EXISTS hapax; EXCEPTION WHEN dependent_objects_still_exist OR \
                  insufficient_privilege THEN NULL; END $$";
    ask::begin_perhaps_empty(session).await?;
    let dropped = drop_locked(session, &format!("DROP TABLE IF EXISTS {}; {schema}", tables.join(", "))).await;
    let dropped = ask::end(session, During::Look, dropped).await;
    session.forget_statements();
    dropped
}

async fn drop_locked(session: &Session, statements: &str) -> Result<(), SinkError> {
    lock_setup(session).await?;
    ask::batch(session, During::Look, statements).await
}

/// What is in the schema `hapax`.
#[derive(Debug, Clone, Default)]
struct Present {
    schema: Schema,
    tables: BTreeSet<String>,
    /// Tables of ours that a crash of the server would empty.
    unlogged: BTreeSet<String>,
    versions: Versions,
    /// A version that is no number.
    unreadable: Option<String>,
    database: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Schema {
    #[default]
    Missing,
    There,
}

async fn present(session: &Session) -> Result<Present, SinkError> {
    let sql = "SELECT c.relname::text, c.relpersistence = 'u' FROM pg_catalog.pg_namespace n \
               LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind = 'r' \
               WHERE n.nspname = 'hapax'";
    let mut found = Present::default();
    for row in ask::rows(session, During::Look, sql, &[]).await? {
        found.schema = Schema::There;
        let name: Option<String> = ask::get(session, &row, 0)?;
        let unlogged: Option<bool> = ask::get(session, &row, 1)?;
        let Some(name) = name else { continue };
        if unlogged == Some(true) {
            found.unlogged.insert(name.clone());
        }
        found.tables.insert(name);
    }
    if found.tables.contains("meta") {
        rights::check_meta(session).await?;
        found.read_meta(session).await?;
    }
    Ok(found)
}

impl Present {
    async fn read_meta(&mut self, session: &Session) -> Result<(), SinkError> {
        let rows = ask::rows(session, During::Look, "SELECT name, value FROM hapax.meta", &[]).await?;
        let mut values: BTreeMap<String, String> = BTreeMap::new();
        for row in &rows {
            values.insert(ask::get(session, row, 0)?, ask::get(session, row, 1)?);
        }
        let mut version = |name: &str| match values.get(name) {
            None => 0,
            Some(text) => text.parse().unwrap_or_else(|_| {
                self.unreadable = Some(text.clone());
                0
            }),
        };
        self.versions = Versions { target: version(VERSION), state: version(STATE_VERSION) };
        self.database = values.remove(DATABASE);
        Ok(())
    }

    /// Newer than this program, of no version at all, incomplete, or losable.
    fn refuse_damaged(&self, session: &Session, layout: Layout) -> Result<(), SinkError> {
        if let Some(text) = &self.unreadable {
            let message = format!("the version of our tables is \"{text}\", which is no number; restore hapax.meta");
            return Err(damaged(session, &message));
        }
        let sets = [(self.versions.target, layout.target), (self.versions.state, layout.state)];
        for (found, steps) in sets {
            if found > steps.len() {
                return Err(damaged(session, &newer(found, steps.len())));
            }
        }
        let mut expected: Vec<&str> = Vec::new();
        if self.versions.target > 0 {
            expected.extend(TARGET_TABLES);
        }
        if self.versions.state > 0 {
            expected.extend(STATE_TABLES);
        }
        if let Some(name) = expected.iter().find(|name| !self.tables.contains(**name)) {
            let message = format!(
                "the table hapax.{name} is gone while hapax.meta is here; restore it from a backup, \
                 or forget all deliveries into this database with hapax setup --drop"
            );
            return Err(damaged(session, &message));
        }
        match expected.iter().find(|name| self.unlogged.contains(**name)) {
            None => Ok(()),
            Some(name) => {
                let message = format!(
                    "the table hapax.{name} is UNLOGGED: a crash of the server would empty it and everything would \
                     be delivered again; run ALTER TABLE hapax.{name} SET LOGGED"
                );
                Err(damaged(session, &message))
            }
        }
    }
}

fn newer(found: usize, known: usize) -> String {
    format!(
        "our tables in the schema hapax are of version {found}, and this program knows up to version {known}; \
         use the newer program, or restore a backup from before its setup"
    )
}

/// Why `hapax setup` must run first, if it must.
fn outdated(present: &Present, role: Role) -> Option<String> {
    let target = behind("our tables", present.versions.target, LAYOUT.target.len());
    match role {
        Role::Target => target,
        Role::State => {
            target.or_else(|| behind("the tables of a state store", present.versions.state, LAYOUT.state.len()))
        }
    }
}

fn behind(what: &str, found: usize, needed: usize) -> Option<String> {
    match found {
        0 => Some(format!(
            "{what} are not in this database; run `hapax setup`, or let somebody who may create a schema run what \
             `hapax setup --sql` prints"
        )),
        older if older < needed => Some(format!(
            "{what} are of version {older} and this program needs version {needed}; run `hapax setup`, which migrates \
             them"
        )),
        _ => None,
    }
}

/// Pure: what leads from what is present to the newest version of `layout`; empty if nothing does.
fn pending_statements(layout: Layout, role: Role, present: &Present) -> String {
    let mut text = String::new();
    if present.schema == Schema::Missing {
        text.push_str("CREATE SCHEMA hapax;\n");
    }
    add_steps(&mut text, layout.target, present.versions.target, VERSION);
    if present.database.is_none() {
        let id = "replace(gen_random_uuid()::text, '-', '')";
        add(&mut text, &format!("INSERT INTO hapax.meta (name, value) VALUES ('{DATABASE}', {id});"));
    }
    if role == Role::State {
        add_steps(&mut text, layout.state, present.versions.state, STATE_VERSION);
    }
    text
}

fn add_steps(text: &mut String, steps: Steps, found: usize, name: &'static str) {
    for step in steps.iter().skip(found) {
        add(text, step);
    }
    if found < steps.len() {
        let version = steps.len();
        add(
            text,
            &format!(
                "INSERT INTO hapax.meta (name, value) VALUES ('{name}', '{version}') \
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value;"
            ),
        );
    }
}

fn add(text: &mut String, statement: &str) {
    writeln!(text, "{}", statement.trim_end()).expect("writing to a String never fails");
}

/// A letter's message may hold any character; a database that cannot store it would refuse the whole epoch.
async fn refuse_encoding(session: &Session) -> Result<(), SinkError> {
    let sql = "SELECT pg_catalog.current_setting('server_encoding')";
    let row = ask::one(session, During::Look, sql, &[]).await?;
    let encoding: String = ask::get(session, &row, 0)?;
    if encoding == "UTF8" {
        return Ok(());
    }
    let message = format!(
        "the database is encoded in {encoding} and cannot hold every text; make one with \
         CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
    );
    Err(SinkError::Unfit { code: ENCODING, target: target_name(session), message })
}

/// Our tables are not as we left them.
pub(crate) fn damaged(session: &Session, message: &str) -> SinkError {
    SinkError::OwnTables { target: target_name(session), message: message.to_owned() }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
