//! Looking at a database server, through a client that the program under test does not use.
//!
//! Reads: Hapax's own tables, the user's table. Writes: nothing: every look is one read-only transaction with one snapshot.
//! Not here: what each server says in words of its own (`postgres`, `mysql`).

use std::fmt::Debug;

use hapax_services::{Answer, ServiceError};

use super::values::{Values, bytes, parsed, quoted, text, value};
use super::{Blind, Books, Subject};
use crate::check::history::{BalanceRow, BalanceSeen, EpochRow, Found, LetterRow, ProgressRow, Sample};
use crate::database::{Engine, Line};
use crate::ddl;
use crate::shape::{Row, Shape};
use crate::truth::Digest;

pub(super) type Result<T> = std::result::Result<T, ServiceError>;
/// Rows as a server sends them.
pub(super) type Rows = Vec<Vec<Option<String>>>;

/// The columns of the user's table that are looked at.
pub(super) const COLUMNS: &str = "n, order_id, region, reference, account, amount, op, slot, version";

/// A client, and what its server says in words of its own.
pub(super) trait Server: Debug + Send {
    fn engine(&self) -> Engine;
    /// Begins a transaction that only reads, and sees one moment.
    fn begins(&self) -> &'static str;
    /// One of Hapax's own tables.
    fn own(&self, table: &str) -> String;
    /// The columns of a delivery's progress, in the order of [`ProgressRow`].
    fn progress_columns(&self) -> &'static str;
    /// The bytes of a letter, as hex.
    fn letter_bytes(&self) -> &'static str;
    /// Whether an error with this code may be gone at the next look; a table that is being made again is away, too.
    fn passes(&self, code: &str) -> bool;
    fn ask(&mut self, sql: &str) -> Result<Answer>;
    /// What `sql` answers from `table`; nothing if it is not there.
    fn rows_of(&mut self, table: &str, sql: &str) -> Result<Rows>;
    /// A text that is the same as at the last look only if all that is seen is.
    fn mark(&mut self, subject: &Subject) -> Result<String>;
}

/// A connection that looks, and remembers its last look: what is marked the same is not read again.
#[derive(Debug)]
pub struct Watcher {
    server: Box<dyn Server>,
    last: Option<(String, Option<Sample>)>,
}

impl Watcher {
    pub(super) fn new(line: Line) -> Self {
        let server: Box<dyn Server> = match line {
            Line::Postgres(client) => Box::new(client),
            Line::Mysql(client) => Box::new(client),
        };
        Self { server, last: None }
    }

    pub(super) fn blind(&self, error: ServiceError) -> Blind {
        blind(error, |code| self.server.passes(code))
    }

    /// Runs `look` in a transaction that sees one moment. It always ends it: while it is open, nobody can alter a table.
    fn at_one_moment<T>(&mut self, look: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.server.ask(self.server.begins())?;
        let seen = look(self);
        let ended = self.server.ask("ROLLBACK");
        seen.and_then(|seen| ended.map(|_| seen))
    }

    pub(super) fn sample(&mut self, subject: &Subject) -> Result<Option<Sample>> {
        self.at_one_moment(|watcher| {
            let mark = watcher.server.mark(subject)?;
            if let Some((_, sample)) = watcher.last.as_ref().filter(|(known, _)| *known == mark) {
                return Ok(sample.clone());
            }
            let sample = watcher.sample_now(subject)?;
            watcher.last = Some((mark, sample.clone()));
            Ok(sample)
        })
    }

    fn sample_now(&mut self, subject: &Subject) -> Result<Option<Sample>> {
        let Some(progress) = self.progress(&subject.workflow)? else { return Ok(None) };
        let rows = self.rows(subject.shape)?;
        let balance = self.balances(subject.shape)?;
        let seen = (!balance.is_empty()).then(|| BalanceSeen {
            rows: rows.iter().map(|row| row.amount).sum(),
            kept: balance.iter().map(|balance| balance.amount).sum(),
        });
        let letters = self.letters()?.len() as u64;
        Ok(Some(Sample { progress, digest: Digest::of(&rows), balance: seen, letters }))
    }

    pub(super) fn found(&mut self, subject: &Subject) -> Result<Found> {
        self.at_one_moment(|watcher| {
            Ok(Found {
                rows: watcher.rows(subject.shape)?,
                balance: watcher.balances(subject.shape)?,
                progress: watcher.progress(&subject.workflow)?,
                epochs: watcher.epochs(&subject.workflow)?,
                letters: watcher.letters()?,
            })
        })
    }

    /// Progress, epoch log and letters of a state store, which has no rows.
    pub(super) fn books(&mut self, workflow: &str) -> Result<Books> {
        self.at_one_moment(|watcher| {
            Ok(Books {
                progress: watcher.progress(workflow)?,
                epochs: watcher.epochs(workflow)?,
                letters: watcher.letters()?,
            })
        })
    }

    pub(super) fn count_rows(&mut self) -> Result<u64> {
        let answer = self.server.ask("SELECT count(*) FROM orders")?;
        parsed(answer.value().map(str::to_owned))
    }

    pub(super) fn witness_epoch(&mut self, workflow: &str) -> Result<u64> {
        let table = self.server.own("witness");
        let sql = format!("SELECT coalesce(max(epoch), 0) FROM {table} WHERE workflow = {}", quoted(workflow));
        Ok(self.each(&table, &sql, |row| value(row, 0))?.into_iter().next().unwrap_or(0))
    }

    pub(super) fn letters(&mut self) -> Result<Vec<LetterRow>> {
        let table = self.server.own("dead_letters");
        let sql = format!("SELECT {}, state, code FROM {table} ORDER BY id", self.server.letter_bytes());
        self.each(&table, &sql, |row| {
            Ok(LetterRow { bytes: bytes(&text(row, 0)?)?, state: text(row, 1)?, code: text(row, 2)? })
        })
    }

    fn progress(&mut self, workflow: &str) -> Result<Option<ProgressRow>> {
        let table = self.server.own("progress");
        let columns = self.server.progress_columns();
        let sql = format!("SELECT {columns} FROM {table} WHERE workflow = {}", quoted(workflow));
        let rows = self.each(&table, &sql, |row| {
            Ok(ProgressRow {
                generation: value(row, 0)?,
                epoch: value(row, 1)?,
                position: text(row, 2)?,
                read: value(row, 3)?,
                delivered: value(row, 4)?,
                filtered: value(row, 5)?,
                dead: value(row, 6)?,
                rows: value(row, 7)?,
            })
        })?;
        Ok(rows.into_iter().next())
    }

    fn epochs(&mut self, workflow: &str) -> Result<Vec<EpochRow>> {
        let table = self.server.own("epochs");
        let sql = format!("SELECT epoch, generation FROM {table} WHERE workflow = {} ORDER BY epoch", quoted(workflow));
        self.each(&table, &sql, |row| Ok(EpochRow { epoch: value(row, 0)?, generation: value(row, 1)? }))
    }

    fn rows(&mut self, shape: Shape) -> Result<Vec<Row>> {
        let order = ddl::arrival(self.server.engine());
        let sql = format!("SELECT {COLUMNS} FROM orders WHERE {} ORDER BY {order}", ddl::alive(shape));
        self.each("orders", &sql, |row| {
            Ok(Row {
                n: value(row, 0)?,
                order_id: value(row, 1)?,
                region: text(row, 2)?,
                reference: text(row, 3)?,
                account: text(row, 4)?,
                amount: value(row, 5)?,
                op: text(row, 6)?,
                slot: row.get(7).cloned().flatten(),
                version: value(row, 8)?,
            })
        })
    }

    fn balances(&mut self, shape: Shape) -> Result<Vec<BalanceRow>> {
        if shape != Shape::Append {
            return Ok(Vec::new());
        }
        self.each("balance", "SELECT account, amount, entries FROM balance", |row| {
            Ok(BalanceRow { account: text(row, 0)?, amount: value(row, 1)?, entries: value(row, 2)? })
        })
    }

    /// Each row of an answer; none of a table that is not there.
    fn each<T>(&mut self, table: &str, sql: &str, read: impl Fn(&Values) -> Result<T>) -> Result<Vec<T>> {
        self.server.rows_of(table, sql)?.iter().map(|row| read(row)).collect()
    }
}

/// What is away may come back: with a code that passes, or with no server at all.
fn blind(error: ServiceError, passes: impl FnOnce(&str) -> bool) -> Blind {
    let passing = error.code().map_or_else(|| matches!(error, ServiceError::System { .. }), passes);
    if passing { Blind::Now(error.into()) } else { Blind::Ever(error.into()) }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
