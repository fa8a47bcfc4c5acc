//! The fastest plain rusqlite code we can write for the same rows: prepared multi-row statements, values bound in
//! place, one transaction per batch, the same pragmas. The rows lie ready in memory: it makes and parses nothing, and
//! keeps no books.

use std::path::Path;
use std::time::Instant;

use hapax_model::mode::ConflictMode;
use rusqlite::Connection;

use super::Run;
use super::cpu;
use super::orders::Orders;

pub(crate) fn make_table(path: &Path, mode: ConflictMode) {
    let key = if mode == ConflictMode::Append { "INTEGER NOT NULL" } else { "INTEGER PRIMARY KEY" };
    let sql = format!(
        "PRAGMA journal_mode = WAL; CREATE TABLE orders (order_id {key}, customer TEXT NOT NULL, \
         amount_cents INTEGER NOT NULL, status TEXT NOT NULL);"
    );
    Connection::open(path).expect("opens").execute_batch(&sql).expect("makes the table");
}

/// Writes all orders, `rows` with each statement.
pub(crate) fn write(path: &Path, mode: ConflictMode, orders: &Orders, per_commit: usize, rows: usize) -> Run {
    make_table(path, mode);
    let connection = Connection::open(path).expect("opens");
    let pragmas = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;";
    connection.execute_batch(pragmas).expect("pragmas");
    let set = "customer = excluded.customer, amount_cents = excluded.amount_cents, status = excluded.status";
    let conflict = match mode {
        ConflictMode::Update => format!(" ON CONFLICT (order_id) DO UPDATE SET {set}"),
        ConflictMode::Append | ConflictMode::Ignore | ConflictMode::Newer => String::new(),
    };
    let values = vec!["(?,?,?,?)"; rows].join(",");
    let sql = format!("INSERT INTO orders (order_id, customer, amount_cents, status) VALUES {values}{conflict}");
    let single = format!("INSERT INTO orders (order_id, customer, amount_cents, status) VALUES (?,?,?,?){conflict}");
    let others = cpu::Others::watch();
    let (started, cpu_before) = (Instant::now(), cpu::spent(' '));
    let (mut many, mut one) =
        (connection.prepare(&sql).expect("prepares"), connection.prepare(&single).expect("prepares"));
    let mut next = 0;
    while next < orders.len() {
        connection.execute_batch("BEGIN IMMEDIATE").expect("begins");
        let end = orders.len().min(next + per_commit as u64);
        while next + rows as u64 <= end {
            for row in 0..rows {
                bind(&mut many, row * 4, orders, next + row as u64);
            }
            many.raw_execute().expect("inserts");
            next += rows as u64;
        }
        while next < end {
            bind(&mut one, 0, orders, next);
            one.raw_execute().expect("inserts");
            next += 1;
        }
        connection.execute_batch("COMMIT").expect("commits");
    }
    let (wall, write_cpu) = (started.elapsed(), cpu::spent(' ') - cpu_before);
    Run { wall, fill_cpu: 0, write_cpu, others: others.share() }
}

fn bind(statement: &mut rusqlite::Statement<'_>, at: usize, orders: &Orders, n: u64) {
    let order = orders.get(n);
    statement.raw_bind_parameter(at + 1, order.id).expect("binds");
    statement.raw_bind_parameter(at + 2, order.customer).expect("binds");
    statement.raw_bind_parameter(at + 3, order.amount).expect("binds");
    statement.raw_bind_parameter(at + 4, order.status).expect("binds");
}
