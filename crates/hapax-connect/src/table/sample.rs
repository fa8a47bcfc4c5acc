//! What the tests of all dialects share: JSON lines as a batch; a contract, a claim, an epoch, a letter.

use hapax_engine::batch::Batch;
use hapax_engine::decode::UnknownFields;
use hapax_engine::decode::csv::{CsvFormat, Dialect, Format, Header};
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::second_pass::SecondPass;
use hapax_engine::sink::{Claim, EpochRecord};
use hapax_model::contract::{Contract, SOURCE, TARGET};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, Letter, LetterBytes, Stage};
use hapax_model::position::{Bookmark, Incarnation, Position};
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};

/// The inputs as events with these fields, with `.id` as their key; `.op == "d"` asks for a delete.
pub(crate) fn batch(fields: &[FieldPath], first: u64, inputs: &[&str]) -> Batch {
    batch_by(vec![FieldPath::of_name("id")], fields, first, inputs)
}

/// The same with another key.
pub(crate) fn batch_by(key: Vec<FieldPath>, fields: &[FieldPath], first: u64, inputs: &[&str]) -> Batch {
    let strategy = DedupStrategy::content_fields(key);
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

/// Records of CSV with these names, as events with `.id` as their key, or `.n` if that is the first name.
pub(crate) fn csv_batch(fields: &[FieldPath], first: u64, names: &[&str], lines: &[String]) -> Batch {
    let strategy = DedupStrategy::content_fields(vec![FieldPath::of_name(names[0])]);
    let keyer = Keyer::new(strategy, Uniqueness::FieldsAlone, KeyNeed::EntityAndEvent);
    let origin = Origin { source: "file:a".into(), lane: "lane".into() };
    let mut pipeline = Pipeline::new(fields, keyer, None, UnknownFields::Counted, origin);
    let mut batch = pipeline.batch();
    let header = Header::Names(names.iter().map(|name| (*name).to_owned()).collect());
    batch
        .inputs
        .set_format(&Format::Csv(CsvFormat { dialect: Dialect::default(), null: String::new(), header }.into()));
    for (n, line) in (0..).zip(lines) {
        batch.inputs.push(Position::at(first + n), line.as_bytes());
    }
    pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
    batch
}

pub(crate) fn contract() -> Contract {
    Contract::default().with(SOURCE, "file:a").with(TARGET, "t")
}

pub(crate) fn take(start: u64) -> Claim {
    Claim::Take { start: Bookmark::at("inode 7", start), contract: contract(), session: "pid 1 on here".into() }
}

/// The epoch that follows `was` and reads ten inputs.
pub(crate) fn next(was: &Progress) -> EpochRecord {
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
        pass: SecondPass::default(),
    }
}

pub(crate) fn letter(offset: u64, fingerprint: &str) -> Letter {
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
