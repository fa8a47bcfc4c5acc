//! What the tests of this folder share: a database in a folder of its own, a delivery, an epoch.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax_engine::sink::{Claim, EpochRecord};
use hapax_model::contract::{Contract, SOURCE, TARGET};
use hapax_model::epoch::Epoch;
use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, Letter, LetterBytes, Stage};
use hapax_model::position::{Bookmark, DeliveryId, Position};
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};
use rusqlite::Connection;
use tempfile::TempDir;

use super::tables::{Role, ensure};

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

pub(super) fn contract() -> Contract {
    Contract::default().with(SOURCE, "file:a").with(TARGET, "t")
}

pub(super) fn take(start: u64) -> Claim {
    Claim::Take { start: Bookmark::at("inode 7", start), contract: contract(), session: "pid 1 on here".into() }
}

/// The epoch that follows `was` and reads ten inputs.
pub(super) fn next(was: &Progress) -> EpochRecord {
    let mut to = was.bookmark.clone();
    to.position = Position::at(to.position.offset + 10);
    EpochRecord {
        epoch: was.epoch.next(),
        from: was.bookmark.clone(),
        to,
        counts: Totals { read: 10, delivered: 8, filtered: 1, dead: 1, rows: 16 },
        opened_at_ms: 1,
        closed_at_ms: 2,
        rejects: RejectRule::new(OnReject::DeadLetter, 1000),
    }
}

pub(super) fn letter(offset: u64, fingerprint: &str) -> Letter {
    Letter {
        position: Position::at(offset),
        cause: Cause {
            stage: Stage::Decode,
            code: "HX2001",
            message: format!("{fingerprint} at {offset}"),
            fingerprint: fingerprint.into(),
        },
        bytes: LetterBytes::Whole(vec![0xff, 0, b'x']),
        event_key: None,
    }
}

pub(super) fn epoch_of(connection: &Connection, id: &DeliveryId) -> Option<Epoch> {
    super::progress::look(connection, id).unwrap().map(|progress| progress.epoch)
}
