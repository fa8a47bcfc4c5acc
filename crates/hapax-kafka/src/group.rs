//! What a member of a classic group asks: join, sync, heartbeat, leave; and offsets, with or without membership.
//!
//! One question each, no loop: whoever wants a consumer decides what to do with a refusal.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    GroupId, HeartbeatRequest, JoinGroupRequest, OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::StrBytes;

use super::cluster::{Client, topic_name};
use super::error::{ClientError, check};

/// A place in a group; the default is none, as of somebody who only commits offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The member's id, empty for none.
    pub member: String,
    /// The generation, -1 for none.
    pub generation: i32,
}

impl Default for Membership {
    fn default() -> Self {
        Self { member: String::new(), generation: -1 }
    }
}

/// What a join gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Our place.
    pub membership: Membership,
    /// All members, if we lead and are to say who gets what; else none.
    pub members: Vec<String>,
}

/// The newest OffsetFetch that asks for one group.
const NEWEST_OFFSET_FETCH: i16 = 7;
/// The newest OffsetCommit that names topics.
const NEWEST_OFFSET_COMMIT: i16 = 9;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn group_id(group: &str) -> GroupId {
    GroupId(text(group))
}

fn milliseconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

impl Client {
    /// Joins, and waits until all have. A coordinator that first wants to give an id is asked a second time.
    ///
    /// # Errors
    /// If the coordinator says no, or does not answer.
    pub async fn join_group(
        &mut self,
        group: &str,
        member: &str,
        session: Duration,
        rebalance: Duration,
    ) -> Result<Joined, ClientError> {
        let mut member = member.to_owned();
        loop {
            let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
            let request = JoinGroupRequest::default()
                .with_group_id(group_id(group))
                .with_session_timeout_ms(milliseconds(session))
                .with_rebalance_timeout_ms(milliseconds(rebalance))
                .with_member_id(text(&member))
                .with_protocol_type(text("consumer"))
                .with_protocols(vec![protocol]);
            let answer = self.at_coordinator(group, i16::MAX, &request).await?;
            let needs_id = answer.error_code == ResponseError::MemberIdRequired.code();
            if needs_id && member.is_empty() {
                member = answer.member_id.to_string();
                continue;
            }
            self.judge_group(answer.error_code, group, "join")?;
            let membership = Membership { member: answer.member_id.to_string(), generation: answer.generation_id };
            let members = answer.members.iter().map(|member| member.member_id.to_string()).collect();
            return Ok(Joined { membership, members });
        }
    }

    /// Gets our assignment; the leader brings everybody's.
    ///
    /// # Errors
    /// If the coordinator says no, or does not answer.
    pub async fn sync_group(
        &mut self,
        group: &str,
        membership: &Membership,
        assignments: Vec<(String, Bytes)>,
    ) -> Result<Bytes, ClientError> {
        let assign = |(member, assignment): (String, Bytes)| {
            SyncGroupRequestAssignment::default().with_member_id(text(&member)).with_assignment(assignment)
        };
        let request = SyncGroupRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id(membership.generation)
            .with_member_id(text(&membership.member))
            .with_protocol_type(Some(text("consumer")))
            .with_protocol_name(Some(text("range")))
            .with_assignments(assignments.into_iter().map(assign).collect());
        let answer = self.at_coordinator(group, i16::MAX, &request).await?;
        self.judge_group(answer.error_code, group, "sync")?;
        Ok(answer.assignment)
    }

    /// Says that we live.
    ///
    /// # Errors
    /// If the coordinator says no (`RebalanceInProgress` among others), or does not answer.
    pub async fn heartbeat(&mut self, group: &str, membership: &Membership) -> Result<(), ClientError> {
        let request = HeartbeatRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id(membership.generation)
            .with_member_id(text(&membership.member));
        let answer = self.at_coordinator(group, i16::MAX, &request).await?;
        self.judge_group(answer.error_code, group, "heartbeat")
    }

    /// Commits the offset that is to be read next.
    ///
    /// # Errors
    /// If the coordinator says no, or does not answer.
    pub async fn commit_offset(
        &mut self,
        group: &str,
        membership: &Membership,
        (topic, partition): (&str, i32),
        offset: i64,
    ) -> Result<(), ClientError> {
        let one = OffsetCommitRequestPartition::default()
            .with_partition_index(partition)
            .with_committed_offset(offset)
            .with_committed_leader_epoch(-1)
            .with_committed_metadata(Some(StrBytes::new()));
        let topic = OffsetCommitRequestTopic::default().with_name(topic_name(topic)).with_partitions(vec![one]);
        let request = OffsetCommitRequest::default()
            .with_group_id(group_id(group))
            .with_generation_id_or_member_epoch(membership.generation)
            .with_member_id(text(&membership.member))
            .with_retention_time_ms(-1)
            .with_topics(vec![topic]);
        let answer = self.at_coordinator(group, NEWEST_OFFSET_COMMIT, &request).await?;
        let one = answer.topics.first().and_then(|topic| topic.partitions.first());
        self.judge_group(one.map_or(-1, |one| one.error_code), group, "commit")
    }

    /// The offset that a group has committed, if it has one.
    ///
    /// # Errors
    /// If the coordinator says no, or does not answer.
    pub async fn committed_offset(
        &mut self,
        group: &str,
        (topic, partition): (&str, i32),
    ) -> Result<Option<i64>, ClientError> {
        let topic = OffsetFetchRequestTopic::default().with_name(topic_name(topic));
        let topic = topic.with_partition_indexes(vec![partition]);
        let request = OffsetFetchRequest::default().with_group_id(group_id(group)).with_topics(Some(vec![topic]));
        let answer = self.at_coordinator(group, NEWEST_OFFSET_FETCH, &request).await?;
        self.judge_group(answer.error_code, group, "offset")?;
        let one = answer.topics.first().and_then(|topic| topic.partitions.first());
        self.judge_group(one.map_or(-1, |one| one.error_code), group, "offset")?;
        Ok(one.map(|one| one.committed_offset).filter(|offset| *offset >= 0))
    }

    fn judge_group(&mut self, code: i16, group: &str, what: &str) -> Result<(), ClientError> {
        let checked = check(code, || format!("{what} of group {group}"));
        if let Err(error) = &checked
            && error.code().is_some_and(Self::is_elsewhere)
        {
            self.forget_coordinator(group);
        }
        checked
    }
}
