//! A coordinator on a real store in a test, and members that speak to it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;

use super::{Committer, Coordinator, UNNUMBERED};
use crate::config::BrokerConfig;
use crate::model::TopicId;
use crate::rules::group::{Identity, Join, JoinAnswer, Joined, Leaving, Limits, Protocol, Sync, SyncAnswer};
use crate::store::embedded::{Embedded, EmbeddedOptions};
use crate::store::postgres::PostgresStore;
use crate::store::postgres::test_database::TestDatabase;
use crate::store::{Address, CommittedOffset, Store};

/// A coordinator, as many see it.
pub(super) type Shared<S> = Arc<Coordinator<S>>;

/// A store of one's own.
pub(super) struct Rig<S, G> {
    pub(super) store: Arc<S>,
    /// What the store lives in; goes after it.
    pub(super) home: G,
}

pub(super) async fn embedded() -> Rig<Embedded, TempDir> {
    let home = TempDir::new().expect("a directory");
    let store = Embedded::open(home.path(), EmbeddedOptions::default()).expect("a store");
    Rig::of(store, home).await
}

pub(super) async fn postgres() -> Rig<PostgresStore, TestDatabase> {
    let home = TestDatabase::new();
    let store = home.store(1).await;
    Rig::of(store, home).await
}

impl<S: Store, G> Rig<S, G> {
    async fn of(store: S, home: G) -> Self {
        store.join(Address { host: String::from("127.0.0.1"), port: 9092 }).await.expect("is alone");
        Self { store: Arc::new(store), home }
    }

    /// A coordinator that leads from now on; every older one is fenced.
    pub(super) async fn coordinator(&self) -> Shared<S> {
        let limits = Limits { session_min: Duration::ZERO, initial_delay: Duration::ZERO, ..Limits::default() };
        let config = BrokerConfig { offsets_retention: Duration::from_secs(60), ..BrokerConfig::default() };
        let groups = Coordinator::with_limits(Arc::clone(&self.store), &config, limits);
        groups.take_over(self.store.lead_groups().await.expect("leads"));
        Arc::new(groups)
    }
}

/// A member as its client sees it.
pub(super) struct Client<S> {
    pub(super) groups: Shared<S>,
    pub(super) identity: Identity,
    pub(super) generation: i32,
    pub(super) session: Duration,
}

impl<S> Clone for Client<S> {
    fn clone(&self) -> Self {
        let (groups, identity) = (Arc::clone(&self.groups), self.identity.clone());
        Self { groups, identity, generation: self.generation, session: self.session }
    }
}

impl<S: Store> Client<S> {
    pub(super) fn new(groups: &Shared<S>) -> Self {
        let identity = Identity { member: Arc::from(""), instance: None };
        Self { groups: Arc::clone(groups), identity, generation: -1, session: Duration::from_secs(30) }
    }

    pub(super) fn at(self, groups: &Shared<S>) -> Self {
        Self { groups: Arc::clone(groups), ..self }
    }

    pub(super) async fn ask_to_join(&self) -> JoinAnswer {
        let join = Join {
            ticket: UNNUMBERED,
            version: 9,
            identity: self.identity.clone(),
            new_id: Arc::from(format!("client-{}", uuid::Uuid::new_v4())),
            client_id: Arc::from("client"),
            client_host: Arc::from("/127.0.0.1"),
            session_timeout: self.session,
            rebalance_timeout: Duration::from_secs(30),
            protocol_type: Arc::from("consumer"),
            protocols: Arc::from([Protocol { name: Arc::from("range"), metadata: subscription() }]),
        };
        self.groups.join("g", join).await
    }

    /// Joins until it is in.
    pub(super) async fn join(&mut self) -> Joined {
        loop {
            match self.ask_to_join().await {
                Ok(joined) => {
                    self.identity.member = Arc::clone(&joined.member);
                    self.generation = joined.generation;
                    return joined;
                }
                Err(refusal) => self.identity.member = refusal.member,
            }
        }
    }

    pub(super) async fn sync(&self, assignments: &[(&Client<S>, &'static str)]) -> SyncAnswer {
        let assignments = assignments.iter().map(|(client, work)| {
            let id = Arc::clone(&client.identity.member);
            (id, Bytes::from_static(work.as_bytes()))
        });
        let sync = Sync {
            ticket: UNNUMBERED,
            identity: self.identity.clone(),
            generation: self.generation,
            protocol_type: None,
            protocol: None,
            assignments: assignments.collect(),
        };
        self.groups.sync("g", sync).await
    }

    pub(super) async fn heartbeat(&self) -> Result<(), kafka_protocol::error::ResponseError> {
        self.groups.heartbeat("g", &self.identity, self.generation).await
    }

    pub(super) async fn leave(&self) {
        let leaving = Leaving { identity: self.identity.clone() };
        let left = self.groups.leave("g", vec![leaving]).await.expect("is coordinated");
        assert_eq!(left, [Ok(())]);
    }

    pub(super) fn committer(&self) -> Committer {
        Committer {
            identity: self.identity.clone(),
            generation: self.generation,
            unknown_group: kafka_protocol::error::ResponseError::GroupIdNotFound,
        }
    }

    pub(super) async fn commit(&self, offset: i64) -> Result<(), kafka_protocol::error::ResponseError> {
        self.groups.commit("g", &self.committer(), vec![at(1, 0, offset)]).await
    }
}

/// An offset of a partition.
pub(super) fn at(topic: i32, index: i32, offset: i64) -> CommittedOffset {
    let metadata = String::from("note");
    CommittedOffset { topic: TopicId(topic), index, offset, leader_epoch: -1, metadata, committed: 0 }
}

/// One topic, "orders".
fn subscription() -> Bytes {
    Bytes::from_static(b"\x00\x01\x00\x00\x00\x01\x00\x06orders\xff\xff\xff\xff\x00\x00\x00\x00")
}

/// Two members with work, the leader first.
pub(super) async fn pair<S: Store>(groups: &Shared<S>) -> (Client<S>, Client<S>) {
    let (mut a, mut b) = (Client::new(groups), Client::new(groups));
    a.join().await;
    let second = tokio::spawn(async move {
        b.join().await;
        b
    });
    // The second's coming sends the first back to join.
    while a.heartbeat().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let joined = a.join().await;
    let b = second.await.expect("joins");
    assert_eq!(joined.leader, a.identity.member);
    let work = [(&a, "first"), (&b, "second")];
    let (first, other) = tokio::join!(a.sync(&work), b.sync(&[]));
    assert_eq!(first.expect("has work").assignment, "first");
    assert_eq!(other.expect("has work").assignment, "second");
    (a, b)
}

/// Runs every test on both stores.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::group::rig::embedded().await).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(crate::group::rig::postgres().await).await;
            })+
        }
    };
}

pub(super) use on_both_stores;
