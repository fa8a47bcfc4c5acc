use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::delete_groups_request::DeleteGroupsRequest;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DescribeGroupsRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest,
    SyncGroupRequest, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use tempfile::TempDir;

use super::{
    Call, delete_groups, describe_groups, find_coordinator, heartbeat, join_group, leave_group, list_groups,
    offset_commit, offset_delete, offset_fetch, sync_group,
};
use crate::broker::Broker;
use crate::config::{BrokerConfig, TopicConfig};
use crate::model::{BrokerId, LiveBroker};
use crate::store::embedded::{Embedded, EmbeddedOptions};
use crate::store::{Brokers, Groups, NewTopic, Topics};

struct Rig {
    broker: Arc<Broker<Embedded>>,
    _directory: TempDir,
}

impl Rig {
    async fn new() -> Self {
        let directory = TempDir::new().expect("a directory");
        let store = Arc::new(Embedded::open(directory.path(), EmbeddedOptions::default()).expect("a store"));
        let config = BrokerConfig { initial_rebalance_delay: Duration::ZERO, ..BrokerConfig::default() };
        let broker = Broker::new(Arc::clone(&store), config);
        let new = NewTopic { name: String::from("orders"), partitions: 2, config: TopicConfig::default() };
        store.create_topic(new).await.expect("is made");
        broker.lead.note(vec![LiveBroker { id: store.me(), host: String::from("localhost"), port: 9092 }]);
        broker.groups.take_over(store.lead_groups().await.expect("leads"));
        Self { broker, _directory: directory }
    }
}

fn call(version: i16) -> Call {
    Call { version, client_id: Some(Arc::from("app")), peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 4000)) }
}

fn word(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group() -> GroupId {
    GroupId(word("g"))
}

/// What a client of that version reads.
fn over_the_wire<T: Encodable + Decodable>(version: i16, message: &T) -> T {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes, version).expect("can be written in this version");
    let mut bytes = bytes.freeze();
    let read = T::decode(&mut bytes, version).expect("can be read in this version");
    assert!(bytes.is_empty(), "nothing is left over");
    read
}

fn join_request(version: i16, member: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default().with_name(word("range"));
    let protocol =
        protocol.with_metadata(Bytes::from_static(b"\x00\x01\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff"));
    let request = JoinGroupRequest::default().with_group_id(group()).with_member_id(word(member));
    let request = request.with_session_timeout_ms(10_000).with_protocol_type(word("consumer"));
    let request = if version > 0 { request.with_rebalance_timeout_ms(20_000) } else { request };
    request.with_protocols(vec![protocol])
}

async fn join(rig: &Rig, version: i16) -> JoinGroupResponse {
    let mut request = join_request(version, "");
    loop {
        let response = join_group::handle(&rig.broker, &call(version), request).await.expect("is answered");
        let response = over_the_wire(version, &response);
        if response.error_code != ResponseError::MemberIdRequired.code() {
            return response;
        }
        assert!(version >= 4, "older clients do not know of ids first");
        assert!(response.member_id.starts_with("app-"));
        request = join_request(version, &response.member_id);
    }
}

fn sync_request(version: i16, joined: &JoinGroupResponse) -> SyncGroupRequest {
    let assignment = SyncGroupRequestAssignment::default().with_member_id(joined.member_id.clone());
    let assignment = assignment.with_assignment(Bytes::from_static(b"work"));
    let request = SyncGroupRequest::default().with_group_id(group()).with_member_id(joined.member_id.clone());
    let request = request.with_generation_id(joined.generation_id).with_assignments(vec![assignment]);
    if version < 5 {
        return request;
    }
    request.with_protocol_type(Some(word("consumer"))).with_protocol_name(Some(word("range")))
}

/// Goal: a member lives its life in every version: join, sync, heartbeat, leave. Method: all versions of each, over the wire's bytes.
#[tokio::test]
async fn a_member_lives_in_every_version() {
    for version in 0..=9 {
        let rig = Rig::new().await;
        let joined = join(&rig, version).await;
        assert_eq!((joined.error_code, joined.generation_id), (0, 1), "version {version}");
        assert_eq!((&joined.leader, joined.members.len()), (&joined.member_id, 1));
        assert_eq!(joined.protocol_name.as_deref(), Some("range"));
        assert_eq!(joined.protocol_type.is_some(), version >= 7);

        for version in 0..=5 {
            let request = over_the_wire(version, &sync_request(version, &joined));
            let response = sync_group::handle(&rig.broker, &call(version), request).await.expect("is answered");
            let response = over_the_wire(version, &response);
            assert_eq!((response.error_code, &response.assignment[..]), (0, &b"work"[..]));
        }
        for version in 0..=4 {
            let request = HeartbeatRequest::default().with_group_id(group()).with_member_id(joined.member_id.clone());
            let request = over_the_wire(version, &request.with_generation_id(1));
            let response = heartbeat::handle(&rig.broker, &call(version), request).await.expect("is answered");
            assert_eq!(over_the_wire(version, &response).error_code, 0);
        }
        let (code, members) = leave(&rig, version.min(5), &joined.member_id).await;
        assert_eq!((code, members), (0, if version >= 3 { vec![0] } else { vec![] }));
        let (code, members) = leave(&rig, version.min(5), &joined.member_id).await;
        assert_eq!((code, members), if version >= 3 { (0, vec![25]) } else { (25, vec![]) });
    }
}

async fn leave(rig: &Rig, version: i16, member: &StrBytes) -> (i16, Vec<i16>) {
    let request = LeaveGroupRequest::default().with_group_id(group());
    let request = match version {
        3.. => request.with_members(vec![MemberIdentity::default().with_member_id(member.clone())]),
        _ => request.with_member_id(member.clone()),
    };
    let request = over_the_wire(version, &request);
    let response = leave_group::handle(&rig.broker, &call(version), request).await.expect("is answered");
    let response = over_the_wire(version, &response);
    (response.error_code, response.members.iter().map(|member| member.error_code).collect())
}

/// Goal: what is wrong is refused with Kafka's code in every version. Method: no name, too short a session, no protocol, a stranger.
#[tokio::test]
async fn refusals_carry_kafkas_codes() {
    let rig = Rig::new().await;
    for version in 0..=9 {
        let unnamed = join_request(version, "").with_group_id(GroupId::default());
        let hasty = join_request(version, "").with_session_timeout_ms(5_999);
        let negative = join_request(version, "").with_session_timeout_ms(-1);
        let mute = join_request(version, "").with_protocols(Vec::new());
        let stranger = join_request(version, "stranger");
        for (request, code) in [(unnamed, 24), (hasty, 26), (negative, 26), (mute, 23), (stranger, 25)] {
            let member = request.member_id.clone();
            let response = join_group::handle(&rig.broker, &call(version), request).await.expect("is answered");
            let response = over_the_wire(version, &response);
            assert_eq!((response.error_code, response.generation_id), (code, -1), "version {version}");
            assert_eq!(response.member_id, member);
            assert_eq!(response.protocol_name.as_deref(), if version < 7 { Some("") } else { None });
        }
    }
    let joined = join(&rig, 9).await;
    let silent = sync_request(5, &joined).with_protocol_name(None);
    let response = sync_group::handle(&rig.broker, &call(5), silent).await.expect("is answered");
    assert_eq!(response.error_code, ResponseError::InconsistentGroupProtocol.code());
}

fn commit_request(name: &str, partitions: &[(i32, i64, &str)]) -> OffsetCommitRequest {
    let partitions = partitions.iter().map(|(index, offset, metadata)| {
        let partition = OffsetCommitRequestPartition::default().with_partition_index(*index);
        partition.with_committed_offset(*offset).with_committed_metadata(Some(word(metadata)))
    });
    let topic = OffsetCommitRequestTopic::default().with_name(TopicName(word(name)));
    let topic = topic.with_partitions(partitions.collect());
    OffsetCommitRequest::default().with_group_id(group()).with_topics(vec![topic])
}

async fn commit(rig: &Rig, version: i16, request: OffsetCommitRequest) -> Vec<i16> {
    let request = over_the_wire(version, &request);
    let response = offset_commit::handle(&rig.broker, &call(version), request).await.expect("is answered");
    let response = over_the_wire(version, &response);
    response.topics[0].partitions.iter().map(|partition| partition.error_code).collect()
}

async fn fetch(rig: &Rig, version: i16, topics: Option<Vec<(&str, Vec<i32>)>>) -> Vec<(i32, i64, String)> {
    let request = OffsetFetchRequest::default();
    let request = if version >= 8 {
        let topics = topics.map(|topics| {
            topics
                .into_iter()
                .map(|(name, indexes)| {
                    OffsetFetchRequestTopics::default().with_name(TopicName(word(name))).with_partition_indexes(indexes)
                })
                .collect()
        });
        request.with_groups(vec![OffsetFetchRequestGroup::default().with_group_id(group()).with_topics(topics)])
    } else {
        let topics = topics.map(|topics| {
            topics
                .into_iter()
                .map(|(name, indexes)| {
                    OffsetFetchRequestTopic::default().with_name(TopicName(word(name))).with_partition_indexes(indexes)
                })
                .collect()
        });
        request.with_group_id(group()).with_topics(topics)
    };
    let request = over_the_wire(version, &request);
    let response = offset_fetch::handle(&rig.broker, &call(version), request).await.expect("is answered");
    let response = over_the_wire(version, &response);
    let seen = |index: i32, offset: i64, metadata: &Option<StrBytes>| {
        (index, offset, metadata.as_deref().unwrap_or("null").to_owned())
    };
    let old = response.topics.iter().flat_map(|topic| &topic.partitions);
    let old = old.map(|found| seen(found.partition_index, found.committed_offset, &found.metadata));
    let new = response.groups.iter().flat_map(|group| &group.topics).flat_map(|topic| &topic.partitions);
    let new = new.map(|found| seen(found.partition_index, found.committed_offset, &found.metadata));
    old.chain(new).collect()
}

/// Goal: offsets are committed and read back in every version; each partition has its own error. Method: all versions of both.
#[tokio::test]
async fn offsets_go_and_come_in_every_version() {
    let rig = Rig::new().await;
    let long = "x".repeat(4097);
    for version in 2..=9 {
        let offset = i64::from(version) * 10;
        let request = commit_request("orders", &[(0, offset, "note"), (2, 1, ""), (1, 1, &long), (-1, 1, "")]);
        assert_eq!(commit(&rig, version, request).await, [0, 3, 12, 3]);
        assert_eq!(commit(&rig, version, commit_request("nowhere", &[(0, 1, "")])).await, [3]);
        let late = commit_request("orders", &[(0, 1, "")]).with_generation_id_or_member_epoch(7);
        assert_eq!(commit(&rig, version, late.clone()).await, [25], "the group has offsets, but no such member");
        let nobody = if version >= 9 { 69 } else { 22 };
        assert_eq!(commit(&rig, version, late.with_group_id(GroupId(word("none")))).await, [nobody]);
        for version in 1..=9 {
            let asked = Some(vec![("orders", vec![0, 1]), ("nowhere", vec![0])]);
            let none = (0, -1, String::new());
            let found = [(0, offset, String::from("note")), (1, -1, String::new()), none];
            assert_eq!(fetch(&rig, version, asked).await, found);
            if version >= 2 {
                assert_eq!(fetch(&rig, version, None).await, [(0, offset, String::from("note"))]);
            }
        }
    }
}

/// Goal: groups are listed, described and deleted in every version. Method: one with a member, one with offsets only, one that is not.
#[tokio::test]
async fn groups_are_administered_in_every_version() {
    let rig = Rig::new().await;
    let alone = commit_request("orders", &[(0, 1, "")]).with_group_id(GroupId(word("alone")));
    assert_eq!(commit(&rig, 9, alone).await, [0]);
    let joined = join(&rig, 9).await;
    sync_group::handle(&rig.broker, &call(5), sync_request(5, &joined)).await.expect("is answered");

    for version in 0..=5 {
        let request = ListGroupsRequest::default();
        let response = list_groups::handle(&rig.broker, &call(version), request).await.expect("is answered");
        let response = over_the_wire(version, &response);
        let names: Vec<&str> = response.groups.iter().map(|group| &**group.group_id).collect();
        assert_eq!(names, ["alone", "g"]);
        assert_eq!(&*response.groups[1].group_state, if version >= 4 { "Stable" } else { "" });
    }
    for (states, kinds, count) in
        [(vec!["stable"], vec![], 1), (vec![], vec!["CLASSIC"], 2), (vec![], vec!["share"], 0)]
    {
        let words = |all: Vec<&str>| all.into_iter().map(word).collect();
        let request = ListGroupsRequest::default().with_states_filter(words(states)).with_types_filter(words(kinds));
        let response = list_groups::handle(&rig.broker, &call(5), request).await.expect("is answered");
        assert_eq!(response.groups.len(), count);
    }
    for version in 0..=6 {
        let groups = vec![group(), GroupId(word("alone")), GroupId(word("none"))];
        let request = DescribeGroupsRequest::default().with_groups(groups);
        let request = request.with_include_authorized_operations(version >= 3);
        let response = describe_groups::handle(&rig.broker, &call(version), request).await.expect("is answered");
        let response = over_the_wire(version, &response);
        let states: Vec<_> = response.groups.iter().map(|group| (group.error_code, &*group.group_state)).collect();
        assert_eq!(states, [(0, "Stable"), (0, "Empty"), (if version >= 6 { 69 } else { 0 }, "Dead")]);
        let member = &response.groups[0].members[0];
        assert_eq!((&*member.client_id, &*member.client_host), ("app", "/127.0.0.1"));
        assert_eq!(&member.member_assignment[..], b"work");
    }
    for version in 0..=2 {
        let groups = vec![group(), GroupId(word("none"))];
        let request = DeleteGroupsRequest::default().with_groups_names(groups);
        let response = delete_groups::handle(&rig.broker, &call(version), request).await.expect("is answered");
        let response = over_the_wire(version, &response);
        let codes: Vec<i16> = response.results.iter().map(|result| result.error_code).collect();
        assert_eq!(codes, [68, 69]);
    }
}

/// Goal: offsets are deleted topic by topic; what a member reads stays. Method: with a member, and when it has left.
#[tokio::test]
async fn offsets_are_deleted_when_nobody_reads_them() {
    let rig = Rig::new().await;
    let delete = async |partitions: &[i32]| {
        let partitions =
            partitions.iter().map(|index| OffsetDeleteRequestPartition::default().with_partition_index(*index));
        let topic = OffsetDeleteRequestTopic::default().with_name(TopicName(word("orders")));
        let topic = topic.with_partitions(partitions.collect());
        let request = OffsetDeleteRequest::default().with_group_id(group()).with_topics(vec![topic]);
        let response = offset_delete::handle(&rig.broker, &call(0), request).await.expect("is answered");
        let response = over_the_wire(0, &response);
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        (response.error_code, partitions.map(|partition| partition.error_code).collect::<Vec<_>>())
    };
    assert_eq!(delete(&[0]).await, (69, vec![]));
    let joined = join(&rig, 9).await;
    sync_group::handle(&rig.broker, &call(5), sync_request(5, &joined)).await.expect("is answered");
    let request = commit_request("orders", &[(0, 5, ""), (1, 5, "")]).with_member_id(joined.member_id.clone());
    assert_eq!(commit(&rig, 9, request.with_generation_id_or_member_epoch(1)).await, [0, 0]);
    assert_eq!(delete(&[0, 9]).await, (0, vec![86, 3]));
    leave(&rig, 5, &joined.member_id).await;
    assert_eq!(delete(&[0]).await, (0, vec![0]));
    assert_eq!(fetch(&rig, 9, None).await, [(1, 5, String::new())]);
}

/// Goal: FindCoordinator names the leader, one key or many, in every version. Method: groups, transactional ids, a kind that is not.
#[tokio::test]
async fn the_coordinator_is_found() {
    let rig = Rig::new().await;
    for version in 0..=6 {
        for kind in [0, 1, 2] {
            if version == 0 && kind > 0 {
                continue;
            }
            let request = FindCoordinatorRequest::default().with_key_type(kind);
            let request = match version {
                4.. => request.with_coordinator_keys(vec![word("g"), word("h")]),
                _ => request.with_key(word("g")),
            };
            let request = over_the_wire(version, &request);
            let response = find_coordinator::handle(&rig.broker, &call(version), request).await.expect("is answered");
            let response = over_the_wire(version, &response);
            let old = (response.error_code, response.node_id.0, response.host.to_string(), response.port);
            let new = response.coordinators.iter();
            let new: Vec<_> = new.map(|one| (one.error_code, one.node_id.0, one.host.to_string(), one.port)).collect();
            let seen = if version >= 4 { new } else { vec![old; 2] };
            let expected = if kind < 2 { (0, 1, String::from("localhost"), 9092) } else { (42, -1, String::new(), -1) };
            assert_eq!(seen, vec![expected; 2], "version {version}, kind {kind}");
        }
    }
    rig.broker.lead.note(Vec::new());
    let request = FindCoordinatorRequest::default().with_key(word("g"));
    let response = find_coordinator::handle(&rig.broker, &call(1), request).await.expect("is answered");
    assert_eq!(response.error_code, ResponseError::CoordinatorNotAvailable.code());
}

/// Goal: who does not lead says 16, who has not loaded yet says 14, but answers heartbeats. Method: another leader; no groups yet.
#[tokio::test]
async fn who_cannot_answer_says_why() {
    let rig = Rig::new().await;
    let beat = async || {
        let request = HeartbeatRequest::default().with_group_id(group());
        heartbeat::handle(&rig.broker, &call(4), request).await.expect("is answered").error_code
    };
    let join = async || {
        let request = join_request(9, "");
        join_group::handle(&rig.broker, &call(9), request).await.expect("is answered").error_code
    };
    rig.broker.groups.give_up();
    assert_eq!((join().await, beat().await), (14, 0));
    assert_eq!(commit(&rig, 9, commit_request("orders", &[(0, 1, "")])).await, [14]);
    rig.broker.lead.note(vec![LiveBroker { id: BrokerId(0), host: String::from("elsewhere"), port: 1 }]);
    assert_eq!((join().await, beat().await), (16, 16));
    assert_eq!(commit(&rig, 9, commit_request("orders", &[(0, 1, "")])).await, [16]);
    assert_eq!(commit(&rig, 2, commit_request("orders", &[(0, 1, "")])).await, [16]);
    for version in [1, 2, 8] {
        let request = OffsetFetchRequest::default();
        let request = match version {
            8.. => request.with_groups(vec![OffsetFetchRequestGroup::default().with_group_id(group())]),
            _ => {
                let topic = OffsetFetchRequestTopic::default().with_name(TopicName(word("orders")));
                request.with_group_id(group()).with_topics(Some(vec![topic.with_partition_indexes(vec![0])]))
            }
        };
        let response = offset_fetch::handle(&rig.broker, &call(version), request).await.expect("is answered");
        let response = over_the_wire(version, &response);
        let code = match version {
            1 => response.topics[0].partitions[0].error_code,
            2 => response.error_code,
            _ => response.groups[0].error_code,
        };
        assert_eq!(code, 16, "version {version}");
    }
}
