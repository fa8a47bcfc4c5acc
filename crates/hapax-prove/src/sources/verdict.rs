//! The judge: what the table, the letters, the ledger and the epoch log must be, stem by stem, from what was written.
//!
//! Reads: the records as the writer remembers them, the target as any user reads it. Writes: findings.

use std::collections::{BTreeMap, BTreeSet};

use super::lane_ledger::LaneLedger;
use super::record_writer::{WrittenStem, WrittenStems};
use super::source_world::{SourceWorld, WORKFLOW};
use crate::check::doubt::{self, Doubt};
use crate::check::history::{Found, LetterRow};
use crate::check::{Anomaly, Finding, books, rows};
use crate::child::Exit;
use crate::setting::{Place, Setting};
use crate::shape::{Contents, Row, Shape};
use crate::workload::{Fate, Input};

/// How much of what was written must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Everything,
    /// A beginning of every lane, as long as the ledger says.
    Beginning {
        /// A stem, and how many of its records could be delivered before its files became worthless.
        deliverable: Option<(usize, usize)>,
    },
}

/// What a case is judged by.
#[derive(Debug, Clone, Copy)]
struct Terms {
    shape: Shape,
    place: Place,
    doubt: Doubt,
}

impl Terms {
    fn of(world: &SourceWorld) -> Self {
        let Setting { shape, place, .. } = world.case.setting;
        Self { shape, place, doubt: world.doubt() }
    }
}

/// Judges what is there now.
///
/// # Errors
/// What the database says.
pub fn judge(world: &mut SourceWorld, extent: Extent) -> anyhow::Result<()> {
    let (found, ledgers) = (world.found()?, world.ledgers()?);
    let terms = Terms::of(world);
    let writer = world.writer.clone();
    let findings = judge_stems(&writer.stems().stems, terms, extent, &found, &ledgers);
    for finding in findings {
        let known = world.findings.iter().chain(&world.allowed).any(|known| *known == finding);
        if !known {
            world.accuse(finding.anomaly, finding.detail);
        }
    }
    Ok(())
}

/// Whether the table holds everything that was written. Where rows and ledger are two commits, the ledger of a lane at rest may
/// lag behind its rows for good.
///
/// # Errors
/// What the database says.
pub fn all_rows_are_there(world: &SourceWorld) -> anyhow::Result<bool> {
    let (found, terms) = (world.found()?, Terms::of(world));
    let shape = terms.shape;
    let stems = world.writer.stems();
    let all = stems.stems.iter().enumerate().all(|(number, stem)| {
        let expected = expected_after(terms, stem, stem.records.len(), &found).contents;
        let rows = rows_of(shape, &stems.stems, number, &found.rows);
        expected == rows.into_iter().map(|row| (shape.row_name(&row), row)).collect::<Contents>()
    });
    Ok(all)
}

/// The rows of one stem, told by their keys. Two files of the same content make each row twice where rows are kept side by side:
/// the first to come is the first file's; where a row is named by its key both make the same one.
fn rows_of(shape: Shape, stems: &[WrittenStem], number: usize, found: &[Row]) -> Vec<Row> {
    let first = stems[number].twin_of.unwrap_or(number);
    let rows = found.iter().filter(|row| WrittenStems::stem_of(row) == first);
    let has_twin = stems.iter().any(|stem| stem.twin_of == Some(first));
    if !has_twin || !matches!(shape, Shape::Append | Shape::IgnoreEvent) {
        return rows.cloned().collect();
    }
    let mut seen = BTreeSet::new();
    let (of_first, of_twin): (Vec<Row>, Vec<Row>) = rows.cloned().partition(|row| seen.insert(row.n));
    if first == number { of_first } else { of_twin }
}

/// The judgement itself: a function of what was written and what was found.
fn judge_stems(
    stems: &[WrittenStem],
    terms: Terms,
    extent: Extent,
    found: &Found,
    ledgers: &[LaneLedger],
) -> Vec<Finding> {
    let Terms { shape, place, .. } = terms;
    let mut findings: Vec<Finding> = ledgers.iter().flat_map(|ledger| ledger.judge(place)).collect();
    let events: BTreeMap<i64, &Row> =
        stems.iter().flat_map(|stem| &stem.records).flat_map(Input::rows).map(|row| (row.n, row)).collect();
    let mut dead = Vec::new();
    for (number, stem) in stems.iter().enumerate() {
        let rows = rows_of(shape, stems, number, &found.rows);
        let read = counted_for(stem, stems.len(), ledgers);
        let wanted = match extent {
            Extent::Everything => stem.records.len(),
            Extent::Beginning { .. } => landed(terms, stem, &rows, read, found),
        };
        let expected = expected_after(terms, stem, wanted, found);
        let event = |n: i64| events.get(&n).copied();
        let of_stem = |finding: Finding| Finding::new(finding.anomaly, format!("{}: {}", stem.name, finding.detail));
        findings.extend(rows::judge(shape, &expected.contents, &rows, event).into_iter().map(of_stem));
        findings.extend(expected.findings);
        findings.extend(judge_counts(number, stem, read, extent));
        // Letters are one commit with the position: where rows are another, they are ahead of both.
        let settled = match extent {
            Extent::Everything => wanted,
            Extent::Beginning { .. } => wanted.min(usize::try_from(read).unwrap_or(usize::MAX)),
        };
        dead.extend(dead_lines(stem, settled));
        dead.extend(expected.doubtful.iter().map(|input| input.line.as_str()));
    }
    findings.extend(strangers(stems.len(), &found.rows));
    findings.extend(books::judge_letters(&dead, &found.letters));
    findings.extend(books::judge_balance(&found.rows, &found.balance));
    findings.extend(judge_dead(ledgers, &found.letters));
    findings
}

/// What must be there after so many records of a stem.
struct Expected<'a> {
    contents: Contents,
    /// Inputs for which a letter in doubt stands.
    doubtful: Vec<&'a Input>,
    findings: Vec<Finding>,
}

fn expected_after<'a>(terms: Terms, stem: &'a WrittenStem, count: usize, found: &Found) -> Expected<'a> {
    let mut contents = contents_after(terms.shape, stem, count);
    let doubtful = doubt::doubtful(terms.doubt, stem.records.iter().take(count), &found.letters);
    let findings = doubt::excuse(terms.shape, terms.place, &mut contents, found, &doubtful);
    Expected { contents, doubtful, findings }
}

fn contents_after(shape: Shape, stem: &WrittenStem, count: usize) -> Contents {
    let mut contents = Contents::new();
    for row in stem.records.iter().take(count).flat_map(Input::rows) {
        shape.apply(&mut contents, row);
    }
    contents.retain(|_, row| shape.is_alive(row));
    contents
}

fn dead_lines(stem: &WrittenStem, count: usize) -> impl Iterator<Item = &str> {
    let dead = stem.records.iter().take(count).filter(|record| record.fate == Fate::Dead);
    dead.map(|record| record.line.as_str())
}

/// How many inputs of a stem its lanes count as read. A stem is known in a lane's name; one stem alone has all lanes.
fn counted_for(stem: &WrittenStem, stems: usize, ledgers: &[LaneLedger]) -> u64 {
    let name = stem.name.as_str();
    let belongs = |lane: &str| {
        let last = lane.rsplit('/').next().unwrap_or_default();
        let rest = last.strip_prefix(name);
        stems == 1
            || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['#', '.', '-']))
            || name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")) == Some(last)
    };
    ledgers.iter().filter(|ledger| belongs(&ledger.lane)).map(LaneLedger::read).sum()
}

/// How many records of a stem have landed: as many as the ledger says. Where rows and ledger are two commits, rows may be
/// ahead of it.
fn landed(terms: Terms, stem: &WrittenStem, rows: &[Row], read: u64, found: &Found) -> usize {
    let read = usize::try_from(read).unwrap_or(usize::MAX).min(stem.records.len());
    if terms.place == Place::Sink {
        return read;
    }
    let same = |count: &usize| {
        let contents = expected_after(terms, stem, *count, found).contents;
        contents.len() == rows.len() && rows.iter().all(|row| contents.values().any(|wanted| wanted == row))
    };
    (read..=stem.records.len()).find(same).unwrap_or(read)
}

/// The ledger against the number of records.
fn judge_counts(number: usize, stem: &WrittenStem, read: u64, extent: Extent) -> Vec<Finding> {
    let written = stem.records.len() as u64;
    match extent {
        Extent::Everything if read != written => {
            vec![Finding::new(Anomaly::Ledger, format!("{}: {read} counted as read, {written} written", stem.name))]
        }
        Extent::Beginning { deliverable: Some((spoiled, most)) } if spoiled == number && read > most as u64 => {
            let text = format!("{}: {read} counted as read, only {most} could be before its files changed", stem.name);
            vec![Finding::new(Anomaly::Phantom, text)]
        }
        Extent::Everything | Extent::Beginning { .. } => Vec::new(),
    }
}

/// Rows of no stem at all.
fn strangers(stems: usize, found: &[Row]) -> Option<Finding> {
    let strange: Vec<i64> = found.iter().filter(|row| WrittenStems::stem_of(row) >= stems).map(|row| row.n).collect();
    (!strange.is_empty()).then(|| Finding::new(Anomaly::Phantom, format!("rows of no file: {strange:?}")))
}

/// Every input that is counted as dead has its letter.
fn judge_dead(ledgers: &[LaneLedger], letters: &[LetterRow]) -> Option<Finding> {
    let dead: u64 = ledgers.iter().map(|ledger| ledger.totals[3]).sum();
    let text = format!("{dead} inputs are counted as dead, there are {} letters", letters.len());
    (dead != letters.len() as u64).then(|| Finding::new(Anomaly::Ledger, text))
}

/// `hapax reconcile` must be content where the judge is, and must not be where rows are lost, doubled or wrong.
///
/// # Errors
/// If it does not end.
pub fn compare_with_reconcile(world: &mut SourceWorld) -> anyhow::Result<()> {
    let (exit, said) = world.run("reconcile", &["reconcile", WORKFLOW])?;
    let broken = |finding: &Finding| {
        matches!(finding.anomaly, Anomaly::Lost | Anomaly::Doubled | Anomaly::Phantom | Anomaly::WrongState)
    };
    let judged: Vec<&Finding> = world.findings.iter().chain(&world.allowed).collect();
    if exit == Exit::Code(0) && world.findings.iter().any(broken) {
        world.accuse(Anomaly::Conduct, "reconcile is content");
    } else if exit != Exit::Code(0) && judged.is_empty() {
        let words: Vec<&str> =
            said.lines().filter(|line| line.contains("DIFFERS") || line.contains("differ")).collect();
        world.accuse(
            Anomaly::Conduct,
            format!("reconcile ended with {exit} and nothing is wrong: {}", words.join(" | ")),
        );
    }
    Ok(())
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
