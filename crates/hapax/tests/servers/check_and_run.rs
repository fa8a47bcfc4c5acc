//! `hapax check --live` beside `hapax run --once` on a server: the same code, and the check changes nothing.

use super::{Server, Shop, on_every_server};
use crate::world::{KEYED, orders};

on_every_server! {
    a_check_agrees_with_a_run,
    a_table_in_another_case_is_named,
    a_table_behind_two_addresses_is_one_table,
}

const BAD: &str = "{\"id\":4,\"amount\":\"many\"}\n";

/// A shop with two orders that are not delivered yet.
fn fresh<S: Server>(sink: &str, delivery: &str) -> Shop<S> {
    let shop = Shop::<S>::ready(sink, delivery);
    shop.world.write("orders.jsonl", orders(1..=2));
    shop
}

/// The same after a delivery.
fn delivered<S: Server>(sink: &str, delivery: &str) -> Shop<S> {
    let shop = fresh(sink, delivery);
    shop.hapax(&["run", "--once"]).exits(0);
    shop
}

fn with<S: Server>(shop: Shop<S>, change: impl FnOnce(&Shop<S>)) -> Shop<S> {
    change(&shop);
    shop
}

/// All that the database holds of tables, triggers and progress.
fn contents<S: Server>(shop: &Shop<S>) -> Vec<String> {
    // A database is a schema to MySQL, and a catalogue to PostgreSQL.
    let database = shop.database();
    let count = |what: &str, of: &str| {
        let here = format!("{of}_schema = '{database}' OR {of}_catalog = '{database}'");
        shop.ask(&format!("SELECT count(*) FROM information_schema.{what} WHERE {here}"))
    };
    let own = |what: &str, table: &str| shop.ask(&format!("SELECT {what} FROM {}", S::own(table)));
    let left = shop.ask(S::LEFT_OF_HAPAX);
    let mut found = vec![count("triggers", "trigger"), count("columns", "table")];
    if left.parse::<i64>().expect("a number") > 0 {
        found.extend([own("sum(generation)", "progress"), own("count(*)", "epochs"), own("count(*)", "dead_letters")]);
    }
    found.push(left);
    found
}

/// Goal: check and run agree about a server, and the check changes nothing there. Method: tables, progress and dead letters of
/// every kind; each looked at, then run.
fn a_check_agrees_with_a_run<S: Server>() {
    let stop = format!("{KEYED}, onReject: stop");
    let append = "onConflict: append, progress: state";
    let situations: [(&str, i32, Shop<S>); 9] = [
        ("a table that fits", 0, fresh("", KEYED)),
        ("delivered", 0, delivered("", KEYED)),
        ("without our tables", 1, {
            let shop = Shop::<S>::new("", KEYED);
            with(shop, |shop| shop.world.write("orders.jsonl", orders(1..=2)))
        }),
        ("no table", 1, with(fresh("", KEYED), |shop| shop.sql("DROP TABLE orders"))),
        ("a table that was made again", 5, {
            with(delivered("", KEYED), |shop| {
                shop.sql("DROP TABLE orders");
                shop.sql(S::ORDERS);
            })
        }),
        ("one dead letter, and onReject: stop", 1, {
            with(delivered("", &stop), |shop| shop.world.append("orders.jsonl", BAD))
        }),
        ("a file rewritten in place", 5, {
            with(delivered("", KEYED), |shop| shop.world.write("orders.jsonl", orders(7..=9)))
        }),
        ("a renamed workflow", 5, with(delivered("", KEYED), |shop| shop.reconfigure("id: orders", "id: sales"))),
        ("a guarantee that is refused, without its table", 3, {
            with(fresh(append, "guarantee: exactly-once"), |shop| shop.sql("DROP TABLE orders"))
        }),
    ];
    let mut wrong = Vec::new();
    for (name, code, shop) in &situations {
        let before = (contents(shop), crate::check_and_run::bytes_of(&shop.world.path("")));
        let check = shop.hapax(&["check", "--live"]);
        let after = (contents(shop), crate::check_and_run::bytes_of(&shop.world.path("")));
        let run = shop.hapax(&["run", "--once"]);
        let changed = crate::check_and_run::changed(&before.1, &after.1);
        if (check.code, run.code) != (*code, *code) || before.0 != after.0 || !changed.is_empty() {
            wrong.push(format!(
                "== {name}: both should end with {code}; was {:?}, is {:?}, the check changed {changed:?}\n-- check: {check}\n-- run: {run}",
                before.0, after.0
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Goal: where only the case of a table's name is wrong, the table that is there is named. Method: the name with a capital.
fn a_table_in_another_case_is_named<S: Server>() {
    let shop = fresh::<S>("", KEYED);
    shop.reconfigure("table: orders", "table: Orders");
    let words = ["HX4110", "did you mean \"orders\", which is there?", "CREATE TABLE"];
    shop.hapax(&["check", "--live"]).exits(1).says(&words);
    shop.hapax(&["run", "--once"]).exits(1).says(&words);
}

/// Goal: two workflows that write into one table are told so, also where they reach it by two addresses, which only a look at the
/// server can tell. Method: the same address with and without `--live`; another name of the same machine; another table.
fn a_table_behind_two_addresses_is_one_table<S: Server>() {
    let shop = fresh::<S>("", KEYED);
    shop.sql(&S::ORDERS.replace("orders", "others"));
    shop.world.write("more.jsonl", orders(3..=4));
    let text = shop.world.read("hapax.yaml");
    let (_, workflow) = text.split_once("workflows:\n").expect("workflows");
    let second = workflow.replace("id: orders", "id: more").replace("orders.jsonl", "more.jsonl");
    let notes = ["more → ", "orders → ", "writes too", "have no order between them"];
    for (second, without_a_look, with_one) in [
        (second.clone(), true, true),
        (second.replace("127.0.0.1", "localhost"), false, true),
        (second.replace("table: orders", "table: others"), false, false),
    ] {
        shop.world.write("hapax.yaml", format!("{text}{second}"));
        for (command, told) in [(&["check"][..], without_a_look), (&["check", "--live"], with_one)] {
            let answer = shop.hapax(command);
            answer.exits(0);
            match told {
                true => answer.says(&notes),
                false => answer.keeps_silent_about(&notes[2..]),
            };
        }
    }
}
