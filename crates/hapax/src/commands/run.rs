//! `hapax run`: starts every delivery, waits, and ends with the highest code.

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_engine::backoff::Backoff;
use hapax_engine::books::Books as _;
use hapax_engine::memory::MemoryBudget;
use hapax_engine::runtime::{Control, DeliveryEnd, Meter, Reading, Stop, deliver};
use hapax_engine::source::Follow;
use hapax_engine::state::{DeliveryNote, StateStore as _, TakeOver};
use hapax_model::audit::Audit;
use hapax_model::position::DeliveryId;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use super::{known_workflow, load, print_json};
use crate::assemble::{AnyBooks, AnyState, How, Part, lanes};
use crate::cli::{RunArgs, Shared};
use crate::config::Config;
use crate::exit::{Failure, USAGE};

/// Delivers.
pub(crate) async fn run(args: &RunArgs, shared: &Shared) -> Result<u8, Failure> {
    let loaded = load(shared)?;
    let config = Arc::new(loaded.config);
    let chosen = chosen_parts(&config, &args.only)?;
    refuse_endless(args, &chosen)?;
    #[cfg(feature = "postgres")]
    crate::assemble::make_pools(&config);
    let state = AnyState::open(&config).await?;
    let how = How::new(
        &config,
        if args.once { Follow::No } else { Follow::Yes },
        if args.take_over { TakeOver::Now } else { TakeOver::Never },
    );
    let (stop, stopped) = watch::channel(false);
    let memory = MemoryBudget::new(config.memory.as_usize());
    let mut fleet = Fleet::default();
    for id in chosen.iter().map(Part::id) {
        let start = Start { config: Arc::clone(&config), id, state: state.clone(), how: how.clone() };
        fleet.start(start, &stopped, &memory);
    }
    let signals = tokio::spawn(stop_on_signals(stop));
    let bar = (args.once && !shared.json && std::io::stderr().is_terminal())
        .then(|| tokio::spawn(show_progress(fleet.meters().collect())));
    let code = fleet.wait().await;
    signals.abort();
    if let Some(bar) = bar {
        bar.abort();
    }
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
    let chosen: Vec<_> = lanes(config).filter(|part| only.is_empty() || only.contains(&part.workflow.id)).collect();
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

/// All deliveries of this process.
#[derive(Default)]
struct Fleet {
    tasks: JoinSet<DeliveryEnd>,
    ids: HashMap<Id, DeliveryId>,
    meters: Vec<(DeliveryId, Arc<Meter>)>,
    ended: Vec<(DeliveryId, DeliveryEnd)>,
}

impl Fleet {
    /// Starts one delivery; one that cannot start leaves the others running.
    fn start(&mut self, start: Start, stopped: &watch::Receiver<bool>, memory: &Arc<MemoryBudget>) {
        let (id, meter) = (start.id.clone(), Arc::new(Meter::default()));
        self.meters.push((id.clone(), Arc::clone(&meter)));
        let control = Control { stop: stopped.clone(), memory: Arc::clone(memory), meter };
        let task = self.tasks.spawn(start.run(control));
        self.ids.insert(task.id(), id);
    }

    /// Waits until none is left running; returns the highest code.
    async fn wait(&mut self) -> u8 {
        while let Some(joined) = self.tasks.join_next_with_id().await {
            match joined {
                Ok((task, end)) => {
                    let id = self.ids.remove(&task).expect("every task has its delivery");
                    self.end(id, end);
                }
                Err(error) => {
                    let id = self.ids.remove(&error.id()).expect("every task has its delivery");
                    let message = format!("a bug in Hapax ended this delivery: {error}");
                    self.end(id, DeliveryEnd::Stopped(Stop { exit_code: 1, code: "HX5009", message }));
                }
            }
        }
        self.ended.iter().map(|(_, end)| exit_code(end)).max().unwrap_or(0)
    }

    fn end(&mut self, id: DeliveryId, end: DeliveryEnd) {
        let sum = self.sum(&id);
        match &end {
            DeliveryEnd::Finished => tracing::info!(delivery = %id, "finished: {sum}"),
            DeliveryEnd::Drained => tracing::info!(delivery = %id, "drained: {sum}"),
            DeliveryEnd::Stopped(stop) => {
                tracing::error!(delivery = %id, code = stop.code, exit_code = stop.exit_code, "{}", stop.message);
            }
        }
        self.ended.push((id, end));
    }

    /// What this delivery has done in all its runs, for people.
    fn sum(&self, id: &DeliveryId) -> String {
        let totals =
            self.meters.iter().find(|(of, _)| of == id).map(|(_, m)| m.read().ledger.totals).unwrap_or_default();
        let hint = if totals.dead == 0 { "" } else { "; `hapax dlq list` says why" };
        format!("{} read, {} delivered, {} dead in all{hint}", totals.read, totals.delivered, totals.dead)
    }

    fn meters(&self) -> impl Iterator<Item = Arc<Meter>> {
        self.meters.iter().map(|(_, meter)| Arc::clone(meter))
    }

    fn as_json(&self) -> serde_json::Value {
        let one = |(id, meter): &(DeliveryId, Arc<Meter>)| {
            let Reading { ledger, epoch, written, commits, in_doubt, retries, unknown_fields, .. } = meter.read();
            let unknown: serde_json::Map<_, _> =
                unknown_fields.into_iter().map(|(field, n)| (field, json!(n))).collect();
            let end = self.ended.iter().find(|(ended, _)| ended == id).map(|(_, end)| end);
            let (word, stop) = match end {
                Some(DeliveryEnd::Finished) => ("finished", None),
                Some(DeliveryEnd::Drained) | None => ("drained", None),
                Some(DeliveryEnd::Stopped(stop)) => ("stopped", Some(stop)),
            };
            json!({
                "workflow": id.workflow, "sink": id.sink, "lane": id.lane, "end": word,
                "stop": stop.map(|s| json!({"exitCode": s.exit_code, "code": s.code, "message": s.message})),
                "read": ledger.totals.read, "delivered": ledger.totals.delivered, "filtered": ledger.totals.filtered,
                "dead": ledger.totals.dead, "rows": ledger.totals.rows, "epoch": epoch, "commits": commits,
                "inserts": written.inserts, "updates": written.updates, "inDoubt": in_doubt, "retries": retries, "unknownFields": unknown,
            })
        };
        json!({"deliveries": self.meters.iter().map(one).collect::<Vec<_>>()})
    }
}

fn exit_code(end: &DeliveryEnd) -> u8 {
    match end {
        DeliveryEnd::Finished | DeliveryEnd::Drained => 0,
        DeliveryEnd::Stopped(stop) => stop.exit_code,
    }
}

/// All that a delivery needs to start by itself.
struct Start {
    config: Arc<Config>,
    id: DeliveryId,
    state: Option<AnyState>,
    how: How,
}

type Ready = hapax_engine::runtime::Delivery<crate::assemble::AnySource, crate::assemble::AnySink, AnyState>;

impl Start {
    async fn run(self, control: Control) -> DeliveryEnd {
        match Box::pin(self.ready(&control)).await {
            Ok(Some(delivery)) => deliver(delivery, control).await,
            Ok(None) => DeliveryEnd::Drained,
            Err(stop) => {
                self.note_refusal(&stop).await;
                DeliveryEnd::Stopped(stop)
            }
        }
    }

    /// Prepares, again and again while the target is away. `None`: the process was asked to end first.
    async fn ready(&self, control: &Control) -> Result<Option<Ready>, Stop> {
        let part =
            lanes(&self.config).find(|part| part.id() == self.id).expect("the id is one of this configuration's");
        let retries = &part.workflow.delivery.retries;
        let mut backoff = Backoff::new(retries);
        let mut stopped = control.stop.clone();
        loop {
            let failure = match self.prepare(&part).await {
                Ok(ready) => return Ok(Some(ready)),
                Err(failure) => failure,
            };
            // Who asks for what is there now is told soon; who follows may wait for the target.
            let told = self.how.follow == Follow::No && backoff.attempts() + 1 >= retries.max_attempts;
            let wait = if failure.may_pass && part.is_remote() {
                backoff.failed(Instant::now(), fastrand::f64())
            } else {
                None
            };
            let Some(wait) = wait.filter(|_| !told) else { return Err(failure.into()) };
            control.meter.waits_to_start();
            tracing::warn!(delivery = %self.id, code = failure.code, error = failure.message, attempt = backoff.attempts(),
                wait_ms = wait.as_millis(), "cannot start yet; trying again");
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = stopped.wait_for(|stop| *stop) => return Ok(None),
            }
        }
    }

    /// Judges the guarantee, reads the live table, judges again with what it says, puts everything together.
    async fn prepare(&self, part: &Part<'_>) -> Result<Ready, Failure> {
        // A promise that cannot be kept is refused as `check` refuses it, whatever the table is like.
        if !part.table_decides_mode() {
            may_start(&part.audit(None))?;
        }
        let live = part.live().await?;
        let audit = part.audit(Some(&live));
        may_start(&audit)?;
        self.refuse_other_lanes(part).await?;
        if part.lane == 0 {
            audit.warnings.iter().for_each(|warning| tracing::warn!(workflow = part.workflow.id, "{warning}"));
        }
        part.delivery(&live, self.state.as_ref(), &self.how)
    }

    /// A stream that was delivered in another number of lanes would be delivered again from its beginning.
    async fn refuse_other_lanes(&self, part: &Part<'_>) -> Result<(), Failure> {
        let crate::config::Source::Generate(_) = part.source else { return Ok(()) };
        let Some(mut books) = AnyBooks::of_part(part, &self.config).await? else { return Ok(()) };
        let stored = books.deliveries().await?;
        let now: Vec<DeliveryId> = part.lanes().map(|lane| lane.id()).collect();
        let same_sink = |id: &DeliveryId| id.workflow == self.id.workflow && id.sink == self.id.sink;
        let other = stored.iter().find(|found| same_sink(&found.id) && !now.contains(&found.id));
        match other {
            Some(other) if stored.iter().all(|found| found.id != self.id) => {
                let message = format!(
                    "{} has delivered this stream up to position {}, and `lanes` is now {}: all of it would be delivered \
                     again. Write the earlier number of lanes; or, if that is meant, run `hapax reset {} --accept`",
                    other.id,
                    other.progress.bookmark.position,
                    part.lane_count(),
                    self.id.workflow
                );
                Err(Failure::new("HX5020", message).with_exit(5))
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn note_refusal(&self, stop: &Stop) {
        let Some(mut state) = self.state.clone() else { return };
        let note = DeliveryNote {
            state: "stopped".into(),
            exit_code: Some(stop.exit_code),
            code: Some(stop.code.into()),
            message: stop.message.clone(),
        };
        if let Err(error) = state.note(&self.id, &note).await {
            tracing::warn!(delivery = %self.id, %error, "the state store did not take the note");
        }
    }
}

fn may_start(audit: &Audit) -> Result<(), Failure> {
    audit.may_start().map_err(|refused| {
        Failure::new(refused.code, format!("{}; {}", refused.reason, refused.cure)).with_exit(refused.exit_code)
    })
}

/// The first SIGTERM or SIGINT drains; the second ends at once.
async fn stop_on_signals(stop: watch::Sender<bool>) {
    let (Ok(mut term), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        tracing::error!("signals cannot be received; end this process with SIGKILL, nothing is lost by it");
        return;
    };
    for again in [false, true] {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
        if again {
            tracing::warn!("asked twice: ending at once; nothing is lost, what was in flight is read again");
            std::process::exit(1);
        }
        tracing::info!("draining: delivering what was read, reading no more");
        stop.send_replace(true);
    }
}

/// A bar over all deliveries of `--once`.
async fn show_progress(meters: Vec<Arc<Meter>>) {
    let style = "{bar:40} {percent:>3}% {msg}";
    let bar = indicatif::ProgressBar::new(0);
    bar.set_style(indicatif::ProgressStyle::with_template(style).expect("the template is right"));
    loop {
        let readings: Vec<Reading> = meters.iter().map(|meter| meter.read()).collect();
        let extent: u64 = readings.iter().filter_map(|r| r.extent).sum();
        let done: u64 = readings
            .iter()
            .filter(|r| r.extent.is_some())
            .filter_map(|r| r.bookmark.as_ref())
            .map(|b| b.position.offset)
            .sum();
        let delivered: u64 = readings.iter().map(|r| r.ledger.totals.delivered).sum();
        let dead: u64 = readings.iter().map(|r| r.ledger.totals.dead).sum();
        bar.set_length(extent.max(done));
        bar.set_position(done);
        bar.set_message(format!("{delivered} delivered, {dead} dead"));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
