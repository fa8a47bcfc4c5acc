//! What the tests of all dialects share: JSON lines as a batch.

use hapax_engine::batch::Batch;
use hapax_engine::decode::UnknownFields;
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::position::{Incarnation, Position};

/// The inputs as events with these fields, with `.id` as their key; `.op == "d"` asks for a delete.
pub(crate) fn batch(fields: &[FieldPath], first: u64, inputs: &[&str]) -> Batch {
    let strategy = DedupStrategy::content_fields(vec![FieldPath::of_name("id")]);
    let keyer = Keyer::new(strategy, Uniqueness::FieldsAlone, KeyNeed::EntityAndEvent);
    let origin = Origin { source: "file:a".into(), lane: "lane".into() };
    let delete_when = Some(".op == \"d\"".parse().unwrap());
    let mut pipeline = Pipeline::new(fields, keyer, delete_when, UnknownFields::Counted, origin);
    let mut batch = pipeline.batch();
    for (n, input) in (0..).zip(inputs) {
        batch.inputs.push(Position::at(first + n), input.as_bytes());
    }
    pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
    batch
}
