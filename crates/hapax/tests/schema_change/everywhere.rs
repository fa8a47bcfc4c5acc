//! Changes that are said and end alike in every database.

use super::{Case, Events, KEYED, Place, adds_up, goes_on, line, stops};
use crate::world::{number, until};

/// Each change as a test in each database.
macro_rules! in_every_database {
    ($($change:ident),+ $(,)?) => {
        #[cfg(feature = "mysql")]
        mod mysql {
            $(#[test] fn $change() { super::$change::<crate::mysql::world::Shop>(); })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[test] fn $change() { super::$change::<crate::postgres::world::Shop>(); })+
        }
        mod sqlite {
            $(#[test] fn $change() { super::$change::<crate::world::World>(); })+
        }
    };
}

in_every_database! {
    a_column_is_added,
    an_added_column_is_filled_by_the_next_event,
    an_added_column_is_filled_by_the_next_event_with_progress_elsewhere,
    a_column_with_a_default_is_added,
    a_column_is_renamed,
    a_column_is_dropped,
    an_unused_column_is_dropped,
}

/// Goal: a new column that events have a value for is filled from some event on, without a gap. Method: ADD COLUMN under a
/// stream of events.
fn a_column_is_added<P: Place>() {
    let place = &P::ready();
    let change = "ALTER TABLE orders ADD COLUMN colour varchar(20)";
    let lines = goes_on(place, &Case { change, events: Events::Plain, effect: "orders WHERE colour = 'red'" });
    assert_eq!((place.count("orders"), place.letters()), (lines, 0));
    assert_eq!(place.count("orders WHERE amount <> id * 10 OR amount IS NULL OR customer <> 'ann'"), 0);
    let gap = "orders WHERE colour IS NULL AND id > (SELECT min(id) FROM orders WHERE colour = 'red')";
    assert_eq!(place.count(gap), 0, "filled without a gap");
}

/// Goal: a new column is filled from the first event that is committed after the change, by a worker that looked at the table
/// before it and by one that takes over. Method: a worker and its standby at rest, ADD COLUMN, one event for each.
fn an_added_column_is_filled_by_the_next_event<P: Place>() {
    filled_by_the_next_event(&P::ready());
}

/// Goal: the same where the position is not beside the rows. Method: `progress: state`.
fn an_added_column_is_filled_by_the_next_event_with_progress_elsewhere<P: Place>() {
    let place = &P::ready();
    let keyed = "guarantee: at-least-once, deduplication: { keyFields: [id] }";
    place.configure("onConflict: update, progress: state", keyed);
    filled_by_the_next_event(place);
}

fn filled_by_the_next_event(place: &impl Place) {
    let (world, red) = (place.world(), "orders WHERE colour = 'red'");
    let feed = |id| world.append("orders.jsonl", line(id, Events::Plain, true));
    feed(1);
    let first = world.start("first.log", &["run"]);
    until("the first row is there", || place.count("orders") == 1);
    let second = world.start("second.log", &["run"]);
    second.until_it_says("standing by");
    place.sql("ALTER TABLE orders ADD COLUMN colour varchar(20)");
    feed(2);
    until("the second row is there", || place.count("orders") == 2);
    assert_eq!(place.count(red), 1, "the first event after the change");
    first.terminate();
    first.ends().exits(0);
    feed(3);
    until("the third row is there", || place.count("orders") == 3);
    assert_eq!(place.count(red), 2, "the first event of the second worker");
    place.sql("ALTER TABLE orders ADD COLUMN shade varchar(20)");
    feed(4);
    until("the fourth row is there", || place.count("orders") == 4);
    assert_eq!(place.count(red), 3, "a column that no event has changes nothing");
    second.terminate();
    second.ends().exits(0);
    let read: u64 = world.status().iter().map(|delivery| number(&delivery["progress"]["read"])).sum();
    assert_eq!((read, place.count("orders")), (4, 4));
}

/// Goal: a new column that must have a value and has a default needs no field. Method: ADD COLUMN under a stream of events.
fn a_column_with_a_default_is_added<P: Place>() {
    let place = &P::ready();
    let change = "ALTER TABLE orders ADD COLUMN state varchar(20) NOT NULL DEFAULT 'new'";
    let lines = goes_on(place, &Case { change, events: Events::Plain, effect: "orders WHERE state = 'new'" });
    assert_eq!(place.count("orders WHERE state = 'new' AND amount = id * 10"), lines);
}

/// Goal: a renamed column does not lose its values silently: the worker stops, and goes on when the new name is mapped.
/// Method: RENAME COLUMN under a stream of events.
fn a_column_is_renamed<P: Place>() {
    let place = &P::ready();
    let case = Case { change: "ALTER TABLE orders RENAME COLUMN amount TO total", events: Events::Plain, effect: "" };
    let words = ["HX4011", "column \"amount\" is gone", ".amount", "columns:"];
    let cure = || place.configure("columns: { total: .amount }", KEYED);
    let lines = stops(place, &case, 1, &words, cure);
    adds_up(place, lines);
    assert_eq!(place.count("orders WHERE total = id * 10"), lines, "no value was lost");
}

/// Goal: a dropped column whose field still comes stops the worker; what it delivers once the column is back has it.
/// Method: DROP COLUMN under a stream of events.
fn a_column_is_dropped<P: Place>() {
    let place = &P::ready();
    let case = Case { change: "ALTER TABLE orders DROP COLUMN amount", events: Events::Plain, effect: "" };
    let mut read = 0;
    let lines = stops(place, &case, 1, &["HX4011", "column \"amount\" is gone"], || {
        read = place.count("orders");
        place.sql("ALTER TABLE orders ADD COLUMN amount bigint");
    });
    adds_up(place, lines);
    assert_eq!(place.count("orders WHERE amount = id * 10"), lines - read, "all that came after the drop");
}

/// Goal: a dropped column that nobody fills is no reason to stop. Method: DROP COLUMN under a stream of events.
fn an_unused_column_is_dropped<P: Place>() {
    let place = &P::ready();
    place.sql("ALTER TABLE orders ADD COLUMN legacy varchar(9)");
    let change = "ALTER TABLE orders DROP COLUMN legacy";
    let lines = goes_on(place, &Case { change, events: Events::Plain, effect: "orders" });
    assert_eq!(place.count("orders WHERE amount = id * 10"), lines);
}
