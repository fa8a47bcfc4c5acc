//! Starts of logs: never back, and never beyond what was allowed to go.

use std::collections::BTreeMap;

use super::{Anomaly, Findings, Known};
use crate::broker::history::{Answer, Ask, Cleanup, History, Moment, Outcome};

/// More than a record takes in the log besides its value: of its batch's header a share, of its own fields, its key.
const BESIDES_VALUE: u64 = 128;

#[derive(Debug, Default)]
struct Partition {
    known: Vec<(Moment, i64, ())>,
    /// Who was told what: process, invoked, start.
    told: Vec<(u32, Moment, i64)>,
    /// The latest start that somebody asked for, and that may have been done.
    asked: i64,
}

pub(super) fn judge(history: &History, findings: &mut Findings) {
    let mut partitions = gather(history, findings);
    for partition in history.log.keys() {
        partitions.entry(*partition).or_default();
    }
    for (partition, seen) in partitions {
        let start = history.start(partition);
        let known = Known::of(seen.known);
        for (process, invoked, told) in seen.told {
            if told > start {
                findings.add(Anomaly::StartBack, || {
                    format!("partition {partition}: process {process} was told {told}, and it begins at {start}")
                });
            }
            if let Some((before, ())) = known.before(invoked).filter(|(before, ())| *before > told) {
                findings.add(Anomaly::StartBack, || {
                    format!("partition {partition}: process {process} was told {told} at {invoked}, {before} was known")
                });
            }
        }
        if start > seen.asked && !may_begin_later(history, partition) {
            let (asked, cleanup) = (seen.asked, history.cleanup);
            findings.add(Anomaly::Removed, || {
                format!("partition {partition} begins at {start}; up to {asked} was asked for, and {cleanup:?} may go")
            });
        }
    }
}

/// Whether so much is left that what went was too much.
fn may_begin_later(history: &History, partition: i32) -> bool {
    match history.cleanup {
        Cleanup::Nothing | Cleanup::Compact => false,
        Cleanup::Bytes(limit) => {
            let records = history.log.get(&partition).map_or(&[][..], Vec::as_slice);
            let left: u64 = records.iter().map(|record| u64::from(record.bytes) + BESIDES_VALUE).sum();
            left >= limit
        }
    }
}

fn gather(history: &History, findings: &mut Findings) -> BTreeMap<i32, Partition> {
    let mut partitions: BTreeMap<i32, Partition> = BTreeMap::new();
    for one in &history.operations {
        if let (Ask::Delete { partition, upto }, Outcome::Ok(_) | Outcome::Unknown(_)) = (one.ask, &one.outcome) {
            let seen = partitions.entry(partition).or_default();
            seen.asked = seen.asked.max(upto);
        }
        let Outcome::Ok(answer) = &one.outcome else { continue };
        let (partition, start) = match (one.ask, answer) {
            (Ask::Start { partition }, Answer::Start(start)) => (partition, *start),
            (Ask::Delete { partition, upto }, Answer::Start(start)) => {
                if *start < upto {
                    let process = one.process;
                    findings.add(Anomaly::StartBack, || {
                        format!("partition {partition}: process {process} asked for {upto}, and was told {start}")
                    });
                }
                (partition, *start)
            }
            // Whoever says that an offset is gone says that the log begins after it: how far, it does not say.
            (Ask::Read { partition, from }, Answer::Gone) => {
                partitions.entry(partition).or_default().known.push((one.ended, from + 1, ()));
                continue;
            }
            _ => continue,
        };
        let seen = partitions.entry(partition).or_default();
        seen.known.push((one.ended, start, ()));
        seen.told.push((one.process, one.invoked, start));
    }
    partitions
}
