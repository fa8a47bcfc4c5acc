//! The fastest plain rusqlite code we can write for the same rows: prepared multi-row statements, values bound in
//! place, one transaction per batch, the same pragmas. It parses nothing and keeps no books.

use std::path::Path;
use std::time::{Duration, Instant};

use hapax_model::mode::ConflictMode;
use rusqlite::Connection;

const ROWS: usize = 64;

pub(crate) fn make_table(path: &Path, mode: ConflictMode) {
    let key = if mode == ConflictMode::Append { "INTEGER NOT NULL" } else { "INTEGER PRIMARY KEY" };
    let sql = format!(
        "PRAGMA journal_mode = WAL; CREATE TABLE orders (order_id {key}, customer TEXT NOT NULL, \
         amount_cents INTEGER NOT NULL, status TEXT NOT NULL);"
    );
    Connection::open(path).expect("opens").execute_batch(&sql).expect("makes the table");
}

pub(crate) fn append(path: &Path, rows: u64, per_commit: usize) -> Duration {
    make_table(path, ConflictMode::Append);
    write(path, rows, per_commit, "")
}

pub(crate) fn upsert(path: &Path, rows: u64, per_commit: usize) -> Duration {
    make_table(path, ConflictMode::Update);
    let set = "customer = excluded.customer, amount_cents = excluded.amount_cents, status = excluded.status";
    write(path, rows, per_commit, &format!(" ON CONFLICT (order_id) DO UPDATE SET {set}"))
}

fn write(path: &Path, rows: u64, per_commit: usize, conflict: &str) -> Duration {
    let connection = Connection::open(path).expect("opens");
    connection.execute_batch("PRAGMA synchronous = FULL;").expect("pragma");
    let values = vec!["(?,?,?,?)"; ROWS].join(",");
    let sql = format!("INSERT INTO orders (order_id, customer, amount_cents, status) VALUES {values}{conflict}");
    let single = format!("INSERT INTO orders (order_id, customer, amount_cents, status) VALUES (?,?,?,?){conflict}");
    let started = Instant::now();
    let (mut many, mut one) =
        (connection.prepare(&sql).expect("prepares"), connection.prepare(&single).expect("prepares"));
    let mut next = 0;
    while next < rows {
        connection.execute_batch("BEGIN IMMEDIATE").expect("begins");
        let end = rows.min(next + per_commit as u64);
        while next + ROWS as u64 <= end {
            for row in 0..ROWS {
                bind(&mut many, row * 4, next + row as u64);
            }
            many.raw_execute().expect("inserts");
            next += ROWS as u64;
        }
        while next < end {
            bind(&mut one, 0, next);
            one.raw_execute().expect("inserts");
            next += 1;
        }
        connection.execute_batch("COMMIT").expect("commits");
    }
    started.elapsed()
}

fn bind(statement: &mut rusqlite::Statement<'_>, at: usize, n: u64) {
    statement.raw_bind_parameter(at + 1, n.cast_signed()).expect("binds");
    statement.raw_bind_parameter(at + 2, CUSTOMERS[n as usize % CUSTOMERS.len()]).expect("binds");
    statement.raw_bind_parameter(at + 3, (n * 7919 % 100_000).cast_signed()).expect("binds");
    statement.raw_bind_parameter(at + 4, "new").expect("binds");
}

const CUSTOMERS: [&str; 4] = ["c-000017", "c-000391", "c-000042", "c-000777"];
