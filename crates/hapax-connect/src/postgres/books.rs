//! The books of a PostgreSQL database: what `status`, `dlq`, `reset` and their like ask of it, with no worker alive.
//!
//! A database may be a target, a state store, or both. Reads and writes our tables; makes them only for `hapax setup`.
//! Not here: the statements (`admin`, `letters`, `progress`, `lease`, `memory`).

use std::collections::BTreeMap;

use hapax_engine::books::{
    Books, Forgotten, LetterCounts, LetterGroup, LoggedEpoch, NotedDelivery, OldNames, Pause, StateBooks,
    StoredDelivery, StoredLease,
};
use hapax_engine::letters::{LetterChoice, LetterStore, StoredLetter};
use hapax_engine::sink::SinkError;
use hapax_model::contract::Contract;
use hapax_model::letter::Cause;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::{Progress, Witness};
use hapax_sql::postgres::{Limits, Pool, PostgresUrl, Taken};

use super::error::{During, connect_error};
use super::tables::{self, Made, Role};
use super::{admin, ask, lease, letters, memory, rights};

/// The books of one PostgreSQL database.
#[derive(Debug)]
pub struct PostgresBooks {
    pool: Pool,
    patience: std::time::Duration,
}

impl PostgresBooks {
    /// Connects to the database.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses us.
    pub async fn open(url: &PostgresUrl, limits: Limits) -> Result<Self, SinkError> {
        let patience = limits.connect;
        let books = Self { pool: Pool::new(url.clone(), limits, 1), patience };
        books.session().await?;
        Ok(books)
    }

    /// Makes our tables where they are missing, and brings older ones to this program's version.
    ///
    /// # Errors
    /// If the rights do not suffice, or the tables are newer than this program, or damaged.
    pub async fn make_tables(&mut self, role: Role) -> Result<Made, SinkError> {
        tables::ensure(&*self.session().await?, role).await
    }

    /// Drops all our tables.
    ///
    /// # Errors
    /// If this role does not own them.
    pub async fn drop_tables(&mut self) -> Result<(), SinkError> {
        tables::drop_all(&*self.session().await?).await
    }

    /// Checks that this role may mark dead letters, as a replay and a discard do. Changes nothing.
    ///
    /// # Errors
    /// [`SinkError::Denied`] with the GRANT that is missing.
    pub async fn check_letter_rights(&mut self) -> Result<(), SinkError> {
        rights::check_letters(&*self.session().await?).await
    }

    async fn session(&self) -> Result<Taken, SinkError> {
        self.pool.take(self.patience).await.map_err(|error| connect_error(&self.pool.url().target(), &error))
    }
}

impl LetterStore for PostgresBooks {
    async fn list(&mut self, choice: &LetterChoice, after: i64, limit: usize) -> Result<Vec<StoredLetter>, SinkError> {
        letters::list(&*self.session().await?, choice, after, limit).await
    }

    async fn discard(&mut self, ids: &[i64]) -> Result<u64, SinkError> {
        letters::discard(&*self.session().await?, ids).await
    }
}

impl Books for PostgresBooks {
    async fn deliveries(&mut self) -> Result<Vec<StoredDelivery>, SinkError> {
        admin::deliveries(&*self.session().await?).await
    }

    async fn recent_epochs(&mut self, id: &DeliveryId, limit: usize) -> Result<Vec<LoggedEpoch>, SinkError> {
        admin::recent_epochs(&*self.session().await?, id, limit).await
    }

    async fn letter_counts(&mut self, id: &DeliveryId) -> Result<LetterCounts, SinkError> {
        letters::counts(&*self.session().await?, id).await
    }

    async fn causes(&mut self, choice: &LetterChoice, after: i64) -> Result<Vec<LetterGroup>, SinkError> {
        letters::causes(&*self.session().await?, choice, after).await
    }

    async fn owners(&mut self) -> Result<Vec<DeliveryId>, SinkError> {
        admin::owners(&*self.session().await?).await
    }

    async fn take_in_doubt(&mut self, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
        let session = self.session().await?;
        ask::begin_perhaps_empty(&session).await?;
        let taken = letters::take_in_doubt(&session, ids).await;
        ask::end(&session, During::Look, taken).await
    }

    async fn mark_replayed(&mut self, good: &[i64], refused: &BTreeMap<i64, Cause>) -> Result<u64, SinkError> {
        let session = self.session().await?;
        ask::begin_perhaps_empty(&session).await?;
        let marked = letters::mark_written(&session, good, refused).await;
        ask::end(&session, During::Look, marked).await
    }

    async fn reset(
        &mut self,
        id: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
    ) -> Result<Progress, SinkError> {
        admin::reset(&*self.session().await?, id, to, contract).await
    }

    async fn adopt(&mut self, old: &str, new: &str, sink: &str) -> Result<u64, SinkError> {
        admin::adopt(&*self.session().await?, old, new, sink).await
    }

    async fn adopt_lanes(
        &mut self,
        old: &[DeliveryId],
        new: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
        names: OldNames,
    ) -> Result<Progress, SinkError> {
        admin::adopt_lanes(&*self.session().await?, old, new, to, contract, names).await
    }

    async fn forget(&mut self, id: &DeliveryId) -> Result<Forgotten, SinkError> {
        admin::forget(&*self.session().await?, id).await
    }
}

impl StateBooks for PostgresBooks {
    async fn notes(&mut self) -> Result<Vec<NotedDelivery>, SinkError> {
        memory::notes(&*self.session().await?).await
    }

    async fn leases(&mut self) -> Result<Vec<StoredLease>, SinkError> {
        lease::leases(&*self.session().await?).await
    }

    async fn witnesses(&mut self) -> Result<Vec<(DeliveryId, Witness)>, SinkError> {
        memory::witnesses(&*self.session().await?).await
    }

    async fn reset_witness(&mut self, id: &DeliveryId) -> Result<(), SinkError> {
        let session = self.session().await?;
        admin::delete(&session, "notes", id).await?;
        admin::delete(&session, "witness", id).await.map(|_| ())
    }

    async fn adopt_memory(&mut self, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
        admin::adopt_memory(&*self.session().await?, old, new, sink).await
    }

    async fn adopt_lane_memory(&mut self, old: &DeliveryId, new: &DeliveryId) -> Result<(), SinkError> {
        admin::adopt_lane_memory(&*self.session().await?, old, new).await
    }

    async fn pause(&mut self, pause: &Pause) -> Result<(), SinkError> {
        memory::pause(&*self.session().await?, pause).await
    }

    async fn resume(&mut self, workflow: &str) -> Result<bool, SinkError> {
        memory::resume(&*self.session().await?, workflow).await
    }

    async fn pauses(&mut self) -> Result<Vec<Pause>, SinkError> {
        memory::pauses(&*self.session().await?).await
    }
}

#[cfg(test)]
#[path = "books_tests.rs"]
mod tests;
