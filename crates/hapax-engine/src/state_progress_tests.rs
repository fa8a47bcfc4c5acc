//! Progress beside the target: what is saved when, what a failure between the two commits leaves, and other keys.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hapax_model::contract::Contract;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyHash};
use hapax_model::ledger::Totals;
use hapax_model::letter::{Cause, Letter, Stage};
use hapax_model::position::{Bookmark, DeliveryId, Incarnation, Position};
use hapax_model::progress::Progress;
use hapax_model::rejects::{OnReject, RejectRule};

use super::*;
use crate::batch::{Batch, Layout, Operation, OutputEvent};
use crate::second_pass::SecondPass;
use crate::sink::{EpochRecord, Reaction, UpsertLimits, Written};

/// The target and the store of one test.
#[derive(Debug, Default)]
struct World {
    rows: Vec<u64>,
    refuse: Vec<u64>,
    /// What fits no column, and which columns there are.
    unfit: Vec<u64>,
    columns: String,
    target_away: bool,
    unreachable: bool,
    has_new_columns: bool,
    store_away: bool,
    saves_fail: bool,
    save_hangs: bool,
    saved: Option<Progress>,
    letters: Vec<Letter>,
    /// The number of the file that each was saved with.
    letter_files: Vec<u32>,
    intent: Option<Intent>,
    saves: usize,
}

#[derive(Debug, Clone, Default)]
struct Parts(Arc<Mutex<World>>);

impl Parts {
    fn lock(&self) -> std::sync::MutexGuard<'_, World> {
        self.0.lock().expect("no test panics while it holds the world")
    }
}

fn away() -> SinkError {
    SinkError::ConnectionLost { target: "memory".into(), message: "away".into() }
}

impl IdempotentSink for Parts {
    fn fields(&self) -> &[FieldPath] {
        &[]
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        Ok(TargetIdentity("memory".into()))
    }

    fn derive_dedup_key(&self, event: &OutputEvent<'_>) -> Option<KeyHash> {
        event.event_key()
    }

    async fn upsert(&mut self, event: &OutputEvent<'_>) -> Result<Written, SinkError> {
        self.lock().rows.push(event.position().offset);
        Ok(Written { upserts: 1, ..Written::default() })
    }

    async fn upsert_batch(&mut self, batch: Arc<Batch>, limits: &UpsertLimits) -> Result<WriteOutcome, SinkError> {
        let mut world = self.lock();
        if world.target_away {
            return Err(away());
        }
        if std::mem::take(&mut world.has_new_columns) {
            return Err(SinkError::FieldsAdded { target: "memory".into() });
        }
        if world.unreachable {
            return Err(SinkError::ConnectionFailed { target: "memory".into(), message: "nobody answers".into() });
        }
        let mut upserted = WriteOutcome::default();
        let rows = world.rows.len();
        for event in batch.events() {
            let offset = event.position().offset;
            if world.refuse.contains(&offset) {
                let cause = Cause {
                    stage: Stage::Write,
                    code: "HX2030",
                    message: "refused".into(),
                    fingerprint: "refused".into(),
                };
                upserted.refused.push((event.index(), cause));
            } else {
                world.rows.push(offset);
            }
        }
        if let Err(stop) = crate::bookkeeping::judge(&limits.rejects, &batch, &upserted.refused) {
            world.rows.truncate(rows);
            return Err(stop);
        }
        Ok(upserted)
    }

    fn row_rules(&self) -> String {
        self.lock().columns.clone()
    }

    fn misfits(&self, batch: &Batch) -> Vec<(usize, Cause)> {
        let world = self.lock();
        let no_column = || Cause { stage: Stage::Map, code: "HX2020", message: "no".into(), fingerprint: "no".into() };
        let events = batch.events().filter(|event| world.unfit.contains(&event.position().offset));
        events.map(|event| (event.index(), no_column())).collect()
    }

    fn dedup_strategy(&self) -> &DedupStrategy {
        &DedupStrategy::SourceOffset
    }
}

impl ProgressStore for Parts {
    async fn look(&mut self, _: &DeliveryId) -> Result<Option<Progress>, SinkError> {
        Ok(self.lock().saved.clone())
    }

    async fn others(&mut self, _: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        Ok(Vec::new())
    }

    async fn claim(&mut self, _: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
        let mut world = self.lock();
        let first = match claim {
            Claim::Take { start, contract, session } => Progress::first(start, contract, session),
            Claim::Reclaim { .. } => world.saved.clone().expect("claimed"),
        };
        let progress = world.saved.get_or_insert(first);
        progress.generation.0 += 1;
        Ok(progress.clone())
    }

    async fn save(
        &mut self,
        _: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
        letters: &[Letter],
    ) -> Result<Progress, SinkError> {
        if self.lock().save_hangs {
            std::future::pending::<()>().await;
        }
        let mut world = self.lock();
        if world.store_away || world.saves_fail {
            return Err(away());
        }
        let stored = world.saved.clone().expect("claimed");
        assert_eq!((stored.generation, stored.epoch, &stored.bookmark), (was.generation, was.epoch, &was.bookmark));
        assert_eq!(record.from, was.bookmark, "a save goes on where the last one ended");
        let totals = was.totals.plus(record.counts);
        let after = Progress { epoch: record.epoch, bookmark: record.to.clone(), totals, ..was.clone() };
        world.saved = Some(after.clone());
        world.letters.extend(letters.iter().cloned());
        world.letter_files.extend(letters.iter().map(|_| record.incarnation().number));
        world.saves += 1;
        Ok(after)
    }

    async fn load_intent(&mut self, _: &DeliveryId) -> Result<Option<Intent>, SinkError> {
        Ok(self.lock().intent.clone())
    }

    async fn save_intent(
        &mut self,
        _: &DeliveryId,
        generation: Generation,
        _: Epoch,
        intent: &Intent,
    ) -> Result<(), SinkError> {
        let mut world = self.lock();
        if world.store_away {
            return Err(away());
        }
        let owner = world.saved.as_ref().expect("claimed").generation;
        if owner != generation {
            return Err(SinkError::FencedOut { ours: generation, by: None });
        }
        world.intent = Some(intent.clone());
        Ok(())
    }
}

const HOUR: Duration = Duration::from_secs(3600);

fn id() -> DeliveryId {
    DeliveryId { workflow: "orders".into(), sink: "memory".into(), lane: "0".into() }
}

fn joined(parts: &Parts, after_crash: AfterCrash, interval: Duration) -> StateProgress<Parts, Parts> {
    StateProgress::new(id(), parts.clone(), parts.clone(), after_crash, WatchKeys::Yes, interval)
}

async fn claimed(parts: &Parts, after_crash: AfterCrash, interval: Duration) -> StateProgress<Parts, Parts> {
    let mut sink = joined(parts, after_crash, interval);
    let claim = Claim::Take { start: Bookmark::at("lines", 0), contract: Contract::default(), session: "test".into() };
    sink.init_transactions(&claim).await.expect("claims");
    sink
}

/// Events at positions `from..to`, each keyed by `key` of its position.
fn batch(from: u64, to: u64, key: fn(u64) -> u8) -> Arc<Batch> {
    let mut batch = Batch::new(Layout::new(&[]));
    for (input, offset) in (from..to).enumerate() {
        batch.inputs.push(Position::at(offset), b"{}");
        batch.push_event(input, 0, Operation::Upsert).set_keys(None, Some(KeyHash([key(offset); 16])));
    }
    Arc::new(batch)
}

fn own_key(offset: u64) -> u8 {
    u8::try_from(offset).expect("small")
}

fn record(epoch: u64, from: u64, to: u64) -> EpochRecord {
    let inputs = to - from;
    EpochRecord {
        epoch: Epoch(epoch),
        from: Bookmark::at("lines", from),
        to: Bookmark::at("lines", to),
        counts: Totals { read: inputs, delivered: inputs, rows: inputs, ..Totals::default() },
        opened_at_ms: 1,
        closed_at_ms: 2,
        rejects: RejectRule::new(OnReject::DeadLetter, 1000),
        pass: SecondPass::default(),
    }
}

async fn epoch(
    sink: &mut StateProgress<Parts, Parts>,
    number: u64,
    from: u64,
    to: u64,
    key: fn(u64) -> u8,
) -> Result<Committed, SinkError> {
    sink.begin_transaction(Epoch(number)).expect("begins");
    sink.write(batch(from, to, key)).expect("stages");
    sink.commit_transaction(&record(number, from, to)).await
}

/// Goal: rows are there at once, the position only when its interval has passed or the delivery ends.
#[tokio::test]
async fn the_position_lags_behind_the_rows_until_it_is_due() {
    let parts = Parts::default();
    let mut sink = claimed(&parts, AfterCrash::WriteAgain, HOUR).await;
    for number in 1..=3 {
        let committed = epoch(&mut sink, number, number * 2 - 2, number * 2, own_key).await.expect("commits");
        assert!(!committed.stored);
        assert_eq!(committed.progress.totals.read, number * 2);
    }
    assert_eq!(parts.lock().rows, [0, 1, 2, 3, 4, 5]);
    assert_eq!(parts.lock().saved.as_ref().map(|p| p.epoch), Some(Epoch(0)));
    assert!(
        sink.save_due().is_some_and(|due| due <= std::time::Instant::now() + HOUR),
        "due though nothing more comes"
    );
    sink.finish().await.expect("saves");
    assert_eq!(sink.save_due(), None);
    let saved = parts.lock().saved.clone().expect("saved");
    assert_eq!((saved.epoch, saved.bookmark.position.offset, saved.totals.read), (Epoch(3), 6, 6));
    assert!(saved.totals.adds_up());
    let mut at_once = claimed(&Parts::default(), AfterCrash::WriteAgain, Duration::ZERO).await;
    assert!(epoch(&mut at_once, 1, 0, 2, own_key).await.expect("commits").stored);
}

/// Goal: an epoch that is decoded again for new columns is watched once: the next life meets the keys that it expects.
/// Method: the target asks for other fields once; then a crash, and the same inputs in another worker.
#[tokio::test]
async fn an_epoch_that_is_decoded_again_has_its_keys_once() {
    let parts = Parts::default();
    let mut sink = claimed(&parts, AfterCrash::WriteAgain, HOUR).await;
    parts.lock().has_new_columns = true;
    let error = epoch(&mut sink, 1, 0, 2, own_key).await.expect_err("other fields are wanted");
    assert!(matches!(error, SinkError::FieldsAdded { .. }), "{error}");
    sink.abort_transaction().await.expect("aborts");
    epoch(&mut sink, 1, 0, 2, own_key).await.expect("commits");
    assert_eq!(parts.lock().rows, [0, 1]);
    let mut next = claimed(&parts, AfterCrash::WriteAgain, HOUR).await;
    epoch(&mut next, 1, 0, 2, own_key).await.expect("the same keys");
}

/// Goal: a position that could not be saved is saved later, with the rows written once. Method: the store away for one
/// commit, then a reclaim and the same commit again, as the runtime does.
#[tokio::test]
async fn a_failed_save_is_repeated_without_writing_the_rows_again() {
    let parts = Parts::default();
    let mut sink = claimed(&parts, AfterCrash::WriteAgain, Duration::ZERO).await;
    epoch(&mut sink, 1, 0, 2, own_key).await.expect("commits");
    parts.lock().store_away = true;
    epoch(&mut sink, 2, 2, 4, own_key).await.expect_err("the store is away");
    parts.lock().store_away = false;
    let reclaim = Claim::Reclaim { generation: Generation(1), session: "test".into() };
    assert_eq!(sink.init_transactions(&reclaim).await.expect("reclaims").epoch, Epoch(1));
    let committed = sink.commit_transaction(&record(2, 2, 4)).await.expect("commits");
    assert_eq!(parts.lock().rows, [0, 1, 2, 3]);
    assert_eq!(committed.progress.totals, Totals { read: 4, delivered: 4, rows: 4, ..Totals::default() });
}

/// Goal: a target that was away gets the epoch when it is back.
#[tokio::test]
async fn rows_that_failed_are_written_when_the_target_is_back() {
    let parts = Parts::default();
    let mut sink = claimed(&parts, AfterCrash::WriteAgain, HOUR).await;
    epoch(&mut sink, 1, 0, 2, own_key).await.expect("commits");
    parts.lock().target_away = true;
    epoch(&mut sink, 2, 2, 4, own_key).await.expect_err("the target is away");
    parts.lock().target_away = false;
    let reclaim = Claim::Reclaim { generation: Generation(1), session: "test".into() };
    let found = sink.init_transactions(&reclaim).await.expect("reclaims");
    assert_eq!(found.epoch, Epoch(1), "what is in the target counts, saved or not");
    sink.commit_transaction(&record(2, 2, 4)).await.expect("commits");
    sink.finish().await.expect("saves");
    assert_eq!(parts.lock().rows, [0, 1, 2, 3]);
    assert_eq!(parts.lock().saved.as_ref().map(|p| p.totals.read), Some(4));
}

/// Goal: a refused row is a letter with the position that passes it, and the books say so.
#[tokio::test]
async fn a_refused_row_is_a_letter_saved_with_the_position() {
    let parts = Parts::default();
    parts.lock().refuse = vec![1];
    let mut sink = claimed(&parts, AfterCrash::WriteAgain, HOUR).await;
    let committed = epoch(&mut sink, 1, 0, 3, own_key).await.expect("commits");
    assert_eq!(committed.dead_inputs, [1]);
    assert!(parts.lock().letters.is_empty());
    sink.finish().await.expect("saves");
    assert_eq!(parts.lock().letters.iter().map(|l| l.position.offset).collect::<Vec<_>>(), [1]);
    let totals = parts.lock().saved.as_ref().map(|p| p.totals);
    assert_eq!(totals, Some(Totals { read: 3, delivered: 2, dead: 1, rows: 2, ..Totals::default() }));
}

/// Goal: at-most-once never sends twice what may have arrived: after a crash its inputs are letters, in doubt, and the
/// books add up. Method: a worker that dies after its rows were written and before their position was saved; the next one
/// reads them again, cut otherwise, among new ones, and dies in turn.
#[tokio::test]
async fn what_an_earlier_life_was_about_to_send_becomes_letters() {
    let parts = Parts::default();
    let mut first = claimed(&parts, AfterCrash::GiveUp, HOUR).await;
    epoch(&mut first, 1, 0, 2, own_key).await.expect("commits");
    assert_eq!(parts.lock().saved.as_ref().map(|p| p.bookmark.position.offset), Some(2), "saved with every epoch");
    parts.lock().saves_fail = true;
    epoch(&mut first, 2, 2, 6, own_key).await.expect_err("the position is not saved");
    assert_eq!(parts.lock().rows, [0, 1, 2, 3, 4, 5], "but the rows are there");
    parts.lock().saves_fail = false;
    let mut second = claimed(&parts, AfterCrash::GiveUp, HOUR).await;
    let committed = epoch(&mut second, 2, 2, 4, own_key).await.expect("commits letters");
    assert_eq!(committed.dead_inputs, [0, 1]);
    let mut third = claimed(&parts, AfterCrash::GiveUp, HOUR).await;
    let committed = epoch(&mut third, 3, 4, 8, own_key).await.expect("commits");
    assert_eq!(committed.dead_inputs, [0, 1]);
    epoch(&mut third, 4, 8, 9, own_key).await.expect("commits");
    assert_eq!(parts.lock().rows, [0, 1, 2, 3, 4, 5, 6, 7, 8], "nothing was sent twice");
    let letters: Vec<_> = parts.lock().letters.iter().map(|l| (l.position.offset, l.cause.code)).collect();
    assert_eq!(letters, [(2, "HX2040"), (3, "HX2040"), (4, "HX2040"), (5, "HX2040")]);
    let totals = parts.lock().saved.as_ref().map(|p| p.totals).expect("saved");
    assert_eq!(totals, Totals { read: 9, delivered: 5, dead: 4, rows: 5, ..Totals::default() });
}

/// Goal: what fits no column was not sent by a worker with the same columns, and keeps its own cause; after a change it is in doubt, also
/// for a third worker that is like the second. Method: a worker that dies before its position is saved, a second that dies too.
#[tokio::test]
async fn a_later_life_judges_what_was_sent_by_the_rules_of_its_sender() {
    for (columns, expected) in
        [("int", ["HX2040", "HX2020", "HX2040", "HX2040"]), ("text", ["HX2040", "HX2040", "HX2040", "HX2040"])]
    {
        let parts = Parts::default();
        (parts.lock().unfit, parts.lock().columns) = (vec![1], "int".into());
        parts.lock().saves_fail = true;
        let mut first = claimed(&parts, AfterCrash::GiveUp, HOUR).await;
        epoch(&mut first, 1, 0, 4, own_key).await.expect_err("the position is not saved");
        parts.lock().columns = columns.into();
        let mut second = claimed(&parts, AfterCrash::GiveUp, HOUR).await;
        epoch(&mut second, 1, 0, 2, own_key).await.expect_err("the position is not saved");
        parts.lock().saves_fail = false;
        let mut third = claimed(&parts, AfterCrash::GiveUp, HOUR).await;
        epoch(&mut third, 1, 0, 4, own_key).await.expect("commits letters");
        let codes: Vec<_> = parts.lock().letters.iter().map(|letter| letter.cause.code).collect();
        assert_eq!(codes, expected, "{columns}");
    }
}

/// Goal: a target that cannot be reached gets the epoch later; one whose connection was lost while it wrote does not.
/// Method: both under at-most-once.
#[tokio::test]
async fn at_most_once_tries_again_only_what_was_not_sent() {
    let parts = Parts::default();
    let mut sink = claimed(&parts, AfterCrash::GiveUp, HOUR).await;
    parts.lock().unreachable = true;
    let error = epoch(&mut sink, 1, 0, 2, own_key).await.expect_err("nobody answers");
    assert_eq!(error.reaction(), Reaction::Retry, "{error}");
    assert_eq!(claimed(&parts, AfterCrash::GiveUp, HOUR).await.in_doubt, None, "nothing was sent");
    parts.lock().unreachable = false;
    parts.lock().target_away = true;
    let mut sink = claimed(&parts, AfterCrash::GiveUp, HOUR).await;
    let error = epoch(&mut sink, 1, 0, 2, own_key).await.expect_err("the connection is lost");
    assert_eq!(error.reaction(), Reaction::InDoubt, "{error}");
}

/// Goal: at-most-once stops where the rule says so. Method: a refused row with `onReject: stop`.
#[tokio::test]
async fn at_most_once_obeys_the_rule_for_rejects() {
    let parts = Parts::default();
    parts.lock().refuse = vec![1];
    let mut sink = claimed(&parts, AfterCrash::GiveUp, HOUR).await;
    sink.begin_transaction(Epoch(1)).expect("begins");
    sink.write(batch(0, 3, own_key)).expect("stages");
    let stop = EpochRecord { rejects: RejectRule::new(OnReject::Stop, 1000), ..record(1, 0, 3) };
    let stopped = sink.commit_transaction(&stop).await;
    assert!(matches!(stopped, Err(SinkError::Rejected { .. })), "{stopped:?}");
    assert_eq!(parts.lock().saved.as_ref().map(|p| p.epoch), Some(Epoch(0)));
}

/// Goal: a save whose future was dropped writes its letters once, also when it is repeated. Method: a store that hangs
/// once, before it saves.
#[tokio::test]
async fn a_save_that_was_given_up_writes_its_letters_once() {
    for after_crash in [AfterCrash::WriteAgain, AfterCrash::GiveUp] {
        let parts = Parts::default();
        parts.lock().refuse = vec![1];
        let mut sink = claimed(&parts, after_crash, Duration::ZERO).await;
        sink.begin_transaction(Epoch(1)).expect("begins");
        sink.write(batch(0, 3, own_key)).expect("stages");
        parts.lock().save_hangs = true;
        let record = record(1, 0, 3);
        let dropped = tokio::time::timeout(Duration::from_millis(20), sink.commit_transaction(&record)).await;
        assert!(dropped.is_err(), "the store hangs");
        parts.lock().save_hangs = false;
        let reclaim = Claim::Reclaim { generation: Generation(1), session: "test".into() };
        let found = sink.init_transactions(&reclaim).await.expect("reclaims");
        if found.epoch == Epoch(0) {
            sink.commit_transaction(&record).await.expect("commits");
        }
        sink.finish().await.expect("saves");
        let world = parts.lock();
        assert_eq!((world.letters.len(), &world.rows), (1, &vec![0, 2]), "{after_crash:?}");
        let totals = Totals { read: 3, delivered: 2, dead: 1, rows: 2, ..Totals::default() };
        assert_eq!(world.saved.as_ref().map(|p| p.totals), Some(totals), "{after_crash:?}");
    }
}

/// Goal: whoever was fenced sends nothing. Method: another claim, then the older owner's epoch.
#[tokio::test]
async fn a_fenced_worker_sends_nothing() {
    let parts = Parts::default();
    let mut old = claimed(&parts, AfterCrash::WriteAgain, HOUR).await;
    claimed(&parts, AfterCrash::WriteAgain, HOUR).await;
    let fenced = epoch(&mut old, 1, 0, 2, own_key).await.expect_err("another owns it");
    assert!(matches!(fenced, SinkError::FencedOut { .. }), "{fenced}");
    assert_eq!(parts.lock().rows, [0; 0]);
}

/// Goal: after a restart the same inputs must give the same keys, however the epochs are cut. Method: send two epochs,
/// restart, send again in other cuts, with the position saved on the way or not; once with the same keys, once with one
/// other key.
#[tokio::test]
async fn other_keys_after_a_restart_are_noticed() {
    let cuts = [vec![(0, 6)], vec![(0, 1), (1, 5), (5, 6)], vec![(0, 4), (4, 9)]];
    for (key, fails) in [(own_key as fn(u64) -> u8, false), (|n| own_key(n) + u8::from(n == 3), true)] {
        for (cut, interval) in cuts.iter().flat_map(|cut| [(cut, HOUR), (cut, Duration::ZERO)]) {
            let parts = Parts::default();
            let mut first = claimed(&parts, AfterCrash::WriteAgain, HOUR).await;
            epoch(&mut first, 1, 0, 2, own_key).await.expect("commits");
            epoch(&mut first, 2, 2, 6, own_key).await.expect("commits");
            let mut second = claimed(&parts, AfterCrash::WriteAgain, interval).await;
            let mut noticed = false;
            for (number, (from, to)) in (1..).zip(cut) {
                if let Err(error) = epoch(&mut second, number, *from, *to, key).await {
                    assert_eq!((error.code(), error.reaction()), ("HX4014", Reaction::Stop(1)), "{error}");
                    noticed = true;
                    break;
                }
            }
            assert_eq!(noticed, fails, "{cut:?} {interval:?}");
        }
    }
}

/// Where a file of a chain is known by `text`, `offset` bytes into it.
fn place(number: u32, text: &str, offset: u64) -> Bookmark {
    Bookmark::new(Incarnation::new(number, text), Position::at(offset))
}

/// Commits `range` of inputs as an epoch between two places.
async fn between(
    sink: &mut StateProgress<Parts, Parts>,
    number: u64,
    (from, to): (Bookmark, Bookmark),
    range: (u64, u64),
) -> Result<Committed, SinkError> {
    sink.begin_transaction(Epoch(number)).expect("begins");
    sink.write(batch(range.0, range.1, own_key)).expect("stages");
    sink.commit_transaction(&EpochRecord { from, to, ..record(number, range.0, range.1) }).await
}

/// A worker that claims a chain whose first file says nothing of itself yet.
async fn claimed_unknown(parts: &Parts, after_crash: AfterCrash) -> StateProgress<Parts, Parts> {
    let mut sink = joined(parts, after_crash, HOUR);
    let claim = Claim::Take { start: place(1, "", 0), contract: Contract::default(), session: "test".into() };
    sink.init_transactions(&claim).await.expect("claims");
    sink
}

/// Goal: a file that learns what it is with its first record gives the same keys after a crash, though the intent names it
/// otherwise than the saved position. Method: a crash before the first save; the same inputs, cut otherwise.
#[tokio::test]
async fn a_file_that_was_not_known_at_the_first_intent_has_the_same_keys() {
    for cuts in [vec![(0, 4)], vec![(0, 6)], vec![(0, 1), (1, 6)], vec![(0, 3), (3, 4)]] {
        let parts = Parts::default();
        let mut first = claimed_unknown(&parts, AfterCrash::WriteAgain).await;
        between(&mut first, 1, (place(1, "", 0), place(1, "known", 2)), (0, 2)).await.expect("commits");
        between(&mut first, 2, (place(1, "known", 2), place(1, "known", 4)), (2, 4)).await.expect("commits");
        let mut second = claimed_unknown(&parts, AfterCrash::WriteAgain).await;
        for (number, (from, to)) in (1..).zip(cuts) {
            let text = if from == 0 { "" } else { "known" };
            let ends = (place(1, text, from), place(1, "known", to));
            between(&mut second, number, ends, (from, to)).await.expect("the same keys");
        }
        assert!(second.keys.expected.is_none(), "they were compared");
    }
}

/// Goal: a step to the next file that was not saved sends nothing, so that nothing is expected of it and nothing is in doubt: what the
/// file still got is delivered. Method: a crash in the save of the step; a late line in the file; the step again.
#[tokio::test]
async fn a_step_that_was_not_saved_leaves_no_doubt() {
    for after_crash in [AfterCrash::WriteAgain, AfterCrash::GiveUp] {
        let parts = Parts::default();
        let mut first = claimed_unknown(&parts, after_crash).await;
        between(&mut first, 1, (place(1, "", 0), place(1, "a", 2)), (0, 2)).await.expect("commits");
        first.finish().await.expect("saves");
        parts.lock().saves_fail = true;
        let step = (place(1, "a", 2), place(2, "b", 0));
        between(&mut first, 2, step, (2, 2)).await.expect_err("the step is not saved");
        parts.lock().saves_fail = false;
        let mut second = claimed_unknown(&parts, after_crash).await;
        let late = between(&mut second, 2, (place(1, "a", 2), place(1, "a", 3)), (2, 3)).await.expect("commits");
        assert_eq!(late.dead_inputs, [0; 0], "{after_crash:?}: nobody has sent it");
        let step = (place(1, "a", 3), place(2, "b", 0));
        assert!(between(&mut second, 3, step, (3, 3)).await.expect("steps").stored);
        between(&mut second, 4, (place(2, "b", 0), place(2, "b", 5)), (3, 8)).await.expect("commits");
        assert_eq!(parts.lock().rows, [0, 1, 2, 3, 4, 5, 6, 7], "{after_crash:?}");
    }
}

/// Goal: no save spans two files: rows and letters that wait for a position are saved with their own file before the step. Method: a
/// refused row in each of two files, with a position that is not due.
#[tokio::test]
async fn letters_are_saved_with_the_file_of_their_input() {
    let parts = Parts::default();
    parts.lock().refuse = vec![1, 5];
    let mut sink = claimed_unknown(&parts, AfterCrash::WriteAgain).await;
    between(&mut sink, 1, (place(1, "", 0), place(1, "a", 2)), (0, 2)).await.expect("commits");
    between(&mut sink, 2, (place(1, "a", 2), place(2, "b", 4)), (2, 2)).await.expect("steps");
    assert_eq!(parts.lock().saves, 2, "what waited, and the step");
    between(&mut sink, 3, (place(2, "b", 4), place(2, "b", 6)), (4, 6)).await.expect("commits");
    sink.finish().await.expect("saves");
    assert_eq!(parts.lock().letter_files, [1, 2]);
}
