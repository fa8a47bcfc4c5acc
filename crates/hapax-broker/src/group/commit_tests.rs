use std::sync::Arc;

use kafka_protocol::error::ResponseError;

use super::rig::{self, Client, Rig, Shared, at, on_both_stores, pair};
use super::{TopicOffsets, now};
use crate::config::TopicConfig;
use crate::model::TopicId;
use crate::store::{NewTopic, Store};

on_both_stores! {
    commits_are_checked_and_seen_at_once,
    an_unknown_group_cannot_commit_as_a_member,
    offsets_never_go_back,
    expired_offsets_are_removed,
    what_is_in_use_is_not_deleted,
    groups_are_listed_and_described,
}

async fn stored<S: Store, G>(rig: &Rig<S, G>) -> Vec<(i32, i32, i64)> {
    let offsets = rig.store.offsets("g").await.expect("reads");
    offsets.into_iter().map(|offset| (offset.topic.0, offset.index, offset.offset)).collect()
}

/// Goal: commits are checked by generation, and OffsetFetch sees them as soon as they are answered. Method: members, zombies, and one
/// who only keeps offsets.
async fn commits_are_checked_and_seen_at_once<S: Store, G>(rig: Rig<S, G>) {
    let groups = rig.coordinator().await;
    let alone = Client::new(&groups);
    assert_eq!(alone.commit(3).await, Ok(()), "nobody is in the group");
    assert_eq!(groups.offsets("g").await.expect("reads")[0].metadata, "note");

    let (a, b) = pair(&groups).await;
    assert_eq!(alone.commit(4).await, Err(ResponseError::UnknownMemberId));
    assert_eq!(a.commit(5).await, Ok(()));
    assert_eq!(stored(&rig).await, [(1, 0, 5)]);
    let past = Client { generation: a.generation - 1, ..a.clone() };
    assert_eq!(past.commit(6).await, Err(ResponseError::IllegalGeneration));
    assert_eq!(stored(&rig).await, [(1, 0, 5)]);
    b.leave().await;
    a.leave().await;
    assert_eq!(alone.commit(2).await, Ok(()), "a reset by hand, when all are gone");
    assert_eq!(stored(&rig).await, [(1, 0, 2)]);
}

/// Goal: a group that does not exist is named so; one that only has offsets does not know the member. Method: a generation in both.
async fn an_unknown_group_cannot_commit_as_a_member<S: Store, G>(rig: Rig<S, G>) {
    let groups = rig.coordinator().await;
    let member = Client { generation: 3, ..Client::new(&groups) };
    assert_eq!(member.commit(1).await, Err(ResponseError::GroupIdNotFound));
    Client::new(&groups).commit(1).await.expect("is kept");
    assert_eq!(member.commit(1).await, Err(ResponseError::UnknownMemberId));
}

/// Goal: offsets never go back, however many commit at once and whoever coordinates. Method: one member commits 1, 2, 3 … while
/// others crowd the writer and a reader watches; in the middle another coordinator takes over.
async fn offsets_never_go_back<S: Store, G>(rig: Rig<S, G>) {
    let mut groups = rig.coordinator().await;
    let (a, _) = pair(&groups).await;
    let crowd = crowd(&groups);
    let store = Arc::clone(&rig.store);
    let watch = tokio::spawn(async move {
        let mut seen = 0;
        while seen < 120 {
            let offsets = store.offsets("g").await.expect("reads");
            let offset = offsets.first().map_or(0, |offset| offset.offset);
            assert!(offset >= seen, "{offset} after {seen}");
            seen = offset;
            tokio::task::yield_now().await;
        }
    });
    let mut a = a;
    for offset in 1..=120 {
        if offset == 60 {
            groups = rig.coordinator().await;
            a = a.at(&groups);
        }
        assert_eq!(a.commit(offset).await, Ok(()));
        assert_eq!(groups.offsets("g").await.expect("reads")[0].offset, offset, "what was answered is there");
    }
    watch.await.expect("never back");
    for client in crowd {
        let lost = client.await.expect("ends");
        assert!(lost, "the crowd stayed at the old coordinator, which is fenced");
    }
}

/// Others that commit until they are refused.
fn crowd<S: Store>(groups: &Shared<S>) -> Vec<tokio::task::JoinHandle<bool>> {
    let one = |number: i32| {
        let (groups, committer) = (Arc::clone(groups), Client::new(groups).committer());
        tokio::spawn(async move {
            for offset in 0.. {
                let group = format!("other-{number}");
                if let Err(error) = groups.commit(&group, &committer, vec![at(1, number, offset)]).await {
                    return error == ResponseError::NotCoordinator;
                }
            }
            false
        })
    };
    (0..8).map(one).collect()
}

/// Goal: offsets of a group without members go when their time is over, with the group; those in use stay. Method: an empty group, a
/// standalone one and a stable one, looked at before and after the retention.
async fn expired_offsets_are_removed<S: Store, G>(rig: Rig<S, G>) {
    let new = |name: &str| NewTopic { name: name.to_owned(), partitions: 1, config: TopicConfig::default() };
    let orders = rig.store.create_topic(new("orders")).await.expect("is made").id.0;
    let payments = rig.store.create_topic(new("payments")).await.expect("is made").id.0;
    let groups = rig.coordinator().await;
    let nobody = Client::new(&groups).committer();
    groups.commit("alone", &nobody, vec![at(orders, 0, 1)]).await.expect("is kept");
    let (a, b) = pair(&groups).await;
    groups.commit("g", &a.committer(), vec![at(orders, 0, 1), at(payments, 0, 1)]).await.expect("is kept");

    let minute = 60_000;
    let today = now();
    groups.expire(today + minute - 10_000).await.expect("looks");
    assert_eq!(stored(&rig).await.len(), 2, "not yet");
    groups.expire(today + minute + 10_000).await.expect("looks");
    assert_eq!(stored(&rig).await, [(orders, 0, 1)], "nobody reads payments");
    assert!(rig.store.offsets("alone").await.expect("reads").is_empty());

    a.leave().await;
    b.leave().await;
    let later = now();
    groups.expire(later + minute - 10_000).await.expect("looks");
    assert_eq!(stored(&rig).await.len(), 1, "not yet");
    groups.expire(later + minute + 10_000).await.expect("looks");
    assert!(stored(&rig).await.is_empty());
    assert!(groups.list().await.expect("is coordinated").is_empty(), "the group went with its offsets");
    assert!(rig.store.lead_groups().await.expect("leads").groups.is_empty());
}

/// Goal: a group is deleted only without members; offsets of a topic only when nobody has subscribed to it. Method: both, with and
/// without members.
async fn what_is_in_use_is_not_deleted<S: Store, G>(rig: Rig<S, G>) {
    let groups = rig.coordinator().await;
    assert_eq!(groups.delete("g").await, Err(ResponseError::GroupIdNotFound));
    assert_eq!(groups.delete_offsets("g", &[]).await, Err(ResponseError::GroupIdNotFound));
    let (a, b) = pair(&groups).await;
    groups.commit("g", &a.committer(), vec![at(1, 0, 1), at(2, 0, 1)]).await.expect("is kept");
    assert_eq!(groups.delete("g").await, Err(ResponseError::NonEmptyGroup));
    let topic = |id: Option<i32>, name: &str, indexes: &[i32]| TopicOffsets {
        topic: id.map(TopicId),
        partitions: 1,
        name: name.to_owned(),
        indexes: indexes.to_vec(),
    };
    let asked = [topic(Some(1), "orders", &[0]), topic(Some(2), "payments", &[0, 1]), topic(None, "none", &[0])];
    let unknown = Err(ResponseError::UnknownTopicOrPartition);
    let answers = groups.delete_offsets("g", &asked).await.expect("is done");
    assert_eq!(answers, [vec![Err(ResponseError::GroupSubscribedToTopic)], vec![Ok(()), unknown], vec![unknown]]);
    assert_eq!(stored(&rig).await, [(1, 0, 1)]);

    a.leave().await;
    b.leave().await;
    assert_eq!(groups.delete("g").await, Ok(()));
    assert!(stored(&rig).await.is_empty());
    assert_eq!(groups.describe("g").await, Ok(None));
    let mut anew = Client::new(&groups);
    assert_eq!(anew.join().await.generation, 1, "the same name, another group");
}

/// Goal: looking at groups sees those with members and those that only keep offsets. Method: one of each.
async fn groups_are_listed_and_described<S: Store, G>(rig: Rig<S, G>) {
    let groups = rig.coordinator().await;
    groups.commit("alone", &Client::new(&groups).committer(), vec![at(1, 0, 1)]).await.expect("is kept");
    let (a, _) = pair(&groups).await;
    let listed = groups.list().await.expect("is coordinated");
    let seen: Vec<_> = listed.iter().map(|group| (&*group.id, &*group.protocol_type, group.phase)).collect();
    assert_eq!(seen, [("alone", "", "Empty"), ("g", "consumer", "Stable")]);
    let described = groups.describe("g").await.expect("is coordinated").expect("exists");
    assert_eq!((&*described.protocol, described.members.len()), ("range", 2));
    let first = described.members.iter().find(|member| member.id == a.identity.member).expect("is in");
    assert_eq!((&*first.client_host, &first.assignment[..]), ("/127.0.0.1", &b"first"[..]));
    let alone = groups.describe("alone").await.expect("is coordinated").expect("exists");
    assert_eq!((alone.listed.phase, alone.members.len()), ("Empty", 0));
    assert_eq!(groups.describe("none").await, Ok(None));
}

/// Goal: somebody who holds a group's offset in a transaction of his own keeps nobody else from committing. Method: a row locked in
/// SQL; that group is told to try again, another is written.
#[tokio::test]
async fn a_held_offset_stops_only_its_group() {
    let rig = rig::postgres().await;
    let groups = rig.coordinator().await;
    let nobody = Client::new(&groups).committer();
    groups.commit("g", &nobody, vec![at(1, 0, 1)]).await.expect("is kept");
    let url = rig.home.url();
    let mut holder = hapax_services::Client::connect(url.hosts()[0].1, rig.home.name()).expect("connects");
    holder.query("BEGIN").expect("begins");
    holder.query("SELECT 1 FROM kafka.group_offsets WHERE group_id::text = 'g' FOR UPDATE").expect("holds");
    let held = groups.commit("g", &nobody, vec![at(1, 0, 2)]);
    let free = groups.commit("h", &nobody, vec![at(1, 0, 2)]);
    let (held, free) = tokio::join!(held, free);
    assert_eq!((held, free), (Err(ResponseError::CoordinatorLoadInProgress), Ok(())));
    holder.query("ROLLBACK").expect("lets go");
    assert_eq!(groups.commit("g", &nobody, vec![at(1, 0, 3)]).await, Ok(()));
    assert_eq!(stored(&rig).await, [(1, 0, 3)]);
}
