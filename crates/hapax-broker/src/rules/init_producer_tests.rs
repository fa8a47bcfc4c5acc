use super::*;
use crate::rules::producer_error::Asked;

fn ask(producer: (i64, i16)) -> Ask {
    Ask { transactional_id: Some("orders".to_owned()), timeout_ms: 60_000, producer }
}

fn row(producer_id: i64, epoch: i16, last_epoch: i16) -> TransactionalRow {
    let begun = apply(None, Plan::Begin, &ask((-1, -1)), producer_id, 1);
    TransactionalRow { epoch, last_epoch, ..begun }
}

/// Goal: without a transactional id there is always a new producer id. Method: whatever the client says of itself.
#[test]
fn without_a_transactional_id_the_producer_id_is_always_new() {
    for producer in [(-1, -1), (5, 3), (1_000_000, 32_767)] {
        let ask = Ask { transactional_id: None, timeout_ms: 0, producer };
        assert_eq!(plan(None, &ask), Ok(Plan::Fresh));
    }
}

/// Goal: what cannot be asked is refused by its code. Method: each.
#[test]
fn what_cannot_be_asked_is_refused() {
    let code = |ask: &Ask| plan(None, ask).unwrap_err().to_kafka_error(Asked::InitProducerId(4)).code();
    assert_eq!(code(&Ask { transactional_id: Some(String::new()), ..ask((-1, -1)) }), 42);
    assert_eq!(code(&ask((5, -1))), 42);
    assert_eq!(code(&ask((-1, 5))), 42);
    for timeout_ms in [0, -1, TIMEOUT_MAX_MS + 1] {
        assert_eq!(code(&Ask { timeout_ms, ..ask((-1, -1)) }), 50);
    }
    assert_eq!(plan(None, &Ask { timeout_ms: TIMEOUT_MAX_MS, ..ask((-1, -1)) }), Ok(Plan::Begin));
}

/// Goal: a known transactional id keeps its producer id and gets the next epoch. Method: three in a row.
#[test]
fn a_known_id_keeps_its_producer_id_and_gets_the_next_epoch() {
    let mut current = apply(None, plan(None, &ask((-1, -1))).unwrap(), &ask((-1, -1)), 77, 1);
    assert_eq!((current.producer_id, current.epoch, current.last_epoch, current.revision), (77, 0, -1, 0));
    for epoch in 1..4 {
        let next = plan(Some(&current), &ask((-1, -1))).unwrap();
        current = apply(Some(&current), next, &ask((-1, -1)), 999, 2);
        assert_eq!((current.producer_id, current.epoch, current.last_epoch), (77, epoch, -1));
        assert_eq!(current.revision, i64::from(epoch));
    }
}

/// Goal: who names itself is raised, repeated or fenced. Method: a matrix over a row at epoch 5, asked for by epoch 4.
#[test]
fn one_who_names_itself_is_raised_repeated_or_fenced() {
    let known = row(77, 5, 4);
    assert_eq!(plan(Some(&known), &ask((77, 5))), Ok(Plan::Raise { epoch: 6, last_epoch: 5 }));
    assert_eq!(plan(Some(&known), &ask((77, 4))), Ok(Plan::Repeat));
    for producer in [(77, 3), (77, 6), (77, 0), (78, 5), (78, 4)] {
        let error = plan(Some(&known), &ask(producer)).unwrap_err();
        let expected = ProducerError::ProducerFenced { producer_id: producer.0, epoch: producer.1, expected_epoch: 5 };
        assert_eq!(error, expected);
    }
    // After one who did not name itself nobody may repeat.
    let taken = row(77, 5, -1);
    assert!(plan(Some(&taken), &ask((77, 4))).is_err());
}

/// Goal: when epochs run out a new producer id begins, and the one who asked may repeat. Method: from 32764 on.
#[test]
fn after_the_last_epoch_comes_a_new_producer_id() {
    let mut current = row(77, 32_764, -1);
    let mut fresh = 500;
    let mut seen = Vec::new();
    for _ in 0..6 {
        let me = ask((current.producer_id, current.epoch));
        let next = plan(Some(&current), &me).unwrap();
        fresh += 1;
        let after = apply(Some(&current), next, &me, fresh, 3);
        assert_eq!(plan(Some(&after), &me), Ok(Plan::Repeat), "{after:?}");
        assert_ne!(after.epoch, i16::MAX);
        seen.push((after.producer_id, after.epoch));
        current = after;
    }
    assert_eq!(seen, [(77, 32_765), (77, 32_766), (503, 0), (503, 1), (503, 2), (503, 3)]);
}

/// Goal: one who does not name itself gets a new producer id after the last epoch, too, and the old one is fenced.
/// Method: a row at 32766.
#[test]
fn after_the_last_epoch_the_old_producer_is_fenced() {
    let full = row(77, LAST_EPOCH, -1);
    let next = plan(Some(&full), &ask((-1, -1))).unwrap();
    assert_eq!(next, Plan::Rotate { last_epoch: -1 });
    let after = apply(Some(&full), next, &ask((-1, -1)), 88, 3);
    assert_eq!((after.producer_id, after.epoch, after.prev_producer_id), (88, 0, 77));
    assert!(plan(Some(&after), &ask((77, LAST_EPOCH))).is_err());
}

/// Goal: while a transaction runs or ends nobody gets an epoch. Method: each state.
#[test]
fn while_a_transaction_is_under_way_nobody_gets_an_epoch() {
    for state in 0..6 {
        let known = TransactionalRow { state, ..row(77, 5, 4) };
        let outcome = plan(Some(&known), &ask((-1, -1)));
        assert_eq!(outcome.is_err(), (1..=3).contains(&state), "state {state}");
    }
}
