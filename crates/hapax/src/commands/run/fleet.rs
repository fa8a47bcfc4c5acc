//! All deliveries of this process: started, replaced when the configuration changes, waited for.
//!
//! Invariant: of one delivery there is never more than one at a time; a changed one is drained before its successor
//! starts. Not here: what a delivery does (the engine), which signals there are (`signals`).

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hapax_engine::memory::MemoryBudget;
use hapax_engine::runtime::{Control, DRAIN_LIMIT, DeliveryEnd, Reading, Stop};
use hapax_engine::source::Follow;
use hapax_engine::state::TakeOver;
use hapax_model::position::DeliveryId;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};

use super::files::Files;
use super::notify;
use super::reload::Changes;
use super::signals::Order;
use super::start::{SharedLook, Start};
use super::watchdog::Watchdog;
use crate::assemble::{AnyState, How, Part, lanes, parts};
use crate::config::checked::FileLane;
use crate::config::{self, Config};
use crate::exit::Failure;
use crate::roster::{Member, Roster, count};

/// How often files of patterns are looked for.
const LOOK_FOR_FILES: Duration = Duration::from_secs(1);
/// How often a process that ends says what it still waits for.
const SAY_DRAINING: Duration = Duration::from_secs(5);
/// How long after its deliveries should have ended a process ends without them.
const DRAIN_GRACE: Duration = Duration::from_secs(5);

/// All deliveries.
pub(super) struct Fleet {
    config: watch::Sender<Arc<Config>>,
    state: Option<AnyState>,
    how: How,
    roster: Roster,
    memory: Arc<MemoryBudget>,
    /// Where the configuration is read again.
    path: PathBuf,
    only: Vec<String>,
    tasks: JoinSet<DeliveryEnd>,
    running: HashMap<Id, Running>,
    ended: Vec<(DeliveryId, DeliveryEnd)>,
    /// Deliveries that start when the last of their workflow has drained.
    next: Vec<DeliveryId>,
    /// The files of patterns.
    files: Vec<Files>,
    /// Patterns of new and changed workflows whose progress is being asked for.
    looking: JoinSet<(WorkflowSink, Result<Files, Failure>)>,
    looked_for: HashSet<WorkflowSink>,
    /// What `--json` says of files that were read.
    done: Vec<serde_json::Value>,
    draining: bool,
    watchdog: Watchdog,
}

/// Names of a workflow and of one of its sinks.
type WorkflowSink = (String, String);

/// A delivery's task.
struct Running {
    id: DeliveryId,
    stop: watch::Sender<bool>,
    leaving: Leaving,
}

/// Whether the configuration still has a delivery as it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    Yes,
}

impl Fleet {
    pub(super) fn new(
        config: Arc<Config>,
        state: Option<AnyState>,
        how: How,
        roster: Roster,
        memory: Arc<MemoryBudget>,
        path: PathBuf,
    ) -> Self {
        let watchdog = Watchdog::new(roster.clone(), state.clone(), Arc::clone(&memory), config.memory.as_usize());
        Self {
            config: watch::Sender::new(config),
            state,
            how,
            roster,
            memory,
            path,
            only: Vec::new(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            ended: Vec::new(),
            next: Vec::new(),
            files: Vec::new(),
            looking: JoinSet::new(),
            looked_for: HashSet::new(),
            done: Vec::new(),
            draining: false,
            watchdog,
        }
    }

    /// The configuration that runs, as it changes.
    #[cfg(feature = "http")]
    pub(super) fn config(&self) -> watch::Receiver<Arc<Config>> {
        self.config.subscribe()
    }

    /// Starts every delivery that `only` chooses; one that cannot start leaves the others running.
    pub(super) async fn start_all(&mut self, only: &[String]) -> Result<(), Failure> {
        self.only = only.to_vec();
        for id in self.wanted() {
            self.start(id, None);
        }
        self.watch_files().await
    }

    /// Begins to look for the files of every pattern.
    async fn watch_files(&mut self) -> Result<(), Failure> {
        let config = Arc::clone(&self.config.borrow());
        let mut files = Vec::new();
        for part in parts(&config).filter(Part::has_many_files) {
            if self.only.is_empty() || self.only.contains(&part.workflow.id) {
                files.push(Files::of(&part, &config).await?);
            }
        }
        self.files = files;
        self.start_files();
        Ok(())
    }

    /// Begins to watch the patterns of workflows that are new or changed. Their databases are asked beside the loop, which
    /// must hear signals meanwhile.
    fn watch_more(&mut self, changes: &Changes) {
        // What was asked for an older configuration is asked again.
        self.looking.abort_all();
        let asked_before = std::mem::take(&mut self.looked_for);
        let config = Arc::clone(&self.config.borrow());
        for (index, part) in parts(&config).enumerate().filter(|(_, part)| part.has_many_files()) {
            let name = (part.workflow.id.clone(), part.sink.name.clone());
            let chosen = self.only.is_empty() || self.only.contains(&name.0);
            if !chosen || !(changes.touches(&name.0) || asked_before.contains(&name)) {
                continue;
            }
            self.looked_for.insert(name.clone());
            let config = Arc::clone(&config);
            self.looking.spawn(async move {
                let part = parts(&config).nth(index).expect("the configuration has not changed");
                (name, Files::of(&part, &config).await)
            });
        }
    }

    /// The files of a pattern are known, or cannot be.
    fn watch_found(&mut self, found: Result<(WorkflowSink, Result<Files, Failure>), JoinError>) {
        let Ok((name, files)) = found else { return };
        self.looked_for.remove(&name);
        match files {
            Ok(files) => self.files.push(files),
            Err(failure) => {
                tracing::error!(workflow = name.0, sink = name.1, %failure,
                    "the files of a pattern cannot be watched; reload again when that is mended");
            }
        }
    }

    /// Starts files that wait, as many as may be open.
    fn start_files(&mut self) {
        if self.draining {
            return;
        }
        let mut files = std::mem::take(&mut self.files);
        let draining =
            |workflow: &str| self.running.values().any(|r| r.id.workflow == workflow && r.leaving == Leaving::Yes);
        let ready: Vec<bool> = files.iter().map(|many| !draining(many.workflow())).collect();
        for many in files.iter_mut().zip(ready).filter(|(_, ready)| *ready).map(|(many, _)| many) {
            for (id, lane, look) in many.due() {
                self.start(id, Some((lane, look)));
            }
        }
        self.files = files;
    }

    /// All deliveries that the configuration wants here.
    fn wanted(&self) -> Vec<DeliveryId> {
        let config = self.config.borrow();
        let chosen = |workflow: &String| self.only.is_empty() || self.only.contains(workflow);
        lanes(&config).filter(|part| chosen(&part.workflow.id)).map(|part| part.id()).collect()
    }

    fn start(&mut self, id: DeliveryId, file: Option<(FileLane, SharedLook)>) {
        let config = Arc::clone(&self.config.borrow());
        let commit_timeout = config.workflows.iter().find(|workflow| workflow.id == id.workflow);
        let commit_timeout = commit_timeout.map(|workflow| workflow.delivery.epoch.commit_timeout).unwrap_or_default();
        let (stop, stopped) = watch::channel(false);
        let member = Member { id: id.clone(), meter: Arc::default(), commit_timeout };
        let control = Control { stop: stopped, memory: Arc::clone(&self.memory), meter: Arc::clone(&member.meter) };
        let transform = config.workflows.iter().find(|workflow| workflow.id == id.workflow);
        if let Some(transform) = transform.and_then(|workflow| workflow.transform.as_ref()) {
            member.meter.pulse().limit_to(transform.limit);
            self.watchdog.watch(&id, &member.meter);
        }
        self.roster.add(member);
        self.ended.retain(|(ended, _)| *ended != id);
        let start = Start { config, id: id.clone(), file, state: self.state.clone(), how: self.how.clone() };
        let task = self.tasks.spawn(start.run(control));
        self.running.insert(task.id(), Running { id, stop, leaving: Leaving::No });
    }

    /// Waits until none is left running, doing what is ordered meanwhile; returns the highest code.
    pub(super) async fn wait(&mut self, orders: &mut mpsc::Receiver<Order>) -> u8 {
        let mut look = tokio::time::interval(LOOK_FOR_FILES);
        let mut say = tokio::time::interval(SAY_DRAINING);
        let mut end_by = None;
        while !self.tasks.is_empty() || !self.looking.is_empty() || self.expects_files() {
            tokio::select! {
                Some(joined) = self.tasks.join_next_with_id() => self.joined(joined),
                Some(found) = self.looking.join_next() => self.watch_found(found),
                Some(order) = orders.recv() => match order {
                    Order::Drain => {
                        self.drain();
                        say.reset();
                        end_by = Some(tokio::time::Instant::now() + DRAIN_LIMIT + DRAIN_GRACE);
                    }
                    Order::Reload => self.reload(),
                },
                _ = look.tick(), if self.expects_files() => self.files.iter_mut().for_each(Files::look),
                _ = say.tick(), if self.draining => self.say_draining(end_by),
            }
            self.start_next();
            self.start_files();
        }
        self.ended.iter().map(|(_, end)| exit_code(end)).max().unwrap_or(0)
    }

    /// Whether files may still come, or grow.
    fn expects_files(&self) -> bool {
        !self.draining && self.how.follow == Follow::Yes && !self.files.is_empty()
    }

    fn drain(&mut self) {
        tracing::info!("draining: delivering what was read, reading no more");
        notify::tell("STOPPING=1");
        self.draining = true;
        self.watchdog.ending();
        self.next.clear();
        self.looking.abort_all();
        for running in self.running.values() {
            running.stop.send_replace(true);
        }
    }

    /// Says what is still waited for; past `end_by` waits no longer.
    fn say_draining(&mut self, end_by: Option<tokio::time::Instant>) {
        for running in self.running.values() {
            let reading = self.roster.meter(&running.id).map(|meter| meter.read()).unwrap_or_default();
            let waits_for = reading.trouble.map(|trouble| format!("{}: {}", trouble.code, trouble.message));
            let waits_for = waits_for.unwrap_or_else(|| "its commit".to_owned());
            tracing::warn!(delivery = %running.id, waits_for, in_flight = reading.ledger.in_flight,
                "still draining; a second signal ends at once, and nothing is lost by it");
        }
        if end_by.is_some_and(|end_by| tokio::time::Instant::now() >= end_by) {
            self.tasks.abort_all();
        }
    }

    fn joined(&mut self, joined: Result<(Id, DeliveryEnd), JoinError>) {
        let (task, end) = joined.unwrap_or_else(|error| {
            if error.is_cancelled() {
                let message = "asked to end, and nothing that it waited for answered: ended without. Nothing is lost";
                let stop = Stop { exit_code: 1, code: "HX5065", message: message.into() };
                return (error.id(), DeliveryEnd::Stopped(stop));
            }
            let message = format!("a bug in Hapax ended this delivery: {error}");
            (error.id(), DeliveryEnd::Stopped(Stop { exit_code: 1, code: "HX5009", message }))
        });
        let Running { id, leaving, .. } = self.running.remove(&task).expect("every task has its delivery");
        self.say_ended(&id, &end);
        let meter = self.roster.meter(&id);
        let file = self.files.iter_mut().find(|files| files.is_of(&id));
        match leaving {
            Leaving::No if file.is_some() && end == DeliveryEnd::Finished => {
                // Thousands of files that were read are counted, and not shown any more.
                if let (Some(files), Some(meter)) = (file, meter) {
                    files.finished(&id.lane, meter.read().bookmark.as_ref());
                }
                if self.how.follow == Follow::No {
                    self.done.extend(self.members_json(&id));
                }
                self.roster.remove(&id);
            }
            Leaving::No => {
                if let Some(files) = file {
                    files.stopped(&id.lane);
                }
                self.ended.push((id, end));
            }
            Leaving::Yes if self.next.contains(&id) => {}
            Leaving::Yes => self.roster.remove(&id),
        }
    }

    fn say_ended(&self, id: &DeliveryId, end: &DeliveryEnd) {
        let totals = self.roster.meter(id).map(|meter| meter.read().ledger.totals).unwrap_or_default();
        let hint = if totals.dead == 0 { "" } else { "; `hapax dlq list` says why" };
        let sum = format!("{} read, {} delivered, {} dead in all{hint}", totals.read, totals.delivered, totals.dead);
        match end {
            DeliveryEnd::Finished => tracing::info!(delivery = %id, "finished: {sum}"),
            DeliveryEnd::Drained => tracing::info!(delivery = %id, "drained: {sum}"),
            DeliveryEnd::Stopped(stop) => {
                tracing::error!(delivery = %id, code = stop.code, exit_code = stop.exit_code, "{}", stop.message);
            }
        }
    }

    /// Reads the configuration again and goes over to it, workflow by workflow. One that is wrong changes nothing.
    fn reload(&mut self) {
        if self.draining {
            return;
        }
        let loaded = match config::load(&self.path, &config::System) {
            Ok(loaded) => loaded,
            Err(problems) => {
                count(&self.roster.process.reloads_refused);
                tracing::error!("HX5061: the configuration was not taken over, the old one stays: {problems}");
                return;
            }
        };
        loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let old = Arc::clone(&self.config.borrow());
        let changes = Changes::between(&old, &loaded.config);
        if !changes.need_restart.is_empty() {
            tracing::warn!(
                "changed, and not taken over until the process is started again: {}",
                changes.need_restart.join(", ")
            );
        }
        let config = Arc::new(Changes::applied(&old, loaded.config));
        #[cfg(any(feature = "mysql", feature = "postgres"))]
        crate::assemble::make_pools(&config);
        self.how = How::new(&config, self.how.follow, TakeOver::Never);
        self.config.send_replace(config);
        self.apply(&changes);
        // What has stopped by itself is tried again, as with other sources.
        self.files.iter_mut().for_each(Files::forgive);
        // Files of workflows that changed are looked for anew, when the old ones have drained.
        self.files.retain(|files| !changes.touches(files.workflow()));
        self.watch_more(&changes);
        count(&self.roster.process.reloads_done);
        let say = |what: &[String]| if what.is_empty() { "none".to_owned() } else { what.join(", ") };
        let (added, removed, changed) = (say(&changes.added), say(&changes.removed), say(&changes.changed));
        tracing::info!(added, removed, changed, "the configuration was read again");
    }

    fn apply(&mut self, changes: &Changes) {
        let wanted = self.wanted();
        let files = &self.files;
        for running in self.running.values_mut() {
            let of_pattern = files.iter().any(|files| files.is_of(&running.id));
            let gone = !of_pattern && !wanted.contains(&running.id);
            let other = changes.touches(&running.id.workflow) || gone;
            if other && running.leaving == Leaving::No {
                running.leaving = Leaving::Yes;
                running.stop.send_replace(true);
            }
        }
        for gone in
            self.ended.extract_if(.., |(id, _)| !wanted.contains(id) && !files.iter().any(|files| files.is_of(id)))
        {
            self.roster.remove(&gone.0);
        }
        // What has stopped by itself is tried again: often that is why somebody sends the signal.
        let stays = |id: &DeliveryId| self.running.values().any(|r| r.id == *id && r.leaving == Leaving::No);
        let finished = |id: &DeliveryId| {
            let done = self.ended.iter().any(|(ended, end)| ended == id && *end == DeliveryEnd::Finished);
            done && !changes.changed.contains(&id.workflow)
        };
        self.next = wanted.into_iter().filter(|id| !stays(id) && !finished(id)).collect();
    }

    /// Starts what waits, where nothing of its workflow still drains.
    fn start_next(&mut self) {
        let draining =
            |id: &DeliveryId| self.running.values().any(|r| r.id.workflow == id.workflow && r.leaving == Leaving::Yes);
        let (later, now): (Vec<_>, Vec<_>) = std::mem::take(&mut self.next).into_iter().partition(draining);
        self.next = later;
        now.into_iter().for_each(|id| self.start(id, None));
    }

    pub(super) fn as_json(&self) -> serde_json::Value {
        let mut all = self.done.clone();
        all.extend(self.roster.members().iter().map(|member| self.member_json(member)));
        json!({"deliveries": all})
    }

    fn members_json(&self, id: &DeliveryId) -> Vec<serde_json::Value> {
        let members = self.roster.members();
        members.iter().filter(|member| member.id == *id).map(|member| self.member_json(member)).collect()
    }

    fn member_json(&self, member: &Member) -> serde_json::Value {
        let one = |Member { id, meter, .. }: &Member| {
            let Reading { ledger, epoch, written, commits, in_doubt, retries, unknown_fields, .. } = meter.read();
            let unknown: serde_json::Map<_, _> =
                unknown_fields.into_iter().map(|(field, n)| (field, json!(n))).collect();
            let end = self.ended.iter().find(|(ended, _)| ended == id).map(|(_, end)| end);
            let (word, stop) = match end {
                Some(DeliveryEnd::Finished) => ("finished", None),
                None if self.files.iter().any(|files| files.is_of(id)) => ("finished", None),
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
        one(member)
    }
}

fn exit_code(end: &DeliveryEnd) -> u8 {
    match end {
        DeliveryEnd::Finished | DeliveryEnd::Drained => 0,
        DeliveryEnd::Stopped(stop) => stop.exit_code,
    }
}
