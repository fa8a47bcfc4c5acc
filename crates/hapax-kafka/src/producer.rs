//! Writes batches: exactly as told ([`Client::produce`]), or in comfort, idempotent and with retries ([`Producer`]).
//!
//! Invariant: a retry sends the same bytes; a producer never goes on past a batch whose outcome it does not know.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{InitProducerIdRequest, ProduceRequest, ProduceResponse, ProducerId, TransactionalId};
use kafka_protocol::protocol::StrBytes;

use super::batch::{self, BatchHeader, NewRecord};
use super::cluster::{Client, topic_name};
use super::error::{ClientError, Outcome, check};

/// When the broker answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// Never.
    Nobody,
    /// When the leader has it.
    Leader,
    /// When it is as safe as it gets.
    All,
}

impl Acks {
    const fn number(self) -> i16 {
        match self {
            Self::Nobody => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

/// A producer's id and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The id.
    pub producer_id: i64,
    /// The epoch.
    pub epoch: i16,
}

/// Where a batch went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Offset of its first record; -1 if the broker does not say.
    pub base_offset: i64,
    /// The time of append, if the topic keeps that; else -1.
    pub append_time: i64,
    /// The log's first offset.
    pub log_start: i64,
}

/// The newest Produce that names topics; later ones use ids.
const NEWEST: i16 = 12;

/// A Produce request for one batch.
#[must_use]
pub fn produce_request(topic: &str, partition: i32, batch: Bytes, acks: Acks, timeout: Duration) -> ProduceRequest {
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(batch));
    let topic = TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]);
    ProduceRequest::default()
        .with_acks(acks.number())
        .with_timeout_ms(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
        .with_topic_data(vec![topic])
}

/// What a Produce answer says of its only partition.
///
/// # Errors
/// If it is refused, or not there.
pub fn delivery(answer: &ProduceResponse, topic: &str, partition: i32) -> Result<Delivery, ClientError> {
    let mut all = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
    let Some(found) = all.find(|found| found.index == partition) else {
        let reason = format!("nothing is said of {topic}-{partition}");
        return Err(ClientError::Malformed { address: "the broker".to_owned(), reason });
    };
    check(found.error_code, || format!("produce to {topic}-{partition}"))?;
    Ok(Delivery {
        base_offset: found.base_offset,
        append_time: found.log_append_time_ms,
        log_start: found.log_start_offset,
    })
}

impl Client {
    /// An id and an epoch; with a transactional id the same id each time, and the next epoch.
    ///
    /// # Errors
    /// If nobody gives one.
    pub async fn init_producer_id(&mut self, transactional: Option<&str>) -> Result<Identity, ClientError> {
        let name = |id: &str| TransactionalId(StrBytes::from_string(id.to_owned()));
        let request = InitProducerIdRequest::default()
            .with_transactional_id(transactional.map(name))
            .with_transaction_timeout_ms(60_000)
            .with_producer_id(ProducerId(-1))
            .with_producer_epoch(-1);
        let answer = self.call(i16::MAX, &request).await?;
        check(answer.error_code, || "a producer id was asked for".to_owned())?;
        Ok(Identity { producer_id: answer.producer_id.0, epoch: answer.producer_epoch })
    }

    /// Sends these bytes once, to whom we think leads. The error's [`ClientError::outcome`] says what is known.
    ///
    /// # Errors
    /// If it is refused, or no answer comes.
    pub async fn produce(
        &mut self,
        (topic, partition): (&str, i32),
        batch: Bytes,
        acks: Acks,
    ) -> Result<Delivery, ClientError> {
        let request = produce_request(topic, partition, batch, acks, self.options().answer);
        if acks == Acks::Nobody {
            let connection = self.leader(topic, partition).await?;
            let version = connection.version::<ProduceRequest>(NEWEST)?;
            // Nothing will ever be answered to it.
            let _ticket = connection.begin(version, &request).await?;
            return Ok(Delivery { base_offset: -1, append_time: -1, log_start: -1 });
        }
        let answer = self.at_leader((topic, partition), NEWEST, &request).await?;
        let delivery = delivery(&answer, topic, partition);
        if let Err(error) = &delivery
            && error.code().is_some_and(Self::is_elsewhere)
        {
            self.forget(topic, partition);
        }
        delivery
    }
}

/// How long a producer tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// In all, per batch.
    pub total: Duration,
    /// Between two tries.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { total: Duration::from_secs(120), pause: Duration::from_millis(50) }
    }
}

/// What was sent and may have arrived.
#[derive(Debug)]
struct Doubt {
    bytes: Bytes,
    count: i32,
}

#[derive(Debug, Default)]
struct Lane {
    next_sequence: i32,
    doubt: Option<Doubt>,
}

/// An idempotent producer: each batch is sent until it is known to be there, once.
#[derive(Debug)]
pub struct Producer {
    client: Client,
    patience: Patience,
    identity: Option<Identity>,
    lanes: HashMap<(String, i32), Lane>,
}

impl Producer {
    /// A producer; it gets its id with its first batch.
    #[must_use]
    pub fn new(client: Client, patience: Patience) -> Self {
        Self { client, patience, identity: None, lanes: HashMap::new() }
    }

    /// The client it writes with.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Its id and epoch, once it has them.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// Writes the records as one batch, and tries again with the same bytes while the error may pass.
    ///
    /// # Errors
    /// When patience has ended or the error will not pass. If the outcome is unknown then, [`Producer::resend`] must succeed
    /// before more is sent to this partition.
    pub async fn send(&mut self, topic: &str, partition: i32, records: &[NewRecord]) -> Result<Delivery, ClientError> {
        let until = Instant::now() + self.patience.total;
        let Identity { producer_id, epoch } = self.identify(until).await?;
        let lane = self.lanes.entry((topic.to_owned(), partition)).or_default();
        if lane.doubt.is_some() {
            return Err(ClientError::InDoubt { topic: topic.to_owned(), partition });
        }
        let header = BatchHeader { producer_id, epoch, first_sequence: lane.next_sequence, attributes: 0 };
        let bytes = batch::encode(header, records);
        let count = i32::try_from(records.len()).unwrap_or(i32::MAX);
        // In doubt from now on, so that a caller who gives up in the middle cannot go on as if nothing was sent.
        lane.doubt = Some(Doubt { bytes, count });
        self.try_until(topic, partition, until).await
    }

    /// Sends the batch in doubt again, if there is one.
    ///
    /// # Errors
    /// As [`Producer::send`].
    pub async fn resend(&mut self, topic: &str, partition: i32) -> Result<Option<Delivery>, ClientError> {
        let until = Instant::now() + self.patience.total;
        let lane = self.lanes.get(&(topic.to_owned(), partition));
        if lane.is_none_or(|lane| lane.doubt.is_none()) {
            return Ok(None);
        }
        self.try_until(topic, partition, until).await.map(Some)
    }

    async fn identify(&mut self, until: Instant) -> Result<Identity, ClientError> {
        loop {
            if let Some(identity) = self.identity {
                return Ok(identity);
            }
            match self.client.init_producer_id(None).await {
                Ok(identity) => self.identity = Some(identity),
                Err(error) if error.is_retriable() && Instant::now() < until => {
                    tokio::time::sleep(self.patience.pause).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn try_until(&mut self, topic: &str, partition: i32, until: Instant) -> Result<Delivery, ClientError> {
        let key = (topic.to_owned(), partition);
        let mut known = Outcome::NotDone;
        loop {
            let Some(doubt) = self.lanes.get(&key).and_then(|lane| lane.doubt.as_ref()) else {
                return Err(ClientError::InDoubt { topic: topic.to_owned(), partition });
            };
            let (bytes, count) = (doubt.bytes.clone(), doubt.count);
            match self.client.produce((topic, partition), bytes, Acks::All).await {
                Ok(delivery) => {
                    self.settle(&key, Some(count));
                    return Ok(delivery);
                }
                Err(error) => {
                    if error.outcome() == Outcome::Unknown {
                        known = Outcome::Unknown;
                    }
                    if !error.is_retriable() || Instant::now() >= until {
                        if known == Outcome::NotDone {
                            self.settle(&key, None);
                        }
                        return Err(error);
                    }
                    tokio::time::sleep(self.patience.pause).await;
                }
            }
        }
    }

    /// Nothing is in doubt any more; `written`: so many sequences are used up.
    fn settle(&mut self, key: &(String, i32), written: Option<i32>) {
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.doubt = None;
            // Sequences go from 2^31 - 1 to 0.
            lane.next_sequence = lane.next_sequence.wrapping_add(written.unwrap_or(0)) & i32::MAX;
        }
    }
}
