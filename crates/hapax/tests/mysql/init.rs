//! `hapax init` against a live server of MySQL or MariaDB: what it writes passes `check --live` and runs; the password is not in it.

use super::world::Shop;

/// Goal: the file runs, with the key of the table. Method: a table with types, from CSV.
#[test]
fn a_configuration_for_mysql_runs() {
    let shop = Shop::empty();
    shop.sql("CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(100) NOT NULL, paid boolean, made date, at datetime DEFAULT now())");
    shop.world.write("orders.csv", "id,customer,paid,made,Extra\n1,ann,t,2026-11-16,x\n2,bob,f,,y\n");
    let answer = shop.hapax(&["init", "--from", "orders.csv", "--to", &shop.url(), "--table", "orders"]);
    answer.exits(0).says(&["primary key id", "hapax setup"]);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.hapax(&["check", "--live"]).exits(0).says(&["exactly-once"]);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(
        shop.ask("SELECT group_concat(id, customer, paid, coalesce(made, '-') ORDER BY id SEPARATOR ' ') FROM orders"),
        "1ann12026-11-16 2bob0-"
    );
}

/// Goal: the proposed table fits. Method: run its statement, then the file.
#[test]
fn the_table_that_it_proposes_for_mysql_fits() {
    let shop = Shop::empty();
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
    assert_eq!(shop.ask("SELECT concat(n + 0, ' ', json_extract(tags, '$[1]')) FROM events"), "1.500000000 2");
}
