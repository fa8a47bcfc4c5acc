//! `hapax status`: how each delivery stands, whether a worker is alive or not.

use std::time::{SystemTime, UNIX_EPOCH};

use hapax_engine::books::{Books as _, LetterCounts, NotedDelivery, StateBooks as _, StoredDelivery, StoredLease};
use hapax_model::position::DeliveryId;
use serde_json::json;

use super::table::Table;
use super::{known_workflow, load, print_json};
use crate::assemble::{AnyBooks, Part, lanes};
use crate::cli::{Shared, StatusArgs};
use crate::config::Config;
use crate::exit::Failure;

/// One line of the answer.
struct Line {
    id: DeliveryId,
    stored: Option<StoredDelivery>,
    letters: LetterCounts,
    note: Option<NotedDelivery>,
    lease: Option<StoredLease>,
    trouble: Option<String>,
}

/// Shows every delivery.
pub(crate) async fn status(args: &StatusArgs, shared: &Shared) -> Result<u8, Failure> {
    let loaded = load(shared)?;
    if let Some(only) = &args.only {
        known_workflow(&loaded.config, only)?;
    }
    let (notes, leases) = state_side(&loaded.config).await?;
    let mut lines = Vec::new();
    for part in lanes(&loaded.config).filter(|p| args.only.as_ref().is_none_or(|only| *only == p.workflow.id)) {
        let id = part.id();
        let note = notes.iter().find(|noted| noted.id == id).cloned();
        let lease = leases.iter().find(|lease| lease.id == id && lease.expires_at_ms > now_ms()).cloned();
        let (stored, letters, trouble) = match ledger_side(&part, &loaded.config).await {
            Ok((stored, letters)) => (stored, letters, None),
            Err(failure) => (None, LetterCounts::default(), Some(failure.to_string())),
        };
        lines.push(Line { id, stored, letters, note, lease, trouble });
    }
    if shared.json {
        print_json(&as_json(&lines))
    } else {
        print_lines(&lines)
    }
    Ok(0)
}

async fn state_side(config: &Config) -> Result<(Vec<NotedDelivery>, Vec<StoredLease>), Failure> {
    let Some(mut books) = AnyBooks::of_state(config).await? else { return Ok((Vec::new(), Vec::new())) };
    Ok((books.notes().await?, books.leases().await?))
}

async fn ledger_side(part: &Part<'_>, config: &Config) -> Result<(Option<StoredDelivery>, LetterCounts), Failure> {
    let Some(mut books) = AnyBooks::of_part(part, config).await? else { return Ok((None, LetterCounts::default())) };
    let id = part.id();
    let stored = books.deliveries().await?.into_iter().find(|found| found.id == id);
    Ok((stored, books.letter_counts(&id).await?))
}

impl Line {
    /// A worker that holds the lease is alive; a note of one that does not is what it said last.
    fn state(&self) -> String {
        match (&self.lease, &self.note) {
            (Some(_), Some(noted)) => noted.note.state.clone(),
            (Some(_), None) => "starting".into(),
            (None, Some(noted)) if noted.note.state == "running" => "no worker".into(),
            (None, Some(noted)) => noted.note.state.clone(),
            (None, None) if self.stored.is_some() => "no worker".into(),
            (None, None) => "never run".into(),
        }
    }

    fn message(&self) -> Option<String> {
        let noted = self.note.as_ref().map(|noted| &noted.note).filter(|note| !note.message.is_empty());
        let said = noted.map(|note| format!("{}: {}", note.code.as_deref().unwrap_or("note"), note.message));
        self.trouble.clone().or(said)
    }
}

fn print_lines(lines: &[Line]) {
    let mut table = Table::new(&[
        "delivery",
        "state",
        "epoch",
        "position",
        "read",
        "delivered",
        "filtered",
        "dead",
        "letters",
        "age",
    ]);
    for line in lines {
        let mut cells = vec![line.id.to_string(), line.state()];
        match &line.stored {
            Some(StoredDelivery { progress, updated_at_ms, .. }) => {
                let totals = progress.totals;
                cells.extend([progress.epoch.to_string(), progress.bookmark.position.to_string()]);
                cells.extend([totals.read, totals.delivered, totals.filtered, totals.dead].map(|n| n.to_string()));
                cells.extend([line.letters.dead.to_string(), age(*updated_at_ms)]);
            }
            None => cells.extend(std::iter::repeat_n("-".to_owned(), 8)),
        }
        table.row(cells);
    }
    print!("{table}");
    for line in lines {
        if let Some(message) = line.message() {
            println!("{}: {message}", line.id);
        }
        if line.stored.as_ref().is_some_and(|stored| !stored.progress.totals.adds_up()) {
            println!("{}: THE LEDGER DOES NOT ADD UP: read must be delivered + filtered + dead", line.id);
        }
    }
}

fn as_json(lines: &[Line]) -> serde_json::Value {
    let one = |line: &Line| {
        let progress = line.stored.as_ref().map(|StoredDelivery { progress, updated_at_ms, .. }| {
            let totals = progress.totals;
            json!({
                "generation": progress.generation.0, "epoch": progress.epoch.0,
                "position": progress.bookmark.position.to_string(), "incarnation": progress.bookmark.incarnation.to_string(),
                "read": totals.read, "delivered": totals.delivered, "filtered": totals.filtered, "dead": totals.dead,
                "rows": totals.rows, "addsUp": totals.adds_up(), "session": progress.session, "updatedAtMs": updated_at_ms,
            })
        });
        let letters = line.letters;
        json!({
            "workflow": line.id.workflow, "sink": line.id.sink, "lane": line.id.lane, "state": line.state(),
            "progress": progress, "message": line.message(), "worker": line.lease.as_ref().map(|lease| &lease.holder),
            "exitCode": line.note.as_ref().and_then(|noted| noted.note.exit_code),
            "letters": {"dead": letters.dead, "replayed": letters.replayed, "discarded": letters.discarded},
        })
    };
    json!({"deliveries": lines.iter().map(one).collect::<Vec<_>>()})
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn age(at_ms: u64) -> String {
    let seconds = now_ms().saturating_sub(at_ms) / 1000;
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
