//! The log: epochs decide who writes, a group is one atom.

use std::collections::HashMap;

use super::{all, append, append_tens, bases, led, row, topic};
use crate::model::PartitionId;
use crate::store::{Append, Appended, Store, StoreError};

/// Goal: a new leader knows where it begins. Method: lead, append, lead again.
pub(crate) async fn leading_raises_the_epoch_and_reads_the_end<S: Store>(store: &S) {
    let first = led(store).await;
    assert_eq!((first.epoch, first.log_start, first.end, first.high_timestamp), (1, 0, 0, -1));
    append_tens(store, &first, 3).await;
    let second = store.lead(&[first.partition]).await.unwrap().remove(0);
    assert_eq!((second.epoch, second.log_start, second.end, second.high_timestamp), (2, 0, 30, 2000));
}

/// Goal: only what exists is led. Method: one partition that exists, one that does not.
pub(crate) async fn leading_an_unknown_partition_leads_nothing<S: Store>(store: &S) {
    let made = topic(store, "orders", 1).await;
    let led = store.lead(&[made.partitions[0], PartitionId(i32::MAX)]).await.unwrap();
    assert_eq!(led.iter().map(|led| led.partition).collect::<Vec<_>>(), made.partitions);
    assert_eq!(store.lead(&[]).await, Ok(vec![]));
}

/// Goal: a group with one refused partition writes nothing, and names it. Method: two partitions, one under an old epoch.
pub(crate) async fn an_append_is_all_or_nothing<S: Store>(store: &S) {
    let made = topic(store, "orders", 2).await;
    let (good, lost) = (made.partitions[0], made.partitions[1]);
    store.lead(&made.partitions).await.unwrap();
    store.lead(&[lost]).await.unwrap();
    let rows = vec![row(good, 0, 9, 1, 100), row(lost, 0, 9, 1, 100)];
    let group = Append { led: vec![(good, 1), (lost, 1)], rows };
    assert_eq!(store.append(group.clone()).await, Ok(Appended::Refused(vec![lost])));
    assert_eq!((all(store, good).await, all(store, lost).await), (vec![], vec![]));
    let group = Append { led: vec![(good, 1), (lost, 2)], ..group };
    assert_eq!(store.append(group).await, Ok(Appended::Done));
    assert_eq!((all(store, good).await.len(), all(store, lost).await.len()), (1, 1));
}

/// Goal: only the epoch of the store writes. Method: one lower, one higher, a partition that never was.
pub(crate) async fn another_epoch_is_refused<S: Store>(store: &S) {
    let partition = led(store).await.partition;
    store.lead(&[partition]).await.unwrap();
    for epoch in [0, 1, 3] {
        let group = Append { led: vec![(partition, epoch)], rows: vec![row(partition, 0, 9, 1, 100)] };
        assert_eq!(store.append(group).await, Ok(Appended::Refused(vec![partition])), "{epoch}");
    }
    let nowhere = PartitionId(i32::MAX);
    let group = Append { led: vec![(nowhere, 0)], rows: vec![row(nowhere, 0, 9, 1, 100)] };
    assert_eq!(store.append(group).await, Ok(Appended::Refused(vec![nowhere])));
    assert_eq!(all(store, partition).await, []);
}

/// Goal: a leader that forgot where it stood overwrites nothing. Method: the same base offset again, behind a good row.
pub(crate) async fn an_offset_is_written_once<S: Store>(store: &S) {
    let led = led(store).await;
    append_tens(store, &led, 1).await;
    let before = all(store, led.partition).await;
    let rows = vec![row(led.partition, 10, 19, 5, 50), row(led.partition, 0, 9, 5, 50)];
    let group = Append { led: vec![(led.partition, led.epoch)], rows };
    assert_eq!(store.append(group).await, Err(StoreError::Conflict));
    assert_eq!(all(store, led.partition).await, before);
}

/// Goal: a reader can ask where an epoch ended. Method: three leaders, with appends between.
pub(crate) async fn epochs_tell_where_they_began<S: Store>(store: &S) {
    let first = led(store).await;
    append_tens(store, &first, 2).await;
    let second = store.lead(&[first.partition]).await.unwrap().remove(0);
    let third = store.lead(&[first.partition]).await.unwrap().remove(0);
    append(store, &third, vec![row(first.partition, 20, 20, 9000, 10)]).await;
    assert_eq!((second.epoch, third.epoch), (2, 3));
    assert_eq!(store.leader_epochs(first.partition).await, Ok(vec![(1, 0), (2, 20), (3, 20)]));
}

/// Goal: a group is what a commit is: many partitions, many rows each. Method: three of each, read back.
pub(crate) async fn rows_of_many_partitions_go_in_one_group<S: Store>(store: &S) {
    let partitions = topic(store, "orders", 3).await.partitions;
    store.lead(&partitions).await.unwrap();
    let rows = |partition| (0..3).map(move |n| row(partition, n * 10, n * 10 + 9, n, 100));
    let group = Append {
        led: partitions.iter().map(|partition| (*partition, 1)).collect(),
        rows: partitions.iter().copied().flat_map(rows).collect(),
    };
    assert_eq!(store.append(group.clone()).await, Ok(Appended::Done));
    for (partition, written) in partitions.iter().zip(group.rows.chunks(3)) {
        let found = all(store, *partition).await;
        assert_eq!(bases(&found), [0, 10, 20]);
        assert!(found.iter().zip(written).all(|(found, written)| found.data == written.data));
        assert!(found.iter().zip(written).all(|(found, written)| found.last_offset == written.last_offset));
    }
}

/// Goal: retention by size can count. Method: rows in one of two partitions.
pub(crate) async fn sizes_are_bytes_of_data<S: Store>(store: &S) {
    let led = led(store).await;
    let empty = topic(store, "empty", 1).await.partitions[0];
    append_tens(store, &led, 4).await;
    let sizes: HashMap<_, _> = store.sizes(&[led.partition, empty]).await.unwrap().into_iter().collect();
    assert_eq!(sizes.get(&led.partition), Some(&400));
    assert_eq!(sizes.get(&empty).copied().unwrap_or(0), 0);
}
