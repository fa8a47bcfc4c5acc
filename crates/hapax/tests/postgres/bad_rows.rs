//! Rows that PostgreSQL cannot take: each becomes a dead letter with code and reason, the others arrive.

use super::world::Shop;
use crate::world::{order, orders};

const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }, maxRejects: 100%";

/// Goal: one bad row is one dead letter with place and reason. Method: a table with strict columns, a bad value for each
/// between good rows.
#[test]
fn bad_values_become_dead_letters() {
    let shop = Shop::ready("", KEYED);
    shop.sql(
        "DROP TABLE orders; CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(5), amount integer, \
              price numeric(5, 2), day date)",
    );
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
    let lines: String = bad.iter().enumerate().map(|(n, line)| format!("{line}\n{}", order(n as i64, 1))).collect();
    shop.world.write("orders.jsonl", lines);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.rows(), bad.len() as u64);
    shop.accounts_for(2 * bad.len() as u64, bad.len() as u64);
    let causes = shop.causes();
    assert_eq!(causes.iter().map(|cause| cause.1).sum::<u64>(), bad.len() as u64, "{causes:#?}");
    for (code, _, example) in &causes {
        assert!(code.starts_with("HX2") && !example.is_empty(), "{causes:#?}");
    }
    let all = format!("{causes:?}");
    for column in ["customer", "price", "amount", "day", "id"] {
        assert!(all.contains(column), "no cause names {column}: {causes:#?}");
    }
    for id in 1..=bad.len() {
        shop.hapax(&["dlq", "show", &id.to_string()]).exits(0).says(&["position", "HX2", "input"]);
    }
}

/// Goal: a line over the limit is a dead letter with its length; the next line arrives. Method: `maxLine: 1KiB`.
#[test]
fn a_row_over_the_line_limit_is_a_dead_letter() {
    let shop = Shop::ready("", KEYED);
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

/// Goal: `onReject: stop` writes nothing of the epoch and names the row. Method: one bad row among good ones.
#[test]
fn stop_on_reject_stops_with_the_row() {
    let shop = Shop::ready("", "guarantee: exactly-once, deduplication: { keyFields: [id] }, onReject: stop");
    shop.sql("ALTER TABLE orders ADD CHECK (amount <> 20)");
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["run", "--once"]).exits(1).says(&["HX4010", "orders"]);
    assert_eq!(shop.rows(), 0);
    shop.sql("ALTER TABLE orders DROP CONSTRAINT orders_amount_check");
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 2:20 3:30");
    shop.accounts_for(3, 0);
}

/// Goal: a row that a rule of no usual kind refuses is a dead letter with that rule's name. Method: an exclusion constraint.
#[test]
fn a_row_that_an_exclusion_constraint_refuses_is_a_dead_letter() {
    let shop = Shop::ready("", KEYED);
    shop.sql("ALTER TABLE orders ADD CONSTRAINT one_amount EXCLUDE USING btree (amount WITH =)");
    shop.world.write("orders.jsonl", [order(1, 10), order(2, 10), order(3, 30)].concat());
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 3:30");
    let causes = shop.causes();
    assert_eq!((causes[0].0.as_str(), causes[0].1), ("HX2051", 1), "{causes:?}");
    assert!(causes[0].2.contains("one_amount"), "{causes:?}");
    shop.accounts_for(3, 1);
}
