//! Totals, dead letters and balances: do the books agree with the data and with themselves?

use std::collections::BTreeMap;

use super::history::{BalanceRow, Found, LetterRow, ProgressRow};
use super::{Anomaly, Finding, some};
use crate::setting::Place;
use crate::shape::Row;

/// Whether a delivery's totals add up: read = delivered + filtered + dead.
#[must_use]
pub fn adds_up(progress: &ProgressRow) -> bool {
    progress.read == progress.delivered + progress.filtered + progress.dead
}

/// The final totals against the number of inputs and of those that had to die.
#[must_use]
pub fn judge_ledger(found: &Found, place: Place, read: u64, dead: u64) -> Vec<Finding> {
    let Some(progress) = &found.progress else { return Vec::new() };
    let mut findings = Vec::new();
    let mut wrong = |text: String| findings.push(Finding::new(Anomaly::Ledger, text));
    if !adds_up(progress) {
        wrong(format!("read is not delivered + filtered + dead in {progress:?}"));
    }
    if progress.read != read {
        wrong(format!("{} inputs counted as read, {read} were written", progress.read));
    }
    if progress.dead != dead {
        wrong(format!("{} inputs counted as dead, {dead} had to die", progress.dead));
    }
    let last = found.epochs.last().map(|e| e.epoch);
    if last.is_some_and(|last| last != progress.epoch) {
        wrong(format!("progress is at epoch {}, the epoch log ends at {last:?}", progress.epoch));
    }
    for pair in found.epochs.windows(2) {
        let follows = match place {
            Place::Sink => pair[1].epoch == pair[0].epoch + 1,
            // One entry stands for all epochs that were saved together.
            Place::State => pair[1].epoch > pair[0].epoch,
        };
        if !follows {
            wrong(format!("the epoch log goes from {} to {}", pair[0].epoch, pair[1].epoch));
        }
    }
    findings
}

/// Dead letters, by their source bytes, against the lines that had to die.
#[must_use]
pub fn judge_letters(dead: &[&str], letters: &[LetterRow]) -> Vec<Finding> {
    let mut balance: BTreeMap<&[u8], i64> = BTreeMap::new();
    for line in dead {
        *balance.entry(line.as_bytes()).or_default() += 1;
    }
    for letter in letters {
        *balance.entry(letter.bytes.trim_ascii_end()).or_default() -= 1;
    }
    let names = |wanted: fn(i64) -> bool| -> Vec<String> {
        let chosen = balance.iter().filter(|(_, count)| wanted(**count));
        chosen.map(|(line, _)| String::from_utf8_lossy(line).into_owned()).collect()
    };
    let (lost, doubled) = (names(|count| count > 0), names(|count| count < 0));
    let known = |line: &String| dead.contains(&line.as_str());
    let (doubled, innocent): (Vec<String>, Vec<String>) = doubled.into_iter().partition(known);
    let mut findings = Vec::new();
    let mut report = |anomaly, lines: &[String], what: &str| {
        if !lines.is_empty() {
            findings.push(Finding::new(anomaly, format!("{} {what}: {}", lines.len(), some(lines))));
        }
    };
    report(Anomaly::LetterLost, &lost, "without a letter");
    report(Anomaly::LetterDoubled, &doubled, "with more than one letter");
    report(Anomaly::InnocentDied, &innocent, "died without being guilty");
    findings
}

/// The balance that a trigger keeps against the rows that made it.
#[must_use]
pub fn judge_balance(rows: &[Row], balance: &[BalanceRow]) -> Vec<Finding> {
    let mut kept: BTreeMap<&str, (i64, u64)> = BTreeMap::new();
    for row in rows {
        let entry = kept.entry(row.account.as_str()).or_default();
        *entry = (entry.0 + row.amount, entry.1 + 1);
    }
    let off: Vec<String> = balance
        .iter()
        .filter(|b| kept.get(b.account.as_str()).copied().unwrap_or_default() != (b.amount, b.entries))
        .map(|b| format!("account {} says {} from {} rows", b.account, b.amount, b.entries))
        .collect();
    if off.is_empty() { Vec::new() } else { vec![Finding::new(Anomaly::Torn, some(&off))] }
}

#[cfg(test)]
mod tests {
    use super::super::history::EpochRow;
    use super::*;

    fn kinds(findings: Vec<Finding>) -> Vec<Anomaly> {
        findings.into_iter().map(|f| f.anomaly).collect()
    }

    fn letter(bytes: &str) -> LetterRow {
        LetterRow { bytes: bytes.into(), state: "dead".into(), code: "HX2001".into() }
    }

    fn balanced() -> Found {
        let progress =
            ProgressRow { epoch: 2, read: 10, delivered: 8, filtered: 0, dead: 2, rows: 8, ..ProgressRow::default() };
        let epochs = vec![EpochRow { epoch: 1, generation: 1 }, EpochRow { epoch: 2, generation: 1 }];
        Found { progress: Some(progress), epochs, ..Found::default() }
    }

    /// Goal: books that balance are left in peace, and each counter that is off is seen.
    #[test]
    fn a_total_that_is_off_by_one_is_found() {
        assert_eq!(judge_ledger(&balanced(), Place::Sink, 10, 2), []);
        let off: [fn(&mut ProgressRow); 4] =
            [|p| p.read += 1, |p| p.delivered -= 1, |p| p.dead += 1, |p| p.filtered += 1];
        for change in off {
            let mut found = balanced();
            change(found.progress.as_mut().expect("it has progress"));
            assert!(kinds(judge_ledger(&found, Place::State, 10, 2)).contains(&Anomaly::Ledger));
        }
    }

    /// Goal: inputs that nobody counted are seen though the totals add up. Method: more inputs than were read.
    #[test]
    fn uncounted_inputs_are_found() {
        assert_eq!(kinds(judge_ledger(&balanced(), Place::Sink, 11, 2)), [Anomaly::Ledger]);
        assert_eq!(kinds(judge_ledger(&balanced(), Place::Sink, 10, 3)), [Anomaly::Ledger]);
    }

    /// Goal: a hole in the epoch log, and a log behind progress, are seen.
    #[test]
    fn an_epoch_log_with_a_hole_is_found() {
        let mut hole = balanced();
        hole.epochs[0].epoch = 0;
        assert_eq!(kinds(judge_ledger(&hole, Place::Sink, 10, 2)), [Anomaly::Ledger]);
        assert_eq!(judge_ledger(&hole, Place::State, 10, 2), [], "saved together");
        let mut behind = balanced();
        behind.epochs.pop();
        assert_eq!(kinds(judge_ledger(&behind, Place::State, 10, 2)), [Anomaly::Ledger]);
    }

    /// Goal: lost, doubled and innocent letters are told apart, and the line's end does not matter.
    #[test]
    fn each_wrong_letter_is_found() {
        let dead = ["{bad", "{worse"];
        assert_eq!(judge_letters(&dead, &[letter("{bad\n"), letter("{worse")]), []);
        assert_eq!(kinds(judge_letters(&dead, &[letter("{bad")])), [Anomaly::LetterLost]);
        let twice = [letter("{bad"), letter("{worse"), letter("{bad")];
        assert_eq!(kinds(judge_letters(&dead, &twice)), [Anomaly::LetterDoubled]);
        let innocent = [letter("{bad"), letter("{worse"), letter("{\"n\":1}")];
        assert_eq!(kinds(judge_letters(&dead, &innocent)), [Anomaly::InnocentDied]);
    }

    /// Goal: a balance that disagrees with its rows is seen. Method: right, wrong sum, wrong count.
    #[test]
    fn a_balance_that_disagrees_with_its_rows_is_found() {
        let row = Row {
            n: 1,
            order_id: 1,
            region: String::new(),
            reference: String::new(),
            account: "a1".into(),
            amount: 5,
            op: "c".into(),
            slot: None,
            version: 1,
        };
        let says = |amount, entries| vec![BalanceRow { account: "a1".into(), amount, entries }];
        assert_eq!(judge_balance(std::slice::from_ref(&row), &says(5, 1)), []);
        assert_eq!(kinds(judge_balance(std::slice::from_ref(&row), &says(6, 1))), [Anomaly::Torn]);
        assert_eq!(kinds(judge_balance(&[row], &says(5, 2))), [Anomaly::Torn]);
    }
}
