//! Reads a partition from an offset on, and asks for offsets.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::{BrokerId, FetchRequest, ListOffsetsRequest};

use super::cluster::{Client, topic_name};
use super::error::{ClientError, check};
use super::records::{self, FetchedBatch, FetchedRecord};

/// Which offset is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The first that is there.
    Start,
    /// The one that the next record gets.
    End,
    /// The first whose timestamp is this or later.
    Time(i64),
}

/// What one Fetch gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The batches; the first may begin before the offset that was asked for.
    pub batches: Vec<FetchedBatch>,
    /// The end of the log as the leader told it.
    pub high_watermark: i64,
    /// The log's first offset.
    pub log_start: i64,
}

/// The newest Fetch that names topics; later ones use ids.
const NEWEST: i16 = 12;

impl Client {
    /// An offset of a partition, and -1 if no record is that late.
    ///
    /// # Errors
    /// If the leader says no, or nobody answers.
    pub async fn offset(&mut self, topic: &str, partition: i32, at: At) -> Result<i64, ClientError> {
        let timestamp = match at {
            At::Start => -2,
            At::End => -1,
            At::Time(time) => time,
        };
        let wanted = ListOffsetsPartition::default()
            .with_partition_index(partition)
            .with_current_leader_epoch(-1)
            .with_timestamp(timestamp);
        let wanted = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![wanted]);
        let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![wanted]);
        let answer = self.at_leader((topic, partition), i16::MAX, &request).await?;
        let found = answer.topics.first().and_then(|topic| topic.partitions.first());
        let found = found.ok_or_else(|| self.nothing(topic, partition))?;
        self.judge(found.error_code, topic, partition)?;
        Ok(found.offset)
    }

    /// One Fetch of one partition.
    ///
    /// # Errors
    /// If the leader says no, nobody answers, or what comes cannot be read.
    pub async fn fetch(
        &mut self,
        (topic, partition): (&str, i32),
        offset: i64,
        wait: Duration,
        max_bytes: i32,
    ) -> Result<Fetched, ClientError> {
        let wanted = FetchPartition::default()
            .with_partition(partition)
            .with_current_leader_epoch(-1)
            .with_fetch_offset(offset)
            .with_last_fetched_epoch(-1)
            .with_log_start_offset(-1)
            .with_partition_max_bytes(max_bytes);
        let wanted = FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![wanted]);
        let request = FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_max_wait_ms(i32::try_from(wait.as_millis()).unwrap_or(i32::MAX))
            .with_min_bytes(1)
            .with_max_bytes(max_bytes)
            .with_session_epoch(-1)
            .with_topics(vec![wanted]);
        let mut answer = self.at_leader((topic, partition), NEWEST, &request).await?;
        self.judge(answer.error_code, topic, partition)?;
        let found = answer.responses.first_mut().and_then(|topic| topic.partitions.pop());
        let found = found.ok_or_else(|| self.nothing(topic, partition))?;
        self.judge(found.error_code, topic, partition)?;
        let batches = records::decode(found.records.unwrap_or_else(Bytes::new))
            .map_err(|reason| ClientError::Malformed { address: format!("{topic}-{partition}"), reason })?;
        Ok(Fetched { batches, high_watermark: found.high_watermark, log_start: found.log_start_offset })
    }

    fn nothing(&self, topic: &str, partition: i32) -> ClientError {
        let reason = format!("nothing is said of {topic}-{partition}");
        ClientError::Malformed { address: "the broker".to_owned(), reason }
    }

    fn judge(&mut self, code: i16, topic: &str, partition: i32) -> Result<(), ClientError> {
        let checked = check(code, || format!("read of {topic}-{partition}"));
        if let Err(error) = &checked
            && error.code().is_some_and(Self::is_elsewhere)
        {
            self.forget(topic, partition);
        }
        checked
    }
}

/// Reads one partition, record by record.
#[derive(Debug)]
pub struct Reader {
    client: Client,
    topic: String,
    partition: i32,
    next: i64,
    wait: Duration,
}

impl Reader {
    /// From this offset on; a read waits at most `wait` for something new.
    #[must_use]
    pub fn new(client: Client, topic: impl Into<String>, partition: i32, from: i64, wait: Duration) -> Self {
        Self { client, topic: topic.into(), partition, next: from, wait }
    }

    /// The offset that is read next.
    #[must_use]
    pub const fn position(&self) -> i64 {
        self.next
    }

    /// The client it reads with.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The next records, none if nothing came in time. Markers are left out.
    ///
    /// # Errors
    /// If the leader says no, nobody answers, or what comes cannot be read. The position stays, and it may be tried again.
    pub async fn read(&mut self) -> Result<Vec<FetchedRecord>, ClientError> {
        const MAX_BYTES: i32 = 4 << 20;
        let fetched = self.client.fetch((&self.topic, self.partition), self.next, self.wait, MAX_BYTES).await?;
        let mut records = Vec::new();
        for batch in fetched.batches {
            let control = batch.is_control();
            let after = batch.last_offset.saturating_add(1);
            let wanted = |record: &FetchedRecord| !control && record.offset >= self.next;
            records.extend(batch.records.into_iter().filter(wanted));
            self.next = self.next.max(after);
        }
        Ok(records)
    }
}
