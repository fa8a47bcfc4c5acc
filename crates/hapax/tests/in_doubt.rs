//! At-most-once: what an earlier worker may have sent is never sent again. It is a letter, marked as in doubt.

use crate::schema_change::Place;
use crate::world::{number, order, until};

/// A transaction of somebody else's that keeps the table to itself until it is dropped.
trait Lockable: Place {
    /// What is dropped to give the table back.
    type Held;
    fn lock_table(&self) -> Self::Held;
    /// Up to where the worker was about to write, as the state store has it.
    fn intent(&self) -> String;
}

impl Lockable for crate::world::World {
    type Held = rusqlite::Connection;

    fn lock_table(&self) -> rusqlite::Connection {
        let connection = self.database("shop.db");
        connection.execute_batch("BEGIN IMMEDIATE").expect("the lock");
        connection
    }

    fn intent(&self) -> String {
        self.ask_of("hapax-data/state.db", "SELECT max(to_position) FROM hapax_intents")
    }
}

#[cfg(feature = "mysql")]
impl Lockable for crate::mysql::world::Shop {
    type Held = crate::servers::Client<crate::mysql::world::Mysql>;

    fn lock_table(&self) -> Self::Held {
        self.holding("LOCK TABLES orders WRITE")
    }

    fn intent(&self) -> String {
        self.world.ask_of("state.db", "SELECT max(to_position) FROM hapax_intents")
    }
}

#[cfg(feature = "postgres")]
impl Lockable for crate::postgres::world::Shop {
    type Held = crate::servers::Client<crate::postgres::world::Postgres>;

    fn lock_table(&self) -> Self::Held {
        self.holding("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
    }

    fn intent(&self) -> String {
        self.ask("SELECT max(to_position) FROM hapax.intents")
    }
}

#[cfg(feature = "mysql")]
#[test]
fn letters_of_doubt_are_marked_on_mysql() {
    letters_of_doubt_are_marked::<crate::mysql::world::Shop>();
}

#[cfg(feature = "postgres")]
#[test]
fn letters_of_doubt_are_marked_on_postgres() {
    letters_of_doubt_are_marked::<crate::postgres::world::Shop>();
}

#[test]
fn letters_of_doubt_are_marked_on_sqlite() {
    letters_of_doubt_are_marked::<crate::world::World>();
}

/// A worker that was killed while it may have been writing order 2: the table was locked, and its intent saved.
fn killed_in_doubt<P: Lockable>() -> P {
    let place = P::ready();
    let world = place.world();
    place.configure(IN_STATE, AT_MOST_ONCE);
    world.write("orders.jsonl", [order(1, 10), "no json\n".to_owned()].concat());
    let worker = world.start("worker.log", &["run"]);
    let read = || world.status().iter().filter_map(|delivery| delivery["progress"]["read"].as_u64()).sum::<u64>();
    until("both lines are read and saved", || read() == 2);
    let (held, before) = (place.lock_table(), place.intent());
    world.append("orders.jsonl", order(2, 20));
    until("it is about to write", || place.intent() != before);
    drop(worker);
    drop(held);
    world.append("orders.jsonl", order(3, 30));
    place
}

const IN_STATE: &str = "onConflict: append, progress: state";
const AT_MOST_ONCE: &str = "guarantee: at-most-once, maxRejects: 100%";

/// Goal: an input that a killed worker may have sent is a letter that says so, for programs and for people, and one that is
/// only bad does not. Method: a worker that is killed while the table is locked and its intent is saved; the next run.
fn letters_of_doubt_are_marked<P: Lockable>() {
    let place = &killed_in_doubt::<P>();
    let world = place.world();
    world.hapax(&["run", "--once", "--take-over"]).exits(0);
    assert_eq!((place.count("orders"), place.count("orders WHERE id = 2")), (2, 0), "never sent again");
    let deliveries = world.status();
    assert_eq!(number(&deliveries[0]["progress"]["dead"]), 2, "{deliveries:#?}");
    let shown = |id: &str| world.hapax(&["dlq", "show", id, "--json"]).exits(0).json();
    let (bad, doubtful) = (shown("1"), shown("2"));
    assert_eq!((&bad["inDoubt"], &bad["input"]), (&false.into(), &"no json".into()), "{bad:#}");
    assert_eq!((&doubtful["inDoubt"], &doubtful["code"]), (&true.into(), &"HX2040".into()), "{doubtful:#}");
    assert!(doubtful["input"].as_str().is_some_and(|input| input.contains("\"id\":2")), "{doubtful:#}");
    world.hapax(&["dlq", "show", "2"]).exits(0).says(&["HX2040", "in doubt"]);
    world.hapax(&["reconcile"]).exits(0).says(&["adds up"]);
    // Nothing in the table could tell a second row from the first.
    let replay = ["dlq", "replay", "--cause", "HX2040", "--yes"];
    world.hapax(&replay).exits(1).says(&["1 letter(s): in doubt", "a second time", "--in-doubt", "Nothing to replay"]);
    world.hapax(&["dlq", "replay", "--id", "2", "--yes"]).exits(1).says(&["in doubt", "Nothing to replay"]);
    assert_eq!(place.count("orders WHERE id = 2"), 0, "it stays until a person says so");
    world.hapax(&[&replay[..], &["--in-doubt"]].concat()).exits(0).says(&["as --in-doubt allows"]);
    assert_eq!(place.count("orders WHERE id = 2"), 1);
}

#[cfg(feature = "postgres")]
#[test]
fn doubt_survives_what_a_person_does_on_postgres() {
    doubt_survives_what_a_person_does::<crate::postgres::world::Shop>();
}

#[test]
fn doubt_survives_what_a_person_does_on_sqlite() {
    doubt_survives_what_a_person_does::<crate::world::World>();
}

/// Goal: what may have been sent is not sent again because a person accepted what is there, restored the file or gave its lane
/// another name in between. Method: each before the next run.
fn doubt_survives_what_a_person_does<P: Lockable>() {
    for deed in ["accepted", "restored", "moved"] {
        let place = &killed_in_doubt::<P>();
        let world = place.world();
        match deed {
            "accepted" => {
                world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
            }
            "restored" => {
                let bytes = world.read("orders.jsonl");
                world.write("copy", bytes);
                std::fs::rename(world.path("copy"), world.path("orders.jsonl")).expect("restored");
                world.hapax(&["run", "--once", "--take-over"]).exits(5);
                world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
            }
            _ => {
                let lane = |name: &str| world.path(name).to_string_lossy().into_owned();
                std::fs::rename(world.path("orders.jsonl"), world.path("moved.jsonl")).expect("moved");
                world.write("hapax.yaml", world.read("hapax.yaml").replace("orders.jsonl", "moved.jsonl"));
                let (new, old) = (lane("moved.jsonl"), lane("orders.jsonl"));
                let adopt = ["reset", "orders", "--lane", &new, "--adopt-lane", &old, "--yes"];
                world.hapax(&adopt).exits(0);
            }
        }
        world.hapax(&["run", "--once", "--take-over"]).exits(0);
        assert_eq!((place.count("orders"), place.count("orders WHERE id = 2")), (2, 0), "{deed}: never sent again");
        world.hapax(&["dlq", "list"]).exits(0).says(&["HX2040"]);
        world.hapax(&["reconcile"]).exits(0).says(&["adds up"]);
    }
}

/// Goal: a letter in doubt stays so, whatever refuses it: a transform with a slip at the next start, or a replay. Method: both; then the
/// slip is mended, and a plain replay leaves the letter where it is.
#[cfg(feature = "transform")]
#[test]
fn a_slip_takes_no_doubt_away() {
    let with_slip = |world: &crate::world::World| {
        let good = world.read("hapax.yaml");
        world.write("hapax.yaml", good.replace("    sink:", "    transform: '.amount = upcase!(.nothing)'\n    sink:"));
        good
    };
    for at_start in [true, false] {
        let world = killed_in_doubt::<crate::world::World>();
        if at_start {
            let good = with_slip(&world);
            world.hapax(&["run", "--once", "--take-over"]).exits(0);
            world.write("hapax.yaml", good);
        } else {
            world.hapax(&["run", "--once", "--take-over"]).exits(0);
            let good = with_slip(&world);
            let replay = ["dlq", "replay", "--cause", "HX2040", "--in-doubt", "--yes"];
            world.hapax(&replay).exits(1).says(&["1 refused again"]);
            world.write("hapax.yaml", good);
        }
        world.hapax(&["dlq", "show", "2"]).exits(0).says(&["HX2040", "now it cannot be delivered"]);
        world.hapax(&["dlq", "replay", "--yes"]).exits(1).says(&["1 letter(s): in doubt"]);
        assert_eq!(world.ask::<i64>("SELECT count(*) FROM orders WHERE id = 2"), 0, "{at_start}");
    }
}

/// Goal: under at-most-once a replay that is killed between rows and marks doubles nothing: its letters were marked as in
/// doubt first, and stay until a person decides. Method: the table is locked until the letters are in doubt, the state store
/// from then on; the replay is killed once the rows are there.
#[test]
fn a_killed_replay_doubles_nothing_under_at_most_once() {
    let world = crate::world::World::ready();
    let configure = |amount: &str| {
        let sink = format!("onConflict: append, progress: state, columns: {{ amount: {amount} }}");
        world.configure("orders", &sink, "guarantee: at-most-once, maxRejects: 100%");
    };
    configure(".note");
    let bad = |id: u64| format!("{{\"id\":{id},\"amount\":1,\"note\":\"no number\"}}\n");
    world.write("orders.jsonl", (1..=20).map(bad).collect::<String>());
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 0);
    configure(".amount");
    let store = "hapax-data/state.db";
    let held = world.lock_table();
    let replay = world.start("replay.log", &["dlq", "replay", "--yes"]);
    let in_doubt = "SELECT count(*) FROM hapax_dead_letters WHERE code = 'HX2040'";
    until("the letters are in doubt before a row is written", || world.ask_of::<i64>(store, in_doubt) == 20);
    let state = world.database(store);
    state.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    drop(held);
    until("the rows are written", || world.rows() == 20);
    drop(replay);
    drop(state);
    world.hapax(&["dlq", "replay", "--yes"]).exits(1).says(&["20 letter(s): in doubt", "Nothing to replay"]);
    assert_eq!(world.rows(), 20, "nothing is doubled");
    world.hapax(&["dlq", "show", "1"]).exits(0).says(&["HX2040", "a replay was writing it", "HX2020"]);
    world.hapax(&["dlq", "discard", "--cause", "HX2040", "--yes"]).exits(0);
    // Without a kill the same letters are replayed, and one that is refused again keeps the newer reason.
    configure(".note");
    world.append("orders.jsonl", [bad(21), bad(22).replace(":1,", ":\"x\",")].concat());
    world.hapax(&["run", "--once"]).exits(0);
    configure(".amount");
    world.hapax(&["dlq", "replay", "--yes"]).exits(1).says(&["never doubled", "1 replayed", "1 refused again"]);
    assert_eq!(world.rows(), 21);
    let left = world.hapax(&["dlq", "list", "--json"]).exits(0).json();
    assert_eq!(
        (left["causes"][0]["code"].as_str(), left["causes"][0]["count"].as_u64()),
        (Some("HX2020"), Some(1)),
        "{left:#}"
    );
}

/// Goal: a key whose last word is a letter in doubt may be there or not: `reconcile` accepts both and says so, `trace` says that it may
/// have been delivered; what no event explains is a difference all the same. Method: a delete, and an insert after a delete, of a
/// worker that is killed before their position is saved; then the row is put back, taken away, and changed for others.
#[test]
fn a_key_that_ends_in_doubt_is_not_judged() {
    let gone = |id: i64| format!("{{\"id\":{id},\"customer\":\"gone\"}}\n");
    for (first, second) in [(order(1, 1), gone(1)), ([order(1, 1), gone(1)].concat(), order(1, 5))] {
        let world = &crate::world::World::ready();
        let sink = "onConflict: update, progress: state, progressInterval: 1h, deleteWhen: '.customer == \"gone\"'";
        let delivery = "guarantee: at-most-once, maxRejects: 100%, deduplication: { keyFields: [id] }";
        world.configure("orders", sink, delivery);
        world.write("orders.jsonl", [first, order(2, 2)].concat());
        world.hapax(&["run", "--once"]).exits(0);
        let (held, before) = (world.lock_table(), world.intent());
        let there = || world.ask::<i64>("SELECT count(*) FROM orders WHERE id = 1");
        let was = there();
        let worker = world.start("worker.log", &["run"]);
        world.append("orders.jsonl", second);
        until("it is about to write", || world.intent() != before);
        let state = world.database("hapax-data/state.db");
        state.execute_batch("BEGIN IMMEDIATE").expect("the lock");
        drop(held);
        until("it is written", || there() != was);
        drop(worker);
        drop(state);
        world.hapax(&["run", "--once", "--take-over"]).exits(0);
        let unjudged = ["2 keys", "1 of the keys could not be judged", "in doubt", "adds up"];
        world.hapax(&["reconcile"]).exits(0).says(&unjudged);
        let traced = world.hapax(&["trace", "id=1"]);
        traced.exits(0).says(&["verdict      in doubt: it may have been delivered"]);
        world.sql("DELETE FROM orders WHERE id = 1");
        world.hapax(&["reconcile"]).exits(0).says(&unjudged);
        world.sql("INSERT INTO orders (id) VALUES (1)");
        world.hapax(&["reconcile"]).exits(0).says(&unjudged);
        world.sql("DELETE FROM orders WHERE id = 2");
        world.hapax(&["reconcile"]).exits(1).says(&["DIFFERS", "expected a row, found no row"]);
    }
}

/// Goal: what is left out becomes no letter because the write of its neighbours is in doubt, and what was cut at `maxLine` stays a letter that
/// says so: neither is stored as if it had been sent. Method: the target is locked until a write is given up, with progress in both places.
#[cfg(feature = "transform")]
#[test]
fn doubt_makes_letters_only_of_what_was_sent() {
    for progress in ["sink", "state"] {
        let world = gives_up_soon(progress, "transform: 'if .amount == 0 { abort }'");
        let long = format!("{{\"id\":99,\"customer\":\"{}\",\"amount\":1}}\n", "a".repeat(5000));
        let lines: String = (11..=20).map(|id| order(id, id % 2)).collect();
        let worker = in_doubt_in_this_life(&world, &[lines, long].concat());
        until("all is in the ledger", || world.status()[0]["progress"]["read"] == 12);
        worker.terminate();
        worker.ends().exits(0);
        let progress = &world.status()[0]["progress"];
        assert_eq!((number(&progress["filtered"]), number(&progress["dead"])), (5, 6), "{progress:#}");
        let listed = world.hapax(&["dlq", "list", "--json"]).exits(0).json();
        let count = |code: &str| {
            let all = listed["causes"].as_array().expect("a list").iter();
            all.filter(|cause| cause["code"] == code).map(|cause| number(&cause["count"])).sum::<u64>()
        };
        assert_eq!((count("HX2040"), count("HX2003")), (5, 1), "{listed:#}");
        world
            .hapax(&["dlq", "replay", "--cause", "HX2003", "--in-doubt", "--dry-run"])
            .exits(1)
            .says(&["impossible", "only its beginning"]);
    }
}

/// Goal: inputs in doubt stay in the ledger, and who looks is told of them. Method: the target is locked until a write is given up, with
/// progress in both places; then `status`, `reconcile` and the letters.
#[test]
fn inputs_in_doubt_stay_in_the_ledger() {
    for progress in ["sink", "state"] {
        let world = gives_up_soon(progress, "");
        let worker = in_doubt_in_this_life(&world, &[order(2, 20), order(3, 30)].concat());
        until("all is in the ledger", || world.status()[0]["progress"]["read"] == 3);
        worker.terminate();
        worker.ends().exits(0);
        world.accounts_for(3, 2);
        world.hapax(&["dlq", "list"]).exits(0).says(&["HX2040"]);
        let reconciled = world.hapax(&["reconcile"]);
        reconciled.exits(0).says(&["adds up", "3 read, 1 delivered + 0 filtered + 2 dead"]);
        match progress {
            // Progress is beside the rows, and says that they are not there.
            "sink" => reconciled.keeps_silent_about(&["in doubt"]),
            _ => reconciled.says(&["2 of the dead are in doubt, which may have been delivered"]),
        };
    }
}

/// At-most-once with a worker that gives up on a locked table sooner than the table's database does.
fn gives_up_soon(progress: &str, more: &str) -> crate::world::World {
    let world = crate::world::World::ready();
    world.write(
        "hapax.yaml",
        format!(
            "workflows:
  - id: orders
    source: {{ file: {{ path: orders.jsonl, maxLine: 1KiB }} }}
    {more}
    sink: {{ sqlite: {{ path: shop.db, table: orders, onConflict: append, progress: {progress}, busyTimeout: 1s }} }}
    delivery: {{ {AT_MOST_ONCE}, epoch: {{ interval: 500ms, commitTimeout: 300ms }}, retries: {{ backoffMs: [50] }} }}
"
        ),
    );
    world
}

/// A worker that delivered order 1, and then could not know what became of `lines`.
fn in_doubt_in_this_life(world: &crate::world::World, lines: &str) -> crate::world::Worker {
    use crate::schema_change::Place as _;
    world.write("orders.jsonl", order(1, 1));
    let worker = world.start("worker.log", &["run"]);
    until("the first line is delivered", || world.count("orders") == 1);
    let held = world.lock_table();
    world.append("orders.jsonl", lines);
    worker.until_it_says("no answer within 300 ms");
    if world.read("hapax.yaml").contains("progress: sink") {
        // The write that was given up has ended without the lock when the look at progress does.
        worker.until_it_says("HX4003");
    }
    drop(held);
    worker
}
