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
use super::open_pattern::{OpenPattern, OpenedPattern};
use super::reload::Changes;
use super::signals::Order;
use super::start::{SharedLook, Start};
use super::watchdog::Watchdog;
use crate::assemble::{AnyState, How, Part, lanes, parts};
use crate::config::checked::FileLane;
use crate::config::{self, Config};
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
    /// Patterns that wait for their lease, or for their target.
    openings: JoinSet<OpenedPattern>,
    /// Leases of patterns that are being given back, beside the loop: a store that does not answer keeps it from nothing.
    releases: JoinSet<()>,
    /// Counts reloads: what was asked for an older configuration is not taken.
    opening_round: u64,
    /// Becomes true when nothing more is to be opened.
    open_no_more: watch::Sender<bool>,
    /// What `--json` says of files that were read.
    done: Vec<serde_json::Value>,
    draining: bool,
    watchdog: Watchdog,
}

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
            openings: JoinSet::new(),
            releases: JoinSet::new(),
            opening_round: 0,
            open_no_more: watch::Sender::new(false),
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
    pub(super) fn start_all(&mut self, only: &[String]) {
        self.only = only.to_vec();
        for id in self.wanted() {
            self.start(id, None);
        }
        self.watch_files(|_| true);
    }

    /// Begins to look for the files of the patterns of these workflows: each when its lease is ours and its target answers.
    fn watch_files(&mut self, wanted: impl Fn(&str) -> bool) {
        let config = Arc::clone(&self.config.borrow());
        for part in parts(&config).filter(Part::has_many_files).filter(|part| wanted(&part.workflow.id)) {
            if !self.only.is_empty() && !self.only.contains(&part.workflow.id) {
                continue;
            }
            let Some(id) = part.pattern_id() else { continue };
            let member = Member { id: id.clone(), meter: Arc::default(), commit_timeout: Duration::ZERO };
            let open = OpenPattern {
                config: Arc::clone(&config),
                id,
                meter: Arc::clone(&member.meter),
                state: self.state.clone(),
                how: self.how.clone(),
                stop: self.open_no_more.subscribe(),
                round: self.opening_round,
            };
            self.roster.add(member);
            self.openings.spawn(open.run());
        }
    }

    /// After a reload: the patterns of workflows that are new or changed, and those that wait or have stopped. Their databases
    /// are asked beside the loop, which must hear signals meanwhile.
    fn watch_files_again(&mut self, changes: &Changes) {
        // What was asked for an older configuration is asked again.
        self.open_no_more.send_replace(true);
        self.open_no_more = watch::Sender::new(false);
        self.opening_round += 1;
        // What is being given back may be wanted again.
        self.releases.abort_all();
        let watched: HashSet<String> = self.files.iter().map(|files| files.workflow().to_owned()).collect();
        let again = |workflow: &str| changes.touches(workflow) || !watched.contains(workflow);
        // What stopped a pattern before does not stop it again.
        let config = Arc::clone(&self.config.borrow());
        let patterns: HashSet<&str> =
            parts(&config).filter(Part::has_many_files).map(|part| part.workflow.id.as_str()).collect();
        self.ended.retain(|(id, _)| !(patterns.contains(id.workflow.as_str()) && again(&id.workflow)));
        self.watch_files(again);
    }

    /// A pattern can be read, or never will be.
    fn opened(&mut self, opened: Result<OpenedPattern, JoinError>) {
        let OpenedPattern { id, round, files } = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::error!("HX5009: a bug in Hapax ended the search for files: {error}");
                return;
            }
        };
        if round != self.opening_round {
            if let Ok(Some(files)) = files {
                self.releases.spawn(files.release());
            }
            return;
        }
        let meter = self.roster.meter(&id);
        self.roster.remove(&id);
        match files {
            Ok(Some(files)) => self.files.push(files),
            Ok(None) => {}
            Err(failure) => {
                let end = DeliveryEnd::Stopped(failure.into());
                if let (DeliveryEnd::Stopped(stop), Some(meter)) = (&end, meter) {
                    meter.refused(stop);
                    self.roster.add(Member { id: id.clone(), meter, commit_timeout: Duration::ZERO });
                }
                self.say_ended(&id, &end);
                self.ended.push((id, end));
            }
        }
    }

    /// What stops a lane of a pattern stops its workflow, as it does where there is one lane; so does another worker that
    /// takes the pattern. Who asked only for what is there now gets the other files first.
    fn give_up_stopped(&mut self) {
        let once = self.how.follow == Follow::No;
        let stops = |end: &DeliveryEnd| exit_code(end) == 4 || (exit_code(end) > 0 && !once);
        let ended = &self.ended;
        let (over, kept): (Vec<Files>, Vec<Files>) = std::mem::take(&mut self.files)
            .into_iter()
            .partition(|files| files.is_lost() || ended.iter().any(|(id, end)| stops(end) && files.is_of(id)));
        self.files = kept;
        for files in over {
            if files.is_lost() {
                let message = "another worker took the files of this pattern over".to_owned();
                let end = DeliveryEnd::Stopped(Stop { exit_code: 4, code: "HX4009", message });
                self.say_ended(&files.id(), &end);
                self.ended.push((files.id(), end));
            }
            for running in self.running.values().filter(|running| files.is_of(&running.id)) {
                running.stop.send_replace(true);
            }
            self.releases.spawn(files.release());
        }
    }

    /// Starts files that wait, as many as may be open.
    fn start_files(&mut self) {
        if self.draining {
            return;
        }
        let mut files = std::mem::take(&mut self.files);
        let draining = |workflow: &str| {
            self.running.values().any(|r| r.id.workflow == workflow && (r.leaving == Leaving::Yes || *r.stop.borrow()))
        };
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
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.tasks.is_empty() || !self.openings.is_empty() || self.expects_files() {
            tokio::select! {
                Some(joined) = self.tasks.join_next_with_id() => self.joined(joined),
                Some(opened) = self.openings.join_next() => self.opened(opened),
                Some(_) = self.releases.join_next() => {}
                Some(order) = orders.recv() => match order {
                    Order::Drain => {
                        self.drain();
                        say.reset();
                        end_by = Some(tokio::time::Instant::now() + DRAIN_LIMIT + DRAIN_GRACE);
                    }
                    Order::Reload => self.reload(),
                },
                _ = look.tick(), if self.expects_files() => self.look_for_files().await,
                _ = say.tick(), if self.draining => self.say_draining(end_by),
            }
            self.give_up_stopped();
            self.start_next();
            self.start_files();
        }
        for files in std::mem::take(&mut self.files) {
            self.releases.spawn(files.release());
        }
        // Each has its limit, and all wait together.
        while self.releases.join_next().await.is_some() {}
        self.ended.iter().map(|(_, end)| exit_code(end)).max().unwrap_or(0)
    }

    async fn look_for_files(&mut self) {
        let config = Arc::clone(&self.config.borrow());
        for at in (0..self.files.len()).rev() {
            let Err(failure) = self.files[at].look(&config).await else { continue };
            let files = self.files.remove(at);
            let (id, end) = (files.id(), DeliveryEnd::Stopped(failure.into()));
            self.releases.spawn(files.release());
            for running in self.running.values().filter(|running| running.id.workflow == id.workflow) {
                running.stop.send_replace(true);
            }
            self.say_ended(&id, &end);
            self.ended.push((id, end));
        }
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
        self.open_no_more.send_replace(true);
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
        let (totals, died) = match self.roster.meter(id).map(|meter| meter.read()) {
            Some(reading) => (reading.ledger.totals, reading.causes.iter().map(|cause| cause.count).sum::<u64>()),
            None => Default::default(),
        };
        // Those of earlier runs were told then, and may have been replayed or discarded since.
        let hint = match (totals.dead, died) {
            (0, _) => "",
            (_, 0) => ", none of them in this run",
            (_, _) => "; `hapax dlq list` says why",
        };
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
        self.watch_files_again(&changes);
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
