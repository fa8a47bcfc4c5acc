//! `hapax top`: all deliveries live, from the databases alone.

mod picture;
mod screen;

use std::time::{Duration, Instant};

use hapax_engine::books::{Books as _, LetterCounts, StoredDelivery};
use hapax_model::delivery_state::DeliveryState;
use hapax_model::position::DeliveryId;
use serde_json::{Value, json};

use self::picture::{HEADINGS, Size, picture};
use self::screen::Screen;
use super::super::load;
use super::clock::{age, moment, now_ms};
use super::subject::{Lag, StateSide, Subject, progress_seen, subjects};
use crate::assemble::{AnyBooks, Purpose};
use crate::cli::{Shared, TopArgs};
use crate::config::Config;
use crate::exit::Failure;

/// How one delivery stands at one moment.
struct Sample {
    id: DeliveryId,
    at: Instant,
    state: DeliveryState,
    stored: Option<StoredDelivery>,
    letters: LetterCounts,
    lag: Lag,
    worker: Option<String>,
    note: Option<String>,
}

/// One line: a sample, and what changed since the one before it.
struct Line<'a> {
    now: &'a Sample,
    before: Option<&'a Sample>,
}

/// Books that stay open from one look to the next; opened anew after they failed.
struct Open<'a> {
    config: &'a Config,
    state: Option<AnyBooks>,
    books: Vec<Option<AnyBooks>>,
}

/// Shows them again and again.
pub(crate) async fn top(args: &TopArgs, shared: &Shared) -> Result<u8, Failure> {
    let mut loaded = load(shared)?;
    crate::assemble::find_files(&mut loaded.config).await;
    let chosen = subjects(&loaded.config, &args.choice)?;
    let mut screen = if shared.json { None } else { Screen::open() };
    let mut before: Vec<Sample> = Vec::new();
    let mut open = Open { config: &loaded.config, state: None, books: chosen.iter().map(|_| None).collect() };
    let ended = tokio::signal::ctrl_c();
    tokio::pin!(ended);
    let mut looks = 0;
    loop {
        let now = open.look(&chosen).await;
        let lines: Vec<Line<'_>> =
            now.iter().map(|now| Line { now, before: before.iter().find(|sample| sample.id == now.id) }).collect();
        match &mut screen {
            Some(screen) => screen.draw(|size| picture_of(&lines, size)),
            None if shared.json => lines.iter().for_each(|line| println!("{}", line.as_json())),
            None => lines.iter().for_each(|line| println!("{}", line.text())),
        }
        before = now;
        looks += 1;
        if args.count.is_some_and(|count| looks >= count) {
            return Ok(0);
        }
        tokio::select! {
            () = tokio::time::sleep(args.interval.max(Duration::from_millis(50))) => {}
            _ = &mut ended => return Ok(0),
            () = pressed(screen.as_mut()) => return Ok(0),
        }
    }
}

/// Returns when the user presses q.
async fn pressed(screen: Option<&mut Screen>) {
    match screen {
        Some(screen) => screen.quit().await,
        None => std::future::pending().await,
    }
}

impl Open<'_> {
    async fn look(&mut self, chosen: &[Subject<'_>]) -> Vec<Sample> {
        let state = self.state().await;
        let state = state.unwrap_or_else(|failure| StateSide::unread(&failure));
        let mut samples = Vec::with_capacity(chosen.len());
        for (subject, books) in chosen.iter().zip(&mut self.books) {
            let (stored, letters, away) = match read(subject, books).await {
                Ok((stored, letters)) => (stored, letters, None),
                Err(failure) => {
                    *books = None;
                    (None, LetterCounts::default(), Some(failure.to_string()))
                }
            };
            let said = state.note(&subject.id).filter(|noted| !noted.note.message.is_empty());
            let said = said.map(|noted| format!("{} {}", noted.note.code.as_deref().unwrap_or(""), noted.note.message));
            let unread = state.trouble.as_ref().map(|why| format!("state store: {why}"));
            let seen = progress_seen(stored.as_ref(), away.as_ref());
            samples.push(Sample {
                id: subject.id.clone(),
                at: Instant::now(),
                state: state.state(&subject.id, seen),
                lag: subject.lag(stored.as_ref()).await,
                stored,
                letters,
                worker: state.lease(&subject.id).map(|lease| lease.holder.clone()),
                note: away.or(said).or(unread),
            });
        }
        samples
    }

    async fn state(&mut self) -> Result<StateSide, Failure> {
        if self.state.is_none() {
            self.state = AnyBooks::of_state(self.config, Purpose::Look).await?;
        }
        let Some(books) = &mut self.state else { return Ok(StateSide::default()) };
        let read = StateSide::read_from(books, self.config).await;
        if read.is_err() {
            self.state = None;
        }
        read
    }
}

async fn read(
    subject: &Subject<'_>,
    books: &mut Option<AnyBooks>,
) -> Result<(Option<StoredDelivery>, LetterCounts), Failure> {
    if books.is_none() {
        *books = subject.books().await?;
    }
    let Some(books) = books else { return Ok((None, LetterCounts::default())) };
    let stored = subject.progress(books).await?;
    Ok((stored, books.letter_counts(&subject.id).await?))
}

impl Line<'_> {
    /// How much one counter of progress grew in a second.
    fn rate(&self, counter: impl Fn(&StoredDelivery) -> u64) -> Option<f64> {
        let before = self.before?;
        let (now, then) = (self.now.stored.as_ref()?, before.stored.as_ref()?);
        let seconds = (self.now.at - before.at).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let grown = counter(now).saturating_sub(counter(then)) as f64;
        (seconds > 0.0).then(|| grown / seconds)
    }

    fn rates(&self) -> [Option<f64>; 3] {
        [
            self.rate(|stored| stored.progress.totals.read),
            self.rate(|stored| stored.progress.totals.rows),
            self.rate(|stored| stored.progress.epoch.0),
        ]
    }

    fn cells(&self) -> Vec<String> {
        let [read, rows, epochs] =
            self.rates().map(|rate| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")));
        let now = self.now;
        let moved = now.stored.as_ref().map_or_else(|| "-".to_owned(), |stored| age(stored.updated_at_ms));
        let position = now.stored.as_ref().map_or_else(|| "-".to_owned(), |s| s.progress.bookmark.position.to_string());
        vec![
            now.id.to_string(),
            now.state.to_string(),
            read,
            rows,
            epochs,
            position,
            now.lag.to_string(),
            moved,
            now.letters.dead.to_string(),
            now.worker.clone().unwrap_or_else(|| "-".into()),
        ]
    }

    /// For a log: names and values.
    fn text(&self) -> String {
        let pairs: Vec<String> =
            HEADINGS.iter().zip(self.cells()).skip(1).map(|(name, cell)| format!("{name} {cell}")).collect();
        let note = self.now.note.as_ref().map(|note| format!(", {}", super::short(note, 120))).unwrap_or_default();
        format!("{}  {}: {}{note}", moment(now_ms()), self.now.id, pairs.join(", "))
    }

    fn as_json(&self) -> Value {
        let [read, rows, epochs] = self.rates();
        let now = self.now;
        let progress = now.stored.as_ref().map(|stored| &stored.progress);
        let lag = match &now.lag {
            Lag::Known(lag) => json!(lag),
            Lag::Endless | Lag::Unknown(_) => Value::Null,
        };
        json!({
            "atMs": now_ms(), "workflow": now.id.workflow, "sink": now.id.sink, "lane": now.id.lane, "state": now.state.name(),
            "readPerSecond": read, "rowsPerSecond": rows, "epochsPerSecond": epochs, "lag": lag,
            "epoch": progress.map(|p| p.epoch.0), "position": progress.map(|p| p.bookmark.position.to_string()),
            "read": progress.map(|p| p.totals.read), "delivered": progress.map(|p| p.totals.delivered),
            "dead": progress.map(|p| p.totals.dead), "lettersDead": now.letters.dead,
            "movedAtMs": now.stored.as_ref().map(|stored| stored.updated_at_ms), "worker": now.worker, "note": now.note,
        })
    }
}

fn picture_of(lines: &[Line<'_>], size: Size) -> String {
    let rows: Vec<Vec<String>> = lines.iter().map(Line::cells).collect();
    let said =
        |line: &Line<'_>| line.now.note.as_ref().map(|note| format!("{}: {}", line.now.id, super::short(note, 400)));
    let notes: Vec<String> = lines.iter().filter_map(said).collect();
    picture(&format!("hapax top   {}   q ends", moment(now_ms())), &rows, &notes, size)
}
