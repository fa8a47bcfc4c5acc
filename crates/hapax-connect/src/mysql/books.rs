//! The books of a MySQL or MariaDB database: what `status`, `dlq`, `reset` and their like ask of it, with no worker
//! alive.
//!
//! Reads and writes our tables; makes them only for `hapax setup`. Not here: the statements (`admin`, `letters`,
//! `progress`); what a state store has besides, which no MySQL database is.

use std::collections::BTreeMap;

use hapax_engine::books::{Books, Forgotten, LetterCounts, LetterGroup, LoggedEpoch, OldNames, StoredDelivery};
use hapax_engine::letters::{LetterChoice, LetterStore, StoredLetter};
use hapax_engine::sink::SinkError;
use hapax_model::contract::Contract;
use hapax_model::letter::Cause;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Progress;
use hapax_sql::mysql::{Limits, MysqlUrl, Pool, Taken};

use super::error::{During, connect_error};
use super::tables::{self, Made};
use super::{admin, ask, letters, rights};

/// What only a state store has was asked of a MySQL database.
pub const NO_STATE_STORE: &str = "HX4452";

/// The books of one MySQL or MariaDB database.
#[derive(Debug)]
pub struct MysqlBooks {
    pool: Pool,
    patience: std::time::Duration,
}

impl MysqlBooks {
    /// Connects to the database.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses us.
    pub async fn open(url: &MysqlUrl, limits: Limits) -> Result<Self, SinkError> {
        let patience = limits.connect;
        let books = Self { pool: Pool::new(url.clone(), limits, 1), patience };
        books.session().await?;
        Ok(books)
    }

    /// Makes our tables where they are missing, and brings older ones to this program's version.
    ///
    /// # Errors
    /// If the rights do not suffice, or the tables are newer than this program, or damaged.
    pub async fn make_tables(&mut self) -> Result<Made, SinkError> {
        tables::ensure(&mut *self.session().await?).await
    }

    /// Drops all our tables.
    ///
    /// # Errors
    /// If this user may not.
    pub async fn drop_tables(&mut self) -> Result<(), SinkError> {
        tables::drop_all(&mut *self.session().await?).await
    }

    /// Why it cannot be asked for leases, witnesses, notes or pauses.
    #[must_use]
    pub fn no_state_store(&self) -> SinkError {
        let message = "a MySQL database is never a state store; name a SQLite file or a PostgreSQL database as `state`";
        SinkError::Unfit { code: NO_STATE_STORE, target: self.pool.url().target(), message: message.to_owned() }
    }

    /// Checks that this user may mark dead letters, as a replay and a discard do. Changes nothing.
    ///
    /// # Errors
    /// [`SinkError::Denied`] with the GRANT that is missing.
    pub async fn check_letter_rights(&mut self) -> Result<(), SinkError> {
        rights::check_letters(&mut *self.session().await?).await
    }

    async fn session(&self) -> Result<Taken, SinkError> {
        self.pool.take(self.patience).await.map_err(|error| connect_error(&self.pool.url().target(), &error))
    }
}

impl LetterStore for MysqlBooks {
    async fn list(&mut self, choice: &LetterChoice, after: i64, limit: usize) -> Result<Vec<StoredLetter>, SinkError> {
        letters::list(&mut *self.session().await?, choice, after, limit).await
    }

    async fn discard(&mut self, ids: &[i64]) -> Result<u64, SinkError> {
        letters::discard(&mut *self.session().await?, ids).await
    }
}

impl Books for MysqlBooks {
    async fn deliveries(&mut self) -> Result<Vec<StoredDelivery>, SinkError> {
        admin::deliveries(&mut *self.session().await?).await
    }

    async fn recent_epochs(&mut self, id: &DeliveryId, limit: usize) -> Result<Vec<LoggedEpoch>, SinkError> {
        admin::recent_epochs(&mut *self.session().await?, id, limit).await
    }

    async fn letter_counts(&mut self, id: &DeliveryId) -> Result<LetterCounts, SinkError> {
        letters::counts(&mut *self.session().await?, id).await
    }

    async fn causes(&mut self, choice: &LetterChoice, after: i64) -> Result<Vec<LetterGroup>, SinkError> {
        letters::causes(&mut *self.session().await?, choice, after).await
    }

    async fn owners(&mut self) -> Result<Vec<DeliveryId>, SinkError> {
        admin::owners(&mut *self.session().await?).await
    }

    async fn take_in_doubt(&mut self, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
        let mut session = self.session().await?;
        ask::begin(&mut session, During::Look).await?;
        let taken = letters::take_in_doubt(&mut session, ids).await;
        ask::end(&mut session, During::Look, taken).await
    }

    async fn mark_replayed(&mut self, good: &[i64], refused: &BTreeMap<i64, Cause>) -> Result<u64, SinkError> {
        let mut session = self.session().await?;
        ask::begin(&mut session, During::Look).await?;
        let marked = letters::mark_written(&mut session, good, refused).await;
        ask::end(&mut session, During::Look, marked).await
    }

    async fn reset(
        &mut self,
        id: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
    ) -> Result<Progress, SinkError> {
        admin::reset(&mut *self.session().await?, id, to, contract).await
    }

    async fn adopt(&mut self, old: &str, new: &str, sink: &str) -> Result<u64, SinkError> {
        admin::adopt(&mut *self.session().await?, old, new, sink).await
    }

    async fn adopt_lanes(
        &mut self,
        old: &[DeliveryId],
        new: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
        names: OldNames,
    ) -> Result<Progress, SinkError> {
        admin::adopt_lanes(&mut *self.session().await?, old, new, to, contract, names).await
    }

    async fn forget(&mut self, id: &DeliveryId) -> Result<Forgotten, SinkError> {
        admin::forget(&mut *self.session().await?, id).await
    }
}

#[cfg(test)]
#[path = "books_tests.rs"]
mod tests;
