//! The books against themselves: the ledger's equation, the log's chain and sum, the letters. Pure.

use hapax_engine::books::{LetterCounts, LoggedEpoch};
use hapax_model::ledger::Totals;
use hapax_model::mode::ProgressPlace;
use hapax_model::progress::Progress;

/// A log keeps at least so many epochs before its beginning is removed.
const EPOCHS_KEPT: usize = 10_000;

/// What one comparison came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) text: String,
}

/// Whether two things that must agree do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Agrees,
    /// All that must be there is, and more, which can be explained.
    HoldsMore,
    Differs,
    NotCompared,
}

impl Check {
    pub(super) fn agrees(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Agrees, text: text.into() }
    }

    pub(super) fn holds_more(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::HoldsMore, text: text.into() }
    }

    pub(super) fn differs(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::Differs, text: text.into() }
    }

    pub(super) fn not_compared(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, outcome: Outcome::NotCompared, text: text.into() }
    }
}

/// `read = delivered + filtered + dead`.
pub(super) fn ledger(totals: &Totals) -> Check {
    let Totals { read, delivered, filtered, dead, .. } = totals;
    let equation = format!("{read} read, {delivered} delivered + {filtered} filtered + {dead} dead");
    if totals.adds_up() {
        return Check::agrees("ledger", equation);
    }
    let sum = delivered + filtered + dead;
    Check::differs("ledger", format!("{equation} = {sum}: every input that was read must have one of these ends"))
}

/// The log's sum against the ledger.
pub(super) fn sum(log: &[LoggedEpoch], totals: &Totals, place: ProgressPlace) -> Check {
    let sum = log.iter().fold(Totals::default(), |sum, logged| sum.plus(logged.counts));
    let Some(first) = log.first() else {
        return match totals.read {
            0 => Check::agrees("log", "empty, as the ledger is"),
            read => Check::differs("log", format!("empty, but the ledger has {read} inputs read")),
        };
    };
    let reach = format!("{} epochs from epoch {} on", log.len(), first.epoch);
    let pairs = [
        ("read", sum.read, totals.read),
        ("delivered", sum.delivered, totals.delivered),
        ("filtered", sum.filtered, totals.filtered),
        ("dead", sum.dead, totals.dead),
        ("rows", sum.rows, totals.rows),
    ];
    if sum == *totals {
        return Check::agrees("log", format!("{reach}: their sum is the ledger's"));
    }
    let pruned = first.epoch.0 > 1 && (log.len() >= EPOCHS_KEPT || place == ProgressPlace::State);
    let wrong = pairs.iter().find(|(_, logged, booked)| if pruned { logged > booked } else { logged != booked });
    match wrong {
        None => Check::agrees("log", format!("{reach}: their sum is within the ledger's; what came before was pruned")),
        Some((name, logged, booked)) => {
            Check::differs("log", format!("{reach}: {name} is {logged} in their sum and {booked} in the ledger"))
        }
    }
}

/// Each epoch begins where the one before it ended, under the same worker or a later one, up to where progress is.
pub(super) fn chain(log: &[LoggedEpoch], progress: &Progress, place: ProgressPlace) -> Check {
    let (Some(first), Some(last)) = (log.first(), log.last()) else {
        return Check::not_compared("chain", "there is no epoch in the log");
    };
    let mut moved = Vec::new();
    for pair in log.windows(2) {
        match link(&pair[0], &pair[1], place) {
            Ok(None) => {}
            Ok(Some(note)) => moved.push(note),
            Err(broken) => return Check::differs("chain", broken),
        }
    }
    if let Err(broken) = end(last, progress, &mut moved) {
        return Check::differs("chain", broken);
    }
    let aside = match moved.as_slice() {
        [] => String::new(),
        [one] => format!("; {one}"),
        [one, rest @ ..] => format!("; {one}, and {} more such moves", rest.len()),
    };
    let (from, to) = (first.generation, last.generation);
    Check::agrees(
        "chain",
        format!("epochs {} to {}, generations {from} to {to}, no gap{aside}", first.epoch, last.epoch),
    )
}

/// One link; a note if a person moved the delivery there.
fn link(a: &LoggedEpoch, b: &LoggedEpoch, place: ProgressPlace) -> Result<Option<String>, String> {
    if b.epoch <= a.epoch {
        let (one, other) = (a.generation, b.generation);
        return Err(format!(
            "epoch {} is there twice, of generations {one} and {other}: two workers wrote it",
            a.epoch
        ));
    }
    // Where progress is kept apart, one row stands for several epochs.
    if place == ProgressPlace::Sink && b.epoch != a.epoch.next() {
        let (after, before) = (a.epoch, b.epoch);
        return Err(format!("epoch {} is missing: the log goes from epoch {after} to epoch {before}", a.epoch.next()));
    }
    if b.generation < a.generation {
        return Err(format!(
            "epoch {} was written by generation {}, after generation {} had taken over with epoch {}",
            b.epoch, b.generation, a.generation, a.epoch
        ));
    }
    if b.from == a.to.position {
        return Ok(None);
    }
    let places =
        format!("epoch {} ends at position {} and epoch {} begins at {}", a.epoch, a.to.position, b.epoch, b.from);
    // A reset raises the generation, and so does the claim after it.
    if b.generation.0 >= a.generation.0 + 2 {
        return Ok(Some(format!("{places}: a person moved it there (reset)")));
    }
    Err(format!("{places}, and nobody moved it"))
}

fn end(last: &LoggedEpoch, progress: &Progress, moved: &mut Vec<String>) -> Result<(), String> {
    if last.epoch != progress.epoch {
        return Err(format!("the log ends with epoch {} and progress is at epoch {}", last.epoch, progress.epoch));
    }
    if last.generation > progress.generation {
        return Err(format!(
            "epoch {} was written by generation {}, and progress is at generation {}",
            last.epoch, last.generation, progress.generation
        ));
    }
    if last.to == progress.bookmark {
        return Ok(());
    }
    let places = format!("epoch {} ends at {} and progress is at {}", last.epoch, last.to, progress.bookmark);
    if progress.generation > last.generation {
        moved.push(format!("{places}: a person moved it there (reset)"));
        return Ok(());
    }
    Err(format!("{places}, and nobody moved it"))
}

/// Every dead input has its letter. `dead` is the ledger's count just before and just after the letters were counted;
/// `in_doubt` are those of the waiting letters that may have been delivered all the same.
pub(super) fn letters(counts: &LetterCounts, in_doubt: u64, dead: std::ops::RangeInclusive<u64>) -> Check {
    let LetterCounts { dead: waiting, replayed, discarded } = counts;
    let all = waiting + replayed + discarded;
    let aside = match in_doubt {
        0 => String::new(),
        some => format!("; {some} of the dead are in doubt, which may have been delivered"),
    };
    let text = format!("{waiting} dead, {replayed} replayed, {discarded} discarded{aside}");
    if dead.contains(&all) {
        return Check::agrees("letters", text);
    }
    Check::differs("letters", format!("{text}: {all} letters, but {} dead inputs in the ledger", dead.end()))
}

#[cfg(test)]
mod tests {
    use hapax_model::contract::Contract;
    use hapax_model::epoch::{Epoch, Generation};
    use hapax_model::position::Position;

    use super::super::super::history::tests::logged;
    use super::*;

    fn log() -> Vec<LoggedEpoch> {
        vec![logged(1, 0, 1, 10), logged(2, 10, 1, 30), logged(3, 30, 1, 35)]
    }

    fn progress(log: &[LoggedEpoch]) -> Progress {
        let last = log.last().unwrap();
        Progress {
            generation: last.generation,
            epoch: last.epoch,
            bookmark: last.to.clone(),
            contract: Contract::default(),
            snapshot: None,
            session: String::new(),
            totals: log.iter().fold(Totals::default(), |sum, logged| sum.plus(logged.counts)),
        }
    }

    fn chain_of(log: &[LoggedEpoch]) -> Check {
        chain(log, &progress(&super::tests::log()), ProgressPlace::Sink)
    }

    /// Goal: sound books agree. Method: three epochs, all checks.
    #[test]
    fn sound_books_agree() {
        let (log, now) = (log(), progress(&log()));
        let letters = letters(&LetterCounts { dead: 1, replayed: 2, discarded: 0 }, 0, 3..=3);
        for check in [ledger(&now.totals), sum(&log, &now.totals, ProgressPlace::Sink), chain_of(&log), letters] {
            assert_eq!(check.outcome, Outcome::Agrees, "{check:?}");
        }
    }

    /// Goal: each kind of damage is named. Method: a log row lost, changed, doubled, of an older worker; totals off.
    #[test]
    fn each_kind_of_damage_is_named() {
        let damaged = |damage: fn(&mut Vec<LoggedEpoch>)| {
            let mut log = log();
            damage(&mut log);
            let check = chain_of(&log);
            assert_eq!(check.outcome, Outcome::Differs, "{check:?}");
            check.text
        };
        assert!(damaged(|log| drop(log.remove(1))).contains("epoch 2 is missing"));
        assert!(damaged(|log| log[1].from = Position::at(11)).contains("epoch 2 begins at 11, and nobody moved it"));
        assert!(damaged(|log| log[2].epoch = Epoch(2)).contains("epoch 2 is there twice"));
        assert!(damaged(|log| log[0].generation = Generation(2)).contains("after generation 2 had taken over"));
        assert!(damaged(|log| drop(log.pop())).contains("the log ends with epoch 2 and progress is at epoch 3"));
        let now = progress(&log());
        for (name, wrong) in [
            ("read is 35", Totals { read: 36, delivered: 36, ..now.totals }),
            ("rows is 35", Totals { rows: 34, ..now.totals }),
        ] {
            let check = sum(&log(), &wrong, ProgressPlace::Sink);
            assert!(check.outcome == Outcome::Differs && check.text.contains(name), "{check:?}");
        }
        assert_eq!(sum(&log()[1..], &now.totals, ProgressPlace::Sink).outcome, Outcome::Differs);
        assert_eq!(sum(&[], &now.totals, ProgressPlace::Sink).outcome, Outcome::Differs);
        assert_eq!(ledger(&Totals { filtered: 1, ..now.totals }).outcome, Outcome::Differs);
        assert_eq!(letters(&LetterCounts::default(), 0, 1..=1).outcome, Outcome::Differs);
    }

    /// Goal: a person's reset is no damage. Method: a jump with two more generations, and one that nobody went on from.
    #[test]
    fn a_reset_is_no_damage() {
        let mut log = log();
        log[2].generation = Generation(3);
        log[2].from = Position::at(5);
        let mut now = progress(&log);
        assert!(chain(&log, &now, ProgressPlace::Sink).text.contains("a person moved it"));
        now.generation = Generation(4);
        now.bookmark.position = Position::at(0);
        assert_eq!(chain(&log, &now, ProgressPlace::Sink).outcome, Outcome::Agrees);
        now.generation = Generation(3);
        assert_eq!(chain(&log, &now, ProgressPlace::Sink).outcome, Outcome::Differs);
    }

    /// Goal: where progress is kept apart, one row for several epochs is no gap.
    #[test]
    fn one_row_may_stand_for_several_epochs_where_progress_is_kept_apart() {
        let log = vec![logged(3, 0, 1, 10), logged(9, 10, 1, 30)];
        let now = progress(&log);
        assert_eq!(chain(&log, &now, ProgressPlace::State).outcome, Outcome::Agrees);
        assert_eq!(sum(&log, &now.totals, ProgressPlace::State).outcome, Outcome::Agrees);
        assert_eq!(chain(&log, &now, ProgressPlace::Sink).outcome, Outcome::Differs);
    }
}
