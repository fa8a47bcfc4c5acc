//! One event written by itself, for targets that write batches.

use hapax_engine::batch::{Batch, FieldSpan, OutputEvent};
use hapax_engine::sink::SinkError;
use hapax_model::field::FieldValue;
use hapax_model::letter::Cause;
use hapax_model::position::Position;
use hapax_model::rejects::RejectStop;

/// One event as a batch of its own.
#[must_use]
pub fn alone(event: &OutputEvent<'_>) -> Batch {
    let mut batch = Batch::new(event.layout().clone());
    let payload = event.payload();
    batch.inputs.set_format(event.format());
    batch.inputs.push(event.position(), payload.as_bytes());
    let emit = u16::try_from(event.emit()).unwrap_or(u16::MAX);
    let mut copy = batch.push_event(0, emit, event.operation());
    for slot in 0..event.layout().paths().len() {
        if let Some(field) = span_of(payload, event.field(slot)) {
            copy.set(slot, &field);
        }
    }
    copy.set_keys(event.entity_key(), event.event_key());
    batch
}

/// A field as a span of its event's own bytes.
fn span_of(payload: &str, value: FieldValue<'_>) -> Option<FieldSpan> {
    let range = |text: &str| {
        let start = (text.as_ptr() as usize).wrapping_sub(payload.as_ptr() as usize);
        payload.get(start..start.checked_add(text.len())?).filter(|same| *same == text)?;
        Some(start..start + text.len())
    };
    match value {
        FieldValue::Absent => None,
        FieldValue::Null => Some(FieldSpan::Null),
        FieldValue::Bool(value) => Some(FieldSpan::Bool(value)),
        FieldValue::Number(text) => range(text).map(FieldSpan::Number),
        FieldValue::Json(text) => range(text).map(FieldSpan::Json),
        FieldValue::Text(text) => {
            Some(range(text).map_or_else(|| FieldSpan::Unescaped(text.to_owned()), FieldSpan::Text))
        }
    }
}

/// The target refused that event.
#[must_use]
pub fn refused(position: Position, cause: Cause) -> SinkError {
    SinkError::Rejected { stop: RejectStop::First { input: 0 }, position, message: cause.message }
}
