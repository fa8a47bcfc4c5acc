//! Dead letters of workflows that another configuration has, in the same database.

use super::{Server, Shop, on_every_server};
use crate::world::{KEYED, order};

on_every_server! {
    letters_of_others_beside_the_rows_are_touched_only_with_all,
    letters_of_others_in_a_shared_state_store_are_touched_only_with_all,
    letters_are_not_replayed_into_another_table,
}

/// Goal: letters go into the table that their delivery writes to, and no other: such a replay counted them as delivered. Method:
/// a letter of one table; another one under `table`, and one made anew, with progress in both places; then the first again.
fn letters_are_not_replayed_into_another_table<S: Server>() {
    let elsewhere = "guarantee: idempotent-keys, deduplication: { keyFields: [id], unique: true }";
    for (sink, delivery) in [("", KEYED), ("progress: state, onConflict: ignore", elsewhere)] {
        let shop = Shop::<S>::ready(sink, delivery);
        shop.sql("ALTER TABLE orders ADD CONSTRAINT small CHECK (amount < 100)");
        shop.world.write("orders.jsonl", [order(1, 10), order(2, 200)].concat());
        shop.hapax(&["run", "--once"]).exits(0);
        shop.accounts_for(2, 1);
        shop.sql("ALTER TABLE orders DROP CONSTRAINT small");
        shop.sql(&S::ORDERS.replace("orders", "others"));
        shop.reconfigure("table: orders", "table: others");
        shop.hapax(&["check", "--live"]).exits(5).says(&["HX4012"]);
        for how in ["--dry-run", "--yes"] {
            let refused = shop.hapax(&["dlq", "replay", "--overwrite", how]);
            refused.exits(5).says(&["HX4012", "hapax reset orders --accept"]).keeps_silent_about(&["safe"]);
        }
        assert_eq!(shop.ask("SELECT count(*) FROM others"), "0");
        shop.reconfigure("table: others", "table: orders");
        shop.hapax(&["dlq", "replay", "--overwrite", "--yes"]).exits(0).says(&["1 replayed"]);
        assert_eq!(shop.amounts(), "1:10 2:200");
        shop.accounts_for(2, 1);
    }
}

/// Workflows `orders` and `others`, one after the other from a configuration of its own, with a letter each; the configuration
/// of `others` is left.
fn two_owners<S: Server>(sink: &str, delivery: &str) -> Shop<S> {
    let shop = Shop::<S>::ready(sink, delivery);
    shop.sql(&S::ORDERS.replace("orders", "others"));
    for workflow in ["orders", "others"] {
        if workflow == "others" {
            let text = shop.world.read("hapax.yaml");
            let renamed =
                [("id: ", ""), ("path: ", ".jsonl"), ("table: ", ",")].iter().fold(text, |text, (before, after)| {
                    text.replace(&format!("{before}orders{after}"), &format!("{before}others{after}"))
                });
            shop.world.write("hapax.yaml", renamed);
        }
        shop.sql(&format!("ALTER TABLE {workflow} ADD CONSTRAINT {workflow}_small CHECK (amount < 100)"));
        shop.world.write(&format!("{workflow}.jsonl"), [order(1, 10), order(2, 200), order(3, 30)].concat());
        shop.hapax(&["run", "--once"]).exits(0);
        assert_eq!(shop.ask(&format!("SELECT count(*) FROM {workflow}")), "2");
    }
    shop
}

/// Where the letters are.
#[derive(Clone, Copy)]
enum Letters {
    BesideTheRows,
    InTheStateStore,
}

/// `workflow:state` of each letter.
fn by_owner<S: Server>(shop: &Shop<S>, letters: Letters) -> String {
    match letters {
        Letters::InTheStateStore if S::state_beside(&shop.url()).starts_with("sqlite") => shop.world.ask_of(
            "state.db",
            "SELECT group_concat(workflow || ':' || state, ' ') FROM (SELECT * FROM hapax_dead_letters ORDER BY id)",
        ),
        Letters::BesideTheRows | Letters::InTheStateStore => {
            let each = S::in_one_line("concat(workflow, ':', state)", "id");
            shop.ask(&format!("SELECT {each} FROM {}", S::own("dead_letters")))
        }
    }
}

fn touched_only_with_all<S: Server>(shop: &Shop<S>, letters: Letters) {
    let (ours, theirs) = (format!("others/{}", S::KIND), format!("orders/{}", S::KIND));
    assert_eq!(by_owner(shop, letters), "orders:dead others:dead");
    let listed = shop.hapax(&["dlq", "list"]);
    listed.exits(0).says(&[&ours, "1 more letter(s)", "--all"]).keeps_silent_about(&[&theirs]);
    shop.hapax(&["dlq", "list", "--all"]).exits(0).says(&[&ours, &theirs]);
    shop.hapax(&["dlq", "show", "1"]).exits(2).says(&["HX5007", &format!("belongs to {theirs}"), "--all"]);
    shop.hapax(&["dlq", "discard", "--workflow", "orders", "--yes"]).exits(2).says(&["HX5001"]);
    shop.hapax(&["dlq", "discard", "--id", "1", "--yes"]).exits(0).says(&["No dead letters to discard"]);
    assert_eq!(by_owner(shop, letters), "orders:dead others:dead");
    shop.hapax(&["dlq", "discard", "--yes"])
        .exits(0)
        .says(&[&format!("1 letter(s) of {ours}"), "1 letter(s) discarded"]);
    assert_eq!(by_owner(shop, letters), "orders:dead others:discarded");
    // Without an answer there is a list, and nothing is done.
    shop.hapax(&["dlq", "discard", "--all"]).exits(2).says(&[&format!("1 letter(s) of {theirs}"), "--yes"]);
    shop.hapax(&["dlq", "discard", "--all", "--dry-run"]).exits(0).says(&[&format!("1 letter(s) of {theirs}")]);
    assert_eq!(by_owner(shop, letters), "orders:dead others:discarded");
    let all = shop.hapax(&["dlq", "discard", "--all", "--yes"]);
    all.exits(0).says(&[&format!("1 letter(s) of {theirs}"), "1 letter(s) discarded"]);
    assert_eq!(by_owner(shop, letters), "orders:discarded others:discarded");
}

/// Goal: `dlq` reaches only letters of workflows that are in the configuration; more only with `--all`, after a list. Method:
/// the letters of two configurations in one target.
fn letters_of_others_beside_the_rows_are_touched_only_with_all<S: Server>() {
    let shop = two_owners::<S>("onConflict: append", "guarantee: exactly-once");
    touched_only_with_all(&shop, Letters::BesideTheRows);
}

/// Goal: the same where the letters are in a state store that two configurations share. Method: `progress: state`.
fn letters_of_others_in_a_shared_state_store_are_touched_only_with_all<S: Server>() {
    let shop = two_owners::<S>("onConflict: append, progress: state", "guarantee: at-least-once");
    touched_only_with_all(&shop, Letters::InTheStateStore);
}
