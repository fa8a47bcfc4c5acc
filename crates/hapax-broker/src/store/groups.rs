//! Groups: their state as one blob each, and their offsets.

use std::future::Future;

use bytes::Bytes;

use crate::model::{Offset, Timestamp, TopicId};
use crate::store::StoreError;

/// Under which epochs we coordinate groups, by shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupFence {
    /// One epoch per shard.
    pub epochs: Vec<i32>,
}

/// A group's state, as the coordinator wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRow {
    /// Its name.
    pub id: String,
    /// Since when it has no members.
    pub empty_since: Option<Timestamp>,
    /// Members, generation, protocol, assignments: only the coordinator reads it.
    pub state: Bytes,
}

/// An offset that a group has committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    /// Of which topic.
    pub topic: TopicId,
    /// Of which partition.
    pub index: i32,
    /// The next offset to read.
    pub offset: Offset,
    /// The leader epoch the client named, or -1.
    pub leader_epoch: i32,
    /// What the client added.
    pub metadata: String,
    /// When.
    pub committed: Timestamp,
}

/// What a new coordinator begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupsLed {
    /// Named in every write from now on.
    pub fence: GroupFence,
    /// All groups that have state.
    pub groups: Vec<GroupRow>,
}

/// Groups. A write under a fence that is no longer the store's is refused as [`StoreError::Fenced`] and does nothing.
pub trait Groups {
    /// Makes us coordinator of all groups (every shard that nobody else alive has), raises the epochs, and reads the groups
    /// after that. [`StoreError::Fenced`] while another broker that lives has them.
    fn lead_groups(&self) -> impl Future<Output = Result<GroupsLed, StoreError>> + Send;

    /// Writes a group's state.
    fn save_group(&self, fence: &GroupFence, row: GroupRow) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Removes groups with their offsets.
    fn delete_groups(&self, fence: &GroupFence, ids: &[String]) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Writes offsets of one or many groups, the last of each key counts, all or nothing.
    fn commit_offsets(
        &self,
        fence: &GroupFence,
        offsets: Vec<(String, CommittedOffset)>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The offsets of a group as they are now, whoever wrote them, by topic and index.
    fn offsets(&self, group: &str) -> impl Future<Output = Result<Vec<CommittedOffset>, StoreError>> + Send;

    /// All groups that have offsets, with the time of the newest.
    fn groups_with_offsets(&self) -> impl Future<Output = Result<Vec<(String, Timestamp)>, StoreError>> + Send;

    /// Removes offsets of a group in some partitions.
    fn delete_offsets(
        &self,
        fence: &GroupFence,
        group: &str,
        partitions: &[(TopicId, i32)],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
