//! `hapax reconcile`: does it add up? Books against themselves, then the target against the log.

mod chain;
mod counted;
mod doubts;
mod keyed;

use std::fmt;

use hapax_engine::books::Books as _;
use hapax_engine::rows::RowReader as _;
use hapax_model::mode::ConflictMode;
use hapax_model::position::DeliveryId;
use serde_json::{Value, json};

use self::chain::{Check, Outcome};
use self::doubts::Difference;
use super::super::{load, print_json};
use super::subject::{Subject, subjects};
use crate::assemble::AnyBooks;
use crate::cli::{LookChoice, ReconcileArgs, Shared};
use crate::exit::Failure;

/// How often the books are read again if a worker moves them while they are read.
const TRIES: u32 = 5;

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
    let mut reports = Vec::new();
    for subject in subjects(&loaded.config, &choice)? {
        reports.push(Report::of(&subject, args, shared).await?);
    }
    if shared.json {
        print_json(&json!({"deliveries": reports.iter().map(Report::as_json).collect::<Vec<_>>()}));
    } else {
        reports.iter().for_each(|report| print!("{report}"));
    }
    Ok(u8::from(reports.iter().any(|report| !report.adds_up())))
}

impl Report {
    async fn of(subject: &Subject<'_>, args: &ReconcileArgs, shared: &Shared) -> Result<Self, Failure> {
        let mut report = Self { id: subject.id.clone(), checks: Vec::new(), difference: None };
        let Some(mut books) = subject.books().await? else {
            report.checks.push(Check::not_compared("ledger", "nothing was ever delivered"));
            return Ok(report);
        };
        report.compare_books(subject, &mut books).await?;
        if report.checks.len() > 1 {
            report.compare_target(subject, &mut books, args, shared).await?;
        }
        Ok(report)
    }

    /// The books against themselves.
    async fn compare_books(&mut self, subject: &Subject<'_>, books: &mut AnyBooks) -> Result<(), Failure> {
        let place = subject.progress_place();
        for attempt in 1..=TRIES {
            let Some(stored) = subject.progress(books).await? else {
                self.checks.push(Check::not_compared("ledger", "nothing was ever delivered"));
                return Ok(());
            };
            let mut log = subject.log(books).await?;
            let counts = books.letter_counts(&subject.id).await?;
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
                chain::letters(&counts, progress.totals.dead..=after.dead),
            ];
            break;
        }
        Ok(())
    }

    /// The target against the log.
    async fn compare_target(
        &mut self,
        subject: &Subject<'_>,
        books: &mut AnyBooks,
        args: &ReconcileArgs,
        shared: &Shared,
    ) -> Result<(), Failure> {
        let rows = match subject.rows().await {
            Ok(rows) => rows,
            Err(failure) => {
                self.checks.push(Check::not_compared("target", format!("it cannot be read: {failure}")));
                return Ok(());
            }
        };
        let check = match rows.shape().mode {
            ConflictMode::Append => counted::compare(subject, books, rows, args.shared_table).await?,
            ConflictMode::Ignore | ConflictMode::Update | ConflictMode::Newer => {
                let inputs = if args.deep { u64::MAX } else { args.sample };
                let compared = keyed::compare(subject, books, rows, inputs, shared).await?;
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
                Outcome::Agrees => "agrees",
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.id)?;
        for check in &self.checks {
            let word = match check.outcome {
                Outcome::Agrees => "agrees",
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
