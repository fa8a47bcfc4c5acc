//! What happens without a request: snapshots, retention, expiry of producers, compaction.
//!
//! Reads: the partitions that we lead. Writes: the store, each time under the epoch by which we lead, so that a broker that
//! was replaced changes nothing. Invariant: no row goes, and none is rewritten, before a snapshot that reaches beyond it is
//! durable; so a retry is recognised though its batch is gone. Not here: leases (`lead`), offsets of groups (`group`).

mod compaction;
#[cfg(test)]
mod contract;
mod retention;
#[cfg(test)]
mod rig;
mod snapshots;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

pub(crate) use snapshots::save_all;

use crate::broker::Broker;
use crate::log::now;
use crate::model::Timestamp;
use crate::store::{Store, StoreError};
use compaction::Compactor;
use snapshots::Snapshots;

/// How often it is looked whether a snapshot is due.
const SNAPSHOT_TICK: Duration = Duration::from_secs(1);
/// How often it is looked whether a topic is worth compacting, as Kafka's `log.cleaner.backoff.ms`; as often as retention
/// looks, if that is more often.
const COMPACTION_TICK: Duration = Duration::from_secs(15);

/// Begins what runs in the background, until the tasks are aborted.
pub(crate) fn start<S: Store>(broker: &Arc<Broker<S>>) -> Vec<JoinHandle<()>> {
    vec![
        tokio::spawn(save_snapshots(Arc::clone(broker))),
        tokio::spawn(keep_within_limits(Arc::clone(broker))),
        tokio::spawn(compact(Arc::clone(broker))),
    ]
}

async fn save_snapshots<S: Store>(broker: Arc<Broker<S>>) {
    let (mut ticks, mut snapshots) = (ticks(SNAPSHOT_TICK), Snapshots::default());
    loop {
        ticks.tick().await;
        snapshots.tick(&broker.logs, &*broker.store, Instant::now()).await;
    }
}

async fn keep_within_limits<S: Store>(broker: Arc<Broker<S>>) {
    let mut ticks = ticks(broker.config.retention_interval);
    loop {
        ticks.tick().await;
        look(&broker, now()).await;
    }
}

async fn compact<S: Store>(broker: Arc<Broker<S>>) {
    let period = COMPACTION_TICK.min(broker.config.retention_interval);
    let (mut ticks, mut compactor) = (ticks(period), Compactor::default());
    loop {
        ticks.tick().await;
        compactor.pass(&broker, now()).await;
    }
}

/// Ticks of which the first comes after one period; a slow one delays the next.
fn ticks(period: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// One look at everything that has a time limit.
pub(crate) async fn look<S: Store>(broker: &Broker<S>, now: Timestamp) {
    retention::pass(broker, now).await;
    expire_producers(broker, now).await;
}

/// Forgets producers that wrote nothing for long.
async fn expire_producers<S: Store>(broker: &Broker<S>, now: Timestamp) {
    let kept = i64::try_from(broker.config.producer_id_expiration.as_millis()).unwrap_or(i64::MAX);
    let before = now.saturating_sub(kept);
    let forgotten: usize = broker.logs.partitions().iter().map(|partition| partition.expire_producers(before)).sum();
    if forgotten > 0 {
        tracing::debug!(forgotten, "producers that wrote nothing for long are forgotten");
    }
    if broker.logs.partitions().is_empty() {
        return; // Who stands by leaves the notes to the leader, who knows who still writes.
    }
    if let Err(error) = broker.store.forget_producers(before).await {
        not_now("forgetting producers", &error);
    }
}

/// Says that something was not done; it is tried again later.
fn not_now(what: &'static str, error: &StoreError) {
    match error {
        // We were replaced, or a topic went: whoever leads now does it.
        StoreError::Fenced | StoreError::Conflict => tracing::debug!(what, %error, "left to who leads now"),
        StoreError::InDoubt(_)
        | StoreError::Away(_)
        | StoreError::Full(_)
        | StoreError::Broken(_)
        | StoreError::Damaged(_) => tracing::warn!(what, %error, "not done, tried again later"),
    }
}

#[cfg(test)]
#[cfg(feature = "embedded")]
#[path = "upkeep_tests.rs"]
mod tests;
