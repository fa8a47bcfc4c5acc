//! Rows that PostgreSQL cannot take: each becomes a dead letter with code and reason, the others arrive.

use super::world::{Postgres, Shop};
use crate::servers;
use crate::world::{FORGIVING, order};

/// Goal: one bad row is one dead letter with place and reason. Method: a table with strict columns, a bad value for each
/// between good rows.
#[test]
fn bad_values_become_dead_letters() {
    let columns = "id bigint PRIMARY KEY, customer varchar(5), amount integer, \
              price numeric(5, 2), day date";
    let bad = [
        "{\"id\":11,\"customer\":\"far too long\"}",
        "{\"id\":12,\"price\":123456.7}",
        "{\"id\":13,\"amount\":3000000000}",
        "{\"id\":14,\"day\":\"2026-02-31\"}",
        "{\"id\":15,\"customer\":\"a\\u0000b\"}",
        "{\"id\":99999999999999999999}",
        "{\"id\":null}",
        "{\"id\":18,\"day\":\"yesterday, roughly\"}",
        "{\"id\":19,\"amount\":\"a lot\"}",
    ];
    let named = ["customer", "price", "amount", "day", "id"];
    servers::bad_values_become_dead_letters::<Postgres>(columns, &bad, &named);
}

/// Goal: a line over the limit is a dead letter with its length; the next line arrives. Method: `maxLine: 1KiB`.
#[test]
fn a_row_over_the_line_limit_is_a_dead_letter() {
    let shop = Shop::ready("", FORGIVING);
    let text = shop.world.read("hapax.yaml").replace("path: orders.jsonl", "path: orders.jsonl, maxLine: 1KiB");
    shop.world.write("hapax.yaml", text);
    let long = format!("{{\"id\":2,\"customer\":\"{}\"}}\n", "x".repeat(5000));
    shop.world.write("orders.jsonl", format!("{}{long}{}", order(1, 10), order(3, 30)));
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 3:30");
    shop.accounts_for(3, 1);
    let causes = shop.causes();
    assert_eq!((causes[0].0.as_str(), causes[0].1), ("HX2003", 1), "{causes:?}");
    shop.hapax(&["dlq", "show", "1"]).says(&["5022 bytes"]);
}

/// Goal: a row that a rule of no usual kind refuses is a dead letter with that rule's name. Method: an exclusion constraint.
#[test]
fn a_row_that_an_exclusion_constraint_refuses_is_a_dead_letter() {
    let shop = Shop::ready("", FORGIVING);
    shop.sql("ALTER TABLE orders ADD CONSTRAINT one_amount EXCLUDE USING btree (amount WITH =)");
    shop.world.write("orders.jsonl", [order(1, 10), order(2, 10), order(3, 30)].concat());
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 3:30");
    let causes = shop.causes();
    assert_eq!((causes[0].0.as_str(), causes[0].1), ("HX2051", 1), "{causes:?}");
    assert!(causes[0].2.contains("one_amount"), "{causes:?}");
    shop.accounts_for(3, 1);
}
