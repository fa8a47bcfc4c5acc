//! Ends of logs: never back, never below what was acknowledged before somebody asked.

use std::collections::BTreeMap;

use super::{Anomaly, Findings, Known};
use crate::broker::history::{Answer, Ask, History, Moment, Outcome};

/// How somebody knew that the log reached so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Acknowledged,
    Told,
}

/// How an end was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Exactly,
    /// There, or before it.
    AtMost,
}

/// An end that somebody was told.
#[derive(Debug, Clone, Copy)]
struct Told {
    process: u32,
    invoked: Moment,
    end: i64,
    bound: Bound,
}

#[derive(Debug, Default)]
struct Partition {
    known: Vec<(Moment, i64, How)>,
    told: Vec<Told>,
}

pub(super) fn judge(history: &History, findings: &mut Findings) {
    for (partition, seen) in gather(history) {
        let last = history.end(partition);
        let known = Known::of(seen.known);
        for told in &seen.told {
            let Told { process, invoked, end, bound } = *told;
            if end > last && bound == Bound::Exactly {
                findings.add(Anomaly::EndBack, || {
                    format!("partition {partition}: process {process} was told {end}, and it ends at {last}")
                });
            }
            let Some((before, how)) = known.before(invoked) else { continue };
            if end < before {
                let anomaly = match how {
                    How::Acknowledged => Anomaly::Stale,
                    How::Told => Anomaly::EndBack,
                };
                findings.add(anomaly, || {
                    format!("partition {partition}: process {process} was told {end} at {invoked}, {before} was known")
                });
            }
        }
    }
}

fn gather(history: &History) -> BTreeMap<i32, Partition> {
    let mut partitions: BTreeMap<i32, Partition> = BTreeMap::new();
    for one in &history.operations {
        let Outcome::Ok(answer) = &one.outcome else { continue };
        match (&one.ask, answer) {
            (Ask::Produce { partition, count, .. }, Answer::Appended(base)) => {
                let end = base.saturating_add(i64::from(*count));
                partitions.entry(*partition).or_default().known.push((one.ended, end, How::Acknowledged));
            }
            (Ask::Read { partition, .. } | Ask::End { partition }, Answer::Records { end, .. } | Answer::End(end)) => {
                let seen = partitions.entry(*partition).or_default();
                seen.known.push((one.ended, *end, How::Told));
                let bound = Bound::Exactly;
                seen.told.push(Told { process: one.process, invoked: one.invoked, end: *end, bound });
            }
            // Whoever says that there is no such offset says that the log ends before it.
            (Ask::Read { partition, from }, Answer::Beyond) => {
                let bound = Bound::AtMost;
                let told = Told { process: one.process, invoked: one.invoked, end: from - 1, bound };
                partitions.entry(*partition).or_default().told.push(told);
            }
            _ => {}
        }
    }
    partitions
}
