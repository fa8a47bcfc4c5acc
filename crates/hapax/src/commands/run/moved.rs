//! Progress that is kept in another place than before, or in another number of lanes. Its delivery would begin again from its beginning; one that was in
//! the other place only for a while, from where it stood before.

use std::collections::BTreeMap;

use hapax_engine::books::{Books as _, StoredDelivery};
use hapax_model::position::DeliveryId;

use crate::assemble::{AnyBooks, Part, Place, Purpose};
use crate::config::{Config, Source};
use crate::exit::Failure;

/// The deliveries of one sink, of any lane, that must not go on here, and what to say of each.
#[derive(Debug, Default)]
pub(in crate::commands) struct Moved(BTreeMap<DeliveryId, String>);

impl Moved {
    /// Compares the two places.
    pub(in crate::commands) async fn look(part: &Part<'_>, config: &Config) -> Result<Self, Failure> {
        let (here, elsewhere) = (Place::of_part(part, config), Place::elsewhere(part, config));
        let Some(elsewhere) = elsewhere.filter(|place| here.as_ref() != Some(place)) else {
            return Ok(Self::default());
        };
        // If the other place does not answer there is nothing to learn from it, and it is not needed.
        let Ok(Some(mut books)) = AnyBooks::open(&elsewhere, Purpose::Look).await else { return Ok(Self::default()) };
        let Ok(mut there) = books.deliveries().await else { return Ok(Self::default()) };
        let of = part.id();
        there.retain(|found| found.id.workflow == of.workflow && found.id.sink == of.sink);
        if there.is_empty() {
            return Ok(Self::default());
        }
        let here = match AnyBooks::of_part(part, config, Purpose::Look).await? {
            Some(mut books) => books.deliveries().await?,
            None => Vec::new(),
        };
        let here: BTreeMap<&DeliveryId, &StoredDelivery> = here.iter().map(|found| (&found.id, found)).collect();
        let several = part.file.is_some() || part.lane_count() > 1;
        let told = |there: &StoredDelivery| {
            let id = &there.id;
            let found = difference(here.get(id).copied(), there, &elsewhere)?;
            // Each lane has a position of its own: a command without its name would move them all to this one.
            let which = if several { format!("{} --lane {:?}", id.workflow, id.lane) } else { id.workflow.clone() };
            Some((id.clone(), format!("{found}. {}", cure(&which, there))))
        };
        Ok(Self(there.iter().filter_map(told).collect()))
    }

    /// Refuses to start one of them.
    pub(in crate::commands) fn refuse(&self, id: &DeliveryId) -> Result<(), Failure> {
        match self.0.get(id) {
            Some(message) => Err(Failure::new("HX5021", message.clone()).with_exit(5)),
            None => Ok(()),
        }
    }
}

/// A stream that was delivered in another number of lanes would be delivered again from its beginning.
pub(in crate::commands) async fn refuse_other_lanes(
    part: &Part<'_>,
    id: &DeliveryId,
    config: &Config,
) -> Result<(), Failure> {
    let Source::Generate(_) = part.source else { return Ok(()) };
    let Some(mut books) = AnyBooks::of_part(part, config, Purpose::Look).await? else { return Ok(()) };
    let stored = books.deliveries().await?;
    let now: Vec<DeliveryId> = part.lanes().map(|lane| lane.id()).collect();
    let same_sink = |other: &DeliveryId| other.workflow == id.workflow && other.sink == id.sink;
    let other = stored.iter().find(|found| same_sink(&found.id) && !now.contains(&found.id));
    match other {
        Some(other) if stored.iter().all(|found| found.id != *id) => {
            let message = format!(
                "{} has delivered this stream up to position {}, and `lanes` is now {}: all of it would be delivered \
                 again. Write the earlier number of lanes; or, if that is meant, run `hapax reset {} --accept`",
                other.id,
                other.progress.bookmark.position,
                part.lane_count(),
                id.workflow
            );
            Err(Failure::new("HX5020", message).with_exit(5))
        }
        Some(_) | None => Ok(()),
    }
}

/// What differs, if the delivery must not go on here. Both times come from the clocks of those who delivered, which a person
/// who changes a configuration is slower than.
fn difference(here: Option<&StoredDelivery>, there: &StoredDelivery, place: &Place) -> Option<String> {
    let (id, position) = (&there.id, &there.progress.bookmark.position);
    match here {
        None => Some(format!(
            "{id} has no progress where `progress` now says, but {place} holds some, up to position {position}: all of it \
             would be delivered again"
        )),
        Some(here) if here.updated_at_ms >= there.updated_at_ms => None,
        Some(here) if here.progress.bookmark == there.progress.bookmark => None,
        Some(here) => Some(format!(
            "{id} is at position {} where `progress` now says, but was delivered since with its progress in {place}, which \
             is at position {position}: what lies between would be delivered again, or never",
            here.progress.bookmark.position
        )),
    }
}

fn cure(which: &str, there: &StoredDelivery) -> String {
    let position = &there.progress.bookmark.position;
    format!(
        "Write `progress` as it was; or go on from there with `hapax reset {which} --to {position}`; or, if it is meant to go on \
         from here, run `hapax reset {which} --accept`"
    )
}
