//! Epochs as somebody who watches sees them: one commits while the next one fills, and how the last ones ended is kept.

use hapax_model::tracker::EpochState;

use super::*;

/// Epochs of so many inputs.
fn epochs_of(max_events: u64) -> EpochBounds {
    EpochBounds { max_events, ..settings().epoch }
}

/// A delivery that runs beside the test, without a state store.
fn start(settings: Settings, lines: &[&str], world: &Shared) -> (Run, tokio::task::JoinHandle<DeliveryEnd>) {
    let run = control();
    let sink = MemorySink::new(&settings.id, world);
    let delivery = Delivery { settings, source: Lines::new(lines), sink, state: None::<MemoryState> };
    let running = tokio::spawn(deliver(delivery, run.control.clone()));
    (run, running)
}

/// The epochs that a meter keeps: number, how it ended, its events, and whether it is over.
fn kept(run: &Run) -> Vec<(u64, EpochState, u64, bool)> {
    let records = run.control.meter.epochs();
    records.iter().map(|r| (r.epoch.0, r.state, r.events_written, r.completed_at_ms.is_some())).collect()
}

fn aborted_and_in_doubt(run: &Run) -> (u64, u64) {
    let reading = run.control.meter.read();
    (reading.aborts, reading.in_doubt)
}

/// Goal: a commit is no pause for reading: the next epoch fills meanwhile, and no third one. Method: a commit that never
/// answers, epochs of two inputs, the clock run ahead.
#[tokio::test(start_paused = true)]
async fn the_next_epoch_fills_while_one_commits() {
    let lines: Vec<String> = (0..20).map(|n| format!("{{\"id\":{n}}}")).collect();
    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let world = Shared::default();
    world.lock().faults = [Some(Fault::Blocked)].into();
    let epoch = EpochBounds { commit_timeout: Duration::from_secs(3600), ..epochs_of(2) };
    let (run, running) = start(Settings { epoch, ..settings() }, &texts, &world);
    let in_flight = || run.control.meter.read().ledger.in_flight;
    wait_for(|| in_flight() == 4).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(in_flight(), 4, "one commits, one is full, and there is no third");
    assert_eq!(kept(&run), [(1, EpochState::Open, 2, false)]);
    assert!(world.lock().rows.is_empty());
    running.abort();
}

/// Goal: an abort that never answers is given up after `abortTimeout`, wherever one is needed, and a claim does it. Method: one
/// that hangs after a fenced commit, before the letters of a commit in doubt, and before other fields, with the clock run
/// ahead.
#[tokio::test(start_paused = true)]
async fn an_abort_that_hangs_is_given_up_in_time() {
    let cases = [
        (Fault::StolenBefore, AfterDoubt::CommitAgain, 3),
        (Fault::RequestLost, AfterDoubt::GiveUp, 0),
        (Fault::OtherFields, AfterDoubt::CommitAgain, 3),
    ];
    for (fault, after_doubt, rows) in cases {
        let world = Shared::default();
        world.lock().faults = [Some(fault)].into();
        world.lock().hanging_aborts = 1;
        let epoch = EpochBounds { abort_timeout: Duration::from_secs(7), ..settings().epoch };
        let settings = Settings { epoch, after_doubt, ..settings() };
        let begun = tokio::time::Instant::now();
        let state = MemoryState::new("a");
        let running = run(settings, Lines::new(&THREE), &world, &state);
        let ended = tokio::time::timeout(Duration::from_secs(600), running).await;
        let (end, reading) = ended.unwrap_or_else(|_| panic!("{fault:?}: nobody gave the abort up"));
        let world = world.lock();
        assert_eq!((end, world.hanging_aborts), (DeliveryEnd::Finished, 0), "{fault:?}");
        assert_eq!((world.rows.len(), world.letters.len()), (rows, 3 - rows), "{fault:?}");
        assert!(reading.ledger.adds_up(), "{fault:?}");
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(7) && took < Duration::from_secs(10), "{fault:?}: {took:?}");
    }
}

/// Goal: an abort that fails before the next transaction can begin is done by a claim at once. Method: one failure each.
#[tokio::test(start_paused = true)]
async fn an_abort_that_fails_is_done_by_a_claim() {
    for (fault, after_doubt) in
        [(Fault::RequestLost, AfterDoubt::GiveUp), (Fault::OtherFields, AfterDoubt::CommitAgain)]
    {
        let world = Shared::default();
        world.lock().faults = [Some(fault)].into();
        world.lock().failing_aborts = 1;
        let settings = Settings { after_doubt, ..settings() };
        let (end, reading) = run(settings, Lines::new(&THREE), &world, &MemoryState::new("a")).await;
        let world = world.lock();
        assert_eq!((end, world.failing_aborts), (DeliveryEnd::Finished, 0), "{fault:?}");
        assert_eq!(world.rows.len() + world.letters.len(), 3, "{fault:?}");
        assert!(reading.ledger.adds_up(), "{fault:?}");
    }
}

/// Goal: how the last epochs ended is kept and counted, and a commit again replaces it. Method: the second epoch rolled back or
/// lost, looked at while the next try is far away, and once it has landed.
#[tokio::test]
async fn how_the_last_epochs_ended_is_kept_and_counted() {
    let cases = [(Fault::RolledBack, EpochState::Aborted, (1, 0)), (Fault::RequestLost, EpochState::InDoubt, (0, 1))];
    for (fault, fate, counted) in cases {
        let in_an_hour = Retries { backoff: vec![Duration::from_secs(3600)], ..Retries::default() };
        for (retries, end) in [(in_an_hour, fate), (settings().retries, EpochState::Committed)] {
            let world = Shared::default();
            world.lock().faults = [None, Some(fault)].into();
            let settings = Settings { epoch: epochs_of(1), retries, ..settings() };
            let (run, running) = start(settings, &THREE[..2], &world);
            wait_for(|| kept(&run) == [(1, EpochState::Committed, 1, true), (2, end, 1, true)]).await;
            assert_eq!(aborted_and_in_doubt(&run), counted, "{fault:?}");
            running.abort();
        }
    }
}

/// Goal: no epoch of a delivery that ended counts as open. Method: the second one refused for good, fenced, and never answered
/// while the delivery is asked to end.
#[tokio::test(start_paused = true)]
async fn no_epoch_stays_open_behind_a_stop() {
    let cases = [
        (Fault::Unfit, EpochState::Aborted, (1, 0)),
        (Fault::StolenBefore, EpochState::Aborted, (4, 0)),
        (Fault::Blocked, EpochState::InDoubt, (0, 1)),
    ];
    for (fault, fate, counted) in cases {
        let world = Shared::default();
        // A fenced worker without a state store claims again three times.
        world.lock().faults = [None].into_iter().chain([Some(fault); 4]).collect();
        let epoch = EpochBounds { commit_timeout: Duration::from_secs(3600), ..epochs_of(1) };
        let (run, running) = start(Settings { epoch, ..settings() }, &THREE[..2], &world);
        wait_for(|| kept(&run).len() == 2).await;
        run.stop.send_replace(fault == Fault::Blocked);
        let end = running.await.expect("no panic");
        assert!(matches!(end, DeliveryEnd::Stopped(_)), "{fault:?}: {end:?}");
        assert_eq!(kept(&run), [(1, EpochState::Committed, 1, true), (2, fate, 1, true)], "{fault:?}");
        assert_eq!(aborted_and_in_doubt(&run), counted, "{fault:?}");
    }
}
