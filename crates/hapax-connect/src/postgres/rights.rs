//! Which rights on which tables a role needs, checked against the live catalogue and printed as GRANT statements.
//!
//! Reads: the catalogue, which everybody may. Writes: nothing. Invariant: what [`check`] asks for is in [`grants`].

use std::fmt::Write as _;

use hapax_engine::sink::SinkError;
use hapax_model::mode::ConflictMode;
use hapax_sql::postgres::{Session, TableName, quote_identifier};

use super::ask;
use super::error::{During, target_name};
use super::tables::Role;
use crate::table::rights::cures_on_one_line;

/// What `hapax run` needs on each of our tables, and what `reset`, `dlq` and `pause` need besides.
struct Need {
    table: &'static str,
    run: &'static [&'static str],
    person: &'static [&'static str],
}

const TARGET_NEEDS: [Need; 5] = [
    Need { table: "meta", run: &["SELECT"], person: &[] },
    Need { table: "progress", run: &["SELECT", "INSERT", "UPDATE"], person: &["DELETE"] },
    Need { table: "epochs", run: &["SELECT", "INSERT", "DELETE"], person: &["UPDATE"] },
    Need { table: "dead_letters", run: &["SELECT", "INSERT"], person: &["UPDATE", "DELETE"] },
    Need { table: "adopted", run: &["SELECT"], person: &["INSERT", "UPDATE", "DELETE"] },
];

const STATE_NEEDS: [Need; 6] = [
    Need { table: "leases", run: &["SELECT", "INSERT", "UPDATE", "DELETE"], person: &[] },
    Need { table: "witness", run: &["SELECT", "INSERT", "UPDATE"], person: &["DELETE"] },
    Need { table: "notes", run: &["SELECT", "INSERT", "UPDATE"], person: &["DELETE"] },
    Need { table: "intents", run: &["SELECT", "INSERT", "UPDATE"], person: &["DELETE"] },
    Need { table: "pauses", run: &["SELECT"], person: &["INSERT", "UPDATE", "DELETE"] },
    Need { table: "suspects", run: &["SELECT", "INSERT", "UPDATE", "DELETE"], person: &[] },
];

fn needs(role: Role) -> impl Iterator<Item = &'static Need> {
    let state: &[Need] = match role {
        Role::Target => &[],
        Role::State => &STATE_NEEDS,
    };
    TARGET_NEEDS.iter().chain(state)
}

/// A table of the user's that a workflow writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRights {
    /// Which; with its schema, if that is known.
    pub table: TableName,
    /// What is done about a key that is there already.
    pub mode: ConflictMode,
    /// Whether events may remove rows.
    pub deletes: Deletes,
}

/// Whether a workflow's events may remove rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletes {
    /// `deleteWhen` is set.
    Wanted,
    /// It is not.
    Never,
}

/// The statements that give `user` all that `hapax` needs in this database, as `hapax setup` prints them.
///
/// # Errors
/// If `user` is no name that PostgreSQL could have.
pub fn grants(role: Role, user: &str, targets: &[TargetRights]) -> Result<String, hapax_sql::QuoteError> {
    let user = quote_identifier(user)?;
    let mut text = String::from("-- Our own tables.\n");
    line(&mut text, &grant_schema("hapax", &user));
    for need in needs(role) {
        let all: Vec<&str> = need.run.iter().chain(need.person).copied().collect();
        line(&mut text, &grant_table(&all, &format!("hapax.{}", need.table), &user));
    }
    text.push_str(&target_grants(&user, targets)?);
    text.push_str(
        "-- The number of a new dead letter comes from an identity column, which needs no right on its sequence.\n\
         -- A claim ends sessions of this same role that block it (pg_terminate_backend), which needs no right either.\n\
         -- The target is recognised by the server's own number; every role may read it unless that was revoked:\n",
    );
    line(&mut text, &format!("GRANT EXECUTE ON FUNCTION pg_catalog.pg_control_system() TO {user};"));
    Ok(text)
}

/// The statements for the user's tables where none of ours are (`progress: state`).
///
/// # Errors
/// If `user` is no name that PostgreSQL could have.
pub fn grants_without_ours(user: &str, targets: &[TargetRights]) -> Result<String, hapax_sql::QuoteError> {
    target_grants(&quote_identifier(user)?, targets)
}

fn target_grants(user: &str, targets: &[TargetRights]) -> Result<String, hapax_sql::QuoteError> {
    let mut text = String::new();
    if !targets.is_empty() {
        text.push_str("-- Your tables.\n");
    }
    for target in targets {
        if let Some(schema) = target.table.schema() {
            line(&mut text, &grant_schema(&quote_identifier(schema)?, user));
        }
        line(&mut text, &grant_table(&target_rights(target), &target.table.quoted(), user));
    }
    Ok(text)
}

fn target_rights(target: &TargetRights) -> Vec<&'static str> {
    // SELECT is needed where a conflict is looked for, and by `trace` and `reconcile` everywhere.
    let mut rights = vec!["SELECT", "INSERT"];
    match (target.mode, target.deletes) {
        (ConflictMode::Append | ConflictMode::Ignore, _) => {}
        (ConflictMode::Update, Deletes::Wanted) => rights.extend(["UPDATE", "DELETE"]),
        (ConflictMode::Update | ConflictMode::Newer, _) => rights.push("UPDATE"),
    }
    rights
}

fn grant_schema(schema: &str, user: &str) -> String {
    format!("GRANT USAGE ON SCHEMA {schema} TO {user};")
}

fn grant_table(rights: &[&str], table: &str, user: &str) -> String {
    format!("GRANT {} ON TABLE {table} TO {user};", rights.join(", "))
}

fn line(text: &mut String, statement: &str) {
    writeln!(text, "{statement}").expect("writing to a String never fails");
}

/// Refuses a role that may not do to our tables what `hapax run` does, with all GRANTs that are missing: also those that
/// only a person's commands need, since whoever grants once need not be asked again.
///
/// # Errors
/// [`SinkError::Denied`] with what is missing; else what the database said.
pub async fn check(session: &Session, role: Role) -> Result<(), SinkError> {
    refuse(session, missing(session, role).await?)
}

/// The same, for what must be readable before anything else is known.
pub(super) async fn check_meta(session: &Session) -> Result<(), SinkError> {
    refuse(session, missing_of(session, &[("meta", "SELECT")], &[]).await?)
}

/// The same, for what marks dead letters as replayed or discarded.
pub(super) async fn check_letters(session: &Session) -> Result<(), SinkError> {
    refuse(session, missing_of(session, &[("dead_letters", "SELECT"), ("dead_letters", "UPDATE")], &[]).await?)
}

fn refuse(session: &Session, missing: Missing) -> Result<(), SinkError> {
    if missing.run.is_empty() {
        return Ok(());
    }
    let cures = cures_on_one_line(&missing.run, &missing.person);
    let message = format!("the role {} may not use our tables; let their owner run: {cures}", missing.user);
    Err(SinkError::Denied { target: target_name(session), message })
}

/// What a role may not do to our tables, as the statements that cure it, as far as the tables are there.
pub(super) struct Missing {
    /// The role, quoted.
    user: String,
    /// For what cannot be done without.
    pub(super) run: Vec<String>,
    /// For the commands of a person besides.
    pub(super) person: Vec<String>,
}

/// A table of ours, and a right on it.
type TableRight = (&'static str, &'static str);

/// What this session's role lacks of what `hapax run` does to our tables, and of what a person does.
pub(super) async fn missing(session: &Session, role: Role) -> Result<Missing, SinkError> {
    missing_of(session, &needed(role, |need| need.run), &needed(role, |need| need.person)).await
}

fn needed(role: Role, by: fn(&Need) -> &'static [&'static str]) -> Vec<TableRight> {
    needs(role).flat_map(|need| by(need).iter().map(|right| (need.table, *right))).collect()
}

async fn missing_of(session: &Session, run: &[TableRight], person: &[TableRight]) -> Result<Missing, SinkError> {
    let sql = "SELECT current_user::text, \
               (SELECT has_schema_privilege(n.oid, 'USAGE') FROM pg_catalog.pg_namespace n WHERE n.nspname = 'hapax'), \
               ARRAY(SELECT l.nth FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS l (name, privilege, nth) \
               JOIN pg_catalog.pg_class c ON c.relname = l.name \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'hapax' \
               WHERE NOT has_table_privilege(c.oid, l.privilege) ORDER BY l.nth)";
    let (tables, rights): (Vec<&str>, Vec<&str>) = run.iter().chain(person).copied().unzip();
    let row = ask::one(session, During::Look, sql, &[&tables, &rights]).await?;
    let user: String = ask::get(session, &row, 0)?;
    let usage: Option<bool> = ask::get(session, &row, 1)?;
    let missing: Vec<i64> = ask::get(session, &row, 2)?;
    let places = missing.iter().filter_map(|nth| usize::try_from(nth - 1).ok());
    let (of_run, of_person): (Vec<usize>, Vec<usize>) = places.partition(|place| *place < run.len());
    // A name that cannot be quoted cannot be the name of a role.
    let user = quote_identifier(&user).unwrap_or(user);
    let mut cures: Vec<String> = Vec::new();
    if usage == Some(false) {
        cures.push(grant_schema("hapax", &user));
    }
    cures.extend(grant_tables(of_run.iter().filter_map(|place| run.get(*place)), &user));
    let person = grant_tables(of_person.iter().filter_map(|place| person.get(place - run.len())), &user);
    Ok(Missing { user, run: cures, person })
}

/// A statement for each table; the rights on it stand beside each other.
fn grant_tables<'a>(lacking: impl Iterator<Item = &'a TableRight>, user: &str) -> Vec<String> {
    let lacking: Vec<TableRight> = lacking.copied().collect();
    let grant = |group: &[TableRight]| {
        let rights: Vec<&str> = group.iter().map(|(_, right)| *right).collect();
        grant_table(&rights, &format!("hapax.{}", group[0].0), user)
    };
    lacking.chunk_by(|(one, _), (other, _)| one == other).map(grant).collect()
}

#[cfg(test)]
#[path = "rights_tests.rs"]
mod tests;
