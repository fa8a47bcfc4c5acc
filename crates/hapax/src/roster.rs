//! Which deliveries this process runs, and how each stands: what its pages and alerts are made from.
//!
//! Written by `run` when deliveries start and end; read by everybody else. Cheap to clone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax_engine::memory::MemoryBudget;
use hapax_engine::runtime::{Meter, Reading};
use hapax_model::delivery_state::WorkerState;
use hapax_model::position::DeliveryId;

use crate::descriptors::Descriptors;

/// A loop that has not turned for so long, beyond what a commit may take, is stuck.
const LONGEST_TURN: Duration = Duration::from_secs(60);

/// All deliveries of the process.
#[derive(Debug, Clone)]
pub(crate) struct Roster {
    members: Arc<Mutex<Vec<Member>>>,
    /// Counts of the process as a whole.
    pub(crate) process: Arc<Process>,
}

/// One delivery.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) id: DeliveryId,
    pub(crate) meter: Arc<Meter>,
    /// How long a commit may take before it is in doubt.
    pub(crate) commit_timeout: Duration,
}

/// What belongs to no delivery.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) started_at_ms: u64,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) memory_total: u64,
    pub(crate) descriptors: Arc<Descriptors>,
    pub(crate) alerts_sent: AtomicU64,
    pub(crate) alerts_failed: AtomicU64,
    pub(crate) alerts_dropped: AtomicU64,
    pub(crate) reloads_done: AtomicU64,
    pub(crate) reloads_refused: AtomicU64,
    /// Age of the oldest transaction with a view of each PostgreSQL database, by its address.
    snapshots: Mutex<BTreeMap<String, Duration>>,
}

impl Process {
    /// Age of the oldest transaction with a view of each PostgreSQL database.
    pub(crate) fn snapshot_ages(&self) -> BTreeMap<String, Duration> {
        self.snapshots.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl Roster {
    /// Nobody yet.
    pub(crate) fn new(memory: &Arc<MemoryBudget>, memory_total: u64) -> Self {
        let process = Process {
            started_at_ms: now_ms(),
            memory: Arc::clone(memory),
            memory_total,
            descriptors: Descriptors::new(),
            alerts_sent: AtomicU64::new(0),
            alerts_failed: AtomicU64::new(0),
            alerts_dropped: AtomicU64::new(0),
            reloads_done: AtomicU64::new(0),
            reloads_refused: AtomicU64::new(0),
            snapshots: Mutex::default(),
        };
        Self { members: Arc::default(), process: Arc::new(process) }
    }

    /// Adds a delivery, in the place of one with the same id.
    pub(crate) fn add(&self, member: Member) {
        let mut members = self.lock();
        members.retain(|known| known.id != member.id);
        members.push(member);
    }

    /// Forgets a delivery that the configuration no longer has.
    pub(crate) fn remove(&self, id: &DeliveryId) {
        self.lock().retain(|known| known.id != *id);
    }

    /// All deliveries as they are now, in the order in which they were started.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.lock().clone()
    }

    /// The meter of one delivery.
    pub(crate) fn meter(&self, id: &DeliveryId) -> Option<Arc<Meter>> {
        self.lock().iter().find(|member| member.id == *id).map(|member| Arc::clone(&member.meter))
    }

    /// Notes how old the oldest view of a database is; none if that is not known now.
    #[cfg(any(feature = "postgres", test))]
    pub(crate) fn set_snapshot_age(&self, target: &str, age: Option<Duration>) {
        let mut ages = self.process.snapshots.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match age {
            Some(age) => ages.insert(target.to_owned(), age),
            None => ages.remove(target),
        };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Member {
    /// Whether its loop stands still although it should turn.
    pub(crate) fn is_stuck(&self, reading: &Reading, now_ms: u64) -> bool {
        let longest = u64::try_from((LONGEST_TURN + self.commit_timeout).as_millis()).unwrap_or(u64::MAX);
        reading.state == WorkerState::Running
            && reading.turned_at_ms > 0
            && now_ms.saturating_sub(reading.turned_at_ms) > longest
    }
}

/// Adds one to a counter.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only a loop that should turn and does not is stuck. Method: each state with an old turn; the bound itself.
    #[test]
    fn only_a_loop_that_should_turn_is_stuck() {
        let id = DeliveryId { workflow: "w".into(), sink: "s".into(), lane: "l".into() };
        let member = Member { id, meter: Arc::default(), commit_timeout: Duration::from_secs(30) };
        let reading = |state, turned_at_ms| Reading { state, turned_at_ms, ..Reading::default() };
        assert!(member.is_stuck(&reading(WorkerState::Running, 1_000), 91_001));
        assert!(!member.is_stuck(&reading(WorkerState::Running, 1_000), 91_000));
        assert!(!member.is_stuck(&reading(WorkerState::Running, 0), u64::MAX), "it has not begun");
        for state in WorkerState::ALL.into_iter().filter(|state| *state != WorkerState::Running) {
            assert!(!member.is_stuck(&reading(state, 1), u64::MAX), "{state}");
        }
    }
}
