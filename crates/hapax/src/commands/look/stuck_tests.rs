use hapax_engine::books::{Pause, StoredLease};
use hapax_engine::state::DeliveryNote;

use super::*;

fn id() -> DeliveryId {
    DeliveryId { workflow: "orders".into(), sink: "erp".into(), lane: "0".into() }
}

fn look(lag: Lag) -> Look {
    Look { id: id(), stored: None, lag, letters: (0, None), trouble: None }
}

fn noted(state: WorkerState, exit_code: Option<u8>) -> NotedDelivery {
    let note = DeliveryNote { state, exit_code, code: exit_code.map(|_| "HX4002".into()), message: "why".into() };
    NotedDelivery { id: id(), note, session: "pid 1 on here".into(), noted_at_ms: 1 }
}

fn leased() -> StoredLease {
    StoredLease { id: id(), holder: "pid 7 on there".into(), expires_at_ms: u64::MAX }
}

fn one(look: &Look, state: &StateSide) -> (String, String) {
    let waits = judge(look, state, Duration::from_secs(60));
    assert_eq!(waits.len(), 1, "{waits:?}");
    (waits[0].why.clone(), waits[0].turn.clone())
}

/// Goal: each way to stand still has its reason and its next actor. Method: one state store after the other.
#[test]
fn each_reason_names_whose_turn_it_is() {
    let behind = look(Lag::Known(5));
    let with = |note: Option<NotedDelivery>, lease: Option<StoredLease>| StateSide {
        notes: note.into_iter().collect(),
        leases: lease.into_iter().collect(),
        ..StateSide::default()
    };
    let (why, turn) = one(&behind, &with(None, None));
    assert!(why.contains("never run; 5 wait") && turn.contains("start hapax run"), "{why}, {turn}");
    let (why, _) = one(&behind, &with(Some(noted(WorkerState::Running, None)), None));
    assert!(why.contains("its worker (pid 1 on here) ended without a word"), "{why}");
    for (code, words) in [(5, "hapax reset orders"), (4, "took over"), (3, "hapax check --explain"), (1, "mend it")] {
        let (why, turn) = one(&behind, &with(Some(noted(WorkerState::Stopped, Some(code))), None));
        assert!(why.contains(&format!("code {code}: HX4002: why")) && turn.contains(words), "{why}, {turn}");
    }
    let (why, turn) = one(&behind, &with(Some(noted(WorkerState::Waiting, Some(1))), Some(leased())));
    assert!(why.contains("waiting: HX4002") && turn.contains("pid 7 on there tries again"), "{why}, {turn}");
    let (why, turn) = one(&behind, &with(Some(noted(WorkerState::Standby, None)), Some(leased())));
    assert!(why.contains("pid 1 on here stands by") && turn.starts_with("pid 7 on there"), "{why}, {turn}");
    let pauses = vec![Pause {
        workflow: "orders".into(),
        by: "ann".into(),
        why: "moving house".into(),
        since_ms: 1,
        until_ms: None,
    }];
    let (why, turn) = one(&behind, &StateSide { pauses, ..StateSide::default() });
    assert!(why.contains("paused by ann: moving house") && turn.contains("hapax resume orders"), "{why}, {turn}");
}

/// Goal: who resumes a paused workflow knows what stopped it. Method: a pause beside a stop, and beside a worker that lives.
#[test]
fn a_stop_is_told_beside_a_pause() {
    let pause = Pause { workflow: "orders".into(), by: "ann".into(), why: String::new(), since_ms: 1, until_ms: None };
    let stopped = vec![noted(WorkerState::Stopped, Some(5))];
    let state = StateSide { notes: stopped.clone(), pauses: vec![pause.clone()], ..StateSide::default() };
    let waits = judge(&look(Lag::Known(5)), &state, Duration::from_secs(60));
    let why: Vec<&str> = waits.iter().map(|wait| wait.why.as_str()).collect();
    assert_eq!(why, ["stopped with code 5: HX4002: why", "paused by ann"]);
    let again = StateSide { notes: stopped, leases: vec![leased()], pauses: vec![pause], ..StateSide::default() };
    assert!(one(&look(Lag::Known(5)), &again).0.contains("paused by ann"));
}

/// Goal: what goes on, or has nothing to do, is not stuck. Method: a live worker; an ended one with nothing behind.
#[test]
fn what_goes_on_is_not_stuck() {
    let working = StateSide { leases: vec![leased()], ..StateSide::default() };
    assert_eq!(judge(&look(Lag::Known(5)), &working, Duration::from_secs(60)), []);
    let done = StateSide { notes: vec![noted(WorkerState::Finished, None)], ..StateSide::default() };
    assert_eq!(judge(&look(Lag::Known(0)), &done, Duration::from_secs(60)), []);
}

/// Goal: a worker that is still starting is told with since when, and counted only after long; so is a lane that waits for its turn
/// in a pattern. Method: the note of the lane's own worker, young and old, and that of the pattern's, which then says that it runs.
#[test]
fn a_worker_that_starts_is_told() {
    let holder = "pid 7 on there";
    let said = |of: DeliveryId, state, at| NotedDelivery {
        id: of,
        session: holder.into(),
        noted_at_ms: at,
        ..noted(state, None)
    };
    let judged = |state: &StateSide, lag| judge(&look(lag), state, Duration::from_secs(60));
    for (at, weight) in [(now_ms(), Weight::ToldOnly), (1, Weight::Counted)] {
        let notes = vec![said(id(), WorkerState::Starting, at)];
        let state = StateSide { notes, leases: vec![leased()], ..StateSide::default() };
        let waits = judged(&state, Lag::Known(5));
        assert_eq!(waits.len(), 1, "{waits:?}");
        assert_eq!((waits[0].since_ms, waits[0].weight), (Some(at), weight));
        assert!(waits[0].why.starts_with("starting: pid 7 on there"), "{waits:?}");
        assert_eq!(judged(&state, Lag::Known(0)), []);
    }
    let pattern = DeliveryId { lane: "in/*.log".into(), ..id() };
    let lease = StoredLease { id: pattern.clone(), ..leased() };
    let with = |now| StateSide {
        notes: vec![said(pattern.clone(), now, now_ms())],
        leases: vec![lease.clone()],
        patterns: vec![pattern.clone()],
        ..StateSide::default()
    };
    for (now, words) in [
        (WorkerState::Starting, "starting: pid 7 on there looks through the files of the pattern"),
        (WorkerState::Running, "waits for its turn among the lanes of the pattern, 5 behind"),
    ] {
        let waits = judged(&with(now), Lag::Known(5));
        assert_eq!((waits.len(), waits[0].weight), (1, Weight::ToldOnly), "{waits:?}");
        assert_eq!(waits[0].why, words);
        assert_eq!(judged(&with(now), Lag::Known(0)), []);
    }
    let seen = with(WorkerState::Starting).state(&id(), hapax_model::delivery_state::ProgressSeen::Nothing);
    assert_eq!(seen.name(), "starting");
    let away = judged(&with(WorkerState::Running), Lag::Unknown("no such file".into()));
    assert!(away[0].why.contains("no such file"), "{away:?}");
}

/// Goal: letters that wait and a target that is away are told beside everything else.
#[test]
fn letters_and_a_lost_target_are_told() {
    let mut look = look(Lag::Known(0));
    look.letters = (3, Some(1));
    look.trouble = Some(Trouble { why: "HX4001: gone".into(), may_pass: true });
    let waits = judge(&look, &StateSide::default(), Duration::from_secs(60));
    let why: Vec<&str> = waits.iter().map(|wait| wait.why.as_str()).collect();
    assert_eq!(why, ["HX4001: gone", "3 dead letters wait"]);
    assert!(waits[1].turn.contains("hapax dlq list"));
}

/// Goal: a target that will not come back by itself is not left to workers. Method: a fault that passes, and one that stays.
#[test]
fn only_a_target_that_may_come_back_is_waited_for() {
    let mut look = look(Lag::Known(0));
    for (may_pass, words) in [(true, "workers try again"), (false, "a person: mend it")] {
        look.trouble = Some(Trouble { why: "HX4015: no table".into(), may_pass });
        let (_, turn) = one(&look, &StateSide::default());
        assert!(turn.contains(words), "{turn}");
    }
}
