//! A delivery's whole life: setup, check, run, status, dead letters, reset; every guarantee; every place of progress.

use super::world::Shop;
use crate::world::{order, orders};

const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }";

/// Goal: a person gets from nothing to rows, and back. Method: every command in the order in which one needs it.
#[test]
fn from_setup_to_the_second_run() {
    let shop = Shop::new("", KEYED);
    shop.world.write("orders.jsonl", format!("{}not json\n{}", orders(1..=3), order(4, 40)));
    shop.hapax(&["run", "--once"]).exits(1).says(&["hapax setup"]);
    shop.hapax(&["check", "--live"]).says(&["holds", "update", "a run would stop", "hapax setup"]);
    shop.hapax(&["setup", "--yes"]).exits(0).says(&["made: mysql://", shop.database()]);
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
    shop.hapax(&["setup", "--drop", "--yes"]).exits(0).says(&["dropped: mysql://"]);
    assert_eq!(shop.ask("SELECT count(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"), "1");
    assert_eq!(shop.rows(), 5, "the user's own table stays");
}

/// Goal: what `--sql` prints makes all that is needed. Method: run it with another client's eyes, then deliver.
#[test]
fn the_printed_statements_are_enough() {
    let shop = Shop::empty();
    shop.configure("onConflict: update", KEYED);
    let printed = shop.hapax(&["setup", "--sql"]);
    printed.exits(0).says(&["CREATE TABLE IF NOT EXISTS hapax_progress", "GRANT", "CREATE TABLE `orders`", "KILL"]);
    shop.sql(&without_grants(&printed.out));
    shop.world.write("orders.jsonl", "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.rows(), 2);
}

/// The printed text up to the rights, which name a user that the test server need not know.
fn without_grants(printed: &str) -> String {
    let sqlite = printed.find("the state store").and_then(|at| printed[..at].rfind("--")).unwrap_or(printed.len());
    let suggested = printed.find("-- a table that workflow").unwrap_or(printed.len());
    let rights = printed.find("-- rights").unwrap_or(printed.len());
    format!("{}{}", &printed[..sqlite], &printed[suggested..rights])
}

/// Goal: tables of a newer program are refused, by run and by setup. Method: a version of tomorrow.
#[test]
fn newer_tables_are_refused() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=1));
    shop.sql("UPDATE hapax_meta SET value = '999' WHERE name = 'version'");
    for command in [&["run", "--once"][..], &["setup", "--yes"]] {
        shop.hapax(command).exits(1).says(&["HX4015", "999"]);
    }
    assert_eq!(shop.rows(), 0);
}

/// Goal: each guarantee delivers, with progress in the target and in the state store, and without one.
/// Method: every combination that the audit allows; run twice, the second finds nothing new.
#[test]
fn every_guarantee_delivers() {
    let key = "deduplication: { keyFields: [id], unique: true }";
    for (sink, delivery, state) in [
        ("", format!("guarantee: exactly-once, {key}"), "sqlite"),
        ("onConflict: ignore", format!("guarantee: idempotent-keys, {key}"), "sqlite"),
        ("onConflict: append", "guarantee: at-least-once".to_owned(), "none"),
        ("onConflict: append", "guarantee: at-most-once".to_owned(), "sqlite"),
        ("progress: state, onConflict: ignore", format!("guarantee: idempotent-keys, {key}"), "sqlite"),
        ("progress: state, onConflict: append", "guarantee: at-least-once".to_owned(), "sqlite"),
    ] {
        let shop = Shop::new(sink, &delivery);
        if state == "none" {
            let written = shop.world.read("hapax.yaml").replace("state: \"sqlite://state.db\"", "state: none");
            shop.world.write("hapax.yaml", written);
        }
        shop.hapax(&["setup", "--yes"]).exits(0);
        shop.hapax(&["check", "--live"]).exits(0).says(&["holds"]);
        shop.world.write("orders.jsonl", orders(1..=200));
        for _ in 0..2 {
            shop.hapax(&["run", "--once"]).exits(0);
            assert_eq!(shop.rows(), 200, "{sink} {delivery} {state}");
        }
        shop.accounts_for(200, 0);
    }
}

/// Goal: a guarantee that cannot hold is refused as everywhere. Method: two commits and exactly-once.
#[test]
fn a_guarantee_that_cannot_hold_is_refused() {
    let shop = Shop::ready("progress: state", KEYED);
    shop.world.write("orders.jsonl", orders(1..=1));
    shop.hapax(&["check"]).exits(3).says(&["HX1121"]);
    shop.hapax(&["run", "--once"]).exits(3).says(&["HX1121"]);
    assert_eq!(shop.rows(), 0);
}

/// Goal: a letter is mended and replayed, in the target and beside it. Method: a row that does not fit until the table is
/// changed, with progress in both places.
#[test]
fn letters_are_replayed_into_mariadb() {
    for sink in ["", "progress: state, onConflict: ignore"] {
        let guarantee = if sink.is_empty() {
            KEYED
        } else {
            "guarantee: idempotent-keys, deduplication: { keyFields: [id], unique: true }"
        };
        let shop = Shop::ready(sink, guarantee);
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
#[test]
fn a_renamed_workflow_is_adopted() {
    let shop = Shop::ready("onConflict: append", "guarantee: exactly-once");
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["run", "--once"]).exits(0);
    shop.world.write("hapax.yaml", shop.world.read("hapax.yaml").replace("id: orders", "id: renamed"));
    shop.hapax(&["run", "--once"]).exits(5).says(&["HX4017", "--adopt orders"]);
    shop.hapax(&["reset", "renamed", "--adopt", "orders", "--yes"]).exits(0).says(&["1 lane(s) taken over"]);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.rows(), 3);
    shop.accounts_for(3, 0);
}
