//! `hapax stuck`: what waits, since when, why, and whose turn it is.

use std::time::Duration;

use hapax_engine::books::{Books as _, NotedDelivery, StoredDelivery};
use hapax_engine::letters::LetterChoice;
use hapax_engine::rows::{Hold, RowReader as _};
use hapax_model::delivery_state::WorkerState;
use hapax_model::position::DeliveryId;
use hapax_model::units::print_duration;
use serde_json::{Value, json};

use super::super::table::Table;
use super::super::{load, print_json};
use super::clock::{age, now_ms};
use super::subject::{Lag, StateSide, Subject, subjects};
use crate::assemble::AnyRows;
use crate::cli::{Shared, StuckArgs};
use crate::exit::Failure;

/// How long a lock is watched before it is called one that others wait for: every commit holds it for a moment.
const WATCHED: Duration = Duration::from_millis(700);

/// A transaction that holds others up for so long is told although deliveries go on.
const LONG_HOLD_MS: u64 = 10_000;

/// One thing that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wait {
    /// Which delivery, or which database.
    what: String,
    since_ms: Option<u64>,
    why: String,
    turn: String,
    weight: Weight,
}

/// Whether the exit code counts a thing that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// It waits.
    Counted,
    /// Its turn comes by itself, and soon.
    ToldOnly,
}

/// What is known of one delivery.
struct Look {
    id: DeliveryId,
    stored: Option<StoredDelivery>,
    lag: Lag,
    /// Dead letters that wait, and since when.
    letters: (u64, Option<u64>),
    /// Why its books cannot be read.
    trouble: Option<Trouble>,
}

/// Books that cannot be read.
struct Trouble {
    why: String,
    /// Whether it may pass by itself.
    may_pass: bool,
}

/// Lists what waits.
pub(crate) async fn stuck(args: &StuckArgs, shared: &Shared) -> Result<u8, Failure> {
    let mut loaded = load(shared)?;
    crate::assemble::find_files(&mut loaded.config).await;
    let chosen = subjects(&loaded.config, &args.choice)?;
    let mut waits = Vec::new();
    let state = match StateSide::read(&loaded.config).await {
        Ok(state) => state,
        Err(failure) => {
            let turn = "the state store; deliveries go on without it for a while".to_owned();
            let weight = Weight::Counted;
            waits.push(Wait { what: "state store".into(), since_ms: None, why: failure.to_string(), turn, weight });
            StateSide::unread(&failure)
        }
    };
    for subject in &chosen {
        let look = Look::at(subject).await;
        waits.extend(judge(&look, &state, args.older_than));
        for wait in held(subject, look.stored.as_ref()).await {
            if waits.iter().all(|known| known.why != wait.why) {
                waits.push(wait);
            }
        }
    }
    if shared.json {
        print_json(&json!({"stuck": waits.iter().map(Wait::as_json).collect::<Vec<_>>()}));
    } else {
        print_waits(&waits, chosen.len());
    }
    Ok(u8::from(waits.iter().any(|wait| wait.weight == Weight::Counted)))
}

impl Look {
    async fn at(subject: &Subject<'_>) -> Self {
        let (stored, letters, trouble) = match Self::books(subject).await {
            Ok((stored, letters)) => (stored, letters, None),
            Err(failure) => (None, (0, None), Some(Trouble { why: failure.to_string(), may_pass: failure.may_pass })),
        };
        Self { id: subject.id.clone(), lag: subject.lag(stored.as_ref()).await, stored, letters, trouble }
    }

    async fn books(subject: &Subject<'_>) -> Result<(Option<StoredDelivery>, (u64, Option<u64>)), Failure> {
        let Some(mut books) = subject.books().await? else { return Ok((None, (0, None))) };
        let stored = subject.progress(&mut books).await?;
        let id = &subject.id;
        let choice = LetterChoice {
            workflow: Some(id.workflow.clone()),
            sink: Some(id.sink.clone()),
            lane: Some(id.lane.clone()),
            ..LetterChoice::default()
        };
        let causes = books.causes(&choice, 0).await?;
        let count = causes.iter().map(|group| group.count).sum();
        Ok((stored, (count, causes.iter().map(|group| group.first_at_ms).min())))
    }
}

/// Why a delivery does not go on, if it does not. Pure but for the clock.
fn judge(look: &Look, state: &StateSide, older_than: Duration) -> Vec<Wait> {
    let id = &look.id;
    let weight = Weight::Counted;
    let wait = |since_ms, why: String, turn: String| Wait { what: id.to_string(), since_ms, why, turn, weight };
    let mut waits = Vec::new();
    if let Some(trouble) = &look.trouble {
        let turn = match trouble.may_pass {
            true => "the target: bring it back; workers try again by themselves",
            false => "a person: mend it, then start hapax run",
        };
        waits.push(wait(None, trouble.why.clone(), turn.into()));
    }
    waits.extend(soon(look, state, older_than));
    waits.extend(standing(look, state, older_than).into_iter().map(|(since, why, turn)| wait(since, why, turn)));
    if look.letters.0 > 0 {
        let turn = format!("a person: hapax dlq list --workflow {}", id.workflow);
        let why = if look.letters.0 == 1 {
            "1 dead letter waits".into()
        } else {
            format!("{} dead letters wait", look.letters.0)
        };
        waits.push(wait(look.letters.1, why, turn));
    }
    if look.stored.as_ref().is_some_and(|stored| !stored.progress.totals.adds_up()) {
        let why = "the ledger does not add up".to_owned();
        waits.push(wait(None, why, format!("a person: hapax reconcile {}", id.workflow)));
    }
    waits
}

type Reason = (Option<u64>, String, String);

/// A worker is about to begin with the delivery. Who starts for long is counted.
fn soon(look: &Look, state: &StateSide, older_than: Duration) -> Option<Wait> {
    if state.stop(&look.id).is_some() || state.pause(&look.id).is_some() || look.lag == Lag::Known(0) {
        return None;
    }
    let what = look.id.to_string();
    if let Some(noted) = state.starting(&look.id) {
        let since = Some(noted.noted_at_ms);
        let long = Duration::from_millis(now_ms().saturating_sub(noted.noted_at_ms)) > older_than;
        let weight = if long { Weight::Counted } else { Weight::ToldOnly };
        let through = if noted.id == look.id { "what was read before" } else { "the files of the pattern" };
        let why = format!("starting: {} looks through {through}", noted.session);
        return Some(Wait {
            what,
            since_ms: since,
            why,
            turn: format!("{}: it begins after that", noted.session),
            weight,
        });
    }
    let (Lag::Known(_) | Lag::Endless) = look.lag else { return None };
    let holder = &state.pattern_lease(&look.id).filter(|_| state.lease(&look.id).is_none())?.holder;
    let why = format!("waits for its turn among the lanes of the pattern, {} behind", look.lag);
    let since_ms = look.stored.as_ref().map(|stored| stored.updated_at_ms);
    let turn = format!("{holder}: it opens a few lanes at a time");
    Some(Wait { what, since_ms, why, turn, weight: Weight::ToldOnly })
}

/// The reasons for which the delivery itself stands still: a stop and a pause, each of which holds it, or else one.
fn standing(look: &Look, state: &StateSide, older_than: Duration) -> Vec<Reason> {
    let stop = state.stop(&look.id).map(|noted| stopped(look, noted));
    let pause = state.pause(&look.id).map(|pause| {
        let turn = format!("a person: hapax resume {}", look.id.workflow);
        let why = if pause.why.is_empty() { String::new() } else { format!(": {}", pause.why) };
        (Some(pause.since_ms), format!("paused by {}{why}", pause.by), turn)
    });
    let held: Vec<Reason> = stop.into_iter().chain(pause).collect();
    if held.is_empty() { going_on(look, state, older_than).into_iter().collect() } else { held }
}

/// What a stop left to do.
fn stopped(look: &Look, noted: &NotedDelivery) -> Reason {
    let code = noted.note.exit_code.unwrap_or(1);
    let turn = match code {
        5 => format!("a person: decide, then hapax reset {} or undo the change", look.id.workflow),
        4 => "the worker that took over; if there is none: start hapax run".to_owned(),
        3 => "a person: change the guarantee or state its condition (hapax check --explain)".to_owned(),
        _ => "a person: mend it, then start hapax run".to_owned(),
    };
    (Some(noted.noted_at_ms), format!("stopped with code {code}: {}", message(noted)), turn)
}

/// Why a delivery that nobody holds back does not go on.
fn going_on(look: &Look, state: &StateSide, older_than: Duration) -> Option<Reason> {
    let (id, note) = (&look.id, state.note(&look.id));
    let moved = look.stored.as_ref().map(|stored| stored.updated_at_ms);
    if state.trouble.is_some() {
        // Whether there is a worker is not known; only the source can be asked.
        let Lag::Unknown(why) = &look.lag else { return None };
        return Some((moved, format!("the source: {why}"), "the source, or a person".into()));
    }
    if state.starting(id).is_some() {
        return None; // told already
    }
    let Some(lease) = state.lease(id) else {
        let told = state.pattern_lease(id).is_some() && !matches!(look.lag, Lag::Unknown(_));
        return if told { None } else { without_worker(look, note) };
    };
    if let Some(noted) = note.filter(|noted| noted.note.state == WorkerState::Waiting) {
        let why = format!("waiting: {}", message(noted));
        return Some((
            Some(noted.noted_at_ms),
            why,
            format!("what it waits for; {} tries again by itself", lease.holder),
        ));
    }
    if let Some(noted) = note.filter(|noted| noted.note.state == WorkerState::Standby && noted.session != lease.holder)
    {
        let why = format!("{} stands by, {} holds the lease", noted.session, lease.holder);
        return Some((Some(noted.noted_at_ms), why, format!("{}: it delivers, or its lease runs out", lease.holder)));
    }
    let old = moved.filter(|at| Duration::from_millis(now_ms().saturating_sub(*at)) > older_than);
    match (&look.lag, old) {
        (Lag::Known(1..) | Lag::Endless, Some(at)) => {
            let why = format!(
                "inputs wait for longer than {} ({} behind), though a worker is alive",
                print_duration(older_than),
                look.lag
            );
            Some((Some(at), why, format!("{}: see its log", lease.holder)))
        }
        (Lag::Unknown(why), _) => Some((moved, format!("the source: {why}"), "the source, or a person".into())),
        (Lag::Known(_) | Lag::Endless, _) => None,
    }
}

/// Nobody has the delivery.
fn without_worker(look: &Look, note: Option<&NotedDelivery>) -> Option<Reason> {
    let start = "a person: start hapax run".to_owned();
    let ended = note.filter(|noted| !noted.note.state.is_an_end());
    let moved = look.stored.as_ref().map(|stored| stored.updated_at_ms);
    match (&look.lag, ended) {
        (Lag::Unknown(why), _) => Some((moved, format!("no worker, and the source: {why}"), start)),
        (Lag::Known(0), _) => None,
        (lag, Some(noted)) => {
            let why = format!("its worker ({}) ended without a word; {lag} behind", noted.session);
            Some((Some(noted.noted_at_ms), why, start))
        }
        (lag, None) if look.stored.is_none() => Some((None, format!("never run; {lag} wait"), start)),
        (lag, None) => Some((moved, format!("no worker; {lag} behind"), start)),
    }
}

fn message(noted: &NotedDelivery) -> String {
    let note = &noted.note;
    match (&note.code, note.message.is_empty()) {
        (Some(code), _) => format!("{code}: {}", note.message),
        (None, false) => note.message.clone(),
        (None, true) => "it does not say why".to_owned(),
    }
}

/// Who makes writers of the target wait.
async fn held(subject: &Subject<'_>, before: Option<&StoredDelivery>) -> Vec<Wait> {
    let Ok(mut rows) = subject.rows().await else { return Vec::new() };
    let first = holds(&mut rows).await;
    if first.is_empty() {
        return Vec::new();
    }
    tokio::time::sleep(WATCHED).await;
    let still: Vec<Hold> =
        holds(&mut rows).await.into_iter().filter(|hold| first.iter().any(|before| before.who == hold.who)).collect();
    let moved = match subject.books().await {
        Ok(Some(mut books)) => subject.progress(&mut books).await.ok().flatten().as_ref() != before,
        Ok(None) | Err(_) => false,
    };
    // A short hold while the delivery goes on is how commits work; a long one is somebody's open transaction.
    let long = |hold: &Hold| hold.since_ms.is_some_and(|since| now_ms().saturating_sub(since) > LONG_HOLD_MS);
    let name = rows.shape().name.clone();
    let wait = |hold: Hold| Wait {
        what: name.clone(),
        since_ms: hold.since_ms,
        why: format!("{} {}", hold.who, hold.what),
        turn: format!("{}: {}", hold.who.split([' ', ',']).take(2).collect::<Vec<_>>().join(" "), hold.cure),
        weight: Weight::Counted,
    };
    still.into_iter().filter(|hold| !moved || long(hold)).map(wait).collect()
}

async fn holds(rows: &mut AnyRows) -> Vec<Hold> {
    rows.holds().await.unwrap_or_default()
}

impl Wait {
    fn as_json(&self) -> Value {
        json!({"what": self.what, "sinceMs": self.since_ms, "why": self.why, "turn": self.turn, "counted": self.weight == Weight::Counted})
    }
}

fn print_waits(waits: &[Wait], deliveries: usize) {
    if waits.is_empty() {
        println!("Nothing is stuck: {deliveries} deliveries looked at.");
        return;
    }
    let mut table = Table::new(&["what waits", "since", "why", "whose turn"]);
    for wait in waits {
        let since = wait.since_ms.map_or_else(|| "-".to_owned(), age);
        table.row(vec![wait.what.clone(), since, super::short(&wait.why, 160), wait.turn.clone()]);
    }
    print!("{table}");
}

#[cfg(test)]
#[path = "stuck_tests.rs"]
mod tests;
