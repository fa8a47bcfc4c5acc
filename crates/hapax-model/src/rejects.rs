//! `onReject` and `maxRejects`: when bad rows stop being rows and become a bad table.

/// What happens to an input that cannot be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnReject {
    /// It becomes a dead letter in the epoch's transaction; the rest goes on.
    #[default]
    DeadLetter,
    /// The epoch is not committed and the workflow stops.
    Stop,
}

/// How many of the last inputs the limit looks at.
pub const WINDOW: u32 = 1000;
/// How many inputs must have been seen before the limit judges.
pub const JUDGED_FROM: u32 = 100;

/// The share of the last [`WINDOW`] inputs that may die, judged from the [`JUDGED_FROM`]th on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectRule {
    /// What happens to one.
    pub on_reject: OnReject,
    /// Parts per thousand that may die before the workflow stops; 1000 never stops.
    pub max_per_mille: u32,
    window: Window,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Window {
    dead: Vec<bool>,
    next: usize,
    seen: u32,
    count: u32,
}

/// Why a rule says stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectStop {
    /// `onReject: stop`, and this input (by its index in the epoch) was rejected.
    First {
        /// Index of the input in the epoch.
        input: usize,
    },
    /// More than `maxRejects` of the last inputs died.
    TooMany {
        /// Index in the epoch of the input with which it was too many.
        input: usize,
        /// How many died.
        dead: u32,
        /// Of how many.
        of: u32,
    },
}

impl RejectStop {
    /// The index in the epoch of the input that broke the rule.
    #[must_use]
    pub const fn input(self) -> usize {
        match self {
            Self::First { input } | Self::TooMany { input, .. } => input,
        }
    }
}

impl RejectRule {
    /// A rule with an empty window.
    #[must_use]
    pub fn new(on_reject: OnReject, max_per_mille: u32) -> Self {
        let window = Window { dead: vec![false; WINDOW as usize], next: 0, seen: 0, count: 0 };
        Self { on_reject, max_per_mille, window }
    }

    /// Judges an epoch of `inputs` inputs of which those at `rejected` (ascending indexes) died.
    ///
    /// Returns the rule to go on with once the epoch has committed; `self` stays as it was, because an epoch that
    /// is rolled back and tried again must not be counted twice.
    ///
    /// # Errors
    /// [`RejectStop`] if the epoch must not commit.
    pub fn judge(&self, inputs: usize, rejected: &[usize]) -> Result<Self, RejectStop> {
        if let (OnReject::Stop, Some(&input)) = (self.on_reject, rejected.first()) {
            return Err(RejectStop::First { input });
        }
        let mut after = self.clone();
        if rejected.is_empty() && after.window.count == 0 {
            after.window.pass(inputs);
            return Ok(after);
        }
        let mut rejected = rejected.iter().copied().peekable();
        for input in 0..inputs {
            after.note(input, rejected.next_if_eq(&input).is_some())?;
        }
        Ok(after)
    }

    /// Notes the next input, which is at `input` in its epoch, and whether it died: for whoever judges inputs one by
    /// one, on a copy of the rule.
    ///
    /// # Errors
    /// [`RejectStop`] if that was one too many.
    pub fn note(&mut self, input: usize, dead: bool) -> Result<(), RejectStop> {
        if dead && self.on_reject == OnReject::Stop {
            return Err(RejectStop::First { input });
        }
        self.window.note(dead);
        // A good input makes it no worse; but with the first that is judged, whatever became of it, those before it are judged too.
        if (dead || self.window.seen == JUDGED_FROM) && self.window.exceeds(self.max_per_mille) {
            return Err(RejectStop::TooMany { input, dead: self.window.count, of: self.window.seen.min(WINDOW) });
        }
        Ok(())
    }
}

impl Window {
    /// Notes so many good inputs after nothing but good ones: every slot says so already.
    fn pass(&mut self, inputs: usize) {
        self.next = (self.next + inputs) % self.dead.len();
        self.seen = self.seen.saturating_add(u32::try_from(inputs).unwrap_or(u32::MAX));
    }

    fn note(&mut self, dead: bool) {
        let slot = &mut self.dead[self.next];
        self.count = self.count - u32::from(*slot) + u32::from(dead);
        *slot = dead;
        self.next = (self.next + 1) % self.dead.len();
        self.seen = self.seen.saturating_add(1);
    }

    fn exceeds(&self, max_per_mille: u32) -> bool {
        let of = self.seen.min(WINDOW);
        of >= JUDGED_FROM && u64::from(self.count) * 1000 > u64::from(max_per_mille) * u64::from(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(max_per_mille: u32) -> RejectRule {
        RejectRule::new(OnReject::DeadLetter, max_per_mille)
    }

    /// Goal: a few bad rows at the very start do not stop a workflow.
    #[test]
    fn nothing_is_judged_before_the_hundredth_input() {
        let all: Vec<usize> = (0..99).collect();
        assert!(rule(100).judge(99, &all).is_ok());
        assert_eq!(
            rule(100).judge(100, &(0..100).collect::<Vec<_>>()),
            Err(RejectStop::TooMany { input: 99, dead: 100, of: 100 })
        );
    }

    /// Goal: those that died before the first input that is judged count, though that one is good. Method: ninety-nine, then a good
    /// one, in one epoch and in another; eleven, and ten, which are allowed.
    #[test]
    fn the_hundredth_input_is_judged_though_it_is_good() {
        let dead: Vec<usize> = (0..99).collect();
        let too_many = |input, dead| Err(RejectStop::TooMany { input, dead, of: 100 });
        assert_eq!(rule(100).judge(150, &dead).map(drop), too_many(99, 99));
        let after = rule(100).judge(99, &dead).expect("nothing is judged yet");
        assert_eq!(after.judge(1, &[]).map(drop), too_many(0, 99));
        assert_eq!(rule(100).judge(150, &dead[..11]).map(drop), too_many(99, 11));
        assert!(rule(100).judge(150, &dead[..10]).is_ok());
    }

    /// Goal: the limit is on the last thousand, across epochs. Method: exactly at the limit, then one more.
    #[test]
    fn the_limit_holds_over_the_last_thousand_inputs() {
        let at_limit: Vec<usize> = (0..100).map(|i| i * 10 + 9).collect();
        let mut rule = rule(100).judge(1000, &at_limit).expect("ten percent is allowed");
        rule = rule.judge(9, &[]).expect("no reject");
        assert_eq!(rule.judge(1, &[0]).map(drop), Ok(()), "the oldest of the hundred has left the window");
        let rule = rule.judge(1, &[0]).expect("as before");
        assert_eq!(rule.judge(1, &[0]), Err(RejectStop::TooMany { input: 0, dead: 101, of: 1000 }));
    }

    /// Goal: `stop` names the first guilty input.
    #[test]
    fn stop_means_at_the_first() {
        let rule = RejectRule::new(OnReject::Stop, 1000);
        assert_eq!(rule.judge(50, &[3, 7]), Err(RejectStop::First { input: 3 }));
        assert!(rule.judge(50, &[]).is_ok());
    }
}
