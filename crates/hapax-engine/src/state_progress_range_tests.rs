use std::sync::Mutex;

use hapax_model::contract::Contract;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::key::{DedupStrategy, KeyHash};
use hapax_model::position::{Incarnation, Position};
use hapax_model::rejects::{OnReject, RejectRule};

use super::*;
use crate::batch::{Layout, Operation, OutputEvent};
use crate::sink::Written;

/// A target that takes everything.
struct Taker;

impl IdempotentSink for Taker {
    fn fields(&self) -> &[FieldPath] {
        &[]
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        Ok(TargetIdentity("taker".into()))
    }

    fn derive_dedup_key(&self, event: &OutputEvent<'_>) -> Option<KeyHash> {
        event.event_key()
    }

    async fn upsert(&mut self, _event: &OutputEvent<'_>) -> Result<Written, SinkError> {
        Ok(Written::default())
    }

    async fn upsert_batch(&mut self, _batch: Arc<Batch>) -> Result<Upserted, SinkError> {
        Ok(Upserted::default())
    }

    fn dedup_strategy(&self) -> &DedupStrategy {
        &DedupStrategy::SourceOffset
    }
}

/// A store whose log, like a real one, holds each epoch once.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Vec<(Progress, usize)>>>, Arc<Mutex<Option<Intent>>>);

impl ProgressStore for Store {
    async fn look(&mut self, _id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
        Ok(self.0.lock().unwrap().last().map(|(progress, _)| progress.clone()))
    }

    async fn others(&mut self, _id: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        Ok(Vec::new())
    }

    async fn claim(&mut self, _id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
        let Claim::Take { start, contract, session } = claim else { panic!("nothing is in doubt here") };
        Ok(Progress {
            generation: Generation(1),
            epoch: Epoch(0),
            bookmark: start.clone(),
            contract: contract.clone(),
            snapshot: None,
            session: session.clone(),
            totals: Totals::default(),
        })
    }

    async fn save(
        &mut self,
        _id: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
        letters: &[Letter],
    ) -> Result<Progress, SinkError> {
        let mut log = self.0.lock().unwrap();
        assert!(log.iter().all(|(saved, _)| saved.epoch != record.epoch), "epoch {} is logged twice", record.epoch);
        let totals = was.totals.plus(record.counts);
        let after = Progress { epoch: record.epoch, bookmark: record.to.clone(), totals, ..was.clone() };
        log.push((after.clone(), letters.len()));
        Ok(after)
    }

    async fn load_intent(&mut self, _id: &DeliveryId) -> Result<Option<Intent>, SinkError> {
        Ok(self.1.lock().unwrap().clone())
    }

    async fn save_intent(&mut self, _id: &DeliveryId, _epoch: Epoch, intent: &Intent) -> Result<(), SinkError> {
        *self.1.lock().unwrap() = Some(intent.clone());
        Ok(())
    }
}

fn bookmark(offset: u64) -> Bookmark {
    Bookmark { position: Position { offset, index: 0 }, incarnation: Incarnation::new(1, "lines") }
}

/// An epoch of two inputs, one of which has died in the fill.
fn epoch(number: u64, key: u8) -> (EpochRecord, Batch) {
    let mut batch = Batch::new(Layout::new(&[]));
    for offset in [2 * number - 2, 2 * number - 1] {
        batch.inputs.push(Position { offset, index: 0 }, b"{}");
    }
    batch.push_event(0, 0, Operation::Upsert).set_keys(None, Some(KeyHash([key; 16])));
    let cause = Cause { stage: Stage::Decode, code: "HX2001", message: "bad".into(), fingerprint: "bad".into() };
    batch.push_letter(1, cause, None);
    let record = EpochRecord {
        epoch: Epoch(number),
        from: bookmark(2 * number - 2),
        to: bookmark(2 * number),
        counts: Totals { read: 2, delivered: 1, dead: 1, filtered: 0, rows: 1 },
        opened_at_ms: 0,
        closed_at_ms: 0,
        rejects: RejectRule::new(OnReject::DeadLetter, 1000),
    };
    (record, batch)
}

/// Goal: at the end every count and letter is saved, whichever commit comes first, and no epoch is logged twice.
/// Method: three epochs, an interval that never passes.
#[tokio::test]
async fn what_was_not_saved_yet_is_saved_at_the_end() {
    for order in [Order::RowsFirst, Order::PositionFirst] {
        let (store, id) = (Store::default(), DeliveryId { workflow: "w".into(), sink: "s".into(), lane: "l".into() });
        let mut sink = StateProgress::new(id, Taker, store.clone(), order, WatchKeys::No, Duration::from_secs(3600));
        let claim = Claim::Take { start: bookmark(0), contract: Contract::default(), session: "test".into() };
        sink.init_transactions(&claim).await.expect("it is claimed");
        for number in 1..=3 {
            let (record, batch) = epoch(number, 7);
            sink.begin_transaction(record.epoch).expect("it begins");
            sink.write(Arc::new(batch)).expect("it is staged");
            let committed = sink.commit_transaction(&record).await.expect("it commits");
            assert_eq!(committed.stored, order == Order::PositionFirst);
        }
        sink.finish().await.expect("the rest is saved");
        let log = store.0.lock().unwrap();
        let (last, _) = log.last().expect("something was saved");
        assert_eq!(last.totals, Totals { read: 6, delivered: 3, dead: 3, filtered: 0, rows: 3 }, "{order:?}");
        assert_eq!(last.bookmark, bookmark(6), "{order:?}");
        assert_eq!(log.iter().map(|(_, letters)| letters).sum::<usize>(), 3, "{order:?}");
    }
}

async fn life(store: &Store, interval: Duration, keys: &[u8]) -> Result<(), SinkError> {
    let id = DeliveryId { workflow: "w".into(), sink: "s".into(), lane: "l".into() };
    let mut sink = StateProgress::new(id, Taker, store.clone(), Order::RowsFirst, WatchKeys::Yes, interval);
    let claim = Claim::Take { start: bookmark(0), contract: Contract::default(), session: "test".into() };
    sink.init_transactions(&claim).await?;
    for (key, number) in keys.iter().zip(1..) {
        let (record, batch) = epoch(number, *key);
        sink.begin_transaction(record.epoch)?;
        sink.write(Arc::new(batch))?;
        sink.commit_transaction(&record).await?;
    }
    Ok(())
}

/// Goal: keys that changed over a restart are noticed, and the same keys are not blamed when the position is saved in
/// the middle of the range that is read again. Method: two epochs without a saved position, then a second life.
#[tokio::test]
async fn keys_are_compared_over_the_whole_range_that_was_written_down() {
    for interval in [Duration::ZERO, Duration::from_secs(3600)] {
        for (again, same) in [([1, 2], true), ([1, 3], false), ([3, 2], false)] {
            let store = Store::default();
            life(&store, Duration::from_secs(3600), &[1, 2]).await.expect("the first life goes well");
            let second = life(&store, interval, &again).await;
            assert_eq!(second.is_ok(), same, "{interval:?} {again:?}: {second:?}");
        }
    }
}
