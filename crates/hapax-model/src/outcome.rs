//! Decides what a worker does after a commit whose answer never came.
//!
//! Reads: what we tried to commit, and progress as the reclaim found it. Writes: nothing; the runtime acts.
//! Invariant: the reclaim fenced every older session before progress was read.
//! Not here: SQL (`hapax-connect`), retry timing (`runtime`).

use crate::epoch::Epoch;

/// Who owns the delivery according to the reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Still this worker.
    Us,
    /// A newer generation.
    Another,
}

/// What became of a commit in doubt.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is there.
    Landed,
    /// It is not there; the buffer that was kept is committed again.
    CommitAgain,
    /// Another worker owns the lane; drop the buffer.
    LaneLost,
    /// Progress is somewhere else: a restored backup or a bug.
    Broken {
        /// The epoch we tried.
        tried: Epoch,
        /// The epoch found.
        found: Epoch,
    },
}

/// Pure: no clock, no I/O, so a test can list every case.
#[must_use]
pub fn decide_outcome(tried: Epoch, found: Epoch, owner: Owner) -> Outcome {
    match owner {
        Owner::Another => Outcome::LaneLost,
        Owner::Us if found == tried => Outcome::Landed,
        Owner::Us if found.0.checked_add(1) == Some(tried.0) => Outcome::CommitAgain,
        Owner::Us => Outcome::Broken { tried, found },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only an epoch that did not land is committed again. Method: list the whole neighbourhood.
    #[test]
    fn an_epoch_that_landed_is_not_committed_again() {
        assert_eq!(decide_outcome(Epoch(5), Epoch(5), Owner::Us), Outcome::Landed);
        assert_eq!(decide_outcome(Epoch(5), Epoch(4), Owner::Us), Outcome::CommitAgain);
        for found in [0, 3, 6, u64::MAX] {
            assert!(matches!(decide_outcome(Epoch(5), Epoch(found), Owner::Us), Outcome::Broken { .. }));
            assert_eq!(decide_outcome(Epoch(5), Epoch(found), Owner::Another), Outcome::LaneLost);
        }
    }
}
