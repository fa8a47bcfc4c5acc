//! Inputs whose write was in doubt, as dead letters: at-most-once never repeats one.
//!
//! Reads: the batch that was being written. Writes: nothing. Invariant: an input that had no output stays filtered, one
//! that had died keeps its own cause, and a letter keeps what is known of an input that was too long.

use hapax_model::letter::{Cause, IN_DOUBT, Letter, Stage};

use crate::batch::Batch;

/// Who may have sent what is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentBy {
    /// This worker, as the batch has it.
    ThisLife,
    /// One before it, perhaps under another configuration: what cannot be delivered now may have been sent then.
    AnEarlierLife,
}

/// The batch with letters in place of the events of its first `inputs` inputs.
#[must_use]
pub(crate) fn with_letters(batch: &Batch, inputs: usize, sent_by: SentBy) -> Batch {
    let mut after = batch.without_events_before(inputs);
    let mut died = batch.letters().iter().map(|(input, _)| *input).peekable();
    let mut events = batch.events().map(|event| event.input()).peekable();
    for input in 0..inputs {
        let mut had_output = false;
        while events.next_if_eq(&input).is_some() {
            had_output = true;
        }
        if died.next_if_eq(&input).is_none() && had_output {
            after.add_letter(input, cause());
        }
    }
    if sent_by == SentBy::AnEarlierLife {
        // What was no event at all is none under any configuration of its format.
        let doubtful = |(input, letter): &&mut (usize, Letter)| *input < inputs && letter.cause.stage != Stage::Decode;
        for (_, letter) in after.letters_mut().iter_mut().filter(doubtful) {
            if letter.cause.code != IN_DOUBT {
                letter.cause = still_in_doubt(&letter.cause);
            }
        }
    }
    after
}

/// What a letter in doubt says after it was refused: whether it was sent before is as unknown as it was.
#[must_use]
pub fn still_in_doubt(refused: &Cause) -> Cause {
    let doubt = cause();
    let message = format!("{}; now it cannot be delivered ({}): {}", doubt.message, refused.code, refused.message);
    Cause { message, ..doubt }
}

fn cause() -> Cause {
    Cause {
        stage: Stage::Write,
        code: IN_DOUBT,
        message: "the commit of this input was in doubt, and at-most-once never repeats one".into(),
        fingerprint: "in doubt under at-most-once".into(),
    }
}

/// What a letter says while a replay writes it to a target that holds none of our tables, and after a replay that did not
/// end. Its message goes before the one that the letter had.
#[must_use]
pub fn in_doubt_after_replay() -> Cause {
    Cause {
        stage: Stage::Write,
        code: IN_DOUBT,
        message: "a replay was writing it, and how that ended is not known; before that it was ".into(),
        fingerprint: "in doubt after a replay".into(),
    }
}

#[cfg(test)]
mod tests {
    use hapax_model::ledger::Totals;
    use hapax_model::letter::LetterBytes;
    use hapax_model::position::Position;

    use super::*;
    use crate::batch::{Layout, Operation};

    /// Goal: every input keeps its one fate: filtered stays filtered, dead keeps its cause, what was cut stays cut. Method:
    /// one of each, all in doubt, and only the first two.
    #[test]
    fn only_inputs_with_outputs_become_letters() {
        let mut batch = Batch::new(Layout::new(&[]));
        batch.inputs.push(Position::at(0), b"sent");
        batch.push_event(0, 0, Operation::Upsert);
        batch.push_event(0, 1, Operation::Upsert);
        batch.inputs.push(Position::at(1), b"filtered");
        batch.push_filtered();
        batch.inputs.push_oversized(Position::at(2), b"head", 99, [7; 32]);
        batch.push_letter(2, Cause { code: "HX2002", ..cause() }, None);
        batch.inputs.push_oversized(Position::at(3), b"cut", 77, [8; 32]);
        batch.push_event(3, 0, Operation::Upsert);
        let all = with_letters(&batch, 4, SentBy::ThisLife);
        assert_eq!(all.counts(), Totals { read: 4, delivered: 0, filtered: 1, dead: 3, rows: 0 });
        let codes: Vec<_> = all.letters().iter().map(|(input, letter)| (*input, letter.cause.code)).collect();
        assert_eq!(codes, [(0, IN_DOUBT), (2, "HX2002"), (3, IN_DOUBT)]);
        assert!(matches!(all.letters()[2].1.bytes, LetterBytes::Cut { length: 77, .. }), "{:?}", all.letters()[2]);
        let some = with_letters(&batch, 2, SentBy::ThisLife);
        assert_eq!(some.counts(), Totals { read: 4, delivered: 1, filtered: 1, dead: 2, rows: 1 });
        assert_eq!(some.event(0).input(), 3);
    }
    /// Goal: an input that an earlier life may have sent stays in doubt though it cannot be delivered now; one that is no event
    /// was never sent. Method: both, and one behind the doubtful ones.
    #[test]
    fn what_an_earlier_life_may_have_sent_is_in_doubt_whatever_it_is_now() {
        let mut batch = Batch::new(Layout::new(&[]));
        let refused = |stage| Cause { stage, code: "HX2100", message: "a slip".into(), fingerprint: "slip".into() };
        for (input, stage) in [Stage::Transform, Stage::Decode, Stage::Map].into_iter().enumerate() {
            batch.inputs.push(Position::at(input as u64), b"x");
            batch.push_letter(input, refused(stage), None);
        }
        let after = with_letters(&batch, 2, SentBy::AnEarlierLife);
        let codes: Vec<_> = after.letters().iter().map(|(_, letter)| letter.cause.code).collect();
        assert_eq!(codes, [IN_DOUBT, "HX2100", "HX2100"]);
        assert!(after.letters()[0].1.cause.message.contains("a slip"), "{:?}", after.letters()[0]);
        assert_eq!(with_letters(&batch, 2, SentBy::ThisLife).letters()[0].1.cause.code, "HX2100");
    }
}
