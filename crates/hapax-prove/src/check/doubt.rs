//! Inputs in doubt: at-most-once may leave one out of the table, if a letter that says so stands for it.
//!
//! Reads: the truth and the letters. Writes: what is to be expected instead. Not here: which letters are right (`books`).

use std::collections::BTreeSet;

use super::history::{Found, IN_DOUBT, LetterRow};
use super::{Anomaly, Finding, some};
use crate::setting::Place;
use crate::shape::{Contents, Shape};
use crate::workload::Input;

/// Whether inputs may be in doubt at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Never: a letter in doubt is a letter too many.
    Excluded,
    /// An input that may have been sent becomes a letter, and is not sent again.
    Allowed,
}

/// The inputs that could be delivered and of which a letter says that they are in doubt.
#[must_use]
pub fn doubtful<'a>(
    doubt: Doubt,
    inputs: impl IntoIterator<Item = &'a Input>,
    letters: &[LetterRow],
) -> Vec<&'a Input> {
    match doubt {
        Doubt::Excluded => Vec::new(),
        Doubt::Allowed => {
            let lines: BTreeSet<&[u8]> = letters
                .iter()
                .filter(|letter| letter.code == IN_DOUBT)
                .map(|letter| letter.bytes.trim_ascii_end())
                .collect();
            let stands_for = |input: &&Input| !input.rows().is_empty() && lines.contains(input.line.as_bytes());
            inputs.into_iter().filter(stands_for).collect()
        }
    }
}

/// Takes what is in doubt out of what is expected: beside its progress a table has none of it, elsewhere it may have it.
pub fn excuse(shape: Shape, place: Place, expected: &mut Contents, found: &Found, doubtful: &[&Input]) -> Vec<Finding> {
    let there: BTreeSet<String> = found.rows.iter().map(|row| shape.row_name(row)).collect();
    let names = doubtful.iter().flat_map(|input| input.rows()).map(|row| shape.row_name(row));
    let (delivered, missing): (Vec<String>, Vec<String>) = names.partition(|name| there.contains(name));
    for name in missing {
        expected.remove(&name);
    }
    match place {
        Place::Sink if !delivered.is_empty() => {
            let text =
                format!("{} are in the table and letters in doubt as well: {}", delivered.len(), some(&delivered));
            vec![Finding::new(Anomaly::InnocentDied, text)]
        }
        Place::Sink | Place::State => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::history::{History, ProgressRow};
    use crate::check::{Terms, judge};
    use crate::truth::Truth;
    use crate::workload::{Mix, inputs};

    const READ: usize = 60;

    /// A table without the first inputs that it should have, and what is said of them.
    fn without_first(count: usize, code: &str, place: Place, doubt: Doubt) -> Vec<Anomaly> {
        let truth = Truth::new(Shape::Append, inputs(Shape::Append, Mix::Clean, READ, 1));
        let mut rows: Vec<_> = truth.contents_after(READ).into_values().collect();
        rows.sort_by_key(|row| row.n);
        let lost: Vec<_> = rows.drain(..count).collect();
        let line = |n: i64| truth.inputs.iter().find(|input| input.rows().iter().any(|row| row.n == n));
        let letters: Vec<LetterRow> = lost
            .iter()
            .filter_map(|row| line(row.n))
            .map(|input| LetterRow { bytes: input.line.clone().into(), state: "dead".into(), code: code.into() })
            .collect();
        let dead = letters.len() as u64;
        let progress = ProgressRow { read: READ as u64, delivered: READ as u64 - dead, dead, ..ProgressRow::default() };
        let found = Found { rows, letters, progress: Some(progress), ..Found::default() };
        let findings = judge(&truth, READ, Terms { place, doubt }, &found, &History::default());
        findings.into_iter().map(|finding| finding.anomaly).collect()
    }

    /// Goal: what is in doubt is excused only where doubt is allowed, and only by a letter that says so. Method: three rows are
    /// missing and have letters, of either kind.
    #[test]
    fn a_letter_in_doubt_excuses_its_input_and_no_other() {
        for place in [Place::Sink, Place::State] {
            assert_eq!(without_first(3, IN_DOUBT, place, Doubt::Allowed), []);
            let (lost, ledger, innocent) = (Anomaly::Lost, Anomaly::Ledger, Anomaly::InnocentDied);
            assert_eq!(without_first(3, "HX2001", place, Doubt::Allowed), [lost, ledger, innocent]);
            assert_eq!(without_first(3, IN_DOUBT, place, Doubt::Excluded), [lost, ledger, innocent]);
        }
    }

    /// Goal: a row beside a letter in doubt is wrong where both are one commit. Method: the letter of a row that is there.
    #[test]
    fn a_delivered_input_in_doubt_is_found_beside_its_progress() {
        let truth = Truth::new(Shape::Append, inputs(Shape::Append, Mix::Clean, READ, 1));
        let input = truth.inputs.iter().find(|input| !input.rows().is_empty()).expect("some input");
        let found = Found { rows: input.rows().to_vec(), ..Found::default() };
        for (place, wrong) in [(Place::Sink, 1), (Place::State, 0)] {
            let mut expected = truth.contents_after(READ);
            assert_eq!(excuse(Shape::Append, place, &mut expected, &found, &[input]).len(), wrong);
        }
    }
}
