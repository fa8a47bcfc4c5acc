use std::time::Duration;

use kafka_protocol::error::ResponseError;

use super::super::rig::{Rig, SESSION, Who, member};
use super::super::{Expiry, Group, Subscribed, Timer};

/// Goal: offsets are committed by members of the current generation, also while members are called together, not while assignments
/// are awaited; without a generation only when the group is empty. Method: the matrix.
#[test]
fn who_may_commit_offsets() {
    let nobody = member("").identity();
    let empty = Group::new(0);
    assert_eq!(empty.check_commit(&nobody, -1), Ok(None));
    assert_eq!(empty.check_commit(&member("old").identity(), -1), Ok(None));
    assert_eq!(empty.check_commit(&member("old").identity(), 1), Err(ResponseError::UnknownMemberId));

    let (mut rig, members) = Rig::stable(2);
    let me = members[1].identity();
    assert_eq!(rig.group.check_commit(&me, 1), Ok(Some(SESSION)), "and keeps the session");
    assert_eq!(rig.group.check_commit(&me, 0), Err(ResponseError::IllegalGeneration));
    assert_eq!(rig.group.check_commit(&me, -1), Err(ResponseError::IllegalGeneration));
    assert_eq!(rig.group.check_commit(&nobody, -1), Err(ResponseError::UnknownMemberId));
    assert_eq!(rig.group.check_commit(&member("stranger").identity(), 1), Err(ResponseError::UnknownMemberId));
    rig.join(&members[0]);
    assert_eq!(rig.group.check_commit(&me, 1), Ok(Some(SESSION)), "the old generation may finish");
    rig.join(&members[1]);
    assert_eq!(rig.group.phase_name(), "CompletingRebalance");
    assert_eq!(rig.group.check_commit(&me, 2), Err(ResponseError::RebalanceInProgress));
    assert_eq!(rig.group.check_commit(&me, 1), Err(ResponseError::IllegalGeneration));
}

/// Goal: heartbeats are checked like all else. Method: one wrong thing at a time; while assignments are awaited they are fine.
#[test]
fn heartbeats_are_checked() {
    let (mut rig, members) = Rig::stable(2);
    assert_eq!(rig.heartbeat(&members[0], 1), Ok(()));
    assert_eq!(rig.heartbeat(&members[0], 0), Err(ResponseError::IllegalGeneration));
    assert_eq!(rig.heartbeat(&member("stranger"), 1), Err(ResponseError::UnknownMemberId));
    rig.timers.clear();
    rig.join(&members[0]);
    assert_eq!(rig.heartbeat(&members[1], 1), Err(ResponseError::RebalanceInProgress));
    assert!(
        rig.timers.contains_key(&Timer::Session(members[1].id.clone())),
        "a refused heartbeat keeps the session too"
    );
    rig.join(&members[1]);
    assert_eq!(rig.heartbeat(&members[1], 2), Ok(()));
    assert_eq!(Group::new(0).heartbeat(&members[0].identity(), 0), (None, Err(ResponseError::UnknownMemberId)));
}

/// Goal: a group with members cannot be deleted; single offsets only where we can tell that nobody uses them. Method: empty, of
/// consumers, of others.
#[test]
fn what_may_be_deleted() {
    let (rig, _) = Rig::stable(1);
    assert_eq!(rig.group.check_delete(), Err(ResponseError::NonEmptyGroup));
    assert_eq!(rig.group.check_offset_delete(), Ok(()));
    assert!(rig.group.subscribed().covers("orders"));
    assert!(!rig.group.subscribed().covers("payments"));

    let mut others = Rig::new();
    others.join(&Who { kind: "connect", ..member("").version(3) });
    others.ring(&Timer::Join);
    assert_eq!(others.group.check_offset_delete(), Err(ResponseError::NonEmptyGroup));
    assert_eq!(others.group.subscribed(), Subscribed::NoTopics);
    assert_eq!(Group::new(0).check_delete(), Ok(()));
    assert_eq!(Group::new(0).check_offset_delete(), Ok(()));
}

/// Goal: subscriptions are read as far as they can be; what cannot be read counts as everything. Method: bytes of all sorts.
#[test]
fn a_subscription_that_cannot_be_read_covers_all() {
    let group = |metadata: &'static [u8]| {
        let mut rig = Rig::new();
        let protocols = vec![("range", bytes::Bytes::from_static(metadata))];
        rig.join(&Who { protocols, ..member("").version(3) });
        assert!(rig.group.subscribed().covers("x"), "nothing is chosen yet");
        rig.ring(&Timer::Join);
        rig.group.subscribed()
    };
    assert_eq!(group(&[0, 1, 0, 0, 0, 0]), Subscribed::To([].into()));
    assert_eq!(group(&[0, 9, 0, 0, 0, 1, 0, 1, b'x', 7, 7]), Subscribed::To([String::from("x")].into()));
    for bad in [&[][..], &[0], &[0, 1, 0, 0, 0, 1], &[0, 1, 0x7f, 0xff, 0xff, 0xff], &[0, 1, 0, 0, 0, 1, 0, 9, b'x']] {
        assert_eq!(group(bad), Subscribed::Unknown, "{bad:?}");
    }
    assert_eq!(group(&[0, 1, 0, 0, 0, 1, 0xff, 0xff]), Subscribed::Unknown);
}

/// Goal: offsets expire from the group's last day, from each commit where there is no group, and never under a subscriber. Method:
/// the matrix around the retention.
#[test]
fn when_offsets_expire() {
    let week = Duration::from_millis(1_000);
    let standalone = Group::new(0).expiry();
    assert_eq!(standalone, Expiry::STANDALONE);
    assert!(standalone.is_over("orders", 0, week, 1_000) && !standalone.is_over("orders", 1, week, 1_000));

    let (mut rig, members) = Rig::stable(1);
    let stable = rig.group.expiry();
    assert!(!stable.is_over("orders", 0, week, i64::MAX), "somebody reads it");
    assert!(stable.is_over("payments", 0, week, 1_000), "nobody does");
    rig.join(&members[0]);
    assert_eq!(rig.group.expiry(), Expiry::Never, "nothing while things are open");
    rig.leave(&[&members[0]]);
    let since = rig.group.empty_since().expect("is empty");
    let empty = rig.group.expiry();
    assert!(!empty.is_over("orders", 0, week, since + 999));
    assert!(empty.is_over("orders", 0, week, since + 1_000));
    assert!(!empty.is_over("orders", since + 500, week, since + 1_000), "committed by hand since");
    rig.join(&member(""));
    assert_eq!(rig.group.expiry(), Expiry::Never, "somebody is about to come");

    let mut others = Rig::new();
    others.join(&Who { kind: "connect", ..member("").version(3) });
    others.ring(&Timer::Join);
    assert_eq!(others.group.expiry(), Expiry::Never);
}
