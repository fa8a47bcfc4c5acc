//! Steps 0 and 1: look without fencing, refuse what must be refused, then claim and compare again.

use hapax_model::contract::{Contract, TARGET};
use hapax_model::delivery_state::WorkerState;
use hapax_model::fault::{self, Bug};
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::{Progress, Witness, WitnessVerdict, decide_witness};

use super::{Control, Delivery, Settings, Stop, point, stopping, wait_for_target};
use crate::backoff::Backoff;
use crate::sink::{Claim, Reaction, SinkError, TransactionalSink};
use crate::source::{Follow, Held, Source, SourceError, SourceReaction, StartAt};
use crate::state::StateStore;

/// The code of a source that cannot be read now.
const SOURCE_AWAY: &str = "HX3001";

/// What the claim found: the authority from here on.
#[derive(Debug, Clone)]
pub(super) struct Claimed {
    pub(super) progress: Progress,
}

/// Looks, claims and assigns the source, with retries. `None`: the process was asked to end first.
pub(super) async fn look_and_claim<S: Source, K: TransactionalSink, T: StateStore>(
    settings: &Settings,
    source: &mut S,
    sink: &mut K,
    mut state: Option<&mut T>,
    control: &Control,
) -> Result<Option<Claimed>, Stop> {
    let mut backoff = Backoff::new(&settings.retries);
    while !stopping(control) {
        let failure = match try_once(settings, source, sink, state.as_deref_mut()).await {
            Ok(claimed) => {
                let Progress { totals, epoch, bookmark, .. } = &claimed.progress;
                control.meter.claimed(*totals, *epoch, bookmark, source.extent());
                return Ok(Some(claimed));
            }
            Err(Refusal::Stop(stop)) => return Err(stop),
            Err(Refusal::Retry(stop)) => stop,
        };
        control.meter.set_state(WorkerState::Waiting);
        control.meter.troubled(failure.code, &failure.message);
        control.meter.retried();
        // Who asks for what is there now is told soon that there is nothing; who follows a file may wait for it.
        let told = settings.follow == Follow::No
            && failure.code == SOURCE_AWAY
            && backoff.attempts() >= settings.retries.max_attempts.saturating_sub(1);
        let wait = backoff.failed(std::time::Instant::now(), fastrand::f64()).filter(|_| !told);
        let Some(wait) = wait else { return Err(failure) };
        tracing::warn!(delivery = %settings.id, code = failure.code, error = failure.message, attempt = backoff.attempts(),
            wait_ms = wait.as_millis(), "cannot start yet; trying again");
        wait_for_target(control, sink, wait, failure.code).await;
    }
    Ok(None)
}

enum Refusal {
    Stop(Stop),
    Retry(Stop),
}

impl From<SinkError> for Refusal {
    fn from(error: SinkError) -> Self {
        let stop = Stop::of_sink(&error);
        match error.reaction() {
            Reaction::Retry | Reaction::InDoubt => Self::Retry(stop),
            Reaction::Fenced | Reaction::Stop(_) => Self::Stop(stop),
        }
    }
}

impl From<SourceError> for Refusal {
    fn from(error: SourceError) -> Self {
        match error.reaction() {
            SourceReaction::Retry => Self::Retry(Stop::new(1, error.code(), error.to_string())),
            SourceReaction::StopForPerson => Self::Stop(Stop::new(5, error.code(), error.to_string())),
        }
    }
}

/// What looking without fencing has found.
struct Seen {
    contract: Contract,
    found: Option<Progress>,
    witness: Option<Witness>,
    /// Where the delivery would begin.
    start: Bookmark,
}

/// Where a start would begin, found by looking alone: nothing is claimed or fenced, and nothing written if source, sink and
/// state were opened to look. None where it would try again.
///
/// # Errors
/// Why it would stop for a person.
pub async fn foresee_start<S: Source, K: TransactionalSink, T: StateStore>(
    delivery: &mut Delivery<S, K, T>,
) -> Result<Option<Bookmark>, Stop> {
    let Delivery { settings, source, sink, state } = delivery;
    match look(settings, source, sink, state.as_mut()).await {
        Ok(Seen { start, .. }) => Ok(Some(start)),
        Err(Refusal::Stop(stop)) => Err(stop),
        Err(Refusal::Retry(_)) => Ok(None),
    }
}

async fn look<S: Source, K: TransactionalSink, T: StateStore>(
    settings: &Settings,
    source: &mut S,
    sink: &mut K,
    state: Option<&mut T>,
) -> Result<Seen, Refusal> {
    let identity = sink.inspect().await?;
    let contract = settings.contract.clone().with(TARGET, identity.0);
    let found = sink.look().await?;
    let witness = match state {
        Some(state) => {
            state.load_witness(&settings.id).await.map_err(|e| Refusal::Retry(Stop::new(1, "HX4020", e.to_string())))?
        }
        None => None,
    };
    if found.is_none() {
        refuse_read_elsewhere(settings, source, sink, &contract).await?;
    }
    let start = match &found {
        Some(progress) => progress.bookmark.clone(),
        None => match (source.start(settings.start).await, further(None, witness.as_ref())) {
            (Err(SourceError::Gap { what }), Some(seen)) => {
                return Err(range_lost(settings, None, seen, "0", &format!(": {what}")));
            }
            (started, _) => started?,
        },
    };
    compare(settings, found.as_ref(), &contract, witness.as_ref(), &start, source).await?;
    Ok(Seen { contract, found, witness, start })
}

async fn try_once<S: Source, K: TransactionalSink, T: StateStore>(
    settings: &Settings,
    source: &mut S,
    sink: &mut K,
    state: Option<&mut T>,
) -> Result<Claimed, Refusal> {
    let Seen { contract, found, witness, start } = look(settings, source, sink, state).await?;
    point("look.done");

    let claim = Claim::Take { start, contract: contract.clone(), session: settings.session.clone() };
    let claimed = sink.init_transactions(&claim).await?;
    let progress = match found.filter(|_| fault::planted(Bug::ProgressBeforeFence)) {
        Some(looked_at) => Progress { generation: claimed.generation, ..looked_at },
        None => claimed,
    };
    compare(settings, Some(&progress), &contract, witness.as_ref(), &progress.bookmark, source).await?;
    say_went_back(settings, &progress, witness.as_ref());
    point("claim.answered");

    let mut resume = progress.bookmark.clone();
    if fault::planted(Bug::LatestAtEveryStart) && settings.start == StartAt::Latest {
        resume = source.start(StartAt::Latest).await?;
    }
    source.assign(&resume, settings.follow).await?;
    point("source.assigned");
    tracing::info!(delivery = %settings.id, generation = progress.generation.0, epoch = progress.epoch.0, position = %resume,
        "claimed");
    Ok(Claimed { progress: Progress { bookmark: resume, ..progress } })
}

/// No progress under this id, but another id has some with the same source and target: a renamed workflow. Or another lane
/// of the same workflow has read what this one would read: its path was changed, or what lies there was moved.
async fn refuse_read_elsewhere<S: Source, K: TransactionalSink>(
    settings: &Settings,
    source: &mut S,
    sink: &mut K,
    contract: &Contract,
) -> Result<(), Refusal> {
    for (other, progress) in sink.others().await? {
        let same_sink = other.workflow == settings.id.workflow && other.sink == settings.id.sink;
        if same_sink && source.reads_what(&other.lane, &progress.bookmark).await? {
            return Err(Refusal::Stop(Stop::new(5, "HX3014", read_elsewhere(&settings.id, &other, &progress))));
        }
        let configured = settings.configured.iter().any(|(w, s)| *w == other.workflow && *s == other.sink);
        if !configured && progress.contract.same_ends(contract) {
            let id = &settings.id;
            let message = format!(
                "{id} has no progress, but {other} has delivered the same source into the same target up to position {}. \
                 If the workflow was renamed, run `hapax reset {} --adopt {}`; if it is meant to deliver everything again, \
                 run `hapax reset {} --accept`",
                progress.bookmark.position, id.workflow, other.workflow, id.workflow
            );
            return Err(Refusal::Stop(Stop::new(5, "HX4017", message)));
        }
    }
    Ok(())
}

fn read_elsewhere(id: &DeliveryId, other: &DeliveryId, progress: &Progress) -> String {
    let DeliveryId { workflow, lane, .. } = id;
    format!(
        "{id} has no progress, but the lane \"{}\" has delivered the same data up to position {}: the path was changed, or \
         what lies there was moved or has two names, and all of it would be delivered again. Write the path as it was; \
         or go on from there under the new name: `hapax reset {workflow} --lane {lane:?} --adopt-lane {:?}`; or, if it is meant to \
         be delivered again: `hapax reset {workflow} --lane {lane:?} --accept`",
        other.lane, progress.bookmark.position, other.lane
    )
}

/// Look's comparisons, repeated after the claim: contract, witness, and whether the source still holds the position.
async fn compare<S: Source>(
    settings: &Settings,
    progress: Option<&Progress>,
    contract: &Contract,
    witness: Option<&Witness>,
    resume: &Bookmark,
    source: &mut S,
) -> Result<(), Refusal> {
    if let Some(progress) = progress {
        let differences = progress.contract.differences(contract);
        if !differences.is_empty() {
            return Err(SinkError::ContractChanged { id: settings.id.clone(), differences }.into());
        }
    }
    let id = &settings.id;
    match source.hold(resume).await? {
        Held::Yes => {}
        Held::OtherIncarnation { now } => {
            if let Some(seen) = further(progress, witness) {
                let what = format!(": the source is no longer what it was, it is now {now}");
                return Err(range_lost(settings, progress, seen, &resume.to_string(), &what));
            }
            let message = format!(
                "the source of {id} is no longer what it was: progress is at {resume}, the source is now {now}. \
                 If that is right, run `hapax reset {} --accept` to go on with what was not read, from its beginning",
                id.workflow
            );
            return Err(Refusal::Stop(Stop::new(5, "HX3004", message)));
        }
        Held::Copied { now } => {
            let (cure, back) = (copy_cure(id, resume), further(progress, witness).map(also_went_back));
            let message = format!(
                "the source of {id} is no longer what it was: progress is at {resume}, the source is now {now}. {cure}{}",
                back.unwrap_or_default()
            );
            return Err(Refusal::Stop(Stop::new(5, "HX3004", message)));
        }
        Held::Gone { missing } => {
            if let Some(seen) = further(progress, witness) {
                return Err(range_lost(settings, progress, seen, &resume.to_string(), &format!(": {missing}")));
            }
            let message = format!("the source of {id} no longer holds what comes next: {missing}. {}", gap_cure(id));
            return Err(Refusal::Stop(Stop::new(5, "HX3002", message)));
        }
    }
    went_back(settings, progress, witness, resume, source).await
}

/// What a person can do about inputs that are gone.
pub(super) fn gap_cure(id: &DeliveryId) -> String {
    format!(
        "Put that right, or go on with what is there now: `hapax reset {} --accept` (with `--dry-run` it only says where it \
         would go on, and what it gives up)",
        id.workflow
    )
}

/// What a person can do about a source that is a copy of what it was.
pub(super) fn copy_cure(id: &DeliveryId, at: &Bookmark) -> String {
    format!(
        "If that is right, run `hapax reset {} --accept`: it goes on at byte {}, behind what was read, and delivers nothing again",
        id.workflow, at.position
    )
}

fn also_went_back(seen: &Witness) -> String {
    format!(
        ". The target went back too: it was seen at epoch {} (position {}); what lies between is read from the copy, as far as \
         that reaches",
        seen.epoch, seen.bookmark
    )
}

/// The target was restored to an older copy: rewinding is right if the source still holds the whole range.
async fn went_back<S: Source>(
    settings: &Settings,
    progress: Option<&Progress>,
    witness: Option<&Witness>,
    resume: &Bookmark,
    source: &mut S,
) -> Result<(), Refusal> {
    let Some(seen) = further(progress, witness) else { return Ok(()) };
    // Without progress the source is asked, too, whether its beginning leads to where the delivery was seen.
    let missing = if progress.is_none() && settings.start != StartAt::Earliest {
        String::new()
    } else {
        match source.hold_range(resume, &seen.bookmark).await? {
            Held::Yes => return Ok(()),
            Held::OtherIncarnation { now } | Held::Copied { now } => format!(": the source is now {now}"),
            Held::Gone { missing } => format!(": {missing}"),
        }
    };
    Err(range_lost(settings, progress, seen, &resume.to_string(), &missing))
}

/// Where the delivery was seen, if that is further than progress is.
fn further<'a>(progress: Option<&Progress>, witness: Option<&'a Witness>) -> Option<&'a Witness> {
    witness.filter(|_| decide_witness(progress, witness) == WitnessVerdict::WentBack)
}

fn range_lost(
    settings: &Settings,
    progress: Option<&Progress>,
    seen: &Witness,
    resume: &str,
    missing: &str,
) -> Refusal {
    let id = &settings.id;
    let message = format!(
        "the target of {id} went back: it was seen at epoch {} (position {}), now it is at epoch {} (position {resume}), \
         and the range between cannot be read again{missing}. Restore the target, or accept the gap with \
         `hapax reset {} --accept`",
        seen.epoch,
        seen.bookmark,
        progress.map_or(0, |p| p.epoch.0),
        id.workflow
    );
    Refusal::Stop(Stop::new(5, "HX4018", message))
}

/// Said once, after the claim: until then another worker may still deliver what is missing.
fn say_went_back(settings: &Settings, progress: &Progress, witness: Option<&Witness>) {
    if let Some(seen) = further(Some(progress), witness) {
        tracing::warn!(delivery = %settings.id, was_at_epoch = seen.epoch.0, was_at = %seen.bookmark,
            goes_back_to_epoch = progress.epoch.0, goes_back_to = %progress.bookmark,
            "the target went back, as after a restored backup: rewinding");
    }
}
