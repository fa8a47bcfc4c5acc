//! Groups: state and offsets, written only by the coordinator that leads.

use std::slice::from_ref;

use bytes::Bytes;

use super::topic;
use crate::model::TopicId;
use crate::store::{CommittedOffset, GroupFence, GroupRow, Store, StoreError};

fn group(id: &str, state: &'static [u8], empty_since: Option<i64>) -> GroupRow {
    GroupRow { id: id.to_owned(), empty_since, state: Bytes::from_static(state) }
}

fn offset(topic: TopicId, index: i32, offset: i64) -> CommittedOffset {
    CommittedOffset { topic, index, offset, leader_epoch: 3, metadata: "note".to_owned(), committed: 1000 + offset }
}

async fn commit<S: Store>(store: &S, fence: &GroupFence, name: &str, offsets: Vec<CommittedOffset>) {
    let offsets = offsets.into_iter().map(|offset| (name.to_owned(), offset)).collect();
    store.commit_offsets(fence, offsets).await.unwrap();
}

/// Goal: members survive their coordinator. Method: save, save again, lead anew.
pub(crate) async fn a_new_coordinator_reads_what_was_saved<S: Store>(store: &S) {
    let first = store.lead_groups().await.unwrap();
    assert_eq!(first.groups, []);
    store.save_group(&first.fence, group("a", b"one", Some(5))).await.unwrap();
    store.save_group(&first.fence, group("b", b"", Some(6))).await.unwrap();
    store.save_group(&first.fence, group("a", b"two", None)).await.unwrap();
    let mut second = store.lead_groups().await.unwrap();
    assert_ne!(second.fence, first.fence);
    second.groups.sort_by(|left, right| left.id.cmp(&right.id));
    assert_eq!(second.groups, [group("a", b"two", None), group("b", b"", Some(6))]);
}

/// Goal: a coordinator that was replaced changes nothing. Method: every write under the old fence.
pub(crate) async fn an_old_coordinator_writes_nothing<S: Store>(store: &S) {
    let id = topic(store, "orders", 1).await.id;
    let old = store.lead_groups().await.unwrap().fence;
    store.save_group(&old, group("a", b"one", None)).await.unwrap();
    commit(store, &old, "a", vec![offset(id, 0, 5)]).await;
    let new = store.lead_groups().await.unwrap().fence;
    let ids = ["a".to_owned()];
    assert_eq!(store.save_group(&old, group("a", b"two", None)).await, Err(StoreError::Fenced));
    assert_eq!(store.delete_groups(&old, &ids).await, Err(StoreError::Fenced));
    let late = vec![("a".to_owned(), offset(id, 0, 4))];
    assert_eq!(store.commit_offsets(&old, late).await, Err(StoreError::Fenced));
    assert_eq!(store.delete_offsets(&old, "a", &[(id, 0)]).await, Err(StoreError::Fenced));
    assert_eq!(store.offsets("a").await, Ok(vec![offset(id, 0, 5)]));
    assert_eq!(store.lead_groups().await.unwrap().groups, [group("a", b"one", None)]);
    assert_eq!(store.delete_groups(&new, &ids).await, Err(StoreError::Fenced));
}

/// Goal: offsets go forward and back as the client says, and the last word counts.
/// Method: one key twice in one commit, several groups, partitions out of order.
pub(crate) async fn the_last_offset_of_each_key_counts<S: Store>(store: &S) {
    let (one, two) = (topic(store, "one", 2).await.id, topic(store, "two", 1).await.id);
    let fence = store.lead_groups().await.unwrap().fence;
    let mixed = vec![
        ("a".to_owned(), offset(two, 0, 1)),
        ("a".to_owned(), offset(one, 1, 7)),
        ("b".to_owned(), offset(one, 1, 99)),
        ("a".to_owned(), offset(one, 1, 8)),
        ("a".to_owned(), offset(one, 0, 2)),
    ];
    store.commit_offsets(&fence, mixed).await.unwrap();
    assert_eq!(store.offsets("a").await, Ok(vec![offset(one, 0, 2), offset(one, 1, 8), offset(two, 0, 1)]));
    assert_eq!(store.offsets("b").await, Ok(vec![offset(one, 1, 99)]));
    commit(store, &fence, "a", vec![offset(one, 1, 3)]).await;
    assert_eq!(store.offsets("a").await, Ok(vec![offset(one, 0, 2), offset(one, 1, 3), offset(two, 0, 1)]));
    let with = store.groups_with_offsets().await.unwrap();
    assert_eq!(with, [("a".to_owned(), 1003), ("b".to_owned(), 1099)]);
    assert_eq!(store.offsets("nobody").await, Ok(vec![]));
    store.commit_offsets(&fence, vec![]).await.unwrap();
}

/// Goal: a deleted group is gone whole, and no other. Method: two groups; one goes, with one that never was.
pub(crate) async fn deleted_groups_take_their_offsets_with_them<S: Store>(store: &S) {
    let id = topic(store, "orders", 1).await.id;
    let fence = store.lead_groups().await.unwrap().fence;
    for name in ["a", "b"] {
        store.save_group(&fence, group(name, b"state", None)).await.unwrap();
        commit(store, &fence, name, vec![offset(id, 0, 5)]).await;
    }
    store.delete_groups(&fence, &["a".to_owned(), "never".to_owned()]).await.unwrap();
    assert_eq!(store.offsets("a").await, Ok(vec![]));
    assert_eq!(store.offsets("b").await, Ok(vec![offset(id, 0, 5)]));
    assert_eq!(store.lead_groups().await.unwrap().groups, [group("b", b"state", None)]);
}

/// Goal: some offsets go, the others stay. Method: two partitions of two groups.
pub(crate) async fn single_offsets_are_deleted<S: Store>(store: &S) {
    let id = topic(store, "orders", 2).await.id;
    let fence = store.lead_groups().await.unwrap().fence;
    for name in ["a", "b"] {
        commit(store, &fence, name, vec![offset(id, 0, 5), offset(id, 1, 6)]).await;
    }
    store.delete_offsets(&fence, "a", from_ref(&(id, 0))).await.unwrap();
    store.delete_offsets(&fence, "a", &[]).await.unwrap();
    assert_eq!(store.offsets("a").await, Ok(vec![offset(id, 1, 6)]));
    assert_eq!(store.offsets("b").await, Ok(vec![offset(id, 0, 5), offset(id, 1, 6)]));
}
