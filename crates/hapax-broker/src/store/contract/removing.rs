//! Removing and rewriting: the log start, trimming, replacing.

use bytes::Bytes;

use super::{all, append, append_tens, bases, led, row};
use crate::store::{LedPartition, Replacement, Store, StoreError};

async fn again<S: Store>(store: &S, led: &LedPartition) -> LedPartition {
    store.lead(&[led.partition]).await.unwrap().remove(0)
}

/// Goal: what readers were told is gone stays gone. Method: forward, back, under an old epoch.
pub(crate) async fn the_log_start_only_moves_forward<S: Store>(store: &S) {
    let first = led(store).await;
    append_tens(store, &first, 3).await;
    store.advance_log_start(first.partition, first.epoch, 15).await.unwrap();
    store.advance_log_start(first.partition, first.epoch, 5).await.unwrap();
    let second = again(store, &first).await;
    assert_eq!((second.log_start, second.end), (15, 30));
    assert_eq!(store.advance_log_start(first.partition, first.epoch, 20).await, Err(StoreError::Fenced));
    assert_eq!(again(store, &first).await.log_start, 15);
    // Nothing goes before somebody trims.
    assert_eq!(bases(&all(store, first.partition).await), [0, 10, 20]);
}

/// Goal: a row goes only when all of it is below the log start. Method: log start in mid-row; an old epoch.
pub(crate) async fn trimming_removes_what_is_wholly_below_the_log_start<S: Store>(store: &S) {
    let first = led(store).await;
    append_tens(store, &first, 4).await;
    assert_eq!(store.trim(first.partition, first.epoch, 1000).await, Ok(0));
    store.advance_log_start(first.partition, first.epoch, 25).await.unwrap();
    assert_eq!(store.trim(first.partition, first.epoch + 1, 1000).await, Err(StoreError::Fenced));
    assert_eq!(store.trim(first.partition, first.epoch, 1000).await, Ok(200));
    assert_eq!(store.trim(first.partition, first.epoch, 1000).await, Ok(0));
    assert_eq!(bases(&all(store, first.partition).await), [20, 30]);
    store.advance_log_start(first.partition, first.epoch, 30).await.unwrap();
    assert_eq!(store.trim(first.partition, first.epoch, 1000).await, Ok(100));
    assert_eq!(bases(&all(store, first.partition).await), [30]);
}

/// Goal: the next offset is never forgotten. Method: the log start at the end; trim all; lead again; append on.
pub(crate) async fn trimming_never_removes_the_last_row<S: Store>(store: &S) {
    let first = led(store).await;
    append_tens(store, &first, 3).await;
    store.advance_log_start(first.partition, first.epoch, 30).await.unwrap();
    assert_eq!(store.trim(first.partition, first.epoch, 1000).await, Ok(200));
    assert_eq!(store.trim(first.partition, first.epoch, 1000).await, Ok(0));
    let second = again(store, &first).await;
    assert_eq!((second.log_start, second.end, second.high_timestamp), (30, 30, 2000));
    append(store, &second, vec![row(first.partition, 30, 30, 3000, 10)]).await;
    assert_eq!(store.trim(first.partition, second.epoch, 1000).await, Ok(100));
    assert_eq!(bases(&all(store, first.partition).await), [30]);
}

/// Goal: trimming never blocks for long. Method: ten rows, a limit of two and a half.
pub(crate) async fn trimming_goes_step_by_step<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 11).await;
    store.advance_log_start(led.partition, led.epoch, 100).await.unwrap();
    let mut steps = Vec::new();
    loop {
        match store.trim(led.partition, led.epoch, 250).await.unwrap() {
            0 => break,
            bytes => steps.push(bytes),
        }
    }
    assert!(steps.len() >= 3 && steps.iter().all(|bytes| (100..=300).contains(bytes)), "{steps:?}");
    assert_eq!(steps.iter().sum::<u64>(), 1000);
    assert_eq!(bases(&all(store, led.partition).await), [100]);
}

/// Goal: compaction puts less into a row, and its offsets stay. Method: one smaller, one gone; an old epoch; no such row.
pub(crate) async fn rows_are_replaced_in_place<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 4).await;
    let less = Bytes::from_static(b"less");
    let rows =
        vec![Replacement { base_offset: 10, data: Some(less.clone()) }, Replacement { base_offset: 20, data: None }];
    assert_eq!(store.replace(led.partition, led.epoch + 1, rows.clone()).await, Err(StoreError::Fenced));
    assert_eq!(all(store, led.partition).await.len(), 4);
    store.replace(led.partition, led.epoch, rows).await.unwrap();
    let found = all(store, led.partition).await;
    assert_eq!(bases(&found), [0, 10, 30]);
    assert_eq!((found[1].last_offset, &found[1].data), (19, &less));
    let listed = store.list(led.partition, 10, 1).await.unwrap();
    assert_eq!((listed[0].last_offset, listed[0].size, listed[0].high_timestamp), (19, 4, 1000));
    assert_eq!(again(store, &led).await.end, 40);
}

/// Goal: the next offset is never forgotten. Method: replace the last row, together with one that may be.
pub(crate) async fn the_last_row_is_never_replaced<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 2).await;
    let before = all(store, led.partition).await;
    for data in [None, Some(Bytes::from_static(b"x"))] {
        let rows = vec![Replacement { base_offset: 0, data: None }, Replacement { base_offset: 10, data }];
        assert_eq!(store.replace(led.partition, led.epoch, rows).await, Err(StoreError::Conflict));
        assert_eq!(all(store, led.partition).await, before);
    }
}
