//! Administrative APIs over a socket: what is done, and one refusal at least of each.

use std::collections::BTreeMap;

use hapax_kafka::Connection;
use kafka_protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_request as incremental;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{
    AlterConfigsRequest, CreateAclsRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteAclsRequest,
    DeleteTopicsRequest, DescribeAclsRequest, DescribeClientQuotasRequest, DescribeClusterRequest,
    DescribeConfigsRequest, DescribeLogDirsRequest, DescribeTopicPartitionsRequest, ElectLeadersRequest,
    IncrementalAlterConfigsRequest, ListConfigResourcesRequest, ListPartitionReassignmentsRequest, MetadataRequest,
    TopicName,
};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use crate::server::trial::Trial;

fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

fn name(value: &str) -> TopicName {
    TopicName(text(value))
}

fn topic(value: &str, partitions: i32) -> CreatableTopic {
    CreatableTopic::default().with_name(name(value)).with_num_partitions(partitions).with_replication_factor(-1)
}

async fn create(client: &mut Connection, topics: Vec<CreatableTopic>) -> Vec<(i16, i32)> {
    let answer = client.call(&CreateTopicsRequest::default().with_topics(topics)).await.expect("answers");
    answer.topics.iter().map(|topic| (topic.error_code, topic.num_partitions)).collect()
}

async fn metadata(client: &mut Connection, version: i16, topics: &[&str]) -> Vec<MetadataResponseTopic> {
    let asked = |topic: &&str| MetadataRequestTopic::default().with_name(Some(name(topic)));
    let request = MetadataRequest::default()
        .with_topics(Some(topics.iter().map(asked).collect()))
        .with_allow_auto_topic_creation(true);
    client.call_at(version, &request).await.expect("answers").topics
}

/// Goal: a topic that is asked for exists, with a leader, at once. Method: every version of Metadata asks for another one.
#[tokio::test]
async fn metadata_makes_topics_with_a_leader_in_every_version() {
    let trial = Trial::with(|config| config.default_partitions = 3).await;
    let mut client = trial.connect().await;
    for version in 0..=13 {
        let wanted = format!("topic-{version}");
        for round in 0..2 {
            let topics = metadata(&mut client, version, &[&wanted, &wanted]).await;
            assert_eq!(topics.len(), 1, "asked twice, told once");
            assert_eq!(topics[0].error_code, 0, "version {version} round {round}");
            assert_eq!(topics[0].partitions.len(), 3);
            for partition in &topics[0].partitions {
                assert_eq!((partition.error_code, partition.leader_id.0), (0, 1));
                assert_eq!(
                    (&partition.replica_nodes[..], &partition.isr_nodes[..]),
                    (&[1.into()][..], &[1.into()][..])
                );
                assert_eq!(partition.leader_epoch, if version >= 7 { 1 } else { -1 });
            }
            assert_eq!(topics[0].topic_id.is_nil(), version < 10);
        }
    }
    let everything = MetadataRequest::default().with_topics(None);
    let answer = client.call_at(12, &everything).await.expect("answers");
    assert_eq!((answer.topics.len(), answer.brokers.len(), answer.controller_id.0), (14, 1, 1));
    assert_eq!(answer.cluster_id.as_deref().map(str::is_empty), Some(false));
    let none = client.call_at(1, &MetadataRequest::default().with_topics(Some(Vec::new()))).await.expect("answers");
    assert!(none.topics.is_empty());
    let all = client.call_at(0, &MetadataRequest::default().with_topics(Some(Vec::new()))).await.expect("answers");
    assert_eq!(all.topics.len(), 14, "in version 0 an empty list means all");
}

/// Goal: authorized operations are told when asked, and are Integer.MIN when not. Method: both, with and without asking.
#[tokio::test]
async fn authorized_operations_are_told_when_asked() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    assert_eq!(metadata(&mut client, 9, &["a"]).await[0].topic_authorized_operations, i32::MIN);
    let asked = MetadataRequest::default()
        .with_topics(None)
        .with_include_topic_authorized_operations(true)
        .with_include_cluster_authorized_operations(true);
    let answer = client.call_at(9, &asked).await.expect("answers");
    assert_eq!((answer.cluster_authorized_operations, answer.topics[0].topic_authorized_operations), (8096, 3576));
}

/// Goal: Metadata's refusals are Kafka's. Method: a name that cannot be, a topic nobody makes, an unknown id, an id too early.
#[tokio::test]
async fn metadata_refuses_as_kafka_does() {
    let trial = Trial::with(|config| config.auto_create_topics = false).await;
    let mut client = trial.connect().await;
    let topics = metadata(&mut client, 12, &["no such", "nowhere"]).await;
    assert_eq!((topics[0].error_code, topics[1].error_code), (17, 3));
    let id = Uuid::from_u128(7);
    let by_id = MetadataRequestTopic::default().with_topic_id(id).with_name(None);
    let request = MetadataRequest::default().with_topics(Some(vec![by_id]));
    let answer = client.call_at(12, &request).await.expect("answers");
    assert_eq!((answer.topics[0].error_code, answer.topics[0].topic_id), (100, id));
    let early = MetadataRequestTopic::default().with_topic_id(id).with_name(Some(name("a")));
    let request = MetadataRequest::default().with_topics(Some(vec![early]));
    assert_eq!(client.call_at(10, &request).await.expect("answers").topics[0].error_code, 42);
    // Nobody may make it by asking politely either.
    let request = MetadataRequest::default()
        .with_topics(Some(vec![MetadataRequestTopic::default().with_name(Some(name("nowhere")))]));
    let polite = client.call_at(9, &request.with_allow_auto_topic_creation(true)).await.expect("answers");
    assert_eq!(polite.topics[0].error_code, 3);
}

/// Goal: topics are made as told, or refused with Kafka's code. Method: one request with a topic per rule.
#[tokio::test]
async fn create_topics_judges_each_topic_alone() {
    let trial = Trial::with(|config| config.default_partitions = 2).await;
    let mut client = trial.connect().await;
    let config = |key: &str, value: Option<&str>| {
        vec![CreatableTopicConfig::default().with_name(text(key)).with_value(value.map(text))]
    };
    let place =
        |index| CreatableReplicaAssignment::default().with_partition_index(index).with_broker_ids(vec![1.into()]);
    let cases = vec![
        (topic("plain", 3), (0, 3)),
        (topic("default", -1), (0, 2)),
        (topic("replicated", 1).with_replication_factor(3), (0, 1)),
        (topic("compacted", 1).with_configs(config("cleanup.policy", Some("compact"))), (0, 1)),
        (topic("assigned", -1).with_assignments(vec![place(1), place(0)]), (0, 2)),
        (topic("no good", 1), (17, -1)),
        (topic("zero", 0), (37, -1)),
        (topic("huge", 10_001), (44, -1)),
        (topic("unreplicated", 1).with_replication_factor(0), (38, -1)),
        (topic("twice", 1), (42, -1)),
        (topic("twice", 1), (42, -1)),
        (topic("odd", 1).with_configs(config("colour", Some("red"))), (40, -1)),
        (topic("odd-value", 1).with_configs(config("retention.ms", Some("soon"))), (40, -1)),
        (topic("null-value", 1).with_configs(config("retention.ms", None)), (40, -1)),
        (topic("both", 2).with_assignments(vec![place(0), place(1)]), (42, -1)),
        (topic("gap", -1).with_assignments(vec![place(0), place(2)]), (39, -1)),
    ];
    let (topics, mut expected): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    expected.remove(9); // two topics of one name get one verdict
    assert_eq!(create(&mut client, topics).await, expected);
    assert_eq!(create(&mut client, vec![topic("plain", 1)]).await, [(36, -1)]);
    assert_eq!(create(&mut client, vec![topic("with.dot", 1)]).await, [(0, 1)]);
    assert_eq!(
        create(&mut client, vec![topic("with_dot", 1)]).await,
        [(17, -1)],
        "names that metrics cannot tell apart"
    );
    let tried = CreateTopicsRequest::default().with_topics(vec![topic("tried", 4)]).with_validate_only(true);
    let answer = client.call(&tried).await.expect("answers");
    assert_eq!((answer.topics[0].error_code, answer.topics[0].num_partitions), (0, 4));
    assert!(trial.broker.catalog.known("tried").is_none());
    for version in 2..=7 {
        let made =
            CreateTopicsRequest::default().with_topics(vec![topic(&format!("v{version}"), 1), topic("plain", 1)]);
        let answer = client.call_at(version, &made).await.expect("answers");
        assert_eq!((answer.topics[0].error_code, answer.topics[1].error_code), (0, 36), "version {version}");
        assert_eq!(answer.topics[0].topic_id.is_nil(), version < 7);
        assert_eq!(answer.topics[0].configs.as_ref().map_or(0, Vec::len) > 20, version >= 5);
    }
}

/// Goal: topics go, by name and by id, and a name made anew is another topic. Method: both ways, then every refusal.
#[tokio::test]
async fn delete_topics_by_name_and_by_id() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    let first = metadata(&mut client, 12, &["a"]).await[0].topic_id;
    for version in 1..=5 {
        let request = DeleteTopicsRequest::default().with_topic_names(vec![name("a"), name("nowhere")]);
        let answer = client.call_at(version, &request).await.expect("answers");
        let codes: Vec<i16> = answer.responses.iter().map(|one| one.error_code).collect();
        assert_eq!(codes, [0, 3], "version {version}");
        let again = metadata(&mut client, 12, &["a"]).await[0].topic_id;
        assert_ne!(again, first);
    }
    let id = metadata(&mut client, 12, &["a"]).await[0].topic_id;
    let state = |id: Uuid, name: Option<TopicName>| DeleteTopicState::default().with_topic_id(id).with_name(name);
    let states = vec![
        state(id, None),
        state(Uuid::from_u128(9), None),
        state(Uuid::nil(), None),
        state(id, Some(name("a"))),
        state(Uuid::nil(), Some(name("nowhere"))),
        state(Uuid::nil(), Some(name("nowhere"))),
    ];
    let answer = client.call_at(6, &DeleteTopicsRequest::default().with_topics(states)).await.expect("answers");
    let codes: Vec<i16> = answer.responses.iter().map(|one| one.error_code).collect();
    assert_eq!(codes, [0, 100, 42, 42, 3, 42]);
    assert_eq!(answer.responses[0].name, Some(name("a")));
}

/// Goal: topics grow, and the new partitions have a leader at once. Method: grow, then every refusal, in every version.
#[tokio::test]
async fn topics_grow_and_never_shrink() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    metadata(&mut client, 12, &["a", "b"]).await;
    for version in 0..=3 {
        let grow = |name_: &str, count| CreatePartitionsTopic::default().with_name(name(name_)).with_count(count);
        let wanted = i32::from(version) + 2;
        let topics = vec![
            grow("a", wanted).with_assignments(None),
            grow("b", 1).with_assignments(None),
            grow("nowhere", 9).with_assignments(None),
            grow("c", 2).with_assignments(None),
            grow("c", 2).with_assignments(None),
        ];
        let request = CreatePartitionsRequest::default().with_topics(topics);
        let answer = client.call_at(version, &request).await.expect("answers");
        let codes: Vec<i16> = answer.results.iter().map(|one| one.error_code).collect();
        assert_eq!(codes, [0, 37, 3, 42], "version {version}");
        let grown = metadata(&mut client, 12, &["a"]).await;
        assert_eq!(grown[0].partitions.len(), usize::try_from(wanted).expect("positive"));
        assert!(grown[0].partitions.iter().all(|partition| partition.error_code == 0));
        let tried = CreatePartitionsRequest::default().with_topics(vec![grow("b", 5).with_assignments(None)]);
        let answer = client.call_at(version, &tried.with_validate_only(true)).await.expect("answers");
        assert_eq!(answer.results[0].error_code, 0);
        assert_eq!(metadata(&mut client, 12, &["b"]).await[0].partitions.len(), 1, "only tried");
    }
}

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

async fn settings(
    client: &mut Connection,
    version: i16,
    resource: i8,
    of: &str,
) -> (i16, BTreeMap<String, (String, i8)>) {
    let asked = DescribeConfigsResource::default()
        .with_resource_type(resource)
        .with_resource_name(text(of))
        .with_configuration_keys(None);
    let request = DescribeConfigsRequest::default().with_resources(vec![asked]).with_include_synonyms(true);
    let answer = client.call_at(version, &request).await.expect("answers");
    let shown = answer.results[0].configs.iter();
    let shown =
        shown.map(|one| (one.name.to_string(), (one.value.as_deref().unwrap_or("").to_owned(), one.config_source)));
    (answer.results[0].error_code, shown.collect())
}

/// Goal: settings are told with their source, changed one by one or all at once, and refused with Kafka's codes. Method: one
/// topic's retention through all of it.
#[tokio::test]
async fn settings_are_described_and_altered() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    metadata(&mut client, 12, &["a"]).await;
    for version in 1..=4 {
        let (code, shown) = settings(&mut client, version, TOPIC, "a").await;
        assert_eq!((code, &shown["retention.ms"]), (0, &("604800000".to_owned(), 5)), "version {version}");
        assert_eq!(shown["cleanup.policy"].0, "delete");
    }
    let incremental = |resource, of: &str, key: &str, operation, value: &str| {
        let one = incremental::AlterableConfig::default()
            .with_name(text(key))
            .with_config_operation(operation)
            .with_value(Some(text(value)));
        let resource = incremental::AlterConfigsResource::default()
            .with_resource_type(resource)
            .with_resource_name(text(of))
            .with_configs(vec![one]);
        IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
    };
    for version in 0..=1 {
        for (request, code) in [
            (incremental(TOPIC, "a", "retention.ms", 0, "5000"), 0),
            (incremental(TOPIC, "a", "cleanup.policy", 2, "compact"), 0),
            (incremental(TOPIC, "a", "retention.ms", 0, "soon"), 40),
            (incremental(TOPIC, "a", "colour", 0, "red"), 40),
            (incremental(TOPIC, "nowhere", "retention.ms", 0, "5"), 3),
            (incremental(BROKER, "1", "num.partitions", 0, "5"), 42),
            (incremental(99, "a", "retention.ms", 0, "5"), 42),
        ] {
            let answer = client.call_at(version, &request).await.expect("answers");
            assert_eq!(answer.responses[0].error_code, code, "version {version} {request:?}");
        }
    }
    let (_, shown) = settings(&mut client, 4, TOPIC, "a").await;
    assert_eq!(shown["retention.ms"], ("5000".to_owned(), 1));
    assert_eq!(shown["cleanup.policy"], ("delete,compact".to_owned(), 1));
    for version in 0..=2 {
        let one = |key: &str, value: Option<&str>| {
            AlterableConfig::default().with_name(text(key)).with_value(value.map(text))
        };
        let replace = |of: &str, configs| {
            let resource = AlterConfigsResource::default().with_resource_type(TOPIC).with_resource_name(text(of));
            AlterConfigsRequest::default().with_resources(vec![resource.with_configs(configs)])
        };
        for (request, code) in [
            (replace("a", vec![one("max.message.bytes", Some("1000"))]).with_validate_only(true), 0),
            (replace("a", vec![one("retention.bytes", Some("1000"))]), 0),
            (replace("a", vec![one("retention.bytes", None)]), 42),
            (replace("nowhere", vec![one("retention.bytes", Some("1000"))]), 3),
        ] {
            let answer = client.call_at(version, &request).await.expect("answers");
            assert_eq!(answer.responses[0].error_code, code, "version {version}");
        }
    }
    let (_, shown) = settings(&mut client, 4, TOPIC, "a").await;
    assert_eq!(shown["retention.bytes"], ("1000".to_owned(), 1));
    assert_eq!(shown["retention.ms"], ("604800000".to_owned(), 5), "what is not named is the default again");
    assert_eq!(shown["max.message.bytes"].1, 5, "only tried");
    let (code, shown) = settings(&mut client, 4, BROKER, "1").await;
    assert_eq!(
        (code, &shown["num.partitions"], &shown["log.retention.ms"].0[..]),
        (0, &("1".to_owned(), 4), "604800000")
    );
    assert_eq!(settings(&mut client, 4, BROKER, "7").await.0, 42);
    assert_eq!(settings(&mut client, 4, TOPIC, "nowhere").await.0, 3);
}

/// Goal: a client that asks for some settings gets those, with synonyms and documentation if it wants. Method: one key.
#[tokio::test]
async fn some_settings_with_synonyms_and_documentation() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    metadata(&mut client, 12, &["a"]).await;
    let asked = DescribeConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(text("a"))
        .with_configuration_keys(Some(vec![text("retention.ms")]));
    let request = DescribeConfigsRequest::default().with_resources(vec![asked]);
    let bare = client.call_at(4, &request).await.expect("answers");
    assert_eq!(bare.results[0].configs.len(), 1);
    let shown = &bare.results[0].configs[0];
    assert_eq!((shown.config_type, shown.synonyms.len(), &shown.documentation), (5, 0, &None));
    let wordy = request.with_include_synonyms(true).with_include_documentation(true);
    let wordy = client.call_at(4, &wordy).await.expect("answers");
    let shown = &wordy.results[0].configs[0];
    assert_eq!(&*shown.synonyms[0].name, "log.retention.ms");
    assert!(shown.documentation.is_some() && !shown.read_only && !shown.is_sensitive);
}

/// Goal: what has one honest answer here gives it. Method: each such API in each version.
#[tokio::test]
async fn what_is_not_here_is_said_so() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    metadata(&mut client, 12, &["a"]).await;
    for version in 1..=3 {
        let described = client.call_at(version, &DescribeAclsRequest::default()).await.expect("answers");
        assert_eq!(described.error_code, 54);
        let create = CreateAclsRequest::default().with_creations(vec![Default::default()]);
        assert_eq!(client.call_at(version, &create).await.expect("answers").results[0].error_code, 54);
        let delete = DeleteAclsRequest::default().with_filters(vec![Default::default()]);
        assert_eq!(client.call_at(version, &delete).await.expect("answers").filter_results[0].error_code, 54);
    }
    for version in 0..=1 {
        let quotas = client.call_at(version, &DescribeClientQuotasRequest::default()).await.expect("answers");
        assert_eq!((quotas.error_code, quotas.entries), (0, Some(Vec::new())));
    }
    let moves = client.call_at(0, &ListPartitionReassignmentsRequest::default()).await.expect("answers");
    assert_eq!((moves.error_code, moves.topics.len()), (0, 0));
    for version in 0..=2 {
        let partitions = kafka_protocol::messages::elect_leaders_request::TopicPartitions::default()
            .with_topic(name("a"))
            .with_partitions(vec![0, 7]);
        let request = ElectLeadersRequest::default().with_topic_partitions(Some(vec![partitions]));
        let answer = client.call_at(version, &request).await.expect("answers");
        let codes: Vec<i16> =
            answer.replica_election_results[0].partition_result.iter().map(|one| one.error_code).collect();
        assert_eq!(codes, [84, 3]);
    }
}

/// Goal: the cluster, its sizes and what has settings are told. Method: each API in each version, with its refusal.
#[tokio::test]
async fn the_cluster_describes_itself() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    metadata(&mut client, 12, &["a"]).await;
    for version in 0..=2 {
        let request = DescribeClusterRequest::default();
        let answer = client.call_at(version, &request).await.expect("answers");
        assert_eq!((answer.error_code, answer.brokers.len(), answer.controller_id.0), (0, 1, 1));
        assert_eq!(answer.cluster_authorized_operations, i32::MIN);
        if version >= 1 {
            let controllers = client.call_at(version, &request.with_endpoint_type(2)).await.expect("answers");
            assert_eq!(controllers.error_code, 114);
        }
    }
    for version in 1..=4 {
        let answer =
            client.call_at(version, &DescribeLogDirsRequest::default().with_topics(None)).await.expect("answers");
        let directory = &answer.results[0];
        assert_eq!((directory.error_code, &*directory.topics[0].name.0), (0, "a"), "version {version}");
        assert_eq!(directory.topics[0].partitions[0].partition_size, 0);
    }
    let metrics = client.call_at(0, &ListConfigResourcesRequest::default()).await.expect("answers");
    assert!(metrics.config_resources.is_empty(), "version 0 asks for client metrics");
    let all = client.call_at(1, &ListConfigResourcesRequest::default()).await.expect("answers");
    let kinds: Vec<i8> = all.config_resources.iter().map(|one| one.resource_type).collect();
    assert_eq!(kinds, [TOPIC, BROKER]);
    let odd = ListConfigResourcesRequest::default().with_resource_types(vec![99]);
    assert_eq!(client.call_at(1, &odd).await.expect("answers").error_code, 35);
}

/// Goal: many partitions are told in pages. Method: two topics of three partitions, pages of two, with a topic that is not
/// there.
#[tokio::test]
async fn topic_partitions_come_in_pages() {
    let trial = Trial::with(|config| config.default_partitions = 3).await;
    let mut client = trial.connect().await;
    metadata(&mut client, 12, &["a", "b"]).await;
    let asked = |value: &str| {
        kafka_protocol::messages::describe_topic_partitions_request::TopicRequest::default().with_name(name(value))
    };
    let topics = vec![asked("b"), asked("a"), asked("nowhere")];
    let mut request = DescribeTopicPartitionsRequest::default().with_topics(topics).with_response_partition_limit(2);
    let mut seen = Vec::new();
    for _ in 0..9 {
        let answer = client.call_at(0, &request).await.expect("answers");
        for topic in &answer.topics {
            let of = topic.name.as_ref().map(|name| name.to_string()).unwrap_or_default();
            if topic.partitions.is_empty() {
                seen.push((of.clone(), -i32::from(topic.error_code)));
            }
            seen.extend(topic.partitions.iter().map(|partition| (of.clone(), partition.partition_index)));
        }
        let Some(next) = answer.next_cursor else { break };
        request.cursor = Some(
            kafka_protocol::messages::describe_topic_partitions_request::Cursor::default()
                .with_topic_name(next.topic_name)
                .with_partition_index(next.partition_index),
        );
    }
    let seen: Vec<(&str, i32)> = seen.iter().map(|(of, index)| (of.as_str(), *index)).collect();
    assert_eq!(seen, [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2), ("nowhere", -3)]);
}

/// Goal: a topic made by asking for it may not collide with one that is there, as one made by CreateTopics may not.
/// Method: names that differ in `.` and `_` alone, in every version of Metadata, and at once; then the list of topics.
#[tokio::test]
async fn metadata_makes_no_topic_that_collides() {
    let trial = Trial::start().await;
    let mut client = trial.connect().await;
    assert_eq!(create(&mut client, vec![topic("orders.v1", 1)]).await, [(0, 1)]);
    for version in 0..=13 {
        let found = metadata(&mut client, version, &["orders_v1"]).await;
        assert_eq!((found[0].error_code, found[0].partitions.len()), (3, 0), "version {version}");
    }
    assert_eq!(create(&mut client, vec![topic("orders_v1", 1)]).await[0].0, 17);
    let mut others = Vec::new();
    for _ in 0..8 {
        others.push(trial.connect().await);
    }
    let names = ["a.b.c", "a_b.c", "a.b_c", "a_b_c"];
    let asked = others
        .iter_mut()
        .zip(names.iter().cycle())
        .map(|(client, name)| metadata(client, 9, std::slice::from_ref(name)));
    let made = futures_util::future::join_all(asked).await;
    assert!(made.iter().any(|topics| topics[0].error_code == 0), "one of them is made");
    let all = client.call_at(9, &MetadataRequest::default().with_topics(None)).await.expect("answers").topics;
    let found = all.iter().filter_map(|topic| topic.name.as_ref()).filter(|name| names.contains(&name.as_str()));
    assert_eq!(found.count(), 1, "{all:?}");
}
