//! The judge, judged: honest histories pass, and each anomaly that is planted in one is found.

use std::collections::BTreeMap;

use super::*;
use crate::broker::history::{Answer, Ask, Logged, Name, Operation, Outcome, Way};

const PRODUCERS: u32 = 6;
const PLAIN: u32 = 5;
const GROUPS: u32 = 3;

/// A broker that does everything right, and what its clients saw of it.
pub(super) struct Honest {
    random: fastrand::Rng,
    history: History,
    time: Moment,
    next: Vec<u64>,
    offsets: BTreeMap<(u32, i32), i64>,
    doubt: BTreeMap<u32, (i32, u64, u32)>,
}

impl Honest {
    pub(super) fn history(seed: u64, operations: usize) -> History {
        let random = fastrand::Rng::with_seed(seed);
        let next = vec![0; PRODUCERS as usize];
        let (offsets, doubt) = (BTreeMap::new(), BTreeMap::new());
        let mut honest = Self { random, history: History::default(), time: 0, next, offsets, doubt };
        honest.history.log = (0..2).map(|partition| (partition, Vec::new())).collect();
        while honest.history.operations.len() < operations {
            honest.time += 2;
            match honest.random.u8(0..10) {
                0..5 => honest.produce(),
                5..7 => honest.read(),
                7 => honest.end(),
                8 => honest.commit(),
                _ => honest.committed(),
            }
        }
        honest.history
    }

    fn note(&mut self, process: u32, ask: Ask, outcome: Outcome) {
        let (invoked, ended) = (self.time, self.time + 9);
        self.history.operations.push(Operation { process, invoked, ended, ask, outcome });
    }

    fn log(&mut self, partition: i32) -> &mut Vec<Logged> {
        self.history.log.get_mut(&partition).expect("there are two partitions")
    }

    fn append(&mut self, process: u32, (partition, first, count): (i32, u64, u32)) -> i64 {
        let leader_epoch = i32::try_from(self.time / 1_000).expect("a short time");
        let log = self.log(partition);
        let base = log.len() as i64;
        for index in 0..u64::from(count) {
            let name = Some(Name { process, number: first + index });
            log.push(Logged { offset: base.saturating_add_unsigned(index), name, leader_epoch, bytes: 100 });
        }
        base
    }

    fn produce(&mut self) {
        let process = self.random.u32(0..PRODUCERS);
        let way = if process == PLAIN { Way::Plain } else { Way::Idempotent };
        let again = self.doubt.remove(&process);
        let batch = again.unwrap_or_else(|| {
            let (count, first) = (self.random.u32(1..4), self.next[process as usize]);
            self.next[process as usize] += u64::from(count);
            (self.random.i32(0..2), first, count)
        });
        let (partition, first, count) = batch;
        let ask = Ask::Produce { partition, first, count, way };
        let name = Name { process, number: first };
        let there = self.log(partition).iter().rev().take(400).find(|record| record.name == Some(name));
        let there = there.map(|record| record.offset).filter(|_| way == Way::Idempotent);
        let outcome = if self.random.u8(0..5) == 0 {
            if self.random.bool() && there.is_none() {
                self.append(process, batch);
            }
            self.doubt.insert(process, batch);
            Outcome::Unknown("late".to_owned())
        } else {
            let base = there.unwrap_or_else(|| self.append(process, batch));
            Outcome::Ok(Answer::Appended(base))
        };
        self.note(process, ask, outcome);
    }

    fn read(&mut self) {
        let partition = self.random.i32(0..2);
        let end = self.log(partition).len();
        let from = self.random.usize(0..=end);
        let records = self.log(partition)[from..(from + 20).min(end)].iter();
        let records = records.map(|record| (record.offset, record.name)).collect();
        let answer = Answer::Records { records, end: end as i64 };
        self.note(100, Ask::Read { partition, from: from as i64 }, Outcome::Ok(answer));
    }

    fn end(&mut self) {
        let partition = self.random.i32(0..2);
        let end = self.log(partition).len() as i64;
        self.note(101, Ask::End { partition }, Outcome::Ok(Answer::End(end)));
    }

    fn commit(&mut self) {
        let (group, partition) = (self.random.u32(0..GROUPS), self.random.i32(0..2));
        let offset = self.offsets.get(&(group, partition)).copied().unwrap_or(0) + self.random.i64(1..5);
        let outcome = match self.random.u8(0..6) {
            0 => Outcome::Fail("refused".to_owned()),
            1 => Outcome::Unknown("late".to_owned()),
            _ => Outcome::Ok(Answer::Done),
        };
        let done = match outcome {
            Outcome::Ok(_) => true,
            Outcome::Unknown(_) => self.random.bool(),
            Outcome::Fail(_) => false,
        };
        if done {
            self.offsets.insert((group, partition), offset);
        }
        self.note(200 + group, Ask::Commit { group, partition, offset }, outcome);
    }

    fn committed(&mut self) {
        let (group, partition) = (self.random.u32(0..GROUPS), self.random.i32(0..2));
        let offset = self.offsets.get(&(group, partition)).copied();
        self.note(200 + group, Ask::Committed { group, partition }, Outcome::Ok(Answer::Offset(offset)));
    }
}

/// What is found in a history, each kind once.
pub(super) fn kinds(history: &History) -> Vec<Anomaly> {
    let mut kinds: Vec<Anomaly> = judge(history).into_iter().map(|finding| finding.anomaly).collect();
    kinds.dedup();
    kinds
}

/// Which anomalies a change to an honest history gives.
fn planted(change: impl FnOnce(&mut History)) -> Vec<Anomaly> {
    let mut history = Honest::history(7, 3_000);
    assert_eq!(judge(&history), [], "the history is honest before the change");
    change(&mut history);
    kinds(&history)
}

/// Offset of a record in the middle that an idempotent producer wrote, and that was acknowledged and not tried twice.
pub(super) fn middle(history: &History) -> usize {
    let log = &history.log[&0];
    let acknowledged = |name: Name| {
        let covers = |one: &&Operation| match one.ask {
            Ask::Produce { first, count, .. } => {
                one.process == name.process && (first..first + u64::from(count)).contains(&name.number)
            }
            Ask::Read { .. }
            | Ask::End { .. }
            | Ask::Start { .. }
            | Ask::Delete { .. }
            | Ask::Commit { .. }
            | Ask::Committed { .. } => false,
        };
        let tries: Vec<&Operation> = history.operations.iter().filter(covers).collect();
        tries.len() == 1 && matches!(tries[0].outcome, Outcome::Ok(_)) && name.process != PLAIN
    };
    let found = (log.len() / 2..log.len()).find(|at| log[*at].name.is_some_and(acknowledged));
    found.expect("some record is such")
}

/// Takes a record out and closes the gap.
pub(super) fn remove(history: &mut History, at: usize) {
    let log = history.log.get_mut(&0).expect("partition 0");
    log.remove(at);
    log.iter_mut().skip(at).for_each(|record| record.offset -= 1);
}

/// Forgets what readers saw, so that a change shows in the log alone.
pub(super) fn forget_readers(history: &mut History) {
    history.operations.retain(|one| matches!(one.ask, Ask::Produce { .. } | Ask::Commit { .. }));
}

/// Goal: what is right passes, whatever the seed. Method: honest histories with doubt, retries and plain producers.
#[test]
fn honest_histories_pass() {
    for seed in 0..20 {
        assert_eq!(judge(&Honest::history(seed, 1_000)), [], "seed {seed}");
    }
}

/// Goal: an acknowledged record that is gone is found, seen by readers or not. Method: take one out.
#[test]
fn a_lost_record_is_found() {
    let found = planted(|history| {
        let at = middle(history);
        forget_readers(history);
        remove(history, at);
    });
    assert!(found.contains(&Anomaly::Lost), "{found:?}");
    let found = planted(|history| {
        let log = history.log.get_mut(&0).expect("partition 0");
        log.truncate(log.len() - 5);
    });
    assert!(found.contains(&Anomaly::Lost) && found.contains(&Anomaly::EndBack), "{found:?}");
}

/// Goal: a record that was read and is another now is found. Method: a plain record in place of one of doubt.
#[test]
fn a_record_that_vanished_after_it_was_read_is_found() {
    let found = planted(|history| {
        let at = middle(history);
        let end = history.log[&0].len() as i64;
        let ghost = Name { process: 0, number: u64::MAX };
        let records = vec![(at as i64, Some(ghost))];
        let one = Operation {
            process: 100,
            invoked: 1_000_000,
            ended: 1_000_001,
            ask: Ask::Read { partition: 0, from: at as i64 },
            outcome: Outcome::Ok(Answer::Records { records, end }),
        };
        history.operations.push(one);
    });
    assert_eq!(found, [Anomaly::Vanished]);
}

/// Goal: a doubled record is found, and a plain producer's is none. Method: append one a second time.
#[test]
fn a_doubled_record_is_found_unless_its_producer_is_plain() {
    let double = |history: &mut History, way: Way| {
        let plain = |record: &&Logged| (record.name.is_some_and(|name| name.process == PLAIN)) == (way == Way::Plain);
        let log = history.log.get_mut(&0).expect("partition 0");
        let again = *log.iter().rev().find(plain).expect("some record is such");
        log.push(Logged { offset: log.len() as i64, leader_epoch: i32::MAX, ..again });
    };
    assert_eq!(planted(|history| double(history, Way::Idempotent)), [Anomaly::Doubled]);
    assert_eq!(planted(|history| double(history, Way::Plain)), []);
}

/// Goal: missing and repeated offsets are found. Method: both, in the log and in what a reader got.
#[test]
fn offsets_that_are_not_dense_are_found() {
    let shift = |by: i64| {
        planted(|history| {
            forget_readers(history);
            let log = history.log.get_mut(&0).expect("partition 0");
            let last = log.last_mut().expect("it is not empty");
            last.offset += by;
        })
    };
    assert_eq!((shift(1), shift(-1)), (vec![Anomaly::Hole], vec![Anomaly::Hole]));
    let found = planted(|history| {
        let longest = history.operations.iter_mut().find_map(|one| match &mut one.outcome {
            Outcome::Ok(Answer::Records { records, .. }) if records.len() > 3 => Some(records),
            Outcome::Ok(_) | Outcome::Fail(_) | Outcome::Unknown(_) => None,
        });
        longest.expect("somebody read").remove(1);
    });
    assert_eq!(found, [Anomaly::Hole]);
}

/// Goal: an acknowledgement with another batch's offset is found. Method: one that names the offset of another.
#[test]
fn an_offset_given_to_two_is_found() {
    let found = planted(|history| {
        let bases = history.operations.iter_mut().filter_map(|one| match (&one.ask, &mut one.outcome) {
            (Ask::Produce { way: Way::Idempotent, .. }, Outcome::Ok(Answer::Appended(base))) => Some(base),
            _ => None,
        });
        let mut bases: Vec<&mut i64> = bases.skip(20).take(2).collect();
        let other = *bases[0] + 1;
        *bases[1] = other;
    });
    assert!(found.contains(&Anomaly::Moved), "{found:?}");
}

/// Goal: two records of a producer in the wrong order are found. Method: swap two whose outcome was never known.
#[test]
fn a_broken_order_is_found() {
    let found = planted(|history| {
        forget_readers(history);
        let log = history.log.get_mut(&0).expect("partition 0");
        let first = log.iter().position(|record| record.name.is_some_and(|name| name.process == 0)).expect("one");
        let process = |record: &Logged| record.name.map(|name| name.process);
        let next = (first + 1..log.len()).find(|at| process(&log[*at]) == Some(0)).expect("another");
        let (early, late) = (log[first].name, log[next].name);
        (log[first].name, log[next].name) = (late, early);
    });
    assert!(found.contains(&Anomaly::Reordered), "{found:?}");
}

/// Goal: records that nobody wrote, or whose write was refused, are found. Method: a stranger, a value that is no name, a
/// refusal in place of an acknowledgement.
#[test]
fn records_of_nobody_are_found() {
    let append = |name: Option<Name>| {
        planted(|history| {
            let log = history.log.get_mut(&0).expect("partition 0");
            log.push(Logged { offset: log.len() as i64, name, leader_epoch: i32::MAX, bytes: 100 });
        })
    };
    assert_eq!(append(Some(Name { process: 0, number: 1 << 40 })), [Anomaly::Phantom]);
    assert_eq!(append(None), [Anomaly::Phantom]);
    let found = planted(|history| {
        let one = history.operations.iter_mut().find(|one| {
            let plain = matches!(one.ask, Ask::Produce { way: Way::Plain, .. });
            plain && matches!(one.outcome, Outcome::Ok(_))
        });
        one.expect("one was acknowledged").outcome = Outcome::Fail("too large".to_owned());
    });
    assert_eq!(found, [Anomaly::Phantom]);
}

/// Goal: what was read before it was written is found. Method: move a write to the end of time.
#[test]
fn a_read_before_the_write_is_found() {
    let found = planted(|history| {
        let read = history.operations.iter().find_map(|one| match &one.outcome {
            Outcome::Ok(Answer::Records { records, .. }) if one.invoked > 1_000 => records.first().copied(),
            Outcome::Ok(_) | Outcome::Fail(_) | Outcome::Unknown(_) => None,
        });
        let (_, name) = read.expect("somebody read something");
        let name = name.expect("it has a name");
        for one in &mut history.operations {
            let Ask::Produce { first, count, .. } = one.ask else { continue };
            if one.process == name.process && (first..first + u64::from(count)).contains(&name.number) {
                (one.invoked, one.ended) = (9_000_000, 9_000_001);
            }
        }
    });
    assert!(found.contains(&Anomaly::Phantom), "{found:?}");
}

/// Goal: an idempotent producer that was refused is found. Method: a refusal where doubt was.
#[test]
fn a_refused_retry_is_found() {
    let found = planted(|history| {
        let ask = Ask::Produce { partition: 0, first: 1 << 30, count: 1, way: Way::Idempotent };
        let outcome = Outcome::Fail("OUT_OF_ORDER_SEQUENCE_NUMBER".to_owned());
        history.operations.push(Operation { process: 1, invoked: 5, ended: 6, ask, outcome });
    });
    assert_eq!(found, [Anomaly::Refused]);
}

/// An answer about the end of partition 0, at the end of time.
pub(super) fn told(end: i64) -> Operation {
    let (ask, outcome) = (Ask::End { partition: 0 }, Outcome::Ok(Answer::End(end)));
    Operation { process: 101, invoked: 2_000_000, ended: 2_000_001, ask, outcome }
}

/// Goal: an end that went back is found, and one beyond the log. Method: one less than was told before, one too many.
#[test]
fn an_end_that_went_back_is_found() {
    let found = planted(|history| {
        let end = history.log[&0].len() as i64;
        history.operations.push(Operation { invoked: 1_000_000, ended: 1_000_001, ..told(end) });
        history.operations.push(told(end - 1));
    });
    assert!(found.contains(&Anomaly::EndBack) || found.contains(&Anomaly::Stale), "{found:?}");
    let found = planted(|history| {
        let end = history.log[&0].len() as i64;
        history.operations.push(told(end + 1));
    });
    assert_eq!(found, [Anomaly::EndBack]);
}

/// Goal: a stale read after a take-over is found, while one that overlaps the write is none. Method: an end below what was
/// acknowledged, asked after and during; "no such offset" for an offset that is there.
#[test]
fn a_stale_read_is_found() {
    let late = |history: &mut History| {
        history.operations.retain(|one| matches!(one.ask, Ask::Produce { .. }));
        let (process, number) = (0, 1 << 40);
        let log = history.log.get_mut(&0).expect("partition 0");
        let base = log.len() as i64;
        log.push(Logged { offset: base, name: Some(Name { process, number }), leader_epoch: i32::MAX, bytes: 100 });
        let ask = Ask::Produce { partition: 0, first: number, count: 1, way: Way::Idempotent };
        let outcome = Outcome::Ok(Answer::Appended(base));
        history.operations.push(Operation { process, invoked: 1_000_000, ended: 1_000_010, ask, outcome });
        base
    };
    let after = planted(|history| {
        let base = late(history);
        history.operations.push(told(base));
    });
    assert_eq!(after, [Anomaly::Stale]);
    let during = planted(|history| {
        let base = late(history);
        history.operations.push(Operation { invoked: 1_000_005, ..told(base) });
    });
    assert_eq!(during, []);
    let denied = planted(|history| {
        let base = late(history);
        let ask = Ask::Read { partition: 0, from: base + 1 };
        history.operations.push(Operation { ask, outcome: Outcome::Ok(Answer::Beyond), ..told(0) });
    });
    assert_eq!(denied, [Anomaly::Stale]);
}

/// Goal: a group's offset that went back, was forgotten or is nobody's is found. Method: one of each.
#[test]
fn a_group_offset_that_went_back_is_found() {
    let answer = |offset: Option<i64>| {
        planted(|history| {
            let ask = Ask::Committed { group: 1, partition: 0 };
            history.operations.push(Operation { ask, outcome: Outcome::Ok(Answer::Offset(offset)), ..told(0) });
        })
    };
    let history = Honest::history(7, 3_000);
    let first = history.operations.iter().find_map(|one| match (one.ask, &one.outcome) {
        (Ask::Commit { group: 1, partition: 0, offset }, Outcome::Ok(_)) => Some(offset),
        _ => None,
    });
    assert_eq!(answer(first), [Anomaly::OffsetBack]);
    assert_eq!(answer(None), [Anomaly::OffsetBack]);
    assert_eq!(answer(Some(1 << 40)), [Anomaly::OffsetPhantom]);
}

/// Goal: an epoch that goes back along the log is found. Method: one record of an old leader among new ones.
#[test]
fn an_epoch_that_went_back_is_found() {
    let found = planted(|history| {
        let log = history.log.get_mut(&0).expect("partition 0");
        log.last_mut().expect("it is not empty").leader_epoch = -1;
    });
    assert_eq!(found, [Anomaly::EpochBack]);
}

/// Goal: long histories are judged in seconds. Method: 200,000 operations, and one record that is gone.
#[test]
fn a_long_history_is_judged_in_seconds() {
    let mut history = Honest::history(3, 200_000);
    let started = std::time::Instant::now();
    assert_eq!(judge(&history), []);
    let at = middle(&history);
    remove(&mut history, at);
    assert!(kinds(&history).contains(&Anomaly::Lost));
    assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
    assert!(history.text().lines().count() > 400_000);
}
