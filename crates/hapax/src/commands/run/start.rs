//! Starting one delivery: audit, live table, everything put together; again and again while a server is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_engine::backoff::Backoff;
use hapax_engine::runtime::{Control, DeliveryEnd, Stop, deliver};
use hapax_engine::source::Follow;
use hapax_engine::state::{DeliveryNote, StateStore as _};
use hapax_model::audit::Audit;
use hapax_model::delivery_state::WorkerState;
use hapax_model::position::DeliveryId;

use super::moved::{Moved, refuse_other_lanes};
use crate::assemble::{AnyState, How, Live, Part, lanes, part_of};
use crate::config::Config;
use crate::config::checked::FileLane;
use crate::exit::Failure;

/// All that a delivery needs to start by itself.
pub(super) struct Start {
    pub(super) config: Arc<Config>,
    pub(super) id: DeliveryId,
    /// The file, if the source is a pattern, and what its other files have found out.
    pub(super) file: Option<(FileLane, SharedLook)>,
    pub(super) state: Option<AnyState>,
    pub(super) how: How,
}

/// What a start has seen, for all lanes of its sink.
pub(super) struct Look {
    live: Live,
    moved: Moved,
}

/// What the last of many lanes of one sink has seen: they start one after the other, and each would ask the same.
pub(super) type SharedLook = Arc<tokio::sync::Mutex<Option<(Instant, Arc<Look>)>>>;

/// For how long such a look serves. Each lane reads the table again before it writes.
const LOOK_SERVES: Duration = Duration::from_secs(30);

/// However long the back-off is, a target that is away is looked for so often.
const LOOK_AGAIN_WITHIN: Duration = Duration::from_secs(5);

type Ready = hapax_engine::runtime::Delivery<crate::assemble::AnySource, crate::assemble::AnySink, AnyState>;

impl Start {
    pub(super) async fn run(self, control: Control) -> DeliveryEnd {
        match Box::pin(self.ready(&control)).await {
            Ok(Some(delivery)) => deliver(delivery, control).await,
            Ok(None) => DeliveryEnd::Drained,
            Err(stop) => {
                control.meter.refused(&stop);
                self.note_refusal(&stop).await;
                DeliveryEnd::Stopped(stop)
            }
        }
    }

    fn part(&self) -> Part<'_> {
        let part = match &self.file {
            Some((lane, _)) => part_of(&self.config, &self.id).map(|part| Part { file: Some(lane), ..part }),
            None => lanes(&self.config).find(|part| part.id() == self.id),
        };
        part.expect("the id is one of this configuration's")
    }

    /// Prepares, again and again while the target is away. `None`: the process was asked to end first.
    async fn ready(&self, control: &Control) -> Result<Option<Ready>, Stop> {
        let seen = self.part().file_seen();
        let part = Part { seen: seen.as_ref(), ..self.part() };
        let retries = &part.workflow.delivery.retries;
        let mut backoff = Backoff::new(retries);
        let mut stopped = control.stop.clone();
        loop {
            // A look that waits for a database is dropped when the process is asked to end: it has claimed nothing.
            let prepared = tokio::select! {
                prepared = self.prepare(&part) => prepared,
                _ = stopped.wait_for(|stop| *stop) => return Ok(None),
            };
            let failure = match prepared {
                Ok(ready) => return Ok(Some(ready)),
                Err(failure) => failure,
            };
            // Who asks for what is there now is told soon; who follows may wait for the target.
            let told = self.how.follow == Follow::No && backoff.attempts() + 1 >= retries.max_attempts;
            let wait = if failure.may_pass && part.is_remote() {
                backoff.failed(Instant::now(), fastrand::f64())
            } else {
                None
            };
            let Some(wait) = wait.filter(|_| !told) else { return Err(failure.into()) };
            // Another try is only a look: one that comes back is noticed soon.
            let wait = wait.min(LOOK_AGAIN_WITHIN);
            control.meter.waits_to_start(failure.code.unwrap_or("HX5009"), &failure.message);
            tracing::warn!(delivery = %self.id, code = failure.code, error = failure.message, attempt = backoff.attempts(),
                wait_ms = wait.as_millis(), "cannot start yet; trying again");
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = stopped.wait_for(|stop| *stop) => return Ok(None),
            }
        }
    }

    /// Judges the guarantee, reads the live table, judges again with what it says, puts everything together.
    async fn prepare(&self, part: &Part<'_>) -> Result<Ready, Failure> {
        // A promise that cannot be kept is refused as `check` refuses it, whatever the table is like.
        if !part.table_decides_mode() {
            may_start(&part.audit(None))?;
        }
        let look = match &self.file {
            Some((_, shared)) => self.look_together(part, shared).await?,
            None => self.look(part).await?,
        };
        look.moved.refuse(&self.id)?;
        part.delivery(&look.live, self.state.as_ref(), &self.how)
    }

    /// What another lane has seen a moment ago, or else a look of our own, for the others too.
    async fn look_together(&self, part: &Part<'_>, shared: &SharedLook) -> Result<Arc<Look>, Failure> {
        let mut shared = shared.lock().await;
        if let Some((_, look)) = shared.as_ref().filter(|(at, _)| at.elapsed() < LOOK_SERVES) {
            return Ok(Arc::clone(look));
        }
        let look = self.look(part).await?;
        *shared = Some((Instant::now(), Arc::clone(&look)));
        Ok(look)
    }

    /// Reads the live table and judges with what it says.
    async fn look(&self, part: &Part<'_>) -> Result<Arc<Look>, Failure> {
        let live = part.live().await?;
        let audit = part.audit(Some(&live));
        may_start(&audit)?;
        refuse_other_lanes(part, &self.id, &self.config).await?;
        let moved = Moved::look(part, &self.config).await?;
        if part.lane == 0 {
            audit.warnings.iter().for_each(|warning| tracing::warn!(workflow = part.workflow.id, "{warning}"));
        }
        Ok(Arc::new(Look { live, moved }))
    }

    async fn note_refusal(&self, stop: &Stop) {
        let Some(mut state) = self.state.clone() else { return };
        let note = DeliveryNote {
            state: WorkerState::Stopped,
            exit_code: Some(stop.exit_code),
            code: Some(stop.code.into()),
            message: stop.message.clone(),
        };
        if let Err(error) = state.note(&self.id, &note).await {
            tracing::warn!(delivery = %self.id, %error, "the state store did not take the note");
        }
    }
}

fn may_start(audit: &Audit) -> Result<(), Failure> {
    audit.may_start().map_err(|refused| {
        Failure::new(refused.code, format!("{}; {}", refused.reason, refused.cure)).with_exit(refused.exit_code)
    })
}
