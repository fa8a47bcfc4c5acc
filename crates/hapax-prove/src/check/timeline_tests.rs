use super::super::history::{BalanceSeen, Moment, Outcome, ProgressRow};
use super::*;
use crate::shape::Shape;
use crate::workload::{Mix, inputs};

fn truth() -> Truth {
    Truth::new(Shape::Append, inputs(Shape::Append, Mix::Poisoned, 300, 3))
}

/// What an honest target shows after `read` inputs.
fn honest(truth: &Truth, generation: u64, epoch: u64, read: u64) -> Sample {
    let dead = truth.dead_after(read as usize).count() as u64;
    let digest = truth.digest_after(read).expect("a prefix");
    let amount = truth.contents_after(read as usize).values().map(|row| row.amount).sum();
    let progress = ProgressRow {
        generation,
        epoch,
        position: String::new(),
        read,
        delivered: read - dead,
        filtered: 0,
        dead,
        rows: digest.rows,
    };
    Sample { progress, digest, balance: Some(BalanceSeen { rows: amount, kept: amount }), letters: dead }
}

fn history(samples: Vec<Sample>) -> History {
    let mut moments = vec![Moment::Invoked { worker: "a".into(), what: "run".into() }];
    moments.extend(samples.into_iter().map(Moment::Saw));
    moments.push(Moment::Ended { worker: "a".into(), outcome: Outcome::Unknown });
    History { moments }
}

fn epochs(generations: &[u64]) -> Vec<EpochRow> {
    generations.iter().zip(1..).map(|(&generation, epoch)| EpochRow { epoch, generation }).collect()
}

fn kinds(samples: Vec<Sample>, log: &[EpochRow]) -> Vec<Anomaly> {
    judge(&truth(), &history(samples), log).into_iter().map(|f| f.anomaly).collect()
}

fn clean() -> Vec<Sample> {
    let truth = truth();
    vec![honest(&truth, 1, 0, 0), honest(&truth, 1, 1, 100), honest(&truth, 2, 1, 100), honest(&truth, 2, 2, 300)]
}

/// Goal: an honest history raises no alarm, a take-over in it neither.
#[test]
fn an_honest_history_is_left_in_peace() {
    assert_eq!(kinds(clean(), &epochs(&[1, 2])), []);
    assert!(!history(clean()).all_answered(), "the killed worker's outcome is unknown");
}

/// Goal: part of an epoch is seen. Method: rows of a longer prefix beside progress of a shorter one, and the reverse.
#[test]
fn a_torn_epoch_is_found() {
    for other in [50, 150] {
        let mut samples = clean();
        samples[1].digest = truth().digest_after(other).expect("a prefix");
        assert_eq!(kinds(samples, &epochs(&[1, 2])), [Anomaly::Torn]);
    }
}

/// Goal: the right number of wrong rows is seen too. Method: change the digest, keep the count.
#[test]
fn a_swapped_row_is_found() {
    let mut samples = clean();
    samples[1].digest.sum ^= 1;
    assert_eq!(kinds(samples, &epochs(&[1, 2])), [Anomaly::Torn]);
}

/// Goal: a balance that lags its rows, and letters that lag the totals, are torn epochs too.
#[test]
fn a_balance_or_letter_apart_from_its_epoch_is_found() {
    let mut samples = clean();
    samples[3].balance = Some(BalanceSeen { rows: 5, kept: 6 });
    assert_eq!(kinds(samples, &epochs(&[1, 2])), [Anomaly::Torn]);
    let mut samples = clean();
    samples[3].letters += 1;
    assert_eq!(kinds(samples, &epochs(&[1, 2])), [Anomaly::Torn]);
}

/// Goal: progress that goes back is seen, unless the target was restored in between.
#[test]
fn progress_going_back_is_found() {
    let truth = truth();
    let back = vec![honest(&truth, 1, 2, 200), honest(&truth, 1, 1, 100)];
    assert_eq!(kinds(back.clone(), &epochs(&[1])), [Anomaly::WentBack]);
    let generation = vec![honest(&truth, 2, 1, 100), honest(&truth, 1, 1, 100)];
    assert!(kinds(generation, &epochs(&[1])).contains(&Anomaly::WentBack));
    let [before, after] = <[Sample; 2]>::try_from(back).expect("two samples");
    let restored = History { moments: vec![Moment::Saw(before), Moment::Restored, Moment::Saw(after)] };
    assert_eq!(judge(&truth, &restored, &epochs(&[1])), []);
}

/// Goal: a write after the fence is seen. Method: generation 2 was seen at epoch 1; epoch 2 is of generation 1.
#[test]
fn a_zombie_write_is_found() {
    let truth = truth();
    let samples = vec![honest(&truth, 1, 1, 100), honest(&truth, 2, 1, 100)];
    assert_eq!(kinds(samples.clone(), &epochs(&[1, 1])), [Anomaly::ZombieWrite]);
    assert_eq!(kinds(samples, &epochs(&[1, 2])), []);
    assert_eq!(kinds(Vec::new(), &epochs(&[1, 2, 1])), [Anomaly::ZombieWrite], "the log alone tells");
}

/// Goal: totals that do not add up at some moment are seen, though the end is right.
#[test]
fn books_that_do_not_balance_for_a_moment_are_found() {
    let mut samples = clean();
    samples[1].progress.delivered -= 1;
    assert_eq!(kinds(samples, &epochs(&[1, 2])), [Anomaly::Ledger]);
}
