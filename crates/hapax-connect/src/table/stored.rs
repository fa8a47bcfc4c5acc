//! Progress as the texts and numbers of a row: read back, or named as damaged. The same in every database.

use hapax_engine::sink::SinkError;
use hapax_model::contract::Contract;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::ledger::Totals;
use hapax_model::position::{Bookmark, DeliveryId, NoPosition};
use hapax_model::progress::Progress;

/// A progress row before its texts are read.
pub(crate) struct StoredProgress {
    pub(crate) generation: u64,
    pub(crate) epoch: u64,
    pub(crate) position: String,
    pub(crate) incarnation: String,
    pub(crate) contract: String,
    pub(crate) snapshot: Option<String>,
    pub(crate) session: String,
    pub(crate) totals: Totals,
}

impl StoredProgress {
    /// The progress that it tells of; else a sentence about what is wrong with it.
    pub(crate) fn check(self, id: &DeliveryId) -> Result<Progress, String> {
        let broken = |what: String| format!("the stored progress of {id} is damaged: {what}");
        Ok(Progress {
            generation: Generation(self.generation),
            epoch: Epoch(self.epoch),
            bookmark: bookmark(&self.position, &self.incarnation).map_err(&broken)?,
            contract: Contract::from_text(&self.contract).map_err(|error| broken(error.to_string()))?,
            snapshot: self.snapshot,
            session: self.session,
            totals: self.totals,
        })
    }
}

/// A bookmark from its two stored texts; the error says what is wrong with them.
pub(crate) fn bookmark(position: &str, incarnation: &str) -> Result<Bookmark, String> {
    let position = position.parse().map_err(|error: NoPosition| error.to_string())?;
    Bookmark::from_stored(position, incarnation).map_err(|error| error.to_string())
}

/// What a fenced worker is told, by the progress that is there now.
pub(crate) fn fenced_by(found: Option<&Progress>, ours: Generation) -> SinkError {
    let by = match found {
        None => "its progress is gone: it was adopted, forgotten, or the database was replaced".to_owned(),
        Some(found) if found.generation == ours => {
            format!("generation {ours} is still ours, but progress is at epoch {}, {}", found.epoch, found.bookmark)
        }
        Some(found) => format!("{}, generation {} after our {ours}", found.session, found.generation),
    };
    SinkError::FencedOut { ours, by: Some(by) }
}
