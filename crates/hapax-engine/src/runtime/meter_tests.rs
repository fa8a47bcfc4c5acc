use hapax_model::epoch::Generation;
use hapax_model::letter::Stage;
use hapax_model::position::Bookmark;
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};

use super::*;

fn record(epoch: u64, read: u64, opened_at_ms: u64) -> EpochRecord {
    EpochRecord {
        epoch: Epoch(epoch),
        from: Bookmark::at("f", 0),
        to: Bookmark::at("f", read),
        counts: Totals { read, delivered: read, rows: read, ..Totals::default() },
        opened_at_ms,
        closed_at_ms: opened_at_ms,
        rejects: RejectRule::new(OnReject::DeadLetter, 1000),
        pass: crate::second_pass::SecondPass::default(),
    }
}

fn committed(epoch: u64, written: Written, causes: Vec<CauseCount>) -> Committed {
    let progress = Progress {
        generation: Generation(1),
        epoch: Epoch(epoch),
        bookmark: Bookmark::at("f", 9),
        contract: Contract::default(),
        session: "test".into(),
        snapshot: None,
        totals: Totals { read: 9, delivered: 8, dead: 1, ..Totals::default() },
    };
    Committed { progress, stored: true, written, dead_inputs: vec![0; causes.len()], causes }
}

fn cause(fingerprint: &str, count: u64) -> CauseCount {
    CauseCount { stage: Stage::Map, code: "HX2020", fingerprint: fingerprint.into(), example: "x".into(), count }
}

/// Goal: the oldest input in flight is that of the oldest epoch, also when the next one fills already. Method: two
/// epochs overlap, as they do under load, and commit one after the other.
#[test]
fn the_oldest_in_flight_moves_on_with_each_commit() {
    let meter = Meter::default();
    assert_eq!(meter.read().oldest_in_flight_ms, None);
    meter.epoch_begun(100);
    meter.read_inputs(4, 40);
    meter.epoch_begun(200);
    meter.read_inputs(5, 50);
    assert_eq!((meter.read().oldest_in_flight_ms, meter.read().ledger.in_flight), (Some(100), 9));
    let done = |epoch, read, at| {
        let committed = committed(epoch, Written::default(), Vec::new());
        meter.committed(&record(epoch, read, at), &committed, &Contract::default(), 1, Duration::from_millis(3));
    };
    done(1, 4, 100);
    assert_eq!((meter.read().oldest_in_flight_ms, meter.read().ledger.in_flight), (Some(200), 5));
    done(2, 5, 200);
    let reading = meter.read();
    assert_eq!((reading.oldest_in_flight_ms, reading.ledger.in_flight, reading.bytes_read), (None, 0, 90));
    assert_eq!((reading.commits, reading.commit_latency.count, reading.delivery_latency.count), (2, 2, 9));
    assert!(meter.recent_latency(0.5).is_some());
}

/// Goal: rows, causes and repeats add up over epochs, each repeat in its own layer. Method: one epoch per mode.
#[test]
fn repeats_and_causes_are_counted_by_layer() {
    let meter = Meter::default();
    let commit = |mode: ConflictMode, events: usize, written: Written, causes: Vec<CauseCount>| {
        let contract = Contract::default().with(MODE, mode.name());
        meter.committed(&record(1, 0, 0), &committed(1, written, causes), &contract, events, Duration::ZERO);
    };
    // Six events of three keys: one was reduced, one key was there, one row was refused.
    let ignore = Written { upserts: 5, inserts: 3, unchanged: 1, failures: 1, ..Written::default() };
    commit(ConflictMode::Ignore, 6, ignore, vec![cause("a", 1)]);
    commit(
        ConflictMode::Newer,
        4,
        Written { upserts: 4, updates: 2, unchanged: 2, ..Written::default() },
        vec![cause("a", 2)],
    );
    commit(ConflictMode::Update, 4, Written { upserts: 2, updates: 2, ..Written::default() }, vec![cause("b", 1)]);
    // Landed without an answer: the split is unknown, so nothing is taken for a repeat of the table.
    commit(ConflictMode::Ignore, 4, Written { upserts: 4, ..Written::default() }, Vec::new());
    meter.landed(4);
    meter.refused_by_fence(7);
    let reading = meter.read();
    assert_eq!(reading.repeats, Repeats { ignore: 2, newer: 2, landed: 4, fence: 7 });
    assert_eq!(reading.causes, [cause("a", 3), cause("b", 1)]);
    assert_eq!((reading.written.upserts, reading.written.inserts, reading.written.updates), (15, 3, 4));
}

/// Goal: trouble is told with the time of its beginning, and forgotten when it is over. Method: twice, then recovered.
#[test]
fn trouble_lasts_until_it_is_over() {
    let meter = Meter::default();
    meter.set_state(WorkerState::Running);
    meter.set_state(WorkerState::Waiting);
    meter.troubled("HX4002", "gone");
    let since = meter.read().trouble.map(|trouble| trouble.since_ms);
    meter.troubled("HX4001", "still gone");
    let trouble = meter.read().trouble.expect("trouble");
    assert_eq!((trouble.code, Some(trouble.since_ms)), ("HX4001", since));
    meter.recovered();
    assert_eq!((meter.read().state, meter.read().trouble), (WorkerState::Running, None));
    meter.set_state(WorkerState::Paused);
    meter.recovered();
    assert_eq!(meter.read().state, WorkerState::Paused);
}
