//! Groups in SQLite: one shard, whose epoch rises when a coordinator begins.

use bytes::Bytes;
use rusqlite::{Connection, params};

use super::Embedded;
use super::failure::{Undone, damaged};
use crate::model::{Timestamp, TopicId};
use crate::store::{CommittedOffset, GroupFence, GroupRow, Groups, GroupsLed, StoreError};

impl Groups for Embedded {
    async fn lead_groups(&self) -> Result<GroupsLed, StoreError> {
        self.writer
            .call(|connection| {
                let sql = "UPDATE shards SET epoch = epoch + 1 WHERE id = 0 RETURNING epoch";
                let epoch = connection.query_row(sql, [], |row| row.get(0))?;
                let mut statement = connection.prepare_cached(r#"SELECT id, empty_since, state FROM "groups""#)?;
                let mut found = statement.query([])?;
                let mut groups = Vec::new();
                while let Some(row) = found.next()? {
                    let state = Bytes::copy_from_slice(row.get_ref(2)?.as_blob().map_err(damaged)?);
                    groups.push(GroupRow { id: row.get(0)?, empty_since: row.get(1)?, state });
                }
                Ok(GroupsLed { fence: GroupFence { epochs: vec![epoch] }, groups })
            })
            .await
    }

    async fn save_group(&self, fence: &GroupFence, row: GroupRow) -> Result<(), StoreError> {
        let fence = fence.clone();
        self.writer
            .call(move |connection| {
                fenced(connection, &fence)?;
                let sql = r#"INSERT INTO "groups" VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET
                    empty_since = excluded.empty_since, state = excluded.state"#;
                connection.prepare_cached(sql)?.execute(params![row.id, row.empty_since, &row.state[..]])?;
                Ok(())
            })
            .await
    }

    async fn delete_groups(&self, fence: &GroupFence, ids: &[String]) -> Result<(), StoreError> {
        let (fence, ids) = (fence.clone(), ids.to_vec());
        self.writer
            .call(move |connection| {
                fenced(connection, &fence)?;
                for id in &ids {
                    connection.prepare_cached("DELETE FROM group_offsets WHERE group_id = ?1")?.execute([id])?;
                    connection.prepare_cached(r#"DELETE FROM "groups" WHERE id = ?1"#)?.execute([id])?;
                }
                Ok(())
            })
            .await
    }

    async fn commit_offsets(
        &self,
        fence: &GroupFence,
        offsets: Vec<(String, CommittedOffset)>,
    ) -> Result<(), StoreError> {
        let fence = fence.clone();
        self.writer.call(move |connection| commit(connection, &fence, &offsets)).await
    }

    async fn offsets(&self, group: &str) -> Result<Vec<CommittedOffset>, StoreError> {
        let group = group.to_owned();
        self.readers.call(move |connection| offsets(connection, &group)).await
    }

    async fn groups_with_offsets(&self) -> Result<Vec<(String, Timestamp)>, StoreError> {
        self.readers
            .call(|connection| {
                let sql = "SELECT group_id, max(committed) FROM group_offsets GROUP BY group_id ORDER BY group_id";
                let mut statement = connection.prepare_cached(sql)?;
                let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(found.collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn delete_offsets(
        &self,
        fence: &GroupFence,
        group: &str,
        partitions: &[(TopicId, i32)],
    ) -> Result<(), StoreError> {
        let (fence, group, partitions) = (fence.clone(), group.to_owned(), partitions.to_vec());
        self.writer
            .call(move |connection| {
                fenced(connection, &fence)?;
                let sql = r#"DELETE FROM group_offsets WHERE group_id = ?1 AND topic_id = ?2 AND "index" = ?3"#;
                let mut delete = connection.prepare_cached(sql)?;
                for (topic, index) in &partitions {
                    delete.execute(params![group, topic.0, index])?;
                }
                Ok(())
            })
            .await
    }
}

fn fenced(connection: &Connection, fence: &GroupFence) -> Result<(), Undone> {
    let mut statement = connection.prepare_cached("SELECT epoch FROM shards WHERE id = 0")?;
    let epoch: i32 = statement.query_row([], |row| row.get(0))?;
    if fence.epochs == [epoch] { Ok(()) } else { Err(StoreError::Fenced.into()) }
}

fn commit(connection: &Connection, fence: &GroupFence, offsets: &[(String, CommittedOffset)]) -> Result<(), Undone> {
    fenced(connection, fence)?;
    // In order, so that the last of each key counts.
    let sql = r#"INSERT INTO group_offsets VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        ON CONFLICT (group_id, topic_id, "index") DO UPDATE SET "offset" = excluded."offset",
        leader_epoch = excluded.leader_epoch, metadata = excluded.metadata, committed = excluded.committed"#;
    let mut upsert = connection.prepare_cached(sql)?;
    for (group, offset) in offsets {
        upsert.execute(params![
            group,
            offset.topic.0,
            offset.index,
            offset.offset,
            offset.leader_epoch,
            offset.metadata,
            offset.committed,
        ])?;
    }
    Ok(())
}

fn offsets(connection: &Connection, group: &str) -> Result<Vec<CommittedOffset>, Undone> {
    let sql = r#"SELECT topic_id, "index", "offset", leader_epoch, metadata, committed FROM group_offsets
        WHERE group_id = ?1 ORDER BY topic_id, "index""#;
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map([group], |row| {
        Ok(CommittedOffset {
            topic: TopicId(row.get(0)?),
            index: row.get(1)?,
            offset: row.get(2)?,
            leader_epoch: row.get(3)?,
            metadata: row.get(4)?,
            committed: row.get(5)?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
