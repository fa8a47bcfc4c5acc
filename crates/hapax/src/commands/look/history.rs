//! The epoch log as ranges of inputs, each with the incarnation that its positions belong to. Pure.
//!
//! The log names the incarnation in which an epoch ended. An epoch that ended where a rotated file began read the old
//! file: where its inputs began is told by the epoch before it. Incarnations are told apart by their numbers: the text of
//! a file settles only with its first record.

use hapax_engine::books::LoggedEpoch;
use hapax_model::epoch::Generation;
use hapax_model::position::{Bookmark, Incarnation, Position};

/// The inputs of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) logged: LoggedEpoch,
    /// Where its inputs began; none if that cannot be told, because the epoch before it is no longer in the log.
    pub(super) from: Option<Bookmark>,
}

impl Range {
    /// Whether it read the input at `position`, of this incarnation if one is named.
    pub(super) fn holds(&self, position: Position, incarnation: Option<&Incarnation>) -> bool {
        let (from, to) = (self.logged.from, &self.logged.to);
        let began = self.from.as_ref().map_or(&to.incarnation, |from| &from.incarnation);
        if incarnation.is_some_and(|wanted| wanted.number != began.number) {
            return false;
        }
        from <= position && (began.number != to.incarnation.number || position < to.position)
    }

    /// The files that it began and ended in.
    pub(super) fn incarnations(&self) -> impl Iterator<Item = &Incarnation> {
        std::iter::once(&self.logged.to.incarnation).chain(self.from.iter().map(|from| &from.incarnation))
    }

    /// Whether inputs from `position` on belong to a later epoch.
    pub(super) fn ends_before(&self, at: &Bookmark) -> bool {
        at.incarnation.number == self.logged.to.incarnation.number && at.position >= self.logged.to.position
    }
}

/// The log, the oldest first, as ranges.
pub(super) fn ranges(log: Vec<LoggedEpoch>) -> Vec<Range> {
    let mut before: Option<(Generation, Bookmark)> = None;
    let mut ranges = Vec::with_capacity(log.len());
    for logged in log {
        let follows =
            before.filter(|(generation, end)| end.position == logged.from && !moved(*generation, end, &logged));
        let follows = follows.map(|(_, end)| end);
        let inside = (logged.from <= logged.to.position && logged.to.position != Position::default())
            .then(|| Bookmark::new(logged.to.incarnation.clone(), logged.from));
        before = Some((logged.generation, logged.to.clone()));
        let from = follows.or(inside).map(|from| as_known_at_the_end(from, &logged.to));
        ranges.push(Range { from, logged });
    }
    ranges
}

/// Whether a person moved the delivery from the beginning of one file to that of another, between the end of an epoch and
/// `next`. A reset raises the generation, and so does the claim after it; no epoch reads more than one file.
fn moved(generation: Generation, end: &Bookmark, next: &LoggedEpoch) -> bool {
    let (old, new) = (end.incarnation.number, next.to.incarnation.number);
    let reads = if next.to.position == Position::default() { new.saturating_sub(1) } else { new };
    end.position == Position::default() && next.generation.0 >= generation.0 + 2 && old != new && old != reads
}

/// Where inputs began, with what their file was known to be once they were read: its first record may be one of them.
fn as_known_at_the_end(from: Bookmark, to: &Bookmark) -> Bookmark {
    if from.incarnation.number != to.incarnation.number {
        return from;
    }
    Bookmark { incarnation: to.incarnation.clone(), ..from }
}

/// The number of a stored incarnation, such as `2:inode 7`.
pub(super) fn number_of(incarnation: &str) -> u32 {
    incarnation.split(':').next().and_then(|number| number.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
pub(super) mod tests {
    use hapax_model::epoch::Epoch;
    use hapax_model::ledger::Totals;

    use super::*;

    /// Epoch `number` of generation 1 that read from one position to another of incarnation `n:f<n>`.
    pub(in super::super) fn logged(number: u64, from: u64, incarnation: u32, to: u64) -> LoggedEpoch {
        let read = to.saturating_sub(from);
        LoggedEpoch {
            epoch: Epoch(number),
            generation: Generation(1),
            from: Position::at(from),
            to: Bookmark::new(Incarnation::new(incarnation, &format!("f{incarnation}")), Position::at(to)),
            counts: Totals { read, delivered: read, filtered: 0, dead: 0, rows: read },
            opened_at_ms: 1,
            closed_at_ms: 2,
            committed_at_ms: 3,
        }
    }

    /// Goal: an input is found in the epoch that read it, across a rotation too. Method: two files, the first read to
    /// its end in an epoch that ends at the beginning of the second.
    #[test]
    fn an_epoch_that_ends_a_file_holds_the_end_of_it() {
        let ranges = ranges(vec![logged(1, 0, 1, 10), logged(2, 10, 2, 0), logged(3, 0, 2, 15)]);
        let holding = |at: u64, of: Option<u32>| -> Vec<u64> {
            let of = of.map(|n| Incarnation::new(n, &format!("f{n}")));
            let position = Position::at(at);
            ranges.iter().filter(|range| range.holds(position, of.as_ref())).map(|range| range.logged.epoch.0).collect()
        };
        assert_eq!(holding(9, None), [1, 3]);
        assert_eq!(holding(12, None), [2, 3]);
        assert_eq!(holding(12, Some(1)), [2]);
        assert_eq!(holding(12, Some(2)), [3]);
        assert_eq!(holding(15, Some(2)), Vec::<u64>::new());
        assert_eq!(ranges[1].from, Some(Bookmark::at("f1", 10)));
    }

    /// Goal: where a pruned log begins inside a rotation, nothing is guessed.
    #[test]
    fn the_beginning_of_a_pruned_rotation_is_unknown() {
        let ranges = ranges(vec![logged(7, 10, 2, 0), logged(8, 0, 2, 5)]);
        assert_eq!(ranges[0].from, None);
        assert_eq!(ranges[1].from.as_ref().map(|from| from.incarnation.number), Some(2));
    }

    /// Goal: whoever was moved from the beginning of one file to that of another began in the other. Method: a reset at position 0,
    /// and two restarts there.
    #[test]
    fn a_move_from_beginning_to_beginning_is_no_continuation() {
        let of = |log: Vec<LoggedEpoch>| -> Vec<Option<u32>> {
            ranges(log).iter().map(|range| range.from.as_ref().map(|from| from.incarnation.number)).collect()
        };
        let later = |logged: LoggedEpoch| LoggedEpoch { generation: Generation(3), ..logged };
        let before = || vec![logged(1, 0, 1, 10), logged(2, 10, 2, 0)];
        let then = |after: [LoggedEpoch; 2]| of(before().into_iter().chain(after.map(later)).collect());
        assert_eq!(then([logged(3, 0, 3, 15), logged(4, 15, 4, 0)]), [Some(1), Some(1), Some(3), Some(3)], "a reset");
        assert_eq!(
            then([logged(3, 0, 4, 0), logged(4, 0, 4, 5)]),
            [Some(1), Some(1), None, Some(4)],
            "nothing is guessed"
        );
        assert_eq!(then([logged(3, 0, 2, 15), logged(4, 15, 3, 0)]), [Some(1), Some(1), Some(2), Some(2)], "restarts");
        assert_eq!(
            then([logged(3, 0, 3, 0), logged(4, 0, 3, 5)]),
            [Some(1), Some(1), Some(2), Some(3)],
            "restarts, a step"
        );
    }
}
