//! Producers: ids, notes, transactional ids, snapshots.

use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;

use super::{append_tens, led};
use crate::model::Timestamp;
use crate::store::{ProducerRow, ProducerSnapshot, ProducerState, RingEntry, Store, StoreError, TransactionalRow};

fn now() -> Timestamp {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as Timestamp
}

fn producer(producer_id: i64, transactional_id: Option<&str>) -> ProducerRow {
    let transactional_id = transactional_id.map(str::to_owned);
    ProducerRow { producer_id, epoch: 0, client_id: Some("shop".to_owned()), transactional_id }
}

/// Goal: no two producers ever get one id. Method: blocks asked for at once; none overlaps another.
pub(crate) async fn blocks_of_ids_never_overlap<S: Store>(store: &S) {
    let blocks = join_all((0..20).map(|_| store.producer_id_block())).await;
    let mut blocks: Vec<_> = blocks.into_iter().map(Result::unwrap).collect();
    blocks.sort_by_key(|block| block.start);
    assert!(blocks.iter().all(|block| block.start >= 0 && block.end > block.start), "{blocks:?}");
    assert!(blocks.windows(2).all(|pair| pair[0].end <= pair[1].start), "{blocks:?}");
}

/// Goal: a person can see who got which id. Method: note, note again with a newer epoch, forget.
pub(crate) async fn a_producer_is_noted_and_forgotten<S: Store>(store: &S) {
    assert_eq!(store.producer(7).await, Ok(None));
    store.note_producer(producer(7, None)).await.unwrap();
    store.note_producer(producer(8, Some("payments"))).await.unwrap();
    assert_eq!(store.producer(7).await, Ok(Some(producer(7, None))));
    let newer = ProducerRow { epoch: 3, ..producer(7, None) };
    store.note_producer(newer.clone()).await.unwrap();
    assert_eq!(store.producer(7).await, Ok(Some(newer.clone())));
    assert_eq!(store.forget_producers(now() - 60_000).await, Ok(0));
    assert_eq!(store.producer(7).await, Ok(Some(newer)));
    assert_eq!(store.forget_producers(now() + 60_000).await, Ok(1));
    assert_eq!(store.producer(7).await, Ok(None));
    assert_eq!(store.producer(8).await, Ok(Some(producer(8, Some("payments")))));
}

fn transactional(revision: i64, epoch: i16) -> TransactionalRow {
    TransactionalRow {
        id: "payments".to_owned(),
        revision,
        serial: 4,
        state: 5,
        version: 2,
        producer_id: 4000,
        epoch,
        last_epoch: epoch - 1,
        prev_producer_id: -1,
        next_producer_id: 4001,
        timeout_ms: 60_000,
        updated: 1_700_000_000_000,
    }
}

/// Goal: of two who change an id at once, one wins. Method: swaps from the right, an old, a missing and a wrong state.
pub(crate) async fn a_transactional_id_changes_only_from_what_was_read<S: Store>(store: &S) {
    assert_eq!(store.transactional("payments").await, Ok(None));
    assert_eq!(store.swap_transactional(Some(1), transactional(2, 0)).await, Err(StoreError::Conflict));
    store.swap_transactional(None, transactional(1, 0)).await.unwrap();
    assert_eq!(store.transactional("payments").await, Ok(Some(transactional(1, 0))));
    assert_eq!(store.swap_transactional(None, transactional(1, 0)).await, Err(StoreError::Conflict));
    let races = join_all((1..6).map(|epoch| store.swap_transactional(Some(1), transactional(2, epoch)))).await;
    assert_eq!(races.iter().filter(|race| race.is_ok()).count(), 1, "{races:?}");
    assert_eq!(races.iter().filter(|race| **race == Err(StoreError::Conflict)).count(), 4, "{races:?}");
    let won = 1 + i16::try_from(races.iter().position(Result::is_ok).unwrap()).unwrap();
    assert_eq!(store.transactional("payments").await, Ok(Some(transactional(2, won))));
    let noted = store.producer(4000).await.unwrap().unwrap();
    assert_eq!((noted.epoch, noted.transactional_id.as_deref()), (won, Some("payments")));
}

fn state(producer_id: i64, batches: i32) -> ProducerState {
    let entry = |n: i32| RingEntry {
        first_sequence: n * 10,
        last_sequence: n * 10 + 9,
        base_offset: i64::from(n) * 10,
        timestamp: i64::from(n) * 1000,
    };
    ProducerState { producer_id, epoch: 1, ring: (0..batches).map(entry).collect(), open_since: None, updated: 5000 }
}

/// Goal: a retry is recognised by what was saved. Method: several producers, one without batches, one in a transaction.
pub(crate) async fn a_snapshot_is_read_as_it_was_saved<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 5).await;
    assert_eq!(store.snapshot(led.partition).await, Ok(ProducerSnapshot::default()));
    let open = ProducerState { open_since: Some(12), ..state(9, 2) };
    let snapshot = ProducerSnapshot { upto: 50, producers: vec![state(3, 5), state(4, 0), open] };
    store.save_snapshot(led.partition, led.epoch, snapshot.clone()).await.unwrap();
    assert_eq!(store.snapshot(led.partition).await, Ok(snapshot));
}

/// Goal: an old leader, or a late save, never takes a snapshot back. Method: both; and a newer one replaces all of it.
pub(crate) async fn a_snapshot_is_fenced_and_never_goes_back<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 5).await;
    let first = ProducerSnapshot { upto: 30, producers: vec![state(3, 3), state(4, 1)] };
    store.save_snapshot(led.partition, led.epoch, first.clone()).await.unwrap();
    for upto in [20, 30] {
        let late = ProducerSnapshot { upto, producers: vec![] };
        store.save_snapshot(led.partition, led.epoch, late).await.unwrap();
        assert_eq!(store.snapshot(led.partition).await, Ok(first.clone()));
    }
    let newer = ProducerSnapshot { upto: 50, producers: vec![state(4, 2)] };
    let wrong = store.save_snapshot(led.partition, led.epoch + 1, newer.clone()).await;
    assert_eq!(wrong, Err(StoreError::Fenced));
    assert_eq!(store.snapshot(led.partition).await, Ok(first));
    store.save_snapshot(led.partition, led.epoch, newer.clone()).await.unwrap();
    assert_eq!(store.snapshot(led.partition).await, Ok(newer));
}

/// Goal: who writes for days keeps its note. Method: a snapshot with a later write, then forget between the two.
pub(crate) async fn active_producers_are_not_forgotten<S: Store>(store: &S) {
    let led = led(store).await;
    for id in [3, 4] {
        store.note_producer(producer(id, None)).await.unwrap();
    }
    let later = now() + 3_600_000;
    let active = ProducerState { updated: later, ..state(3, 1) };
    let snapshot = ProducerSnapshot { upto: 10, producers: vec![active] };
    store.save_snapshot(led.partition, led.epoch, snapshot).await.unwrap();
    assert_eq!(store.forget_producers(later - 1000).await, Ok(1));
    assert_eq!(store.producer(3).await, Ok(Some(producer(3, None))));
    assert_eq!(store.producer(4).await, Ok(None));
}
