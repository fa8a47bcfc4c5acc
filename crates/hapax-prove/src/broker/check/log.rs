//! The log at the end against what was written and read: nothing lost, doubled, moved, reordered, made up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Anomaly, Findings};
use crate::broker::history::{Answer, Ask, Cleanup, History, Logged, Moment, Name, Operation, Outcome, Way};

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

/// The log of a partition, as it is at the end.
struct View<'a> {
    partition: i32,
    records: &'a [Logged],
    start: i64,
    /// Of a compacted log: the last offset of each key.
    last: Option<HashMap<u64, i64>>,
}

impl<'a> View<'a> {
    fn of(history: &'a History, partition: i32) -> Self {
        let records = history.log.get(&partition).map_or(&[][..], Vec::as_slice);
        let keys = |record: &Logged| record.name.map(|name| (name.key(), record.offset));
        let last = (history.cleanup == Cleanup::Compact).then(|| records.iter().filter_map(keys).collect());
        Self { partition, records, start: history.start(partition), last }
    }

    fn at(&self, offset: i64) -> Option<&'a Logged> {
        if self.last.is_some() {
            let found = self.records.binary_search_by_key(&offset, |record| record.offset).ok()?;
            return self.records.get(found);
        }
        self.records.get(usize::try_from(offset.checked_sub(self.start)?).ok()?)
    }

    /// Whether a record that was at this offset may be gone: it was before the start, or its key was written again.
    fn may_be_gone(&self, name: Name, offset: i64) -> bool {
        let last = self.last.as_ref().and_then(|last| last.get(&name.key()));
        offset < self.start || last.is_some_and(|last| *last > offset)
    }
}

pub(super) fn judge(history: &History, findings: &mut Findings) {
    let written = written(history);
    let mut places: HashMap<Name, (i32, i64)> = HashMap::with_capacity(written.len());
    let mut views: HashMap<i32, View<'_>> = HashMap::new();
    for partition in history.log.keys() {
        let view = View::of(history, *partition);
        judge_partition(&view, &written, &mut places, findings);
        views.insert(*partition, view);
    }
    let mut bases: HashMap<Name, i64> = HashMap::new();
    for one in &history.operations {
        match (&one.ask, &one.outcome) {
            (Ask::Produce { partition, first, way, .. }, Outcome::Ok(Answer::Appended(base))) => {
                let view = views.entry(*partition).or_insert_with(|| View::of(history, *partition));
                acknowledged(one, *base, view, &places, findings);
                let name = Name { process: one.process, number: *first };
                let before = *bases.entry(name).or_insert(*base);
                // What is in the log would not show it if both were gone.
                if *way == Way::Idempotent && before != *base {
                    findings.add(Anomaly::Moved, || format!("{name} was acknowledged at {before} and at {base}"));
                }
            }
            (Ask::Produce { way: Way::Idempotent, .. }, Outcome::Fail(why)) => {
                findings.add(Anomaly::Refused, || format!("{:?} of process {}: {why}", one.ask, one.process));
            }
            (Ask::Read { partition, from }, Outcome::Ok(Answer::Records { records, .. })) => {
                let view = views.entry(*partition).or_insert_with(|| View::of(history, *partition));
                was_read(one, *from, records, view, &written, findings);
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
    view: &View<'_>,
    written: &HashMap<Name, Written>,
    places: &mut HashMap<Name, (i32, i64)>,
    findings: &mut Findings,
) {
    let mut newest: HashMap<u32, u64> = HashMap::new();
    let (mut epoch, mut expected, partition) = (i32::MIN, view.start, view.partition);
    for record in view.records {
        let offset = record.offset;
        // What was compacted leaves offsets out, and never uses one twice.
        let wrong = if view.last.is_some() { offset < expected } else { offset != expected };
        if wrong {
            findings.add(Anomaly::Hole, || format!("partition {partition}: offset {offset} where {expected} is due"));
        }
        expected = if view.last.is_some() { offset + 1 } else { expected + 1 };
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
    view: &View<'_>,
    places: &HashMap<Name, (i32, i64)>,
    findings: &mut Findings,
) {
    let Ask::Produce { partition, first, count, way } = one.ask else { return };
    for index in 0..u64::from(count) {
        let name = Name { process: one.process, number: first + index };
        let offset = base.saturating_add_unsigned(index);
        if view.at(offset).and_then(|record| record.name) == Some(name) {
            continue;
        }
        let moment = one.ended;
        let gone = view.may_be_gone(name, offset) && view.at(offset).is_none();
        match places.get(&name) {
            None if gone => {}
            None => {
                let told = || format!("{name}, acknowledged at {offset} of {partition} (moment {moment})");
                findings.add(Anomaly::Lost, told);
            }
            // A plain producer's second try is another record with the same name.
            Some((_, place)) if way == Way::Idempotent || base < 0 => {
                let told = || format!("{name}, acknowledged at {offset} of {partition}, is at {place}");
                findings.add(Anomaly::Moved, told);
            }
            Some(_) if gone => {}
            Some(_) => {
                let told = || format!("{name}, acknowledged at {offset} of {partition}: another record is there");
                findings.add(Anomaly::Vanished, told);
            }
        }
    }
}

fn was_read(
    one: &Operation,
    from: i64,
    records: &[(i64, Option<Name>)],
    view: &View<'_>,
    written: &HashMap<Name, Written>,
    findings: &mut Findings,
) {
    let (mut expected, partition) = (from, view.partition);
    for (offset, name) in records {
        if let Some(due) = left_out(view, expected, *offset) {
            findings.add(Anomaly::Hole, || {
                format!("process {} read {offset} of {partition} where {due} is due", one.process)
            });
            return;
        }
        expected = offset + 1;
        let early = name.and_then(|name| written.get(&name)).is_some_and(|known| known.invoked > one.ended);
        if early {
            findings.add(Anomaly::Phantom, || format!("{name:?} was read before anybody wrote it"));
        }
        let now = view.at(*offset).map(|record| record.name);
        let gone = now.is_none() && name.is_some_and(|name| view.may_be_gone(name, *offset));
        if now != Some(*name) && !gone {
            findings.add(Anomaly::Vanished, || {
                format!("process {} read {name:?} at {offset} of {partition}; there is {now:?}", one.process)
            });
        }
    }
}

/// The offset that a reader should have got instead of `offset`. What compaction left in the log to the end was never away.
fn left_out(view: &View<'_>, expected: i64, offset: i64) -> Option<i64> {
    if view.last.is_none() || offset < expected {
        return (offset != expected).then_some(expected);
    }
    let next = view.records.partition_point(|record| record.offset < expected);
    view.records.get(next).map(|record| record.offset).filter(|due| *due < offset)
}
