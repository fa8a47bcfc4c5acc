//! The books of a SQLite file: what `status`, `dlq`, `reset` and their like ask of it, with no worker alive.
//!
//! A file may be a target, a state store, or both. Reads and writes our tables; makes none but for a pause.
//! Not here: the statements (`admin`, `letters`, `progress`).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

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
use hapax_sql::sqlite::{Open, Session};
use rusqlite::Connection;

use super::error::{During, open_error, session_lost};
use super::tables::{self, Role};
use super::{admin, letters};

/// The books of one SQLite file.
#[derive(Debug)]
pub struct SqliteBooks {
    session: Session,
}

impl SqliteBooks {
    /// Opens the file at `path`, which must exist. Opened to look, nothing can be changed by it.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub async fn open(path: &Path, open: Open, busy_timeout: Duration) -> Result<Self, SinkError> {
        let session = Session::open(path, open, busy_timeout).await.map_err(|error| open_error(&error))?;
        Ok(Self { session })
    }

    /// Makes our tables where they are missing; whether any was.
    ///
    /// # Errors
    /// If the file cannot be written, or its tables are newer than this program.
    pub async fn make_tables(&mut self, role: Role) -> Result<bool, SinkError> {
        self.run(move |connection| {
            let missing = tables::found(connection, role)?.is_none();
            tables::ensure(connection, role).map(|_| missing)
        })
        .await
    }

    /// Drops all our tables.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub async fn drop_tables(&mut self) -> Result<(), SinkError> {
        self.run(tables::drop_all).await
    }

    async fn run<R, F>(&mut self, work: F) -> Result<R, SinkError>
    where
        F: FnOnce(&Connection) -> Result<R, SinkError> + Send + 'static,
        R: Send + 'static,
    {
        let done = self.session.run(move |connection| work(connection)).await;
        let answer = done.map_err(|lost| session_lost(self.session.path(), During::Look, &lost))?;
        if answer.is_err() {
            // Perhaps in doubt: a new connection costs a millisecond, an old one might lie.
            self.session.discard();
        }
        answer
    }
}

impl LetterStore for SqliteBooks {
    async fn list(&mut self, choice: &LetterChoice, after: i64, limit: usize) -> Result<Vec<StoredLetter>, SinkError> {
        let choice = choice.clone();
        self.run(move |connection| letters::list(connection, &choice, after, limit)).await
    }

    async fn discard(&mut self, ids: &[i64]) -> Result<u64, SinkError> {
        let ids = ids.to_vec();
        self.run(move |connection| letters::discard(connection, &ids)).await
    }
}

impl Books for SqliteBooks {
    async fn deliveries(&mut self) -> Result<Vec<StoredDelivery>, SinkError> {
        self.run(admin::deliveries).await
    }

    async fn recent_epochs(&mut self, id: &DeliveryId, limit: usize) -> Result<Vec<LoggedEpoch>, SinkError> {
        let id = id.clone();
        self.run(move |connection| admin::recent_epochs(connection, &id, limit)).await
    }

    async fn letter_counts(&mut self, id: &DeliveryId) -> Result<LetterCounts, SinkError> {
        let id = id.clone();
        self.run(move |connection| letters::counts(connection, &id)).await
    }

    async fn causes(&mut self, choice: &LetterChoice, after: i64) -> Result<Vec<LetterGroup>, SinkError> {
        let choice = choice.clone();
        self.run(move |connection| letters::causes(connection, &choice, after)).await
    }

    async fn owners(&mut self) -> Result<Vec<DeliveryId>, SinkError> {
        self.run(admin::owners).await
    }

    async fn take_in_doubt(&mut self, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
        let ids = ids.to_vec();
        self.run(move |connection| letters::take_in_doubt(connection, &ids)).await
    }

    async fn mark_replayed(&mut self, good: &[i64], refused: &BTreeMap<i64, Cause>) -> Result<u64, SinkError> {
        let (good, refused) = (good.to_vec(), refused.clone());
        self.run(move |connection| letters::mark_written(connection, &good, &refused)).await
    }

    async fn reset(
        &mut self,
        id: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
    ) -> Result<Progress, SinkError> {
        let (id, to, contract) = (id.clone(), to.clone(), contract.cloned());
        self.run(move |connection| admin::reset(connection, &id, &to, contract.as_ref())).await
    }

    async fn adopt(&mut self, old: &str, new: &str, sink: &str) -> Result<u64, SinkError> {
        let (old, new, sink) = (old.to_owned(), new.to_owned(), sink.to_owned());
        self.run(move |connection| admin::adopt(connection, &old, &new, &sink)).await
    }

    async fn adopt_lanes(
        &mut self,
        old: &[DeliveryId],
        new: &DeliveryId,
        to: &Bookmark,
        contract: Option<&Contract>,
        names: OldNames,
    ) -> Result<Progress, SinkError> {
        let (old, new, to, contract) = (old.to_vec(), new.clone(), to.clone(), contract.cloned());
        self.run(move |connection| admin::adopt_lanes(connection, &old, &new, &to, contract.as_ref(), names)).await
    }

    async fn forget(&mut self, id: &DeliveryId) -> Result<Forgotten, SinkError> {
        let id = id.clone();
        self.run(move |connection| admin::forget(connection, &id)).await
    }
}

impl StateBooks for SqliteBooks {
    async fn notes(&mut self) -> Result<Vec<NotedDelivery>, SinkError> {
        self.run(admin::notes).await
    }

    async fn leases(&mut self) -> Result<Vec<StoredLease>, SinkError> {
        self.run(admin::leases).await
    }

    async fn witnesses(&mut self) -> Result<Vec<(DeliveryId, Witness)>, SinkError> {
        self.run(admin::witnesses).await
    }

    async fn reset_witness(&mut self, id: &DeliveryId) -> Result<(), SinkError> {
        let id = id.clone();
        self.run(move |connection| admin::reset_witness(connection, &id)).await
    }

    async fn adopt_memory(&mut self, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
        let (old, new, sink) = (old.to_owned(), new.to_owned(), sink.to_owned());
        self.run(move |connection| admin::adopt_memory(connection, &old, &new, &sink)).await
    }

    async fn adopt_lane_memory(&mut self, old: &DeliveryId, new: &DeliveryId) -> Result<(), SinkError> {
        let (old, new) = (old.clone(), new.clone());
        self.run(move |connection| admin::adopt_lane_memory(connection, &old, &new)).await
    }

    async fn pause(&mut self, pause: &Pause) -> Result<(), SinkError> {
        let pause = pause.clone();
        self.run(move |connection| admin::pause(connection, &pause)).await
    }

    async fn resume(&mut self, workflow: &str) -> Result<bool, SinkError> {
        let workflow = workflow.to_owned();
        self.run(move |connection| admin::resume(connection, &workflow)).await
    }

    async fn pauses(&mut self) -> Result<Vec<Pause>, SinkError> {
        self.run(admin::pauses).await
    }
}

#[cfg(test)]
mod tests {
    use hapax_engine::state::StateStore as _;
    use hapax_model::epoch::{Epoch, Generation};
    use hapax_model::position::Incarnation;

    use super::super::progress::insert_letters;
    use super::super::sample::{Place, bare, id, letter};
    use super::super::state::SqliteState;
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    /// Goal: a file without our tables has empty books, and later ones are seen. Method: ask, write beside it, ask.
    #[tokio::test]
    async fn books_are_read_with_no_worker_alive() {
        let place = Place::new();
        bare(&place.path());
        let mut books = SqliteBooks::open(&place.path(), Open::Existing, WAIT).await.unwrap();
        let all = LetterChoice::default();
        assert_eq!((books.deliveries().await.unwrap(), books.list(&all, 0, 10).await.unwrap()), (vec![], vec![]));
        assert_eq!((books.pauses().await.unwrap(), books.notes().await.unwrap()), (vec![], vec![]));
        let (beside, incarnation) = (place.connect(), Incarnation::new(2, "inode 7"));
        let letters = [letter(1, "x"), letter(2, "x")];
        insert_letters(&beside, &id("a"), Generation(1), Epoch(5), &incarnation, &letters).unwrap();
        assert_eq!(books.list(&all, 0, 10).await.unwrap().len(), 2);
        assert_eq!(books.discard(&[1]).await.unwrap(), 1);
        assert_eq!(books.causes(&all, 0).await.unwrap()[0].count, 1);
        assert_eq!(books.letter_counts(&id("a")).await.unwrap().discarded, 1);
    }

    /// Goal: a pause is kept, seen by workers, and taken back. Method: pause twice, ask as a worker, resume twice.
    #[tokio::test]
    async fn a_paused_workflow_stays_paused_until_it_is_resumed() {
        let place = Place::new();
        bare(&place.path());
        let mut books = SqliteBooks::open(&place.path(), Open::Existing, WAIT).await.unwrap();
        assert!(!books.resume("w").await.unwrap());
        let pause = |by: &str, until_ms| Pause {
            workflow: "w".into(),
            by: by.into(),
            why: "maintenance".into(),
            since_ms: 7,
            until_ms,
        };
        books.pause(&pause("pid 1 on here", Some(8))).await.unwrap();
        let mut state = SqliteState::open(&place.path(), WAIT).await.unwrap();
        assert!(!state.paused("w").await.unwrap(), "its time is over");
        for later in [Some(u64::MAX >> 1), None] {
            books.pause(&pause("pid 2 on here", later)).await.unwrap();
            assert_eq!(books.pauses().await.unwrap(), [pause("pid 2 on here", later)]);
            assert_eq!((state.paused("w").await.unwrap(), state.paused("v").await.unwrap()), (true, false));
        }
        assert!(books.resume("w").await.unwrap());
        assert!(!state.paused("w").await.unwrap());
    }
}
