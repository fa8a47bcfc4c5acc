//! All brokers of one cluster: who leads what, who coordinates which group, and a connection to each.
//!
//! Invariant: what is remembered is only a hint; whoever is refused for it calls `forget` and asks again.

use std::collections::HashMap;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiKey, FindCoordinatorRequest, MetadataRequest, MetadataResponse, TopicName,
    find_coordinator_response::Coordinator,
};
use kafka_protocol::protocol::{Request, StrBytes};

use super::connection::{Connection, Options};
use super::error::{ClientError, check};

/// A client of one cluster. One request at a time: for several at once, have several clients.
#[derive(Debug)]
pub struct Client {
    bootstrap: Vec<String>,
    options: Options,
    brokers: HashMap<i32, String>,
    leaders: HashMap<(String, i32), i32>,
    coordinators: HashMap<String, String>,
    connections: HashMap<String, Connection>,
    /// Which of the bootstrap addresses is tried first.
    turn: usize,
}

impl Client {
    /// A client that knows these addresses (`host:port`) and connects when it must.
    #[must_use]
    pub fn new(bootstrap: impl IntoIterator<Item = impl Into<String>>, options: Options) -> Self {
        Self {
            bootstrap: bootstrap.into_iter().map(Into::into).collect(),
            options,
            brokers: HashMap::new(),
            leaders: HashMap::new(),
            coordinators: HashMap::new(),
            connections: HashMap::new(),
            turn: 0,
        }
    }

    /// Another client of the same cluster, with connections of its own.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::new(self.bootstrap.clone(), self.options.clone())
    }

    /// What it was told.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// A connection to this address, made anew if the last one is spent.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub async fn at(&mut self, address: &str) -> Result<&mut Connection, ClientError> {
        if self.connections.get(address).is_none_or(|connection| !connection.is_usable()) {
            self.connections.remove(address);
            let connection = Connection::connect(address, &self.options).await?;
            self.connections.insert(address.to_owned(), connection);
        }
        // Put there above, or found there.
        Ok(self.connections.get_mut(address).expect("the connection was just put there"))
    }

    /// A connection to any broker that can be reached.
    ///
    /// # Errors
    /// If none can: what the last one said.
    pub async fn any(&mut self) -> Result<&mut Connection, ClientError> {
        let mut addresses: Vec<String> = self.bootstrap.iter().chain(self.brokers.values()).cloned().collect();
        addresses.rotate_left(self.turn % self.bootstrap.len().max(1));
        let mut last = ClientError::Unreachable {
            address: "(no address was given)".to_owned(),
            source: std::io::ErrorKind::AddrNotAvailable.into(),
        };
        for address in addresses {
            match self.at(&address).await {
                Ok(_) => return self.at(&address).await,
                Err(error) => last = error,
            }
            self.turn = self.turn.wrapping_add(1);
        }
        Err(last)
    }

    /// What the cluster says of these topics, of all if `None`; remembers who leads.
    ///
    /// # Errors
    /// If nobody answers.
    pub async fn metadata(&mut self, topics: Option<&[&str]>) -> Result<MetadataResponse, ClientError> {
        let wanted = |name: &&str| MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        let request = MetadataRequest::default()
            .with_topics(topics.map(|topics| topics.iter().map(wanted).collect()))
            .with_allow_auto_topic_creation(false);
        let connection = self.any().await?;
        let version = connection.version::<MetadataRequest>(i16::MAX)?;
        let answer = connection.call_at(version, &request).await;
        if answer.is_err() {
            // The next one may know more.
            self.turn = self.turn.wrapping_add(1);
        }
        let answer = answer?;
        self.remember(&answer);
        Ok(answer)
    }

    fn remember(&mut self, answer: &MetadataResponse) {
        self.brokers = answer.brokers.iter().map(|b| (b.node_id.0, format!("{}:{}", b.host, b.port))).collect();
        for topic in &answer.topics {
            let Some(name) = &topic.name else { continue };
            for partition in &topic.partitions {
                let key = (name.to_string(), partition.partition_index);
                if partition.error_code == 0 && partition.leader_id.0 >= 0 {
                    self.leaders.insert(key, partition.leader_id.0);
                } else {
                    self.leaders.remove(&key);
                }
            }
        }
    }

    /// Where the leader of a partition is.
    ///
    /// # Errors
    /// If it has none, or nobody says.
    pub async fn leader_address(&mut self, topic: &str, partition: i32) -> Result<String, ClientError> {
        let key = (topic.to_owned(), partition);
        if !self.leaders.contains_key(&key) {
            let answer = self.metadata(Some(&[topic])).await?;
            let code = answer.topics.first().map_or(0, |topic| topic.error_code);
            check(code, || format!("metadata of topic {topic}"))?;
        }
        let address = self.leaders.get(&key).and_then(|id| self.brokers.get(id)).cloned();
        address.ok_or_else(|| ClientError::NoLeader { topic: topic.to_owned(), partition })
    }

    /// A connection to the leader of a partition.
    ///
    /// # Errors
    /// If it has none, or the leader cannot be reached.
    pub async fn leader(&mut self, topic: &str, partition: i32) -> Result<&mut Connection, ClientError> {
        let address = self.leader_address(topic, partition).await?;
        match self.at(&address).await {
            // Asked twice because a borrow that is returned lasts for both arms.
            Ok(_) => self.at(&address).await,
            Err(error) => {
                self.forget(topic, partition);
                Err(error)
            }
        }
    }

    /// Whoever led this partition no longer does: asks anew next time.
    pub fn forget(&mut self, topic: &str, partition: i32) {
        self.leaders.remove(&(topic.to_owned(), partition));
        self.turn = self.turn.wrapping_add(1);
    }

    /// Sends a request to the leader of a partition, in the newest version that both know, at most `newest`.
    ///
    /// # Errors
    /// If there is none, or it does not answer.
    pub async fn at_leader<R: Request>(
        &mut self,
        (topic, partition): (&str, i32),
        newest: i16,
        request: &R,
    ) -> Result<R::Response, ClientError> {
        let connection = self.leader(topic, partition).await?;
        let version = connection.version::<R>(newest)?;
        let answer = connection.call_at(version, request).await;
        if answer.is_err() {
            self.forget(topic, partition);
        }
        answer
    }

    /// A connection to the coordinator of a group.
    ///
    /// # Errors
    /// If there is none, or it cannot be reached.
    pub async fn coordinator(&mut self, group: &str) -> Result<&mut Connection, ClientError> {
        let address = match self.coordinators.get(group) {
            Some(address) => address.clone(),
            None => self.find_coordinator(group).await?,
        };
        self.coordinators.insert(group.to_owned(), address.clone());
        match self.at(&address).await {
            Ok(_) => self.at(&address).await,
            Err(error) => {
                self.forget_coordinator(group);
                Err(error)
            }
        }
    }

    /// Whoever coordinated this group no longer does: asks anew next time.
    pub fn forget_coordinator(&mut self, group: &str) {
        self.coordinators.remove(group);
        self.turn = self.turn.wrapping_add(1);
    }

    /// Sends a request to the coordinator of a group.
    ///
    /// # Errors
    /// If there is none, or it does not answer.
    pub async fn at_coordinator<R: Request>(
        &mut self,
        group: &str,
        newest: i16,
        request: &R,
    ) -> Result<R::Response, ClientError> {
        let connection = self.coordinator(group).await?;
        let version = connection.version::<R>(newest)?;
        let answer = connection.call_at(version, request).await;
        if answer.is_err() {
            self.forget_coordinator(group);
        }
        answer
    }

    async fn find_coordinator(&mut self, group: &str) -> Result<String, ClientError> {
        let key = StrBytes::from_string(group.to_owned());
        let connection = self.any().await?;
        let version = connection.version::<FindCoordinatorRequest>(i16::MAX)?;
        let request = FindCoordinatorRequest::default();
        let request = if version >= 4 { request.with_coordinator_keys(vec![key]) } else { request.with_key(key) };
        let mut answer = connection.call_at(version, &request).await?;
        let found = answer.coordinators.pop().unwrap_or_else(|| {
            Coordinator::default()
                .with_error_code(answer.error_code)
                .with_host(answer.host.clone())
                .with_port(answer.port)
        });
        check(found.error_code, || format!("coordinator of group {group}"))?;
        Ok(format!("{}:{}", found.host, found.port))
    }

    /// Sends a request to any broker, in the newest version that both know, at most `newest`.
    ///
    /// # Errors
    /// If nobody can be reached, or no answer comes.
    pub async fn call<R: Request>(&mut self, newest: i16, request: &R) -> Result<R::Response, ClientError> {
        let connection = self.any().await?;
        let version = connection.version::<R>(newest)?;
        connection.call_at(version, request).await
    }

    /// Whether a code means that somebody else leads or coordinates now.
    #[must_use]
    pub fn is_elsewhere(code: ResponseError) -> bool {
        use ResponseError as E;
        [
            E::NotLeaderOrFollower,
            E::FencedLeaderEpoch,
            E::UnknownLeaderEpoch,
            E::NotCoordinator,
            E::CoordinatorNotAvailable,
            E::LeaderNotAvailable,
            E::UnknownTopicOrPartition,
        ]
        .contains(&code)
    }

    /// The versions of an API that any broker serves, for who must choose before building a request.
    ///
    /// # Errors
    /// If nobody can be reached.
    pub async fn serves(&mut self, api: ApiKey) -> Result<Option<(i16, i16)>, ClientError> {
        Ok(self.any().await?.served(api as i16).map(|range| (range.min, range.max)))
    }
}

pub(super) fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
