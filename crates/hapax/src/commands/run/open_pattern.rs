//! Begins to read a pattern: takes its lease, then asks its target how far its lanes are; again and again while either is away.

use std::sync::Arc;
use std::time::Instant;

use hapax_engine::backoff::Backoff;
use hapax_engine::runtime::Meter;
use hapax_engine::source::Follow;
use hapax_model::delivery_state::WorkerState;
use hapax_model::position::DeliveryId;
use tokio::sync::watch;

use super::files::{Files, FirstFiles, first_files};
use super::pattern_lease::{PatternLease, RELEASE_LIMIT, Terms, lease_of_pattern};
use crate::assemble::{AnyState, How, part_of};
use crate::config::{Config, Source};
use crate::exit::Failure;

/// All that is needed to open a pattern.
pub(super) struct OpenPattern {
    pub(super) config: Arc<Config>,
    /// Workflow, sink and, as the lane, the pattern itself.
    pub(super) id: DeliveryId,
    pub(super) meter: Arc<Meter>,
    pub(super) state: Option<AnyState>,
    pub(super) how: How,
    pub(super) stop: watch::Receiver<bool>,
    /// After how many reloads it was asked for.
    pub(super) round: u64,
}

/// What came of it.
pub(super) struct OpenedPattern {
    pub(super) id: DeliveryId,
    /// After how many reloads it was asked for.
    pub(super) round: u64,
    /// None: the process was asked to end first.
    pub(super) files: Result<Option<Files>, Failure>,
}

impl OpenPattern {
    pub(super) async fn run(mut self) -> OpenedPattern {
        let mut stop = self.stop.clone();
        // Who is asked to end does not wait for a database; a lease that was taken meanwhile ends by itself.
        let asked = async move {
            stop.wait_for(|stop| *stop).await.ok();
            tokio::time::sleep(RELEASE_LIMIT).await;
        };
        let files = tokio::select! {
            files = self.open() => files,
            () = asked => {
                tracing::warn!(delivery = %self.id, "asked to end, and the state store or the target did not answer: ended without");
                Ok(None)
            }
        };
        OpenedPattern { id: self.id, round: self.round, files }
    }

    /// `None`: the process was asked to end first.
    async fn open(&mut self) -> Result<Option<Files>, Failure> {
        let config = Arc::clone(&self.config);
        let part = part_of(&config, &self.id).expect("the id is one of this configuration's");
        let delivery = &part.workflow.delivery;
        // Before anything is waited for: what waits, waits with the files that it found.
        let seen = match part.source {
            Source::File(file) => first_files(file),
            Source::Generate(_) => FirstFiles::new(),
        };
        // Where the pattern is a lane's own name, the two leases are two.
        let terms = Terms {
            id: lease_of_pattern(&part).unwrap_or_else(|| self.id.clone()),
            lease: delivery.lease,
            take_over: self.how.take_over,
            retries: &delivery.retries,
            meter: Arc::clone(&self.meter),
        };
        let Some(mut lease) = PatternLease::take(terms, self.state.clone(), &mut self.stop).await? else {
            return Ok(None);
        };
        // Many files take long: who asks meanwhile is told.
        lease.note(WorkerState::Starting).await;
        let mut backoff = Backoff::new(&delivery.retries);
        while !*self.stop.borrow() {
            let failure = match Files::of(&part, &config, seen.clone(), lease).await {
                Ok(files) => {
                    files.note_opened().await;
                    return Ok(Some(files));
                }
                Err((failure, kept)) => {
                    lease = kept;
                    failure
                }
            };
            // Who asks for what is there now is told soon; who follows may wait for the target.
            let told = self.how.follow == Follow::No && backoff.attempts() + 1 >= delivery.retries.max_attempts;
            let patient = failure.may_pass && part.is_remote() && !told;
            let wait = backoff.failed(Instant::now(), fastrand::f64()).filter(|_| patient);
            let Some(wait) = wait else {
                lease.release().await;
                return Err(failure);
            };
            self.meter.waits_to_start(failure.code.unwrap_or("HX5009"), &failure.message);
            tracing::warn!(delivery = %self.id, code = failure.code, error = failure.message, attempt = backoff.attempts(),
                wait_ms = wait.as_millis(), "cannot look for files yet; trying again");
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = self.stop.wait_for(|stop| *stop) => {}
            }
        }
        lease.release().await;
        Ok(None)
    }
}
