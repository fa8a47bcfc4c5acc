//! What a lane's transform is doing right now, for a watchdog outside of it, and which inputs must not be run again.
//!
//! Written by the lane: one relaxed store per input, the rest once per chunk. Read by a thread that owns nothing else
//! of the lane, so that a program that never returns can still be seen. Not here: what the watchdog does about it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hapax_model::letter::{Cause, Stage};
use hapax_model::position::{Bookmark, Incarnation, Position};

/// Why an input is set aside: a dead letter that was not run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The program ran longer than it may.
    TooLong,
    /// The program took more memory than it may.
    TooLarge,
    /// The process ended, several times, while the program ran on it.
    Fatal,
}

impl Verdict {
    /// Every verdict, with the name under which it is kept.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::TooLong, "too-long"), (Self::TooLarge, "too-large"), (Self::Fatal, "fatal")];

    /// The name under which it is kept.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(verdict, _)| *verdict == self).map_or("", |(_, name)| name)
    }

    /// The verdict of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(verdict, _)| *verdict)
    }

    /// Why the input dies.
    #[must_use]
    pub fn cause(self) -> Cause {
        let (code, message) = match self {
            Self::TooLong => ("HX2110", "the transform took longer than transformTimeout allows for one input"),
            Self::TooLarge => ("HX2111", "the transform of this one input took more memory than the process may have"),
            Self::Fatal => ("HX2112", "the process ended three times while the transform ran on this input"),
        };
        Cause { stage: Stage::Transform, code, message: message.into(), fingerprint: message.into() }
    }
}

/// An input that is being transformed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Which one since the lane began: two looks that find the same number see the same run.
    pub turn: u64,
    /// Where the input is.
    pub at: Bookmark,
}

/// The lane's side of the watch.
#[derive(Debug, Default)]
pub struct Pulse {
    /// The turn that runs; 0 while nothing does.
    turn: AtomicU64,
    shared: Mutex<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The inputs of the chunk that runs, and the turn of the first of them.
    first: u64,
    positions: Vec<Position>,
    incarnation: Option<Incarnation>,
    limit: Option<Duration>,
    set_aside: Vec<(Bookmark, Verdict)>,
    /// What the state store holds against an input, and in how many lives of the process it was suspected.
    suspected: Option<(Bookmark, u32)>,
}

impl Pulse {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long one input may take; nothing is watched before it is said.
    pub fn limit_to(&self, limit: Duration) {
        self.shared().limit = Some(limit);
    }

    /// How long one input may take.
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        self.shared().limit
    }

    /// A chunk of inputs begins; returns the turn of the first one, and those that are set aside.
    pub(crate) fn begin(
        &self,
        positions: impl Iterator<Item = Position>,
        incarnation: &Incarnation,
    ) -> (u64, Vec<(Position, Verdict)>) {
        let mut shared = self.shared();
        shared.first += shared.positions.len() as u64;
        shared.first = shared.first.max(1);
        shared.positions.clear();
        shared.positions.extend(positions);
        shared.incarnation = Some(incarnation.clone());
        let here = shared.set_aside.iter().filter(|(at, _)| at.incarnation.text == incarnation.text);
        (shared.first, here.map(|(at, verdict)| (at.position, *verdict)).collect())
    }

    /// Input number `turn` begins.
    #[inline]
    pub(crate) fn beat(&self, turn: u64) {
        self.turn.store(turn, Ordering::Relaxed);
    }

    /// Nothing runs.
    pub(crate) fn rest(&self) {
        self.turn.store(0, Ordering::Relaxed);
    }

    /// What runs now. The turn alone is cheap to ask for: [`turn`](Self::turn).
    #[must_use]
    pub fn running(&self) -> Option<Running> {
        let turn = self.turn();
        let shared = self.shared();
        let at = usize::try_from(turn.checked_sub(shared.first)?).ok().filter(|_| turn > 0)?;
        let position = *shared.positions.get(at)?;
        Some(Running { turn, at: Bookmark::new(shared.incarnation.clone()?, position) })
    }

    /// The number of the input that runs; 0 while none does.
    #[must_use]
    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::Relaxed)
    }

    /// The input there is not run any more: it becomes a dead letter when the lane comes to it.
    pub fn set_aside(&self, at: Bookmark, verdict: Verdict) {
        let mut shared = self.shared();
        shared.set_aside.retain(|(known, _)| *known != at);
        shared.set_aside.push((at, verdict));
    }

    /// All inputs that are set aside and not committed yet.
    #[must_use]
    pub fn all_set_aside(&self) -> Vec<(Bookmark, Verdict)> {
        self.shared().set_aside.clone()
    }

    /// The state store holds something against the input there, since so many lives of the process.
    pub fn suspect(&self, at: Bookmark, lives: u32) {
        self.shared().suspected = Some((at, lives));
    }

    /// In how many lives the input there was suspected before.
    #[must_use]
    pub fn lives(&self, at: &Bookmark) -> u32 {
        self.shared().suspected.as_ref().filter(|(known, _)| known == at).map_or(0, |(_, lives)| *lives)
    }

    /// Everything before `upto` has committed: what was held against inputs there is forgotten. Returns whether the
    /// state store may forget it too.
    pub fn committed(&self, upto: &Bookmark) -> bool {
        let mut shared = self.shared();
        let order = |at: &Bookmark| (at.incarnation.number, at.position);
        let done = |at: &Bookmark| order(at) < order(upto);
        shared.set_aside.retain(|(at, _)| !done(at));
        shared.suspected.take_if(|(at, _)| done(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a watcher sees which input runs, across chunks, and nothing between them. Method: two chunks.
    #[test]
    fn the_running_input_is_seen_with_its_place() {
        let (pulse, incarnation) = (Pulse::default(), Incarnation::new(1, "file"));
        assert_eq!(pulse.running(), None);
        let (first, _) = pulse.begin([7, 9].into_iter().map(Position::at), &incarnation);
        pulse.beat(first + 1);
        let seen = pulse.running().expect("an input runs");
        assert_eq!((seen.turn, seen.at.position), (first + 1, Position::at(9)));
        pulse.rest();
        assert_eq!(pulse.running(), None);
        let (next, _) = pulse.begin([11].into_iter().map(Position::at), &incarnation);
        assert!(next > seen.turn);
        pulse.beat(next);
        assert_eq!(pulse.running().map(|r| r.at.position), Some(Position::at(11)));
    }

    /// Goal: an input stays set aside until its epoch has committed, and only in its own incarnation.
    #[test]
    fn what_is_set_aside_is_forgotten_when_it_has_committed() {
        let pulse = Pulse::default();
        pulse.set_aside(Bookmark::at("file", 9), Verdict::TooLong);
        pulse.suspect(Bookmark::at("file", 9), 2);
        assert_eq!((pulse.lives(&Bookmark::at("file", 9)), pulse.lives(&Bookmark::at("file", 8))), (2, 0));
        let aside = |text: &str| pulse.begin([Position::at(9)].into_iter(), &Incarnation::new(1, text)).1;
        assert_eq!(aside("file"), [(Position::at(9), Verdict::TooLong)]);
        assert_eq!(aside("other"), []);
        assert!(!pulse.committed(&Bookmark::at("file", 9)));
        assert_eq!(aside("file").len(), 1);
        assert!(pulse.committed(&Bookmark::at("file", 10)));
        assert_eq!(aside("file"), []);
    }

    /// Goal: a verdict is known again by its name, and each has its own code.
    #[test]
    fn verdicts_are_known_by_name() {
        for (verdict, name) in Verdict::ALL {
            assert_eq!(Verdict::of_name(name), Some(verdict));
            assert_eq!(verdict.name(), name);
        }
        assert_eq!(Verdict::of_name("guilty"), None);
    }
}
