//! The steps of a transaction that PostgreSQL does in its own way; their order is `table::transaction`'s.
//!
//! Reads and writes: the target, over one session. Invariant: the first error of a transaction is the one that counts.
//! Not here: what an epoch is (`table::transaction`), how rows are written (`write`, `slow`).

use std::time::Duration;

use hapax_engine::second_pass::InputJudge;
use hapax_engine::sink::{EpochRecord, SinkError};
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::fault::point;
use hapax_model::ledger::Totals;
use hapax_model::letter::Letter;
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_sql::postgres::{Session, checked_commit};

use super::chunk::Place;
use super::config::PostgresSinkConfig;
use super::error::{During, after_commit, sink_error};
use super::flight::Flights;
use super::inspect::{Inspected, inspect_again, inspect_foreign_again};
use super::schema::VERSION;
use super::slow::write_slowly;
use super::write::write_fast;
use super::{ask, letters, progress, row_error};
use crate::table::transaction::{Besides, EpochTransaction, LetterEpoch, RowTransaction, RowsToWrite};
use crate::table::tries::{Fault, Outcome, Pass, Trouble, Turn};

/// Names our advisory locks, by which lanes into one table take turns: "hapx".
const TURNS: i32 = 0x6861_7078;

/// A session on which one transaction after the other is tried.
pub(super) struct PostgresTransaction<'a> {
    pub(super) session: &'a Session,
    pub(super) config: &'a PostgresSinkConfig,
    pub(super) target: &'a str,
    pub(super) during: During,
    /// The delivery whose progress is in the same database; none if the database holds nothing of ours.
    pub(super) delivery: Option<&'a DeliveryId>,
}

impl RowTransaction for PostgresTransaction<'_> {
    type Table = Inspected;

    async fn begin(&mut self, besides: Besides) -> Result<(), Trouble> {
        let begun = self.session.begin().await;
        begun.map_err(|fault| Trouble::Stop(sink_error(self.target, self.during, &fault)))?;
        if besides == Besides::Nothing {
            // A COMMIT that finds nothing written would be taken for a lost transaction.
            ask::batch(self.session, self.during, "SELECT txid_current()").await?;
        }
        Ok(())
    }

    /// Constraints are checked at once from here on, and nobody can change the table's columns or indexes until COMMIT.
    async fn hold_table(&mut self, table: &Inspected, turn: Turn) -> Result<(), Trouble> {
        let session = self.session;
        let fail = |error: tokio_postgres::Error| match row_error::fault(session, self.target, self.during, &error) {
            Fault::Row(cause) => Trouble::Schema(cause.message),
            fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_)) => fault.into(),
        };
        let version = session.prepare_cached(VERSION).await.map_err(fail)?;
        // Rows in lane order lock those of other lanes in any order: they are written while nobody else writes, or two
        // lanes meet in a deadlock, which the server looks for only after a second.
        let take_turn = match turn {
            Turn::BesideOthers => "pg_advisory_xact_lock_shared",
            Turn::Alone => "pg_advisory_xact_lock",
        };
        let lock = format!(
            "SET CONSTRAINTS ALL IMMEDIATE; LOCK TABLE ONLY {} IN ROW EXCLUSIVE MODE; \
             SELECT pg_catalog.{take_turn}({TURNS}, {})",
            table.named.quoted,
            table.oid.cast_signed()
        );
        // Both are on their way at once, in this order.
        let client = session.client();
        let name: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&table.named.quoted];
        let (locked, now) = tokio::join!(client.batch_execute(&lock), client.query_opt(&version, &name));
        locked.map_err(fail)?;
        let now = now.and_then(|row| row.map(|row| row.try_get::<_, String>(0)).transpose()).map_err(fail)?;
        match now {
            Some(now) if now == table.version => Ok(()),
            Some(_) => Err(Trouble::Schema("the table changes faster than it can be read".to_owned())),
            None => Err(Trouble::Schema("the table is gone".to_owned())),
        }
    }

    async fn write_rows(
        &mut self,
        to_write: RowsToWrite<'_, Inspected>,
        judge: InputJudge<'_>,
    ) -> Result<Outcome, Trouble> {
        let RowsToWrite { table, rows, order, pass } = to_write;
        let place = Place {
            session: self.session,
            table: &table.named,
            rows,
            per_statement: self.config.rows_per_statement,
            target: self.target,
            during: self.during,
        };
        match pass {
            Pass::Fast => write_fast(&place, &order.events, &order.cuts).await,
            Pass::Slow { known } => write_slowly(&place, &order.events, known, judge).await,
        }
    }

    async fn commit(&mut self, sent: &'static str) -> Result<(), SinkError> {
        // Sent first, so that the point lies between COMMIT and its answer.
        let mut flights = Flights::new();
        flights.start(checked_commit(self.session), 0).await;
        tokio::task::yield_now().await;
        point(sent);
        match flights.land().await {
            Some(end) => after_commit(self.target, self.during, end),
            None => Ok(()),
        }
    }

    async fn roll_back(&mut self) {
        if let Err(fault) = self.session.rollback().await {
            tracing::debug!(error = %fault, "no answer to ROLLBACK");
        }
    }

    async fn read_table_again(&mut self, was: &Inspected) -> Result<Inspected, SinkError> {
        match self.delivery {
            Some(id) => inspect_again(self.session, self.config, id, was).await,
            None => inspect_foreign_again(self.session, self.config, was).await,
        }
    }

    async fn pause(&mut self) {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(1..50))).await;
    }
}

impl EpochTransaction for PostgresTransaction<'_> {
    async fn swap_progress(
        &mut self,
        id: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
    ) -> Result<Progress, SinkError> {
        progress::swap(self.session, id, was, record).await
    }

    /// A table keeps its number here for as long as it lives.
    async fn follow_table(&mut self, _: &DeliveryId, _: &Inspected, progress: Progress) -> Result<Progress, SinkError> {
        Ok(progress)
    }

    async fn insert_letters(&mut self, epoch: LetterEpoch<'_>, letters: &[Letter]) -> Result<(), SinkError> {
        let LetterEpoch { id, generation, epoch, incarnation } = epoch;
        letters::insert_letters(self.session, id, generation, epoch, incarnation, letters).await
    }

    async fn correct_totals(&mut self, id: &DeliveryId, epoch: Epoch, totals: Totals) -> Result<(), SinkError> {
        progress::correct_totals(self.session, id, epoch, totals).await
    }

    async fn end_earlier(&mut self, id: &DeliveryId, record: &EpochRecord) -> Result<(), SinkError> {
        progress::end_earlier(self.session, id, record.epoch, &record.to).await
    }

    async fn log_epoch(
        &mut self,
        id: &DeliveryId,
        generation: Generation,
        record: &EpochRecord,
        counts: Totals,
    ) -> Result<(), SinkError> {
        progress::log_epoch(self.session, id, generation, record, counts).await
    }
}
