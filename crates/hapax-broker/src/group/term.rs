//! One term of coordinating: from taking over until giving up, or until the store refuses us.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kafka_protocol::error::ResponseError;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::clock::{Clock, Due, Timers};
use super::commit::{self, Job};
use super::now;
use crate::metrics::Metrics;
use crate::rules::group::{Answer, Group, JoinAnswer, Limits, Save, Step, SyncAnswer, Ticket};
use crate::store::{GroupFence, GroupRow, GroupsLed, Store, StoreError};

/// Locks over the map of groups; a group itself has its own.
const SHARDS: usize = 16;

/// Requests that wait for the writer of offsets; more wait at their connection.
const QUEUE: usize = 4096;

/// A group in memory.
pub(super) struct Cell {
    pub(super) id: Arc<str>,
    pub(super) group: Group,
    pub(super) timers: Timers,
    /// Removed from the map while somebody waited for its lock.
    gone: bool,
}

type Shard = Mutex<HashMap<Arc<str>, Arc<tokio::sync::Mutex<Cell>>>>;

/// A group, locked.
pub(super) type Held = OwnedMutexGuard<Cell>;

/// Somebody who waits for an answer.
pub(super) enum Waiting {
    Join(oneshot::Sender<JoinAnswer>),
    Sync(oneshot::Sender<SyncAnswer>),
}

/// A term.
pub(super) struct Term<S> {
    pub(super) store: Arc<S>,
    pub(super) limits: Limits,
    pub(super) offsets_retention: Duration,
    pub(super) fence: GroupFence,
    pub(super) jobs: mpsc::Sender<Job>,
    pub(super) clock: Clock,
    shards: Vec<Shard>,
    hasher: RandomState,
    waiting: Mutex<HashMap<Ticket, Waiting>>,
    tickets: AtomicU64,
    closed: AtomicBool,
    ended: watch::Sender<bool>,
    metrics: Arc<Metrics>,
}

impl<S: Store> Term<S> {
    pub(super) fn begin(
        store: Arc<S>,
        limits: Limits,
        offsets_retention: Duration,
        led: GroupsLed,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let term = Arc::new(Self {
            store,
            limits,
            offsets_retention,
            fence: led.fence,
            jobs,
            clock: Clock::default(),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            hasher: RandomState::new(),
            waiting: Mutex::default(),
            tickets: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            ended: watch::Sender::new(false),
            metrics,
        });
        for row in led.groups {
            term.load(row);
        }
        tokio::spawn(super::clock::run(Arc::clone(&term)));
        tokio::spawn(commit::run(Arc::clone(&term), queue));
        tokio::spawn(super::expire::run(Arc::clone(&term)));
        term
    }

    fn load(&self, row: GroupRow) {
        let (group, step) = match Group::load(row.state) {
            Ok(loaded) => loaded,
            Err(error) => {
                // Its members will be unknown and join anew; its offsets are kept elsewhere.
                error!(group = row.id, error = %error, "group state cannot be read, members have to join anew");
                return;
            }
        };
        let id: Arc<str> = Arc::from(row.id);
        let mut cell = Cell { id: Arc::clone(&id), group, timers: Timers::default(), gone: false };
        self.set_timers(&mut cell, step);
        self.shard(&id).insert(id, Arc::new(tokio::sync::Mutex::new(cell)));
    }

    /// A group, once its lock is ours; `None`: there is none.
    pub(super) async fn held(&self, id: &str) -> Option<Held> {
        loop {
            let cell = self.shard(id).get(id).cloned()?;
            let held = cell.lock_owned().await;
            if !held.gone {
                return Some(held);
            }
        }
    }

    /// A group, made if there is none.
    pub(super) async fn held_or_new(&self, id: &str) -> Held {
        loop {
            let cell = {
                let mut shard = self.shard(id);
                let made = || {
                    let (id, group) = (Arc::from(id), Group::new(now()));
                    Arc::new(tokio::sync::Mutex::new(Cell { id, group, timers: Timers::default(), gone: false }))
                };
                Arc::clone(shard.entry(Arc::from(id)).or_insert_with(made))
            };
            let held = cell.lock_owned().await;
            if !held.gone {
                return held;
            }
        }
    }

    /// Takes a group out of memory.
    pub(super) fn forget(&self, held: &mut Held) {
        held.gone = true;
        self.shard(&held.id).remove(&held.id);
    }

    /// The names of all groups in memory.
    pub(super) fn names(&self) -> Vec<Arc<str>> {
        let shards = self.shards.iter();
        shards.flat_map(|shard| lock(shard).keys().cloned().collect::<Vec<_>>()).collect()
    }

    fn shard(&self, id: &str) -> MutexGuard<'_, HashMap<Arc<str>, Arc<tokio::sync::Mutex<Cell>>>> {
        let hash = usize::try_from(self.hasher.hash_one(id) % SHARDS as u64).expect("less than the number of shards");
        lock(&self.shards[hash])
    }

    /// Does what an event asks: saves first if it must; if that fails, nothing has happened, and everyone else waits on.
    pub(super) async fn advance<F>(&self, held: &mut Held, event: F) -> Result<(), ResponseError>
    where
        F: FnOnce(&mut Group) -> Step + Send,
    {
        let mut next = held.group.clone();
        let step = event(&mut next);
        if step.save == Save::First {
            let row = GroupRow { id: held.id.to_string(), empty_since: next.empty_since(), state: next.save() };
            crate::fault::point("group.before_save");
            if let Err(error) = self.store.save_group(&self.fence, row).await {
                return Err(self.failed(&error, ResponseError::CoordinatorNotAvailable));
            }
            crate::fault::point("group.after_save");
            info!(group = &*held.id, generation = next.generation(), phase = next.phase_name(), "group saved");
        }
        if next.generation() != held.group.generation() {
            self.metrics.rebalances.add(1);
        }
        held.group = next;
        self.apply(held, step);
        if held.group.is_blank() {
            self.forget(held);
        }
        Ok(())
    }

    fn apply(&self, held: &mut Held, mut step: Step) {
        let answers = std::mem::take(&mut step.answers);
        self.set_timers(held, step);
        let mut waiting = lock(&self.waiting);
        for (ticket, answer) in answers {
            // Nobody listens any more when the connection is gone.
            match (waiting.remove(&ticket), answer) {
                (Some(Waiting::Join(sender)), Answer::Join(answer)) => drop(sender.send(answer).err()),
                (Some(Waiting::Sync(sender)), Answer::Sync(answer)) => drop(sender.send(answer).err()),
                (Some(Waiting::Join(_) | Waiting::Sync(_)) | None, Answer::Join(_) | Answer::Sync(_)) => {}
            }
        }
    }

    fn set_timers(&self, cell: &mut Cell, step: Step) {
        for (timer, after) in step.timers {
            match after {
                Some(after) => self.set_timer(cell, timer, after),
                None => cell.timers.stop(&timer),
            }
        }
    }

    pub(super) fn set_timer(&self, cell: &mut Cell, timer: crate::rules::group::Timer, after: Duration) {
        let at = Instant::now() + after;
        if cell.timers.set(&timer, at) {
            self.clock.add(Due { at, group: Arc::clone(&cell.id), timer });
        }
    }

    /// A number for a request that will wait. 16: the term is over.
    pub(super) fn enroll(&self, waiting: Waiting) -> Result<Ticket, ResponseError> {
        let mut all = lock(&self.waiting);
        if self.is_closed() {
            return Err(ResponseError::NotCoordinator);
        }
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        all.insert(ticket, waiting);
        Ok(ticket)
    }

    /// Takes a request back that was not taken up.
    pub(super) fn withdraw(&self, ticket: Ticket) -> Option<Waiting> {
        lock(&self.waiting).remove(&ticket)
    }

    /// What a failure of the store means to the one who asked. Where we may have been replaced, or do not know what was
    /// written, the term ends.
    pub(super) fn failed(&self, error: &StoreError, retry: ResponseError) -> ResponseError {
        match error {
            StoreError::Away(_) | StoreError::Full(_) | StoreError::Conflict => {
                warn!(error = %error, "groups could not be written");
                retry
            }
            StoreError::Fenced | StoreError::InDoubt(_) | StoreError::Broken(_) | StoreError::Damaged(_) => {
                warn!(error = %error, "groups are no longer coordinated here");
                self.close();
                ResponseError::NotCoordinator
            }
        }
    }
}

impl<S> Term<S> {
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends the term; whoever waits learns it because nobody can answer any more.
    pub(super) fn close(&self) {
        let waiting = {
            let mut all = lock(&self.waiting);
            self.closed.store(true, Ordering::Release);
            std::mem::take(&mut *all)
        };
        drop(waiting);
        self.ended.send_replace(true);
    }

    /// Returns when the term is over.
    pub(super) async fn over(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as we do.
        drop(ended.wait_for(|ended| *ended).await);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
