//! Which rights on which tables a user needs, tried on the live server and printed as GRANT statements.
//!
//! Reads: what the server says about statements that are prepared and never run. Rights may come from roles, patterns and
//! the whole server, so asking for the deed is surer than reading lists. Invariant: what [`check`] asks for is in
//! [`grants`].

use std::fmt::Write as _;

use hapax_engine::sink::SinkError;
use hapax_model::mode::ConflictMode;
use hapax_sql::QuoteError;
use hapax_sql::mysql::{FaultClass, Session, TableName, quote_identifier};

use super::ask::{self, values};
use super::error::{During, target_name};
use super::tables::NO_SUCH_TABLE;
use crate::table::config::Deletes;
use crate::table::rights::cures_on_one_line;

/// What `hapax run` needs on each of our tables, and what `reset` and `dlq` need besides.
struct Need {
    table: &'static str,
    run: &'static [&'static str],
    person: &'static [&'static str],
}

const NEEDS: [Need; 5] = [
    Need { table: "hapax_meta", run: &["SELECT"], person: &[] },
    Need { table: "hapax_progress", run: &["SELECT", "INSERT", "UPDATE"], person: &["DELETE"] },
    Need { table: "hapax_epochs", run: &["SELECT", "INSERT", "DELETE"], person: &["UPDATE"] },
    Need { table: "hapax_dead_letters", run: &["SELECT", "INSERT"], person: &["UPDATE", "DELETE"] },
    Need { table: "hapax_adopted", run: &["SELECT"], person: &["INSERT", "UPDATE", "DELETE"] },
];

/// A table of the user's that a workflow writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRights {
    /// Which; without a database, the one of the address.
    pub table: TableName,
    /// What is done about a key that is there already.
    pub mode: ConflictMode,
    /// Whether events may remove rows.
    pub deletes: Deletes,
}

/// The statements that give `account` all that `hapax` needs, as `hapax setup` prints them. `account` is a user name,
/// or `name@host` as `CURRENT_USER()` says it.
///
/// # Errors
/// If `database` or `account` is no name that MySQL could have.
pub fn grants(database: &str, account: &str, targets: &[TargetRights]) -> Result<String, QuoteError> {
    let quoted = quote_account(account)?;
    let mut text = String::from("-- Our own tables.\n");
    for need in &NEEDS {
        let all: Vec<&str> = need.run.iter().chain(need.person).copied().collect();
        let table = TableName::new(Some(database), need.table)?;
        line(&mut text, &grant(&all, &table, &quoted));
    }
    text.push_str(&target_grants(database, &quoted, targets)?);
    text.push_str("-- A claim ends sessions of this same user that block it (KILL), which needs no right.\n");
    Ok(text)
}

/// The statements for the user's tables where none of ours are (`progress: state`).
///
/// # Errors
/// If `database` or `account` is no name that MySQL could have.
pub fn grants_without_ours(database: &str, account: &str, targets: &[TargetRights]) -> Result<String, QuoteError> {
    target_grants(database, &quote_account(account)?, targets)
}

fn target_grants(database: &str, account: &str, targets: &[TargetRights]) -> Result<String, QuoteError> {
    let mut text = String::new();
    if !targets.is_empty() {
        text.push_str("-- Your tables.\n");
    }
    for target in targets {
        let table = TableName::new(target.table.database().or(Some(database)), target.table.table())?;
        line(&mut text, &grant(&on_target(target.mode, target.deletes), &table, account));
    }
    Ok(text)
}

/// What is needed on a table that rows go into.
pub(super) fn on_target(mode: ConflictMode, deletes: Deletes) -> Vec<&'static str> {
    // SELECT is needed where a row is compared, and by `trace` and `reconcile` everywhere; UPDATE also by `ignore`,
    // which sets a key to what it is.
    let mut rights = vec!["SELECT", "INSERT"];
    match (mode, deletes) {
        (ConflictMode::Append, _) => {}
        (ConflictMode::Update, Deletes::Some) => rights.extend(["UPDATE", "DELETE"]),
        (ConflictMode::Ignore | ConflictMode::Update | ConflictMode::Newer, _) => rights.push("UPDATE"),
    }
    rights
}

fn grant(rights: &[&str], table: &TableName, account: &str) -> String {
    format!("GRANT {} ON {} TO {account};", rights.join(", "), table.quoted())
}

fn line(text: &mut String, statement: &str) {
    writeln!(text, "{statement}").expect("writing to a String never fails");
}

/// `name` or `name@host` as GRANT takes it. The host is what follows the last `@`: names may hold one, hosts may not.
pub(super) fn quote_account(account: &str) -> Result<String, QuoteError> {
    let (name, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    // An empty host is how `CURRENT_USER()` shows a role.
    let host = if host.is_empty() { "%" } else { host };
    Ok(format!("{}@{}", quote_identifier(name)?, quote_identifier(host)?))
}

/// Refuses a user who may not do to our tables what `hapax run` does, with all GRANTs that are missing: also those that
/// only a person's commands need, since whoever grants once need not be asked again.
///
/// # Errors
/// [`SinkError::Denied`] with what is missing; else what the database said.
pub async fn check(session: &mut Session) -> Result<(), SinkError> {
    let missing = missing(session).await?;
    if missing.run.is_empty() { Ok(()) } else { Err(denied(session, &missing).await) }
}

/// The same, for what marks dead letters as replayed or discarded.
pub(super) async fn check_letters(session: &mut Session) -> Result<(), SinkError> {
    let needed = ["SELECT", "UPDATE"].map(|right| ("hapax_dead_letters", right));
    let run = missing_of(session, &needed).await?;
    if run.is_empty() { Ok(()) } else { Err(denied(session, &Missing { run, person: Vec::new() }).await) }
}

/// A table of ours, and a right on it that a user lacks.
pub(super) type Lack = (&'static str, &'static str);

/// What a user may not do to our tables.
pub(super) struct Missing {
    /// What cannot be done without.
    pub(super) run: Vec<Lack>,
    /// What the commands of a person need besides.
    pub(super) person: Vec<Lack>,
}

/// What this session's user lacks of what `hapax run` does to our tables, and of what a person does. A table that is not
/// there shows only to those who have rights on it.
pub(super) async fn missing(session: &mut Session) -> Result<Missing, SinkError> {
    let run = needed(|need| need.run);
    let person = needed(|need| need.person);
    Ok(Missing { run: missing_of(session, &run).await?, person: missing_of(session, &person).await? })
}

fn needed(by: fn(&Need) -> &'static [&'static str]) -> Vec<Lack> {
    NEEDS.iter().flat_map(|need| by(need).iter().map(|right| (need.table, *right))).collect()
}

async fn missing_of(session: &mut Session, needed: &[Lack]) -> Result<Vec<Lack>, SinkError> {
    let mut missing = Vec::new();
    for &(table, right) in needed {
        match session.prepare(&probe(table, right)).await {
            Ok(_) => {}
            Err(fault) if fault.number == Some(NO_SUCH_TABLE) => {}
            Err(fault) if fault.class == FaultClass::Denied => missing.push((table, right)),
            Err(fault) => return Err(ask::own(session, During::Look, &fault)),
        }
    }
    Ok(missing)
}

/// A statement that needs this right and no other; it is prepared, never run, and would find no row.
fn probe(table: &str, right: &str) -> String {
    let column = if table == "hapax_meta" { "name" } else { "workflow" };
    match right {
        "INSERT" => format!("INSERT INTO {table} ({column}) VALUES (?)"),
        "UPDATE" => format!("UPDATE {table} SET {column} = ? WHERE 1 = 0"),
        "DELETE" => format!("DELETE FROM {table} WHERE 1 = 0"),
        _ => format!("SELECT 1 FROM {table} LIMIT 0"),
    }
}

/// What somebody who may not do this to our tables is told.
pub(super) async fn denied(session: &mut Session, missing: &Missing) -> SinkError {
    let row = ask::one(session, During::Look, "SELECT CURRENT_USER(), DATABASE()", values![]).await;
    let who = row.and_then(|row| Ok((ask::get(session, &row, 0)?, ask::get(session, &row, 1)?)));
    let (account, database): (String, String) = match who {
        Ok(who) => who,
        Err(error) => return error,
    };
    SinkError::Denied { target: target_name(session), message: missing_text(&account, &database, missing) }
}

fn missing_text(account: &str, database: &str, missing: &Missing) -> String {
    // What cannot be quoted cannot be the name of an account or a database.
    let account = quote_account(account).unwrap_or_else(|_| account.to_owned());
    let [run, person] = [&missing.run, &missing.person].map(|lacking| cures(&account, database, lacking));
    let cures = cures_on_one_line(&run, &person);
    format!("the user {account} may not use our tables; let somebody who may run: {cures}")
}

/// The statements that give `account`, which is quoted, what it lacks.
pub(super) fn cures(account: &str, database: &str, lacking: &[Lack]) -> Vec<String> {
    let mut cures: Vec<String> = Vec::new();
    for group in lacking.chunk_by(|(one, _), (other, _)| one == other) {
        let rights: Vec<&str> = group.iter().map(|(_, right)| *right).collect();
        if let Ok(table) = TableName::new(Some(database), group[0].0) {
            cures.push(grant(&rights, &table, account));
        }
    }
    cures
}

#[cfg(test)]
#[path = "rights_tests.rs"]
mod tests;
