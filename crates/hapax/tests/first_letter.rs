//! A file that is empty when its worker begins learns what it is with its first record: letters of that very epoch belong
//! to the same file as the rest, in every database and with either place of progress.

use crate::schema_change::Place;
use crate::world::{order, until};

/// Makes the table, and mends it: an amount of 5,000 is refused in between.
struct Table {
    made: &'static str,
    mended: &'static str,
}

/// Each database, with progress beside the rows and elsewhere.
macro_rules! in_every_database {
    ($($database:ident: $place:ty, $table:expr;)+) => {
        $(mod $database {
            use super::Table;

            #[test]
            fn its_letter_is_replayed_under_its_own_key() {
                super::a_letter_of_the_first_epoch_is_replayed_under_its_own_key::<$place>(&$table, "");
            }

            #[test]
            fn its_letter_in_the_state_store_is_replayed_under_its_own_key() {
                let elsewhere = ", progress: state";
                super::a_letter_of_the_first_epoch_is_replayed_under_its_own_key::<$place>(&$table, elsewhere);
            }
        })+
    };
}

in_every_database! {
    sqlite: crate::world::World, Table {
        made: "CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER, k BLOB NOT NULL UNIQUE); \
               CREATE TRIGGER small BEFORE INSERT ON orders WHEN new.amount > 1000 BEGIN SELECT RAISE(ABORT, 'large'); END",
        mended: "DROP TRIGGER small",
    };
}
#[cfg(feature = "postgres")]
in_every_database! {
    postgres: crate::postgres::world::Shop, Table {
        made: "CREATE TABLE orders (id int, customer text, amount int CONSTRAINT small CHECK (amount < 1000), \
               k bytea NOT NULL UNIQUE)",
        mended: "ALTER TABLE orders DROP CONSTRAINT small",
    };
}
#[cfg(feature = "mysql")]
in_every_database! {
    mysql: crate::mysql::world::Shop, Table {
        made: "CREATE TABLE orders (id int, customer varchar(200), amount int, k binary(16) NOT NULL UNIQUE, \
               CONSTRAINT small CHECK (amount < 1000))",
        mended: "ALTER TABLE orders DROP CONSTRAINT small",
    };
}

/// Goal: a letter of the epoch in which a file got its first record carries the incarnation that its input had: `dlq replay`
/// gives it the key that reading it again gives, which `reconcile --deep` then finds. Method: keys made of positions; a
/// worker on an empty file, then three lines of which the table refuses one; mend, replay, compare.
fn a_letter_of_the_first_epoch_is_replayed_under_its_own_key<P: Place>(table: &Table, progress: &str) {
    let place = &P::ready();
    let world = place.world();
    place.sql(&format!("DROP TABLE orders; {}", table.made));
    let keyed = "guarantee: idempotent-keys, deduplication: { strategy: source-offset }, maxRejects: 100%";
    place.configure(&format!("onConflict: ignore, keyColumn: k{progress}"), keyed);
    world.write("orders.jsonl", "");
    let worker = world.start("worker.log", &["run"]);
    worker.until_it_says("claimed");
    world.append("orders.jsonl", [order(1, 10), order(2, 5_000), order(3, 30)].concat());
    until("two rows are there", || place.count("orders") == 2);
    worker.terminate();
    worker.ends().exits(0);
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["verdict  adds up"]);
    place.sql(table.mended);
    world.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["1 replayed"]);
    assert_eq!(place.count("orders"), 3);
    let answer = world.hapax(&["reconcile", "--deep"]);
    answer.exits(0).says(&["3 keys of 3 inputs", "verdict  adds up"]);
}
