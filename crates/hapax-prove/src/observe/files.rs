//! Looking at SQLite files.
//!
//! Reads: `hapax_progress`, `hapax_epochs`, `hapax_dead_letters`, `hapax_witness`, the user's table. Writes: nothing,
//! and closing one of these connections never checkpoints, so that a crash stays as the crash left it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};

use super::{Blind, Books, Subject};
use crate::check::history::{BalanceRow, BalanceSeen, EpochRow, Found, LetterRow, ProgressRow, Sample};
use crate::database::Engine;
use crate::ddl;
use crate::shape::{Row, Shape};
use crate::truth::Digest;

/// Opens `path` for looking, and for nothing else.
///
/// # Errors
/// If it is no database.
pub(super) fn open(path: &Path, patience: Duration) -> anyhow::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .with_context(|| format!("cannot open {}", path.display()))?;
    connection.busy_timeout(patience)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Whether someone holds the write lock of the database at `path`.
///
/// # Errors
/// If it is no database.
pub(super) fn write_locked(path: &Path) -> anyhow::Result<bool> {
    let mut connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.busy_timeout(Duration::ZERO)?;
    match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(transaction) => {
            transaction.rollback()?;
            Ok(false)
        }
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Busy passes; anything else does not.
pub(super) fn blind(error: rusqlite::Error) -> Blind {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, SchemaChanged};
    match error.sqlite_error_code() {
        // A writer that is just committing a rollback journal shuts everyone out for a moment.
        Some(DatabaseBusy | DatabaseLocked | SchemaChanged) => Blind::Now(error.into()),
        _ => Blind::Ever(error.into()),
    }
}

/// How many rows the table has.
pub(super) fn count_rows(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT count(*) FROM orders", [], |row| count(row, 0))
}

/// One consistent look at a target that keeps its own progress; none before the first claim.
///
/// # Errors
/// What the database says; busy is one of the things it may say.
pub(super) fn sample(connection: &mut Connection, subject: &Subject) -> rusqlite::Result<Option<Sample>> {
    let transaction = connection.transaction()?;
    let Some(progress) = progress(&transaction, &subject.workflow)? else { return Ok(None) };
    let rows = rows(&transaction, subject.shape)?;
    let balance = balances(&transaction, subject.shape)?;
    let seen = (!balance.is_empty()).then(|| BalanceSeen {
        rows: rows.iter().map(|row| row.amount).sum(),
        kept: balance.iter().map(|balance| balance.amount).sum(),
    });
    let letters = letters(&transaction)?.len() as u64;
    transaction.rollback()?;
    Ok(Some(Sample { progress, digest: Digest::of(&rows), balance: seen, letters }))
}

/// Everything that is there at the end.
///
/// # Errors
/// What the database says.
pub(super) fn found(connection: &mut Connection, subject: &Subject) -> rusqlite::Result<Found> {
    let transaction = connection.transaction()?;
    let found = Found {
        rows: rows(&transaction, subject.shape)?,
        balance: balances(&transaction, subject.shape)?,
        progress: progress(&transaction, &subject.workflow)?,
        epochs: epochs(&transaction, &subject.workflow)?,
        letters: letters(&transaction)?,
    };
    transaction.rollback()?;
    Ok(found)
}

fn has_table(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<bool> {
    transaction.query_row("SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?1", [name], |row| {
        row.get(0)
    })
}

/// A counter: SQLite's integers have a sign, counters have none.
fn count(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

/// The delivery's progress row.
fn progress(transaction: &Transaction<'_>, workflow: &str) -> rusqlite::Result<Option<ProgressRow>> {
    if !has_table(transaction, "hapax_progress")? {
        return Ok(None);
    }
    transaction
        .query_row(
            "SELECT generation, epoch, CAST(position AS TEXT), \"read\", delivered, filtered, dead, \"rows\"
             FROM hapax_progress WHERE workflow = ?1",
            [workflow],
            |row| {
                Ok(ProgressRow {
                    generation: count(row, 0)?,
                    epoch: count(row, 1)?,
                    position: row.get(2)?,
                    read: count(row, 3)?,
                    delivered: count(row, 4)?,
                    filtered: count(row, 5)?,
                    dead: count(row, 6)?,
                    rows: count(row, 7)?,
                })
            },
        )
        .optional()
}

fn epochs(transaction: &Transaction<'_>, workflow: &str) -> rusqlite::Result<Vec<EpochRow>> {
    if !has_table(transaction, "hapax_epochs")? {
        return Ok(Vec::new());
    }
    let mut statement =
        transaction.prepare("SELECT epoch, generation FROM hapax_epochs WHERE workflow = ?1 ORDER BY epoch")?;
    statement.query_map([workflow], |row| Ok(EpochRow { epoch: count(row, 0)?, generation: count(row, 1)? }))?.collect()
}

fn letters(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<LetterRow>> {
    if !has_table(transaction, "hapax_dead_letters")? {
        return Ok(Vec::new());
    }
    let mut statement =
        transaction.prepare("SELECT CAST(bytes AS BLOB), state, code FROM hapax_dead_letters ORDER BY id")?;
    statement
        .query_map([], |row| Ok(LetterRow { bytes: row.get(0)?, state: row.get(1)?, code: row.get(2)? }))?
        .collect()
}

fn rows(transaction: &Transaction<'_>, shape: Shape) -> rusqlite::Result<Vec<Row>> {
    if !has_table(transaction, "orders")? {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT n, order_id, region, reference, account, amount, op, slot, version FROM orders WHERE {} ORDER BY {}",
        ddl::alive(shape),
        ddl::arrival(Engine::Sqlite)
    );
    let mut statement = transaction.prepare(&sql)?;
    statement
        .query_map([], |row| {
            Ok(Row {
                n: row.get(0)?,
                order_id: row.get(1)?,
                region: row.get(2)?,
                reference: row.get(3)?,
                account: row.get(4)?,
                amount: row.get(5)?,
                op: row.get(6)?,
                slot: row.get(7)?,
                version: row.get(8)?,
            })
        })?
        .collect()
}

fn balances(transaction: &Transaction<'_>, shape: Shape) -> rusqlite::Result<Vec<BalanceRow>> {
    if shape != Shape::Append || !has_table(transaction, "balance")? {
        return Ok(Vec::new());
    }
    let mut statement = transaction.prepare("SELECT account, amount, entries FROM balance")?;
    statement
        .query_map([], |row| Ok(BalanceRow { account: row.get(0)?, amount: row.get(1)?, entries: count(row, 2)? }))?
        .collect()
}

/// The highest epoch that a witness in the state store at `path` has seen for `workflow`; 0 if there is none.
///
/// # Errors
/// What the database says.
pub(super) fn witness_epoch(path: &Path, workflow: &str) -> anyhow::Result<u64> {
    if !path.exists() {
        return Ok(0);
    }
    let mut connection = open(path, Duration::from_secs(2))?;
    let transaction = connection.transaction()?;
    if !has_table(&transaction, "hapax_witness")? {
        return Ok(0);
    }
    let sql = "SELECT coalesce(max(epoch), 0) FROM hapax_witness WHERE workflow = ?1";
    Ok(transaction.query_row(sql, [workflow], |row| count(row, 0))?)
}

/// What the state store at `path` holds of `workflow` where progress is kept there.
///
/// # Errors
/// What the database says.
pub(super) fn books_in(path: &Path, workflow: &str) -> anyhow::Result<Books> {
    if !path.exists() {
        return Ok(Books::default());
    }
    let mut connection = open(path, Duration::from_secs(2))?;
    let transaction = connection.transaction()?;
    Ok(Books {
        progress: progress(&transaction, workflow)?,
        epochs: epochs(&transaction, workflow)?,
        letters: letters(&transaction)?,
    })
}
