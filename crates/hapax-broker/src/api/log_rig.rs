//! A broker over the embedded store, asked over a socket, for the tests of produce, fetch and their kin.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchRequest, FetchTopic};
use kafka_protocol::messages::fetch_response::{FetchResponse, PartitionData};
use kafka_protocol::messages::produce_request::{PartitionProduceData, ProduceRequest, TopicProduceData};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, ProduceResponse};
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, TopicName, TransactionalId};
use kafka_protocol::protocol::StrBytes;

use crate::broker::Broker;
use crate::config::{BrokerConfig, TopicConfig};
use crate::log::scripted_store::Scripted;
use crate::model::Topic;
use crate::patience::LIMIT;
use crate::server::{Listener, Server};
use crate::store::{Address, NewTopic};
use hapax_kafka::{Connection, Options};

pub(super) struct Rig {
    pub(super) broker: Arc<Broker<Scripted>>,
    pub(super) server: Server,
}

impl Rig {
    pub(super) async fn new(directory: &Path) -> Self {
        let store = Arc::new(Scripted::open(directory).await);
        let broker = Broker::new(store, BrokerConfig::default());
        let listener = Listener::bind("127.0.0.1:0").await.unwrap();
        let address = Address { host: "127.0.0.1".to_owned(), port: listener.address().port() };
        broker.start(address).await.unwrap();
        // What a test takes away is not led anew behind its back.
        broker.end_tasks();
        let server = listener.serve(Arc::clone(&broker));
        Self { broker, server }
    }

    pub(super) async fn topic(&self, name: &str, partitions: i32, said: &[(&str, &str)]) -> Arc<Topic> {
        let said = said.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let config = TopicConfig::checked(said).unwrap();
        self.broker.create_topic(NewTopic { name: name.to_owned(), partitions, config }).await.unwrap()
    }

    pub(super) async fn connect(&self) -> Connection {
        let options = Options { answer: LIMIT, connect: LIMIT, ..Options::default() };
        Connection::connect(&self.server.address().to_string(), &options).await.unwrap()
    }
}

pub(super) fn named(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

/// A request for one topic, with a batch for each of some partitions.
pub(super) fn produce(topic: &Topic, batches: &[(i32, Bytes)], acks: i16) -> ProduceRequest {
    let data = batches
        .iter()
        .map(|(index, batch)| PartitionProduceData::default().with_index(*index).with_records(Some(batch.clone())));
    let topic = TopicProduceData::default()
        .with_name(named(&topic.name))
        .with_topic_id(topic.uuid)
        .with_partition_data(data.collect());
    ProduceRequest::default().with_acks(acks).with_timeout_ms(10_000).with_topic_data(vec![topic])
}

/// The request as a version has it: by name, or by uuid.
pub(super) fn for_version(mut request: ProduceRequest, version: i16) -> ProduceRequest {
    for topic in &mut request.topic_data {
        if version >= 13 {
            topic.name = TopicName::default();
        } else {
            topic.topic_id = uuid::Uuid::nil();
        }
    }
    request
}

pub(super) fn produced(response: &ProduceResponse) -> &[PartitionProduceResponse] {
    &response.responses[0].partition_responses
}

/// Sends one batch to partition 0; the code and the offset.
pub(super) async fn send(connection: &mut Connection, topic: &Topic, batch: Bytes) -> (i16, i64) {
    let request = for_version(produce(topic, &[(0, batch)], -1), 9);
    let response = connection.call_at(9, &request).await.unwrap();
    let answer = &produced(&response)[0];
    (answer.error_code, answer.base_offset)
}

/// A request for partition 0.
pub(super) fn fetch(topic: &Topic, offset: i64, version: i16) -> FetchRequest {
    let partition = FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
    let wanted = FetchTopic::default().with_partitions(vec![partition]);
    let wanted = if version >= 13 { wanted.with_topic_id(topic.uuid) } else { wanted.with_topic(named(&topic.name)) };
    FetchRequest::default().with_max_bytes(50 << 20).with_min_bytes(1).with_max_wait_ms(100).with_topics(vec![wanted])
}

pub(super) fn fetched(response: &FetchResponse) -> &PartitionData {
    &response.responses[0].partitions[0]
}

pub(super) async fn init(
    connection: &mut Connection,
    version: i16,
    transactional: Option<&str>,
    producer: (i64, i16),
) -> InitProducerIdResponse {
    let id = transactional.map(|id| TransactionalId(StrBytes::from_string(id.to_owned())));
    let mut request = InitProducerIdRequest::default().with_transactional_id(id).with_transaction_timeout_ms(60_000);
    if version >= 3 {
        request = request.with_producer_id(producer.0.into()).with_producer_epoch(producer.1);
    }
    connection.call_at(version, &request).await.unwrap()
}
