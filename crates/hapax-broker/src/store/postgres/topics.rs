//! Topics in `kafka.topics` and `kafka.partitions`.

use std::sync::Arc;

use hapax_sql::postgres::tokio_postgres::Row;
use uuid::Uuid;

use super::PostgresStore;
use super::link::Link;
use crate::config::TopicConfig;
use crate::model::{PartitionId, Topic, TopicId};
use crate::store::{NewTopic, StoreError, Topics};

/// A removed topic's rows that go before the caller is answered, in slices of 200; the rest goes in the background.
const SLICES_AT_ONCE: usize = 16;

/// What a topic is read from; the caller adds the condition.
macro_rules! select {
    ($condition:literal) => {
        concat!(
            "SELECT t.id, t.uuid::text, t.name::text, t.config::text, \
             ARRAY(SELECT q.id FROM kafka.partitions q WHERE q.topic_id = t.id ORDER BY q.index) FROM kafka.topics t ",
            $condition
        )
    };
}

impl Topics for PostgresStore {
    async fn topics(&self) -> Result<Vec<Topic>, StoreError> {
        let rows = self.desk.read(select!("ORDER BY t.name"), &[]).await?;
        rows.iter().map(topic).collect()
    }

    async fn topic(&self, name: &str) -> Result<Option<Topic>, StoreError> {
        if name.contains('\0') {
            return Ok(None);
        }
        let rows = self.desk.read(select!("WHERE t.name = $1"), &[&name]).await?;
        rows.first().map(topic).transpose()
    }

    async fn create_topic(&self, new: NewTopic) -> Result<Topic, StoreError> {
        let sql = "WITH t AS (INSERT INTO kafka.topics (name, partitions, config) SELECT $1::text, $2::int, $3::text::jsonb \
               WHERE NOT EXISTS (SELECT 1 FROM kafka.topics o WHERE replace(o.name, '.', '_') = replace($1::text, '.', '_')) \
               ON CONFLICT DO NOTHING RETURNING *), \
             q AS (INSERT INTO kafka.partitions (topic_id, index) SELECT t.id, generate_series(0, $2 - 1) FROM t RETURNING id, index) \
             SELECT t.id, t.uuid::text, t.name::text, t.config::text, ARRAY(SELECT q.id FROM q ORDER BY q.index) FROM t";
        let config = written(&new.config)?;
        let rows = self.desk.write(sql, &[&new.name, &new.partitions, &config]).await?;
        rows.first().map_or(Err(StoreError::Conflict), topic)
    }

    async fn delete_topic(&self, id: TopicId) -> Result<bool, StoreError> {
        let rows = self.desk.write("SELECT kafka.delete_topic($1)", &[&id.0]).await?;
        let was_there = rows.first().is_some_and(|row| row.get(0));
        if was_there && sweep(&self.side, SLICES_AT_ONCE).await == Swept::SomeLeft {
            drop(tokio::spawn(sweep_all(Arc::clone(&self.side))));
        }
        Ok(was_there)
    }

    async fn grow_topic(&self, id: TopicId, count: i32) -> Result<Topic, StoreError> {
        let rows = self.desk.write("SELECT kafka.grow_topic($1, $2)", &[&id.0, &count]).await?;
        if !rows.first().is_some_and(|row| row.get(0)) {
            return Err(StoreError::Conflict);
        }
        self.topic_by_id(id).await
    }

    async fn configure_topic(&self, id: TopicId, old: &TopicConfig, new: TopicConfig) -> Result<Topic, StoreError> {
        let sql =
            "UPDATE kafka.topics SET config = $3::text::jsonb WHERE id = $1 AND config = $2::text::jsonb RETURNING id";
        let rows = self.desk.write(sql, &[&id.0, &written(old)?, &written(&new)?]).await?;
        if rows.is_empty() {
            return Err(StoreError::Conflict);
        }
        self.topic_by_id(id).await
    }
}

impl PostgresStore {
    async fn topic_by_id(&self, id: TopicId) -> Result<Topic, StoreError> {
        let rows = self.desk.read(select!("WHERE t.id = $1"), &[&id.0]).await?;
        // Gone again already: somebody else has changed it.
        rows.first().map_or(Err(StoreError::Conflict), topic)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Swept {
    Clean,
    SomeLeft,
}

/// Removes what removed topics left behind. A failure is no harm: the next removal, or the next start, goes on.
async fn sweep(side: &Link, slices: usize) -> Swept {
    for _ in 0..slices {
        match side.write("SELECT kafka.sweep()", &[]).await {
            Ok(rows) if rows.first().is_some_and(|row| row.get(0)) => {}
            Ok(_) => return Swept::Clean,
            Err(error) => {
                tracing::debug!(%error, "the rows of a removed topic stay for now");
                return Swept::Clean;
            }
        }
    }
    Swept::SomeLeft
}

/// As [`sweep`], to the end.
pub(super) async fn sweep_all(side: Arc<Link>) {
    while sweep(&side, SLICES_AT_ONCE).await == Swept::SomeLeft {}
}

fn topic(row: &Row) -> Result<Topic, StoreError> {
    let damaged =
        |what: &str, error: &dyn std::fmt::Display| StoreError::Damaged(format!("kafka.topics: {what}: {error}"));
    let name: String = row.get(2);
    Ok(Topic {
        id: TopicId(row.get(0)),
        uuid: Uuid::parse_str(row.get(1)).map_err(|error| damaged("uuid", &error))?,
        config: serde_json::from_str(row.get(3)).map_err(|error| damaged("config", &error))?,
        partitions: row.get::<_, Vec<i32>>(4).into_iter().map(PartitionId).collect(),
        name: name.into(),
    })
}

fn written(config: &TopicConfig) -> Result<String, StoreError> {
    serde_json::to_string(config).map_err(|error| StoreError::Damaged(format!("a topic's settings: {error}")))
}
