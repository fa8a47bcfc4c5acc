//! Offsets of groups: each member commits where it goes on, forward only, so what is committed never goes back.

use std::collections::{BTreeMap, HashMap};

use super::{Anomaly, Findings, Known};
use crate::broker::history::{Answer, Ask, History, Moment, Outcome};

#[derive(Debug, Default)]
struct Place {
    known: Vec<(Moment, i64, ())>,
    /// When each offset was first tried.
    tried: HashMap<i64, Moment>,
    /// Who was told what: process, invoked, ended, offset.
    told: Vec<(u32, Moment, Moment, Option<i64>)>,
}

pub(super) fn judge(history: &History, findings: &mut Findings) {
    for ((group, partition), place) in gather(history) {
        let known = Known::of(place.known);
        for (process, invoked, ended, offset) in place.told {
            let before = known.before(invoked).map(|(before, ())| before);
            if before.is_some_and(|before| offset.is_none_or(|offset| offset < before)) {
                findings.add(Anomaly::OffsetBack, || {
                    format!("group {group}, partition {partition}: process {process} was told {offset:?}, {before:?} was known")
                });
            }
            let Some(offset) = offset else { continue };
            if place.tried.get(&offset).is_none_or(|tried| *tried > ended) {
                findings.add(Anomaly::OffsetPhantom, || {
                    format!("group {group}, partition {partition}: process {process} was told {offset}")
                });
            }
        }
    }
}

fn gather(history: &History) -> BTreeMap<(u32, i32), Place> {
    let mut places: BTreeMap<(u32, i32), Place> = BTreeMap::new();
    for one in &history.operations {
        match (&one.ask, &one.outcome) {
            (Ask::Commit { group, partition, offset }, outcome) => {
                let place = places.entry((*group, *partition)).or_default();
                match outcome {
                    Outcome::Fail(_) => continue,
                    Outcome::Ok(_) => place.known.push((one.ended, *offset, ())),
                    Outcome::Unknown(_) => {}
                }
                let tried = place.tried.entry(*offset).or_insert(one.invoked);
                *tried = one.invoked.min(*tried);
            }
            (Ask::Committed { group, partition }, Outcome::Ok(Answer::Offset(offset))) => {
                let place = places.entry((*group, *partition)).or_default();
                place.told.push((one.process, one.invoked, one.ended, *offset));
                if let Some(offset) = offset {
                    place.known.push((one.ended, *offset, ()));
                }
            }
            _ => {}
        }
    }
    places
}
