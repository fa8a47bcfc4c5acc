//! The life cycle of a sink whose target's transaction opens at the commit: its state, the staged batch, the claimed
//! progress.
//!
//! Invariant: what was staged is kept until its outcome is known; a commit whose future was dropped counts as failed,
//! so that only a claim leads out. Not here: anything that touches the target.

use std::sync::Arc;

use hapax_model::epoch::Epoch;
use hapax_model::progress::Progress;
use hapax_model::transaction::{IllegalMove, Move, TransactionState};

use crate::batch::Batch;
use crate::sink::SinkError;

/// Where a sink stands between its claim and the known end of its last commit.
#[derive(Debug, Default)]
pub struct SinkLifecycle {
    state: TransactionState,
    staged: Option<Arc<Batch>>,
    progress: Option<Progress>,
}

/// A commit that was begun and has no known end yet.
#[derive(Debug)]
#[must_use]
pub struct Committing(TransactionState);

impl SinkLifecycle {
    /// Where the transaction stands.
    #[must_use]
    pub const fn state(&self) -> TransactionState {
        self.state
    }

    /// Whether a claim is allowed here.
    ///
    /// # Errors
    /// If it is not.
    pub fn may_claim(&self) -> Result<(), SinkError> {
        self.state.after(Move::Claim)?;
        Ok(())
    }

    /// The claim succeeded.
    ///
    /// # Errors
    /// If no claim is allowed here.
    pub fn claimed(&mut self, progress: Progress) -> Result<(), SinkError> {
        self.state = self.state.after(Move::Claim)?;
        self.progress = Some(progress);
        Ok(())
    }

    /// Opens the buffer of `epoch`.
    ///
    /// # Errors
    /// If the state does not allow it, or nothing was claimed.
    pub fn begin(&mut self, epoch: Epoch, target: impl FnOnce() -> String) -> Result<(), SinkError> {
        let after = self.state.after(Move::Begin(epoch))?;
        if self.progress.is_none() {
            return Err(not_claimed(target()));
        }
        self.state = after;
        Ok(())
    }

    /// Stages the epoch's only batch.
    ///
    /// # Errors
    /// If the state does not allow it, or one was staged.
    pub fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        let after = self.state.after(Move::Write)?;
        if self.staged.is_some() {
            return Err(IllegalMove { state: self.state, tried: Move::Write }.into());
        }
        self.staged = Some(batch);
        self.state = after;
        Ok(())
    }

    /// Begins a commit. The state is as if it had failed, until we know better: if the future of the commit is
    /// dropped, its outcome is unknown.
    ///
    /// # Errors
    /// If the state does not allow it.
    pub fn committing(&mut self) -> Result<Committing, SinkError> {
        let committing = self.state.after(Move::Commit)?;
        self.state = committing.after(Move::Fail)?;
        Ok(Committing(committing))
    }

    /// What a commit works with: progress as it was claimed or last committed, and the staged batch.
    ///
    /// # Errors
    /// If nothing was claimed.
    pub fn work(&self, target: impl FnOnce() -> String) -> Result<(Progress, Arc<Batch>), SinkError> {
        let was = self.progress.clone().ok_or_else(|| not_claimed(target()))?;
        Ok((was, self.staged.clone().unwrap_or_default()))
    }

    /// The target confirmed the commit.
    ///
    /// # Errors
    /// None in practice: the commit was begun here.
    pub fn committed(&mut self, commit: Committing, progress: Progress) -> Result<(), SinkError> {
        self.state = commit.0.after(Move::Committed)?;
        self.progress = Some(progress);
        self.staged = None;
        Ok(())
    }

    /// Forgets what was staged: the target knows nothing of the epoch yet.
    ///
    /// # Errors
    /// If the state does not allow it.
    pub fn abort(&mut self) -> Result<(), SinkError> {
        self.state = self.state.after(Move::Abort)?.after(Move::Aborted)?;
        self.staged = None;
        Ok(())
    }
}

fn not_claimed(target: String) -> SinkError {
    SinkError::TransactionInitFailed { target, message: "the delivery was not claimed".to_owned() }
}
