//! Manners: a second worker stands by instead of fencing the first. Safety never rests on the lease.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hapax_model::delivery_state::WorkerState;
use tokio::sync::{Notify, watch};

use super::meter::{Meter, TakenBy};
use super::{Control, Settings, Stop, note, sleep_or_stop, stopping};
use crate::state::{DeliveryNote, Lease, StateError, StateStore, TakeOver};

/// A lease that is renewed in the background until it is released, lost or dropped.
pub(super) struct HeldLease<T> {
    settings: Settings,
    state: Option<T>,
    heartbeat: Option<tokio::task::JoinHandle<()>>,
    lost: Arc<Lost>,
    /// Whether a person has paused the workflow, as the last heartbeat found it.
    paused: watch::Receiver<bool>,
}

#[derive(Default)]
struct Lost {
    flag: AtomicBool,
    noticed: Notify,
}

/// Why a paused delivery waits no longer.
pub(super) enum SatOut {
    /// It is not paused.
    GoOn,
    /// The process was asked to end.
    Asked,
    /// Another worker took the lease.
    Lost,
}

/// Returns once `watched` is `wanted`; never, if nobody is left to say so. Cancel-safe.
pub(super) async fn becomes(watched: &mut watch::Receiver<bool>, wanted: bool) {
    if watched.wait_for(|now| *now == wanted).await.is_err() {
        std::future::pending().await
    }
}

/// Waits until the lease is ours. `None`: the process was asked to end first.
pub(super) async fn stand_by<T: StateStore + Clone>(
    settings: &Settings,
    state: Option<&T>,
    control: &Control,
) -> Result<Option<HeldLease<T>>, Stop> {
    let lost = Arc::new(Lost::default());
    let Some(mut store) = state.cloned() else {
        let paused = watch::Sender::new(false).subscribe();
        return Ok(Some(HeldLease { settings: settings.clone(), state: None, heartbeat: None, lost, paused }));
    };
    let mut said = false;
    let mut backoff = crate::backoff::Backoff::new(&settings.retries);
    while !stopping(control) {
        match take(settings, &mut store, control).await {
            Ok(Lease::Ours) => {
                if said {
                    control.meter.taken_over(TakenBy::Standby);
                }
                return Ok(Some(hold(settings, store, lost).await));
            }
            Ok(Lease::Held { by, remaining }) => {
                backoff.succeeded();
                if !said {
                    said = true;
                    tracing::info!(delivery = %settings.id, holder = by, "standing by: another worker has the lease");
                    control.meter.set_state(WorkerState::Standby);
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

/// Asks for the lease, and takes it from another only if a person said so.
async fn take<T: StateStore>(settings: &Settings, store: &mut T, control: &Control) -> Result<Lease, StateError> {
    let asked = store.lease(&settings.id, settings.lease, TakeOver::Never).await?;
    match (asked, settings.take_over) {
        (Lease::Held { by, .. }, TakeOver::Now) => {
            tracing::info!(delivery = %settings.id, holder = by, "taking the lease over");
            control.meter.taken_over(TakenBy::Force);
            store.lease(&settings.id, settings.lease, TakeOver::Now).await
        }
        (asked, TakeOver::Now | TakeOver::Never) => Ok(asked),
    }
}

/// Keeps a lease that was just taken.
async fn hold<T: StateStore + Clone>(settings: &Settings, mut store: T, lost: Arc<Lost>) -> HeldLease<T> {
    // Whoever cannot tell yet does not work against a person's word; the next heartbeat asks again.
    let (tell, paused) = watch::channel(true);
    ask_paused(settings, &mut store, &tell).await;
    let heartbeat = tokio::spawn(renew(settings.clone(), store.clone(), Arc::clone(&lost), tell));
    HeldLease { settings: settings.clone(), state: Some(store), heartbeat: Some(heartbeat), lost, paused }
}

async fn ask_paused<T: StateStore>(settings: &Settings, store: &mut T, tell: &watch::Sender<bool>) {
    match store.paused(&settings.id.workflow).await {
        Ok(paused) => {
            tell.send_if_modified(|was| std::mem::replace(was, paused) != paused);
        }
        Err(error) => {
            tracing::warn!(delivery = %settings.id, %error, "the state store does not tell whether it is paused")
        }
    }
}

async fn renew<T: StateStore>(settings: Settings, mut store: T, lost: Arc<Lost>, tell: watch::Sender<bool>) {
    loop {
        tokio::time::sleep(settings.lease / 3).await;
        ask_paused(&settings, &mut store, &tell).await;
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

    /// Whether a person has paused the workflow.
    pub(super) fn paused(&self) -> watch::Receiver<bool> {
        self.paused.clone()
    }

    /// Before anything is claimed: waits until the workflow is not paused.
    pub(super) async fn sit_out(&self, control: &Control) -> SatOut
    where
        T: Clone,
    {
        let (mut paused, mut stop) = (self.paused.clone(), control.stop.clone());
        if !*paused.borrow() {
            return SatOut::GoOn;
        }
        tracing::info!(delivery = %self.settings.id, "paused; `hapax resume {}` lets it go on", self.settings.id.workflow);
        control.meter.set_state(WorkerState::Paused);
        note(&self.settings, self.state.clone().as_mut(), WorkerState::Paused, None).await;
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => SatOut::Asked,
            () = self.lost() => SatOut::Lost,
            () = becomes(&mut paused, false) => SatOut::GoOn,
        }
    }

    /// Notes whether the delivery rests or runs, whenever that changes. Never ends.
    pub(super) async fn note_rests(&self, mut rests: watch::Receiver<bool>) -> Infallible
    where
        T: Clone,
    {
        while rests.changed().await.is_ok() {
            let now = if *rests.borrow_and_update() { WorkerState::Paused } else { WorkerState::Running };
            note(&self.settings, self.state.clone().as_mut(), now, None).await;
        }
        std::future::pending().await
    }

    /// Notes what the delivery waits for, and that it waits no longer, as its meter has it once per heartbeat: a store
    /// that is away together with the target makes nobody wait. Never ends.
    pub(super) async fn note_troubles(&self, meter: &Meter) -> Infallible
    where
        T: Clone,
    {
        let mut noted = false;
        loop {
            tokio::time::sleep(self.settings.lease / 3).await;
            let reading = meter.read();
            let waits = reading.trouble.filter(|_| reading.state == WorkerState::Waiting);
            let (now, code, message) = match waits {
                Some(trouble) if !noted => (WorkerState::Waiting, Some(trouble.code.to_owned()), trouble.message),
                None if noted && reading.state == WorkerState::Running => (WorkerState::Running, None, String::new()),
                Some(_) | None => continue,
            };
            let Some(mut store) = self.state.clone() else { continue };
            let note = DeliveryNote { state: now, exit_code: None, code, message };
            match store.note(&self.settings.id, &note).await {
                Ok(()) => noted = now == WorkerState::Waiting,
                Err(error) => {
                    tracing::debug!(delivery = %self.settings.id, %error, "the state store did not take the note")
                }
            }
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
