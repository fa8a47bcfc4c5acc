//! `hapax status`: how each delivery stands, whether a worker is alive or not.

use std::collections::HashMap;

use hapax_connect::file::{RotationRule, was_read_to_its_end};
use hapax_engine::books::{Books as _, LetterCounts, NotedDelivery, Pause, StoredDelivery, StoredLease};
use hapax_model::delivery_state::DeliveryState;
use hapax_model::position::DeliveryId;
use serde_json::json;

use super::look::subject::{StateSide, progress_seen};
use super::table::Table;
use super::{known_workflow, load, print_json};
use crate::assemble::{AnyBooks, Part, Purpose, find_files, lanes};
use crate::cli::{Shared, StatusArgs};
use crate::config::{Config, Source};
use crate::exit::Failure;
use crate::roster::now_ms;

/// One line of the answer.
struct Line {
    id: DeliveryId,
    state: DeliveryState,
    stored: Option<StoredDelivery>,
    letters: LetterCounts,
    note: Option<NotedDelivery>,
    lease: Option<StoredLease>,
    pause: Option<Pause>,
    trouble: Option<String>,
    /// Whether it is all files of a pattern in the order of their names: another may always come.
    has_all_files: bool,
}

/// Shows every delivery.
pub(crate) async fn status(args: &StatusArgs, shared: &Shared) -> Result<u8, Failure> {
    let mut loaded = load(shared)?;
    find_files(&mut loaded.config).await;
    if let Some(only) = &args.only {
        known_workflow(&loaded.config, only)?;
    }
    let (state, code) = match StateSide::read(&loaded.config).await {
        Ok(state) => (state, 0),
        Err(failure) => (StateSide::unread(&failure), failure.exit_code),
    };
    let mut lines = Vec::new();
    let mut ledgers = Ledgers::default();
    for part in lanes(&loaded.config).filter(|p| args.only.as_ref().is_none_or(|only| *only == p.workflow.id)) {
        let id = part.id();
        let (stored, letters, trouble) = match ledgers.of(&part, &loaded.config).await {
            Ok((stored, letters)) => (stored, letters, None),
            Err(failure) => (None, LetterCounts::default(), Some(failure.to_string())),
        };
        lines.push(Line {
            state: state.state(&id, progress_seen(stored.as_ref(), trouble.as_ref())),
            note: state.note(&id).cloned(),
            lease: state.lease(&id).cloned(),
            pause: state.pause(&id).cloned(),
            id,
            stored,
            letters,
            trouble,
            has_all_files: matches!(part.source, Source::File(file) if file.rotation == RotationRule::ByName),
        });
    }
    if shared.json {
        print_json(&as_json(&lines, state.trouble.as_ref()))
    } else {
        print_lines(&lines);
        if let Some(why) = &state.trouble {
            println!("state store: {why}; whether workers are alive is not known without it");
        }
    }
    Ok(code)
}

/// The books of the part that was asked last: a pattern may have thousands of lanes in one place.
#[derive(Default)]
struct Ledgers {
    of: Option<(String, String)>,
    books: Option<(AnyBooks, HashMap<DeliveryId, StoredDelivery>)>,
}

impl Ledgers {
    async fn of(
        &mut self,
        part: &Part<'_>,
        config: &Config,
    ) -> Result<(Option<StoredDelivery>, LetterCounts), Failure> {
        let of = (part.workflow.id.clone(), part.sink.name.clone());
        if self.of.as_ref() != Some(&of) {
            self.books = match AnyBooks::of_part(part, config, Purpose::Look).await? {
                Some(mut books) => {
                    let stored = books.deliveries().await?.into_iter().map(|stored| (stored.id.clone(), stored));
                    Some((books, stored.collect()))
                }
                None => None,
            };
            self.of = Some(of);
        }
        let Some((books, stored)) = &mut self.books else { return Ok((None, LetterCounts::default())) };
        let (id, stored) = (part.id(), stored.get(&part.id()).cloned());
        let has_letters = stored.as_ref().is_none_or(|stored| stored.progress.totals.dead > 0);
        let letters = if has_letters { books.letter_counts(&id).await? } else { LetterCounts::default() };
        Ok((stored, letters))
    }
}

impl Line {
    /// Whether it is a file of a pattern that was read to its end, with nothing left to do.
    fn is_done_file(&self) -> bool {
        let ended = |stored: &StoredDelivery| was_read_to_its_end(&stored.progress.bookmark.incarnation.text);
        self.stored.as_ref().is_some_and(ended)
            && self.letters.dead == 0
            && !self.has_all_files
            && self.lease.is_none()
            && self.trouble.is_none()
    }

    /// Why it stands as it does: what is wrong, then the pause.
    fn messages(&self) -> Vec<String> {
        let noted = self.note.as_ref().map(|noted| &noted.note).filter(|note| !note.message.is_empty());
        let said = noted.map(|note| format!("{}: {}", note.code.as_deref().unwrap_or("note"), note.message));
        self.trouble.clone().or(said).into_iter().chain(self.pause.as_ref().map(pause_text)).collect()
    }
}

fn pause_text(pause: &Pause) -> String {
    let why = if pause.why.is_empty() { String::new() } else { format!(": {}", pause.why) };
    let end = match pause.until_ms {
        Some(until) => format!("for {}s more", until.saturating_sub(now_ms()) / 1000),
        None => format!("until `hapax resume {}`", pause.workflow),
    };
    format!("paused by {} {} ago, {end}{why}", pause.by, age(pause.since_ms))
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
    let (shown, read): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| !line.is_done_file());
    for line in shown {
        let mut cells = vec![line.id.to_string(), line.state.to_string()];
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
    if !read.is_empty() {
        let sum =
            |of: fn(&StoredDelivery) -> u64| read.iter().filter_map(|line| line.stored.as_ref()).map(of).sum::<u64>();
        let (inputs, delivered) = (sum(|s| s.progress.totals.read), sum(|s| s.progress.totals.delivered));
        let (filtered, dead) = (sum(|s| s.progress.totals.filtered), sum(|s| s.progress.totals.dead));
        let rest = match (filtered, dead) {
            (0, 0) => String::new(),
            (filtered, dead) => format!(", {filtered} filtered, {dead} dead"),
        };
        println!(
            "{} lane(s) read to their end: {inputs} read, {delivered} delivered{rest}; --json shows each",
            read.len()
        );
    }
    for line in lines {
        line.messages().iter().for_each(|message| println!("{}: {message}", line.id));
        if line.stored.as_ref().is_some_and(|stored| !stored.progress.totals.adds_up()) {
            println!("{}: THE LEDGER DOES NOT ADD UP: read must be delivered + filtered + dead", line.id);
        }
    }
}

fn as_json(lines: &[Line], state_store: Option<&String>) -> serde_json::Value {
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
            "workflow": line.id.workflow, "sink": line.id.sink, "lane": line.id.lane, "state": line.state.name(),
            "progress": progress, "message": line.messages().first(), "worker": line.lease.as_ref().map(|lease| &lease.holder),
            "pause": line.pause.as_ref().map(|pause| json!({
                "by": pause.by, "why": pause.why, "sinceMs": pause.since_ms, "untilMs": pause.until_ms,
            })),
            "exitCode": line.note.as_ref().and_then(|noted| noted.note.exit_code),
            "letters": {"dead": letters.dead, "replayed": letters.replayed, "discarded": letters.discarded},
        })
    };
    json!({"deliveries": lines.iter().map(one).collect::<Vec<_>>(), "stateStore": state_store})
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
