//! Rows that MariaDB cannot take: each becomes a dead letter with code and reason, the others arrive.

use super::world::Shop;
use crate::world::{order, orders};

const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }, maxRejects: 100%";

/// Goal: one bad row is one dead letter with place and reason, and nothing is cut, rounded or set to zero. Method: a table
/// with strict columns, a bad value for each between good rows.
#[test]
fn bad_values_become_dead_letters() {
    let shop = Shop::ready("", KEYED);
    shop.sql(
        "DROP TABLE orders; CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(5), amount integer, \
         price decimal(5, 2), day date, latin varchar(20) CHARACTER SET latin1, mood enum('good', 'bad'), \
         small tinyint unsigned, note json)",
    );
    let bad = [
        "{\"id\":11,\"customer\":\"far too long\"}",
        "{\"id\":12,\"price\":123456.7}",
        "{\"id\":13,\"amount\":3000000000}",
        "{\"id\":14,\"day\":\"2026-02-31\"}",
        "{\"id\":15,\"latin\":\"\\u4f60\\u597d\"}",
        "{\"id\":99999999999999999999}",
        "{\"id\":null}",
        "{\"id\":18,\"day\":\"yesterday, roughly\"}",
        "{\"id\":19,\"amount\":\"a lot\"}",
        "{\"id\":20,\"mood\":\"so so\"}",
        "{\"id\":21,\"small\":-1}",
        "{\"id\":22,\"day\":\"0000-00-00\"}",
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
    for column in ["customer", "price", "amount", "day", "latin", "mood", "small", "id"] {
        assert!(all.contains(column), "no cause names {column}: {causes:#?}");
    }
    for id in 1..=bad.len() {
        shop.hapax(&["dlq", "show", &id.to_string()]).exits(0).says(&["position", "HX2", "input"]);
    }
}

/// Goal: bytes that are no UTF-8 are a dead letter as everywhere. Method: a line with a lone continuation byte.
#[test]
fn invalid_utf8_is_a_dead_letter() {
    let shop = Shop::ready("", KEYED);
    let mut lines = order(1, 10).into_bytes();
    lines.extend_from_slice(b"{\"id\":2,\"customer\":\"\xff\"}\n");
    lines.extend_from_slice(order(3, 30).as_bytes());
    shop.world.write("orders.jsonl", lines);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 3:30");
    shop.accounts_for(3, 1);
}

/// Goal: a row that the server would not take in one message is a dead letter, kept with its beginning, length and hash;
/// the next row arrives. Method: a line of 20 MiB against a `max_allowed_packet` of 16 MiB, which is MariaDB's own.
#[test]
fn a_row_larger_than_a_packet_is_a_dead_letter() {
    let shop = Shop::ready("", KEYED);
    shop.sql("ALTER TABLE orders MODIFY customer longtext");
    let limit: u64 = shop.ask("SELECT @@max_allowed_packet").parse().expect("a number");
    assert_eq!(limit, 16 << 20, "MariaDB's own limit");
    let text = shop.world.read("hapax.yaml").replace("path: orders.jsonl", "path: orders.jsonl, maxLine: 32MiB");
    shop.world.write("hapax.yaml", text);
    let long = format!("{{\"id\":2,\"customer\":\"{}\"}}\n", "x".repeat(20 << 20));
    shop.world.write("orders.jsonl", format!("{}{long}{}", order(1, 10), order(3, 30)));
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 3:30");
    shop.accounts_for(3, 1);
    let causes = shop.causes();
    assert!(causes.len() == 1 && causes[0].2.contains("max_allowed_packet"), "{causes:?}");
    shop.hapax(&["dlq", "show", "1"]).exits(0).says(&[&format!("{} bytes", long.len() - 1)]);
}

/// Goal: a row that fits alone but not with its neighbours in one message arrives. Method: rows of 6 MiB each.
#[test]
fn large_rows_that_fit_arrive() {
    let shop = Shop::ready("", KEYED);
    shop.sql("ALTER TABLE orders MODIFY customer longtext");
    let text = "x".repeat(6 << 20);
    let lines: String = (1..=4).map(|id| format!("{{\"id\":{id},\"customer\":\"{text}\"}}\n")).collect();
    shop.world.write("orders.jsonl", lines);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.ask("SELECT sum(length(customer)) FROM orders"), (4 * (6 << 20)).to_string());
    shop.accounts_for(4, 0);
}

/// Goal: `onReject: stop` writes nothing of the epoch and names the row. Method: one bad row among good ones.
#[test]
fn stop_on_reject_stops_with_the_row() {
    let shop = Shop::ready("", "guarantee: exactly-once, deduplication: { keyFields: [id] }, onReject: stop");
    shop.sql("ALTER TABLE orders ADD CONSTRAINT no_twenty CHECK (amount <> 20)");
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["run", "--once"]).exits(1).says(&["HX4010", "orders"]);
    assert_eq!(shop.rows(), 0);
}
