//! Dead letters: an input that cannot be delivered, kept with its bytes and the reason.

use crate::position::Position;

/// The code of an input whose write was in doubt, under a guarantee that never repeats one: it may be in the target.
pub const IN_DOUBT: &str = "HX2040";

/// At which step an input died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The bytes were no event.
    Decode,
    /// The transform refused it.
    Transform,
    /// No key could be derived.
    Key,
    /// The event does not fit the target's columns.
    Map,
    /// The target refused the row.
    Write,
}

impl Stage {
    /// The name under which the stage is stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Transform => "transform",
            Self::Key => "key",
            Self::Map => "map",
            Self::Write => "write",
        }
    }
}

/// Why an input died: what the letter says, and what it is grouped by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The step.
    pub stage: Stage,
    /// The error's code, such as `HX2003`.
    pub code: &'static str,
    /// The whole message, with the row's own values.
    pub message: String,
    /// The message without the row's values: letters with one fingerprint have one cause.
    pub fingerprint: String,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// A cause and how many inputs died of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseCount {
    /// The step.
    pub stage: Stage,
    /// The error's code.
    pub code: &'static str,
    /// What the inputs share.
    pub fingerprint: String,
    /// The whole message of the first one.
    pub example: String,
    /// How many.
    pub count: u64,
}

/// Groups causes by fingerprint, in the order in which they came; of more than `most`, the rest joins the last.
#[must_use]
pub fn count_causes<'a>(causes: impl Iterator<Item = &'a Cause>, most: usize) -> Vec<CauseCount> {
    let mut counted: Vec<CauseCount> = Vec::new();
    for cause in causes {
        let full = counted.len() >= most.max(1);
        let same = counted.iter_mut().find(|known| known.code == cause.code && known.fingerprint == cause.fingerprint);
        match same {
            Some(known) => known.count += 1,
            None if full => counted.last_mut().into_iter().for_each(|last| last.count += 1),
            None => counted.push(CauseCount {
                stage: cause.stage,
                code: cause.code,
                fingerprint: cause.fingerprint.clone(),
                example: cause.message.clone(),
                count: 1,
            }),
        }
    }
    counted
}

/// The source bytes as a letter keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LetterBytes {
    /// All of them.
    Whole(Vec<u8>),
    /// Too large: the beginning, the full length and the SHA-256 of all of it.
    Cut {
        /// The beginning.
        head: Vec<u8>,
        /// The full length in bytes.
        length: u64,
        /// SHA-256 of the whole input.
        sha256: [u8; 32],
    },
}

/// A dead letter on its way into the epoch's transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Where the input was.
    pub position: Position,
    /// Why it died.
    pub cause: Cause,
    /// The original bytes.
    pub bytes: LetterBytes,
    /// The event key's text form, if the input got as far as a key.
    pub event_key: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(code: &'static str, fingerprint: &str, message: &str) -> Cause {
        Cause { stage: Stage::Write, code, message: message.into(), fingerprint: fingerprint.into() }
    }

    /// Goal: causes are grouped, the first message is the example, and no count is lost beyond the bound.
    #[test]
    fn causes_are_counted_by_fingerprint() {
        let all = [cause("HX1", "a", "a1"), cause("HX2", "b", "b1"), cause("HX1", "a", "a2"), cause("HX3", "c", "c1")];
        let groups = |most| -> Vec<(String, String, u64)> {
            let counted = count_causes(all.iter(), most);
            counted.into_iter().map(|c| (c.fingerprint, c.example, c.count)).collect()
        };
        let (a, b) = (("a".into(), "a1".into(), 2), ("b".into(), "b1".into()));
        assert_eq!(groups(9), [a.clone(), (b.0, b.1, 1), ("c".into(), "c1".into(), 1)]);
        assert_eq!(groups(2), [a, ("b".into(), "b1".into(), 2)]);
        assert_eq!(count_causes([].iter(), 9), []);
    }
}
