//! The fastest plain tokio-postgres code we can write for the same rows: prepared statements of arrays, all statements of
//! a transaction sent before the first answer; binary COPY from one buffer. The rows lie ready in memory, column by
//! column: it makes and parses nothing, and keeps no books.

use std::ops::Range;
use std::pin::pin;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::SinkExt as _;
use futures_util::future::{join, join_all};
use tokio_postgres::{Client, NoTls};

use super::orders::Orders;

/// How much of a COPY is sent at once.
const COPY_BYTES: usize = 64 * 1024;

/// The orders' columns, as arrays are bound from them.
pub(crate) struct Columns<'a> {
    pub(crate) ids: Vec<i64>,
    pub(crate) customers: Vec<&'a str>,
    pub(crate) amounts: Vec<i64>,
    pub(crate) statuses: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    /// Of the first `count` orders those whose number leaves this rest: the share of one of several connections.
    pub(crate) fn share(orders: &'a Orders, count: u64, number: u64, of: u64) -> Self {
        let mut all = Self { ids: Vec::new(), customers: Vec::new(), amounts: Vec::new(), statuses: Vec::new() };
        for order in (0..count).filter(|n| n % of == number).map(|n| orders.get(n)) {
            all.ids.push(order.id);
            all.customers.push(order.customer);
            all.amounts.push(order.amount);
            all.statuses.push(order.status);
        }
        all
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connects");
    tokio::spawn(connection);
    client
}

/// `all` in pieces of at most `size`.
pub(crate) fn pieces(all: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = all.end;
    all.step_by(size).map(move |start| start..end.min(start + size))
}

pub(crate) fn upsert_sql(table: &str) -> String {
    format!(
        "INSERT INTO {table} (order_id, customer, amount_cents, status) \
         SELECT unnest($1::int8[]), unnest($2::text[]), unnest($3::int8[]), unnest($4::text[]) ON CONFLICT (order_id) DO UPDATE SET \
         customer = excluded.customer, amount_cents = excluded.amount_cents, status = excluded.status"
    )
}

/// Runs `sql` over all rows, `rows` with each statement.
pub(crate) async fn write(client: &Client, sql: &str, columns: &Columns<'_>, per_commit: usize, rows: usize) {
    let statement = &client.prepare(sql).await.expect("prepares");
    for epoch in pieces(0..columns.len(), per_commit) {
        let one = |piece: Range<usize>| async move {
            let (ids, amounts) = (&columns.ids[piece.clone()], &columns.amounts[piece.clone()]);
            let (customers, statuses) = (&columns.customers[piece.clone()], &columns.statuses[piece]);
            client.query(statement, &[&ids, &customers, &amounts, &statuses]).await.expect("writes");
        };
        transaction(client, pieces(epoch, rows).map(one)).await;
    }
}

/// Sends BEGIN, all statements in their order, and COMMIT, and then waits for the answers.
pub(crate) async fn transaction<F: Future<Output = ()>>(client: &Client, statements: impl Iterator<Item = F>) {
    let begin = client.batch_execute("BEGIN");
    let commit = client.batch_execute("COMMIT");
    let (begun, (_, committed)) = join(begin, join(join_all(statements), commit)).await;
    begun.expect("begins");
    committed.expect("commits");
}

/// One binary COPY per commit; alone in its transaction it needs neither BEGIN nor COMMIT.
pub(crate) async fn copy(client: &Client, table: &str, columns: &Columns<'_>, per_commit: usize) {
    let sql = format!("COPY {table} (order_id, customer, amount_cents, status) FROM STDIN (FORMAT binary)");
    let statement = client.prepare(&sql).await.expect("prepares");
    for epoch in pieces(0..columns.len(), per_commit) {
        let mut sink = pin!(client.copy_in::<_, Bytes>(&statement).await.expect("copies"));
        let mut buffer = BytesMut::with_capacity(COPY_BYTES + 1024);
        buffer.put_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
        for at in epoch {
            buffer.put_i16(4);
            buffer.put_i32(8);
            buffer.put_i64(columns.ids[at]);
            put_text(&mut buffer, columns.customers[at]);
            buffer.put_i32(8);
            buffer.put_i64(columns.amounts[at]);
            put_text(&mut buffer, columns.statuses[at]);
            if buffer.len() > COPY_BYTES {
                sink.feed(buffer.split().freeze()).await.expect("sends");
                buffer.reserve(COPY_BYTES + 1024);
            }
        }
        buffer.put_i16(-1);
        sink.feed(buffer.freeze()).await.expect("sends");
        sink.as_mut().finish().await.expect("copies");
    }
}

fn put_text(buffer: &mut BytesMut, text: &str) {
    buffer.put_i32(i32::try_from(text.len()).expect("a short text"));
    buffer.put_slice(text.as_bytes());
}
