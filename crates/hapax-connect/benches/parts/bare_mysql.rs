//! The fastest plain mysql_async code we can write for the same rows: prepared statements of many rows, prepared once per
//! connection. The rows lie ready in memory: it makes and parses nothing, and keeps no books.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder, Params, Statement, Value};

use super::contest::Mode;
use super::orders::Orders;

/// The numbers of the orders that one of several connections writes.
pub(crate) struct Share<'a> {
    orders: &'a Orders,
    numbers: Vec<u64>,
}

impl<'a> Share<'a> {
    /// Of the first `count` orders those whose number leaves this rest.
    pub(crate) fn new(orders: &'a Orders, count: u64, number: u64, of: u64) -> Self {
        Self { orders, numbers: (0..count).filter(|n| n % of == number).collect() }
    }

    /// These orders.
    pub(crate) fn of(orders: &'a Orders, numbers: impl Iterator<Item = u64>) -> Self {
        Self { orders, numbers: numbers.collect() }
    }

    fn values(&self, numbers: &[u64]) -> Vec<Value> {
        let mut values = Vec::with_capacity(numbers.len() * 4);
        for number in numbers {
            let order = self.orders.get(*number);
            values.push(Value::Int(order.id));
            values.push(Value::Bytes(order.customer.as_bytes().to_vec()));
            values.push(Value::Int(order.amount));
            values.push(Value::Bytes(order.status.as_bytes().to_vec()));
        }
        values
    }
}

pub(crate) async fn connect(url: &str) -> Conn {
    let options = OptsBuilder::from_opts(Opts::from_url(url).expect("a URL"));
    Conn::new(options.prefer_socket(false).tcp_nodelay(true).client_found_rows(true)).await.expect("connects")
}

/// One statement for so many rows.
pub(crate) fn sql(table: &str, mode: Mode, rows: usize) -> String {
    let rows = vec!["(?,?,?,?)"; rows].join(",");
    let insert = format!("INSERT INTO {table} (order_id, customer, amount_cents, status) VALUES {rows}");
    match mode {
        Mode::Append => insert,
        Mode::Upsert => format!(
            "{insert} ON DUPLICATE KEY UPDATE customer = VALUES(customer), amount_cents = VALUES(amount_cents), \
             status = VALUES(status)"
        ),
    }
}

/// Writes all rows of a share, `rows` with each statement.
pub(crate) async fn write(
    connection: &mut Conn,
    table: &str,
    mode: Mode,
    share: &Share<'_>,
    per_commit: usize,
    rows: usize,
) {
    let whole = connection.prep(sql(table, mode, rows)).await.expect("prepares");
    for epoch in share.numbers.chunks(per_commit) {
        connection.query_drop("START TRANSACTION").await.expect("begins");
        for piece in epoch.chunks(rows) {
            let values = share.values(piece);
            if piece.len() == rows {
                run(connection, &whole, values).await;
            } else {
                let rest = connection.prep(sql(table, mode, piece.len())).await.expect("prepares");
                run(connection, &rest, values).await;
            }
        }
        connection.query_drop("COMMIT").await.expect("commits");
    }
}

/// The same by MariaDB's bulk command: a statement of one row, and the values of many.
pub(crate) async fn write_bulk(connection: &mut Conn, table: &str, mode: Mode, share: &Share<'_>, per_commit: usize) {
    let one = connection.prep(sql(table, mode, 1)).await.expect("prepares");
    for epoch in share.numbers.chunks(per_commit) {
        connection.query_drop("START TRANSACTION").await.expect("begins");
        let rows = epoch.iter().map(|number| Params::Positional(share.values(&[*number])));
        connection.exec_batch(&one, rows).await.expect("writes");
        connection.query_drop("COMMIT").await.expect("commits");
    }
}

/// Writes a share in one statement that commits itself.
pub(crate) async fn write_alone(connection: &mut Conn, table: &str, mode: Mode, share: &Share<'_>, rows: usize) {
    let statement = connection.prep(sql(table, mode, rows)).await.expect("prepares");
    run(connection, &statement, share.values(&share.numbers)).await;
}

async fn run(connection: &mut Conn, statement: &Statement, values: Vec<Value>) {
    connection.exec_drop(statement, Params::Positional(values)).await.expect("writes");
}
