//! A state store of a test's own, for sinks whose progress is elsewhere: the contract of every sink over
//! `progress: state`, in a SQLite file and in a PostgreSQL database.

use std::time::Duration;

use hapax_engine::state::ProgressStore;
use hapax_engine::state_progress::{AfterCrash, StateProgress, WatchKeys};
use hapax_model::position::DeliveryId;
use tempfile::TempDir;

use crate::sqlite::state::SqliteState;
use crate::table::idempotent::{Foreign, KeyedSink};
use crate::table::rig::block_on;

/// What every worker that is killed may do afterwards.
pub(crate) const AFTER_CRASH: [AfterCrash; 2] = [AfterCrash::WriteAgain, AfterCrash::GiveUp];

/// A sink whose progress is in a state store.
pub(crate) type ByState<F, S> = StateProgress<KeyedSink<F>, <S as StateStoreOfTest>::Store>;

/// A state store that belongs to one test. Opened from a runtime of several threads.
pub(crate) trait StateStoreOfTest {
    /// What a worker has of it.
    type Store: ProgressStore;

    /// Forgets everything.
    fn empty(&mut self);
    /// Opens it, as one more worker.
    fn open(&self) -> Self::Store;
    /// The offsets of the letters, ascending.
    fn letters(&self) -> Vec<u64>;

    /// Joins a sink with this store; the position is saved with every epoch.
    fn join<F: Foreign>(&self, sink: KeyedSink<F>, after_crash: AfterCrash, id: &DeliveryId) -> ByState<F, Self> {
        StateProgress::new(id.clone(), sink, self.open(), after_crash, WatchKeys::Yes, Duration::ZERO)
    }
}

/// In a folder of its own.
pub(crate) struct StateFile {
    folder: TempDir,
}

impl StateFile {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }
}

impl StateStoreOfTest for StateFile {
    type Store = SqliteState;

    fn empty(&mut self) {
        *self = Self::new();
    }

    fn open(&self) -> SqliteState {
        let path = self.folder.path().join("state.db");
        block_on(async move { SqliteState::open(&path, Duration::from_secs(20)).await.unwrap() })
    }

    fn letters(&self) -> Vec<u64> {
        let connection = rusqlite::Connection::open(self.folder.path().join("state.db")).unwrap();
        let sql = "SELECT CAST(position AS INTEGER) FROM hapax_dead_letters ORDER BY 1";
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get::<_, i64>(0)).unwrap().map(|n| n.unwrap().cast_unsigned()).collect()
    }
}
