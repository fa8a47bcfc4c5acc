//! `hapax setup --sql`: the statements for this server.

use super::world::Shop;
use crate::world::KEYED;

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
