//! `hapax init` against a live server: the table that it proposes can be made, and is fit.

use super::{Server, Shop, on_every_server};

on_every_server! {
    the_table_that_it_proposes_fits,
    nested_events_fill_the_proposed_table,
    the_proposed_table_takes_what_was_looked_at,
}

/// The `CREATE TABLE` in a text, without what stands before and after it.
fn statement_in(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("# ").trim());
    let lines = lines.skip_while(|line| !line.starts_with("CREATE TABLE"));
    let lines = lines.collect::<Vec<_>>().join("\n");
    lines.split_inclusive(';').next().unwrap_or_default().to_owned()
}

/// Goal: events with objects inside fill every column of the table that `init` proposes, with the file as `init` wrote it;
/// and whoever else proposes a table proposes the same. Method: run, `check --live` and `setup --sql` before the table is
/// there; then make it and deliver.
fn nested_events_fill_the_proposed_table<S: Server>() {
    let shop = Shop::<S>::empty();
    let input: String = (1..=5)
        .map(|id| format!("{{\"id\":{id},\"at\":\"2026-11-16\",\"address\":{{\"city\":\"c{id}\",\"geo\":{{\"lat\":1.5}}}},\"tags\":[1]}}\n"))
        .collect();
    shop.world.write("events.jsonl", input);
    shop.hapax(&["init", "--from", "events.jsonl", "--to", &shop.url(), "--table", "events"]).exits(0);
    let proposed = statement_in(&shop.world.read("hapax.yaml"));
    for words in ["id", "at", "address_city", "address_geo_lat", "tags", "PRIMARY KEY"] {
        assert!(proposed.contains(words), "{words}: {proposed}");
    }
    shop.hapax(&["setup", "--yes"]).exits(0);
    let sql = shop.hapax(&["setup", "--sql"]);
    let after = sql.exits(0).out.split_once("could write to").expect("a table of the user's").1.to_owned();
    assert_eq!(statement_in(&after), proposed);
    for command in [&["check", "--live"][..], &["run", "--once"]] {
        let refused = shop.hapax(command);
        refused.exits(1).says(&["HX4110"]);
        assert_eq!(statement_in(&format!("{}{}", refused.out, refused.err)), proposed, "{command:?}: {refused}");
    }
    shop.sql(&proposed);
    shop.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["fills"]);
    shop.hapax(&["run", "--once"]).exits(0);
    let filled =
        "SELECT concat(count(at), ' ', count(address_city), ' ', count(address_geo_lat), ' ', count(tags)) FROM events";
    assert_eq!(shop.ask(filled), "5 5 5 5");
}

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

/// Goal: texts that begin with a date, whole numbers beyond a bigint, and numbers with many digits are taken by the proposed columns. Method: run
/// the statement, then the file; a column of another type is told before the run.
fn the_proposed_table_takes_what_was_looked_at<S: Server>() {
    let shop = Shop::<S>::empty();
    let line = |id: u64, at: &str| {
        let numbers = format!("\"n\":{},\"f\":0.30000000000000004,\"tiny\":1e-{id}00", u64::MAX);
        format!("{{\"id\":{id},\"msg\":\"2025-05-20 16:27:01 x\",\"at\":\"{at}\",{numbers}}}\n")
    };
    shop.world.write("events.jsonl", [line(1, "2025-05-20 16:27:01"), line(2, "2025-05-20T16:27:01+02:00")].concat());
    shop.hapax(&["init", "--from", "events.jsonl", "--to", &shop.url(), "--table", "events"]).exits(0);
    let proposed = statement_in(&shop.world.read("hapax.yaml"));
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.sql("CREATE TABLE events (id bigint PRIMARY KEY, msg date)");
    let words = ["2 of the first 2 input(s) would be dead letters", "column \"msg\" (date)"];
    shop.hapax(&["check", "--live"]).exits(1).says(&words);
    shop.sql("DROP TABLE events");
    shop.sql(&proposed);
    shop.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["dead letters"]);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.ask("SELECT concat(count(msg), ' ', count(at), ' ', count(n)) FROM events"), "2 2 2");
    assert_eq!(shop.ask("SELECT count(*) FROM events WHERE n = 18446744073709551615 AND tiny > 0"), "2");
    assert_eq!(shop.ask("SELECT count(*) FROM events WHERE f > 0.30000000000000003 AND f < 0.30000000000000005"), "2");
}
