//! Topics in SQLite.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use super::Embedded;
use super::failure::{Undone, damaged};
use crate::config::TopicConfig;
use crate::model::{PartitionId, Topic, TopicId};
use crate::store::{NewTopic, StoreError, Topics};

const SELECT: &str =
    r#"SELECT t.id, t.uuid, t.name, t.config, p.id FROM topics t JOIN partitions p ON p.topic_id = t.id"#;

impl Topics for Embedded {
    async fn topics(&self) -> Result<Vec<Topic>, StoreError> {
        self.readers
            .call(|connection| {
                let mut statement = connection.prepare_cached(&format!(r#"{SELECT} ORDER BY t.name, p."index""#))?;
                collect(statement.query([])?)
            })
            .await
    }

    async fn topic(&self, name: &str) -> Result<Option<Topic>, StoreError> {
        let name = name.to_owned();
        self.readers
            .call(move |connection| {
                let sql = format!(r#"{SELECT} WHERE t.name = ?1 ORDER BY p."index""#);
                Ok(collect(connection.prepare_cached(&sql)?.query([name])?)?.pop())
            })
            .await
    }

    async fn create_topic(&self, new: NewTopic) -> Result<Topic, StoreError> {
        self.writer
            .call(move |connection| {
                let sql = "INSERT INTO topics (uuid, name, config) SELECT ?1, ?2, ?3 WHERE NOT EXISTS (
                    SELECT 1 FROM topics WHERE replace(name, '.', '_') = replace(?2, '.', '_'))";
                let config = text_of(&new.config)?;
                let made = connection.execute(sql, params![Uuid::new_v4().as_bytes(), new.name, config])?;
                if made == 0 {
                    return Err(StoreError::Conflict.into());
                }
                let id = TopicId(i32::try_from(connection.last_insert_rowid()).map_err(damaged)?);
                add_partitions(connection, id, 0..new.partitions)?;
                by_id(connection, id)
            })
            .await
    }

    async fn delete_topic(&self, id: TopicId) -> Result<bool, StoreError> {
        let sweep = self.writer.sweep();
        self.writer
            .call(move |connection| {
                let deleted = delete(connection, id)?;
                // Seen by the writer after this commit, also when nothing else comes.
                sweep.store(true, Ordering::Release);
                Ok(deleted)
            })
            .await
    }

    async fn grow_topic(&self, id: TopicId, count: i32) -> Result<Topic, StoreError> {
        self.writer
            .call(move |connection| {
                let sql = "SELECT count(*) FROM partitions WHERE topic_id = ?1";
                let now: i32 = connection.query_row(sql, [id.0], |row| row.get(0))?;
                if now == 0 || now >= count {
                    return Err(StoreError::Conflict.into());
                }
                add_partitions(connection, id, now..count)?;
                by_id(connection, id)
            })
            .await
    }

    async fn configure_topic(&self, id: TopicId, old: &TopicConfig, new: TopicConfig) -> Result<Topic, StoreError> {
        let old = old.clone();
        self.writer
            .call(move |connection| {
                let sql = "SELECT config FROM topics WHERE id = ?1";
                let now: Option<String> = connection.query_row(sql, [id.0], |row| row.get(0)).optional()?;
                if now.map(|text| config_of(&text)).transpose()? != Some(old) {
                    return Err(StoreError::Conflict.into());
                }
                let sql = "UPDATE topics SET config = ?2 WHERE id = ?1";
                connection.execute(sql, params![id.0, text_of(&new)?])?;
                by_id(connection, id)
            })
            .await
    }
}

fn by_id(connection: &Connection, id: TopicId) -> Result<Topic, Undone> {
    let sql = format!(r#"{SELECT} WHERE t.id = ?1 ORDER BY p."index""#);
    let found = collect(connection.prepare_cached(&sql)?.query([id.0])?)?.pop();
    found.ok_or_else(|| damaged(format!("topic {} has no partitions", id.0)))
}

fn add_partitions(connection: &Connection, id: TopicId, indexes: std::ops::Range<i32>) -> Result<(), Undone> {
    let mut insert = connection.prepare_cached(r#"INSERT INTO partitions (topic_id, "index") VALUES (?1, ?2)"#)?;
    for index in indexes {
        insert.execute([id.0, index])?;
    }
    Ok(())
}

/// Removes everything but the rows, which may be many: those are noted, and go a few megabytes at a time.
fn delete(connection: &Connection, id: TopicId) -> Result<bool, Undone> {
    let of_topic = "(SELECT id FROM partitions WHERE topic_id = ?1)";
    connection.execute(&format!("INSERT INTO removed_partitions SELECT id FROM {of_topic}"), [id.0])?;
    for table in ["leader_epochs", "snapshots", "producer_sequences"] {
        connection.execute(&format!("DELETE FROM {table} WHERE partition_id IN {of_topic}"), [id.0])?;
    }
    connection.execute("DELETE FROM group_offsets WHERE topic_id = ?1", [id.0])?;
    connection.execute("DELETE FROM partitions WHERE topic_id = ?1", [id.0])?;
    Ok(connection.execute("DELETE FROM topics WHERE id = ?1", [id.0])? > 0)
}

/// Topics from rows that come topic by topic, partitions by index.
fn collect(mut rows: rusqlite::Rows<'_>) -> Result<Vec<Topic>, Undone> {
    let mut topics: Vec<Topic> = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, partition) = (TopicId(row.get(0)?), PartitionId(row.get(4)?));
        match topics.last_mut() {
            Some(topic) if topic.id == id => topic.partitions.push(partition),
            Some(_) | None => topics.push(topic(row, id, partition)?),
        }
    }
    Ok(topics)
}

fn topic(row: &Row<'_>, id: TopicId, first: PartitionId) -> Result<Topic, Undone> {
    let uuid = Uuid::from_slice(row.get_ref(1)?.as_blob().map_err(damaged)?).map_err(damaged)?;
    let name: String = row.get(2)?;
    let config = config_of(row.get_ref(3)?.as_str().map_err(damaged)?)?;
    Ok(Topic { id, uuid, name: name.into(), partitions: vec![first], config })
}

fn text_of(config: &TopicConfig) -> Result<String, Undone> {
    serde_json::to_string(config).map_err(damaged)
}

fn config_of(text: &str) -> Result<TopicConfig, Undone> {
    serde_json::from_str(text).map_err(damaged)
}
