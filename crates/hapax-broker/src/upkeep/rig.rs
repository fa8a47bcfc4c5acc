//! A broker over any store, without sockets, for the tests of upkeep.

use std::sync::Arc;

use bytes::Bytes;

use crate::batch::{BatchBuilder, Batches, FirstBatch, Header, Limits, Records, uncompressed};
use crate::broker::Broker;
use crate::config::{BrokerConfig, TopicConfig};
use crate::log::{AppendError, NewBatch, Partition, Time, Written};
use crate::model::{Offset, Timestamp};
use crate::store::{NewTopic, Store};

/// A record as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) offset: Offset,
    pub(super) timestamp: Timestamp,
    pub(super) key: String,
    pub(super) value: Option<String>,
}

/// A broker that leads one topic of one partition.
pub(super) struct Rig<S> {
    pub(super) broker: Arc<Broker<S>>,
    topic: String,
}

impl<S: Store> Rig<S> {
    /// Leads a topic; it is made if it is missing.
    pub(super) async fn over(store: Arc<S>, topic: &str, settings: &[(&str, &str)]) -> Self {
        let config = BrokerConfig { tail_cache: 0, ..BrokerConfig::default() };
        let broker = Broker::new(Arc::clone(&store), config);
        if store.topic(topic).await.unwrap().is_none() {
            let said = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let config = TopicConfig::checked(said).unwrap();
            store.create_topic(NewTopic { name: topic.to_owned(), partitions: 1, config }).await.unwrap();
        }
        broker.catalog.refresh().await.unwrap();
        let led = store.lead(&broker.catalog.known(topic).unwrap().partitions).await.unwrap();
        broker.logs.take_over(led).await.unwrap();
        Self { broker, topic: topic.to_owned() }
    }

    pub(super) fn partition(&self) -> Arc<Partition> {
        let topic = self.broker.catalog.known(&self.topic).unwrap();
        self.broker.logs.partition(topic.partitions[0]).unwrap()
    }

    /// Base offsets of all rows.
    pub(super) async fn bases(&self) -> Vec<Offset> {
        let rows = self.broker.store.list(self.partition().id, 0, 1000).await.unwrap();
        rows.iter().map(|row| row.base_offset).collect()
    }

    /// Appends a batch, and waits until it is durable.
    pub(super) async fn append(&self, bytes: Bytes) -> Result<Written, AppendError> {
        let header = Header::read(&bytes).unwrap();
        let room = self.broker.logs.room(bytes.len()).await;
        let batch = NewBatch { partition: self.partition(), bytes, header, time: Time::Kept, held: None };
        self.broker.logs.append(batch, &room).outcome().await
    }

    /// Appends one record as a row of its own; no value is a tombstone.
    pub(super) async fn put(&self, timestamp: Timestamp, key: &str, value: Option<&str>) -> Offset {
        let batch = BatchBuilder::new().record(timestamp, Some(key.as_bytes()), value.map(str::as_bytes));
        self.append(batch.build().unwrap()).await.unwrap().base_offset
    }

    /// Everything that a reader from the beginning gets, up to the end that is there when it arrives.
    pub(super) async fn records(&self) -> Vec<Seen> {
        self.records_from(self.partition().log_start(), Offset::MAX).await
    }

    /// The same from one offset on, below another.
    pub(super) async fn records_from(&self, mut from: Offset, below: Offset) -> Vec<Seen> {
        let (partition, mut seen) = (self.partition(), Vec::new());
        loop {
            let end = partition.end().min(below);
            if from >= end {
                return seen;
            }
            let bytes = self.broker.logs.read(&partition, from, end, 1 << 16, FirstBatch::Always).await.unwrap();
            if bytes.is_empty() {
                // Nothing is left below that end: all of it was written again behind it.
                from = end;
            }
            for batch in Batches::new(&bytes) {
                let (range, header) = batch.unwrap();
                let records = records_of(&header, &bytes[range]).into_iter();
                seen.extend(records.filter(|record| (from..below).contains(&record.offset)));
                from = header.last_offset() + 1;
            }
        }
    }

    /// Bytes that the store holds of the log.
    pub(super) async fn size(&self) -> u64 {
        self.broker.store.sizes(&[self.partition().id]).await.unwrap()[0].1
    }
}

fn records_of(header: &Header, batch: &[u8]) -> Vec<Seen> {
    let records = uncompressed(header, batch, Limits::default()).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let seen = Records::new(&records).map(|record| {
        let record = record.unwrap();
        Seen {
            offset: header.base_offset + i64::from(record.offset_delta),
            timestamp: header.timestamp(record.timestamp_delta),
            key: record.key.map(text).unwrap_or_default(),
            value: record.value.map(text),
        }
    });
    seen.collect()
}
