//! Renews the lease, whatever else goes on.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use super::{LeadError, Leadership, OLD_TRANSACTION};
use crate::store::{Address, Store, StoreError};

const RENEW_EVERY: Duration = Duration::from_secs(1);
const LOOK_AT_TRANSACTIONS: u32 = 60;

impl<S: Store> Leadership<S> {
    /// Makes us known, and begins the lease.
    pub(crate) async fn join(&self, address: Address) -> Result<(), LeadError> {
        match self.store.join(address).await {
            // It may have waited for our number: only a renewal that is sent later counts.
            Ok(()) => {}
            Err(StoreError::Fenced) => return Err(LeadError::NumberTaken(self.store.me())),
            Err(error) => return Err(LeadError::Store(error)),
        }
        self.renew().await;
        Ok(())
    }

    /// Renews every second until somebody else has our number.
    pub(crate) async fn keep(&self) {
        if self.store.lease().is_none() {
            return;
        }
        let mut tick = tokio::time::interval(RENEW_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for turn in 0_u32.. {
            tick.tick().await;
            self.renew().await;
            if turn.is_multiple_of(LOOK_AT_TRANSACTIONS) {
                self.look_at_transactions().await;
            }
        }
    }

    /// Gives everything back. From here on no answer may be given from memory.
    pub(crate) async fn leave(&self) -> Result<(), StoreError> {
        self.lease.end();
        self.store.leave().await
    }

    async fn renew(&self) {
        let sent = Instant::now();
        match self.store.renew().await {
            // We stood still too long, and another may have led meanwhile: what is remembered must be given up before a
            // renewal counts again, or a reader is told an old end.
            Ok(()) if self.lease.is_over_at(Instant::now()) => self.nudge(),
            Ok(()) => self.lease.renewed(sent),
            Err(StoreError::Fenced) => self.fail(LeadError::NumberTaken(self.store.me())),
            Err(StoreError::InDoubt(message)) => {
                tracing::warn!(%message, "leading everything again");
                self.doubted.store(true, Ordering::Release);
                self.nudge();
            }
            Err(error) => tracing::warn!(%error, "the lease was not renewed"),
        }
    }

    async fn look_at_transactions(&self) {
        let oldest = self.store.oldest_transaction().await;
        // A figure that is not known is not shown: the last one would be a lie.
        self.metrics.set_snapshot_age(oldest.as_ref().ok().copied().flatten());
        match oldest {
            Ok(Some(age)) if age > OLD_TRANSACTION => {
                tracing::warn!(
                    seconds = age.as_secs(),
                    "an old open transaction keeps the database from cleaning up; end it"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the age of the oldest transaction is not known"),
        }
    }
}
