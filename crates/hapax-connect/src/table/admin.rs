//! What moving a delivery needs, and what a person is told where it cannot be moved. The same in every database.

use hapax_engine::books::{ADOPT_CLASH, NO_DELIVERY};
use hapax_engine::sink::SinkError;
use hapax_model::epoch::Generation;
use hapax_model::ledger::Totals;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Progress;

use super::kept::stored;

/// Whether a delivery that a person puts at `to` goes on where it was: then what was in doubt there still is.
pub(crate) fn stays_in_place(was: &Bookmark, to: &Bookmark) -> bool {
    (was.incarnation.number, was.position) == (to.incarnation.number, to.position)
}

/// There is no progress of that delivery.
pub(crate) fn no_delivery(target: String, id: &DeliveryId) -> SinkError {
    let message = format!("there is no progress of {id} here; see hapax status for those that there are");
    SinkError::Unfit { code: NO_DELIVERY, target, message }
}

/// There is no progress under the old name.
pub(crate) fn nothing_to_adopt(target: String, old: &str, sink: &str) -> SinkError {
    let message = format!("workflow \"{old}\" has no progress for sink \"{sink}\" here; see hapax status");
    SinkError::Unfit { code: NO_DELIVERY, target, message }
}

/// The new name has progress already.
pub(crate) fn adopt_clash(target: String, id: &DeliveryId) -> SinkError {
    let message = format!(
        "{id} already has progress of its own; its row in the table of progress must be deleted before another is adopted"
    );
    SinkError::Unfit { code: ADOPT_CLASH, target, message }
}

/// A worker of a workflow or lane whose progress was given away must not begin again from the start under the old name.
pub(crate) fn adopted_away(id: &DeliveryId, by: &str) -> SinkError {
    let by = if by == id.workflow {
        format!("another lane of it has adopted the progress of lane \"{}\"; see `hapax status`, or reset it", id.lane)
    } else {
        format!("workflow \"{by}\" has adopted it; stop \"{}\" or reset it", id.workflow)
    };
    SinkError::FencedOut { ours: Generation(0), by: Some(by) }
}

/// What several lanes have done one after the other, as one lane.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    /// By how much the numbers of each lane rise.
    pub(crate) raised: Vec<Raised>,
    pub(crate) epoch: u64,
    pub(crate) generation: u64,
    pub(crate) totals: Totals,
}

/// By how much the numbers of a lane rise that comes after others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raised {
    pub(crate) epochs: i64,
    /// One more between two lanes says, as after a reset, that a person has moved the delivery.
    pub(crate) generations: i64,
    pub(crate) incarnations: i64,
}

impl Joined {
    pub(crate) fn of(lanes: &[Progress]) -> Self {
        let (mut joined, mut incarnation) = (Self::default(), 0);
        for lane in lanes {
            let (epochs, generations) = (stored(joined.epoch), stored(joined.generation));
            joined.raised.push(Raised { epochs, generations, incarnations: incarnation });
            incarnation += i64::from(lane.bookmark.incarnation.number);
            joined.epoch += lane.epoch.0;
            joined.generation += lane.generation.0 + 1;
            joined.totals = joined.totals.plus(lane.totals);
        }
        joined
    }
}
