//! `hapax init` against a live server of MySQL or MariaDB: what it writes passes `check --live` and runs.

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

/// Goal: the proposed table takes every character whatever the database's default is, and `check --live` names columns
/// that do not. Method: a database of latin1; the proposed statement, then a table without a character set of its own.
#[test]
fn a_proposed_table_takes_every_character() {
    let shop = Shop::empty();
    shop.sql(
        "SET @sql = concat('ALTER DATABASE `', database(), '` CHARACTER SET latin1'); PREPARE s FROM @sql; EXECUTE s",
    );
    shop.world.write("people.jsonl", "{\"id\":1,\"name\":\"陳昌倬\"}\n{\"id\":2,\"name\":\"😀\"}\n");
    shop.hapax(&["init", "--from", "people.jsonl", "--to", &shop.url(), "--table", "people", "--key", "id"]).exits(0);
    let text = shop.world.read("hapax.yaml");
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("#   "));
    let statement: Vec<_> = lines.skip_while(|line| !line.starts_with("CREATE TABLE")).collect();
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.sql("CREATE TABLE people (id bigint PRIMARY KEY, name longtext)");
    shop.hapax(&["check", "--live"]).exits(0).says(&["not every character fits name (latin1)", "utf8mb4"]);
    shop.sql("DROP TABLE people");
    shop.sql(&statement.join("\n"));
    shop.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["character"]);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.ask("SELECT group_concat(name ORDER BY id) FROM people"), "陳昌倬,😀");
}
