//! Rows that a server cannot take: each becomes a dead letter with code and reason, the others arrive.

use super::{Server, Shop, on_every_server};
use crate::world::{FORGIVING, order, orders};

on_every_server! { stop_on_reject_stops_with_the_row }

/// In a table `orders` with these columns each bad line is one dead letter, with place and reason; the causes name each
/// column of `named`, and the good lines between arrive.
pub(crate) fn bad_values_become_dead_letters<S: Server>(columns: &str, bad: &[&str], named: &[&str]) {
    let shop = Shop::<S>::ready("", FORGIVING);
    shop.sql(&format!("DROP TABLE orders; CREATE TABLE orders ({columns})"));
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
    for column in named {
        assert!(all.contains(column), "no cause names {column}: {causes:#?}");
    }
    for id in 1..=bad.len() {
        shop.hapax(&["dlq", "show", &id.to_string()]).exits(0).says(&["position", "HX2", "input"]);
    }
}

/// Goal: `onReject: stop` writes nothing of the epoch and names the row; once the row fits, all arrive. Method: one bad row
/// among good ones.
fn stop_on_reject_stops_with_the_row<S: Server>() {
    let shop = Shop::<S>::ready("", "guarantee: exactly-once, deduplication: { keyFields: [id] }, onReject: stop");
    shop.sql("ALTER TABLE orders ADD CONSTRAINT no_twenty CHECK (amount <> 20)");
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["run", "--once"]).exits(1).says(&["HX4010", "orders"]);
    assert_eq!(shop.rows(), 0);
    shop.sql("ALTER TABLE orders DROP CONSTRAINT no_twenty");
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.amounts(), "1:10 2:20 3:30");
    shop.accounts_for(3, 0);
}
