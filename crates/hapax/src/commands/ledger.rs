//! Where a delivery's progress and dead letters lie, opened for a command: beside the data, or in the state store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax_connect::sqlite::error::{During, open_error, session_lost};
use hapax_engine::sink::SinkError;
use hapax_model::mode::ProgressPlace;
use hapax_sql::sqlite::{Open, Session};

use crate::assemble::Part;
use crate::config::{Config, StateUrl};
use crate::exit::Failure;

/// How long a command waits for a worker's transaction to end.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A database that holds our tables.
pub(crate) struct Ledger {
    session: Session,
}

impl Ledger {
    /// Opens the database at `path`, which must exist.
    pub(crate) async fn open(path: &Path) -> Result<Self, Failure> {
        let session = Session::open(path, Open::Existing, BUSY_TIMEOUT).await.map_err(|error| open_error(&error))?;
        Ok(Self { session })
    }

    /// Runs `work` on its connection.
    pub(crate) async fn run<R, F>(&mut self, work: F) -> Result<R, Failure>
    where
        F: FnOnce(&mut rusqlite::Connection) -> Result<R, SinkError> + Send + 'static,
        R: Send + 'static,
    {
        let path = self.session.path().to_owned();
        let done = self.session.run(work).await;
        Ok(done.map_err(|lost| session_lost(&path, During::Look, &lost))??)
    }
}

/// The database that holds this delivery's progress and letters; none if there is no state store to hold them.
pub(crate) fn ledger_path(part: &Part<'_>, config: &Config) -> Option<PathBuf> {
    match (part.sqlite().progress, &config.state) {
        (ProgressPlace::Sink, _) => Some(part.sqlite().path.clone()),
        (ProgressPlace::State, StateUrl::Sqlite(path)) => Some(path.clone()),
        (ProgressPlace::State, StateUrl::None) => None,
    }
}
