//! Two brokers on one database: what the one that stands by answers.

use std::sync::Arc;
use std::time::Duration;

use hapax_kafka::batch::{BatchHeader, NewRecord, encode};
use hapax_kafka::{Acks, Connection, Options, produce_request};
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeClusterRequest,
    IncrementalAlterConfigsRequest, MetadataRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::broker::Broker;
use crate::config::BrokerConfig;
use crate::patience::until;
use crate::server::{Listener, Server};
use crate::store::Address;
use crate::store::postgres::PostgresStore;
use crate::store::postgres::test_database::TestDatabase;

struct Member {
    broker: Arc<Broker<PostgresStore>>,
    server: Server,
}

impl Member {
    async fn start(database: &TestDatabase, number: i32) -> Self {
        let broker = Broker::new(Arc::new(database.store(number).await), BrokerConfig::default());
        let listener = Listener::bind("127.0.0.1:0").await.expect("a free port");
        let address = Address { host: "127.0.0.1".to_owned(), port: listener.address().port() };
        broker.start(address).await.expect("starts");
        let server = listener.serve(Arc::clone(&broker));
        Self { broker, server }
    }

    async fn connect(&self) -> Connection {
        Connection::connect(&self.server.address().to_string(), &Options::default()).await.expect("connects")
    }
}

fn name(value: &'static str) -> TopicName {
    TopicName(StrBytes::from_static_str(value))
}

/// What is to happen to a topic that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Tell,
}

/// Code of a topic, and of its first partition the leader.
async fn look(client: &mut Connection, topic: &'static str, missing: Missing) -> (i16, Option<i32>) {
    let asked = MetadataRequestTopic::default().with_name(Some(name(topic)));
    let request = MetadataRequest::default()
        .with_topics(Some(vec![asked]))
        .with_allow_auto_topic_creation(missing == Missing::Make);
    let answer = client.call_at(12, &request).await.expect("answers");
    let leader = answer.topics[0].partitions.first();
    (answer.topics[0].error_code, leader.map(|partition| partition.leader_id.0))
}

async fn produce(client: &mut Connection, topic: &'static str) -> i16 {
    let records = encode(BatchHeader::PLAIN, &[NewRecord::of("a")]);
    let request = produce_request(topic, 0, records, Acks::All, Duration::from_secs(5));
    let answer = client.call_at(9, &request).await.expect("answers");
    answer.responses[0].partition_responses[0].error_code
}

/// Goal: a broker that stands by sends clients to the leader, and changes nothing itself. Method: every kind of change and a
/// produce at the second of two, then at the first.
#[tokio::test]
async fn who_stands_by_names_the_leader_and_changes_nothing() {
    let database = TestDatabase::new();
    let (first, second) = (Member::start(&database, 1).await, Member::start(&database, 2).await);
    let (mut leader, mut standby) = (first.connect().await, second.connect().await);
    let cluster = standby.call_at(0, &DescribeClusterRequest::default()).await.expect("answers");
    assert_eq!((cluster.brokers.len(), cluster.controller_id.0), (2, 1));
    assert_eq!(look(&mut leader, "orders", Missing::Make).await, (0, Some(1)));

    let new = CreatableTopic::default().with_name(name("new")).with_num_partitions(1).with_replication_factor(1);
    let create = CreateTopicsRequest::default().with_topics(vec![new]);
    assert_eq!(standby.call_at(7, &create).await.expect("answers").topics[0].error_code, 41);
    let delete = DeleteTopicsRequest::default().with_topic_names(vec![name("orders")]);
    assert_eq!(standby.call_at(5, &delete).await.expect("answers").responses[0].error_code, 41);
    let more = CreatePartitionsTopic::default().with_name(name("orders")).with_count(2).with_assignments(None);
    let grow = CreatePartitionsRequest::default().with_topics(vec![more]);
    assert_eq!(standby.call_at(3, &grow).await.expect("answers").results[0].error_code, 41);
    let resource =
        AlterConfigsResource::default().with_resource_type(2).with_resource_name(StrBytes::from_static_str("orders"));
    let alter = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    assert_eq!(standby.call_at(1, &alter).await.expect("answers").responses[0].error_code, 41);

    assert_eq!(look(&mut standby, "orders", Missing::Tell).await, (0, Some(1)), "seen at once, and who leads it");
    assert_eq!(produce(&mut standby, "orders").await, 6);
    assert_eq!(produce(&mut leader, "orders").await, 0);
    assert_eq!(leader.call_at(7, &create).await.expect("answers").topics[0].error_code, 0);
}

/// Goal: topics made or deleted at one broker are so at the other. Method: make by asking the second, write at the first;
/// delete at the first, ask the second until it knows.
#[tokio::test]
async fn what_one_broker_changes_the_other_knows() {
    let database = TestDatabase::new();
    let (first, second) = (Member::start(&database, 1).await, Member::start(&database, 2).await);
    let (mut leader, mut standby) = (first.connect().await, second.connect().await);
    assert_eq!(
        look(&mut standby, "asked", Missing::Make).await,
        (0, Some(1)),
        "made by who stands by, led by who leads"
    );
    assert_eq!(look(&mut leader, "asked", Missing::Tell).await, (0, Some(1)), "led at once, not at the next look");
    assert_eq!(produce(&mut leader, "asked").await, 0);
    let delete = DeleteTopicsRequest::default().with_topic_names(vec![name("asked")]);
    assert_eq!(leader.call_at(5, &delete).await.expect("answers").responses[0].error_code, 0);
    until("a deleted topic is told no more", async || look(&mut standby, "asked", Missing::Tell).await.0 == 3).await;
    first.server.stop(Duration::from_secs(1)).await;
    first.broker.stop().await;
    until("the other takes over", async || look(&mut standby, "after", Missing::Make).await == (0, Some(2))).await;
    assert_eq!(produce(&mut standby, "after").await, 0);
}
