//! How a test ended, for people and for programs.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::judge::{Failure, KeysAcross, split};
use super::memory::Kept;
use super::shape::shown;
use super::trial::{Ran, Trial};
use crate::config::Fixture;

/// How a test of one sink ended.
pub(super) struct Report {
    name: String,
    workflow: String,
    sink: String,
    place: String,
    inputs: usize,
    /// What the plain run gave; none if it stopped.
    kept: Option<Kept>,
    runs: usize,
    failures: Vec<Failure>,
    keys: KeysAcross,
    took: Duration,
}

impl Report {
    pub(super) fn new(
        fixture: &Fixture,
        trial: &Trial<'_>,
        name: String,
        runs: Vec<Ran>,
        failures: Vec<Failure>,
        keys: KeysAcross,
        took: Duration,
    ) -> Self {
        let count = runs.len();
        Self {
            name,
            workflow: trial.part().workflow.id.clone(),
            sink: trial.part().sink.name.clone(),
            place: fixture.place.to_string(),
            inputs: trial.inputs(),
            kept: runs.into_iter().next().and_then(|plain| plain.result.ok()),
            runs: count,
            failures,
            keys,
            took,
        }
    }

    pub(super) const fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// For people: a line, what differs, and, if wanted, what came out.
    pub(super) fn text(&self, print: bool) -> String {
        let mark = if self.passed() { '✓' } else { '✗' };
        let took = self.took.as_millis();
        let mut text = format!(
            "{mark} {}: {} ({} inputs, {} runs, {took} ms)\n",
            self.workflow, self.name, self.inputs, self.runs
        );
        if !self.passed() {
            writeln!(text, "  {}", self.place).expect("a string takes all");
        }
        for failure in &self.failures {
            let way = if failure.way.starts_with("all in one batch") && !failure.way.contains(',') {
                String::new()
            } else {
                format!(" ({})", failure.way)
            };
            writeln!(text, "  {}{way}", failure.what).expect("a string takes all");
            if !(failure.expected.is_empty() && failure.got.is_empty()) {
                write!(text, "    expected {}\n    got      {}\n", failure.expected, failure.got)
                    .expect("a string takes all");
            }
        }
        if self.keys == KeysAcross::HoldEpoch {
            text.push_str("  note: the keys hold the epoch, so they are not compared between batch sizes\n");
        }
        if print {
            text.push_str(&self.printed());
        }
        text
    }

    /// What came out, as it would stand in the test.
    fn printed(&self) -> String {
        let Some(kept) = &self.kept else { return String::new() };
        let (upserts, deletes) = split(&kept.outputs);
        let mut text = String::new();
        for (name, outputs) in [("expect", upserts), ("deletes", deletes)] {
            if !outputs.is_empty() {
                writeln!(text, "    {name}:").expect("a string takes all");
            }
            for output in outputs {
                writeln!(text, "      - {}", shown(&output.fields)).expect("a string takes all");
            }
        }
        if !kept.letters.is_empty() {
            text.push_str("    rejects:\n");
        }
        for dead in &kept.letters {
            let says = Value::from(dead.message.as_str());
            writeln!(text, "      - {{ input: {}, code: {}, says: {says} }}", dead.input, dead.code)
                .expect("a string takes all");
        }
        let keys: Vec<&str> = kept.outputs.iter().filter_map(|output| output.key.as_deref()).collect();
        if !keys.is_empty() && keys.len() == kept.outputs.len() {
            writeln!(text, "    keys: [{}]", keys.join(", ")).expect("a string takes all");
        }
        text
    }

    fn as_json(&self) -> Value {
        let failures: Vec<Value> = self
            .failures
            .iter()
            .map(|it| json!({"run": it.way, "what": it.what, "expected": it.expected, "got": it.got}))
            .collect();
        let outputs = self.kept.as_ref().map(|kept| {
            let one = |output: &super::memory::Output| {
                let event: Value = serde_json::from_str(&shown(&output.fields)).unwrap_or_default();
                json!({"input": output.input, "operation": format!("{:?}", output.operation).to_lowercase(),
                    "event": event, "key": output.key})
            };
            kept.outputs.iter().map(one).collect::<Vec<_>>()
        });
        let letters = self.kept.as_ref().map(|kept| {
            let one =
                |dead: &super::memory::Dead| json!({"input": dead.input, "code": dead.code, "message": dead.message});
            kept.letters.iter().map(one).collect::<Vec<_>>()
        });
        json!({
            "name": self.name, "workflow": self.workflow, "sink": self.sink, "place": self.place, "passed": self.passed(),
            "inputs": self.inputs, "runs": self.runs, "filtered": self.kept.as_ref().map(|kept| kept.totals.filtered),
            "milliseconds": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX), "failures": failures,
            "outputs": outputs, "rejects": letters,
        })
    }
}

/// The last line.
pub(super) fn summary(reports: &[Report]) -> String {
    let failed = reports.iter().filter(|report| !report.passed()).count();
    let took: Duration = reports.iter().map(|report| report.took).sum();
    let (tests, took) = (reports.len(), took.as_millis());
    match failed {
        0 => format!("{tests} passed, {took} ms"),
        _ => format!("{failed} of {tests} failed, {took} ms"),
    }
}

/// For programs.
pub(super) fn as_json(reports: &[Report]) -> Value {
    let failed = reports.iter().filter(|report| !report.passed()).count();
    let tests: Vec<Value> = reports.iter().map(Report::as_json).collect();
    json!({"tests": tests, "passed": reports.len() - failed, "failed": failed})
}
