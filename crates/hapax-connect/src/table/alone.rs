//! One event written by itself, for targets that write batches.

use hapax_engine::batch::{Batch, OutputEvent};
use hapax_engine::sink::SinkError;
use hapax_model::letter::Cause;
use hapax_model::position::Position;
use hapax_model::rejects::RejectStop;

/// One event as a batch of its own.
#[must_use]
pub fn alone(event: &OutputEvent<'_>) -> Batch {
    let mut batch = Batch::new(event.layout().clone());
    batch.inputs.set_format(event.format());
    batch.inputs.push(event.position(), event.payload().as_bytes());
    let emit = u16::try_from(event.emit()).unwrap_or(u16::MAX);
    let mut copy = batch.push_event(0, emit, event.operation());
    let (_, mut fields) = copy.reading();
    (0..event.layout().paths().len()).for_each(|slot| fields.copy(slot, event.field(slot)));
    copy.set_keys(event.entity_key(), event.event_key());
    batch
}

/// The target refused that event.
#[must_use]
pub fn refused(position: Position, cause: Cause) -> SinkError {
    SinkError::Rejected { stop: RejectStop::First { input: 0 }, position, message: cause.message }
}
