use std::time::Duration;

use kafka_protocol::error::ResponseError;

use super::rig::{Client, Rig, on_both_stores, pair};
use crate::patience::within;
use crate::store::Store;

on_both_stores! {
    members_come_and_go,
    a_silent_member_loses_its_session,
    a_stable_group_is_taken_over,
    a_rebalance_goes_on_at_the_next_coordinator,
    a_join_phase_is_repeated_at_the_next_coordinator,
    a_broken_connection_stops_nobody,
    a_group_that_never_was_is_forgotten,
    who_does_not_lead_says_so,
}

/// Goal: members come, share, are told of others, and go. Method: two members over real timers.
async fn members_come_and_go<S: Store, G>(rig: Rig<S, G>) {
    let groups = rig.coordinator().await;
    let (mut a, b) = pair(&groups).await;
    assert_eq!((a.heartbeat().await, b.heartbeat().await), (Ok(()), Ok(())));
    b.leave().await;
    assert_eq!(a.heartbeat().await, Err(ResponseError::RebalanceInProgress));
    assert_eq!(a.join().await.members.len(), 1);
    a.leave().await;
    let described = groups.describe("g").await.expect("is coordinated").expect("exists");
    assert_eq!((described.listed.phase, described.members.len()), ("Empty", 0));
}

/// Goal: a silent member is removed by its session. Method: heartbeats for longer than its session, then none.
async fn a_silent_member_loses_its_session<S: Store, G>(rig: Rig<S, G>) {
    let groups = rig.coordinator().await;
    let mut client = Client { session: Duration::from_secs(3), ..Client::new(&groups) };
    client.join().await;
    client.sync(&[(&client, "work")]).await.expect("has work");
    // Longer than a session, with ten heartbeats in one.
    for _ in 0..14 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(client.heartbeat().await, Ok(()), "heartbeats keep it");
    }
    let gone = async {
        while client.groups.describe("g").await.expect("is coordinated").expect("exists").listed.phase != "Empty" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within("a silent member is removed", gone).await;
    assert_eq!(client.heartbeat().await, Err(ResponseError::UnknownMemberId));
}

/// Goal: a group survives its coordinator: ids, generation and work stay, and the old one can neither answer nor write. Method: a
/// second coordinator takes over the same store.
async fn a_stable_group_is_taken_over<S: Store, G>(rig: Rig<S, G>) {
    let old = rig.coordinator().await;
    let (a, b) = pair(&old).await;
    let new = rig.coordinator().await;
    let (a, b) = (a.at(&new), b.at(&new));
    assert_eq!((a.heartbeat().await, b.heartbeat().await), (Ok(()), Ok(())));
    assert_eq!(b.sync(&[]).await.expect("has work").assignment, "second");

    // The zombie is refused by the store as soon as it writes, and knows from then on.
    let zombie = a.clone().at(&old);
    assert_eq!(zombie.commit(5).await, Err(ResponseError::NotCoordinator));
    assert!(!old.is_led());
    assert_eq!(zombie.heartbeat().await, Err(ResponseError::NotCoordinator));
    assert_eq!(a.commit(7).await, Ok(()));
    assert_eq!(rig.store.offsets("g").await.expect("reads")[0].offset, 7);
}

/// Goal: a coordinator lost between join and sync: the new one goes on with the same generation. Method: both have joined; one waits
/// for its work when the coordinator is dropped.
async fn a_rebalance_goes_on_at_the_next_coordinator<S: Store, G>(rig: Rig<S, G>) {
    let old = rig.coordinator().await;
    let (mut a, mut b) = pair(&old).await;
    let rejoined = tokio::join!(a.join(), async {
        while b.heartbeat().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        b.join().await
    });
    let generation = rejoined.0.generation;
    assert_eq!(generation, rejoined.1.generation);
    let waiting = tokio::spawn({
        let b = b.clone();
        async move { b.sync(&[]).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    old.give_up();
    assert_eq!(waiting.await.expect("ends"), Err(ResponseError::NotCoordinator), "who waits is sent on");

    let new = rig.coordinator().await;
    let (a, b) = (a.at(&new), b.at(&new));
    let work = [(&a, "one"), (&b, "two")];
    let (first, second) = tokio::join!(a.sync(&work), b.sync(&[]));
    assert_eq!(first.expect("has work").assignment, "one");
    assert_eq!(second.expect("has work").assignment, "two");
    assert_eq!(a.generation, generation);
}

/// Goal: a coordinator lost while members were called together: the last generation stands, is not given out again, and all join
/// anew. Method: one waits in JoinGroup when the coordinator is dropped.
async fn a_join_phase_is_repeated_at_the_next_coordinator<S: Store, G>(rig: Rig<S, G>) {
    let old = rig.coordinator().await;
    let (a, b) = pair(&old).await;
    let before = a.generation;
    let waiting = tokio::spawn({
        let a = a.clone();
        async move { a.ask_to_join().await }
    });
    while b.heartbeat().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop((old, b.groups.give_up()));
    let refusal = waiting.await.expect("ends").expect_err("is sent on");
    assert_eq!(refusal.error, ResponseError::NotCoordinator);

    let new = rig.coordinator().await;
    let (mut a, mut b) = (a.at(&new), b.at(&new));
    assert_eq!(b.heartbeat().await, Ok(()), "the last generation stands");
    let (first, second) = tokio::join!(a.join(), async {
        while b.heartbeat().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        b.join().await
    });
    assert_eq!((first.generation, second.generation), (before + 1, before + 1));
}

/// Goal: a connection that breaks while it joins stops nothing. Method: the request's future is dropped; the others go on.
async fn a_broken_connection_stops_nobody<S: Store, G>(rig: Rig<S, G>) {
    let groups = rig.coordinator().await;
    let (mut a, b) = pair(&groups).await;
    let told = within("a follower without news is told at once", b.ask_to_join()).await;
    assert!(told.is_ok(), "{told:?}");
    let leader = tokio::spawn({
        let a = a.clone();
        async move { a.ask_to_join().await }
    });
    while b.heartbeat().await.is_ok() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    leader.abort();
    let mut b = b;
    let (first, second) = tokio::join!(a.join(), b.join());
    assert_eq!(first.generation, second.generation);
}

/// Goal: an id that never comes back leaves nothing behind. Method: ask for an id in a group of its own, and wait.
async fn a_group_that_never_was_is_forgotten<S: Store, G>(rig: Rig<S, G>) {
    let groups = rig.coordinator().await;
    let client = Client { session: Duration::from_secs(1), ..Client::new(&groups) };
    let refusal = client.ask_to_join().await.expect_err("an id first");
    assert_eq!(refusal.error, ResponseError::MemberIdRequired);
    assert_eq!(groups.list().await.expect("is coordinated").len(), 1);
    let gone = async {
        while !groups.list().await.expect("is coordinated").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("an id that never came back is forgotten", gone).await;
}

/// Goal: nothing is answered here before taking over and after giving up. Method: every call.
async fn who_does_not_lead_says_so<S: Store, G>(rig: Rig<S, G>) {
    let groups = rig.coordinator().await;
    groups.give_up();
    let client = Client::new(&groups);
    let not = ResponseError::NotCoordinator;
    assert_eq!(client.ask_to_join().await.map_err(|refusal| refusal.error), Err(not));
    assert_eq!(client.sync(&[]).await, Err(not));
    assert_eq!(client.heartbeat().await, Err(not));
    assert_eq!(client.commit(1).await, Err(not));
    assert_eq!(groups.leave("g", Vec::new()).await, Err(not));
    assert_eq!(groups.offsets("g").await, Err(not));
    assert_eq!(groups.list().await, Err(not));
    assert_eq!(groups.describe("g").await, Err(not));
    assert_eq!(groups.delete("g").await, Err(not));
    assert_eq!(groups.expire(0).await, Err(not));
    assert!(!groups.is_led());
}
