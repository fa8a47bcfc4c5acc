//! `progress: state`: the position of what was delivered is saved within `progressInterval`, whether or not more comes.

use crate::schema_change::Place;
use crate::world::{number, order, until};

/// Each database, with the state store that its shop has.
macro_rules! in_every_database {
    ($($behaviour:ident),+ $(,)?) => {
        #[cfg(feature = "mysql")]
        mod mysql {
            $(#[test] fn $behaviour() { super::$behaviour::<crate::mysql::world::Shop>(); })+
        }
        #[cfg(feature = "postgres")]
        mod postgres {
            $(#[test] fn $behaviour() { super::$behaviour::<crate::postgres::world::Shop>(); })+
        }
        mod sqlite {
            $(#[test] fn $behaviour() { super::$behaviour::<crate::world::World>(); })+
        }
    };
}

in_every_database! {
    a_quiet_lane_saves_its_position,
    a_drained_lane_saves_its_position,
}

fn shop<P: Place>(interval: &str) -> P {
    let place = P::ready();
    let sink = format!("onConflict: update, progress: state, progressInterval: {interval}");
    place.configure(&sink, "guarantee: at-least-once, deduplication: { keyFields: [id] }");
    place
}

fn read(place: &impl Place) -> u64 {
    let counted = |delivery: &serde_json::Value| delivery["progress"]["read"].as_u64().unwrap_or(0);
    place.world().status().iter().map(counted).sum()
}

/// Goal: what was delivered last is saved though nothing comes after it, so that a kill repeats none of it. Method: two lines,
/// one after the other; the stored position; a kill, and a run that reads nothing again.
fn a_quiet_lane_saves_its_position<P: Place>() {
    let place = &shop::<P>("1s");
    let world = place.world();
    let worker = world.start("worker.log", &["run"]);
    for id in 1..=2 {
        world.append("orders.jsonl", order(id, 10));
        until("its row is there", || place.count("orders") == id as u64);
    }
    until("both are saved", || read(place) == 2);
    drop(worker);
    place.sql("UPDATE orders SET amount = 0");
    world.hapax(&["run", "--once", "--take-over"]).exits(0);
    assert_eq!((read(place), place.count("orders WHERE amount = 0")), (2, 2), "none of them came again");
}

/// Goal: a lane that drains saves its position however long the interval is. Method: SIGTERM long before the interval ends.
fn a_drained_lane_saves_its_position<P: Place>() {
    let place = &shop::<P>("10m");
    let world = place.world();
    world.write("orders.jsonl", order(1, 10));
    let worker = world.start("worker.log", &["run"]);
    until("its row is there", || place.count("orders") == 1);
    assert_eq!(read(place), 0, "not saved yet");
    worker.terminate();
    worker.ends().exits(0);
    let deliveries = world.status();
    assert_eq!(number(&deliveries[0]["progress"]["read"]), 1, "{deliveries:#?}");
}
