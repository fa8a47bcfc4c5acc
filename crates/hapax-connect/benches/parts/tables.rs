//! The tables that are written to: a fresh one for every run, of the same size for all who are compared.

use tokio_postgres::Client;

use super::contest::Table;

const REST: &str = "customer text NOT NULL, amount_cents bigint NOT NULL, status text NOT NULL";

/// Makes it, and lets the server write out what it has in hand, so that every run begins alike.
pub(crate) async fn make(client: &Client, name: &str, table: Table, rows: u64) {
    let key = if table == Table::Plain { "bigint NOT NULL" } else { "bigint PRIMARY KEY" };
    let mut sql = format!("CREATE TABLE {name} (order_id {key}, {REST});");
    if table == Table::Filled {
        sql += &format!(
            "INSERT INTO {name} SELECT n, 'customer-' || n % 1000, 0, 'old' FROM generate_series(0, {rows} - 1) AS n;"
        );
        sql += &format!("ANALYZE {name};");
    }
    client.batch_execute(&sql).await.expect("makes the table");
    client.batch_execute("CHECKPOINT").await.expect("a checkpoint");
}

pub(crate) async fn remove(client: &Client, name: &str) {
    client.batch_execute(&format!("DROP TABLE {name}")).await.expect("removes the table");
}

/// The fair contest: whatever a table holds after one contestant, it holds after the other.
pub(crate) async fn assert_same(client: &Client, one: &str, other: &str, rows: u64) {
    let count = async |sql: String| -> i64 { client.query_one(&sql, &[]).await.expect("counts").get(0) };
    assert_eq!(count(format!("SELECT count(*) FROM {one}")).await, rows.cast_signed(), "{one}");
    assert_eq!(count(format!("SELECT count(*) FROM {other}")).await, rows.cast_signed(), "{other}");
    let more = format!("SELECT count(*) FROM (TABLE {one} EXCEPT TABLE {other}) AS more");
    assert_eq!(count(more).await, 0, "{one} and {other}");
}
