//! The log at the end against what was written and read: nothing lost, doubled, moved, reordered, made up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Anomaly, Findings};
use crate::broker::history::{Answer, Ask, History, Logged, Moment, Name, Operation, Outcome, Way};

/// What is known of a batch, from all tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Refused,
    Unknown,
    There,
}

/// What is known of a record that somebody tried to write.
#[derive(Debug, Clone, Copy)]
struct Written {
    partition: i32,
    invoked: Moment,
    fate: Fate,
    way: Way,
}

pub(super) fn judge(history: &History, findings: &mut Findings) {
    let written = written(history);
    let mut places: HashMap<Name, (i32, i64)> = HashMap::with_capacity(written.len());
    for (partition, records) in &history.log {
        judge_partition(*partition, records, &written, &mut places, findings);
    }
    let end = Vec::new();
    for one in &history.operations {
        match (&one.ask, &one.outcome) {
            (Ask::Produce { partition, .. }, Outcome::Ok(Answer::Appended(base))) => {
                let log = history.log.get(partition).unwrap_or(&end);
                acknowledged(one, *base, log, &places, findings);
            }
            (Ask::Produce { way: Way::Idempotent, .. }, Outcome::Fail(why)) => {
                findings.add(Anomaly::Refused, || format!("{:?} of process {}: {why}", one.ask, one.process));
            }
            (Ask::Read { partition, from }, Outcome::Ok(Answer::Records { records, .. })) => {
                let log = history.log.get(partition).unwrap_or(&end);
                was_read(one, (*partition, *from), records, log, &written, findings);
            }
            _ => {}
        }
    }
}

fn written(history: &History) -> HashMap<Name, Written> {
    let mut written: HashMap<Name, Written> = HashMap::new();
    for one in &history.operations {
        let Ask::Produce { partition, first, count, way } = one.ask else { continue };
        let fate = match one.outcome {
            Outcome::Ok(_) => Fate::There,
            Outcome::Unknown(_) => Fate::Unknown,
            Outcome::Fail(_) => Fate::Refused,
        };
        for number in first..first + u64::from(count) {
            let name = Name { process: one.process, number };
            match written.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(Written { partition, invoked: one.invoked, fate, way });
                }
                Entry::Occupied(mut place) => {
                    let known = place.get_mut();
                    known.invoked = known.invoked.min(one.invoked);
                    if known.fate == Fate::Refused || fate == Fate::There {
                        known.fate = fate;
                    }
                }
            }
        }
    }
    written
}

fn judge_partition(
    partition: i32,
    records: &[Logged],
    written: &HashMap<Name, Written>,
    places: &mut HashMap<Name, (i32, i64)>,
    findings: &mut Findings,
) {
    let mut newest: HashMap<u32, u64> = HashMap::new();
    let mut epoch = i32::MIN;
    for (expected, record) in (0_i64..).zip(records) {
        let offset = record.offset;
        if offset != expected {
            findings.add(Anomaly::Hole, || format!("partition {partition}: offset {offset} where {expected} is due"));
        }
        if record.leader_epoch < epoch {
            let found = record.leader_epoch;
            findings.add(Anomaly::EpochBack, || format!("partition {partition}, {offset}: {found} after {epoch}"));
        }
        epoch = epoch.max(record.leader_epoch);
        let Some((name, way)) = explained(partition, record, written, findings) else { continue };
        match places.entry(name) {
            Entry::Vacant(place) => {
                place.insert((partition, offset));
            }
            Entry::Occupied(place) => {
                if way == Way::Idempotent {
                    let before = place.get().1;
                    findings.add(Anomaly::Doubled, || format!("{name} at {before} and {offset} of {partition}"));
                }
                continue;
            }
        }
        if way == Way::Idempotent {
            let newest = newest.entry(name.process).or_insert(name.number);
            if name.number < *newest {
                let after = *newest;
                findings.add(Anomaly::Reordered, || format!("{name} at {offset} of {partition}, after {after}"));
            }
            *newest = name.number.max(*newest);
        }
    }
}

/// The name of a record, and how it was written; a record without both is nobody's.
fn explained(
    partition: i32,
    record: &Logged,
    written: &HashMap<Name, Written>,
    findings: &mut Findings,
) -> Option<(Name, Way)> {
    let offset = record.offset;
    let Some(name) = record.name else {
        findings.add(Anomaly::Phantom, || format!("the value at {offset} of {partition} is no name"));
        return None;
    };
    let Some(known) = written.get(&name).filter(|known| known.partition == partition) else {
        findings.add(Anomaly::Phantom, || format!("{name} at {offset} of {partition}: nobody wrote that there"));
        return None;
    };
    if known.fate == Fate::Refused {
        findings.add(Anomaly::Phantom, || format!("{name} at {offset} of {partition}: its write was refused"));
    }
    Some((name, known.way))
}

fn acknowledged(
    one: &Operation,
    base: i64,
    log: &[Logged],
    places: &HashMap<Name, (i32, i64)>,
    findings: &mut Findings,
) {
    let Ask::Produce { partition, first, count, way } = one.ask else { return };
    for index in 0..u64::from(count) {
        let name = Name { process: one.process, number: first + index };
        let offset = base.saturating_add_unsigned(index);
        if at(log, offset).and_then(|record| record.name) == Some(name) {
            continue;
        }
        let moment = one.ended;
        match places.get(&name) {
            None => {
                let told = || format!("{name}, acknowledged at {offset} of {partition} (moment {moment})");
                findings.add(Anomaly::Lost, told);
            }
            // A plain producer's second try is another record with the same name.
            Some((_, place)) if way == Way::Idempotent || base < 0 => {
                let told = || format!("{name}, acknowledged at {offset} of {partition}, is at {place}");
                findings.add(Anomaly::Moved, told);
            }
            Some(_) => {
                let told = || format!("{name}, acknowledged at {offset} of {partition}: another record is there");
                findings.add(Anomaly::Vanished, told);
            }
        }
    }
}

fn at(log: &[Logged], offset: i64) -> Option<&Logged> {
    log.get(usize::try_from(offset).ok()?)
}

fn was_read(
    one: &Operation,
    (partition, from): (i32, i64),
    records: &[(i64, Option<Name>)],
    log: &[Logged],
    written: &HashMap<Name, Written>,
    findings: &mut Findings,
) {
    for (expected, (offset, name)) in (from..).zip(records) {
        if *offset != expected {
            findings.add(Anomaly::Hole, || {
                format!("process {} read {offset} of {partition} where {expected} is due", one.process)
            });
            return;
        }
        let early = name.and_then(|name| written.get(&name)).is_some_and(|known| known.invoked > one.ended);
        if early {
            findings.add(Anomaly::Phantom, || format!("{name:?} was read before anybody wrote it"));
        }
        let now = at(log, *offset).map(|record| record.name);
        if now != Some(*name) {
            findings.add(Anomaly::Vanished, || {
                format!("process {} read {name:?} at {offset} of {partition}; there is {now:?}", one.process)
            });
        }
    }
}
