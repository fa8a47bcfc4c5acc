//! `hapax init` against a live server: the table that it proposes can be made, and is fit.

use super::{Server, Shop, on_every_server};

on_every_server! { the_table_that_it_proposes_fits }

/// Goal: the proposed table fits. Method: run its statement, then the file.
fn the_table_that_it_proposes_fits<S: Server>() {
    let shop = Shop::<S>::empty();
    let input =
        "{\"id\":\"0c9e7a52-0000-4000-8000-000000000001\",\"n\":1.5,\"tags\":[1,2],\"at\":\"2026-11-16T03:25:42Z\"}\n";
    shop.world.write("events.jsonl", input);
    let arguments = ["init", "--from", "events.jsonl", "--to", &shop.url(), "--table", "events"];
    shop.hapax(&arguments).exits(0).says(&["There is no table events yet"]);
    let text = shop.world.read("hapax.yaml");
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("#   "));
    let statement: Vec<_> = lines.skip_while(|line| !line.starts_with("CREATE TABLE")).collect();
    shop.sql(&statement.join("\n"));
    shop.hapax(&[&arguments[..], &["--force"]].concat()).exits(0).says(&["primary key id"]);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.hapax(&["check", "--live"]).exits(0);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.ask("SELECT replace(concat(tags), ' ', '') FROM events WHERE n = 1.5"), "[1,2]");
}
