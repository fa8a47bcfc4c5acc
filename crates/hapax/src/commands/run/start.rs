//! Starting one delivery: audit, live table, everything put together; again and again while a server is away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_engine::backoff::Backoff;
use hapax_engine::books::{Books as _, StoredDelivery};
use hapax_engine::runtime::{Control, DeliveryEnd, Stop, deliver};
use hapax_engine::source::Follow;
use hapax_engine::state::{DeliveryNote, StateStore as _};
use hapax_model::audit::Audit;
use hapax_model::position::DeliveryId;

use crate::assemble::{AnyBooks, AnyState, How, Live, Part, Place, lanes, part_of};
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

/// The live table as the last of many lanes of one sink has read it: they start one after the other, and each would ask
/// the same.
pub(super) type SharedLook = Arc<tokio::sync::Mutex<Option<(Instant, Live)>>>;

/// For how long such a look serves. Each lane reads the table again before it writes.
const LOOK_SERVES: Duration = Duration::from_secs(30);

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
        let part = self.part();
        let retries = &part.workflow.delivery.retries;
        let mut backoff = Backoff::new(retries);
        let mut stopped = control.stop.clone();
        loop {
            let failure = match self.prepare(&part).await {
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
        if let Some((_, look)) = &self.file {
            let mut look = look.lock().await;
            if let Some((_, live)) = look.as_ref().filter(|(at, _)| at.elapsed() < LOOK_SERVES) {
                return part.delivery(live, self.state.as_ref(), &self.how);
            }
            let live = self.judge(part).await?;
            *look = Some((Instant::now(), live.clone()));
            return part.delivery(&live, self.state.as_ref(), &self.how);
        }
        let live = self.judge(part).await?;
        part.delivery(&live, self.state.as_ref(), &self.how)
    }

    /// Reads the live table and judges with what it says.
    async fn judge(&self, part: &Part<'_>) -> Result<Live, Failure> {
        let live = part.live().await?;
        let audit = part.audit(Some(&live));
        may_start(&audit)?;
        self.refuse_other_lanes(part).await?;
        self.refuse_moved_progress(part).await?;
        if part.lane == 0 {
            audit.warnings.iter().for_each(|warning| tracing::warn!(workflow = part.workflow.id, "{warning}"));
        }
        Ok(live)
    }

    /// A stream that was delivered in another number of lanes would be delivered again from its beginning.
    async fn refuse_other_lanes(&self, part: &Part<'_>) -> Result<(), Failure> {
        let crate::config::Source::Generate(_) = part.source else { return Ok(()) };
        let Some(mut books) = AnyBooks::of_part(part, &self.config).await? else { return Ok(()) };
        let stored = books.deliveries().await?;
        let now: Vec<DeliveryId> = part.lanes().map(|lane| lane.id()).collect();
        let same_sink = |id: &DeliveryId| id.workflow == self.id.workflow && id.sink == self.id.sink;
        let other = stored.iter().find(|found| same_sink(&found.id) && !now.contains(&found.id));
        match other {
            Some(other) if stored.iter().all(|found| found.id != self.id) => {
                let message = format!(
                    "{} has delivered this stream up to position {}, and `lanes` is now {}: all of it would be delivered \
                     again. Write the earlier number of lanes; or, if that is meant, run `hapax reset {} --accept`",
                    other.id,
                    other.progress.bookmark.position,
                    part.lane_count(),
                    self.id.workflow
                );
                Err(Failure::new("HX5020", message).with_exit(5))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A delivery whose progress was kept in the other place would begin again from its beginning; one that was in the
    /// other place only for a while, from where it stood before.
    async fn refuse_moved_progress(&self, part: &Part<'_>) -> Result<(), Failure> {
        let (here, elsewhere) = (Place::of_part(part, &self.config), Place::elsewhere(part, &self.config));
        let Some(elsewhere) = elsewhere.filter(|place| here.as_ref() != Some(place)) else { return Ok(()) };
        // If the other place does not answer there is nothing to learn from it, and it is not needed.
        let Ok(Some(mut books)) = AnyBooks::open(&elsewhere).await else { return Ok(()) };
        let Ok(stored) = books.deliveries().await else { return Ok(()) };
        let Some(there) = stored.into_iter().find(|found| found.id == self.id) else { return Ok(()) };
        let here = match AnyBooks::of_part(part, &self.config).await? {
            Some(mut books) => books.deliveries().await?.into_iter().find(|found| found.id == self.id),
            None => None,
        };
        match moved(&self.id, here.as_ref(), &there, &elsewhere) {
            Some(message) => Err(Failure::new("HX5021", message).with_exit(5)),
            None => Ok(()),
        }
    }

    async fn note_refusal(&self, stop: &Stop) {
        let Some(mut state) = self.state.clone() else { return };
        let note = DeliveryNote {
            state: "stopped".into(),
            exit_code: Some(stop.exit_code),
            code: Some(stop.code.into()),
            message: stop.message.clone(),
        };
        if let Err(error) = state.note(&self.id, &note).await {
            tracing::warn!(delivery = %self.id, %error, "the state store did not take the note");
        }
    }
}

/// What to say if a delivery must not go on `here`, because it was delivered `there` since. Both times come from the clocks
/// of those who delivered, which a person with a configuration in hand is slower than.
fn moved(id: &DeliveryId, here: Option<&StoredDelivery>, there: &StoredDelivery, place: &Place) -> Option<String> {
    let (workflow, position) = (&id.workflow, &there.progress.bookmark.position);
    let found = match here {
        None => format!(
            "{id} has no progress where `progress` now says, but {place} holds some, up to position {position}: all of it \
             would be delivered again"
        ),
        Some(here) if here.updated_at_ms >= there.updated_at_ms => return None,
        Some(here) if here.progress.bookmark == there.progress.bookmark => return None,
        Some(here) => format!(
            "{id} is at position {} where `progress` now says, but was delivered since with its progress in {place}, which \
             is at position {position}: what lies between would be delivered again, or never",
            here.progress.bookmark.position
        ),
    };
    Some(format!(
        "{found}. Write `progress` as it was; or go on from there with `hapax reset {workflow} --to {position}`; or, if it is \
         meant to go on from here, run `hapax reset {workflow} --accept`"
    ))
}

fn may_start(audit: &Audit) -> Result<(), Failure> {
    audit.may_start().map_err(|refused| {
        Failure::new(refused.code, format!("{}; {}", refused.reason, refused.cure)).with_exit(refused.exit_code)
    })
}
