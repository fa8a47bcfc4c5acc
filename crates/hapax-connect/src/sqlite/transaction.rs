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
}

impl SqliteTransaction<'_> {
    fn fail(&self, error: &rusqlite::Error) -> SinkError {
        sink_error(&path_of(self.connection), self.during, error)
    }

    fn hold(&self, table: &Inspected) -> Result<(), Trouble> {
        let version = schema::version(self.connection).map_err(|error| self.fail(&error))?;
        if version == table.version {
            return Ok(());
        }
        Err(Trouble::Schema("the schema changes faster than it can be read".to_owned()))
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
        ready(match self.delivery {
            Some(id) => inspect_again(self.connection, self.config, id, was),
            None => inspect_foreign_again(self.connection, self.config, was),
        })
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
