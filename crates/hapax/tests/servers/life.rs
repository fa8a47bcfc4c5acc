//! A delivery's whole life: setup, check, run, status, dead letters, reset; every guarantee; every place of progress.

use super::{Server, Shop, on_every_server};
use crate::world::{KEYED, order, orders};

on_every_server! {
    from_setup_to_the_second_run,
    newer_tables_are_refused,
    every_guarantee_delivers,
    a_guarantee_that_cannot_hold_is_refused,
    letters_are_replayed,
    a_renamed_workflow_is_adopted,
}

/// Goal: a person gets from nothing to rows, and back. Method: every command in the order in which one needs it.
fn from_setup_to_the_second_run<S: Server>() {
    let shop = Shop::<S>::new("", KEYED);
    shop.world.write("orders.jsonl", format!("{}not json\n{}", orders(1..=3), order(4, 40)));
    shop.hapax(&["run", "--once"]).exits(1).says(&["hapax setup"]);
    shop.hapax(&["check", "--live"]).exits(1).says(&["holds", "update", "a run would stop", "hapax setup"]);
    shop.hapax(&["setup", "--yes"]).exits(0).says(&[&format!("made: {}://", S::KIND), shop.database()]);
    let again = shop.hapax(&["setup", "--yes"]);
    again.exits(0).says(&[&format!("there already: {}://", S::KIND)]).keeps_silent_about(&["made: "]);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.hapax(&["check", "--live"]).exits(0).says(&["holds"]).keeps_silent_about(&["would stop"]);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 2:20 3:30 4:40");
    shop.accounts_for(5, 1);
    let causes = shop.causes();
    assert_eq!((causes.len(), causes[0].0.as_str(), causes[0].1), (1, "HX2001", 1), "{causes:?}");
    shop.hapax(&["dlq", "show", "1"]).exits(0).says(&["not json", "HX2001"]);
    shop.hapax(&["dlq", "replay", "--overwrite", "--yes"]).exits(1).says(&["1 refused again"]);
    shop.hapax(&["dlq", "discard", "--yes"]).exits(0).says(&["1 letter(s) discarded"]);
    shop.hapax(&["reset", "orders", "--to", "earliest", "--yes"]).exits(0).says(&["now at 0"]);
    shop.world.append("orders.jsonl", order(5, 50));
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 2:20 3:30 4:40 5:50");
    shop.hapax(&["setup", "--drop", "--yes"]).exits(0).says(&[&format!("dropped: {}://", S::KIND)]);
    assert_eq!(shop.ask(S::LEFT_OF_HAPAX), "0");
    assert_eq!(shop.rows(), 5, "the user's own table stays");
}

/// Goal: tables of a newer program are refused, by run and by setup. Method: a version of tomorrow.
fn newer_tables_are_refused<S: Server>() {
    let shop = Shop::<S>::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=1));
    shop.sql(&format!("UPDATE {} SET value = '999' WHERE name = 'version'", S::own("meta")));
    for command in [&["run", "--once"][..], &["setup", "--yes"]] {
        shop.hapax(command).exits(1).says(&["HX4015", "999"]);
    }
    assert_eq!(shop.rows(), 0);
}

/// Goal: each guarantee delivers, with progress in the target and in the state store, with either state store, and
/// without one. Method: every combination that the audit allows; run twice, the second finds nothing new.
fn every_guarantee_delivers<S: Server>() {
    let key = "deduplication: { keyFields: [id], unique: true }";
    let (usual, in_a_file, none) = ("", "sqlite://state.db", "none");
    for (sink, delivery, state) in [
        ("", format!("guarantee: exactly-once, {key}"), usual),
        ("", format!("guarantee: idempotent-keys, {key}"), in_a_file),
        ("onConflict: ignore", format!("guarantee: idempotent-keys, {key}"), usual),
        ("onConflict: append", "guarantee: at-least-once".to_owned(), none),
        ("onConflict: append", "guarantee: at-most-once".to_owned(), usual),
        ("progress: state, onConflict: ignore", format!("guarantee: idempotent-keys, {key}"), usual),
        ("progress: state, onConflict: ignore", format!("guarantee: idempotent-keys, {key}"), in_a_file),
        ("progress: state, onConflict: append", "guarantee: at-least-once".to_owned(), usual),
    ] {
        let shop = Shop::<S>::new(sink, &delivery);
        if state != usual {
            shop.keep_state_in(state);
        }
        shop.hapax(&["setup", "--yes"]).exits(0);
        shop.world.write("orders.jsonl", orders(1..=200));
        shop.hapax(&["check", "--live"]).exits(0).says(&["holds"]);
        for _ in 0..2 {
            shop.hapax(&["run", "--once"]).exits(0);
            assert_eq!(shop.rows(), 200, "{sink} {delivery} {state}");
        }
        shop.accounts_for(200, 0);
    }
}

/// Goal: a guarantee that cannot hold is refused as everywhere. Method: two commits and exactly-once.
fn a_guarantee_that_cannot_hold_is_refused<S: Server>() {
    let shop = Shop::<S>::ready("progress: state", KEYED);
    shop.world.write("orders.jsonl", orders(1..=1));
    shop.hapax(&["check"]).exits(3).says(&["HX1121"]);
    shop.hapax(&["run", "--once"]).exits(3).says(&["HX1121"]);
    assert_eq!(shop.rows(), 0);
}

/// Goal: a letter is mended and replayed, in the target and beside it. Method: a row that does not fit until the table is
/// changed, with progress in both places.
fn letters_are_replayed<S: Server>() {
    for sink in ["", "progress: state, onConflict: ignore"] {
        let guarantee = if sink.is_empty() {
            KEYED
        } else {
            "guarantee: idempotent-keys, deduplication: { keyFields: [id], unique: true }"
        };
        let shop = Shop::<S>::ready(sink, guarantee);
        shop.sql("ALTER TABLE orders ADD CONSTRAINT small CHECK (amount < 100)");
        shop.world.write("orders.jsonl", orders(9..=11));
        shop.hapax(&["run", "--once"]).exits(0);
        assert_eq!(shop.amounts(), "9:90");
        shop.accounts_for(3, 2);
        shop.sql("ALTER TABLE orders DROP CONSTRAINT small");
        shop.hapax(&["dlq", "replay", "--overwrite", "--yes"]).exits(0).says(&["2 replayed"]);
        assert_eq!(shop.amounts(), "9:90 10:100 11:110");
        shop.hapax(&["dlq", "list"]).exits(0).says(&["No dead letters"]);
        shop.accounts_for(3, 2);
    }
}

/// Goal: a renamed workflow keeps its progress, and its old name is fenced. Method: rename, adopt, run.
fn a_renamed_workflow_is_adopted<S: Server>() {
    let shop = Shop::<S>::ready("onConflict: append", "guarantee: exactly-once");
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["run", "--once"]).exits(0);
    shop.reconfigure("id: orders", "id: renamed");
    shop.hapax(&["run", "--once"]).exits(5).says(&["HX4017", "--adopt orders"]);
    shop.hapax(&["reset", "renamed", "--adopt", "orders", "--yes"]).exits(0).says(&["1 lane(s) taken over"]);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.rows(), 3);
    shop.accounts_for(3, 0);
}
