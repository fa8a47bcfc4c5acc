//! Compares what a test's runs gave with what the test expects, and with each other. Pure.

use hapax_engine::batch::Operation;

use super::memory::{Dead, Ended, Kept, Output};
use super::shape::{Fields, differences, fields_of, shown};
use super::trial::{Ran, Way};
use crate::config::{Fixture, Reject};

/// More differences than this are counted, not told.
const MOST_TOLD: usize = 20;

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// In which run.
    pub(super) way: String,
    /// What, and where.
    pub(super) what: String,
    pub(super) expected: String,
    pub(super) got: String,
}

/// Whether keys may differ between runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeysAcross {
    /// They must be the same.
    Same,
    /// They hold the epoch, and the guarantee bears it.
    HoldEpoch,
}

/// Everything that is wrong, the first run's own differences before those between runs.
pub(super) fn judge(fixture: &Fixture, runs: &[Ran], keys: KeysAcross) -> Vec<Failure> {
    let Some((plain, others)) = runs.split_first() else { return Vec::new() };
    let kept = match &plain.result {
        Ok(kept) => kept,
        Err(stop) => {
            let got = format!("{}: {}", stop.code, stop.message);
            return vec![failure(plain.way, "the delivery stopped", "the end of the input", got)];
        }
    };
    let mut failures = Vec::new();
    let (upserts, deletes) = split(&kept.outputs);
    judge_events("output", &fixture.expect, &upserts, &mut failures);
    judge_deletes(&fixture.deletes, &deletes, &mut failures);
    judge_rejects(&fixture.rejects, &kept.letters, &mut failures);
    if let Some(pinned) = &fixture.keys {
        judge_keys(pinned, &kept.outputs, &mut failures);
    }
    // Where the plain run is wrong already, all others are.
    if failures.is_empty() {
        failures.extend(others.iter().filter_map(|other| compare(kept, other, keys)));
    }
    bounded(failures)
}

/// The events that write, and those that remove.
pub(super) fn split(outputs: &[Output]) -> (Vec<&Output>, Vec<&Output>) {
    outputs.iter().partition(|output| output.operation == Operation::Upsert)
}

fn failure(way: Way, what: impl Into<String>, expected: impl Into<String>, got: impl Into<String>) -> Failure {
    Failure { way: way.to_string(), what: what.into(), expected: expected.into(), got: got.into() }
}

fn plainly(what: impl Into<String>, expected: impl Into<String>, got: impl Into<String>) -> Failure {
    failure(Way::PLAIN, what, expected, got)
}

fn judge_events(word: &str, expected: &[crate::config::Node], got: &[&Output], failures: &mut Vec<Failure>) {
    for at in 0..expected.len().max(got.len()) {
        let name = format!("{word} {}", at + 1);
        match (expected.get(at).map(fields_of), got.get(at)) {
            (Some(expected), Some(got)) => {
                for it in differences(&expected, &got.fields) {
                    let what = format!("{name}, from input {}: {}", got.input, it.path);
                    failures.push(plainly(what, it.expected, it.got));
                }
            }
            (Some(expected), None) => failures.push(plainly(name, shown(&expected), "nothing more")),
            (None, Some(got)) => {
                let what = format!("{name}, from input {}", got.input);
                failures.push(plainly(what, "nothing more", shown(&got.fields)));
            }
            (None, None) => {}
        }
    }
}

/// A delete needs no more of an event than its key: only what is written is compared.
fn judge_deletes(expected: &[crate::config::Node], got: &[&Output], failures: &mut Vec<Failure>) {
    let named = |at: usize, fields: &Fields| -> Fields {
        let wanted = expected.get(at).map(fields_of).unwrap_or_default();
        fields.iter().filter(|(name, _)| wanted.is_empty() || wanted.contains_key(*name)).map(clone_pair).collect()
    };
    let cut: Vec<Output> = got
        .iter()
        .enumerate()
        .map(|(at, output)| Output { fields: named(at, &output.fields), ..(*output).clone() })
        .collect();
    judge_events("delete", expected, &cut.iter().collect::<Vec<_>>(), failures);
}

fn clone_pair((name, value): (&String, &super::shape::Shape)) -> (String, super::shape::Shape) {
    (name.clone(), value.clone())
}

fn judge_rejects(expected: &[Reject], got: &[Dead], failures: &mut Vec<Failure>) {
    for at in 0..expected.len().max(got.len()) {
        match (expected.get(at), got.get(at)) {
            (Some(expected), Some(got)) if fits(expected, got) => {}
            (Some(expected), got) => {
                let got = got.map_or_else(|| "no more dead letters".to_owned(), told);
                failures.push(plainly(format!("dead letter {}", at + 1), wanted(expected), got));
            }
            (None, Some(got)) => {
                failures.push(plainly(format!("input {} became a dead letter", got.input), "an event", told(got)));
            }
            (None, None) => {}
        }
    }
}

fn fits(expected: &Reject, got: &Dead) -> bool {
    expected.code.as_ref().is_none_or(|code| code == got.code)
        && expected.says.as_ref().is_none_or(|words| got.message.contains(words))
        && expected.input.is_none_or(|input| input == got.input)
}

fn wanted(reject: &Reject) -> String {
    let input = reject.input.map(|input| format!("input {input}"));
    let says = reject.says.as_ref().map(|says| format!("a message with {says:?}"));
    let parts: Vec<String> = [input, reject.code.clone(), says].into_iter().flatten().collect();
    if parts.is_empty() { "any dead letter".into() } else { parts.join(", ") }
}

fn told(dead: &Dead) -> String {
    format!("input {}, {}: {}", dead.input, dead.code, dead.message)
}

fn judge_keys(pinned: &[String], got: &[Output], failures: &mut Vec<Failure>) {
    for at in 0..pinned.len().max(got.len()) {
        let expected = pinned.get(at).map_or("no more keys", String::as_str);
        let key = got.get(at).map_or("no more events", |output| key_of(output));
        // A pinned key may have a readable prefix; the key itself is its end.
        if !(expected == key || expected.ends_with(&format!("-{key}"))) {
            let input = got.get(at).map(|output| format!(", from input {}", output.input)).unwrap_or_default();
            failures.push(plainly(format!("key {}{input}", at + 1), expected, key));
        }
    }
}

fn key_of(output: &Output) -> &str {
    output.key.as_deref().unwrap_or("no key")
}

/// The first difference between the plain run and another.
fn compare(plain: &Kept, other: &Ran, keys: KeysAcross) -> Option<Failure> {
    let kept = match &other.result {
        Ok(kept) => kept,
        Err(stop) => {
            let got = format!("{}: {}", stop.code, stop.message);
            return Some(failure(other.way, "the delivery stopped", "the end of the input", got));
        }
    };
    let found = first_difference(plain, kept, keys)?;
    let what = match cut_before(kept, found.input) {
        Some(cut) => format!("{}, after the cut before input {cut}", found.what),
        None => found.what,
    };
    let what = match other.way.ended {
        Ended::Never => what,
        Ended::AroundCommits => format!("{what}, by another worker"),
    };
    Some(failure(other.way, what, format!("{} (as in one batch)", found.expected), found.got))
}

struct Found {
    input: u64,
    what: String,
    expected: String,
    got: String,
}

fn first_difference(plain: &Kept, other: &Kept, keys: KeysAcross) -> Option<Found> {
    for at in 0..plain.outputs.len().max(other.outputs.len()) {
        let (expected, got) = (plain.outputs.get(at), other.outputs.get(at));
        let input = expected.or(got).map_or(1, |output| output.input);
        let found = |what: String, expected: String, got: String| Some(Found { input, what, expected, got });
        let (Some(expected), Some(got)) = (expected, got) else {
            let said = |output: Option<&Output>| output.map_or_else(|| "nothing".into(), |it| shown(&it.fields));
            return found(format!("event {}, from input {input}", at + 1), said(expected), said(got));
        };
        if let Some(it) = differences(&expected.fields, &got.fields).into_iter().next() {
            return found(format!("event {}, from input {input}: {}", at + 1, it.path), it.expected, it.got);
        }
        if (expected.input, expected.operation) != (got.input, got.operation) {
            let said = |output: &Output| format!("{:?} of input {}", output.operation, output.input);
            return found(format!("event {}", at + 1), said(expected), said(got));
        }
        if expected.key != got.key && keys == KeysAcross::Same {
            let what = format!("the key of event {}, from input {input}", at + 1);
            return found(what, key_of(expected).to_owned(), key_of(got).to_owned());
        }
    }
    let at = (0..plain.letters.len().max(other.letters.len()))
        .find(|at| plain.letters.get(*at) != other.letters.get(*at))?;
    let said = |dead: Option<&Dead>| dead.map_or_else(|| "nothing".to_owned(), told);
    let (expected, got) = (plain.letters.get(at), other.letters.get(at));
    let input = expected.or(got).map_or(1, |dead| dead.input);
    Some(Found { input, what: format!("dead letter {}", at + 1), expected: said(expected), got: said(got) })
}

/// The last cut before `input`, if there is one.
fn cut_before(kept: &Kept, input: u64) -> Option<u64> {
    kept.cuts.iter().copied().filter(|cut| *cut <= input).max()
}

fn bounded(mut failures: Vec<Failure>) -> Vec<Failure> {
    let more = failures.len().saturating_sub(MOST_TOLD);
    failures.truncate(MOST_TOLD);
    if more > 0 {
        failures.push(plainly(format!("{more} more differences"), "", ""));
    }
    failures
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
