//! Manners: a second worker stands by instead of fencing the first. Safety never rests on the lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::{Control, Settings, Stop, sleep_or_stop, stopping};
use crate::state::{Lease, StateStore, TakeOver};

/// A lease that is renewed in the background until it is released, lost or dropped.
pub(super) struct HeldLease<T> {
    settings: Settings,
    state: Option<T>,
    heartbeat: Option<tokio::task::JoinHandle<()>>,
    lost: Arc<Lost>,
}

#[derive(Default)]
struct Lost {
    flag: AtomicBool,
    noticed: Notify,
}

/// Waits until the lease is ours. `None`: the process was asked to end first.
pub(super) async fn stand_by<T: StateStore + Clone>(
    settings: &Settings,
    state: Option<&T>,
    control: &Control,
) -> Result<Option<HeldLease<T>>, Stop> {
    let lost = Arc::new(Lost::default());
    let Some(mut store) = state.cloned() else {
        return Ok(Some(HeldLease { settings: settings.clone(), state: None, heartbeat: None, lost }));
    };
    let mut said = false;
    let mut backoff = crate::backoff::Backoff::new(&settings.retries);
    while !stopping(control) {
        match store.lease(&settings.id, settings.lease, settings.take_over).await {
            Ok(Lease::Ours) => {
                let heartbeat = tokio::spawn(renew(settings.clone(), store.clone(), Arc::clone(&lost)));
                return Ok(Some(HeldLease {
                    settings: settings.clone(),
                    state: Some(store),
                    heartbeat: Some(heartbeat),
                    lost,
                }));
            }
            Ok(Lease::Held { by, remaining }) => {
                backoff.succeeded();
                if !said {
                    said = true;
                    tracing::info!(delivery = %settings.id, holder = by, "standing by: another worker has the lease");
                    control.meter.set_state("standby");
                }
                let pause = remaining.min(settings.lease / 4).max(Duration::from_millis(10));
                sleep_or_stop(control, pause).await;
            }
            Err(error) => {
                control.meter.retried();
                let Some(wait) = backoff.failed(std::time::Instant::now(), fastrand::f64()) else {
                    return Err(Stop::new(1, "HX4020", format!("no lease could be taken: {error}")));
                };
                tracing::warn!(delivery = %settings.id, %error, wait_ms = wait.as_millis(), "the state store is away; trying again");
                sleep_or_stop(control, wait).await;
            }
        }
    }
    Ok(None)
}

async fn renew<T: StateStore>(settings: Settings, mut store: T, lost: Arc<Lost>) {
    loop {
        tokio::time::sleep(settings.lease / 3).await;
        match store.lease(&settings.id, settings.lease, TakeOver::Never).await {
            Ok(Lease::Ours) => {}
            Ok(Lease::Held { by, .. }) => {
                tracing::warn!(delivery = %settings.id, holder = by, "another worker has taken the lease");
                lost.flag.store(true, Ordering::SeqCst);
                lost.noticed.notify_waiters();
                return;
            }
            Err(error) => tracing::warn!(delivery = %settings.id, %error, "the lease could not be renewed"),
        }
    }
}

impl<T: StateStore> HeldLease<T> {
    /// Returns once another worker has taken the lease. Cancel-safe.
    pub(super) async fn lost(&self) {
        loop {
            let noticed = self.lost.noticed.notified();
            if self.lost.flag.load(Ordering::SeqCst) {
                return;
            }
            noticed.await;
        }
    }

    /// Asks the store whether the lease is still ours; without a store nobody else can have one.
    pub(super) async fn is_ours(&self) -> bool
    where
        T: Clone,
    {
        match self.state.clone() {
            None => true,
            Some(mut store) => {
                matches!(store.lease(&self.settings.id, self.settings.lease, TakeOver::Never).await, Ok(Lease::Ours))
            }
        }
    }

    /// Gives it back, so that a standby need not wait for it to end.
    pub(super) async fn release(mut self) {
        if let Some(heartbeat) = self.heartbeat.take() {
            heartbeat.abort();
        }
        if let Some(mut store) = self.state.take()
            && let Err(error) = store.release(&self.settings.id).await
        {
            tracing::warn!(delivery = %self.settings.id, %error, "the lease could not be given back; it ends by itself");
        }
    }
}

impl<T> Drop for HeldLease<T> {
    fn drop(&mut self) {
        if let Some(heartbeat) = self.heartbeat.take() {
            heartbeat.abort();
        }
    }
}
