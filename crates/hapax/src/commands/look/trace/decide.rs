//! What became of an input, from what is known of it. Pure.

use std::fmt;

use hapax_model::mode::ProgressPlace;
use hapax_model::position::{Incarnation, Position};
use hapax_model::progress::Progress;

use super::super::history::Range;

/// What is known of the delivery.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) progress: Option<&'a Progress>,
    /// The worker that holds the lease.
    pub(super) worker: Option<&'a str>,
    /// The oldest epoch of the log.
    pub(super) first: Option<&'a Range>,
    /// Whether it reaches back to the first epoch of all.
    pub(super) log: Log,
    /// Where it keeps its progress: apart from the rows, a letter in doubt may have landed.
    pub(super) place: ProgressPlace,
}

/// How far back the log reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    /// To the first epoch.
    Whole,
    /// Its beginning was removed.
    Pruned,
}

/// What is known of the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) position: Position,
    /// Which incarnation of the source it belongs to, if that is known.
    pub(super) incarnation: Option<&'a Incarnation>,
    /// Whether an epoch of the log holds it.
    pub(super) in_log: bool,
    /// The state of its newest dead letter.
    pub(super) letter: Option<&'a str>,
    /// Whether that letter says that nobody knows.
    pub(super) in_doubt: bool,
    /// The source was asked and has no input there.
    pub(super) absent: bool,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Delivered,
    Filtered,
    Replayed,
    DeadLetter,
    Discarded,
    InDoubt,
    InFlight,
    NotYetRead,
    Pruned,
    BeforeStart,
    Skipped,
    NoSuchInput,
    Header,
    Unknown,
}

impl Verdict {
    /// One word for programs.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Filtered => "filtered",
            Self::Replayed => "replayed",
            Self::DeadLetter => "deadLetter",
            Self::Discarded => "discarded",
            Self::InDoubt => "inDoubt",
            Self::InFlight => "inFlight",
            Self::NotYetRead => "notYetRead",
            Self::Pruned => "pruned",
            Self::BeforeStart => "beforeStart",
            Self::Skipped => "skipped",
            Self::NoSuchInput => "noSuchInput",
            Self::Header => "header",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delivered => "delivered",
            Self::Filtered => "filtered out: the workflow's transform, as it is now, makes no event of it",
            Self::Replayed => "delivered by a replay of its dead letter",
            Self::DeadLetter => "dead letter: not delivered",
            Self::Discarded => "dead letter, discarded by a person: not delivered",
            Self::InDoubt => "in doubt: it may have been delivered",
            Self::InFlight => "in flight: a worker is alive and has read it, or is about to",
            Self::NotYetRead => "not yet read",
            Self::Pruned => {
                "unknown because the log was pruned: progress has passed it and no dead letter is there, so it was delivered \
                 or filtered out in an epoch that the log no longer holds"
            }
            Self::BeforeStart => "before the start: this delivery began behind it, and never read it",
            Self::Skipped => "skipped: a person moved the delivery past it (`hapax reset`), and no epoch read it",
            Self::NoSuchInput => "no input begins there, or not yet",
            Self::Header => "no input: the header of the file lies there, which names the fields",
            Self::Unknown => "unknown",
        })
    }
}

/// Pure: no clock, no I/O, so a test can list every case.
pub(super) fn decide(facts: Facts<'_>, input: Input<'_>) -> Verdict {
    match input.letter {
        Some("replayed") => return Verdict::Replayed,
        Some(_) if input.in_doubt && facts.place == ProgressPlace::State => return Verdict::InDoubt,
        Some("discarded") => return Verdict::Discarded,
        Some(_) => return Verdict::DeadLetter,
        None => {}
    }
    if input.absent {
        return Verdict::NoSuchInput;
    }
    if input.in_log {
        return Verdict::Delivered;
    }
    let Some(progress) = facts.progress else { return Verdict::NotYetRead };
    let present = &progress.bookmark.incarnation;
    let ahead = match input.incarnation {
        Some(other) if other.number != present.number => other.number > present.number,
        Some(_) | None => input.position >= progress.bookmark.position,
    };
    if ahead {
        return if facts.worker.is_some() { Verdict::InFlight } else { Verdict::NotYetRead };
    }
    let Some(first) = facts.first else {
        // No epoch was ever committed: whatever lies before the position was never read.
        return if progress.epoch.0 == 0 { Verdict::BeforeStart } else { Verdict::Pruned };
    };
    let began = first.from.as_ref().map_or(&first.logged.to.incarnation, |from| &from.incarnation).number;
    let number = input.incarnation.map_or(began, |file| file.number);
    let before_log = (number, input.position) < (began, first.logged.from);
    match (before_log, facts.log) {
        (true, Log::Whole) => Verdict::BeforeStart,
        (_, Log::Pruned) => Verdict::Pruned,
        (false, Log::Whole) => Verdict::Skipped,
    }
}

#[cfg(test)]
mod tests {
    use hapax_model::contract::Contract;
    use hapax_model::epoch::{Epoch, Generation};
    use hapax_model::position::Bookmark;

    use super::super::super::history::tests::logged;
    use super::super::super::history::{Range, ranges};
    use super::*;

    fn progress(epoch: u64, position: u64) -> Progress {
        let first = Progress::first(&Bookmark::at("f1", position), &Contract::default(), "pid 1 on here");
        Progress { generation: Generation(1), epoch: Epoch(epoch), ..first }
    }

    fn at(position: u64, log: &[Range], progress: Option<&Progress>, worker: Option<&str>) -> Verdict {
        let position = Position::at(position);
        let in_log = log.iter().any(|range| range.holds(position, None));
        let whole = log.first().is_some_and(|first| first.logged.epoch == Epoch(1));
        let reach = if whole { Log::Whole } else { Log::Pruned };
        let facts = Facts { progress, worker, first: log.first(), log: reach, place: ProgressPlace::Sink };
        decide(facts, Input { position, incarnation: None, in_log, letter: None, in_doubt: false, absent: false })
    }

    /// Goal: every place in a lane has its verdict. Method: a log that begins behind the start and has a hole.
    #[test]
    fn every_place_has_its_verdict() {
        let log = ranges(vec![logged(1, 10, 1, 20), logged(2, 30, 1, 40)]);
        let now = progress(2, 40);
        let judged = |position| at(position, &log, Some(&now), None);
        assert_eq!(
            [5, 10, 25, 39, 40].map(judged),
            [Verdict::BeforeStart, Verdict::Delivered, Verdict::Skipped, Verdict::Delivered, Verdict::NotYetRead]
        );
        assert_eq!(at(40, &log, Some(&now), Some("pid 7")), Verdict::InFlight);
        assert_eq!(at(5, &[], None, None), Verdict::NotYetRead);
        assert_eq!(at(5, &[], Some(&progress(0, 10)), None), Verdict::BeforeStart);
    }

    /// Goal: positions of one file are not taken for those of another. Method: a lane that began inside its first file and was moved to
    /// the middle of its second.
    #[test]
    fn a_place_before_the_log_is_one_of_its_first_file() {
        let log = ranges(vec![logged(1, 10, 1, 20), logged(2, 20, 2, 0), logged(3, 8, 2, 12)]);
        let file = |n: u32| Incarnation::new(n, &format!("f{n}"));
        let bookmark = Bookmark::new(file(2), Position::at(12));
        let now = Progress { bookmark, ..progress(3, 12) };
        let facts = Facts {
            progress: Some(&now),
            worker: None,
            first: log.first(),
            log: Log::Whole,
            place: ProgressPlace::Sink,
        };
        let judged = |n: u32, position: u64| {
            let (file, position) = (file(n), Position::at(position));
            let in_log = log.iter().any(|range| range.holds(position, Some(&file)));
            decide(
                facts,
                Input { position, incarnation: Some(&file), in_log, letter: None, in_doubt: false, absent: false },
            )
        };
        assert_eq!(
            [judged(1, 5), judged(1, 15), judged(2, 5)],
            [Verdict::BeforeStart, Verdict::Delivered, Verdict::Skipped]
        );
        assert_eq!([judged(2, 9), judged(2, 12)], [Verdict::Delivered, Verdict::NotYetRead]);
    }

    /// Goal: what the log no longer holds is not called lost. Method: a log that begins at epoch 7.
    #[test]
    fn a_pruned_log_is_said_to_be_pruned() {
        let log = ranges(vec![logged(7, 70, 1, 80)]);
        assert_eq!(at(5, &log, Some(&progress(7, 80)), None), Verdict::Pruned);
        assert_eq!(at(75, &log, Some(&progress(7, 80)), None), Verdict::Delivered);
        assert_eq!(at(5, &[], Some(&progress(7, 80)), None), Verdict::Pruned);
    }

    /// Goal: a letter decides before the log does, which holds dead inputs too. Method: each state of a letter.
    #[test]
    fn a_letter_decides_first() {
        let log = ranges(vec![logged(1, 0, 1, 20)]);
        let now = progress(1, 20);
        let facts = Facts {
            progress: Some(&now),
            worker: None,
            first: log.first(),
            log: Log::Whole,
            place: ProgressPlace::Sink,
        };
        let input = |letter| Input {
            position: Position::at(3),
            incarnation: None,
            in_log: true,
            letter: Some(letter),
            in_doubt: false,
            absent: false,
        };
        let judged = |letter| decide(facts, input(letter));
        assert_eq!(
            ["dead", "replayed", "discarded"].map(judged),
            [Verdict::DeadLetter, Verdict::Replayed, Verdict::Discarded]
        );
        let doubted = |place, letter| decide(Facts { place, ..facts }, Input { in_doubt: true, ..input(letter) });
        let apart = ["dead", "replayed", "discarded"].map(|letter| doubted(ProgressPlace::State, letter));
        assert_eq!(apart, [Verdict::InDoubt, Verdict::Replayed, Verdict::InDoubt]);
        assert_eq!(
            doubted(ProgressPlace::Sink, "dead"),
            Verdict::DeadLetter,
            "the target has said that it did not land"
        );
    }
}
