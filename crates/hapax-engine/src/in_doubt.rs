//! Inputs whose write was in doubt, as dead letters: at-most-once never repeats one.
//!
//! Reads: the batch that was being written, and by which rules it was made. Writes: nothing. Invariant: an input that cannot
//! have been sent keeps its own fate, filtered or dead; any other is in doubt, and a letter keeps what is known of an input
//! that was too long.

use hapax_model::letter::{Cause, IN_DOUBT, Letter, Stage};
use sha2::{Digest as _, Sha256};

use crate::batch::Batch;
use crate::pulse::Verdict;

/// Who may have sent what is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentBy<'a> {
    /// This worker, as the batch has it.
    ThisLife,
    /// One before it that made rows as they are made now. These events fit no column, and were not sent then either.
    SameRules(&'a [(usize, Cause)]),
    /// One before it that read inputs as they are read now, and made other rows of them, or none: what is no event was none then.
    SameReading,
    /// One before it, nobody knows how: any input may have been sent.
    OtherRules,
}

/// How inputs become rows, as an intent remembers it: two workers with the same rules send the same.
///
/// It is kept in the place of the digest of keys, which nobody compares where nothing is sent again. Its first half is zero, as
/// that of no digest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendingRules {
    reading: [u8; 8],
    all: [u8; 8],
}

impl SendingRules {
    /// Nothing is known: equal to no rules.
    pub(crate) const UNKNOWN: Self = Self { reading: [0; 8], all: [0; 8] };

    /// The rules in words: how inputs are read, what is made of them, how the target makes rows of that.
    pub(crate) fn of(reading: &str, making: &str, rows: &str) -> Self {
        let hash = |texts: &[&str]| {
            let mut digest = Sha256::new();
            for text in texts {
                digest.update((text.len() as u64).to_be_bytes());
                digest.update(text);
            }
            let mut first = [0; 8];
            first.copy_from_slice(&digest.finalize()[..8]);
            first
        };
        Self { reading: hash(&[reading]), all: hash(&[reading, making, rows]) }
    }

    /// As they stand in an intent.
    pub(crate) fn to_digest(self) -> [u8; 32] {
        let mut digest = [0; 32];
        digest[16..24].copy_from_slice(&self.reading);
        digest[24..].copy_from_slice(&self.all);
        digest
    }

    /// What an intent says; unknown if it holds a digest of keys.
    pub(crate) fn of_digest(digest: &[u8; 32]) -> Self {
        let mut rules = Self::UNKNOWN;
        if !is_of_keys(digest) {
            rules.reading.copy_from_slice(&digest[16..24]);
            rules.all.copy_from_slice(&digest[24..]);
        }
        rules
    }

    /// What both have in common.
    pub(crate) fn common(self, other: Self) -> Self {
        let reading = if self.reading == other.reading { self.reading } else { Self::UNKNOWN.reading };
        let all = if self == other { self.all } else { Self::UNKNOWN.all };
        Self { reading, all }
    }

    /// Who sent by `then`, to one who sends by these rules. `misfits`: events that fit no column.
    pub(crate) fn sent_by(self, then: Self, misfits: &[(usize, Cause)]) -> SentBy<'_> {
        if self == then {
            SentBy::SameRules(misfits)
        } else if self.reading == then.reading {
            SentBy::SameReading
        } else {
            SentBy::OtherRules
        }
    }
}

/// Whether a digest in an intent is one of keys.
pub(crate) fn is_of_keys(digest: &[u8; 32]) -> bool {
    digest[..16] != [0; 16]
}

/// The batch with letters in place of the events of its first `inputs` inputs.
#[must_use]
pub(crate) fn with_letters(batch: &Batch, inputs: usize, sent_by: SentBy<'_>) -> Batch {
    let mut after = batch.without_events_before(inputs);
    let mut died = batch.letters().iter().map(|(input, _)| *input).peekable();
    let mut events = batch.events().peekable();
    for input in 0..inputs {
        let mut own = Vec::new();
        while let Some(event) = events.next_if(|event| event.input() == input) {
            own.push(event);
        }
        if died.next_if_eq(&input).is_some() {
            continue;
        }
        if own.is_empty() {
            if matches!(sent_by, SentBy::SameReading | SentBy::OtherRules) {
                after.add_letter_of_filtered(input, cause());
            }
            continue;
        }
        let misfit = |at: usize| match sent_by {
            SentBy::SameRules(misfits) => misfits.iter().find(|(event, _)| *event == at).map(|(_, cause)| cause),
            SentBy::ThisLife | SentBy::SameReading | SentBy::OtherRules => None,
        };
        // Of an input that fits in part the other part may have been sent.
        match misfit(own[0].index()).filter(|_| own.iter().all(|event| misfit(event.index()).is_some())) {
            Some(refused) => {
                let key = own[0].event_key().map(|key| key.text().to_string());
                after.add_letter(input, refused.clone(), key);
            }
            None => after.add_letter(input, cause(), None),
        }
    }
    for (_, letter) in after.letters_mut().iter_mut().filter(|(input, _)| *input < inputs) {
        if letter.cause.code != IN_DOUBT && may_have_been_sent(letter, sent_by) {
            letter.cause = still_in_doubt(&letter.cause);
        }
    }
    after
}

/// Whether an input that is dead now may have been sent.
fn may_have_been_sent(letter: &Letter, sent_by: SentBy<'_>) -> bool {
    match sent_by {
        SentBy::ThisLife => false,
        // How long a program takes differs from life to life.
        SentBy::SameRules(_) => Verdict::ALL.iter().any(|(verdict, _)| verdict.cause().code == letter.cause.code),
        SentBy::SameReading => letter.cause.stage != Stage::Decode,
        SentBy::OtherRules => true,
    }
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

    /// Inputs in this order: three that died at a stage, one that was set aside, a filtered one, one that fits no column, one of two
    /// events of which one fits none, a good one; and the last two again.
    fn of_all_fates() -> (Batch, Vec<(usize, Cause)>) {
        let refused = |stage, code| Cause { stage, code, message: "a slip".into(), fingerprint: "slip".into() };
        let mut batch = Batch::new(Layout::new(&[]));
        for (input, stage) in [Stage::Transform, Stage::Decode, Stage::Map].into_iter().enumerate() {
            batch.inputs.push(Position::at(input as u64), b"x");
            batch.push_letter(input, refused(stage, "HX2100"), None);
        }
        batch.inputs.push(Position::at(3), b"slow");
        batch.push_letter(3, Verdict::TooLong.cause(), None);
        batch.inputs.push(Position::at(4), b"filtered");
        batch.push_filtered();
        for (input, events) in [(5, 1), (6, 2), (7, 1), (8, 2), (9, 1)] {
            batch.inputs.push(Position::at(input as u64), b"event");
            for emit in 0..events {
                batch.push_event(input, emit, Operation::Upsert);
            }
        }
        let misfit = refused(Stage::Map, "HX2020");
        (batch, vec![(0, misfit.clone()), (1, misfit)])
    }

    /// Goal: what an earlier life cannot have sent keeps its own fate, if it made rows as this one does; if it read inputs alike,
    /// only what is no event does; else all is in doubt, filtered inputs too. Method: every fate under each, and two behind.
    #[test]
    fn what_an_earlier_life_may_have_sent_is_in_doubt_whatever_it_is_now() {
        let (batch, misfits) = of_all_fates();
        let own = ["HX2100", "HX2100", "HX2100", IN_DOUBT, "filtered", "HX2020", IN_DOUBT, IN_DOUBT];
        let mut read_alike = [IN_DOUBT; 8];
        read_alike[1] = "HX2100";
        for (sent_by, expected) in
            [(SentBy::SameRules(&misfits), own), (SentBy::SameReading, read_alike), (SentBy::OtherRules, [IN_DOUBT; 8])]
        {
            let after = with_letters(&batch, 8, sent_by);
            let fate = |input: usize| {
                let letter = after.letters().iter().find(|(at, _)| *at == input);
                letter.map_or("filtered", |(_, letter)| letter.cause.code)
            };
            assert_eq!(std::array::from_fn(fate), expected, "{sent_by:?}");
            let filtered = u64::from(sent_by == SentBy::SameRules(&misfits));
            let counts = Totals { read: 10, delivered: 2, filtered, dead: 8 - filtered, rows: 3 };
            assert_eq!(after.counts(), counts, "{sent_by:?}");
        }
        let set_aside = &with_letters(&batch, 8, SentBy::OtherRules).letters()[3].1.cause.message.clone();
        assert!(set_aside.contains("HX2110"), "{set_aside}");
        assert_eq!(with_letters(&batch, 4, SentBy::ThisLife).letters()[3].1.cause.code, "HX2110");
    }

    /// Goal: an intent tells whose rules they were; what is unknown, or a digest of keys, equals nothing. Method: rules that differ in
    /// each part, there and back.
    #[test]
    fn rules_are_known_again() {
        let rules = SendingRules::of("json", "filter", "id int");
        assert_eq!(SendingRules::of_digest(&rules.to_digest()), rules);
        assert_eq!(rules.sent_by(rules, &[]), SentBy::SameRules(&[]));
        for other in [SendingRules::of("json", "", "id int"), SendingRules::of("json", "filter", "id text")] {
            assert_eq!(rules.sent_by(other, &[]), SentBy::SameReading);
            assert_eq!(rules.sent_by(rules.common(other), &[]), SentBy::SameReading);
            assert_eq!(other.sent_by(rules.common(other), &[]), SentBy::SameReading);
        }
        let elsewhere = SendingRules::of("csv", "filter", "id int");
        for other in
            [elsewhere, rules.common(elsewhere), SendingRules::of_digest(&[0; 32]), SendingRules::of_digest(&[9; 32])]
        {
            assert_eq!(rules.sent_by(other, &[]), SentBy::OtherRules);
        }
        assert!(is_of_keys(&[9; 32]) && !is_of_keys(&rules.to_digest()));
    }
}
