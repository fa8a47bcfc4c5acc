//! Brokers: who lives, who leads.

use super::topic;
use crate::model::LiveBroker;
use crate::store::{Address, Store};

/// Goal: clients are told where we are. Method: join, join under another address, leave.
pub(crate) async fn a_broker_that_joined_is_alive<S: Store>(store: &S) {
    assert!(!store.cluster_id().is_empty());
    for port in [9092, 9093] {
        store.join(Address { host: "localhost".to_owned(), port }).await.unwrap();
        store.renew().await.unwrap();
        let we = LiveBroker { id: store.me(), host: "localhost".to_owned(), port };
        assert_eq!(store.brokers().await, Ok(vec![we]));
    }
    store.leave().await.unwrap();
    assert_eq!(store.brokers().await, Ok(vec![]));
}

/// Goal: the store says who leads what. Method: lead one of two partitions, then leave.
pub(crate) async fn leaders_are_those_who_led<S: Store>(store: &S) {
    store.join(Address { host: "localhost".to_owned(), port: 9092 }).await.unwrap();
    let partitions = topic(store, "orders", 2).await.partitions;
    store.lead(&partitions[1..]).await.unwrap();
    let leaders = store.leaders().await.unwrap();
    assert_eq!(leaders, [(partitions[0], None, 0), (partitions[1], Some(store.me()), 1)]);
    store.leave().await.unwrap();
    let leaders = store.leaders().await.unwrap();
    assert_eq!(leaders, [(partitions[0], None, 0), (partitions[1], None, 1)]);
}
