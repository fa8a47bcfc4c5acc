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
    /// Its first inputs are there, as an epoch of their own; the rest becomes the next epoch.
    LandedInPart,
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

/// Where the position that was found lies, seen from the epoch that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundAt {
    /// Inside: behind its first inputs and before others.
    Inside,
    /// Anywhere else.
    Outside,
}

/// Pure: no clock, no I/O, so a test can list every case.
#[must_use]
pub fn decide_outcome(tried: Epoch, found: Epoch, at: FoundAt, owner: Owner) -> Outcome {
    match owner {
        Owner::Another => Outcome::LaneLost,
        Owner::Us if found == tried && at == FoundAt::Inside => Outcome::LandedInPart,
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
        let decide = |found, at| decide_outcome(Epoch(5), Epoch(found), at, Owner::Us);
        assert_eq!(decide(5, FoundAt::Outside), Outcome::Landed);
        assert_eq!(decide(5, FoundAt::Inside), Outcome::LandedInPart);
        assert_eq!(decide(4, FoundAt::Outside), Outcome::CommitAgain);
        for found in [0, 3, 6, u64::MAX] {
            assert!(matches!(decide(found, FoundAt::Outside), Outcome::Broken { .. }));
            for at in [FoundAt::Inside, FoundAt::Outside] {
                assert_eq!(decide_outcome(Epoch(5), Epoch(found), at, Owner::Another), Outcome::LaneLost);
            }
        }
    }
}
