//! What is counted and who gets a letter, for inputs of several events of which some were refused.

use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, Stage};
use hapax_model::position::{Bookmark, Position};
use hapax_model::rejects::{OnReject, RejectRule, RejectStop};

use super::*;
use crate::batch::{Layout, Operation};
use crate::second_pass::SecondPass;

fn cause(message: &str) -> Cause {
    Cause { stage: Stage::Write, code: "HX2030", message: message.into(), fingerprint: message.into() }
}

/// Inputs 0, 1 and 2 with two events each, input 3 undecodable, input 4 without output.
fn batch() -> Batch {
    let mut batch = Batch::new(Layout::new(&[]));
    for input in 0..5 {
        batch.inputs.push(Position::at(input as u64), b"{}");
        match input {
            3 => batch.push_letter(3, cause("no event"), None),
            4 => batch.push_filtered(),
            _ => {
                for emit in 0..2 {
                    let _event = batch.push_event(input, emit, Operation::Upsert);
                }
            }
        }
    }
    batch
}

fn record(batch: &Batch, rejects: RejectRule) -> EpochRecord {
    EpochRecord {
        epoch: Epoch(1),
        from: Bookmark::at("lines", 0),
        to: Bookmark::at("lines", 5),
        counts: batch.counts(),
        opened_at_ms: 1,
        closed_at_ms: 2,
        rejects,
        pass: SecondPass::default(),
    }
}

fn refused(events: &[usize]) -> WriteOutcome {
    let refused = events.iter().map(|event| (*event, cause(&format!("event {event}")))).collect();
    WriteOutcome { refused, ..WriteOutcome::default() }
}

/// Goal: an input dies whole, once, with one letter, and none of its rows is counted. Method: one of its events refused,
/// and both.
#[test]
fn an_input_dies_whole_and_once() {
    let batch = batch();
    let record = record(&batch, RejectRule::new(OnReject::DeadLetter, 1000));
    assert_eq!(batch.counts(), Totals { read: 5, delivered: 3, filtered: 1, dead: 1, rows: 6 });
    for events in [&[2][..], &[2, 3]] {
        let books = EpochBooks::close(&record, &batch, &refused(events)).expect("nothing stops");
        assert_eq!(books.counts, Totals { read: 5, delivered: 2, filtered: 1, dead: 2, rows: 4 }, "{events:?}");
        assert!(books.counts.adds_up());
        assert_eq!(books.dead_inputs, [1, 3]);
        let positions: Vec<u64> = books.letters.iter().map(|letter| letter.position.offset).collect();
        assert_eq!(positions, [1, 3], "{events:?}");
        assert_eq!(books.letters[0].cause.message, "event 2");
    }
}

/// Goal: the stop names the input that broke the rule, with its own cause.
#[test]
fn too_many_rejects_name_the_guilty_input() {
    let batch = batch();
    let stopped = EpochBooks::close(&record(&batch, RejectRule::new(OnReject::Stop, 1000)), &batch, &refused(&[2]));
    let Err(SinkError::Rejected { stop, position, message }) = stopped else { panic!("{stopped:?}") };
    assert_eq!((stop, position, message.as_str()), (RejectStop::First { input: 1 }, Position::at(1), "event 2"));
}

/// Goal: an epoch of the first inputs and one of the rest count what one epoch of all counts. Method: cut at every input.
#[test]
fn a_prefix_and_the_rest_count_what_the_whole_counts() {
    let batch = batch();
    let whole = record(&batch, RejectRule::new(OnReject::DeadLetter, 1000));
    let all = EpochBooks::close(&whole, &batch, &refused(&[1, 4])).expect("nothing stops");
    for inputs in 1..5 {
        let first = prefix_record(&whole, &batch, inputs);
        assert_eq!(first.to.position, Position::at(inputs as u64));
        let rest = batch.after_first(inputs);
        let before: Vec<usize> = [1, 4].into_iter().filter(|event| batch.event(*event).input() < inputs).collect();
        let after: Vec<usize> = [1, 4].into_iter().filter(|event| batch.event(*event).input() >= inputs).collect();
        let gone = batch.events().filter(|event| event.input() < inputs).count();
        let after: Vec<usize> = after.into_iter().map(|event| event - gone).collect();
        let prefix = WriteOutcome { inputs: Some(inputs), ..refused(&before) };
        let one = EpochBooks::close(&first, &batch, &prefix).expect("nothing stops");
        let two = EpochBooks::close(&record(&rest, whole.rejects.clone()), &rest, &refused(&after)).expect("nothing");
        assert_eq!(one.counts.plus(two.counts), all.counts, "cut at {inputs}");
        assert!(one.counts.adds_up() && two.counts.adds_up(), "cut at {inputs}");
        let positions = |letters: &[Letter]| letters.iter().map(|letter| letter.position).collect::<Vec<_>>();
        assert_eq!([positions(&one.letters), positions(&two.letters)].concat(), positions(&all.letters));
    }
}
