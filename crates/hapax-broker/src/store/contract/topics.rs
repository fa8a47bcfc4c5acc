//! Topics: unique names, numbers that are never used again, changes by compare and swap.

use std::collections::HashSet;

use bytes::Bytes;

use super::{all, append_tens, led, row, topic};
use crate::config::TopicConfig;
use crate::model::TopicId;
use crate::store::{
    Append, Appended, CommittedOffset, NewTopic, ProducerSnapshot, ProducerState, Replacement, Store, StoreError,
};

fn config(name: &str, value: &str) -> TopicConfig {
    TopicConfig([(name.to_owned(), value.to_owned())].into())
}

/// Goal: what is made is found. Method: two topics, by name and in the list, in the order of names.
pub(crate) async fn a_topic_is_found_by_name_and_in_the_list<S: Store>(store: &S) {
    let settings = config("retention.ms", "1000");
    let new = NewTopic { name: "b".to_owned(), partitions: 3, config: settings.clone() };
    let b = store.create_topic(new).await.unwrap();
    assert_eq!((&*b.name, b.partitions.len(), &b.config), ("b", 3, &settings));
    let a = topic(store, "a", 1).await;
    assert_eq!(store.topic("b").await, Ok(Some(b.clone())));
    assert_eq!(store.topic("c").await, Ok(None));
    assert_eq!(store.topics().await, Ok(vec![a, b]));
}

/// Goal: two topics never have one name. Method: make it twice.
pub(crate) async fn a_name_is_taken_once<S: Store>(store: &S) {
    let first = topic(store, "orders", 1).await;
    let again = NewTopic { name: "orders".to_owned(), partitions: 2, config: TopicConfig::default() };
    assert_eq!(store.create_topic(again).await, Err(StoreError::Conflict));
    assert_eq!(store.topics().await, Ok(vec![first]));
}

/// Goal: two topics never have names that differ in `.` and `_` only. Method: three names that collide with one, two that do not.
pub(crate) async fn names_that_collide_are_taken_once<S: Store>(store: &S) {
    topic(store, "a.b_c", 1).await;
    for name in ["a_b_c", "a.b.c", "a_b.c"] {
        let new = NewTopic { name: name.to_owned(), partitions: 1, config: TopicConfig::default() };
        assert_eq!(store.create_topic(new).await, Err(StoreError::Conflict), "{name}");
        assert_eq!(store.topic(name).await, Ok(None));
    }
    for name in ["a-b_c", "a.b_c_"] {
        topic(store, name, 1).await;
    }
}

/// Goal: a topic made anew is another one. Method: make and delete the same name three times.
pub(crate) async fn numbers_are_never_given_out_twice<S: Store>(store: &S) {
    let (mut ids, mut uuids, mut partitions) = (HashSet::new(), HashSet::new(), HashSet::new());
    for _ in 0..3 {
        let made = topic(store, "orders", 2).await;
        assert!(ids.insert(made.id) && uuids.insert(made.uuid), "{made:?}");
        assert!(made.partitions.iter().all(|partition| partitions.insert(*partition)), "{made:?}");
        assert_eq!(store.delete_topic(made.id).await, Ok(true));
        assert_eq!(store.delete_topic(made.id).await, Ok(false));
        assert_eq!(store.topic("orders").await, Ok(None));
    }
}

/// Goal: nothing of a deleted topic is left, and who writes on by its numbers is refused.
/// Method: rows, a snapshot and a group's offset in it; delete, look everywhere, write everything.
pub(crate) async fn a_deleted_topic_leaves_nothing<S: Store>(store: &S) {
    let old = led(store).await;
    let (partition, epoch) = (old.partition, old.epoch);
    append_tens(store, &old, 3).await;
    let producer = ProducerState { producer_id: 7, epoch: 0, ring: vec![], open_since: None, updated: 1 };
    let snapshot = ProducerSnapshot { upto: 30, producers: vec![producer] };
    store.save_snapshot(partition, epoch, snapshot.clone()).await.unwrap();
    let id = store.topic("orders").await.unwrap().unwrap().id;
    let fence = store.lead_groups().await.unwrap().fence;
    let offset =
        CommittedOffset { topic: id, index: 0, offset: 5, leader_epoch: -1, metadata: String::new(), committed: 1 };
    store.commit_offsets(&fence, vec![("readers".to_owned(), offset)]).await.unwrap();

    assert_eq!(store.delete_topic(id).await, Ok(true));
    assert_eq!(all(store, partition).await, []);
    assert_eq!(store.list(partition, 0, 10).await, Ok(vec![]));
    assert_eq!(store.row_at_time(partition, 0).await, Ok(None));
    assert_eq!(store.leader_epochs(partition).await, Ok(vec![]));
    assert_eq!(store.snapshot(partition).await, Ok(ProducerSnapshot::default()));
    assert_eq!(store.offsets("readers").await, Ok(vec![]));
    let group = Append { led: vec![(partition, epoch)], rows: vec![row(partition, 30, 39, 3000, 10)] };
    assert_eq!(store.append(group).await, Ok(Appended::Refused(vec![partition])));
    assert_eq!(store.lead(&[partition]).await, Ok(vec![]));
    assert_eq!(store.save_snapshot(partition, epoch, snapshot).await, Err(StoreError::Fenced));
    assert_eq!(store.advance_log_start(partition, epoch, 10).await, Err(StoreError::Fenced));
    assert_eq!(store.trim(partition, epoch, 1000).await, Err(StoreError::Fenced));
    let replacement = Replacement { base_offset: 0, data: Some(Bytes::from_static(b"x")) };
    assert_eq!(store.replace(partition, epoch, vec![replacement]).await, Err(StoreError::Fenced));

    let new = led(store).await;
    assert_ne!(new.partition, partition);
    assert_eq!((new.log_start, new.end, new.high_timestamp), (0, 0, -1));
    assert_eq!(store.snapshot(new.partition).await, Ok(ProducerSnapshot::default()));
}

/// Goal: partitions are added behind the others. Method: grow, grow to as many, shrink, grow what is not there.
pub(crate) async fn a_topic_grows_and_never_shrinks<S: Store>(store: &S) {
    let old = topic(store, "orders", 2).await;
    let new = store.grow_topic(old.id, 4).await.unwrap();
    assert_eq!((new.id, new.uuid, new.partitions.len()), (old.id, old.uuid, 4));
    assert_eq!(new.partitions[..2], old.partitions[..]);
    for count in [4, 3, 0] {
        assert_eq!(store.grow_topic(old.id, count).await, Err(StoreError::Conflict), "{count}");
    }
    assert_eq!(store.grow_topic(TopicId(i32::MAX), 4).await, Err(StoreError::Conflict));
    assert_eq!(store.topic("orders").await, Ok(Some(new)));
}

/// Goal: two who change settings at once do not undo each other. Method: change twice from the same state.
pub(crate) async fn settings_change_only_from_what_was_read<S: Store>(store: &S) {
    let made = topic(store, "orders", 1).await;
    let (first, second) = (config("retention.ms", "1"), config("retention.ms", "2"));
    let changed = store.configure_topic(made.id, &made.config, first.clone()).await.unwrap();
    assert_eq!(changed.config, first);
    assert_eq!(store.configure_topic(made.id, &made.config, second.clone()).await, Err(StoreError::Conflict));
    let nobody = TopicId(i32::MAX);
    assert_eq!(store.configure_topic(nobody, &made.config, second).await, Err(StoreError::Conflict));
    assert_eq!(store.topic("orders").await, Ok(Some(changed)));
}
