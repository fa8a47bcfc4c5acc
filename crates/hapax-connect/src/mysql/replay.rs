//! The steps of a replay of dead letters that this database does in its own way; their order is `table::replay`'s.
//!
//! Reads and writes the target and `hapax_dead_letters`. Not here: decoding the letters' bytes (the
//! caller's).

use std::collections::BTreeMap;

use hapax_engine::batch::Batch;
use hapax_engine::letters::{LetterChoice, LetterStore, Replay, ReplayRule, Replayed, StoredLetter};
use hapax_engine::rows::RowState;
use hapax_engine::sink::SinkError;
use hapax_model::letter::Cause;
use hapax_model::position::DeliveryId;

use super::error::During;
use super::inspect::Inspected;
use super::sink::MysqlSink;
use super::transaction::MysqlTransaction;
use super::{ask, letters, read};
use crate::table::replay::{ReplayTransaction, replay_letters};

impl LetterStore for MysqlSink {
    async fn list(&mut self, choice: &LetterChoice, after: i64, limit: usize) -> Result<Vec<StoredLetter>, SinkError> {
        let mut session = self.home().session().await?;
        letters::list(&mut session, choice, after, limit).await
    }

    async fn discard(&mut self, ids: &[i64]) -> Result<u64, SinkError> {
        let mut session = self.home().session().await?;
        letters::discard(&mut session, ids).await
    }
}

impl Replay for MysqlSink {
    async fn replay(&mut self, letters: &[i64], batch: Batch, rule: ReplayRule) -> Result<Replayed, SinkError> {
        let job = self.replay_job(letters, batch, rule).await?;
        let mut session = self.home().session().await?;
        let mut transaction = MysqlTransaction {
            session: &mut session,
            config: &job.config,
            target: &job.target,
            during: During::Look,
            delivery: Some(&job.id),
            proof: &[],
            turn: None,
        };
        Box::pin(replay_letters(&mut transaction, &job)).await
    }
}

impl ReplayTransaction for MysqlTransaction<'_> {
    async fn lock_dead_letters(&mut self, letters: &[i64]) -> Result<Vec<i64>, SinkError> {
        letters::still_dead(self.session, letters).await
    }

    async fn lock_progress(&mut self, id: &DeliveryId) -> Result<(), SinkError> {
        let sql = "SELECT lane FROM hapax_progress WHERE workflow = ? AND sink = ? ORDER BY lane FOR UPDATE";
        let owner = ask::values![id.workflow.as_str(), id.sink.as_str()];
        ask::rows(self.session, During::Look, sql, owner).await.map(drop)
    }

    async fn row_states(
        &mut self,
        table: &Inspected,
        batch: &Batch,
        events: &[usize],
    ) -> Result<Vec<RowState>, SinkError> {
        read::states(self.session, self.target, table, batch, events).await
    }

    async fn incarnations(&mut self, letters: &[i64]) -> Result<Vec<u32>, SinkError> {
        letters::incarnations(self.session, letters).await
    }

    async fn mark_replayed(&mut self, letters: &[i64]) -> Result<u64, SinkError> {
        letters::mark_replayed(self.session, letters).await
    }

    async fn note_refused(&mut self, refused: &BTreeMap<i64, Cause>) -> Result<(), SinkError> {
        letters::note_refused(self.session, refused).await
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
