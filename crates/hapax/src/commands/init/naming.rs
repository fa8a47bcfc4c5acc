//! What the names of a pattern's files tell of their order. Pure.
//!
//! Invariant: an order is only proposed that the bytes of the names have too.

use std::cmp::Ordering;

/// What the names say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NameOrder {
    /// Nothing: they differ in more than a number or a date.
    Unknown,
    /// They differ in a number or a date, and sort rightly.
    Right {
        /// A number that is one digit longer than all that are there would sort before them.
        grows: bool,
    },
    /// They differ in a number or a date, and sort wrongly: `first`, which is the later one, comes before `second`.
    Wrong { first: String, second: String },
}

/// A name taken apart: texts between runs of digits.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    texts: Vec<&'a str>,
    digits: Vec<&'a str>,
}

/// What the names of files tell that lie in one folder, without what says that they are compressed.
pub(super) fn order_of(names: &[&str]) -> NameOrder {
    let mut sorted: Vec<&str> = names.to_vec();
    sorted.sort_unstable();
    let parts: Vec<Parts<'_>> = sorted.iter().map(|name| taken_apart(name)).collect();
    let Some(first) = parts.first().filter(|_| parts.len() > 1) else { return NameOrder::Unknown };
    if parts.iter().any(|other| other.texts != first.texts) {
        return NameOrder::Unknown;
    }
    let varies = |run: &usize| parts.iter().any(|other| other.digits[*run] != first.digits[*run]);
    let varying: Vec<usize> = (0..first.digits.len()).filter(varies).collect();
    let (Some(from), Some(to)) = (varying.first().copied(), varying.last().copied()) else { return NameOrder::Unknown };
    // Numbers at two places may be two orders, such as a branch and its day.
    if !first.texts[from + 1..=to].iter().all(|text| joins_a_date(text)) {
        return NameOrder::Unknown;
    }
    let (from, to) = whole_date(first, from, to);
    let later = parts.windows(2).position(|pair| compare(&pair[0], &pair[1], from, to) == Ordering::Greater);
    match later {
        Some(at) => NameOrder::Wrong { first: sorted[at].to_owned(), second: sorted[at + 1].to_owned() },
        None => NameOrder::Right { grows: grows(&parts, from, to) },
    }
}

fn taken_apart(name: &str) -> Parts<'_> {
    let (mut texts, mut digits, mut rest) = (Vec::new(), Vec::new(), name);
    loop {
        let at = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        texts.push(&rest[..at]);
        rest = &rest[at..];
        if rest.is_empty() {
            return Parts { texts, digits };
        }
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        digits.push(&rest[..end]);
        rest = &rest[end..];
    }
}

/// Whether a text stands between the numbers of one date, or of a date and its number.
fn joins_a_date(text: &str) -> bool {
    matches!(text, "-" | "_" | "." | "T" | "t" | ":" | " ")
}

/// The runs that vary, with those beside them that make a date of them.
fn whole_date(parts: &Parts<'_>, from: usize, to: usize) -> (usize, usize) {
    let joined = |run: usize| joins_a_date(parts.texts[run]);
    let first = (1..=from).rev().find(|run| !joined(*run)).unwrap_or(0);
    let last = (to + 1..parts.digits.len()).find(|run| !joined(*run)).unwrap_or(parts.digits.len());
    (first, last - 1)
}

/// By the numbers; a date that begins with its day or its month by its year, month and day.
fn compare(one: &Parts<'_>, other: &Parts<'_>, from: usize, to: usize) -> Ordering {
    let numbers = |parts: &Parts<'_>| -> Vec<String> {
        let runs = &parts.digits[from..=to];
        match runs {
            [a, b, year, rest @ ..] if a.len() <= 2 && b.len() <= 2 && is_year(year) => {
                [*year, *b, *a].iter().chain(rest).map(|run| comparable(run)).collect()
            }
            [packed, rest @ ..] if packed.len() == 8 && !is_year(&packed[..4]) && is_year(&packed[4..]) => {
                let date = [&packed[4..], &packed[2..4], &packed[..2]];
                date.iter().chain(rest).map(|run| comparable(run)).collect()
            }
            runs => runs.iter().map(|run| comparable(run)).collect(),
        }
    };
    numbers(one).cmp(&numbers(other))
}

fn is_year(digits: &str) -> bool {
    digits.len() == 4 && matches!(&digits[..2], "19" | "20")
}

/// Digits, however many, so that texts compare as the numbers do.
fn comparable(digits: &str) -> String {
    format!("{:0>60}", digits.trim_start_matches('0'))
}

/// Whether the last number that varies has no zeros before it, so that it will get longer.
fn grows(parts: &[Parts<'_>], from: usize, to: usize) -> bool {
    let varies = |run: &usize| parts.iter().any(|other| other.digits[*run] != parts[0].digits[*run]);
    let Some(run) = (from..=to).rev().find(varies) else { return false };
    let is_alone = (from..=to).filter(varies).count() == 1 && !parts[0].digits[from..=to].iter().any(|d| is_year(d));
    is_alone && parts.iter().all(|name| name.digits[run].len() < 4 && !name.digits[run].starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an order is proposed only where the bytes of the names have it. Method: names as people give them.
    #[test]
    fn names_that_differ_in_a_number_have_an_order_if_their_bytes_have_it() {
        let right = |grows| NameOrder::Right { grows };
        let wrong = |first: &str, second: &str| NameOrder::Wrong { first: first.into(), second: second.into() };
        for (names, order) in [
            (vec!["batch-01.jsonl", "batch-02.jsonl", "batch-10.jsonl"], right(false)),
            (vec!["b1.csv", "b2.csv"], right(true)),
            (vec!["b8.csv", "b9.csv", "b10.csv"], wrong("b10.csv", "b8.csv")),
            (vec!["b-20261117.csv", "b-20261118.csv"], right(false)),
            (vec!["b-2026-11-17T03.csv", "b-2026-11-18T00.csv"], right(false)),
            (vec!["b-17-11-2026.csv", "b-01-12-2026.csv"], wrong("b-01-12-2026.csv", "b-17-11-2026.csv")),
            (vec!["b-17112026.csv", "b-01122026.csv"], wrong("b-01122026.csv", "b-17112026.csv")),
            (vec!["shop1-day01.csv", "shop2-day02.csv"], NameOrder::Unknown),
            (vec!["north.csv", "south.csv"], NameOrder::Unknown),
            (vec!["a-1.csv", "b-2.csv"], NameOrder::Unknown),
            (vec!["b-01.csv"], NameOrder::Unknown),
            (vec!["1700000000.csv", "1700000060.csv"], right(false)),
        ] {
            assert_eq!(order_of(&names), order, "{names:?}");
        }
    }
}
