//! Rows that MariaDB cannot take: each becomes a dead letter with code and reason, the others arrive.

use super::world::{Mysql, Shop};
use crate::servers;
use crate::world::{FORGIVING, order};

/// Goal: one bad row is one dead letter with place and reason, and nothing is cut, rounded or set to zero. Method: a table
/// with strict columns, a bad value for each between good rows.
#[test]
fn bad_values_become_dead_letters() {
    let columns = "id bigint PRIMARY KEY, customer varchar(5), amount integer, \
         price decimal(5, 2), day date, latin varchar(20) CHARACTER SET latin1, mood enum('good', 'bad'), \
         small tinyint unsigned, note json";
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
    let named = ["customer", "price", "amount", "day", "latin", "mood", "small", "id"];
    servers::bad_values_become_dead_letters::<Mysql>(columns, &bad, &named);
}

/// Goal: bytes that are no UTF-8 are a dead letter as everywhere. Method: a line with a lone continuation byte.
#[test]
fn invalid_utf8_is_a_dead_letter() {
    let shop = Shop::ready("", FORGIVING);
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
    let shop = Shop::ready("", FORGIVING);
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
    let shop = Shop::ready("", FORGIVING);
    shop.sql("ALTER TABLE orders MODIFY customer longtext");
    let text = "x".repeat(6 << 20);
    let lines: String = (1..=4).map(|id| format!("{{\"id\":{id},\"customer\":\"{text}\"}}\n")).collect();
    shop.world.write("orders.jsonl", lines);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.ask("SELECT sum(length(customer)) FROM orders"), (4 * (6 << 20)).to_string());
    shop.accounts_for(4, 0);
}
