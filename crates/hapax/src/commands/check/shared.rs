//! A word on tables that several sinks of one configuration write to: where the order between them decides what a row
//! holds, and where each row arrives twice.
//!
//! Reads: the configuration; with `--live`, what the targets are. Writes: nothing. A note, never a refusal: whether keys repeat
//! between two sources only a person knows.

use std::collections::{BTreeSet, HashMap};

use hapax_engine::source::Source as _;
use hapax_model::contract::TARGET;
use hapax_model::mode::ConflictMode;

use crate::assemble::{Live, Part, Purpose};
use crate::config::{Config, Target};

/// How many others are named.
const NAMED: usize = 3;

/// A sink, and what its table is.
pub(super) struct Writing<'a> {
    pub(super) part: Part<'a>,
    pub(super) live: Option<&'a Live>,
    /// The table's identity, if somebody looked and it tells the table from all others.
    pub(super) identity: Option<&'a str>,
}

/// What the live table is, by whatever address and name it is reached. A file is known by its path.
pub(super) async fn identity(part: &Part<'_>, live: &Live, config: &Config) -> Option<String> {
    if !part.is_remote() {
        return None;
    }
    let contract = part.contract_by(live, config, Purpose::Look).await.ok()?;
    let identity = contract.fact(TARGET);
    (!identity.contains("unnumbered")).then(|| identity.to_owned())
}

/// For each sink a note, if there is something to say.
pub(super) fn notes(all: &[Writing<'_>]) -> Vec<Option<String>> {
    let mut by_table: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, writing) in all.iter().enumerate() {
        let names = [Some(address(&writing.part)), writing.identity.map(str::to_owned)];
        names.into_iter().flatten().for_each(|name| by_table.entry(name).or_default().push(at));
    }
    let mut others: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); all.len()];
    for together in by_table.values() {
        together.iter().for_each(|at| others[*at].extend(together.iter().filter(|other| *other != at)));
    }
    all.iter().zip(&others).map(|(writing, others)| note(writing, others.iter().map(|at| &all[*at]))).collect()
}

fn note<'a>(writing: &Writing<'_>, others: impl Iterator<Item = &'a Writing<'a>>) -> Option<String> {
    let others: Vec<&Writing<'_>> = others.collect();
    if others.is_empty() {
        return None;
    }
    let mode = writing.part.mode(writing.live);
    if let Some(stays) = writing.part.stays_of_a_key(writing.live) {
        return Some(format!(
            "{} by key into a table that {} writes too: events of one key in two sources have no order between them, {stays}. If \
             keys repeat between them, write `onConflict: newer` with a version of the events' own everywhere, or read them \
             through one workflow (docs/choosing-a-guarantee.md)",
            mode.name(),
            named(&others)
        ));
    }
    let source = writing.part.open_source().identity();
    let twins: Vec<&Writing<'_>> = others
        .into_iter()
        .filter(|other| other.part.mode(other.live) == ConflictMode::Append && mode == ConflictMode::Append)
        .filter(|other| other.part.open_source().identity() == source)
        .collect();
    let times = match twins.len() {
        0 => return None,
        1 => "twice".to_owned(),
        more => format!("{} times", more + 1),
    };
    Some(format!(
        "{} reads the same source into the same table: each row arrives {times}. Keep one of them, or let a key tell repeats \
         (docs/choosing-a-guarantee.md)",
        named(&twins)
    ))
}

fn named(others: &[&Writing<'_>]) -> String {
    let names: Vec<String> = others
        .iter()
        .take(NAMED)
        .map(|other| format!("{} → {}", other.part.workflow.id, other.part.sink.name))
        .collect();
    let more = match others.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

/// Where the table is by the configuration alone.
fn address(part: &Part<'_>) -> String {
    match &part.sink.target {
        Target::Sqlite(sqlite) => {
            let path = std::path::absolute(&sqlite.path).unwrap_or_else(|_| sqlite.path.clone());
            let path = std::fs::canonicalize(&path).unwrap_or(path);
            format!("sqlite {} {}", path.display(), sqlite.table.name.to_ascii_lowercase())
        }
        #[cfg(feature = "postgres")]
        Target::Postgres(postgres) => {
            let name = postgres.table.name.parse::<hapax_sql::postgres::TableName>().ok();
            let schema = name.as_ref().and_then(|name| name.schema()).unwrap_or("public");
            let table = name.as_ref().map_or(postgres.table.name.as_str(), |name| name.table());
            let url = &postgres.url;
            format!("postgres {:?} {:?} {schema:?} {table:?}", url.hosts(), url.database().or(url.user()))
        }
        #[cfg(feature = "mysql")]
        Target::Mysql(mysql) => {
            let name = mysql.table.name.parse::<hapax_sql::mysql::TableName>().ok();
            let database = name.as_ref().and_then(|name| name.database()).or(mysql.url.database());
            let table = name.as_ref().map_or(mysql.table.name.as_str(), |name| name.table());
            format!("mysql {:?} {database:?} {table:?}", mysql.url.host())
        }
    }
}
