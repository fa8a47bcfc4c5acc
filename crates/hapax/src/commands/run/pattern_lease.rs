//! The lease of a whole pattern: a second worker stands by with all its lanes, those that nobody has opened too.
//!
//! Reads and writes: the state store. Invariant: manners only; safety is each lane's fence, as everywhere.

use std::sync::Arc;
use std::time::Duration;

use hapax_connect::file::RotationRule;
use hapax_engine::backoff::Backoff;
use hapax_engine::runtime::Meter;
use hapax_engine::state::{DeliveryNote, Lease, StateStore as _, TakeOver};
use hapax_model::delivery::Retries;
use hapax_model::delivery_state::WorkerState;
use hapax_model::position::DeliveryId;
use tokio::sync::watch;

use crate::assemble::{AnyState, Part};
use crate::config::Source;
use crate::exit::Failure;

/// How long a store may take to take a lease back: one that does not answer keeps nobody, the lease ends by itself.
pub(super) const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// What the lease of a pattern is called where the pattern is a lane's own name.
pub(crate) fn all_files_of(lane: &DeliveryId) -> DeliveryId {
    DeliveryId { lane: format!("{} (all)", lane.lane), ..lane.clone() }
}

/// What the lease of all files of a pattern is called; none if the source has one file.
pub(crate) fn lease_of_pattern(part: &Part<'_>) -> Option<DeliveryId> {
    let Source::File(file) = part.source else { return None };
    let id = part.pattern_id()?;
    Some(if file.rotation == RotationRule::ByName { all_files_of(&id) } else { id })
}

/// A lease that is renewed until it is released, lost or dropped.
pub(super) struct PatternLease {
    id: DeliveryId,
    state: Option<AnyState>,
    heartbeat: Option<tokio::task::JoinHandle<()>>,
    lost: watch::Receiver<bool>,
}

/// How a pattern is leased.
pub(super) struct Terms<'a> {
    pub(super) id: DeliveryId,
    pub(super) lease: Duration,
    pub(super) take_over: TakeOver,
    pub(super) retries: &'a Retries,
    pub(super) meter: Arc<Meter>,
}

impl PatternLease {
    /// Waits until the lease is ours. None: the process was asked to end first.
    pub(super) async fn take(
        terms: Terms<'_>,
        state: Option<AnyState>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Option<Self>, Failure> {
        let Terms { id, lease, take_over, retries, meter } = terms;
        let (lose, lost) = watch::channel(false);
        let Some(mut store) = state else { return Ok(Some(Self { id, state: None, heartbeat: None, lost })) };
        let (mut said, mut backoff) = (false, Backoff::new(retries));
        while !*stop.borrow() {
            let asked = match store.lease(&id, lease, TakeOver::Never).await {
                Ok(Lease::Held { .. }) if take_over == TakeOver::Now => store.lease(&id, lease, TakeOver::Now).await,
                asked => asked,
            };
            let wait = match asked {
                Ok(Lease::Ours) => {
                    let heartbeat = tokio::spawn(renew(id.clone(), lease, store.clone(), lose));
                    return Ok(Some(Self { id, state: Some(store), heartbeat: Some(heartbeat), lost }));
                }
                Ok(Lease::Held { by, remaining }) => {
                    backoff.succeeded();
                    if !said {
                        tracing::info!(delivery = %id, holder = by, "standing by: another worker has the files of this pattern");
                        meter.stands_by();
                        said = true;
                    }
                    remaining.min(lease / 4).max(Duration::from_millis(10))
                }
                Err(error) => {
                    let Some(wait) = backoff.failed(std::time::Instant::now(), fastrand::f64()) else {
                        return Err(Failure::new("HX4020", format!("no lease could be taken: {error}")));
                    };
                    tracing::warn!(delivery = %id, %error, wait_ms = wait.as_millis(), "the state store is away; trying again");
                    wait
                }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }
        Ok(None)
    }

    /// Says how far its holder is: it looks through the files, or has.
    pub(super) async fn note(&self, state: WorkerState) {
        let Some(mut store) = self.state.clone() else { return };
        let note = DeliveryNote { state, exit_code: None, code: None, message: String::new() };
        if let Err(error) = store.note(&self.id, &note).await {
            tracing::warn!(delivery = %self.id, %error, "the state store did not take the note");
        }
    }

    /// Whether another worker has it.
    pub(super) fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    /// Gives it back, so that a standby need not wait for it to end.
    pub(super) async fn release(mut self) {
        if let Some(heartbeat) = self.heartbeat.take() {
            heartbeat.abort();
        }
        let Some(mut store) = self.state.take() else { return };
        let error = match tokio::time::timeout(RELEASE_LIMIT, store.release(&self.id)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the state store did not answer in time".to_owned(),
        };
        tracing::warn!(delivery = %self.id, error, "the lease could not be given back; it ends by itself");
    }
}

impl Drop for PatternLease {
    fn drop(&mut self) {
        if let Some(heartbeat) = self.heartbeat.take() {
            heartbeat.abort();
        }
    }
}

async fn renew(id: DeliveryId, lease: Duration, mut store: AnyState, lose: watch::Sender<bool>) {
    loop {
        tokio::time::sleep(lease / 3).await;
        match store.lease(&id, lease, TakeOver::Never).await {
            Ok(Lease::Ours) => {}
            Ok(Lease::Held { by, .. }) => {
                tracing::warn!(delivery = %id, holder = by, "another worker has taken the files of this pattern");
                lose.send_replace(true);
                return;
            }
            Err(error) => tracing::warn!(delivery = %id, %error, "the lease could not be renewed"),
        }
    }
}
