//! Makes what is served equal to what should be: the same way at the start, after a broker died, after a doubt.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::{Duties, LeadError, Leadership, placement};
use crate::model::PartitionId;
use crate::store::{LedPartition, Store, StoreError};

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Partitions that are led in one statement, and loaded before the next ones.
const AT_ONCE: usize = 1000;

impl<S: Store> Leadership<S> {
    /// Looks again and again, and at once when nudged, until this broker cannot go on.
    pub(crate) async fn watch(&self, duties: &impl Duties) {
        let mut tick = tokio::time::interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while self.failure.borrow().is_none() {
            tokio::select! {
                _ = tick.tick() => {}
                () = self.nudge.notified() => {}
            }
            match self.look(duties).await {
                Ok(()) => {}
                Err(StoreError::Broken(message)) => self.fail(LeadError::Store(StoreError::Broken(message))),
                Err(error) => tracing::warn!(%error, "could not look who leads"),
            }
        }
        duties.give_up().await;
    }

    /// One look.
    pub(crate) async fn look(&self, duties: &impl Duties) -> Result<(), StoreError> {
        if !self.fresh() {
            self.stand_down(duties, "our lease is over").await?;
            // Nothing is remembered any more: the next renewal begins a new lease.
            self.lease.end();
            return Ok(());
        }
        if self.doubted.swap(false, Ordering::AcqRel) {
            self.stand_down(duties, "the store was gone for a moment").await?;
        }
        let live = self.store.brokers().await?;
        let ours = placement::leads(&live, self.store.me());
        self.know(live);
        // Every second is soon enough for what others did to topics; an unknown one is looked up at once anyway.
        if self.looks.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            duties.refresh().await?;
        }
        if ours {
            self.take_what_is_ours(duties).await
        } else if serves(duties) {
            self.stand_down(duties, "a broker with a lower number lives").await?;
            self.store.give_back().await
        } else {
            Ok(())
        }
    }

    async fn stand_down(&self, duties: &impl Duties, why: &str) -> Result<(), StoreError> {
        if !serves(duties) {
            return Ok(());
        }
        tracing::info!(why, "this broker leads no more");
        let _turn = self.turn().await;
        duties.give_up().await;
        Ok(())
    }

    async fn take_what_is_ours(&self, duties: &impl Duties) -> Result<(), StoreError> {
        let _turn = self.turn().await;
        let all = self.store.leaders().await?;
        let (me, served) = (self.store.me(), duties.served());
        let missing: Vec<PartitionId> = all
            .iter()
            .filter(|(id, leader, epoch)| *leader != Some(me) || served.get(id) != Some(epoch))
            .map(|(id, _, _)| *id)
            .collect();
        for some in missing.chunks(AT_ONCE) {
            let led = self.store.lead(some).await?;
            if !led.is_empty() {
                tracing::info!(partitions = led.len(), "leading");
            }
            self.look_for_loss(duties, &led);
            duties.take_over(led).await?;
        }
        if !duties.coordinates() {
            match self.store.lead_groups().await {
                Ok(led) => duties.take_over_groups(led).await?,
                // Who had them gives them back soon, or its lease ends.
                Err(StoreError::Fenced) => {}
                Err(error) => return Err(error),
            }
        }
        let there: HashSet<PartitionId> = all.iter().map(|(id, _, _)| *id).collect();
        let gone: Vec<PartitionId> = served.into_keys().filter(|id| !there.contains(id)).collect();
        if !gone.is_empty() {
            duties.forget(&gone).await;
        }
        Ok(())
    }

    /// An end below what this process acknowledged: the database has lost it. People must know.
    fn look_for_loss(&self, duties: &impl Duties, led: &[LedPartition]) {
        for partition in led {
            let Some(acknowledged) = duties.acknowledged(partition.partition) else { continue };
            if partition.end < acknowledged {
                let lost = acknowledged.abs_diff(partition.end);
                self.lost_records.fetch_add(lost, Ordering::Relaxed);
                tracing::error!(
                    code = "HX4509",
                    partition = partition.partition.0,
                    acknowledged,
                    end = partition.end,
                    "the database lost records that it had confirmed"
                );
            }
        }
    }
}

fn serves(duties: &impl Duties) -> bool {
    duties.coordinates() || !duties.served().is_empty()
}
