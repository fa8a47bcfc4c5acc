//! The judge, judged on logs of which something is gone: what may go may, and everything else is found.

use std::collections::HashMap;

use super::tests::{Honest, forget_readers, kinds, middle, told};
use super::*;
use crate::broker::history::{Answer, Ask, Cleanup, Logged, Name, Operation, Outcome, Way};

/// An honest history whose log of partition 0 lost its first third, as retention allows.
fn retained() -> History {
    let mut history = Honest::history(7, 3_000);
    let log = history.log.get_mut(&0).expect("partition 0");
    let start = log.len() / 3;
    log.drain(..start);
    history.starts.insert(0, start as i64);
    history.cleanup = Cleanup::Bytes(1_000);
    history
}

/// What a change to such a history gives.
fn of_retained(change: impl FnOnce(&mut History)) -> Vec<Anomaly> {
    let mut history = retained();
    assert_eq!(judge(&history), [], "the history is honest before the change");
    change(&mut history);
    kinds(&history)
}

fn delete(upto: i64, outcome: Outcome) -> Operation {
    Operation { ask: Ask::Delete { partition: 0, upto }, outcome, ..told(0) }
}

fn start_told(start: i64) -> Operation {
    Operation { ask: Ask::Start { partition: 0 }, outcome: Outcome::Ok(Answer::Start(start)), ..told(0) }
}

/// Goal: a log may begin later only as retention or a request allows. Method: a limit that is kept and one that is not,
/// none at all, requests that were done, may have been, and were refused.
#[test]
fn a_log_that_begins_too_late_is_found() {
    let limited = |limit: u64| of_retained(|history| history.cleanup = Cleanup::Bytes(limit));
    assert_eq!((limited(10_000), limited(100 << 20)), (vec![], vec![Anomaly::Removed]));
    assert_eq!(of_retained(|history| history.cleanup = Cleanup::Nothing), [Anomaly::Removed]);
    let asked = |outcome: fn(i64) -> Outcome| {
        of_retained(|history| {
            let start = history.start(0);
            history.cleanup = Cleanup::Nothing;
            history.operations.push(delete(start, outcome(start)));
        })
    };
    assert_eq!(asked(|start| Outcome::Ok(Answer::Start(start))), []);
    assert_eq!(asked(|_| Outcome::Unknown("late".to_owned())), []);
    assert_eq!(asked(|_| Outcome::Fail("refused".to_owned())), [Anomaly::Removed]);
}

/// Goal: a start that went back is found. Method: one that was told and is later than it is at the end, one less than was
/// known, one that is not where it was asked to be, an offset that was gone and is there.
#[test]
fn a_start_that_went_back_is_found() {
    let found = of_retained(|history| {
        let start = history.start(0);
        history.operations.push(start_told(start));
    });
    assert_eq!(found, []);
    let found = of_retained(|history| {
        let start = history.start(0);
        history.operations.push(start_told(start + 1));
    });
    assert_eq!(found, [Anomaly::StartBack]);
    let found = of_retained(|history| {
        let start = history.start(0);
        history.operations.push(Operation { invoked: 1_000_000, ended: 1_000_001, ..start_told(start) });
        history.operations.push(start_told(start - 1));
    });
    assert_eq!(found, [Anomaly::StartBack]);
    let found = of_retained(|history| {
        let start = history.start(0);
        history.operations.push(delete(start, Outcome::Ok(Answer::Start(start - 1))));
    });
    assert_eq!(found, [Anomaly::StartBack]);
    let found = of_retained(|history| {
        let start = history.start(0);
        let gone = Operation { ask: Ask::Read { partition: 0, from: start - 1 }, ..told(0) };
        let gone = Operation { outcome: Outcome::Ok(Answer::Gone), invoked: 1_000_000, ended: 1_000_001, ..gone };
        history.operations.extend([gone, start_told(start - 1)]);
    });
    assert_eq!(found, [Anomaly::StartBack]);
}

/// Goal: what is lost behind the start is found, as ever. Method: a record that was acknowledged, and the offsets closed up.
#[test]
fn a_record_lost_behind_the_start_is_found() {
    let found = of_retained(|history| {
        forget_readers(history);
        let at = middle(history);
        let log = history.log.get_mut(&0).expect("partition 0");
        log.remove(at);
        log.iter_mut().skip(at).for_each(|record| record.offset -= 1);
    });
    assert!(found.contains(&Anomaly::Lost), "{found:?}");
    let found = of_retained(|history| {
        forget_readers(history);
        history.log.get_mut(&0).expect("partition 0").remove(0);
    });
    assert!(found.contains(&Anomaly::Hole), "{found:?}");
}

/// Goal: a repetition that was not recognised is found though both copies are gone. Method: two acknowledgements of one batch,
/// at two offsets before the start.
#[test]
fn a_repetition_that_is_gone_twice_is_found() {
    let found = of_retained(|history| {
        let ask = Ask::Produce { partition: 0, first: 1 << 40, count: 1, way: Way::Idempotent };
        for base in [3, 9] {
            let outcome = Outcome::Ok(Answer::Appended(base));
            history.operations.push(Operation { process: 3, ask, outcome, ..told(0) });
        }
    });
    assert_eq!(found, [Anomaly::Moved]);
}

/// An honest history whose log of partition 0 lost most records whose key was written again.
fn compacted() -> History {
    let mut history = Honest::history(9, 3_000);
    let log = history.log.get_mut(&0).expect("partition 0");
    let key = |record: &Logged| record.name.expect("an honest record has a name").key();
    let last: HashMap<u64, i64> = log.iter().map(|record| (key(record), record.offset)).collect();
    log.retain(|record| last[&key(record)] == record.offset || record.offset % 7 == 0);
    history.cleanup = Cleanup::Compact;
    history
}

fn of_compacted(change: impl FnOnce(&mut History)) -> Vec<Anomaly> {
    let mut history = compacted();
    assert_eq!(judge(&history), [], "the history is honest before the change");
    change(&mut history);
    kinds(&history)
}

/// Goal: a compacted log without the last record of a key is found; so is one that was never to be compacted.
/// Method: take the last record of a key out, of all that are acknowledged; the same log, not compacted.
#[test]
fn a_key_without_its_last_record_is_found() {
    let found = of_compacted(|history| {
        forget_readers(history);
        let log = history.log.get_mut(&0).expect("partition 0");
        let name = log.last().and_then(|record| record.name).expect("it has a name");
        log.retain(|record| record.name.is_none_or(|other| other.key() != name.key()));
    });
    assert!(found.contains(&Anomaly::Lost), "{found:?}");
    let found = of_compacted(|history| history.cleanup = Cleanup::Nothing);
    assert!(found.contains(&Anomaly::Hole), "{found:?}");
}

/// Goal: offsets that compaction changed are found. Method: a record one further down, where another was; an offset used twice.
#[test]
fn an_offset_that_compaction_changed_is_found() {
    let shifted = |by: i64| {
        of_compacted(|history| {
            forget_readers(history);
            let at = {
                let log = &history.log[&0];
                let gap = |at: &usize| log[*at].offset - log[at - 1].offset > 2;
                (1..log.len()).rev().find(gap).expect("there is a gap")
            };
            let log = history.log.get_mut(&0).expect("partition 0");
            log[at].offset = log[at - 1].offset + by;
        })
    };
    assert!(shifted(1).iter().any(|found| [Anomaly::Moved, Anomaly::Vanished].contains(found)), "{:?}", shifted(1));
    assert!(shifted(0).contains(&Anomaly::Hole), "{:?}", shifted(0));
}

/// Goal: a reader who was not shown a record that was there all the time is found. Method: leave one out of what it got.
#[test]
fn a_record_that_a_reader_of_a_compacted_log_missed_is_found() {
    let found = of_compacted(|history| {
        let kept: Vec<i64> = history.log[&0].iter().map(|record| record.offset).collect();
        let missed = history.operations.iter_mut().find_map(|one| match (one.ask, &mut one.outcome) {
            (Ask::Read { partition: 0, .. }, Outcome::Ok(Answer::Records { records, .. })) => {
                let at = records.iter().position(|(offset, _)| kept.contains(offset))?;
                (at + 1 < records.len()).then(|| records.remove(at))
            }
            _ => None,
        });
        missed.expect("somebody read something that is still there");
    });
    assert_eq!(found, [Anomaly::Hole]);
}

/// When the topic was deleted, and when it was there again.
const ANEW: (Moment, Moment) = (5_000_000, 9_000_000);
/// Who wrote to the old topic.
const OLD: u32 = 1_000;

/// What was done to both topics, and the log of the new one.
fn both_topics() -> History {
    let mut history = Honest::history(11, 2_000);
    for one in &mut history.operations {
        (one.invoked, one.ended) = (one.invoked + ANEW.1, one.ended + ANEW.1);
    }
    let old = Honest::history(12, 2_000).operations.into_iter();
    history.operations.extend(old.map(|one| Operation { process: one.process + OLD, ..one }));
    history
}

/// What a change to the history of a topic that was made again gives.
fn of_made_again(change: impl FnOnce(&mut History)) -> Vec<Anomaly> {
    let (mut honest, mut changed) = (both_topics(), both_topics());
    honest.begin_anew(ANEW.0, ANEW.1);
    assert_eq!(judge(&honest), [], "the history is honest before the change");
    change(&mut changed);
    changed.begin_anew(ANEW.0, ANEW.1);
    kinds(&changed)
}

/// A batch that is known to have been in the old topic: its ask, and its offset.
fn of_old_topic(history: &History) -> (Operation, Name) {
    let acknowledged = |one: &&Operation| {
        one.process >= OLD && matches!((one.ask, &one.outcome), (Ask::Produce { partition: 0, .. }, Outcome::Ok(_)))
    };
    let one = history.operations.iter().rfind(acknowledged).expect("somebody wrote to it").clone();
    let Ask::Produce { first, .. } = one.ask else { unreachable!("it was a write") };
    let name = Name { process: one.process, number: first };
    (one, name)
}

/// Goal: who goes on in the new topic where it was in the old one may be told that nothing is there. Method: an offset far
/// beyond the end.
#[test]
fn an_offset_of_the_old_topic_may_be_unknown_to_the_new_one() {
    let found = of_made_again(|history| {
        let ask = Ask::Read { partition: 0, from: 1 << 40 };
        let outcome = Outcome::Ok(Answer::Beyond);
        history.operations.push(Operation { invoked: 20_000_000, ended: 20_000_001, ask, outcome, ..told(0) });
    });
    assert_eq!(found, []);
}

/// Goal: whatever a topic has of the old one of its name is found. Method: a record, a start, a group's offset, a producer.
#[test]
fn what_a_topic_inherits_is_found() {
    let found = of_made_again(|history| {
        let (_, name) = of_old_topic(history);
        let log = history.log.get_mut(&0).expect("partition 0");
        log.push(Logged { offset: log.len() as i64, name: Some(name), leader_epoch: i32::MAX, bytes: 100 });
    });
    assert_eq!(found, [Anomaly::Phantom]);
    let found = of_made_again(|history| {
        history.operations.clear();
        history.starts.insert(0, 5);
        history.log.insert(0, Vec::new());
        history.log.insert(1, Vec::new());
    });
    assert_eq!(found, [Anomaly::Removed]);
    let found = of_made_again(|history| {
        let (ask, outcome) = (Ask::Committed { group: 7, partition: 0 }, Outcome::Ok(Answer::Offset(Some(3))));
        let commit = Ask::Commit { group: 7, partition: 0, offset: 3 };
        history.operations.push(Operation { ask: commit, outcome: Outcome::Ok(Answer::Done), ..told(0) });
        history.operations.push(Operation { invoked: 20_000_000, ended: 20_000_001, ask, outcome, ..told(0) });
    });
    assert_eq!(found, [Anomaly::OffsetPhantom]);
    let found = of_made_again(|history| {
        let (one, _) = of_old_topic(history);
        history.operations.push(Operation { invoked: 20_000_000, ended: 20_000_001, ..one });
    });
    assert_eq!(found, [Anomaly::Lost]);
}
