//! What the tests of this folder share: a database in a folder of its own, a delivery, an epoch.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax_model::epoch::Epoch;
use hapax_model::position::DeliveryId;
use rusqlite::Connection;
use tempfile::TempDir;

use super::tables::{Role, ensure};
pub(super) use crate::table::sample::{contract, letter, next, take};

pub(super) struct Place {
    folder: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("a.db")
    }

    /// A connection of its own, with our tables.
    pub(super) fn connect(&self) -> Connection {
        let connection = bare(&self.path());
        ensure(&connection, Role::State).unwrap();
        connection
    }
}

pub(super) fn bare(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    connection
}

pub(super) fn id(workflow: &str) -> DeliveryId {
    DeliveryId { workflow: workflow.into(), sink: "sqlite".into(), lane: "lane".into() }
}

pub(super) fn epoch_of(connection: &Connection, id: &DeliveryId) -> Option<Epoch> {
    super::progress::look(connection, id).unwrap().map(|progress| progress.epoch)
}
