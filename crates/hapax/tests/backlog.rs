//! A backlog with epochs as they are by default, and a worker that is killed all the time.

use std::time::{Duration, Instant};

use crate::schema_change::Place;
use crate::world::{World, number, orders, until};

/// How many lines wait.
const LINES: u64 = 60_000;
/// Every life begins with epochs of so many events.
const FIRST_EPOCH: u64 = 1_000;
/// How long a life is at first; those that come to nothing make it longer.
const LIFE: Duration = Duration::from_millis(300);
/// A life of which nothing comes, however long: then it is not the machine.
const LONGEST_LIFE: Duration = Duration::from_secs(120);

#[test]
fn a_worker_that_is_killed_all_the_time_gets_on_sqlite() {
    a_worker_that_is_killed_all_the_time_gets_on::<World>("hapax_epochs", "INTEGER");
}

#[cfg(feature = "mysql")]
#[test]
fn a_worker_that_is_killed_all_the_time_gets_on_mysql() {
    a_worker_that_is_killed_all_the_time_gets_on::<crate::mysql::world::Shop>("hapax_epochs", "bigint");
}

#[cfg(feature = "postgres")]
#[test]
fn a_worker_that_is_killed_all_the_time_gets_on_postgres() {
    a_worker_that_is_killed_all_the_time_gets_on::<crate::postgres::world::Shop>("hapax.epochs", "bigint");
}

/// Goal: a worker that never lives long comes to the end of a backlog with default epochs, and nothing is lost or doubled: each life
/// begins with small epochs, however large those of the last one were. Method: SIGKILL once the first rows are there, then after
/// a third of a second and more; a life without progress makes the next one longer.
fn a_worker_that_is_killed_all_the_time_gets_on<P: Place>(epochs: &str, integer: &str) {
    let place = &P::ready();
    let world = place.world();
    place.sql(&format!("DROP TABLE orders; CREATE TABLE orders (id {integer}, customer TEXT, amount {integer})"));
    place.configure("onConflict: append", "guarantee: exactly-once");
    let text = world.read("hapax.yaml");
    let by_default = text.replace("epoch: { interval: 20ms }, ", "");
    assert_ne!(text, by_default, "epochs are as they are by default");
    world.write("hapax.yaml", by_default);
    world.write("orders.jsonl", orders(1..=60_000));
    let (mut life, mut read, mut lives) = (LIFE, 0, 0);
    while read < LINES {
        lives += 1;
        let mut worker = world.start("worker.log", &["run", "--once", "--take-over"]);
        worker.until_it_says("claimed");
        if lives == 1 {
            until("the first rows are there", || place.count("orders") > 0);
        } else {
            let begun = Instant::now();
            while begun.elapsed() < life && worker.is_alive() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        drop(worker);
        let progress = || number(&world.status()[0]["progress"]["read"]);
        // A server may still commit what the worker sent last.
        until("rows and progress are one", || place.count("orders") == progress());
        let now = progress();
        assert!(now >= read, "progress went back from {read} to {now}");
        if now == read {
            life *= 2;
            assert!(life < LONGEST_LIFE, "no life made progress beyond {read}: {}", world.read("worker.log"));
        }
        read = now;
    }
    assert!(lives > 1, "it was killed at least once");
    world.hapax(&["run", "--once", "--take-over"]).exits(0);
    assert_eq!((place.count("orders"), place.count("(SELECT DISTINCT id FROM orders) AS once")), (LINES, LINES));
    world.accounts_for(LINES, 0);
    world.hapax(&["reconcile"]).exits(0).says(&["verdict  adds up"]);
    let begins = format!("SELECT min(epoch) FROM {epochs} GROUP BY generation");
    // To MySQL a bare `read` is a word of its own.
    let largest = place.ask(&format!("SELECT max(log.read) FROM {epochs} AS log WHERE epoch IN ({begins})"));
    let largest: u64 = largest.parse().expect("a number");
    assert!(largest <= FIRST_EPOCH, "a life began with an epoch of {largest}");
}
