use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use super::super::rig::{REBALANCE, Rig, SESSION, Who, fixed, member, subscription};
use super::super::{Limits, Timer};

/// Goal: from version 4 on a new member is sent back with an id, which expires with its session. Method: join, come back; join,
/// stay away.
#[test]
fn a_new_member_is_given_an_id_first() {
    let mut rig = Rig::new();
    let asked = rig.join(&member("").version(4));
    assert_eq!(rig.refusal(asked), ResponseError::MemberIdRequired);
    let who = member("client-1");
    assert_eq!(rig.timers.get(&Timer::Session(who.id.clone())), Some(&SESSION));
    let joined = rig.join(&who);
    assert!(rig.joined(joined).is_none(), "waits for the join phase");
    assert!(rig.ring(&Timer::Join));
    assert_eq!(rig.welcome(joined).generation, 1);

    let mut rig = Rig::new();
    rig.join(&member("").version(4));
    assert!(rig.ring_session(&who));
    assert!(rig.group.is_blank());
    let late = rig.join(&who);
    assert_eq!(rig.refusal(late), ResponseError::UnknownMemberId);
}

/// Goal: before version 4, and for static members, the first join is the only one. Method: one join each.
#[test]
fn older_and_static_members_join_at_once() {
    for who in [member("").version(3), fixed("machine-1")] {
        let mut rig = Rig::new();
        let joined = rig.join(&who);
        assert!(rig.ring(&Timer::Join));
        let welcome = rig.welcome(joined);
        assert_eq!(welcome.leader, welcome.member);
        assert_eq!(welcome.members.len(), 1);
        assert_eq!(welcome.members[0].metadata, subscription(&["orders"]));
    }
}

/// Goal: an id that was never given out is refused, in a group and without one. Method: join with invented ids.
#[test]
fn an_invented_id_is_not_known() {
    let mut rig = Rig::new();
    let joined = rig.join(&member("invented"));
    assert_eq!(rig.refusal(joined), ResponseError::UnknownMemberId);
    let (mut rig, _) = Rig::stable(2);
    let joined = rig.join(&member("invented"));
    assert_eq!(rig.refusal(joined), ResponseError::UnknownMemberId);
    assert_eq!(rig.group.phase_name(), "Stable");
    // An id that is pending, with a static name that it never had.
    let asked = rig.join(&member(""));
    let id = rig.joined(asked).expect("answered").clone().expect_err("an id first").member;
    let joined = rig.join(&fixed("machine-1").id(&id));
    assert_eq!(rig.refusal(joined), ResponseError::UnknownMemberId);
}

/// Goal: sessions have bounds. Method: one millisecond beyond each.
#[test]
fn a_session_outside_the_bounds_is_refused() {
    for session in [Duration::from_millis(5_999), Duration::from_millis(1_800_001)] {
        let mut rig = Rig::new();
        let joined = rig.join(&Who { session, ..member("") });
        assert_eq!(rig.refusal(joined), ResponseError::InvalidSessionTimeout);
    }
    for session in [Duration::from_secs(6), Duration::from_secs(1800)] {
        let mut rig = Rig::new();
        let joined = rig.join(&Who { session, ..member("") });
        assert_eq!(rig.refusal(joined), ResponseError::MemberIdRequired);
    }
}

/// Goal: who shares no protocol with the others, or has another type, or none, stays out. Method: each against a stable group and
/// an empty one.
#[test]
fn protocols_must_have_something_in_common() {
    let (rig, _) = Rig::stable(2);
    let strangers = [
        member("").speaks(&["sticky"]),
        Who { kind: "connect", ..member("") },
        member("").speaks(&[]),
        Who { kind: "", ..member("") },
    ];
    for who in &strangers {
        let mut rig = Rig { group: rig.group.clone(), ..Rig::new() };
        let joined = rig.join(who);
        assert_eq!(rig.refusal(joined), ResponseError::InconsistentGroupProtocol);
    }
    for who in &strangers[2..] {
        let mut rig = Rig::new();
        let joined = rig.join(who);
        assert_eq!(rig.refusal(joined), ResponseError::InconsistentGroupProtocol);
        assert!(rig.group.is_blank());
    }
}

/// Goal: the protocol with most votes among those that all know is chosen; the leader settles a draw. Method: three ballots.
#[test]
fn the_protocol_is_chosen_by_votes() {
    let choose = |ballots: &[&[&'static str]]| {
        let mut rig = Rig::new();
        let joined: Vec<_> = ballots.iter().map(|ballot| rig.join(&member("").version(3).speaks(ballot))).collect();
        while rig.ring(&Timer::Join) {}
        rig.welcome(joined[0]).protocol.expect("is chosen").to_string()
    };
    assert_eq!(choose(&[&["range", "sticky"], &["sticky", "range"], &["sticky", "range"]]), "sticky");
    assert_eq!(choose(&[&["range", "sticky"], &["sticky"], &["range", "sticky"]]), "sticky");
    assert_eq!(choose(&[&["range", "sticky"], &["sticky", "range"]]), "range");
}

/// Goal: groups of any protocol type work; their metadata is opaque. Method: a Connect group with bytes that are no subscription.
#[test]
fn a_group_may_be_of_any_type() {
    let mut rig = Rig::new();
    let metadata = Bytes::from_static(&[0xff, 0, 1]);
    let who = Who { kind: "connect", protocols: vec![("sessioned", metadata.clone())], ..member("").version(3) };
    let joined = rig.join(&who);
    rig.ring(&Timer::Join);
    let welcome = rig.welcome(joined);
    assert_eq!(welcome.protocol_type.as_deref(), Some("connect"));
    assert_eq!(welcome.members[0].metadata, metadata);
}

/// Goal: the first join waits for others, longer while more come, never beyond the rebalance timeout. Method: 3 s of delay, 7 s
/// of timeout, a member in every delay.
#[test]
fn the_first_rebalance_waits_for_more_members() {
    let mut rig = Rig::with(Limits::default());
    let short = Who { rebalance: Duration::from_secs(7), ..member("").version(3) };
    let first = rig.join(&short);
    assert_eq!(rig.timers.get(&Timer::Join), Some(&Duration::from_secs(3)));
    rig.join(&short);
    rig.ring(&Timer::Join);
    assert_eq!(rig.timers.get(&Timer::Join), Some(&Duration::from_secs(3)), "grew: waits again");
    rig.join(&short);
    rig.ring(&Timer::Join);
    assert_eq!(rig.timers.get(&Timer::Join), Some(&Duration::from_secs(1)), "what is left");
    rig.join(&short);
    rig.ring(&Timer::Join);
    assert_eq!(rig.welcome(first).members.len(), 4);

    let mut rig = Rig::with(Limits::default());
    let alone = rig.join(&short);
    rig.ring(&Timer::Join);
    assert_eq!(rig.welcome(alone).generation, 1, "nobody came: it does not wait again");
}

/// Goal: a full group takes nobody in, and those who are in stay in. Method: two places; new members while stable and while
/// members are called together.
#[test]
fn a_full_group_takes_nobody_in() {
    let (mut rig, members) = Rig::stable(2);
    rig.limits.members_max = 2;
    let refused = rig.join(&member("").version(3));
    assert_eq!(rig.refusal(refused), ResponseError::GroupMaxSizeReached);
    assert_eq!(rig.group.phase_name(), "Stable");
    let again = rig.join(&members[0]);
    let other = rig.join(&members[1]);
    assert_eq!(rig.welcome(again).generation, 2);
    assert_eq!(rig.welcome(other).generation, 2);

    // The last to come back finds its place taken by a reduced limit, and the others go on without it.
    let (mut rig, members) = Rig::stable(2);
    rig.limits.members_max = 1;
    let first = rig.join(&members[0]);
    let last = rig.join(&members[1]);
    assert_eq!(rig.refusal(last), ResponseError::GroupMaxSizeReached);
    assert_eq!(rig.welcome(first).members.len(), 1);
}

/// Goal: ids given out are bounded, too. Method: one more than allowed.
#[test]
fn ids_are_not_given_out_without_end() {
    let mut rig = Rig::with(Limits { pending_max: 2, ..Limits::default() });
    for _ in 0..2 {
        let asked = rig.join(&member(""));
        assert_eq!(rig.refusal(asked), ResponseError::MemberIdRequired);
    }
    let asked = rig.join(&member(""));
    assert_eq!(rig.refusal(asked), ResponseError::GroupMaxSizeReached);
}

/// Goal: who joins again without news is told what it should know; news, or the leader, begin a rebalance. Method: each in a stable
/// group.
#[test]
fn only_news_or_the_leader_begin_a_rebalance() {
    let (mut rig, members) = Rig::stable(3);
    let follower = rig.join(&members[1]);
    let told = rig.welcome(follower);
    assert_eq!((told.generation, told.members.len()), (1, 0));
    assert_eq!(rig.group.phase_name(), "Stable");

    let news = rig.join(&members[1].clone().wants(&["orders", "payments"]));
    assert!(rig.joined(news).is_none());
    assert_eq!(rig.group.phase_name(), "PreparingRebalance");

    let (mut rig, members) = Rig::stable(3);
    let leader = rig.join(&members[0]);
    assert!(rig.joined(leader).is_none());
    assert_eq!(rig.heartbeat(&members[1], 1), Err(ResponseError::RebalanceInProgress));
    assert_eq!(rig.timers.get(&Timer::Join), Some(&REBALANCE));
}

/// Goal: a lost answer of JoinGroup is given again while assignments are awaited; news begin anew. Method: both, twice.
#[test]
fn a_lost_join_answer_is_given_again() {
    let mut rig = Rig::new();
    let (who, first) = rig.enter(&member(""));
    rig.ring(&Timer::Join);
    let again = rig.join(&who);
    assert_eq!(rig.welcome(again), rig.welcome(first));
    assert_eq!(rig.welcome(again).members.len(), 1);
    let news = rig.join(&who.clone().wants(&["payments"]));
    assert_eq!(rig.welcome(news).generation, 2);
}

/// Goal: a join that is sent again on another connection leaves nobody without an answer. Method: the same member twice in one join
/// phase.
#[test]
fn a_repeated_join_supersedes_the_first() {
    let (mut rig, members) = Rig::stable(2);
    let first = rig.join(&members[0]);
    let second = rig.join(&members[0]);
    assert_eq!(rig.refusal(first), ResponseError::RebalanceInProgress);
    rig.join(&members[1]);
    assert_eq!(rig.welcome(second).generation, 2);
}

/// Goal: a static member that returns gets a new id and its old work, nobody is disturbed, and the old id is fenced everywhere.
/// Method: return as a follower, then speak as the old one.
#[test]
fn a_static_member_returns_without_a_rebalance() {
    let (mut rig, old) = static_pair();
    let saves = rig.saves;
    let back = rig.join(&fixed("b"));
    let told = rig.welcome(back);
    assert_eq!((told.generation, told.members.len(), told.skip_assignment), (1, 0, false));
    assert_ne!(told.member, old[1].id);
    assert_eq!(rig.saves, saves + 1, "the new id is saved before it is told");
    let now = old[1].clone().id(&told.member);
    let synced = rig.sync(&now, 1, &[]);
    assert_eq!(rig.assignment(synced), "second");
    assert_eq!(rig.heartbeat(&now, 1), Ok(()));

    assert_eq!(rig.heartbeat(&old[1], 1), Err(ResponseError::FencedInstanceId));
    let synced = rig.sync(&old[1], 1, &[]);
    assert_eq!(rig.synced(synced), Some(&Err(ResponseError::FencedInstanceId)));
    let joined = rig.join(&old[1]);
    assert_eq!(rig.refusal(joined), ResponseError::FencedInstanceId);
    assert_eq!(rig.leave(&[&old[1]]), [Err(ResponseError::FencedInstanceId)]);
    assert_eq!(rig.group.check_commit(&old[1].identity(), 1), Err(ResponseError::FencedInstanceId));
    assert!(!rig.ring_session(&old[1]), "its session is nobody's");
}

/// Goal: a leader that returns assigns nothing: from version 9 on it is told so, before it is told that another leads. Method: both.
#[test]
fn a_static_leader_returns_without_a_rebalance() {
    let (mut rig, old) = static_pair();
    let back = rig.join(&fixed("a"));
    let told = rig.welcome(back);
    assert!(told.skip_assignment);
    assert_eq!(told.leader, told.member);
    assert_eq!(told.members.len(), 2);

    let back = rig.join(&fixed("a").version(8));
    let older = rig.welcome(back);
    assert_eq!(older.leader, told.member, "its former self");
    assert_ne!(older.leader, older.member);
    assert!(older.members.is_empty() && !older.skip_assignment);
    assert_eq!(rig.group.phase_name(), "Stable");
    assert_eq!(rig.heartbeat(&old[1], 1), Ok(()), "nobody else noticed");
}

/// Goal: a static member that wants something else when it returns begins a rebalance. Method: another topic; another protocol.
#[test]
fn a_static_member_returns_with_other_wishes() {
    let (mut rig, _) = static_pair();
    rig.join(&fixed("b").wants(&["payments"]));
    assert_eq!(rig.group.phase_name(), "PreparingRebalance");

    let mut rig = Rig::new();
    let both = ["range", "sticky"];
    let a = rig.join(&fixed("a").speaks(&both));
    rig.ring(&Timer::Join);
    let a = fixed("a").id(&rig.welcome(a).member);
    rig.sync(&a, 1, &[]);
    let back = rig.join(&fixed("a").speaks(&["sticky"]));
    assert_eq!(rig.welcome(back).protocol.as_deref(), Some("sticky"));
    assert_eq!(rig.welcome(back).generation, 2);
}

/// Goal: a static member that returns in mid-rebalance: its former self is told at once, and the rebalance goes on, or begins anew
/// when the leader counted on the old id. Method: while joining, and while assignments are awaited.
#[test]
fn a_static_member_returns_in_a_rebalance() {
    let (mut rig, old) = static_pair();
    let waiting = rig.join(&old[0]);
    let back = rig.join(&fixed("a"));
    assert_eq!(rig.refusal(waiting), ResponseError::FencedInstanceId);
    let other = rig.join(&old[1]);
    assert_eq!(rig.welcome(back).generation, 2);
    assert_eq!(rig.welcome(other).generation, 2);

    let syncing = rig.sync(&old[1], 2, &[]);
    let back = rig.join(&fixed("b"));
    assert_eq!(rig.synced(syncing), Some(&Err(ResponseError::FencedInstanceId)));
    assert!(rig.joined(back).is_none());
    assert_eq!(rig.group.phase_name(), "PreparingRebalance");
}

/// Two static members, "a" the leader, with assignments.
fn static_pair() -> (Rig, Vec<Who>) {
    let mut rig = Rig::new();
    let a = rig.join(&fixed("a"));
    let b = rig.join(&fixed("b"));
    while rig.ring(&Timer::Join) {}
    let a = fixed("a").id(&rig.welcome(a).member);
    let b = fixed("b").id(&rig.welcome(b).member);
    rig.sync(&a, 1, &[(&*a.id, "first"), (&*b.id, "second")]);
    rig.sync(&b, 1, &[]);
    assert_eq!(rig.group.phase_name(), "Stable");
    (rig, vec![a, b])
}
