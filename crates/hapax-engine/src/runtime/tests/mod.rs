//! The protocol, step by step, against parts in memory whose faults can be chosen.

mod epochs;
mod limits;
mod own_claims;
mod scripted;

use std::sync::Arc;
use std::time::Duration;

use hapax_model::contract::{Contract, KEY, SOURCE};
use hapax_model::delivery::{EpochBounds, Retries};
use hapax_model::delivery_state::WorkerState;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::ledger::Totals;
use hapax_model::position::{Bookmark, DeliveryId, Incarnation, Position};
use hapax_model::progress::Witness;
use hapax_model::rejects::{OnReject, RejectRule};
use tokio::sync::watch;

use self::scripted::{Away, Fault, Lines, MemorySink, MemoryState, Shared};
use super::*;
use crate::decode::UnknownFields;
use crate::memory::MemoryBudget;
use crate::sink::{Reaction, SinkError};
use crate::source::{Follow, StartAt};
use crate::state::TakeOver;

const THREE: [&str; 3] = [r#"{"id":1}"#, r#"{"id":2}"#, r#"{"id":3}"#];

fn id(workflow: &str) -> DeliveryId {
    DeliveryId { workflow: workflow.into(), sink: "memory".into(), lane: "0".into() }
}

fn settings() -> Settings {
    Settings {
        id: id("orders"),
        after_doubt: AfterDoubt::CommitAgain,
        start: StartAt::Earliest,
        follow: Follow::No,
        epoch: EpochBounds { interval: Duration::from_millis(20), ..EpochBounds::default() },
        retries: Retries { backoff: vec![Duration::from_millis(5)], ..Retries::default() },
        rejects: RejectRule::new(OnReject::DeadLetter, 1000),
        lease: Duration::from_millis(200),
        take_over: TakeOver::Never,
        contract: Contract::default().with(SOURCE, "lines").with(KEY, "offset"),
        configured: [("orders".to_owned(), "memory".to_owned())].into(),
        session: "test".into(),
        keyer: Keyer::new(DedupStrategy::SourceOffset, Uniqueness::WithVersion, KeyNeed::Event),
        delete_when: None,
        unknown_fields: UnknownFields::Counted,
        transform: None,
    }
}

struct Run {
    stop: watch::Sender<bool>,
    control: Control,
}

fn control() -> Run {
    let stop = watch::Sender::new(false);
    let control = Control {
        stop: stop.subscribe(),
        memory: MemoryBudget::new(64 * 1024 * 1024),
        meter: Arc::new(Meter::default()),
    };
    Run { stop, control }
}

async fn run(settings: Settings, lines: Lines, world: &Shared, state: &MemoryState) -> (DeliveryEnd, Reading) {
    let run = control();
    let sink = MemorySink::new(&settings.id, world);
    let delivery = Delivery { settings, source: lines, sink, state: Some(state.clone()) };
    let end = deliver(delivery, run.control.clone()).await;
    drop(run.stop);
    (end, run.control.meter.read())
}

fn exit_code(end: &DeliveryEnd) -> u8 {
    match end {
        DeliveryEnd::Finished | DeliveryEnd::Drained => 0,
        DeliveryEnd::Stopped(stop) => stop.exit_code,
    }
}

fn code(end: &DeliveryEnd) -> &str {
    match end {
        DeliveryEnd::Finished | DeliveryEnd::Drained => "",
        DeliveryEnd::Stopped(stop) => stop.code,
    }
}

fn message(end: &DeliveryEnd) -> &str {
    match end {
        DeliveryEnd::Finished | DeliveryEnd::Drained => "",
        DeliveryEnd::Stopped(stop) => &stop.message,
    }
}

/// Goal: the whole way, without a fault: rows in order, books balanced, witness saved.
#[tokio::test]
async fn a_finite_source_is_delivered_once_and_in_order() {
    let (world, state) = (Shared::default(), MemoryState::new("a"));
    let (end, reading) = run(settings(), Lines::new(&THREE), &world, &state).await;
    assert_eq!(end, DeliveryEnd::Finished);
    assert_eq!(world.lock().rows, THREE);
    assert_eq!(reading.ledger.totals, Totals { read: 3, delivered: 3, rows: 3, ..Totals::default() });
    assert!(reading.ledger.adds_up());
    assert_eq!(state.lock().witness.as_ref().map(|w| w.bookmark.position.offset), Some(3));
    assert_eq!(state.lock().lease, None, "the lease was given back");
}

/// Goal: whatever happens to a commit's request or answer, the rows are there once. Method: each fault at each epoch.
#[tokio::test]
async fn a_commit_in_doubt_lands_exactly_once() {
    for fault in [Fault::AnswerLost, Fault::RequestLost, Fault::RolledBack] {
        for at in 0..3 {
            let world = Shared::default();
            let mut faults = vec![None; at];
            faults.extend([Some(fault), Some(fault)]);
            world.lock().faults = faults.into();
            let one_by_one = EpochBounds { max_events: 1, ..settings().epoch };
            let settings = Settings { epoch: one_by_one, ..settings() };
            let (end, reading) = run(settings, Lines::new(&THREE), &world, &MemoryState::new("a")).await;
            assert_eq!(end, DeliveryEnd::Finished, "{fault:?} at {at}");
            assert_eq!(world.lock().rows, THREE, "{fault:?} at {at}");
            assert!(reading.ledger.adds_up());
        }
    }
}

/// Goal: a commit that took only the first inputs goes on with the rest as the next epochs, numbered without a gap, and one
/// in doubt is known by its position. Method: two inputs a commit, each fault at each commit.
#[tokio::test]
async fn a_commit_of_the_first_inputs_goes_on_with_the_rest() {
    const FIVE: [&str; 5] = [r#"{"id":1}"#, r#"{"id":2}"#, r#"{"id":3}"#, r#"{"id":4}"#, r#"{"id":5}"#];
    for fault in [None, Some(Fault::AnswerLost), Some(Fault::RequestLost), Some(Fault::RolledBack)] {
        for at in 0..3 {
            let world = Shared::default();
            world.lock().prefix = Some(2);
            let mut faults = vec![None; at];
            faults.extend([fault, fault]);
            world.lock().faults = faults.into();
            let (end, reading) = run(settings(), Lines::new(&FIVE), &world, &MemoryState::new("a")).await;
            assert_eq!(end, DeliveryEnd::Finished, "{fault:?} at {at}");
            let world = world.lock();
            assert_eq!(world.rows, FIVE, "{fault:?} at {at}");
            let numbers: Vec<u64> = world.epochs.iter().map(|record| record.epoch.0).collect();
            assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{fault:?} at {at}");
            assert!(world.epochs.windows(2).all(|two| two[0].to == two[1].from), "{fault:?} at {at}");
            assert_eq!(reading.ledger.totals, Totals { read: 5, delivered: 5, rows: 5, ..Totals::default() });
        }
    }
}

/// Goal: a commit that only meets refusals and runs into its timeout says what the target said. Method: rows refused with
/// a foreign key, for ever; what a person sees meanwhile.
#[tokio::test]
async fn what_the_target_said_last_is_in_every_message() {
    let world = Shared::default();
    let cause = hapax_model::letter::Cause {
        stage: hapax_model::letter::Stage::Write,
        code: "HX2033",
        message: "violates foreign key constraint \"customer\"".into(),
        fingerprint: "foreign key".into(),
    };
    world.lock().refuses = Some(cause);
    let short = EpochBounds { commit_timeout: Duration::from_millis(100), ..settings().epoch };
    let settings = Settings { epoch: short, ..settings() };
    let run = control();
    let sink = MemorySink::new(&settings.id, &world);
    let state = Some(MemoryState::new("a"));
    let delivery = Delivery { settings, source: Lines::new(&THREE), sink, state };
    let delivering = tokio::spawn(deliver(delivery, run.control.clone()));
    let troubled = |code: &'static str| {
        let meter = Arc::clone(&run.control.meter);
        async move {
            loop {
                if let Some(trouble) = meter.read().trouble.filter(|trouble| trouble.code == code) {
                    return trouble.message;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    let limit = Duration::from_secs(60);
    let timed_out = tokio::time::timeout(limit, troubled("HX4006")).await.expect("the commit runs into its timeout");
    assert!(timed_out.contains("no answer within 100 ms") && timed_out.contains("foreign key"), "{timed_out}");
    delivering.abort();
}

/// Goal: at-most-once never repeats an epoch in doubt, and nobody loses it unseen: it is a letter.
#[tokio::test]
async fn an_epoch_in_doubt_is_never_repeated_under_at_most_once() {
    let world = Shared::default();
    world.lock().faults = vec![Some(Fault::RequestLost)].into();
    let settings = Settings { after_doubt: AfterDoubt::GiveUp, ..settings() };
    let (end, reading) = run(settings, Lines::new(&THREE), &world, &MemoryState::new("a")).await;
    assert_eq!(end, DeliveryEnd::Finished);
    assert!(world.lock().rows.is_empty());
    assert_eq!(world.lock().letters.iter().map(|l| l.cause.code).collect::<Vec<_>>(), ["HX2040"; 3]);
    assert_eq!(reading.ledger.totals, Totals { read: 3, dead: 3, ..Totals::default() });
}

/// Goal: what died in doubt says nothing against the table, and is no reason to stop for a bad input later. Method: a whole epoch in
/// doubt, and then one bad input where half may be rejected.
#[tokio::test]
async fn inputs_in_doubt_are_no_rejects() {
    let world = Shared::default();
    world.lock().faults = vec![Some(Fault::RequestLost)].into();
    // Few enough not to be judged themselves, and to be remembered.
    let lines: Vec<&str> = std::iter::repeat_n(THREE[0], 90 + 20).chain(["{"]).collect();
    let epoch = EpochBounds { max_events: 90, ..settings().epoch };
    let rejects = RejectRule::new(OnReject::DeadLetter, 500);
    let settings = Settings { after_doubt: AfterDoubt::GiveUp, epoch, rejects, ..settings() };
    let (end, reading) = run(settings, Lines::new(&lines), &world, &MemoryState::new("a")).await;
    assert_eq!(end, DeliveryEnd::Finished);
    assert_eq!(reading.ledger.totals, Totals { read: 111, delivered: 20, dead: 91, rows: 20, ..Totals::default() });
}

/// Goal: the letters of an epoch in doubt get past doubt themselves, once each. Method: each fault at their commit, too.
#[tokio::test]
async fn letters_of_an_epoch_in_doubt_are_committed_until_they_are_there() {
    for fault in [Fault::AnswerLost, Fault::RequestLost, Fault::RolledBack] {
        let world = Shared::default();
        world.lock().faults = vec![Some(Fault::RequestLost), Some(fault), Some(fault)].into();
        let settings = Settings { after_doubt: AfterDoubt::GiveUp, ..settings() };
        let (end, reading) = run(settings, Lines::new(&THREE), &world, &MemoryState::new("a")).await;
        assert_eq!(end, DeliveryEnd::Finished, "{fault:?}");
        assert!(world.lock().rows.is_empty(), "{fault:?}");
        assert_eq!(world.lock().letters.len(), 3, "{fault:?}");
        assert_eq!(reading.ledger.totals, Totals { read: 3, dead: 3, ..Totals::default() }, "{fault:?}");
    }
}

/// Goal: a worker whose delivery was taken writes nothing and ends with code 4. Method: stolen before the commit, and
/// between a lost commit and the reclaim; without a lease of its own it must not fight for it.
#[tokio::test]
async fn a_fenced_worker_stops_with_code_four() {
    for fault in [Fault::StolenBefore, Fault::LostThenStolen] {
        let (world, state) = (Shared::default(), MemoryState::new("a"));
        world.lock().faults = vec![Some(fault)].into();
        let thief = MemoryState { me: "b", table: Arc::clone(&state.table) };
        let stolen = tokio::spawn(async move {
            while thief.lock().lease.is_none() {
                tokio::task::yield_now().await;
            }
            let until = tokio::time::Instant::now() + Duration::from_secs(60);
            thief.lock().lease = Some(("b", until));
        });
        let (end, _) = run(settings(), Lines::new(&THREE), &world, &state).await;
        stolen.await.expect("the thief ends");
        assert_eq!(exit_code(&end), 4, "{fault:?}: {end:?}");
        assert!(world.lock().rows.is_empty(), "{fault:?}");
    }
}

/// Goal: fenced while the lease is still ours, the delivery claims again and goes on; it does not do so for ever.
#[tokio::test(start_paused = true)]
async fn a_fenced_worker_with_its_lease_claims_again_three_times() {
    let world = Shared::default();
    world.lock().faults = vec![Some(Fault::StolenBefore); 3].into();
    let (end, _) = run(settings(), Lines::new(&THREE), &world, &MemoryState::new("a")).await;
    assert_eq!(end, DeliveryEnd::Finished);
    assert_eq!(world.lock().rows, THREE);
    let world = Shared::default();
    world.lock().faults = vec![Some(Fault::StolenBefore); 4].into();
    let (end, _) = run(settings(), Lines::new(&THREE), &world, &MemoryState::new("a")).await;
    assert_eq!(exit_code(&end), 4);
}

/// Goal: an abort that fails stops nobody: the next claim forgets what was staged. Method: fail it after a fenced commit.
#[tokio::test(start_paused = true)]
async fn an_abort_that_fails_is_left_to_the_next_claim() {
    let world = Shared::default();
    world.lock().faults = vec![Some(Fault::StolenBefore)].into();
    world.lock().failing_aborts = 1;
    let (end, reading) = run(settings(), Lines::new(&THREE), &world, &MemoryState::new("a")).await;
    assert_eq!((end, world.lock().failing_aborts), (DeliveryEnd::Finished, 0));
    assert_eq!(world.lock().rows, THREE);
    assert!(reading.ledger.adds_up());
    let failed = SinkError::TransactionAbortFailed { target: "memory".into(), message: "no network".into() };
    assert_eq!((failed.code(), failed.reaction()), ("HX4008", Reaction::Retry));
}

/// Goal: a refused start fences nobody. Method: change the key, the target; look at the generation.
#[tokio::test]
async fn a_changed_contract_stops_before_it_fences() {
    let (world, state) = (Shared::default(), MemoryState::new("a"));
    run(settings(), Lines::new(&THREE), &world, &state).await;
    let generation = |world: &Shared| world.lock().progress[&id("orders")].generation;
    assert_eq!(generation(&world), Generation(1));
    let changed = Settings { contract: settings().contract.with(KEY, "h1:id"), ..settings() };
    let (end, _) = run(changed, Lines::new(&THREE), &world, &state).await;
    assert_eq!(exit_code(&end), 5);
    assert!(message(&end).contains("key was \"offset\", is \"h1:id\""), "{}", message(&end));
    world.lock().identity = "another table".into();
    let (end, _) = run(settings(), Lines::new(&THREE), &world, &state).await;
    assert_eq!(exit_code(&end), 5);
    assert_eq!(generation(&world), Generation(1));
    assert_eq!(world.lock().rows, THREE);
}

/// Goal: another incarnation of the source stops and names both.
#[tokio::test]
async fn another_incarnation_of_the_source_stops() {
    let (world, state) = (Shared::default(), MemoryState::new("a"));
    run(settings(), Lines::new(&THREE), &world, &state).await;
    let other = Lines { incarnation: "other lines", ..Lines::new(&THREE) };
    let (end, _) = run(settings(), other, &world, &state).await;
    assert_eq!(exit_code(&end), 5);
    assert!(message(&end).contains("1:lines") && message(&end).contains("other lines"), "{}", message(&end));
}

/// Goal: a renamed workflow stops and names the old one; a second workflow that is configured does not.
#[tokio::test]
async fn a_renamed_workflow_stops_and_names_the_old_one() {
    let (world, state) = (Shared::default(), MemoryState::new("a"));
    run(settings(), Lines::new(&THREE), &world, &state).await;
    let renamed = Settings { id: id("sales"), configured: [("sales".into(), "memory".into())].into(), ..settings() };
    let (end, _) = run(renamed.clone(), Lines::new(&THREE), &world, &state).await;
    assert_eq!(exit_code(&end), 5);
    assert!(message(&end).contains("hapax reset sales --adopt orders"), "{}", message(&end));
    let both = [("sales".into(), "memory".into()), ("orders".into(), "memory".into())].into();
    let (end, _) =
        run(Settings { configured: both, ..renamed }, Lines::new(&THREE), &world, &MemoryState::new("b")).await;
    assert_eq!(end, DeliveryEnd::Finished);
}

/// Goal: a target restored to an older copy is rewound; one that lost its progress altogether is only filled again if
/// nothing would be skipped.
#[tokio::test]
async fn a_target_that_went_back_is_rewound_or_stops() {
    let (world, state) = (Shared::default(), MemoryState::new("a"));
    let witness = Witness { epoch: Epoch(9), bookmark: Bookmark::at("lines", 3) };
    state.lock().witness = Some(witness.clone());
    let (end, _) = run(settings(), Lines::new(&THREE), &world, &state).await;
    assert_eq!(end, DeliveryEnd::Finished, "the source holds everything");
    assert_eq!(world.lock().rows, THREE);
    let (world, state) = (Shared::default(), MemoryState::new("a"));
    state.lock().witness = Some(witness);
    let latest = Settings { start: StartAt::Latest, ..settings() };
    let (end, _) = run(latest, Lines::new(&THREE), &world, &state).await;
    assert_eq!((exit_code(&end), code(&end)), (5, "HX4018"), "from the latest on, the rest would be skipped");
    assert!(world.lock().progress.is_empty(), "nothing was claimed");
}

/// Goal: a range with a hole is not rewound over: code 5, both positions, and what is missing. Method: a witness in the third
/// file of a source that has lost the second.
#[tokio::test]
async fn a_target_that_went_back_behind_a_hole_stops() {
    let (world, state) = (Shared::default(), MemoryState::new("a"));
    let bookmark = Bookmark::new(Incarnation::new(3, "lines"), Position::at(3));
    state.lock().witness = Some(Witness { epoch: Epoch(9), bookmark });
    let holed = Lines { lost_number: Some(2), ..Lines::new(&THREE) };
    let (end, _) = run(settings(), holed, &world, &state).await;
    assert_eq!((exit_code(&end), code(&end)), (5, "HX4018"), "{end:?}");
    for word in ["epoch 9", "3 of 3:lines", "number 2 is gone"] {
        assert!(message(&end).contains(word), "{word}: {}", message(&end));
    }
    assert!(world.lock().progress.is_empty(), "nothing was claimed");
}

/// Goal: a state store that stays away stops the worker before it touches the target, with the store's own words. Method:
/// one that refuses from the lease on, and one from the witness on.
#[tokio::test]
async fn a_state_store_that_stays_away_stops_with_its_words() {
    let retries = Retries { give_up_after: Duration::from_millis(30), ..settings().retries };
    for away_from in [Away::Lease, Away::Witness] {
        let (world, state) = (Shared::default(), MemoryState::new("a"));
        state.lock().away = Some(away_from);
        let settings = Settings { retries: retries.clone(), ..settings() };
        let (end, _) = run(settings, Lines::new(&THREE), &world, &state).await;
        assert_eq!((exit_code(&end), code(&end)), (1, "HX4020"), "{away_from:?}: {end:?}");
        assert!(message(&end).contains("no such file"), "{}", message(&end));
        assert!(world.lock().progress.is_empty(), "nothing was claimed");
    }
}

/// Goal: a move that the life cycle does not list is an error with a page of its own, and changes nothing. Method: a
/// commit, a write and an abort of a sink that was never claimed.
#[tokio::test]
async fn an_illegal_move_has_its_page() {
    let mut sink = MemorySink::new(&id("orders"), &Shared::default());
    let before = sink.transaction_state();
    let error = sink.abort_transaction().await.expect_err("there is nothing to abort");
    assert_eq!((error.code(), error.reaction()), ("HX4005", Reaction::Stop(1)), "{error}");
    assert_eq!(sink.transaction_state(), before);
}

/// Goal: asked to end, a worker commits what it has read and reads no more.
#[tokio::test]
async fn a_drained_worker_delivers_what_it_has_read() {
    let (world, state, run) = (Shared::default(), MemoryState::new("a"), control());
    let slow = EpochBounds { interval: Duration::from_secs(3600), ..settings().epoch };
    let settings = Settings { follow: Follow::Yes, epoch: slow, ..settings() };
    let sink = MemorySink::new(&settings.id, &world);
    let delivery = Delivery { settings, source: Lines::new(&THREE), sink, state: Some(state) };
    let running = tokio::spawn(deliver(delivery, run.control.clone()));
    while run.control.meter.read().ledger.in_flight < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(world.lock().rows.is_empty());
    run.stop.send_replace(true);
    assert_eq!(running.await.expect("no panic"), DeliveryEnd::Drained);
    assert_eq!(world.lock().rows, THREE);
}

/// Goal: a target that stays away does not keep a worker alive that was asked to end; what it had read is not lost.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_although_the_target_is_away() {
    let (world, run) = (Shared::default(), control());
    world.lock().faults = vec![Some(Fault::RolledBack); 1000].into();
    run.stop.send_replace(false);
    let settings = Settings { follow: Follow::Yes, ..settings() };
    let sink = MemorySink::new(&settings.id, &world);
    let delivery = Delivery { settings, source: Lines::new(&THREE), sink, state: Some(MemoryState::new("a")) };
    let running = tokio::spawn(deliver(delivery, run.control.clone()));
    while run.control.meter.read().retries < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    run.stop.send_replace(true);
    assert_eq!(exit_code(&running.await.expect("no panic")), 1);
    assert_eq!(world.lock().progress[&id("orders")].epoch, Epoch(0));
}

/// Goal: a gap in the source stops with code 5, after what was read before it is delivered.
#[tokio::test]
async fn what_was_read_before_a_gap_is_delivered() {
    let world = Shared::default();
    let lines = Lines { gap_at: Some(3), ..Lines::new(&THREE) };
    let (end, _) = run(settings(), lines, &world, &MemoryState::new("a")).await;
    assert_eq!(exit_code(&end), 5);
    assert_eq!(world.lock().rows, THREE);
}

/// Goal: what is no event is a letter with its bytes, and the rest goes on.
#[tokio::test]
async fn an_input_that_is_no_event_is_a_letter_and_the_rest_goes_on() {
    let world = Shared::default();
    let lines = Lines::new(&[r#"{"id":1}"#, "nonsense", r#"{"id":3}"#]);
    let (end, reading) = run(settings(), lines, &world, &MemoryState::new("a")).await;
    assert_eq!(end, DeliveryEnd::Finished);
    assert_eq!(world.lock().rows, [r#"{"id":1}"#, r#"{"id":3}"#]);
    let letter = world.lock().letters[0].clone();
    assert_eq!((letter.position.offset, letter.cause.code), (1, "HX2001"));
    assert_eq!(letter.bytes, hapax_model::letter::LetterBytes::Whole(b"nonsense".to_vec()));
    assert_eq!(reading.ledger.totals, Totals { read: 3, delivered: 2, dead: 1, rows: 2, ..Totals::default() });
}

/// Goal: a field that nothing takes is counted, and loses nothing.
#[tokio::test]
async fn a_field_without_a_column_is_counted() {
    let world = Shared::default();
    let lines = Lines::new(&[r#"{"id":1,"note":"x"}"#, r#"{"id":2,"note":"y"}"#]);
    let (end, reading) = run(settings(), lines, &world, &MemoryState::new("a")).await;
    assert_eq!(end, DeliveryEnd::Finished);
    assert_eq!(reading.unknown_fields, [("note".to_owned(), 2)]);
}

/// Goal: a second worker waits while the first lives, and takes over when it is gone or when a person says so.
#[tokio::test]
async fn a_second_worker_stands_by_until_the_lease_ends() {
    let (world, state, run) = (Shared::default(), MemoryState::new("a"), control());
    let other = MemoryState { me: "b", table: Arc::clone(&state.table) };
    other.lock().lease = Some(("b", tokio::time::Instant::now() + Duration::from_secs(3600)));
    let sink = MemorySink::new(&id("orders"), &world);
    let delivery = Delivery { settings: settings(), source: Lines::new(&THREE), sink, state: Some(state.clone()) };
    let running = tokio::spawn(deliver(delivery, run.control.clone()));
    wait_for(|| run.control.meter.read().state == WorkerState::Standby).await;
    assert!(world.lock().progress.is_empty(), "a standby claims nothing");
    other.lock().lease = Some(("b", tokio::time::Instant::now()));
    assert_eq!(running.await.expect("no panic"), DeliveryEnd::Finished);
    other.lock().lease = Some(("b", tokio::time::Instant::now() + Duration::from_secs(3600)));
    let now = Settings { take_over: TakeOver::Now, ..settings() };
    let (end, _) = self::run(now, Lines::new(&THREE), &world, &state).await;
    assert_eq!(end, DeliveryEnd::Finished);
}

/// Goal: bounds and memory close epochs early, and every input still arrives. Method: a bound of two inputs, then a
/// budget that holds one buffer only.
#[tokio::test]
async fn bounds_and_memory_close_an_epoch_early() {
    let lines: Vec<String> = (0..500).map(|n| format!("{{\"id\":{n}}}")).collect();
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let world = Shared::default();
    let two = EpochBounds { max_events: 2, interval: Duration::from_secs(3600), ..settings().epoch };
    let (end, reading) =
        run(Settings { epoch: two, ..settings() }, Lines::new(&texts), &world, &MemoryState::new("a")).await;
    assert_eq!(end, DeliveryEnd::Finished);
    assert_eq!(world.lock().rows, lines);
    assert_eq!(world.lock().epochs.len(), 250);
    assert!(reading.closed_early.total() >= 250);
    let (world, run) = (Shared::default(), control());
    let control = Control { memory: MemoryBudget::new(1), ..run.control.clone() };
    let sink = MemorySink::new(&id("orders"), &world);
    let delivery = Delivery { settings: settings(), source: Lines::new(&texts), sink, state: None::<MemoryState> };
    assert_eq!(deliver(delivery, control).await, DeliveryEnd::Finished);
    assert_eq!(world.lock().rows, lines);
}

/// Goal: lanes that share one budget never wait for each other's empty buffers. Method: two deliveries of many epochs,
/// and a budget that holds one buffer only.
#[tokio::test]
async fn lanes_take_turns_with_a_small_budget() {
    let lines: Vec<String> = (0..500).map(|n| format!("{{\"id\":{n}}}")).collect();
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let run = control();
    let memory = MemoryBudget::new(1);
    let lane = |name: &str| {
        let (world, control) = (Shared::default(), Control { memory: Arc::clone(&memory), ..run.control.clone() });
        let bounds = EpochBounds { max_events: 7, ..settings().epoch };
        let settings = Settings { id: id(name), epoch: bounds, ..settings() };
        let sink = MemorySink::new(&settings.id, &world);
        let delivery = Delivery { settings, source: Lines::new(&texts), sink, state: None::<MemoryState> };
        (world, deliver(delivery, control))
    };
    let ((one, first), (other, second)) = (lane("one"), lane("other"));
    let ends = tokio::time::timeout(Duration::from_secs(60), Box::pin(async { tokio::join!(first, second) })).await;
    assert_eq!(ends.expect("nobody waits for ever"), (DeliveryEnd::Finished, DeliveryEnd::Finished));
    assert_eq!((&one.lock().rows, &other.lock().rows), (&lines, &lines));
    assert_eq!(memory.used(), 0);
}

/// Goal: a pause delivers what was read, keeps the lease, reads no more, and ends with the word to go on. Method: a
/// source that never ends, paused while it flows, resumed; the drain of a paused delivery.
#[tokio::test]
async fn a_paused_delivery_rests_with_its_lease_and_goes_on() {
    let (world, state, run) = (Shared::default(), MemoryState::new("a"), control());
    let settings = Settings { follow: Follow::Yes, ..settings() };
    let lines = Lines::new(&THREE);
    let (sink, more) = (MemorySink::new(&settings.id, &world), Arc::clone(&lines.feed));
    let delivery = Delivery { settings, source: lines, sink, state: Some(state.clone()) };
    let task = tokio::spawn(deliver(delivery, run.control.clone()));
    wait_for(|| world.lock().rows.len() == 3).await;
    state.lock().paused = true;
    wait_for(|| run.control.meter.read().state == WorkerState::Paused).await;
    assert_eq!(run.control.meter.read().ledger.in_flight, 0, "what was read is delivered");
    more.lock().expect("unpoisoned").push(r#"{"id":4}"#.to_owned());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(world.lock().rows.len(), 3, "nothing is read while it is paused");
    assert!(state.lock().lease.is_some(), "the lease is kept");
    assert_eq!(state.lock().notes.last().map(|note| note.state), Some(WorkerState::Paused));
    state.lock().paused = false;
    wait_for(|| world.lock().rows.len() == 4).await;
    assert_eq!(run.control.meter.read().state, WorkerState::Running);
    state.lock().paused = true;
    wait_for(|| run.control.meter.read().state == WorkerState::Paused).await;
    run.stop.send_replace(true);
    assert_eq!(task.await.expect("no panic"), DeliveryEnd::Drained);
}

/// Goal: a delivery that starts paused claims nothing until it is resumed. Method: pause first, then start.
#[tokio::test]
async fn a_delivery_that_starts_paused_claims_nothing() {
    let (world, state, run) = (Shared::default(), MemoryState::new("a"), control());
    state.lock().paused = true;
    let sink = MemorySink::new(&settings().id, &world);
    let delivery = Delivery { settings: settings(), source: Lines::new(&THREE), sink, state: Some(state.clone()) };
    let task = tokio::spawn(deliver(delivery, run.control.clone()));
    wait_for(|| run.control.meter.read().state == WorkerState::Paused).await;
    assert!(world.lock().progress.is_empty(), "nothing was claimed");
    state.lock().paused = false;
    assert_eq!(task.await.expect("no panic"), DeliveryEnd::Finished);
    assert_eq!(world.lock().rows, THREE);
}

/// Waits until `condition` holds, as long as a machine ten times slower needs.
#[track_caller]
fn wait_for(condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    let asked_at = std::panic::Location::caller();
    async move {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(120);
        while !condition() {
            assert!(tokio::time::Instant::now() < deadline, "what {asked_at} waits for never came true");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
