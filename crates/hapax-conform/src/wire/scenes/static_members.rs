//! Static members: they return without their id, and their former selves are fenced.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use kafka_protocol::messages::describe_groups_request::DescribeGroupsRequest;
use kafka_protocol::messages::heartbeat_request::HeartbeatRequest;
use kafka_protocol::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use kafka_protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{OffsetDeleteRequestPartition, OffsetDeleteRequestTopic};
use kafka_protocol::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use kafka_protocol::messages::{JoinGroupResponse, OffsetDeleteRequest};

use super::{Script, Stage, group_id, text, topic_name};

/// A subscription to the topic `stage`, as Java's consumer writes it in version 0.
const SUBSCRIPTION: &[u8] = b"\0\0\0\0\0\x01\0\x05stage\xff\xff\xff\xff";

/// The name that the member keeps.
const INSTANCE: &str = "machine";

/// One life per version of JoinGroup that knows static members.
pub(super) async fn play(script: &mut Script, stage: &Stage) -> Result<()> {
    for version in 5..=9 {
        let group = format!("static-{version}");
        let stranger = join(version, &group, "stranger");
        script.say(version, "static: an id before there is a group", &stranger).await?;
        let first = enter(script, version, &group, "static: a new member", "<first>").await?;
        commits(script, &group, &first, 1, stage, "static: before the assignment").await?;
        sync(script, &group, &first, 1, "static: the leader's assignment").await?;
        commits(script, &group, &first, 1, stage, "static: a commit").await?;

        let second = enter(script, version, &group, "static: it returns", "<second>").await?;
        sync(script, &group, &second, 1, "static: its old assignment").await?;
        describe(script, &group, "static: looked at").await?;
        beat(script, &group, &first, 1, "static: its former self beats").await?;
        beat(script, &group, &second, 1, "static: it beats").await?;
        sync(script, &group, &first, 1, "static: its former self syncs").await?;
        commits(script, &group, &first, 1, stage, "static: its former self commits").await?;
        let former = join(version, &group, &first);
        script.say(version, "static: its former self joins", &former).await?;
        leave(script, &group, &first, "static: its former self leaves").await?;
        delete(script, &group, stage, "static: offsets that it reads").await?;

        let again = join(version, &group, &second);
        let joined =
            script.say(version, "static: the leader wants to assign anew", &again).await?.context("an answer")?;
        beat(script, &group, &second, joined.generation_id, "static: before the assignment it beats").await?;
        sync(script, &group, &second, joined.generation_id, "static: assigned anew").await?;
        leave(script, &group, "", "static: removed by its name").await?;
        leave(script, &group, "", "static: removed twice").await?;
        describe(script, &group, "static: empty").await?;
        delete(script, &group, stage, "static: offsets that nobody reads").await?;
    }
    Ok(())
}

fn join(version: i16, group: &str, member: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
    let protocol = protocol.with_metadata(Bytes::from_static(SUBSCRIPTION));
    let request = JoinGroupRequest::default().with_group_id(group_id(group)).with_member_id(text(member));
    let request = request.with_session_timeout_ms(30_000).with_rebalance_timeout_ms(30_000);
    let request = request.with_group_instance_id(Some(text(INSTANCE))).with_protocol_type(text("consumer"));
    let request = request.with_protocols(vec![protocol]);
    if version >= 8 { request.with_reason(Some(text("a test"))) } else { request }
}

/// Joins without an id; the id that it is given is called `name` from now on.
async fn enter(script: &mut Script, version: i16, group: &str, what: &str, name: &'static str) -> Result<String> {
    let hide = |response: &mut JoinGroupResponse| {
        // The new id is the broker's choice, as long as there is one.
        let own = response.member_id.clone();
        if response.leader == own {
            response.leader = text(name);
        }
        for member in response.members.iter_mut().filter(|member| member.member_id == own) {
            member.member_id = text(name);
        }
        response.member_id = text(if own.is_empty() { "" } else { name });
    };
    let request = join(version, group, "");
    let joined = script.say_but(version, what, &request, hide).await?.context("an answer")?;
    let id = joined.member_id.to_string();
    script.name("", &id, name);
    Ok(id)
}

async fn sync(script: &mut Script, group: &str, id: &str, generation: i32, what: &str) -> Result<()> {
    let assignment = SyncGroupRequestAssignment::default().with_member_id(text(id));
    let assignment = assignment.with_assignment(Bytes::from_static(b"work"));
    let request = SyncGroupRequest::default().with_group_id(group_id(group)).with_member_id(text(id));
    let request = request.with_generation_id(generation).with_group_instance_id(Some(text(INSTANCE)));
    let request = request.with_protocol_type(Some(text("consumer"))).with_protocol_name(Some(text("range")));
    script.say(5, what, &request.with_assignments(vec![assignment])).await?;
    Ok(())
}

async fn beat(script: &mut Script, group: &str, id: &str, generation: i32, what: &str) -> Result<()> {
    let request = HeartbeatRequest::default().with_group_id(group_id(group)).with_member_id(text(id));
    let request = request.with_generation_id(generation).with_group_instance_id(Some(text(INSTANCE)));
    script.say(4, what, &request).await?;
    Ok(())
}

async fn commits(script: &mut Script, group: &str, id: &str, generation: i32, stage: &Stage, what: &str) -> Result<()> {
    let partition = OffsetCommitRequestPartition::default().with_partition_index(0).with_committed_offset(3);
    let topic = OffsetCommitRequestTopic::default().with_name(topic_name(stage.topic));
    let topic = topic.with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default().with_group_id(group_id(group)).with_member_id(text(id));
    let request = request.with_generation_id_or_member_epoch(generation).with_topics(vec![topic]);
    script.say(9, what, &request.with_group_instance_id(Some(text(INSTANCE)))).await?;
    Ok(())
}

async fn leave(script: &mut Script, group: &str, id: &str, what: &str) -> Result<()> {
    let member = MemberIdentity::default().with_member_id(text(id)).with_group_instance_id(Some(text(INSTANCE)));
    let request = LeaveGroupRequest::default().with_group_id(group_id(group)).with_members(vec![member]);
    script.say(5, what, &request).await?;
    Ok(())
}

async fn describe(script: &mut Script, group: &str, what: &str) -> Result<()> {
    let request = DescribeGroupsRequest::default().with_groups(vec![group_id(group)]);
    script.say(6, what, &request.with_include_authorized_operations(true)).await?;
    Ok(())
}

/// One partition at a time: the order of answers is nobody's promise.
async fn delete(script: &mut Script, group: &str, stage: &Stage, what: &str) -> Result<()> {
    for index in [0, 9] {
        let partition = OffsetDeleteRequestPartition::default().with_partition_index(index);
        let topic = OffsetDeleteRequestTopic::default().with_name(topic_name(stage.topic));
        let topic = topic.with_partitions(vec![partition]);
        let request = OffsetDeleteRequest::default().with_group_id(group_id(group)).with_topics(vec![topic]);
        script.say(0, what, &request).await?;
    }
    Ok(())
}
