//! `hapax run`: starts every delivery, waits, and ends with the highest code.

mod bar;
mod files;
mod fleet;
pub(super) mod moved;
mod notify;
mod open_pattern;
mod pattern_lease;
mod reload;
mod signals;
#[cfg(feature = "postgres")]
mod snapshots;
mod start;
mod store;
mod watchdog;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use hapax_engine::memory::MemoryBudget;
use hapax_engine::source::Follow;
use hapax_engine::state::TakeOver;

use self::fleet::Fleet;
pub(super) use self::pattern_lease::{all_files_of, lease_of_pattern};
#[cfg(feature = "broker")]
pub(crate) use self::{
    notify::tell,
    signals::{Order, listen},
};
use super::{known_workflow, load, print_json};
use crate::assemble::{How, Part, parts};
use crate::cli::{RunArgs, Shared};
use crate::config::Config;
use crate::exit::{Failure, USAGE};
use crate::roster::{Member, Roster};

/// Delivers.
pub(crate) async fn run(args: &RunArgs, shared: &Shared) -> Result<u8, Failure> {
    // From here on a signal is heard, and does not end the process in the middle of something.
    let (orders, mut ordered) = signals::listen();
    let loaded = load(shared)?;
    let config = Arc::new(loaded.config);
    let chosen = chosen_parts(&config, &args.only)?;
    refuse_endless(args, &chosen)?;
    let memory = MemoryBudget::new(config.memory.as_usize());
    let roster = Roster::new(&memory, config.memory.as_usize() as u64);
    let counting = roster.process.descriptors.watch();
    // The port first: a process that should be watched does not run unwatched.
    let server = config.http.as_ref().map(|http| crate::serve::serve(http, Arc::new(roster.clone()))).transpose()?;
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    crate::assemble::make_pools(&config);
    // Who asks before the state store answers is told what is about to start.
    for part in chosen {
        let pattern = part.pattern_id().into_iter();
        for id in pattern.chain(part.lanes().map(|lane| lane.id())) {
            roster.add(Member { id, meter: Arc::default(), commit_timeout: Duration::ZERO });
        }
    }
    let follow = if args.once { Follow::No } else { Follow::Yes };
    let store::Opened::State(state) = store::open(&config, follow, &mut ordered).await? else { return Ok(0) };
    let how = How::new(&config, follow, if args.take_over { TakeOver::Now } else { TakeOver::Never });
    let mut fleet = Fleet::new(Arc::clone(&config), state, how, roster.clone(), memory, shared.config.clone());
    #[cfg(feature = "http")]
    let alerts = crate::alert::start(fleet.config(), roster.clone())?;
    #[cfg(feature = "postgres")]
    let snapshots = snapshots::watch(roster.clone());
    fleet.start_all(&args.only);
    notify::tell("READY=1");
    let bar = (args.once && !shared.json && std::io::stderr().is_terminal()).then(|| bar::Bar::show(roster.clone()));
    let code = fleet.wait(&mut ordered).await;
    orders.abort();
    counting.abort();
    #[cfg(feature = "postgres")]
    snapshots.abort();
    if let Some(bar) = bar {
        bar.clear();
    }
    #[cfg(feature = "http")]
    if let Some(alerts) = alerts {
        alerts.finish().await;
    }
    drop(server);
    if shared.json {
        print_json(&fleet.as_json());
    }
    Ok(code)
}

/// The parts that `--only` chooses, or all.
fn chosen_parts<'a>(config: &'a Config, only: &[String]) -> Result<Vec<Part<'a>>, Failure> {
    let usage = |message: String| Failure::new("HX5001", message).with_exit(USAGE);
    for id in only {
        if let Some(lacking) = known_workflow(config, id)?.incomplete() {
            return Err(usage(format!("workflow \"{id}\" is incomplete: it lacks {lacking}")));
        }
    }
    for workflow in &config.workflows {
        if let Some(lacking) = workflow.incomplete() {
            tracing::warn!(workflow = workflow.id, "incomplete and not started: it lacks {lacking}");
        }
    }
    let chosen: Vec<_> = parts(config).filter(|part| only.is_empty() || only.contains(&part.workflow.id)).collect();
    if chosen.is_empty() {
        return Err(usage("no workflow is complete: each needs a source and a sink".into()));
    }
    Ok(chosen)
}

/// `--once` on a generator without a count would never end.
fn refuse_endless(args: &RunArgs, chosen: &[Part<'_>]) -> Result<(), Failure> {
    let endless =
        |part: &&Part<'_>| matches!(part.source, crate::config::Source::Generate(generate) if generate.count.is_none());
    match chosen.iter().find(endless).filter(|_| args.once) {
        Some(part) => Err(Failure::new(
            "HX5002",
            format!(
                "workflow \"{}\" generates events without end, so --once never would: set `count`",
                part.workflow.id
            ),
        )
        .with_exit(USAGE)),
        None => Ok(()),
    }
}
