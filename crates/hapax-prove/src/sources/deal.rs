//! Which case a seed deals: every fault at every moment in turn, the rest drawn.

use super::case::{FaultMoment, FileFault, RecordFormat, SourceCase, SourceLayout, WorkerArrangement};
use super::expectation::{Expectation, expectation};
use crate::setting::{Guarantee, Place, Setting, Stack};
use crate::shape::Shape;

const fn at(guarantee: Guarantee, shape: Shape, place: Place) -> Setting {
    Setting::new(guarantee, shape, place)
}

/// The settings that a case may have, over any databases; the strictest stand there more than once.
static SETTINGS: [Setting; 14] = [
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Append, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Update, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink),
    at(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::Update, Place::Sink),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::Sink),
    at(Guarantee::AtMostOnce, Shape::Append, Place::Sink),
    at(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::State),
    at(Guarantee::IdempotentKeys, Shape::NewerDeclared, Place::State),
    at(Guarantee::IdempotentKeys, Shape::Update, Place::State),
    at(Guarantee::AtLeastOnce, Shape::Append, Place::State),
    at(Guarantee::AtMostOnce, Shape::Append, Place::State),
];

/// Where target and state are; files are the quickest.
static STACKS: [Stack; 8] = [
    Stack::Files,
    Stack::Files,
    Stack::Files,
    Stack::Files,
    Stack::Postgres,
    Stack::PostgresOnly,
    Stack::Mysql,
    Stack::MysqlAndPostgres,
];

impl SourceCase {
    /// The case that a seed deals: as many seeds in a row as there are faults with moments meet all of them, in an order
    /// that looks like none; the rest is drawn.
    #[must_use]
    pub fn deal(seed: u64) -> Self {
        let mut pairs = pairs();
        fastrand::Rng::with_seed(0x50_75_72_63).shuffle(&mut pairs);
        let turn = usize::try_from(seed % pairs.len() as u64).unwrap_or(0);
        let (fault, moment) = pairs[turn];
        let mut random = fastrand::Rng::with_seed(seed ^ 0x9e37_79b9_7f4a_7c15);
        let layouts: Vec<SourceLayout> = SourceLayout::ALL.into_iter().filter(|layout| fault.fits(*layout)).collect();
        loop {
            let case = Self {
                fault,
                moment,
                layout: layouts[random.usize(..layouts.len())],
                workers: arrangement(moment, &mut random),
                format: if random.u8(0..3) == 0 { RecordFormat::Csv } else { RecordFormat::Jsonl },
                setting: SETTINGS[random.usize(..SETTINGS.len())].on(STACKS[random.usize(..STACKS.len())]),
            };
            if case.is_legal() {
                return case;
            }
        }
    }

    /// Whether its parts go together.
    fn is_legal(&self) -> bool {
        // Whether a plain file will grow is known by nobody: only a live worker that holds it knows that it has all.
        if self.fault == FileFault::RemoveRead
            && self.layout == SourceLayout::DroppedFiles
            && self.moment != FaultMoment::Idle
        {
            return false;
        }
        // Nothing is appended to files that come whole.
        if self.layout.is_dropped() && self.moment == FaultMoment::Traffic {
            return false;
        }
        // Which of two equal inputs a letter in doubt stands for, nobody can say.
        if self.fault == FileFault::TwinFiles && self.setting.guarantee == Guarantee::AtMostOnce {
            return false;
        }
        if self.workers == WorkerArrangement::Unleased {
            return self.may_lack_a_state_store();
        }
        let alone = matches!(self.workers, WorkerArrangement::One | WorkerArrangement::Restarted);
        // Where nothing fences, `update` holds with one live worker only: its condition.
        alone || self.setting.place == Place::Sink || self.setting.shape != Shape::Update
    }

    /// Without a state store progress is in the target, nobody can be told to pause, and a pattern has no second worker. Where it
    /// depends on what a worker has seen whether it stops, one of two may stop and the other go on.
    fn may_lack_a_state_store(&self) -> bool {
        self.setting.place == Place::Sink
            && self.moment != FaultMoment::Paused
            && self.layout.pattern().is_none()
            && expectation(self).0 != Expectation::Either
    }
}

fn arrangement(moment: FaultMoment, random: &mut fastrand::Rng) -> WorkerArrangement {
    if moment == FaultMoment::TakeOver {
        return WorkerArrangement::Standby;
    }
    match random.u8(0..12) {
        0..=3 => WorkerArrangement::One,
        4..=6 => WorkerArrangement::Standby,
        7 => WorkerArrangement::TakenOver,
        8..=9 => WorkerArrangement::Restarted,
        _ => WorkerArrangement::Unleased,
    }
}

/// Every fault with every moment at which it means something.
#[must_use]
pub fn pairs() -> Vec<(FileFault, FaultMoment)> {
    FileFault::ALL.into_iter().flat_map(|fault| fault.moments().iter().map(move |moment| (fault, *moment))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Goal: a row of seeds as long as the list meets every fault at every moment. Method: deal them.
    #[test]
    fn every_fault_meets_every_moment() {
        let all: BTreeSet<_> = pairs().into_iter().collect();
        assert_eq!(all.len(), pairs().len(), "a pair stands there twice");
        let first = 4_000_000_000;
        let dealt = (first..first + all.len() as u64).map(SourceCase::deal).map(|case| (case.fault, case.moment));
        assert_eq!(dealt.collect::<BTreeSet<_>>(), all);
    }

    /// Goal: a seed deals one case, and every layout, arrangement, format, and setting over all databases is dealt. Method: deal
    /// many.
    #[test]
    fn a_seed_deals_one_case_and_all_parts_are_dealt() {
        let dealt: Vec<SourceCase> = (0..3000).map(SourceCase::deal).collect();
        assert_eq!(dealt, (0..3000).map(SourceCase::deal).collect::<Vec<_>>());
        let layouts: BTreeSet<_> = dealt.iter().map(|case| case.layout).collect();
        let workers: BTreeSet<_> = dealt.iter().map(|case| case.workers).collect();
        let formats: BTreeSet<_> = dealt.iter().map(|case| case.format).collect();
        let settings: BTreeSet<_> = dealt.iter().map(|case| case.setting.to_string()).collect();
        assert_eq!((layouts.len(), workers.len(), formats.len(), settings.len()), (10, 5, 2, 60));
        assert!(dealt.iter().all(|case| case.fault.fits(case.layout)));
    }
}
