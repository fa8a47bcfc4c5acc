use super::*;
use crate::rules::producer::{Draft, Producers};

const PRODUCER: i64 = 42;

fn claim(epoch: i16, first: i32, count: i32) -> Claim {
    Claim {
        producer_id: PRODUCER,
        epoch,
        first_sequence: first,
        last_sequence: advance(first, count - 1),
        kind: Kind::Plain,
    }
}

/// A partition that takes batches one by one, each in a group of its own.
#[derive(Default)]
struct Partition {
    producers: Producers,
    end: i64,
}

impl Partition {
    fn send(&mut self, claim: Claim) -> Result<Verdict, ProducerError> {
        let mut draft = Draft::default();
        let verdict = draft.judge(&self.producers, &claim)?;
        if verdict == Verdict::Next {
            draft.accept(&self.producers, &claim, self.end, 1_000 + self.end, 5);
            let count = (i64::from(claim.last_sequence) - i64::from(claim.first_sequence)) & i64::from(i32::MAX);
            self.end += count + 1;
            self.producers.keep(draft);
        }
        Ok(verdict)
    }
}

/// Goal: the first to fifth last batch is recognised with its own offset, an older one is not. Method: eight batches, then
/// each sent again.
#[test]
fn a_retry_of_the_last_five_batches_succeeds_and_of_an_older_one_fails() {
    let mut partition = Partition::default();
    for index in 0..8 {
        assert_eq!(partition.send(claim(0, index * 3, 3)), Ok(Verdict::Next));
    }
    for back in 1..=7 {
        let sequence = (8 - back) * 3;
        let verdict = partition.send(claim(0, sequence, 3));
        if back <= 5 {
            let entry = RingEntry {
                first_sequence: sequence,
                last_sequence: sequence + 2,
                base_offset: i64::from(sequence),
                timestamp: 1_000 + i64::from(sequence),
            };
            assert_eq!(verdict, Ok(Verdict::Duplicate(entry)), "{back}");
        } else {
            let error = ProducerError::DuplicateSequence { producer_id: PRODUCER, sequence, expected: 24 };
            assert_eq!(verdict, Err(error), "{back}");
        }
    }
    assert_eq!(partition.end, 24);
}

/// Goal: sequences wrap, inside a batch too. Method: start at 2^31 - 3, cross the end, retry the batch that crossed.
#[test]
fn sequences_wrap_inside_a_batch() {
    let start = i32::MAX - 2;
    let mut partition = Partition::default();
    assert_eq!(partition.send(claim(0, start, 5)), Ok(Verdict::Next));
    let crossing = claim(0, start, 5);
    assert_eq!(crossing.last_sequence, 1);
    assert!(matches!(partition.send(crossing), Ok(Verdict::Duplicate(_))));
    let late = ProducerError::OutOfOrderSequence { producer_id: PRODUCER, sequence: 3, expected: 2 };
    assert_eq!(partition.send(claim(0, 3, 1)), Err(late));
    assert_eq!(partition.send(claim(0, 2, 1)), Ok(Verdict::Next));
    let old = ProducerError::DuplicateSequence { producer_id: PRODUCER, sequence: i32::MAX, expected: 3 };
    assert_eq!(partition.send(claim(0, i32::MAX, 1)), Err(old));
    for (first, count, last) in [(i32::MAX, 1, i32::MAX), (i32::MAX, 2, 0), (i32::MAX - 2, 3, i32::MAX), (0, 1, 0)] {
        assert_eq!(advance(first, count - 1), last);
    }
}

/// Goal: every pair of known epoch and sent batch is judged as Kafka does. Method: a matrix against state at epoch 5, next
/// sequence 10 of batches of two.
#[test]
fn epochs_and_sequences_are_judged_as_in_a_matrix() {
    #[derive(Debug, PartialEq)]
    enum Outcome {
        Next,
        Again,
        Code(i16),
    }
    use Outcome::{Again, Code, Next};
    let cases = [
        (4, 0, 2, Code(47)),
        (4, 10, 2, Code(47)),
        (4, 8, 2, Code(47)),
        (5, 10, 1, Next),
        (5, 10, 9, Next),
        (5, 8, 2, Again),
        (5, 0, 2, Again),
        (5, 8, 1, Code(45)),
        (5, 9, 2, Code(45)),
        (5, 7, 2, Code(45)),
        (5, 8, 4, Code(45)),
        (5, 11, 1, Code(45)),
        (5, 1_000, 1, Code(45)),
        (6, 0, 4, Next),
        (6, 10, 1, Code(45)),
        (6, 1, 1, Code(45)),
        (9, 0, 1, Next),
    ];
    for (epoch, first, count, expected) in cases {
        let mut partition = Partition::default();
        for index in 0..5 {
            partition.send(claim(5, index * 2, 2)).unwrap();
        }
        let outcome = match partition.send(claim(epoch, first, count)) {
            Ok(Verdict::Next) => Next,
            Ok(Verdict::Duplicate(_)) => Again,
            Err(error) => Code(error.to_kafka_error(crate::rules::producer_error::Asked::Produce).code()),
        };
        assert_eq!(outcome, expected, "epoch {epoch}, {count} from {first}");
    }
}

/// Goal: a producer of which nothing is known may begin anywhere. Method: several first sequences and epochs.
#[test]
fn without_state_any_sequence_is_accepted() {
    for (epoch, first) in [(0, 0), (0, 17), (3, i32::MAX), (i16::MAX, 5)] {
        assert_eq!(Partition::default().send(claim(epoch, first, 1)), Ok(Verdict::Next));
    }
}

/// Goal: a batch of a transaction is refused while none are served, known or not. Method: both.
#[test]
fn a_transactional_batch_is_refused() {
    let mut partition = Partition::default();
    let transactional = Claim { kind: Kind::Transactional, ..claim(0, 0, 1) };
    let refused = Err(ProducerError::InvalidTransactionState { producer_id: PRODUCER });
    assert_eq!(partition.send(transactional), refused);
    partition.send(claim(0, 0, 1)).unwrap();
    assert_eq!(partition.send(transactional), refused);
}

/// Goal: a plain batch of a producer whose transaction is open is refused, a retry of an older one is not. Method: open one.
#[test]
fn a_plain_batch_inside_a_transaction_is_refused() {
    let mut partition = Partition::default();
    partition.send(claim(0, 0, 1)).unwrap();
    let mut snapshot = partition.producers.snapshot(1);
    snapshot.producers[0].open_since = Some(1);
    partition.producers = Producers::restore(&snapshot);
    assert!(matches!(partition.send(claim(0, 0, 1)), Ok(Verdict::Duplicate(_))));
    let refused = Err(ProducerError::InvalidTransactionState { producer_id: PRODUCER });
    assert_eq!(partition.send(claim(0, 1, 1)), refused);
}

/// Goal: an epoch known only from a marker must begin at 0, too. Method: state without batches.
#[test]
fn an_epoch_known_from_a_marker_starts_at_zero() {
    let mut partition = Partition::default();
    partition.send(claim(3, 0, 1)).unwrap();
    let mut snapshot = partition.producers.snapshot(1);
    snapshot.producers[0].ring.clear();
    partition.producers = Producers::restore(&snapshot);
    let refused = ProducerError::OutOfOrderSequence { producer_id: PRODUCER, sequence: 1, expected: 0 };
    assert_eq!(partition.send(claim(3, 1, 1)), Err(refused));
    assert_eq!(partition.send(claim(3, 0, 1)), Ok(Verdict::Next));
}
