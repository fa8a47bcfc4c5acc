//! What an earlier life of the process held against an input of this delivery.
//!
//! Reads: the state store, once after the claim. Writes: the pulse, which keeps the input from being run again; the
//! store, once the input is behind us. Invariant: only a verdict, or the third life that ended over one input, sets it
//! aside; a suspicion that a crash left behind does not. Not here: who writes suspicions (the binary's watchdog).

use hapax_model::position::Bookmark;

use super::{Control, Settings};
use crate::pulse::Verdict;
use crate::state::{StateStore, Suspicion};

/// After so many lives that ended while a program ran on one input, the input is the reason.
const LIVES_MAX: u32 = 3;

/// Recalls what was written down, if it is about an input from `from` on.
pub(super) async fn recall<T: StateStore>(
    settings: &Settings,
    state: Option<&mut T>,
    control: &Control,
    from: &Bookmark,
) {
    let Some(state) = state else { return };
    let id = &settings.id;
    let suspicion = match state.suspicion(id).await {
        Ok(Some(suspicion)) => suspicion,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(delivery = %id, %error, "what is suspected of its inputs could not be read");
            return;
        }
    };
    let order = |at: &Bookmark| (at.incarnation.number, at.position);
    if order(&suspicion.at) < order(from) {
        forget(settings, state).await;
        return;
    }
    let Suspicion { at, lives, verdict } = suspicion;
    let verdict = verdict.or_else(|| (lives >= LIVES_MAX).then_some(Verdict::Fatal));
    control.meter.pulse().suspect(at.clone(), lives);
    match verdict {
        Some(verdict) => {
            tracing::warn!(delivery = %id, position = %at.position, verdict = verdict.name(),
                "an input that was set aside becomes a dead letter without being transformed again");
            control.meter.pulse().set_aside(at, verdict);
        }
        None => tracing::warn!(delivery = %id, position = %at.position, lives,
            "the process ended while it transformed this input; it is transformed again"),
    }
}

/// Nothing is held against any input any more.
pub(super) async fn forget<T: StateStore>(settings: &Settings, state: &mut T) {
    if let Err(error) = state.clear_suspicion(&settings.id).await {
        tracing::warn!(delivery = %settings.id, %error, "a suspicion that is over could not be removed");
    }
}
