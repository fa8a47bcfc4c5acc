//! The timers of all groups: one heap, one task.
//!
//! A timer that is put off stays in the heap where it is, and is put back when its old time comes: a heartbeat costs nothing.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::now;
use super::term::{Held, Term};
use crate::rules::group::Timer;
use crate::store::Store;

/// After a timer's change could not be saved.
const AGAIN: Duration = Duration::from_secs(1);

/// With no timer at all the task still looks around now and then.
const IDLE: Duration = Duration::from_secs(3600);

/// A place in the heap.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) group: Arc<str>,
    pub(super) timer: Timer,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, &self.group, &self.timer).cmp(&(other.at, &other.group, &other.timer))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Clone, Copy)]
struct Running {
    /// When it is over.
    until: Instant,
    /// Where it stands in the heap: then or earlier.
    queued: Instant,
}

/// The timers of one group.
#[derive(Debug, Default)]
pub(super) struct Timers(HashMap<Timer, Running>);

impl Timers {
    /// Sets a timer; true if it needs a place in the heap.
    pub(super) fn set(&mut self, timer: &Timer, until: Instant) -> bool {
        match self.0.get_mut(timer) {
            Some(running) if running.queued <= until => {
                running.until = until;
                false
            }
            _ => {
                self.0.insert(timer.clone(), Running { until, queued: until });
                true
            }
        }
    }

    pub(super) fn stop(&mut self, timer: &Timer) {
        self.0.remove(timer);
    }

    /// What to do when a place in the heap comes up.
    fn rings(&mut self, due: &Due, now: Instant) -> Ring {
        match self.0.get_mut(&due.timer) {
            Some(running) if running.queued == due.at && running.until <= now => {
                self.0.remove(&due.timer);
                Ring::Now
            }
            Some(running) if running.queued == due.at => {
                running.queued = running.until;
                Ring::At(running.until)
            }
            // Stopped, or it has another place by now.
            Some(_) | None => Ring::Never,
        }
    }
}

enum Ring {
    Now,
    At(Instant),
    Never,
}

/// The heap.
#[derive(Default)]
pub(super) struct Clock {
    heap: Mutex<BinaryHeap<Reverse<Due>>>,
    changed: Notify,
}

impl Clock {
    pub(super) fn add(&self, due: Due) {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = heap.peek().is_none_or(|Reverse(first)| due.at < first.at);
        heap.push(Reverse(due));
        drop(heap);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// All that is due, and when to look again.
    fn take(&self, now: Instant) -> (Vec<Due>, Instant) {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        while let Some(Reverse(first)) = heap.peek() {
            if first.at > now {
                return (due, first.at);
            }
            due.extend(heap.pop().map(|Reverse(first)| first));
        }
        (due, now + IDLE)
    }
}

/// Rings until the term is over. Every ring is a task of its own, because it may have to wait for the group and the store.
pub(super) async fn run<S: Store>(term: Arc<Term<S>>) {
    let mut rings = JoinSet::new();
    loop {
        let (due, next) = term.clock.take(Instant::now());
        for due in due {
            rings.spawn(ring(Arc::clone(&term), due));
        }
        // All branches may be dropped at any time: nothing is taken by waiting.
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = term.clock.changed.notified() => {}
            Some(_) = rings.join_next() => {}
            () = term.over() => break,
        }
    }
    // What is being saved is fenced; it may end by itself.
    rings.detach_all();
}

async fn ring<S: Store>(term: Arc<Term<S>>, due: Due) {
    let Some(mut held) = term.held(&due.group).await else { return };
    match held.timers.rings(&due, Instant::now()) {
        Ring::Never => {}
        Ring::At(at) => term.clock.add(Due { at, ..due }),
        Ring::Now => {
            if over(&term, &mut held, &due.timer).await.is_err() {
                term.set_timer(&mut held, due.timer, AGAIN);
            }
        }
    }
}

async fn over<S: Store>(
    term: &Term<S>,
    held: &mut Held,
    timer: &Timer,
) -> Result<(), kafka_protocol::error::ResponseError> {
    let delay = term.limits.initial_delay;
    match timer {
        Timer::Session(member) => {
            tracing::info!(group = &*held.id, member = &**member, "session over");
            term.advance(held, |group| group.session_over(member, now())).await
        }
        Timer::Join => term.advance(held, |group| group.join_time_over(delay, now())).await,
        Timer::Sync => term.advance(held, |group| group.sync_time_over(now())).await,
    }
}
