//! `hapax reconcile`: does it add up? Books against themselves, then the target against the log.

mod chain;
mod counted;
mod doubts;
mod keyed;

use std::fmt;

use hapax_engine::books::Books as _;
use hapax_engine::letters::LetterChoice;
use hapax_engine::rows::RowReader as _;
use hapax_model::contract::TARGET;
use hapax_model::letter::IN_DOUBT;
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::position::DeliveryId;
use serde_json::{Value, json};

use self::chain::{Check, Outcome};
use self::doubts::Difference;
use super::super::{load, print_json};
use super::subject::{Subject, subjects};
use crate::assemble::{AnyBooks, AnyRows, Place, Purpose, why_not_looked_at};
use crate::cli::{LookChoice, ReconcileArgs, Shared};
use crate::exit::Failure;

/// How often the books are read again if a worker moves them while they are read.
const TRIES: u32 = 5;

/// What the deliveries share, so that each is opened and asked once: many lanes have one table and one set of books.
#[derive(Default)]
struct Opened {
    books: Vec<(Place, AnyBooks)>,
    /// The rows of the table of this workflow and sink.
    rows: Option<(Whose, AnyRows)>,
    /// What counting came to, for the deliveries of this workflow and sink into this target.
    counted: Option<(Whose, String, Check)>,
    /// Which delivery it is, of how many: for the progress bar.
    turn: String,
}

/// A workflow and a sink.
type Whose = (String, String);

impl Opened {
    /// The books of a delivery, if they are there yet.
    async fn books(&mut self, subject: &Subject<'_>) -> Result<Option<&mut AnyBooks>, Failure> {
        let Some(place) = subject.place() else { return Ok(None) };
        if self.books.iter().all(|(known, _)| *known != place) {
            match AnyBooks::open(&place, Purpose::Look).await? {
                Some(books) => self.books.push((place.clone(), books)),
                None => return Ok(None),
            }
        }
        Ok(self.books.iter_mut().find(|(known, _)| *known == place).map(|(_, books)| books))
    }

    /// The rows of its table.
    async fn open_rows(&mut self, subject: &Subject<'_>) -> Result<(), Failure> {
        let whose = whose(subject);
        if self.rows.as_ref().is_none_or(|(known, _)| *known != whose) {
            self.rows = None;
            self.rows = Some((whose, subject.rows().await?));
        }
        Ok(())
    }
}

fn whose(subject: &Subject<'_>) -> Whose {
    (subject.id.workflow.clone(), subject.id.sink.clone())
}

/// What came of one delivery.
struct Report {
    id: DeliveryId,
    checks: Vec<Check>,
    difference: Option<Difference>,
}

/// Compares everything.
pub(crate) async fn reconcile(args: &ReconcileArgs, shared: &Shared) -> Result<u8, Failure> {
    let mut loaded = load(shared)?;
    crate::assemble::find_files(&mut loaded.config).await;
    let choice = LookChoice { workflow: args.workflow.clone(), sink: args.sink.clone(), lane: args.lane.clone() };
    let subjects = subjects(&loaded.config, &choice)?;
    let (mut reports, mut opened) = (Vec::new(), Opened::default());
    for (n, subject) in (1..).zip(&subjects) {
        if subjects.len() > 1 {
            opened.turn = format!("delivery {n} of {}: ", subjects.len());
        }
        reports.push(Report::of(subject, &mut opened, args, shared).await?);
    }
    if shared.json {
        print_json(&json!({"deliveries": reports.iter().map(Report::as_json).collect::<Vec<_>>()}));
    } else {
        reports.iter().for_each(|report| print!("{report}"));
    }
    Ok(u8::from(reports.iter().any(|report| !report.adds_up())))
}

impl Report {
    async fn of(
        subject: &Subject<'_>,
        opened: &mut Opened,
        args: &ReconcileArgs,
        shared: &Shared,
    ) -> Result<Self, Failure> {
        let mut report = Self { id: subject.id.clone(), checks: Vec::new(), difference: None };
        let Some(books) = opened.books(subject).await? else {
            report.checks.push(Check::not_compared("ledger", "nothing was ever delivered"));
            return Ok(report);
        };
        if let Some(target) = report.compare_books(subject, books).await? {
            report.compare_target(subject, opened, &target, args, shared).await?;
        }
        Ok(report)
    }

    /// The books against themselves; the target that they name, if anything was delivered.
    async fn compare_books(&mut self, subject: &Subject<'_>, books: &mut AnyBooks) -> Result<Option<String>, Failure> {
        let place = subject.progress_place();
        for attempt in 1..=TRIES {
            let Some(stored) = subject.progress(books).await? else {
                self.checks.push(Check::not_compared("ledger", "nothing was ever delivered"));
                return Ok(None);
            };
            let mut log = subject.log(books).await?;
            let counts = books.letter_counts(&subject.id).await?;
            let in_doubt = letters_in_doubt(subject, books).await?;
            let after = subject.progress(books).await?.map_or(stored.progress.totals, |stored| stored.progress.totals);
            if after != stored.progress.totals && attempt < TRIES {
                continue;
            }
            log.retain(|logged| logged.epoch <= stored.progress.epoch);
            let progress = &stored.progress;
            self.checks = vec![
                chain::ledger(&progress.totals),
                chain::chain(&log, progress, place),
                chain::sum(&log, &progress.totals, place),
                chain::letters(&counts, in_doubt, progress.totals.dead..=after.dead),
            ];
            return Ok(Some(progress.contract.fact(TARGET).to_owned()));
        }
        Ok(None)
    }

    /// The target against the log.
    async fn compare_target(
        &mut self,
        subject: &Subject<'_>,
        opened: &mut Opened,
        target: &str,
        args: &ReconcileArgs,
        shared: &Shared,
    ) -> Result<(), Failure> {
        if let Err(failure) = opened.open_rows(subject).await {
            self.checks.push(Check::not_compared("target", format!("{}: {failure}", why_not_looked_at(&failure))));
            return Ok(());
        }
        let turn = opened.turn.clone();
        let Some((_, rows)) = &mut opened.rows else { return Ok(()) };
        let place = subject.place();
        let books = opened.books.iter_mut().find(|(known, _)| Some(known) == place.as_ref());
        let Some((_, books)) = books else { return Ok(()) };
        let check = match rows.shape().mode {
            ConflictMode::Append => match &opened.counted {
                Some((known, of, check)) if *known == whose(subject) && of == target => check.clone(),
                Some(_) | None => {
                    let check = counted::compare(subject, books, rows, args.shared_table).await?;
                    opened.counted = Some((whose(subject), target.to_owned(), check.clone()));
                    check
                }
            },
            ConflictMode::Ignore | ConflictMode::Update | ConflictMode::Newer => {
                let inputs = if args.deep { u64::MAX } else { args.sample };
                let bar = |total| super::bar(total, shared).with_message(turn.clone());
                let compared = keyed::compare(subject, books, rows, inputs, bar).await?;
                self.difference = compared.difference;
                compared.check
            }
        };
        self.checks.push(check);
        Ok(())
    }

    fn adds_up(&self) -> bool {
        self.checks.iter().all(|check| check.outcome != Outcome::Differs)
    }

    fn as_json(&self) -> Value {
        let check = |check: &Check| {
            let outcome = match check.outcome {
                Outcome::Agrees | Outcome::HoldsMore => "agrees",
                Outcome::Differs => "differs",
                Outcome::NotCompared => "notCompared",
            };
            json!({"check": check.name, "outcome": outcome, "text": check.text})
        };
        json!({
            "workflow": self.id.workflow, "sink": self.id.sink, "lane": self.id.lane, "addsUp": self.adds_up(),
            "checks": self.checks.iter().map(check).collect::<Vec<_>>(),
            "firstDifference": self.difference.as_ref().map(Difference::as_json),
        })
    }
}

/// How many of the letters that wait may have been delivered. Where progress is beside the rows none was: it would say so.
async fn letters_in_doubt(subject: &Subject<'_>, books: &mut AnyBooks) -> Result<u64, Failure> {
    if subject.progress_place() == ProgressPlace::Sink {
        return Ok(0);
    }
    let DeliveryId { workflow, sink, lane } = subject.id.clone();
    let own = LetterChoice { workflow: Some(workflow), sink: Some(sink), lane: Some(lane), ..LetterChoice::default() };
    let causes = books.causes(&own, 0).await?;
    Ok(causes.iter().filter(|cause| cause.code == IN_DOUBT).map(|cause| cause.count).sum())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.id)?;
        for check in &self.checks {
            let word = match check.outcome {
                Outcome::Agrees => "agrees",
                Outcome::HoldsMore => "holds all",
                Outcome::Differs => "DIFFERS",
                Outcome::NotCompared => "not compared",
            };
            writeln!(f, "  {:8} {word}: {}", check.name, check.text)?;
        }
        let first = self.checks.iter().find(|check| check.outcome == Outcome::Differs);
        match first {
            Some(check) => writeln!(f, "  verdict  does not add up; the first difference is in the {}", check.name),
            None => writeln!(f, "  verdict  adds up"),
        }
    }
}
