//! The life cycle of one epoch's transaction, with illegal moves refused.

use crate::epoch::Epoch;

/// Where a sink's transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransactionState {
    /// None in progress; ready to begin.
    #[default]
    Idle,
    /// Open: events are being staged.
    Active {
        /// Its epoch.
        epoch: Epoch,
    },
    /// The target has been asked to commit and has not answered.
    Committing {
        /// Its epoch.
        epoch: Epoch,
    },
    /// The staged events are being forgotten.
    Aborting {
        /// Its epoch.
        epoch: Epoch,
    },
    /// The commit failed or its outcome is unknown; only a claim leads out.
    Failed {
        /// Its epoch.
        epoch: Epoch,
    },
}

/// A step of the life cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Open a transaction for this epoch.
    Begin(Epoch),
    /// Stage events.
    Write,
    /// Ask the target to commit.
    Commit,
    /// The target confirmed.
    Committed,
    /// The target refused, or gave no clear answer.
    Fail,
    /// Start forgetting.
    Abort,
    /// Forgotten.
    Aborted,
    /// A claim: fences older sessions. Staged events are kept, so that an epoch in doubt can be committed again.
    Claim,
}

/// A move that the state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{tried:?} is not allowed while the transaction is {state:?}")]
pub struct IllegalMove {
    /// Where the transaction stood.
    pub state: TransactionState,
    /// What was tried.
    pub tried: Move,
}

impl TransactionState {
    /// The state after `step`.
    ///
    /// # Errors
    /// [`IllegalMove`] if the life cycle has no such step here; the state is unchanged.
    pub fn after(self, step: Move) -> Result<Self, IllegalMove> {
        use TransactionState::{Aborting, Active, Committing, Failed, Idle};
        match (self, step) {
            (Idle, Move::Begin(epoch)) => Ok(Active { epoch }),
            (Active { epoch }, Move::Write) => Ok(Active { epoch }),
            (Active { epoch }, Move::Commit) => Ok(Committing { epoch }),
            (Committing { .. }, Move::Committed) => Ok(Idle),
            (Committing { epoch }, Move::Fail) => Ok(Failed { epoch }),
            (Active { epoch } | Failed { epoch }, Move::Abort) => Ok(Aborting { epoch }),
            (Aborting { .. }, Move::Aborted) => Ok(Idle),
            // An abort that failed is done by the claim: it fences whatever the old session may still hold.
            (Idle | Aborting { .. }, Move::Claim) => Ok(Idle),
            // A commit whose future was dropped is still committing: a claim is how its outcome is found out.
            (Active { epoch } | Committing { epoch } | Failed { epoch }, Move::Claim) => Ok(Active { epoch }),
            (state, tried) => Err(IllegalMove { state, tried }),
        }
    }

    /// The epoch of the transaction in progress, if there is one.
    #[must_use]
    pub const fn epoch(self) -> Option<Epoch> {
        match self {
            Self::Idle => None,
            Self::Active { epoch } | Self::Committing { epoch } | Self::Aborting { epoch } | Self::Failed { epoch } => {
                Some(epoch)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TransactionState::{Aborting, Active, Committing, Failed, Idle};
    use super::*;

    const EPOCH: Epoch = Epoch(7);

    #[test]
    fn begin_moves_idle_to_active() {
        assert_eq!(Idle.after(Move::Begin(EPOCH)), Ok(Active { epoch: EPOCH }));
    }

    #[test]
    fn commit_moves_active_to_committing() {
        assert_eq!(Active { epoch: EPOCH }.after(Move::Commit), Ok(Committing { epoch: EPOCH }));
        assert_eq!(Committing { epoch: EPOCH }.after(Move::Committed), Ok(Idle));
        assert_eq!(Committing { epoch: EPOCH }.after(Move::Fail), Ok(Failed { epoch: EPOCH }));
    }

    #[test]
    fn abort_moves_active_to_aborting() {
        assert_eq!(Active { epoch: EPOCH }.after(Move::Abort), Ok(Aborting { epoch: EPOCH }));
        assert_eq!(Aborting { epoch: EPOCH }.after(Move::Aborted), Ok(Idle));
    }

    #[test]
    fn begin_while_active_is_refused() {
        let state = Active { epoch: EPOCH };
        assert_eq!(state.after(Move::Begin(Epoch(8))), Err(IllegalMove { state, tried: Move::Begin(Epoch(8)) }));
    }

    #[test]
    fn commit_while_idle_is_refused() {
        assert_eq!(Idle.after(Move::Commit), Err(IllegalMove { state: Idle, tried: Move::Commit }));
    }

    /// Goal: exactly the legal moves are legal, and each leads where it must. Method: the whole table of states and moves.
    #[test]
    fn no_move_but_the_listed_ones_is_legal() {
        let (active, committing) = (Active { epoch: EPOCH }, Committing { epoch: EPOCH });
        let (aborting, failed) = (Aborting { epoch: EPOCH }, Failed { epoch: EPOCH });
        let legal = [
            (Idle, Move::Begin(EPOCH), active),
            (Idle, Move::Claim, Idle),
            (active, Move::Write, active),
            (active, Move::Commit, committing),
            (active, Move::Abort, aborting),
            (active, Move::Claim, active),
            (committing, Move::Committed, Idle),
            (committing, Move::Fail, failed),
            (committing, Move::Claim, active),
            (aborting, Move::Aborted, Idle),
            // An abort that failed is left to the claim of the next start.
            (aborting, Move::Claim, Idle),
            (failed, Move::Abort, aborting),
            (failed, Move::Claim, active),
        ];
        let moves = [
            Move::Begin(EPOCH),
            Move::Write,
            Move::Commit,
            Move::Committed,
            Move::Fail,
            Move::Abort,
            Move::Aborted,
            Move::Claim,
        ];
        for state in [Idle, active, committing, aborting, failed] {
            for tried in moves {
                let listed = legal.iter().find(|(from, by, _)| (*from, *by) == (state, tried)).map(|(_, _, to)| *to);
                let expected = listed.ok_or(IllegalMove { state, tried });
                assert_eq!(state.after(tried), expected, "{state:?}, {tried:?}");
            }
        }
    }

    /// Goal: an epoch in doubt can be committed again without being staged again.
    #[test]
    fn a_claim_after_a_failed_commit_keeps_what_was_staged() {
        assert_eq!(Failed { epoch: EPOCH }.after(Move::Claim), Ok(Active { epoch: EPOCH }));
    }
}
