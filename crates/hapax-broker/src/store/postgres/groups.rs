//! Groups and their offsets, written on a session of their own, fenced by the epochs of their shards.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use hapax_sql::postgres::tokio_postgres::Row;

use super::PostgresStore;
use super::link::Parameters;
use super::text::{given, kept};
use crate::model::{Timestamp, TopicId};
use crate::store::{CommittedOffset, GroupFence, GroupRow, Groups, GroupsLed, StoreError};

/// As many as `kafka.shards` has rows. Which shard a group is in is never changed: both sides of a take-over must agree.
const SHARDS: u32 = 16;

const OFFSETS: &str = "SELECT topic_id, index, \"offset\", leader_epoch, coalesce(metadata, ''), kafka.ms(committed) \
     FROM kafka.group_offsets WHERE group_id = $1 ORDER BY topic_id, index";

impl Groups for PostgresStore {
    async fn lead_groups(&self) -> Result<GroupsLed, StoreError> {
        let rows = self.groups.write("SELECT kafka.lead_groups($1)", &[&self.me.0]).await?;
        let epochs: Option<Vec<i32>> = rows.first().and_then(|row| row.get(0));
        let fence = GroupFence { epochs: epochs.ok_or(StoreError::Fenced)? };
        let sql = "SELECT id::text, kafka.ms(empty_since), state FROM kafka.groups ORDER BY id";
        let rows = self.groups.read(sql, &[]).await?;
        Ok(GroupsLed { fence, groups: rows.iter().map(group).collect() })
    }

    async fn save_group(&self, fence: &GroupFence, row: GroupRow) -> Result<(), StoreError> {
        let (shards, epochs) = held(fence, [row.id.as_str()])?;
        let sql = "SELECT kafka.save_group($1, $2, $3, $4, $5)";
        self.fenced(sql, &[&shards, &epochs, &kept(&row.id), &row.empty_since, &row.state.as_ref()]).await
    }

    async fn delete_groups(&self, fence: &GroupFence, ids: &[String]) -> Result<(), StoreError> {
        let (shards, epochs) = held(fence, ids.iter().map(String::as_str))?;
        let ids: Vec<_> = ids.iter().map(|id| kept(id)).collect();
        self.fenced("SELECT kafka.delete_groups($1, $2, $3)", &[&shards, &epochs, &ids]).await
    }

    async fn commit_offsets(
        &self,
        fence: &GroupFence,
        offsets: Vec<(String, CommittedOffset)>,
    ) -> Result<(), StoreError> {
        let (shards, epochs) = held(fence, offsets.iter().map(|(group, _)| group.as_str()))?;
        // The last of each key counts, and a statement may name a key once.
        let newest: BTreeMap<_, _> =
            offsets.iter().map(|(group, offset)| ((group.as_str(), offset.topic, offset.index), offset)).collect();
        let groups: Vec<_> = newest.keys().map(|(group, _, _)| kept(group)).collect();
        let topics: Vec<i32> = newest.keys().map(|(_, topic, _)| topic.0).collect();
        let indexes: Vec<i32> = newest.keys().map(|(_, _, index)| *index).collect();
        let positions: Vec<i64> = newest.values().map(|offset| offset.offset).collect();
        let leaders: Vec<i32> = newest.values().map(|offset| offset.leader_epoch).collect();
        let metadata: Vec<_> = newest.values().map(|offset| kept(&offset.metadata)).collect();
        let times: Vec<i64> = newest.values().map(|offset| offset.committed).collect();
        let sql = "SELECT kafka.commit_offsets($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        self.fenced(sql, &[&shards, &epochs, &groups, &topics, &indexes, &positions, &leaders, &metadata, &times]).await
    }

    async fn offsets(&self, group: &str) -> Result<Vec<CommittedOffset>, StoreError> {
        let rows = self.desk.read(OFFSETS, &[&kept(group)]).await?;
        Ok(rows.iter().map(offset).collect())
    }

    async fn groups_with_offsets(&self) -> Result<Vec<(String, Timestamp)>, StoreError> {
        let sql = "SELECT group_id::text, kafka.ms(max(committed)) FROM kafka.group_offsets GROUP BY group_id ORDER BY group_id";
        let rows = self.desk.read(sql, &[]).await?;
        Ok(rows.iter().map(|row| (given(row.get(0)), row.get(1))).collect())
    }

    async fn delete_offsets(
        &self,
        fence: &GroupFence,
        group: &str,
        partitions: &[(TopicId, i32)],
    ) -> Result<(), StoreError> {
        let (shards, epochs) = held(fence, [group])?;
        let (topics, indexes): (Vec<i32>, Vec<i32>) = partitions.iter().map(|(topic, index)| (topic.0, *index)).unzip();
        let sql = "SELECT kafka.delete_offsets($1, $2, $3, $4, $5)";
        self.fenced(sql, &[&shards, &epochs, &kept(group), &topics, &indexes]).await
    }
}

impl PostgresStore {
    /// A write that answers whether its fence holds.
    async fn fenced(&self, sql: &str, parameters: Parameters<'_>) -> Result<(), StoreError> {
        let rows = self.groups.write(sql, parameters).await?;
        if rows.first().is_some_and(|row| row.get(0)) { Ok(()) } else { Err(StoreError::Fenced) }
    }
}

/// The shards of these groups, each once, with the epochs under which we have them.
fn held<'a>(fence: &GroupFence, groups: impl IntoIterator<Item = &'a str>) -> Result<(Vec<i32>, Vec<i32>), StoreError> {
    let shards: BTreeSet<u32> = groups.into_iter().map(shard).collect();
    let pairs = shards.into_iter().map(|shard| {
        let epoch = fence.epochs.get(shard as usize).ok_or(StoreError::Fenced)?;
        Ok((shard.cast_signed(), *epoch))
    });
    pairs.collect::<Result<Vec<_>, _>>().map(|pairs| pairs.into_iter().unzip())
}

fn shard(group: &str) -> u32 {
    crc32c::crc32c(group.as_bytes()) % SHARDS
}

fn group(row: &Row) -> GroupRow {
    let state: &[u8] = row.get(2);
    GroupRow { id: given(row.get(0)), empty_since: row.get(1), state: Bytes::copy_from_slice(state) }
}

fn offset(row: &Row) -> CommittedOffset {
    CommittedOffset {
        topic: TopicId(row.get(0)),
        index: row.get(1),
        offset: row.get(2),
        leader_epoch: row.get(3),
        metadata: given(row.get(4)),
        committed: row.get(5),
    }
}
