//! The steps of a transaction that SQLite does in its own way; their order is `table::transaction`'s.
//!
//! Reads and writes: the target, on the session's own thread. Invariant: no step waits for anything but the database,
//! so that the whole transaction runs to its end without leaving its thread. Not here: how rows are written (`write`).

use std::future::ready;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use hapax_engine::second_pass::InputJudge;
use hapax_engine::sink::{EpochRecord, SinkError};
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::fault::point;
use hapax_model::ledger::Totals;
use hapax_model::letter::Letter;
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_sql::sqlite::checked_commit;
use rusqlite::Connection;

use super::config::SqliteSinkConfig;
use super::error::{During, after_commit, path_of, sink_error};
use super::inspect::{Inspected, inspect_again, inspect_foreign_again};
use super::write::{InsertCounter, write_fast, write_slowly};
use super::{progress, schema};
use crate::table::transaction::{Besides, EpochTransaction, LetterEpoch, RowTransaction, RowsToWrite};
use crate::table::tries::{Outcome, Pass, Trouble, Turn};

/// A connection on which one transaction after the other is tried.
pub(super) struct SqliteTransaction<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) config: &'a SqliteSinkConfig,
    pub(super) during: During,
    /// The delivery whose progress is in the same file; none if the file holds nothing of ours.
    pub(super) delivery: Option<&'a DeliveryId>,
    /// Whether the table was read again since this was begun.
    pub(super) reread: Reread,
}

/// Whether the live table was read again during a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reread {
    No,
    Yes,
}

impl SqliteTransaction<'_> {
    fn fail(&self, error: &rusqlite::Error) -> SinkError {
        sink_error(&path_of(self.connection), self.during, error)
    }

    fn hold(&self, table: &Inspected) -> Result<(), Trouble> {
        let version = schema::version(self.connection).map_err(|error| self.fail(&error))?;
        // The version is the whole file's: other tables may change it again and again, as when many workflows begin in one file.
        // With the write lock in hand nobody can while this one is compared.
        if version == table.version || (self.reread == Reread::Yes && self.is_same(table)?) {
            return Ok(());
        }
        Err(Trouble::Schema("the table changes faster than it can be read".to_owned()))
    }

    /// Whether the table is still what it was, whatever else has changed in the file.
    fn is_same(&self, was: &Inspected) -> Result<bool, Trouble> {
        let now = self.read_again(was)?;
        Ok(Inspected { version: was.version, ..now } == *was)
    }

    fn read_again(&self, was: &Inspected) -> Result<Inspected, SinkError> {
        match self.delivery {
            Some(id) => inspect_again(self.connection, self.config, id, was),
            None => inspect_foreign_again(self.connection, self.config, was),
        }
    }

    fn write(&mut self, to_write: &RowsToWrite<'_, Inspected>, judge: InputJudge<'_>) -> Result<Outcome, Trouble> {
        let RowsToWrite { table, rows, order, pass } = to_write;
        let counter = InsertCounter::install(self.connection, table).map_err(|error| self.fail(&error))?;
        let (connection, during) = (&*self.connection, self.during);
        let written = match pass {
            Pass::Fast => write_fast(connection, rows, &order.events, self.config.rows_per_statement, &counter, during),
            Pass::Slow { known } => write_slowly(connection, rows, &order.events, known, judge, &counter, during),
        };
        counter.remove(self.connection).map_err(|error| self.fail(&error))?;
        written
    }
}

/// The answer of a future whose steps are all [`SqliteTransaction`]'s: it never waits.
///
/// # Panics
/// If it does wait.
pub(super) fn run_to_end<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a step of a SQLite transaction waited"),
    }
}

impl RowTransaction for SqliteTransaction<'_> {
    type Table = Inspected;

    fn begin(&mut self, _: Besides) -> impl Future<Output = Result<(), Trouble>> + Send {
        let begun = self.connection.execute_batch("BEGIN IMMEDIATE");
        ready(begun.map_err(|error| Trouble::Stop(self.fail(&error))))
    }

    /// With the write lock in hand nobody else can move the schema, and there is no other writer.
    fn hold_table(&mut self, table: &Inspected, _: Turn) -> impl Future<Output = Result<(), Trouble>> + Send {
        ready(self.hold(table))
    }

    fn write_rows(
        &mut self,
        rows: RowsToWrite<'_, Inspected>,
        judge: InputJudge<'_>,
    ) -> impl Future<Output = Result<Outcome, Trouble>> + Send {
        ready(self.write(&rows, judge))
    }

    fn commit(&mut self, sent: &'static str) -> impl Future<Output = Result<(), SinkError>> + Send {
        let end = checked_commit(self.connection);
        point(sent);
        ready(after_commit(&path_of(self.connection), self.during, end))
    }

    /// A row's error may have ended the transaction already. What cannot be rolled back is: the session throws a
    /// connection away that comes back with an open transaction.
    fn roll_back(&mut self) -> impl Future<Output = ()> + Send {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::debug!(%error, "the transaction could not be rolled back; its connection is closed");
        }
        ready(())
    }

    fn read_table_again(&mut self, was: &Inspected) -> impl Future<Output = Result<Inspected, SinkError>> + Send {
        self.reread = Reread::Yes;
        ready(self.read_again(was))
    }

    fn pause(&mut self) -> impl Future<Output = ()> + Send {
        std::thread::sleep(std::time::Duration::from_millis(fastrand::u64(1..50)));
        ready(())
    }
}

impl EpochTransaction for SqliteTransaction<'_> {
    fn swap_progress(
        &mut self,
        id: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
    ) -> impl Future<Output = Result<Progress, SinkError>> + Send {
        ready(progress::swap(self.connection, id, was, record))
    }

    /// A marker in the table tells a new one from the old: there are no numbers to follow.
    fn follow_table(
        &mut self,
        _: &DeliveryId,
        _: &Inspected,
        progress: Progress,
    ) -> impl Future<Output = Result<Progress, SinkError>> + Send {
        ready(Ok(progress))
    }

    fn insert_letters(
        &mut self,
        epoch: LetterEpoch<'_>,
        letters: &[Letter],
    ) -> impl Future<Output = Result<(), SinkError>> + Send {
        let LetterEpoch { id, generation, epoch, incarnation } = epoch;
        ready(progress::insert_letters(self.connection, id, generation, epoch, incarnation, letters))
    }

    fn correct_totals(
        &mut self,
        id: &DeliveryId,
        epoch: Epoch,
        totals: Totals,
    ) -> impl Future<Output = Result<(), SinkError>> + Send {
        ready(progress::correct_totals(self.connection, id, epoch, totals))
    }

    fn end_earlier(
        &mut self,
        id: &DeliveryId,
        record: &EpochRecord,
    ) -> impl Future<Output = Result<(), SinkError>> + Send {
        ready(progress::end_earlier(self.connection, id, record.epoch, &record.to))
    }

    fn log_epoch(
        &mut self,
        id: &DeliveryId,
        generation: Generation,
        record: &EpochRecord,
        counts: Totals,
    ) -> impl Future<Output = Result<(), SinkError>> + Send {
        ready(progress::log_epoch(self.connection, id, generation, record, counts))
    }
}

#[cfg(test)]
mod tests {
    use hapax_engine::sink::SinkError;

    use super::*;
    use crate::sqlite::inspect::inspect;

    /// Goal: other tables of the file that change again and again end no commit, as when many workflows begin in one file; a change of the
    /// table itself is noticed. Method: tables made between the tries of one commit; then a column, then another table of the name.
    #[test]
    fn changes_of_other_tables_end_no_commit() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        let mut connection = Connection::open(&path).expect("a file");
        let elsewhere = Connection::open(&path).expect("the file");
        let run = |sql: &str| elsewhere.execute_batch(sql).expect(sql);
        run("PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
        let config = SqliteSinkConfig::new(&path, "t");
        let mut table = inspect(&connection, &config).expect("a fit table");
        let id = DeliveryId { workflow: "w".into(), sink: "s".into(), lane: "l".into() };
        let mut transaction = SqliteTransaction {
            connection: &mut connection,
            config: &config,
            during: During::Look,
            delivery: Some(&id),
            reread: Reread::No,
        };
        for other in ["one", "two", "three", "four"] {
            run(&format!("CREATE TABLE {other} (a)"));
            transaction.connection.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
            let held = transaction.hold(&table);
            if other == "one" {
                assert!(matches!(held, Err(Trouble::Schema(_))), "{held:?}");
                table = run_to_end(transaction.read_table_again(&table)).expect("it is the same");
            } else {
                assert!(held.is_ok(), "{other}: {held:?}");
            }
            transaction.connection.execute_batch("ROLLBACK").expect("rolled back");
        }
        run("ALTER TABLE t ADD COLUMN b");
        assert!(matches!(transaction.hold(&table), Err(Trouble::Schema(_))));
        run("DROP TABLE t; CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
        let held = transaction.hold(&table);
        assert!(matches!(held, Err(Trouble::Stop(SinkError::ContractChanged { .. }))), "{held:?}");
    }
}
