use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::batch::{BatchBuilder, stamp};
use crate::rules::sequence::{Kind, advance};

/// Every batch that was ever accepted, of which the rules are read off by looking at all of them.
#[derive(Default)]
struct Model {
    accepted: Vec<(i64, i16, i32, i32, i64)>,
    end: i64,
}

#[derive(Debug, PartialEq)]
enum Outcome {
    At(i64),
    Again(i64),
    Fenced,
    Disorder,
}

impl Model {
    fn send(&mut self, producer: i64, epoch: i16, first: i32, count: i32) -> Outcome {
        let last = ((i64::from(first) + i64::from(count) - 1) % (1 << 31)) as i32;
        let mine: Vec<_> = self.accepted.iter().filter(|batch| batch.0 == producer).collect();
        if let Some(newest) = mine.last() {
            let current: Vec<_> = mine.iter().filter(|batch| batch.1 == newest.1).collect();
            let recent = &current[current.len().saturating_sub(5)..];
            if let Some(batch) = recent.iter().find(|batch| (batch.1, batch.2, batch.3) == (epoch, first, last)) {
                return Outcome::Again(batch.4);
            }
            if epoch < newest.1 {
                return Outcome::Fenced;
            }
            let next = if epoch > newest.1 { 0 } else { (i64::from(newest.3) + 1) % (1 << 31) };
            if i64::from(first) != next {
                return Outcome::Disorder;
            }
        }
        let at = self.end;
        self.accepted.push((producer, epoch, first, last, at));
        self.end += i64::from(count);
        Outcome::At(at)
    }
}

fn claim(producer_id: i64, epoch: i16, first: i32, count: i32) -> Claim {
    let last_sequence = advance(first, count - 1);
    Claim { producer_id, epoch, first_sequence: first, last_sequence, kind: Kind::Plain }
}

fn outcome(verdict: Result<Verdict, ProducerError>, at: i64) -> Outcome {
    match verdict {
        Ok(Verdict::Next) => Outcome::At(at),
        Ok(Verdict::Duplicate(entry)) => Outcome::Again(entry.base_offset),
        Err(ProducerError::ProducerFenced { .. }) => Outcome::Fenced,
        Err(_) => Outcome::Disorder,
    }
}

/// What a producer may do: go on, repeat, skip, start a new epoch, come back with an old one.
fn moves() -> impl Strategy<Value = Vec<(i64, i16, i32, i32)>> {
    let starts = prop_oneof![Just(0), Just(i32::MAX - 4)];
    (starts, vec((0..3_i64, 0..3_i16, 0..9_u8, 1..4_i32), 1..120)).prop_map(|(start, steps)| {
        let mut next = [(0_i16, start); 3];
        let mut sent: Vec<(i64, i16, i32, i32)> = Vec::new();
        for (producer, epoch, what, count) in steps {
            let (current, sequence) = &mut next[producer as usize];
            let step = match what {
                0..=3 => (producer, *current, *sequence, count),
                4 | 5 if !sent.is_empty() => {
                    sent[sent.len() - 1 - (usize::from(what) * 7 + count as usize) % sent.len()]
                }
                6 => (producer, *current, advance(*sequence, count), count),
                7 => (producer, epoch, *sequence, count),
                _ => (producer, current.saturating_add(epoch), 0, count),
            };
            if step.0 == producer && step.1 >= *current && (step.2 == *sequence || what > 7) {
                (*current, *sequence) = (step.1, advance(step.2, step.3));
            }
            sent.push(step);
        }
        sent
    })
}

proptest! {
    /// Goal: the ring judges as one who remembers everything would. Method: random moves in groups, some groups lost.
    #[test]
    fn the_ring_agrees_with_a_model_that_remembers_everything(steps in moves(), lost in vec(any::<bool>(), 120), size in 1..6_usize) {
        let mut model = Model::default();
        let mut producers = Producers::default();
        for (group, steps) in steps.chunks(size).enumerate() {
            let before = (model.accepted.len(), model.end);
            let mut draft = Draft::default();
            for &(producer, epoch, first, count) in steps {
                let claim = claim(producer, epoch, first, count);
                let at = model.end;
                let expected = model.send(producer, epoch, first, count);
                let verdict = draft.judge(&producers, &claim);
                if verdict == Ok(Verdict::Next) {
                    draft.accept(&producers, &claim, at, 0, 0);
                }
                prop_assert_eq!(outcome(verdict, at), expected);
            }
            if lost[group] && group % 3 == 0 {
                model.accepted.truncate(before.0);
                model.end = before.1;
            } else {
                producers.keep(draft);
            }
            // A snapshot says all there is to say.
            producers = Producers::restore(&producers.snapshot(model.end));
        }
    }
}

/// Goal: replaying the log gives the state that appending gave. Method: the same batches both ways, from half a snapshot on.
#[test]
fn replay_gives_what_appending_gave() {
    let mut appended = Producers::default();
    let mut half = ProducerSnapshot::default();
    let mut log = Vec::new();
    for index in 0..20_i32 {
        let (producer, epoch) = (i64::from(index % 2), if index < 12 { 0 } else { 1 });
        let sequence = if index < 12 { index / 2 } else { (index - 12) / 2 };
        let batch = BatchBuilder::new().producer(producer, epoch, sequence).record(i64::from(index), None, None);
        let mut batch = batch.build().unwrap().to_vec();
        stamp(&mut batch, i64::from(index), 1);
        let header = Header::read(&batch).unwrap();
        let claim = Claim::of(&header).unwrap();
        let mut draft = Draft::default();
        assert_eq!(draft.judge(&appended, &claim), Ok(Verdict::Next));
        draft.accept(&appended, &claim, header.base_offset, header.max_timestamp, 9);
        appended.keep(draft);
        log.push(header);
        if index == 9 {
            half = appended.snapshot(10);
        }
    }
    let mut loaded = Producers::restore(&half);
    log.iter().filter(|header| header.base_offset >= half.upto).for_each(|header| loaded.replay(header, 9));
    assert_eq!(loaded.snapshot(20), appended.snapshot(20));
    assert_eq!(loaded.get(0).unwrap().ring.entries().len(), 4);
}

/// Goal: idle producers go, those with an open transaction stay. Method: three of different age.
#[test]
fn idle_producers_are_forgotten_unless_a_transaction_is_open() {
    let state = |producer_id, updated, open_since| ProducerState {
        producer_id,
        epoch: 0,
        ring: Vec::new(),
        open_since,
        updated,
    };
    let snapshot =
        ProducerSnapshot { upto: 1, producers: vec![state(1, 5, None), state(2, 5, Some(0)), state(3, 50, None)] };
    let mut producers = Producers::restore(&snapshot);
    assert_eq!(producers.expire(10), 1);
    assert!(producers.get(1).is_none() && producers.get(2).is_some() && producers.get(3).is_some());
    assert_eq!((producers.len(), producers.is_empty()), (2, false));
}

/// Goal: a producer without an id leaves no trace. Method: replay its batch.
#[test]
fn a_producer_without_an_id_is_not_tracked() {
    let batch = BatchBuilder::new().record(0, None, None).build().unwrap();
    let header = Header::read(&batch).unwrap();
    assert_eq!(Claim::of(&header), None);
    let mut producers = Producers::default();
    producers.replay(&header, 0);
    assert!(producers.is_empty());
}
