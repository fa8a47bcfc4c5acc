//! The steps of a transaction that MySQL and MariaDB do in their own way; their order is `table::transaction`'s.
//!
//! Reads and writes: the target, over one session. Invariant: whatever fails outside a savepoint ends the whole
//! transaction. Not here: what an epoch is (`table::transaction`), how rows are written (`write`, `slow`).

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use hapax_engine::second_pass::InputJudge;
use hapax_engine::sink::{EpochRecord, SinkError};
use hapax_model::contract::TARGET;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::fault::point;
use hapax_model::ledger::Totals;
use hapax_model::letter::Letter;
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_sql::mysql::{Session, SqlFault, Value, checked_commit};

use super::chunk::Place;
use super::config::MysqlSinkConfig;
use super::error::{During, after_commit, sink_error};
use super::inspect::{Inspected, Renumbered, inspect_again, inspect_foreign_again};
use super::schema::version_of;
use super::slow::{refuses_one, write_slowly};
use super::write::write_fast;
use super::{letters, progress, row_error};
use crate::table::transaction::{Besides, EpochTransaction, LetterEpoch, RowTransaction, RowsOf, RowsToWrite};
use crate::table::tries::{Fault, Outcome, Pass, Trouble, Turn};

/// How long a lane waits for its turn, in seconds; never longer than half of what it may wait for a row.
const LONGEST_TURN_WAIT: u64 = 5;

/// A session on which one transaction after the other is tried.
pub(super) struct MysqlTransaction<'a> {
    pub(super) session: &'a mut Session,
    pub(super) config: &'a MysqlSinkConfig,
    pub(super) target: &'a str,
    pub(super) during: During,
    /// The delivery whose progress is in the same database; none if the database holds nothing of ours.
    pub(super) delivery: Option<&'a DeliveryId>,
    /// A row of an epoch before, by which a table is known again that was numbered anew.
    pub(super) proof: &'a [Value],
    /// The lock by which lanes into this table take turns, while it is held.
    pub(super) turn: Option<Value>,
}

impl<'a> MysqlTransaction<'a> {
    fn place<'b>(&self, table: &'b Inspected, rows: &'b RowsOf<'b, Inspected>) -> Place<'b>
    where
        'a: 'b,
    {
        Place {
            table: &table.named,
            rows,
            per_statement: self.config.rows_per_statement,
            largest: self.session.largest_packet(),
            target: self.target,
            during: self.during,
        }
    }

    /// Rows in lane order lock those of other lanes in any order: such tries take turns, or they meet in a deadlock. The
    /// server has no lock that ends with a transaction and is no row's: this one is the session's. Who does not get it in
    /// time goes on without: a deadlock is only tried again.
    async fn wait_for_turn(&mut self, table: &Inspected) -> Result<(), Trouble> {
        let name = Value::from(turn_name(&table.identity.0));
        let patience = self.session.limits().lock.as_secs().div_ceil(2).min(LONGEST_TURN_WAIT);
        let answer = self.session.rows("SELECT GET_LOCK(?, ?)", vec![name.clone(), Value::from(patience)]).await;
        let answer = answer.map_err(|fault| Trouble::Stop(sink_error(self.target, self.during, &fault)))?;
        if let Some(Value::Int(1)) = answer.first().and_then(|row| row.as_ref(0)) {
            self.turn = Some(name);
        }
        Ok(())
    }

    /// Once all rows are written this transaction waits for nobody, so the next lane may begin.
    async fn end_turn(&mut self) -> Result<(), SqlFault> {
        if let Some(name) = &self.turn {
            self.session.rows("SELECT RELEASE_LOCK(?)", vec![name.clone()]).await?;
            self.turn = None;
        }
        Ok(())
    }
}

/// The lock of a table; the server takes no longer names than 64 characters.
fn turn_name(identity: &str) -> String {
    let short: String = identity.chars().rev().take(50).collect();
    format!("hapax-turn-{}", short.chars().rev().collect::<String>())
}

impl RowTransaction for MysqlTransaction<'_> {
    type Table = Inspected;

    async fn begin(&mut self, _: Besides) -> Result<(), Trouble> {
        let begun = self.session.begin().await;
        begun.map_err(|fault| Trouble::Stop(sink_error(self.target, self.during, &fault)))
    }

    /// Every statement that names the table takes its metadata lock: from here on nobody can change it until COMMIT.
    async fn hold_table(&mut self, table: &Inspected, turn: Turn) -> Result<(), Trouble> {
        let answer = self.session.text_rows(&table.version_question).await;
        let answer = answer.map_err(|fault| match row_error::fault(self.target, self.during, &fault) {
            Fault::Row(cause) => Trouble::Schema(cause.message),
            fault @ (Fault::Schema(_) | Fault::Again(_) | Fault::Target(_)) => fault.into(),
        })?;
        if version_of(&answer) != table.version {
            return Err(Trouble::Schema("the table changes faster than it can be read".to_owned()));
        }
        match turn {
            // There is no lock that several could share: a deadlock is found at once, and its victim goes again alone.
            Turn::BesideOthers => Ok(()),
            Turn::Alone => self.wait_for_turn(table).await,
        }
    }

    /// A row that is larger than the server's largest message is refused by us.
    fn refuses_one(&self, table: &Inspected, rows: &RowsOf<'_, Inspected>, events: &[usize]) -> bool {
        refuses_one(&self.place(table, rows), events)
    }

    async fn write_rows(
        &mut self,
        to_write: RowsToWrite<'_, Inspected>,
        judge: InputJudge<'_>,
    ) -> Result<Outcome, Trouble> {
        let RowsToWrite { table, rows, order, pass } = to_write;
        let place = self.place(table, rows);
        match pass {
            Pass::Fast => write_fast(self.session, &place, &order.events).await,
            Pass::Slow { known } => write_slowly(self.session, &place, &order.events, known, judge).await,
        }
    }

    async fn commit(&mut self, sent: &'static str) -> Result<(), SinkError> {
        // Before COMMIT: a worker that is stopped after it must not keep the others waiting.
        self.end_turn().await.map_err(|fault| sink_error(self.target, self.during, &fault))?;
        let end = {
            // Sent first, so that the point lies between COMMIT and its answer.
            let mut committing = pin!(checked_commit(self.session));
            let answered = poll_fn(|context| Poll::Ready(committing.as_mut().poll(context))).await;
            tokio::task::yield_now().await;
            point(sent);
            match answered {
                Poll::Ready(end) => end,
                Poll::Pending => committing.await,
            }
        };
        after_commit(self.target, self.during, end)
    }

    /// The turn ends while the transaction is open, if that goes: the server ends the session of a worker that is stopped
    /// inside a transaction, and keeps one that is stopped behind it.
    async fn roll_back(&mut self) {
        let inside = self.end_turn().await;
        if let Err(fault) = self.session.rollback().await {
            tracing::debug!(error = %fault, "no answer to ROLLBACK");
        }
        if inside.is_err()
            && let Err(fault) = self.end_turn().await
        {
            tracing::debug!(error = %fault, "no answer to RELEASE_LOCK");
            self.session.spoil();
        }
    }

    async fn read_table_again(&mut self, was: &Inspected) -> Result<Inspected, SinkError> {
        match self.delivery {
            Some(id) => inspect_again(self.session, self.config, id, was, self.proof).await,
            None => inspect_foreign_again(self.session, self.config, was).await,
        }
    }

    async fn pause(&mut self) {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(1..50))).await;
    }
}

impl EpochTransaction for MysqlTransaction<'_> {
    async fn swap_progress(
        &mut self,
        id: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
    ) -> Result<Progress, SinkError> {
        progress::swap(self.session, id, was, record).await
    }

    /// The contract names the table by its new number, if it got one.
    async fn follow_table(
        &mut self,
        id: &DeliveryId,
        table: &Inspected,
        progress: Progress,
    ) -> Result<Progress, SinkError> {
        let identity = &table.identity.0;
        if table.renumbered == Renumbered::No || progress.contract.fact(TARGET) == identity {
            return Ok(progress);
        }
        let contract = progress.contract.clone().with(TARGET, identity.clone());
        progress::set_contract(self.session, id, progress.epoch, &contract).await?;
        Ok(Progress { contract, ..progress })
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

#[cfg(test)]
#[path = "change_tests.rs"]
mod change_tests;
#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
