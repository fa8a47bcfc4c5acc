//! What an administrator is told where there is nothing to move. The same in every database.

use hapax_engine::books::NO_DELIVERY;
use hapax_engine::sink::SinkError;
use hapax_model::position::DeliveryId;

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
