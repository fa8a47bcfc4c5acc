//! A state store in a folder of its own, for sinks whose progress is elsewhere: the contract of every sink over
//! `progress: state`.

use std::time::Duration;

use hapax_engine::state_progress::{AfterCrash, StateProgress, WatchKeys};
use hapax_model::position::DeliveryId;
use tempfile::TempDir;

use crate::sqlite::state::SqliteState;
use crate::table::idempotent::{Foreign, KeyedSink};
use crate::table::rig::block_on;

/// A sink whose progress is in a state store.
pub(crate) type ByState<F> = StateProgress<KeyedSink<F>, SqliteState>;

pub(crate) struct StateFile {
    folder: TempDir,
    after_crash: AfterCrash,
}

impl StateFile {
    pub(crate) fn new(after_crash: AfterCrash) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), after_crash }
    }

    /// An empty one of the same kind.
    pub(crate) fn empty(&mut self) {
        *self = Self::new(self.after_crash);
    }

    /// Joins a sink with this store; the position is saved with every epoch.
    pub(crate) fn join<F: Foreign>(&self, sink: KeyedSink<F>, id: &DeliveryId) -> ByState<F> {
        let path = self.folder.path().join("state.db");
        let state = block_on(async move { SqliteState::open(&path, Duration::from_secs(20)).await.unwrap() });
        StateProgress::new(id.clone(), sink, state, self.after_crash, WatchKeys::Yes, Duration::ZERO)
    }

    /// The offsets of the letters, ascending.
    pub(crate) fn letters(&self) -> Vec<u64> {
        let connection = rusqlite::Connection::open(self.folder.path().join("state.db")).unwrap();
        let sql = "SELECT CAST(position AS INTEGER) FROM hapax_dead_letters ORDER BY 1";
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get::<_, i64>(0)).unwrap().map(|n| n.unwrap().cast_unsigned()).collect()
    }
}
