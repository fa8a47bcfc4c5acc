//! `hapax setup --sql`: the statements for this server.

use super::world::Shop;
use crate::world::KEYED;

/// Goal: what `--sql` prints makes all that is needed. Method: run it with another client's eyes, then deliver.
#[test]
fn the_printed_statements_are_enough() {
    let shop = Shop::empty();
    shop.configure("onConflict: update", KEYED);
    let printed = shop.hapax(&["setup", "--sql"]);
    printed.exits(0).says(&["CREATE TABLE hapax.progress", "GRANT", "CREATE TABLE \"orders\"", "pg_control_system"]);
    shop.sql(&printed.out);
    shop.world.write("orders.jsonl", "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.rows(), 2);
}
