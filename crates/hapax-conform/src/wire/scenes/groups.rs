//! Classic groups: one life of a group per version of JoinGroup, with every other API in the version of the same rank.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use kafka_protocol::messages::JoinGroupResponse;
use kafka_protocol::messages::delete_groups_request::DeleteGroupsRequest;
use kafka_protocol::messages::describe_groups_request::DescribeGroupsRequest;
use kafka_protocol::messages::heartbeat_request::HeartbeatRequest;
use kafka_protocol::messages::join_group_request::{JoinGroupRequest, JoinGroupRequestProtocol};
use kafka_protocol::messages::leave_group_request::{LeaveGroupRequest, MemberIdentity};
use kafka_protocol::messages::list_groups_request::ListGroupsRequest;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_delete_request::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use kafka_protocol::messages::sync_group_request::{SyncGroupRequest, SyncGroupRequestAssignment};
use kafka_protocol::protocol::StrBytes;

use super::{Script, Stage, group_id, text, topic_name};

/// A subscription to the topic `stage`, as Java's consumer writes it in version 0.
const SUBSCRIPTION: &[u8] = b"\0\0\0\0\0\x01\0\x05stage\xff\xff\xff\xff";
const ASSIGNMENT: &[u8] = b"\0\0\0\0\0\x01\0\x05stage\0\0\0\x01\0\0\0\0\xff\xff\xff\xff";

/// A member between two questions.
#[derive(Debug, Clone)]
struct Member {
    group: String,
    id: String,
    generation: i32,
}

pub(super) async fn play(script: &mut Script, stage: &Stage) -> Result<()> {
    for version in 0..=9 {
        let member = joining(script, version).await?;
        syncing(script, version.min(5), &member).await?;
        beating(script, version.min(4), &member).await?;
        committing(script, version.clamp(2, 9), &member, stage).await?;
        fetching(script, version.clamp(1, 9), &member, stage).await?;
        looking(script, version, &member).await?;
        ending(script, version, &member, stage).await?;
        if version >= 5 {
            returning(script, version).await?;
        }
    }
    Ok(())
}

/// A static member that comes back has a new id; its old one is fenced everywhere.
async fn returning(script: &mut Script, version: i16) -> Result<()> {
    let group = format!("static-{version}");
    let join = |id: &str| join(version, &group, id).with_group_instance_id(Some(text("instance")));
    let first = script.say_but(version, "a static member", &join(""), hide).await?.context("an answer")?;
    let old = Member { group: group.clone(), id: first.member_id.to_string(), generation: first.generation_id };
    script.name("", &old.id, "<old member>");
    let sync = |member: &Member| {
        let assignment = SyncGroupRequestAssignment::default().with_member_id(text(&member.id));
        SyncGroupRequest::default()
            .with_group_id(group_id(&group))
            .with_member_id(text(&member.id))
            .with_group_instance_id(Some(text("instance")))
            .with_generation_id(member.generation)
            .with_assignments(vec![assignment.with_assignment(Bytes::from_static(ASSIGNMENT))])
    };
    script.say(4, "a static member's assignment", &sync(&old)).await?;
    let again = script.say_but(version, "the same instance again", &join(""), hide).await?.context("an answer")?;
    let new = Member { id: again.member_id.to_string(), generation: again.generation_id, ..old.clone() };
    script.name("", &new.id, "<new member>");
    for (what, member) in [("its old id", &old), ("its new id", &new)] {
        let beat = HeartbeatRequest::default().with_group_id(group_id(&group)).with_member_id(text(&member.id));
        let beat = beat.with_group_instance_id(Some(text("instance"))).with_generation_id(member.generation);
        script.say(4, what, &beat).await?;
        script.say(4, what, &sync(member)).await?;
        let topic = OffsetCommitRequest::default()
            .with_group_id(group_id(&group))
            .with_member_id(text(&member.id))
            .with_group_instance_id(Some(text("instance")))
            .with_generation_id_or_member_epoch(member.generation);
        let place = commit(8, &group, &member.id, member.generation, "stage", 0);
        script.say(8, what, &topic.with_topics(place.topics)).await?;
    }
    script.say_but(version, "the old id joins", &join(&old.id), hide).await?;
    let leaving = MemberIdentity::default().with_member_id(text("")).with_group_instance_id(Some(text("instance")));
    let leave = LeaveGroupRequest::default().with_group_id(group_id(&group)).with_members(vec![leaving]);
    script.say(version.clamp(3, 5), "an instance leaves", &leave).await?;
    script.say(version.clamp(3, 5), "an instance leaves again", &leave).await?;
    Ok(())
}

fn join(version: i16, group: &str, member: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
    let protocol = protocol.with_metadata(Bytes::from_static(SUBSCRIPTION));
    let request = JoinGroupRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(text(member))
        .with_session_timeout_ms(30_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    if version >= 1 { request.with_rebalance_timeout_ms(30_000) } else { request }
}

/// A new member's id is the broker's choice, as long as there is one.
fn hide(response: &mut JoinGroupResponse) {
    let own = response.member_id.clone();
    let name = |id: &StrBytes| if *id == own && !own.is_empty() { text("<member>") } else { id.clone() };
    response.leader = name(&response.leader);
    for member in &mut response.members {
        member.member_id = name(&member.member_id);
    }
    response.member_id = name(&own);
}

async fn joining(script: &mut Script, version: i16) -> Result<Member> {
    let group = format!("group-{version}");
    let quick = join(version, &group, "").with_session_timeout_ms(10);
    script.say_but(version, "too short a session", &quick, hide).await?;
    script.say_but(version, "a group without a name", &join(version, "", ""), hide).await?;
    script.say_but(version, "an unknown member", &join(version, &group, "stranger"), hide).await?;
    let bare = join(version, &group, "").with_protocols(vec![]);
    script.say_but(version, "no protocols", &bare, hide).await?;
    let mut joined =
        script.say_but(version, "a new member", &join(version, &group, ""), hide).await?.context("an answer")?;
    if version >= 4 {
        let known = join(version, &group, &joined.member_id);
        joined = script.say_but(version, "a member with its id", &known, hide).await?.context("an answer")?;
    }
    let id = joined.member_id.to_string();
    script.name("", &id, "<member>");
    let other = join(version, &group, &id).with_protocol_type(text("connect"));
    script.say_but(version, "another type of protocol", &other, hide).await?;
    Ok(Member { group, id, generation: joined.generation_id })
}

async fn syncing(script: &mut Script, version: i16, member: &Member) -> Result<()> {
    let request = |id: &str, generation: i32| {
        let assignment = SyncGroupRequestAssignment::default().with_member_id(text(&member.id));
        let assignment = assignment.with_assignment(Bytes::from_static(ASSIGNMENT));
        let request = SyncGroupRequest::default()
            .with_group_id(group_id(&member.group))
            .with_member_id(text(id))
            .with_generation_id(generation)
            .with_assignments(vec![assignment]);
        if version < 5 {
            return request;
        }
        request.with_protocol_type(Some(text("consumer"))).with_protocol_name(Some(text("range")))
    };
    script.say(version, "an unknown member", &request("stranger", member.generation)).await?;
    script.say(version, "another generation", &request(&member.id, member.generation + 7)).await?;
    if version >= 5 {
        let odd = request(&member.id, member.generation).with_protocol_name(Some(text("sticky")));
        script.say(version, "another protocol", &odd).await?;
    }
    let nowhere = request(&member.id, member.generation).with_group_id(group_id("no-such-group"));
    script.say(version, "an unknown group", &nowhere).await?;
    script.say(version, "the leader's assignment", &request(&member.id, member.generation)).await?;
    script.say(version, "the same again", &request(&member.id, member.generation)).await?;
    Ok(())
}

async fn beating(script: &mut Script, version: i16, member: &Member) -> Result<()> {
    for (what, group, id, generation) in [
        ("a heartbeat", member.group.as_str(), member.id.as_str(), member.generation),
        ("another generation", &member.group, &member.id, member.generation + 7),
        ("an unknown member", &member.group, "stranger", member.generation),
        ("an unknown group", "no-such-group", &member.id, member.generation),
        ("a group without a name", "", &member.id, member.generation),
    ] {
        let request = HeartbeatRequest::default().with_group_id(group_id(group)).with_member_id(text(id));
        script.say(version, what, &request.with_generation_id(generation)).await?;
    }
    if version >= 3 {
        let request =
            HeartbeatRequest::default().with_group_id(group_id(&member.group)).with_member_id(text(&member.id));
        let request =
            request.with_generation_id(member.generation).with_group_instance_id(Some(text("no-such-instance")));
        script.say(version, "an unknown instance", &request).await?;
    }
    Ok(())
}

fn commit(version: i16, group: &str, id: &str, generation: i32, topic: &str, partition: i32) -> OffsetCommitRequest {
    let mut place = OffsetCommitRequestPartition::default()
        .with_partition_index(partition)
        .with_committed_offset(42)
        .with_committed_metadata(Some(text("a note")));
    if version >= 6 {
        place.committed_leader_epoch = -1;
    }
    let topic = OffsetCommitRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![place]);
    let request = OffsetCommitRequest::default()
        .with_group_id(group_id(group))
        .with_member_id(text(id))
        .with_generation_id_or_member_epoch(generation)
        .with_topics(vec![topic]);
    if version <= 4 { request.with_retention_time_ms(-1) } else { request }
}

async fn committing(script: &mut Script, version: i16, member: &Member, stage: &Stage) -> Result<()> {
    let (group, id, generation) = (member.group.as_str(), member.id.as_str(), member.generation);
    for (what, request) in [
        ("an offset", commit(version, group, id, generation, stage.topic, 0)),
        ("another generation", commit(version, group, id, generation + 7, stage.topic, 0)),
        ("an unknown member", commit(version, group, "stranger", generation, stage.topic, 0)),
        ("without a member", commit(version, group, "", -1, stage.topic, 0)),
        ("an unknown topic", commit(version, group, id, generation, "nowhere", 0)),
        ("an unknown partition", commit(version, group, id, generation, stage.topic, 9)),
        ("a group without members", commit(version, "standalone", "", -1, stage.topic, 0)),
        ("a group that is not there, with a generation", commit(version, "no-such-group", "x", 3, stage.topic, 0)),
        ("a group without a name", commit(version, "", "", -1, stage.topic, 0)),
    ] {
        script.say(version, what, &request).await?;
    }
    let mut long = commit(version, group, id, generation, stage.topic, 0);
    long.topics[0].partitions[0].committed_metadata = Some(text(&"x".repeat(5000)));
    script.say(version, "too long a note", &long).await?;
    Ok(())
}

async fn fetching(script: &mut Script, version: i16, member: &Member, stage: &Stage) -> Result<()> {
    for (what, group, topic, partitions) in [
        ("offsets", member.group.as_str(), stage.topic, vec![0, 1]),
        ("an unknown topic", &member.group, "nowhere", vec![0]),
        ("an unknown group", "no-such-group", stage.topic, vec![0]),
        ("all offsets", &member.group, "", vec![]),
    ] {
        if topic.is_empty() && version < 2 {
            continue;
        }
        let mut request = OffsetFetchRequest::default();
        if version >= 8 {
            let topics =
                OffsetFetchRequestTopics::default().with_name(topic_name(topic)).with_partition_indexes(partitions);
            let asked = OffsetFetchRequestGroup::default().with_group_id(group_id(group));
            let asked = asked.with_topics((!topic.is_empty()).then(|| vec![topics]));
            request.groups = vec![if version >= 9 { asked.with_member_epoch(-1) } else { asked }];
        } else {
            let topics =
                OffsetFetchRequestTopic::default().with_name(topic_name(topic)).with_partition_indexes(partitions);
            request = request.with_group_id(group_id(group)).with_topics((!topic.is_empty()).then(|| vec![topics]));
        }
        script.say(version, what, &request).await?;
        if version >= 7 {
            script.say(version, &format!("{what}, stable ones"), &request.with_require_stable(true)).await?;
        }
    }
    Ok(())
}

async fn looking(script: &mut Script, version: i16, member: &Member) -> Result<()> {
    let describe = version.min(6);
    for (what, group) in
        [("a group", member.group.as_str()), ("an unknown group", "no-such-group"), ("standalone", "standalone")]
    {
        let request = DescribeGroupsRequest::default().with_groups(vec![group_id(group)]);
        script
            .say_but(describe, what, &request, |response| {
                for group in &mut response.groups {
                    group.error_message = group.error_message.take().map(|_| text("(words)"));
                }
            })
            .await?;
    }
    let list = version.min(5);
    let mut request = ListGroupsRequest::default();
    for (what, states, types) in [
        ("all groups", vec![], vec![]),
        ("stable groups", vec!["Stable"], vec![]),
        ("new groups", vec![], vec!["consumer"]),
    ] {
        if (!states.is_empty() && list < 4) || (!types.is_empty() && list < 5) {
            continue;
        }
        request.states_filter = states.into_iter().map(text).collect();
        request.types_filter = types.into_iter().map(text).collect();
        script
            .say_but(list, what, &request, |response| {
                response.groups.sort_by(|one, other| one.group_id.cmp(&other.group_id))
            })
            .await?;
    }
    Ok(())
}

async fn ending(script: &mut Script, version: i16, member: &Member, stage: &Stage) -> Result<()> {
    let delete = |group: &str| DeleteGroupsRequest::default().with_groups_names(vec![group_id(group)]);
    script.say(version.min(2), "a group that lives", &delete(&member.group)).await?;
    let forget = |group: &str, topic: &str| {
        let partition = OffsetDeleteRequestPartition::default().with_partition_index(0);
        let topic = OffsetDeleteRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
        OffsetDeleteRequest::default().with_group_id(group_id(group)).with_topics(vec![topic])
    };
    script.say(0, "offsets of a topic that is read", &forget(&member.group, stage.topic)).await?;
    script.say(0, "offsets of an unknown group", &forget("no-such-group", stage.topic)).await?;
    let leave = |id: &str| {
        let request = LeaveGroupRequest::default().with_group_id(group_id(&member.group));
        if version >= 3 {
            return request.with_members(vec![MemberIdentity::default().with_member_id(text(id))]);
        }
        request.with_member_id(text(id))
    };
    script.say(version.min(5), "an unknown member", &leave("stranger")).await?;
    let nowhere = leave(&member.id).with_group_id(group_id("no-such-group"));
    script.say(version.min(5), "an unknown group", &nowhere).await?;
    script.say(version.min(5), "a member", &leave(&member.id)).await?;
    script.say(version.min(5), "the same again", &leave(&member.id)).await?;
    let request = DescribeGroupsRequest::default().with_groups(vec![group_id(&member.group)]);
    script.say(version.min(6), "an empty group", &request).await?;
    script.say(0, "offsets of a topic that nobody reads", &forget(&member.group, stage.topic)).await?;
    script.say(version.min(2), "a group without members", &delete(&member.group)).await?;
    script.say(version.min(2), "an unknown group", &delete("no-such-group")).await?;
    Ok(())
}
