use std::time::Duration;

use kafka_protocol::error::ResponseError;

use super::super::Timer;
use super::super::rig::{Rig, Who, fixed, member};

/// Goal: the whole way of an eager or cooperative group: all join, the leader assigns, all are told. Method: three members, then a
/// fourth.
#[test]
fn a_group_goes_from_generation_to_generation() {
    let (mut rig, members) = Rig::stable(3);
    assert_eq!(rig.saves, 2, "when the generation began, and when it had its assignments");
    let (fourth, joined) = rig.enter(&member(""));
    for who in &members {
        assert_eq!(rig.heartbeat(who, 1), Err(ResponseError::RebalanceInProgress));
        rig.join(who);
    }
    let told = rig.welcome(joined);
    assert_eq!((told.generation, told.members.len()), (2, 0));
    assert_eq!(told.leader, members[0].id, "the leader stays");
    let waits = rig.sync(&fourth, 2, &[]);
    assert!(rig.synced(waits).is_none(), "before the leader nothing is known");
    rig.sync(&members[0], 2, &[(&*fourth.id, "new work")]);
    assert_eq!(rig.assignment(waits), "new work");
    let unnamed = rig.sync(&members[1], 2, &[]);
    assert_eq!(rig.assignment(unnamed), "", "not named by the leader: empty, but an answer");
    assert_eq!(rig.heartbeat(&members[1], 1), Err(ResponseError::IllegalGeneration));
    assert_eq!(rig.heartbeat(&members[1], 2), Ok(()));
}

/// Goal: who does not join again in time is out; if it was the leader, another leads. Method: the leader stays away.
#[test]
fn who_misses_the_join_phase_is_removed() {
    let (mut rig, members) = Rig::stable(3);
    let news = members[1].clone().wants(&["payments"]);
    let first = rig.join(&news);
    let second = rig.join(&members[2]);
    assert!(rig.joined(first).is_none());
    assert!(rig.ring(&Timer::Join));
    let (first, second) = (rig.welcome(first), rig.welcome(second));
    assert_eq!(first.leader, second.leader);
    assert_ne!(first.leader, members[0].id);
    assert_eq!(first.members.len() + second.members.len(), 2, "one of the two is told of both");
    assert_eq!(rig.heartbeat(&members[0], 2), Err(ResponseError::UnknownMemberId));
    assert!(!rig.ring_session(&members[0]), "its session is over with it");
}

/// Goal: a rebalance waits as long as the most patient member asks. Method: one with a longer timeout.
#[test]
fn a_rebalance_waits_for_the_most_patient() {
    let mut rig = Rig::new();
    let patient = Who { rebalance: Duration::from_secs(300), ..member("") };
    let (first, _) = rig.enter(&patient);
    rig.enter(&member(""));
    while rig.ring(&Timer::Join) {}
    assert_eq!(rig.timers.get(&Timer::Sync), Some(&Duration::from_secs(300)));
    rig.join(&first.wants(&["payments"]));
    assert_eq!(rig.timers.get(&Timer::Join), Some(&Duration::from_secs(300)));
}

/// Goal: a static member may miss a join phase; it stays in until its session is over. Method: one static, one dynamic.
#[test]
fn a_static_member_may_miss_the_join_phase() {
    let mut rig = Rig::new();
    let joined = rig.join(&fixed("a"));
    let (dynamic, _) = rig.enter(&member(""));
    while rig.ring(&Timer::Join) {}
    let away = fixed("a").id(&rig.welcome(joined).member);
    let again = rig.join(&dynamic.clone().wants(&["payments"]));
    assert!(rig.ring(&Timer::Join));
    let told = rig.welcome(again);
    assert_eq!((told.members.len(), &told.leader), (2, &dynamic.id));
    assert!(rig.ring_session(&away));
    assert_eq!(rig.group.phase_name(), "PreparingRebalance");
    assert_eq!(rig.heartbeat(&away, 2), Err(ResponseError::UnknownMemberId));
}

/// Goal: when only absent static members are left, the group waits for their sessions. Method: the only dynamic member leaves while
/// members are called together.
#[test]
fn absent_static_members_alone_begin_no_generation() {
    let mut rig = Rig::new();
    let joined = rig.join(&fixed("a"));
    let (dynamic, _) = rig.enter(&member(""));
    while rig.ring(&Timer::Join) {}
    let away = fixed("a").id(&rig.welcome(joined).member);
    rig.leave(&[&dynamic]);
    let generation = rig.group.generation();
    assert!(rig.ring(&Timer::Join));
    assert_eq!(rig.group.generation(), generation);
    assert!(rig.timers.contains_key(&Timer::Join), "it tries again");
    assert!(rig.ring_session(&away));
    assert_eq!(rig.group.phase_name(), "Empty");
    assert_eq!(rig.group.empty_since(), Some(rig.now));
}

/// Goal: a new member that never gets its first answer is removed in the end, and told so. Method: a join phase that does not end.
#[test]
fn a_new_member_does_not_wait_for_ever() {
    let (mut rig, members) = Rig::stable(1);
    let new = rig.join(&member("").version(3));
    let id = rig.timers.keys().find_map(|timer| match timer {
        Timer::Session(id) if *id != members[0].id => Some(id.clone()),
        Timer::Session(_) | Timer::Join | Timer::Sync => None,
    });
    let timer = Timer::Session(id.expect("has a session"));
    assert_eq!(rig.timers.get(&timer), Some(&Duration::from_secs(300)));
    assert!(rig.ring(&timer));
    assert_eq!(rig.refusal(new), ResponseError::UnknownMemberId);
}

/// Goal: a member that waits for an answer is alive, however long it takes. Method: its session runs out while it waits.
#[test]
fn a_waiting_member_is_not_expired() {
    let (mut rig, members) = Rig::stable(2);
    let waiting = rig.join(&members[0]);
    assert!(rig.ring_session(&members[0]));
    rig.join(&members[1]);
    assert_eq!(rig.welcome(waiting).generation, 2);
    let syncing = rig.sync(&members[1], 2, &[]);
    assert!(rig.ring_session(&members[1]));
    rig.sync(&members[0], 2, &[(&*members[1].id, "work")]);
    assert_eq!(rig.assignment(syncing), "work");
    assert!(rig.ring_session(&members[1]), "from then on its session counts again");
    assert_eq!(rig.group.phase_name(), "PreparingRebalance");
}
