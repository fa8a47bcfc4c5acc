//! The user's table changes while a worker delivers into it, at a thousand events a second and more: what fits goes on,
//! what does not fit becomes a dead letter or stops the worker with the reason, and nothing is lost on the way.
//!
//! One list of cases ([`Case`]), run against each database; the page `docs/operations/schema-changes.md` tells the same.

mod everywhere;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::servers::{Server, Shop};
use crate::world::{KEYED, World, number, until};

/// How many events are written each second: the feeder catches up whenever the machine was busy elsewhere.
const RATE: u64 = 2_000;
/// What must be there before the table changes.
const BEFORE: u64 = 500;
/// What must be delivered after it.
const AFTER: u64 = 1_000;
/// An amount that 32 bits do not hold.
const LARGE: u64 = 3_000_000_000;

/// A database that holds the table `orders (id, customer, amount)`, and a workflow into it.
pub(crate) trait Place {
    /// The database, the table and the workflow, ready to run.
    fn ready() -> Self;
    /// The folder with the configuration and `orders.jsonl`.
    fn world(&self) -> &World;
    /// Writes the configuration, with these fields added to the sink.
    fn configure(&self, sink: &str, delivery: &str);
    /// Runs statements.
    fn sql(&self, statements: &str);
    /// One value, as text; empty for NULL.
    fn ask(&self, query: &str) -> String;
    /// How many dead letters there are.
    fn letters(&self) -> u64;

    fn count(&self, what: &str) -> u64 {
        self.ask(&format!("SELECT count(*) FROM {what}")).parse().expect("a number")
    }
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl<S: Server> Place for Shop<S> {
    fn ready() -> Self {
        Shop::ready("", KEYED)
    }

    fn world(&self) -> &World {
        &self.world
    }

    fn configure(&self, sink: &str, delivery: &str) {
        Shop::configure(self, sink, delivery);
    }

    fn sql(&self, statements: &str) {
        Shop::sql(self, statements);
    }

    fn ask(&self, query: &str) -> String {
        Shop::ask(self, query)
    }

    fn letters(&self) -> u64 {
        self.count(&format!("{} WHERE state = 'dead'", S::own("dead_letters")))
    }
}

/// Which events are written.
#[cfg_attr(not(any(feature = "mysql", feature = "postgres")), expect(dead_code, reason = "SQLite takes what comes"))]
#[derive(Clone, Copy, PartialEq, Eq)]
enum Events {
    /// All of them fit.
    Plain,
    /// Of every hundred one has a large amount and one a long name.
    Large,
    /// After the change, of every hundred one has no customer.
    Nameless,
}

/// A change, and what must become of it.
struct Case<'a> {
    change: &'a str,
    events: Events,
    /// Holds of the table once the change has had its effect.
    effect: &'a str,
}

/// An event: its amount is ten times its id.
fn line(id: u64, events: Events, changed: bool) -> String {
    let (amount, customer) = match (events, id % 100) {
        (Events::Large, 1) => (LARGE + id, "\"ann\""),
        (Events::Large, 2) => (id * 10, "\"annabella\""),
        (Events::Nameless, 3) if changed => (id * 10, "null"),
        _ => (id * 10, "\"ann\""),
    };
    format!("{{\"id\":{id},\"customer\":{customer},\"amount\":{amount},\"colour\":\"red\"}}\n")
}

/// Writes events until it is told to end.
struct Feeder {
    changed: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Feeder {
    fn start(world: &World, events: Events) -> Self {
        let (changed, ended, written) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let path = world.path("orders.jsonl");
        let begun = Instant::now();
        let shared = (Arc::clone(&changed), Arc::clone(&ended), Arc::clone(&written));
        let thread = std::thread::spawn(move || {
            let (changed, ended, written) = shared;
            let mut file = std::fs::File::options().append(true).create(true).open(path).expect("the test can open");
            loop {
                let is_last = ended.load(Ordering::Relaxed);
                // A thread that came late writes what is due at once.
                let due = begun.elapsed().as_millis() as u64 * RATE / 1000;
                let from = written.load(Ordering::Relaxed);
                let chunk: String =
                    (from + 1..=due).map(|id| line(id, events, changed.load(Ordering::Relaxed))).collect();
                file.write_all(chunk.as_bytes()).expect("the test can append");
                written.store(due, Ordering::Relaxed);
                if is_last {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self { changed, ended, written, thread }
    }

    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// How many events were written: all that were due by now.
    fn end(self) -> u64 {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().expect("the feeder ends");
        self.written.load(Ordering::Relaxed)
    }
}

/// A change that the worker goes on with: afterwards each event is a row or a letter. Answers with how many there were.
fn goes_on(place: &impl Place, case: &Case<'_>) -> u64 {
    let feeder = Feeder::start(place.world(), case.events);
    let worker = place.world().start("worker.log", &["run"]);
    until("rows are there", || place.count("orders") >= BEFORE);
    place.sql(case.change);
    feeder.changed.store(true, Ordering::Relaxed);
    let at = feeder.written();
    until("the change has had its effect", || place.count(case.effect) > 0);
    until("much was delivered after the change", || place.count("orders") + place.letters() >= at + AFTER);
    let lines = feeder.end();
    until("all was delivered", || place.count("orders") + place.letters() >= lines);
    worker.terminate();
    worker.ends().exits(0);
    adds_up(place, lines);
    lines
}

/// A change that stops the worker with this code and these words; then `cure`, and a run to the end. Answers with how
/// many events there were.
fn stops(place: &impl Place, case: &Case<'_>, code: i32, words: &[&str], cure: impl FnOnce()) -> u64 {
    let feeder = Feeder::start(place.world(), case.events);
    let worker = place.world().start("worker.log", &["run"]);
    until("rows are there", || place.count("orders") >= BEFORE);
    place.sql(case.change);
    feeder.changed.store(true, Ordering::Relaxed);
    worker.ends().exits(code).says(words);
    let lines = feeder.end();
    let read: u64 = place.world().status().iter().map(|delivery| number(&delivery["progress"]["read"])).sum();
    assert!((BEFORE..lines).contains(&read), "it stopped in the middle: {read} of {lines}");
    cure();
    place.world().hapax(&["run", "--once"]).exits(0);
    lines
}

/// The ledger and the table agree: what was read is a row of its own or a letter.
fn adds_up(place: &impl Place, lines: u64) {
    let deliveries = place.world().status();
    let sum = |name: &str| deliveries.iter().map(|delivery| number(&delivery["progress"][name])).sum::<u64>();
    let (read, delivered, dead) = (sum("read"), sum("delivered"), sum("dead"));
    assert_eq!((read, delivered + dead), (lines, lines), "{deliveries:#?}");
    assert_eq!((place.count("orders"), place.letters()), (delivered, dead), "rows and letters");
}

/// A column is added that must have a value, has no default, and that no event knows: nothing fits any more, which
/// stops the worker after at most a hundred dead letters. With a default they can be replayed.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn a_column_that_nothing_fills_is_added(place: &impl Place, change: &str, cure: &str) {
    let case = Case { change, events: Events::Plain, effect: "" };
    let lines =
        stops(place, &case, 1, &["HX4010", "maxRejects", "column \"state\" must have a value"], || place.sql(cure));
    adds_up(place, lines);
    assert!(place.letters() <= 100, "{}", place.letters());
    place.world().hapax(&["dlq", "replay", "--overwrite", "--yes"]).exits(0);
    assert_eq!(place.count("orders WHERE amount = id * 10"), lines);
}

/// Columns become wider: what did not fit before is a dead letter, what comes after it is a row.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn columns_are_widened<S: Server>() {
    let place = &<Shop<S> as Place>::ready();
    place.sql(&format!("ALTER TABLE orders {}", S::retyped("customer", "varchar(5)")));
    let (amount, customer) = (S::retyped("amount", "bigint"), S::retyped("customer", "varchar(50)"));
    let change = &format!("ALTER TABLE orders {amount}, {customer}");
    let case = Case { change, events: Events::Large, effect: &format!("orders WHERE amount >= {LARGE}") };
    let lines = goes_on(place, &case);
    assert!(place.letters() > 0, "some came before");
    let wrong = format!("orders WHERE amount <> id * 10 AND amount <> {LARGE} + id");
    assert_eq!(place.count(&wrong), 0);
    let (odd, kept) =
        (lines / 100 * 2, place.count(&format!("orders WHERE amount >= {LARGE} OR customer = 'annabella'")));
    assert!(kept + place.letters() >= odd, "{kept} and {} of {odd}", place.letters());
    // One that was refused was refused before the change took hold.
    place.world().hapax(&["dlq", "replay", "--overwrite", "--yes"]).exits(0);
    assert_eq!(place.count("orders"), lines, "replayed into the wider columns");
}

/// A column gets NOT NULL: events without a value for it are dead letters from then on.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn a_column_must_have_a_value(place: &impl Place, change: &str) {
    let case = Case { change, events: Events::Nameless, effect: "orders" };
    let lines = goes_on(place, &case);
    assert!(place.letters() > 0);
    assert_eq!(place.count("orders WHERE amount = id * 10 AND customer = 'ann'"), lines - place.letters());
    let answer = place.world().hapax(&["dlq", "list", "--json"]);
    answer.exits(0).says(&["HX2021", "customer"]);
}

/// Another table takes the name: code 5; once accepted, the rest goes into the new one, and together they hold all.
fn the_table_is_swapped(place: &impl Place, change: &str) {
    let case = Case { change, events: Events::Plain, effect: "" };
    let lines = stops(place, &case, 5, &["HX4012", "hapax reset orders --accept"], || {
        place.world().hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    });
    let (old, new) = (place.count("orders_old WHERE amount = id * 10"), place.count("orders WHERE amount = id * 10"));
    assert_eq!(old + new, lines, "{old} and {new}");
    assert_eq!(place.count("orders_old AS o JOIN orders AS n ON o.id = n.id"), 0, "no event is in both");
}

/// The table is renamed away: the worker stops; it goes on when the table is back.
fn the_table_is_renamed_away(place: &impl Place, code: i32, words: &[&str]) {
    let case = Case { change: "ALTER TABLE orders RENAME TO orders_old", events: Events::Plain, effect: "" };
    let lines = stops(place, &case, code, words, || place.sql("ALTER TABLE orders_old RENAME TO orders"));
    adds_up(place, lines);
    assert_eq!(place.count("orders WHERE amount = id * 10"), lines);
}

/// The table is made anew, filled by a copy: code 5; once accepted, the rest joins the copied rows.
fn the_table_is_made_anew(place: &impl Place, change: &str) {
    let case = Case { change, events: Events::Plain, effect: "" };
    let lines = stops(place, &case, 5, &["HX4012", "hapax reset orders --accept"], || {
        place.world().hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    });
    adds_up(place, lines);
    assert_eq!(place.count("orders WHERE amount = id * 10"), lines, "the copied rows and those that came after");
}
