use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use proptest::prelude::*;

use super::super::rig::{REBALANCE, Rig, SESSION, fixed, member};
use super::super::{Group, SavedGroupError, Timer};

/// A rig whose coordinator was lost and whose group was loaded anew.
fn reload(rig: &Rig) -> Rig {
    let (group, step) = Group::load(rig.group.save()).expect("can be read");
    let mut new = Rig { group, now: rig.now, ..Rig::new() };
    new.take(step);
    new
}

/// Goal: a stable group is the same after it was loaded: ids, generation, assignments; sessions begin anew. Method: save, load, speak.
#[test]
fn a_stable_group_survives_its_coordinator() {
    let (rig, members) = Rig::stable(3);
    let mut new = reload(&rig);
    assert_eq!(new.group, rig.group);
    assert_eq!(new.timers.len(), 3);
    assert!(new.timers.values().all(|session| *session == SESSION));
    for who in &members {
        assert_eq!(new.heartbeat(who, 1), Ok(()));
        let synced = new.sync(who, 1, &[]);
        assert_eq!(new.assignment(synced), "work");
    }
}

/// Goal: a group that was lost between join and sync goes on where it was. Method: the leader syncs at the new coordinator.
#[test]
fn a_generation_that_has_begun_survives_its_coordinator() {
    let mut rig = Rig::new();
    let a = rig.join(&fixed("a"));
    let (b, _) = rig.enter(&member(""));
    while rig.ring(&Timer::Join) {}
    let a = fixed("a").id(&rig.welcome(a).member);
    let mut new = reload(&rig);
    assert_eq!(new.timers.get(&Timer::Sync), Some(&REBALANCE));
    let waiting = new.sync(&b, 1, &[]);
    new.sync(&a, 1, &[(&*b.id, "work")]);
    assert_eq!(new.assignment(waiting), "work");
    assert_eq!(new.group.phase_name(), "Stable");
}

/// Goal: a group lost while members were called together stands at its last generation, which is not given out twice. Method: those
/// who waited join again; who had just come does not exist.
#[test]
fn a_join_phase_is_repeated_at_the_new_coordinator() {
    let (mut rig, members) = Rig::stable(2);
    let saved = rig.group.save();
    let (late, _) = rig.enter(&member(""));
    let (group, step) = Group::load(saved).expect("can be read");
    let mut new = Rig { group, ..Rig::new() };
    new.take(step);
    let joined = new.join(&late);
    assert_eq!(new.refusal(joined), ResponseError::UnknownMemberId);
    let first = new.join(&members[0]);
    let second = new.join(&members[1]);
    assert_eq!((new.welcome(first).generation, new.welcome(second).generation), (2, 2));
}

/// Goal: an empty group keeps its generation, its type and its day. Method: save, load, join.
#[test]
fn an_empty_group_survives_its_coordinator() {
    let (mut rig, members) = Rig::stable(1);
    rig.now = 77;
    rig.leave(&[&members[0]]);
    let mut new = reload(&rig);
    assert_eq!(new.group.empty_since(), Some(77));
    assert!(new.timers.is_empty() && !new.group.is_blank());
    let (_, joined) = new.enter(&member(""));
    new.ring(&Timer::Join);
    assert_eq!(new.welcome(joined).generation, 3);
}

/// Goal: what a newer program wrote, and what is cut off, is refused with a reason. Method: every prefix; another version.
#[test]
fn a_state_that_cannot_be_read_is_refused() {
    let (rig, _) = Rig::stable(2);
    let state = rig.group.save();
    for length in 0..state.len() {
        assert_eq!(Group::load(state.slice(..length)), Err(SavedGroupError::Damaged), "{length} bytes");
    }
    let mut newer = state.to_vec();
    newer[0] = 9;
    assert_eq!(Group::load(Bytes::from(newer)), Err(SavedGroupError::Version(9)));
}

proptest! {
    /// Goal: no bytes make loading panic or take memory that is not there. Method: random bytes behind a valid version.
    #[test]
    fn random_bytes_are_read_without_panic(mut bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
        bytes[0] = 1;
        let given = bytes.len();
        if let Ok((group, _)) = Group::load(Bytes::from(bytes)) {
            prop_assert!(group.members().count() <= given);
        }
    }
}
