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
