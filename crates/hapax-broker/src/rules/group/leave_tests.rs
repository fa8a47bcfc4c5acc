use kafka_protocol::error::ResponseError;

use super::super::Timer;
use super::super::rig::{Rig, Who, fixed, member};

/// Goal: a list of members leaves with one answer each and one rebalance. Method: known, unknown, pending and by static name.
#[test]
fn a_list_of_members_leaves_at_once() {
    let (mut rig, members) = Rig::stable(2);
    let joined = rig.join(&fixed("a"));
    for who in &members {
        rig.join(who);
    }
    let by_id = fixed("a").id(&rig.welcome(joined).member);
    let asked = rig.join(&member(""));
    let pending = member("").id(&rig.joined(asked).expect("answered").clone().expect_err("an id").member);
    let wrong = Who { id: by_id.id.clone(), ..fixed("b") };
    let generation = rig.group.generation();
    let list = [&members[1], &member("stranger"), &pending, &wrong, &fixed("a"), &fixed("a")];
    let unknown = Err(ResponseError::UnknownMemberId);
    assert_eq!(rig.leave(&list), [Ok(()), unknown, Ok(()), unknown, Ok(()), unknown]);
    assert_eq!(rig.group.phase_name(), "PreparingRebalance");
    let left = rig.join(&members[0]);
    assert_eq!(rig.welcome(left).generation, generation + 1);
    assert_eq!(rig.welcome(left).members.len(), 1);
}

/// Goal: the last to leave makes the group empty, which is saved, with the time. Method: leave one by one.
#[test]
fn the_last_to_leave_makes_the_group_empty() {
    let (mut rig, members) = Rig::stable(2);
    rig.leave(&[&members[0]]);
    rig.now += 1_000;
    let saves = rig.saves;
    rig.leave(&[&members[1]]);
    assert_eq!(rig.group.phase_name(), "Empty");
    assert_eq!((rig.saves, rig.group.empty_since()), (saves + 1, Some(rig.now)));
    assert_eq!(rig.group.protocol_type().map(|kind| &**kind), Some("consumer"), "it is still a group of consumers");
    assert!(rig.timers.is_empty());
    let (_, joined) = rig.enter(&Who { kind: "connect", ..member("") });
    rig.ring(&Timer::Join);
    assert_eq!(rig.welcome(joined).protocol_type.as_deref(), Some("connect"), "an empty group may become another");
}

/// Goal: who is made to leave while its request waits is told so. Method: a static member removed by an administrator while it joins,
/// and while it syncs.
#[test]
fn who_waits_and_is_removed_is_told() {
    let mut rig = Rig::new();
    let joining = rig.join(&fixed("a"));
    assert_eq!(rig.leave(&[&fixed("a")]), [Ok(())]);
    assert_eq!(rig.refusal(joining), ResponseError::UnknownMemberId);
    rig.ring(&Timer::Join);
    assert_eq!(rig.group.phase_name(), "Empty");

    let mut rig = Rig::new();
    rig.join(&fixed("a"));
    let joined = rig.join(&fixed("b"));
    while rig.ring(&Timer::Join) {}
    let b = fixed("b").id(&rig.welcome(joined).member);
    let syncing = rig.sync(&b, 1, &[]);
    rig.leave(&[&fixed("b")]);
    assert_eq!(rig.synced(syncing), Some(&Err(ResponseError::UnknownMemberId)));
}

/// Goal: a silent member is removed, static or not; the others share anew. Method: its session runs out.
#[test]
fn a_silent_member_is_removed() {
    let (mut rig, members) = Rig::stable(2);
    assert!(rig.ring_session(&members[0]));
    assert_eq!(rig.heartbeat(&members[1], 1), Err(ResponseError::RebalanceInProgress));
    let joined = rig.join(&members[1]);
    assert_eq!(rig.welcome(joined).leader, members[1].id);

    let mut rig = Rig::new();
    let joined = rig.join(&fixed("a"));
    rig.ring(&Timer::Join);
    let a = fixed("a").id(&rig.welcome(joined).member);
    assert!(rig.ring_session(&a));
    assert_eq!(rig.group.phase_name(), "Empty");
    assert_eq!(rig.leave(&[&fixed("a")]), [Err(ResponseError::UnknownMemberId)]);
}

/// Goal: a rebalance does not wait for ids that never come back. Method: the pending member's time runs out last.
#[test]
fn a_pending_member_that_stays_away_holds_nobody_up() {
    let (mut rig, members) = Rig::stable(1);
    let asked = rig.join(&member(""));
    let pending = member("").id(&rig.joined(asked).expect("answered").clone().expect_err("an id").member);
    let joined = rig.join(&members[0]);
    assert!(rig.joined(joined).is_none(), "it may still come");
    assert!(rig.ring_session(&pending));
    assert_eq!(rig.welcome(joined).generation, 2);
}
