use std::sync::Arc;

use kafka_protocol::error::ResponseError;

use super::super::rig::{Rig, Who, member};
use super::super::{Step, Sync, Timer};

/// Goal: SyncGroup is checked: member, generation, protocol, phase. Method: one wrong thing at a time.
#[test]
fn a_sync_that_does_not_fit_is_refused() {
    let (mut rig, members) = Rig::stable(2);
    let refused = |rig: &mut Rig, who: &Who, generation| {
        let ticket = rig.sync(who, generation, &[]);
        rig.synced(ticket).expect("answered").clone().expect_err("refused")
    };
    assert_eq!(refused(&mut rig, &member("stranger"), 1), ResponseError::UnknownMemberId);
    assert_eq!(refused(&mut rig, &members[1], 0), ResponseError::IllegalGeneration);
    assert_eq!(refused(&mut rig, &members[1], 2), ResponseError::IllegalGeneration);
    for (kind, protocol) in [("connect", "range"), ("consumer", "sticky")] {
        let ticket = rig.ticket();
        let sync = Sync {
            ticket,
            identity: members[1].identity(),
            generation: 1,
            protocol_type: Some(Arc::from(kind)),
            protocol: Some(Arc::from(protocol)),
            assignments: Vec::new(),
        };
        let step: Step = rig.group.sync(&sync, 0);
        rig.take(step);
        assert_eq!(rig.synced(ticket), Some(&Err(ResponseError::InconsistentGroupProtocol)));
    }
    rig.join(&members[0]);
    assert_eq!(refused(&mut rig, &members[1], 1), ResponseError::RebalanceInProgress);
}

/// Goal: a sync in a stable group gets what was assigned, as often as it asks. Method: twice.
#[test]
fn an_assignment_can_be_fetched_again() {
    let (mut rig, members) = Rig::stable(2);
    for _ in 0..2 {
        let synced = rig.sync(&members[1], 1, &[]);
        assert_eq!(rig.assignment(synced), "work");
    }
    assert_eq!(rig.saves, 2, "nothing new to save");
}

/// Goal: who does not sync in time is out, and the others share anew; also when the leader has assigned already. Method: a mute
/// leader; a mute follower.
#[test]
fn who_misses_the_sync_phase_is_removed() {
    for mute in [0, 1] {
        let (mut rig, members) = Rig::stable(2);
        rig.join(&members[0]);
        rig.join(&members[1]);
        let speaks = 1 - mute;
        let waiting = rig.sync(&members[speaks], 2, &[]);
        assert!(rig.ring(&Timer::Sync));
        if speaks == 1 {
            assert_eq!(rig.synced(waiting), Some(&Err(ResponseError::RebalanceInProgress)));
        }
        assert_eq!(rig.heartbeat(&members[mute], 2), Err(ResponseError::UnknownMemberId));
        let joined = rig.join(&members[speaks]);
        assert_eq!(rig.welcome(joined).generation, 3);
        assert_eq!(rig.welcome(joined).leader, members[speaks].id);
    }
}

/// Goal: when all have synced nothing is left to run out. Method: look at the timer.
#[test]
fn a_stable_group_has_no_sync_timer() {
    let (rig, _) = Rig::stable(3);
    assert!(!rig.timers.contains_key(&Timer::Sync));
}

/// Goal: who waits for an assignment when the group begins anew is sent to join. Method: a new member between join and sync.
#[test]
fn a_new_rebalance_sends_those_who_sync_back() {
    let (mut rig, members) = Rig::stable(2);
    rig.join(&members[0]);
    rig.join(&members[1]);
    let waiting = rig.sync(&members[1], 2, &[]);
    rig.join(&member("").version(3));
    assert_eq!(rig.synced(waiting), Some(&Err(ResponseError::RebalanceInProgress)));
    let late = rig.sync(&members[0], 2, &[(&*members[1].id, "old")]);
    assert_eq!(rig.synced(late), Some(&Err(ResponseError::RebalanceInProgress)));
    assert!(rig.group.members().all(|member| member.assignment.is_empty()));
}

/// Goal: a sync that is sent again leaves nobody without an answer. Method: the same member twice before the leader.
#[test]
fn a_repeated_sync_supersedes_the_first() {
    let (mut rig, members) = Rig::stable(2);
    rig.join(&members[0]);
    rig.join(&members[1]);
    let first = rig.sync(&members[1], 2, &[]);
    let second = rig.sync(&members[1], 2, &[]);
    assert_eq!(rig.synced(first), Some(&Err(ResponseError::RebalanceInProgress)));
    rig.sync(&members[0], 2, &[]);
    assert_eq!(rig.assignment(second), "");
}
