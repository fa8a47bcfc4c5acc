//! Looking at groups, and deleting them or some of their offsets.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::Coordinator;
use super::term::Term;
use crate::model::TopicId;
use crate::rules::group::{Group, Phase};
use crate::store::{Store, StoreError};

/// A group in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedGroup {
    /// Its name.
    pub id: Arc<str>,
    /// "consumer", …; empty: it only keeps offsets.
    pub protocol_type: Arc<str>,
    /// Kafka's name for where it stands.
    pub phase: &'static str,
}

/// A member, described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub id: Arc<str>,
    /// Its static name.
    pub instance: Option<Arc<str>>,
    /// What the client calls itself.
    pub client_id: Arc<str>,
    /// Where it is.
    pub client_host: Arc<str>,
    /// What it said under the chosen protocol, once the group is stable.
    pub metadata: Bytes,
    /// What the leader gave it.
    pub assignment: Bytes,
}

/// A group, described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedGroup {
    /// As in a list.
    pub listed: ListedGroup,
    /// The chosen protocol, once the group is stable.
    pub protocol: Arc<str>,
    /// Its members.
    pub members: Vec<DescribedMember>,
}

/// Partitions of a topic whose offsets are to be deleted, by index.
#[derive(Debug, Clone)]
pub struct TopicOffsets {
    /// The topic, if it exists.
    pub topic: Option<TopicId>,
    /// How many partitions it has.
    pub partitions: usize,
    /// Its name.
    pub name: String,
    /// Which partitions.
    pub indexes: Vec<i32>,
}

impl TopicOffsets {
    fn partition(&self, index: i32) -> Option<(TopicId, i32)> {
        let exists = usize::try_from(index).is_ok_and(|index| index < self.partitions);
        self.topic.filter(|_| exists).map(|topic| (topic, index))
    }
}

impl<S: Store> Coordinator<S> {
    /// All groups, by name: those with members now or once, and those that only keep offsets.
    pub async fn list(&self) -> Result<Vec<ListedGroup>, ResponseError> {
        let term = self.term()?;
        let with_offsets = self.store.groups_with_offsets().await.map_err(|error| reading(&term, &error))?;
        let standalone = with_offsets.into_iter().map(|(id, _)| {
            let id: Arc<str> = Arc::from(id);
            (Arc::clone(&id), ListedGroup { id, protocol_type: Arc::from(""), phase: "Empty" })
        });
        let mut groups: BTreeMap<Arc<str>, ListedGroup> = standalone.collect();
        for id in term.names() {
            if let Some(held) = term.held(&id).await {
                groups.insert(Arc::clone(&id), listed(&id, &held.group));
            }
        }
        Ok(groups.into_values().collect())
    }

    /// One group; `None`: there is none.
    pub async fn describe(&self, id: &str) -> Result<Option<DescribedGroup>, ResponseError> {
        let term = self.term()?;
        if let Some(held) = term.held(id).await {
            return Ok(Some(described(&held.id, &held.group)));
        }
        let exists = self.has_offsets(&term, id).await?;
        let id: Arc<str> = Arc::from(id);
        Ok(exists.then(|| described(&id, &Group::new(0))))
    }

    /// Deletes a group with all its offsets. 68: it has members; 69: there is none.
    pub async fn delete(&self, id: &str) -> Result<(), ResponseError> {
        let term = self.term()?;
        let held = term.held(id).await;
        match &held {
            Some(held) => held.group.check_delete()?,
            None if self.has_offsets(&term, id).await? => {}
            None => return Err(ResponseError::GroupIdNotFound),
        }
        self.store.delete_groups(&term.fence, &[id.to_owned()]).await.map_err(|error| reading(&term, &error))?;
        if let Some(mut held) = held {
            term.forget(&mut held);
        }
        Ok(())
    }

    /// Deletes offsets of a group; one answer per partition asked for: 3 if there is none, 86 if a member has subscribed to
    /// the topic. 69: no such group; 68: its members are no consumers, so that we cannot know what they use.
    pub async fn delete_offsets(
        &self,
        id: &str,
        topics: &[TopicOffsets],
    ) -> Result<Vec<Vec<Result<(), ResponseError>>>, ResponseError> {
        let term = self.term()?;
        let held = term.held(id).await;
        match &held {
            Some(held) => held.group.check_offset_delete()?,
            None if self.has_offsets(&term, id).await? => {}
            None => return Err(ResponseError::GroupIdNotFound),
        }
        let subscribed = held.as_ref().map(|held| held.group.subscribed());
        let mut free = Vec::new();
        let mut answers = Vec::with_capacity(topics.len());
        for topic in topics {
            let in_use = subscribed.as_ref().is_some_and(|all| all.covers(&topic.name));
            let of_topic = topic.indexes.iter().map(|index| match topic.partition(*index) {
                None => Err(ResponseError::UnknownTopicOrPartition),
                Some(_) if in_use => Err(ResponseError::GroupSubscribedToTopic),
                Some(partition) => {
                    free.push(partition);
                    Ok(())
                }
            });
            answers.push(of_topic.collect());
        }
        if !free.is_empty() {
            let deleted = self.store.delete_offsets(&term.fence, id, &free).await;
            deleted.map_err(|error| reading(&term, &error))?;
        }
        Ok(answers)
    }

    async fn has_offsets(&self, term: &Term<S>, id: &str) -> Result<bool, ResponseError> {
        let offsets = self.store.offsets(id).await.map_err(|error| reading(term, &error))?;
        Ok(!offsets.is_empty())
    }
}

fn reading<S: Store>(term: &Term<S>, error: &StoreError) -> ResponseError {
    term.failed(error, ResponseError::CoordinatorLoadInProgress)
}

fn listed(id: &Arc<str>, group: &Group) -> ListedGroup {
    let protocol_type = group.protocol_type().cloned().unwrap_or_else(|| Arc::from(""));
    ListedGroup { id: Arc::clone(id), protocol_type, phase: group.phase_name() }
}

fn described(id: &Arc<str>, group: &Group) -> DescribedGroup {
    let chosen = if group.phase() == Phase::Stable { group.protocol().cloned() } else { None };
    let members = group.members().map(|member| DescribedMember {
        id: Arc::clone(&member.id),
        instance: member.instance.clone(),
        client_id: Arc::clone(&member.client_id),
        client_host: Arc::clone(&member.client_host),
        metadata: chosen.as_ref().map(|protocol| member.metadata(protocol)).unwrap_or_default(),
        assignment: member.assignment.clone(),
    });
    let members = members.collect();
    DescribedGroup { listed: listed(id, group), protocol: chosen.unwrap_or_else(|| Arc::from("")), members }
}
