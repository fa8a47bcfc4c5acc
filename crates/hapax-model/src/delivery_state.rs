//! How a delivery stands, in one word: what its worker says of itself, and what can be told from outside.
//!
//! Pure. Invariant: everybody who names a state (`status`, `top`, `stuck`, metrics, health, alerts) has it from here, so
//! that no two of them disagree. Not here: why it stands so (notes and troubles of the engine).

use std::fmt;

/// What a worker says of its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerState {
    /// It has begun and owns nothing yet.
    #[default]
    Starting,
    /// Another worker has the delivery.
    Standby,
    /// It delivers.
    Running,
    /// Its source or its target is away; it tries again.
    Waiting,
    /// It rests, because a person paused the workflow.
    Paused,
    /// The source ended, and all of it is delivered.
    Finished,
    /// It was asked to end, and delivered what it had read.
    Drained,
    /// It gave up; a person must look.
    Stopped,
}

impl WorkerState {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 8] = [
        Self::Starting,
        Self::Standby,
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Finished,
        Self::Drained,
        Self::Stopped,
    ];

    /// The word that is stored and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Standby => "standby",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Drained => "drained",
            Self::Stopped => "stopped",
        }
    }

    /// The state of a stored word. Of a word that another version wrote is only known that a worker was there.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|state| state.name() == name).unwrap_or(Self::Starting)
    }

    /// Whether it is the last word of a worker; whoever said anything else and has no lease any more died.
    #[must_use]
    pub const fn is_an_end(self) -> bool {
        match self {
            Self::Finished | Self::Drained | Self::Stopped => true,
            Self::Starting | Self::Standby | Self::Running | Self::Waiting | Self::Paused => false,
        }
    }

    /// Whether nobody need do anything: it delivers, stands by, rests because a person said so, or is done.
    #[must_use]
    pub const fn is_ready(self) -> bool {
        match self {
            Self::Running | Self::Standby | Self::Paused | Self::Finished | Self::Drained => true,
            Self::Starting | Self::Waiting | Self::Stopped => false,
        }
    }
}

impl fmt::Display for WorkerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a delivery stands, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// What a live worker says, or the last word of one that ended.
    Said(WorkerState),
    /// A person paused it, and its worker still delivers what it has read.
    Pausing,
    /// A person paused it.
    Paused,
    /// It has progress, or somebody spoke for it, and nobody has it now.
    NoWorker,
    /// Nobody ever claimed it.
    NeverRun,
    /// Nobody speaks for it, and its progress cannot be read.
    Unreadable,
    /// The state store cannot be read: nobody can tell whether a worker has it.
    Unknown,
}

impl DeliveryState {
    /// The words that are shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Said(state) => state.name(),
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::NoWorker => "no worker",
            Self::NeverRun => "never run",
            Self::Unreadable => "unreadable",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for DeliveryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether somebody has the delivery's lease now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseSeen {
    /// A worker that renews it.
    Held,
    /// Nobody.
    Free,
    /// The place that holds leases does not answer.
    Unreadable,
}

/// Whether a person has paused the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseSeen {
    /// And it has not been resumed.
    Paused,
    /// No.
    No,
}

/// What the place that holds progress said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressSeen {
    /// There is some.
    Stored,
    /// There is none.
    Nothing,
    /// It does not answer.
    Unreadable,
}

/// The one place that decides how a delivery stands.
#[must_use]
pub const fn decide_delivery_state(
    lease: LeaseSeen,
    said: Option<WorkerState>,
    pause: PauseSeen,
    progress: ProgressSeen,
) -> DeliveryState {
    match (pause, lease, said) {
        (_, LeaseSeen::Unreadable, _) => DeliveryState::Unknown,
        // A pause cures nothing: who resumes it must know that it will not go on.
        (PauseSeen::Paused, _, Some(WorkerState::Stopped)) => DeliveryState::Said(WorkerState::Stopped),
        (PauseSeen::Paused, LeaseSeen::Held, Some(WorkerState::Running)) => DeliveryState::Pausing,
        (PauseSeen::Paused, _, _) => DeliveryState::Paused,
        (PauseSeen::No, LeaseSeen::Held, Some(said)) => DeliveryState::Said(said),
        (PauseSeen::No, LeaseSeen::Held, None) => DeliveryState::Said(WorkerState::Starting),
        (PauseSeen::No, LeaseSeen::Free, Some(said)) if said.is_an_end() => DeliveryState::Said(said),
        (PauseSeen::No, LeaseSeen::Free, Some(_)) => DeliveryState::NoWorker,
        (PauseSeen::No, LeaseSeen::Free, None) => match progress {
            ProgressSeen::Stored => DeliveryState::NoWorker,
            ProgressSeen::Nothing => DeliveryState::NeverRun,
            ProgressSeen::Unreadable => DeliveryState::Unreadable,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(lease: LeaseSeen, said: Option<WorkerState>) -> DeliveryState {
        decide_delivery_state(lease, said, PauseSeen::No, ProgressSeen::Stored)
    }

    /// Goal: a worker that holds the lease is believed; one that lost it without a last word is gone, whatever it said
    /// before. Method: every state with and without the lease.
    #[test]
    fn a_worker_without_a_lease_is_believed_only_its_last_word() {
        for said in WorkerState::ALL {
            assert_eq!(decide(LeaseSeen::Held, Some(said)), DeliveryState::Said(said));
            let ended = matches!(said, WorkerState::Finished | WorkerState::Drained | WorkerState::Stopped);
            let expected = if ended { DeliveryState::Said(said) } else { DeliveryState::NoWorker };
            assert_eq!(decide(LeaseSeen::Free, Some(said)), expected, "{said}");
        }
        assert_eq!(decide(LeaseSeen::Held, None).name(), "starting");
    }

    /// Goal: without a word from anybody, progress tells. Method: each thing that progress can be.
    #[test]
    fn silence_is_told_by_progress() {
        for (progress, expected) in [
            (ProgressSeen::Stored, "no worker"),
            (ProgressSeen::Nothing, "never run"),
            (ProgressSeen::Unreadable, "unreadable"),
        ] {
            assert_eq!(decide_delivery_state(LeaseSeen::Free, None, PauseSeen::No, progress).name(), expected);
        }
    }

    /// Goal: without the state store nothing is claimed of a worker. Method: progress that is there, and that is not.
    #[test]
    fn without_the_state_store_the_state_is_unknown() {
        for progress in [ProgressSeen::Stored, ProgressSeen::Nothing, ProgressSeen::Unreadable] {
            let state = decide_delivery_state(LeaseSeen::Unreadable, None, PauseSeen::No, progress);
            assert_eq!(state.name(), "unknown");
        }
    }

    /// Goal: a pause is shown before everything but a stop, and whether it has begun. Method: the worker at work, and not.
    #[test]
    fn a_pause_is_shown_before_everything_but_a_stop() {
        let paused = |lease, said| decide_delivery_state(lease, said, PauseSeen::Paused, ProgressSeen::Stored).name();
        assert_eq!(paused(LeaseSeen::Held, Some(WorkerState::Running)), "pausing");
        assert_eq!(paused(LeaseSeen::Held, Some(WorkerState::Paused)), "paused");
        assert_eq!(paused(LeaseSeen::Free, Some(WorkerState::Running)), "paused");
        assert_eq!(paused(LeaseSeen::Free, None), "paused");
        assert_eq!(paused(LeaseSeen::Free, Some(WorkerState::Stopped)), "stopped");
    }

    /// Goal: stored words are read back; one of another version stops nobody. Method: all of them, and a foreign one.
    #[test]
    fn words_are_read_back() {
        for state in WorkerState::ALL {
            assert_eq!(WorkerState::of_name(state.name()), state);
        }
        assert_eq!(WorkerState::of_name("dreaming"), WorkerState::Starting);
    }
}
