//! `hapax test`: runs the tests of the configuration. Needs no database, no file, no server.

mod input;
mod judge;
mod memory;
mod report;
mod shape;
mod trial;

use std::time::Instant;

use hapax_model::delivery::Guarantee;

use self::judge::{KeysAcross, judge};
use self::report::Report;
use self::trial::Trial;
use super::{load, print_json};
use crate::assemble::parts;
use crate::cli::{Shared, TestArgs};
use crate::config::{Config, Fixture};
use crate::exit::{Failure, USAGE};

/// What to write where there is nothing to run.
const HOW: &str = "there are no tests. Write some beside the workflows; `hapax test --print` then shows what comes out:

tests:
  - name: what is tested
    workflow: WORKFLOW
    input:
      - { id: 7, amount: 12.50 }
      - 'no JSON'
    expect:
      - { id: 7, amount: 12.5 }
    rejects:
      - { code: HX2001 }";

/// Runs the tests.
pub(crate) async fn test(args: &TestArgs, shared: &Shared) -> Result<u8, Failure> {
    let config = load(shared)?.config;
    if config.tests.is_empty() {
        let named = config.workflows.first().map_or("orders-to-erp", |workflow| workflow.id.as_str());
        return Err(Failure::new("HX5080", HOW.replace("WORKFLOW", named)).with_exit(USAGE));
    }
    refuse_unknown(&config, &args.only)?;
    let (args, json) = (args.clone(), shared.json);
    // Every worker of a test has a runtime of its own, which needs a thread that drives no other.
    let ran = tokio::task::spawn_blocking(move || run_all(&config, &args, json)).await;
    ran.map_err(|error| Failure::new("HX5009", format!("a test broke off: {error}")))?
}

/// Each test in turn, told as soon as it is done.
fn run_all(config: &Config, args: &TestArgs, json: bool) -> Result<u8, Failure> {
    let mut reports = Vec::new();
    for (at, fixture) in config.tests.iter().enumerate() {
        let name = name_of(config, at);
        if !args.only.is_empty() && !chosen(fixture, &name, &args.only) {
            continue;
        }
        for report in run_fixture(config, fixture, &name)? {
            if !json {
                print!("{}", report.text(args.print));
            }
            reports.push(report);
        }
    }
    let failed = reports.iter().filter(|report| !report.passed()).count();
    if json {
        print_json(&report::as_json(&reports));
    } else {
        println!("{}", report::summary(&reports));
    }
    Ok(u8::from(failed > 0))
}

/// The test, once for each sink that it is about.
fn run_fixture(config: &Config, fixture: &Fixture, name: &str) -> Result<Vec<Report>, Failure> {
    let about = |sink: &str| fixture.sink.as_ref().is_none_or(|wanted| wanted == sink);
    let chosen: Vec<_> =
        parts(config).filter(|part| part.workflow.id == fixture.workflow && about(&part.sink.name)).collect();
    if chosen.is_empty() {
        let lacking = config.workflows.iter().find(|it| it.id == fixture.workflow).and_then(|it| it.incomplete());
        let message = format!(
            "{}: workflow \"{}\" is incomplete, it lacks {}; a test needs to know how it reads and writes",
            fixture.place,
            fixture.workflow,
            lacking.unwrap_or("a sink")
        );
        return Err(Failure::new("HX5001", message).with_exit(USAGE));
    }
    let several = chosen.len() > 1;
    let report = |part: crate::assemble::Part<'_>| {
        let began = Instant::now();
        let trial = Trial::new(config, part, fixture);
        let runs = trial.run();
        let bears_epoch = part.workflow.delivery.guarantee == Guarantee::ExactlyOnce && trial.keys_hold_epoch();
        let keys = if bears_epoch { KeysAcross::HoldEpoch } else { KeysAcross::Same };
        let failures = judge(fixture, &runs, keys);
        let name = if several { format!("{name} [{}]", part.sink.name) } else { name.to_owned() };
        Report::new(fixture, &trial, name, runs, failures, keys, began.elapsed())
    };
    Ok(chosen.into_iter().map(report).collect())
}

/// What a test is called: its name, or its number among those of its workflow.
fn name_of(config: &Config, at: usize) -> String {
    let fixture = &config.tests[at];
    match &fixture.name {
        Some(name) => name.clone(),
        None => {
            let number = config.tests[..=at].iter().filter(|other| other.workflow == fixture.workflow).count();
            format!("test {number}")
        }
    }
}

fn chosen(fixture: &Fixture, name: &str, only: &[String]) -> bool {
    only.iter().any(|wanted| *wanted == fixture.workflow || wanted == name)
}

/// `--only` names workflows and tests that are there.
fn refuse_unknown(config: &Config, only: &[String]) -> Result<(), Failure> {
    let names: Vec<String> = (0..config.tests.len()).map(|at| name_of(config, at)).collect();
    for wanted in only {
        let known =
            config.tests.iter().zip(&names).any(|(fixture, name)| chosen(fixture, name, std::slice::from_ref(wanted)));
        if !known {
            let message = format!("no test is about \"{wanted}\"; there are {}", names.join(", "));
            return Err(Failure::new("HX5081", message).with_exit(USAGE));
        }
    }
    Ok(())
}
