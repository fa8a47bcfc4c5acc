//! Key fields that a person named, as the events that may have them.
//!
//! Keys are made of what a workflow's transform leaves, so such an event goes round it. Where only the transform can make
//! the key of what was named, it goes through.

use hapax_engine::decode::csv::Format;
use hapax_model::field::FieldPath;

use super::super::subject::Subject;
use super::what::{has, with_texts};

/// Which way to its keys an event goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// That of an input.
    Whole,
    /// From behind the transform on.
    BehindTransform,
}

/// One event.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) bytes: Vec<u8>,
    pub(super) format: Format,
    pub(super) way: Way,
}

/// The events that `event`, fields as JSON, may stand for; at least one.
pub(super) fn asked(subject: &Subject<'_>, event: &str, key: &[FieldPath]) -> Vec<Asked> {
    let format = subject.part.kept_format();
    if subject.part.workflow.transform.is_none() || !key.iter().all(|field| has(event, field)) {
        return vec![Asked { bytes: subject.as_input(event), format, way: Way::Whole }];
    }
    let mut events = vec![event.to_owned()];
    if !matches!(format, Format::Json) {
        // A transform makes numbers of some columns, and leaves others the texts that they are in CSV.
        events.push(with_texts(event));
        events.dedup();
    }
    let left = |event: String| Asked { bytes: event.into_bytes(), format: Format::Json, way: Way::BehindTransform };
    events.into_iter().map(left).collect()
}
