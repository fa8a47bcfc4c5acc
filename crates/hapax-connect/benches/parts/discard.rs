//! A sink that throws everything away and remembers how much: it exists for measuring the engine and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax_engine::batch::Batch;
use hapax_engine::sink::{
    Claim, Committed, EpochRecord, SinkError, Target, TargetIdentity, TransactionalSink, Written,
};
use hapax_engine::state::{DeliveryNote, Lease, StateError, StateStore, Suspicion, TakeOver};
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::field::FieldPath;
use hapax_model::position::DeliveryId;
use hapax_model::progress::{Progress, Witness};
use hapax_model::transaction::{Move, TransactionState};

pub(crate) struct Discard {
    fields: Vec<FieldPath>,
    state: TransactionState,
    progress: Option<Progress>,
}

impl Discard {
    pub(crate) fn new(fields: &[&str]) -> Self {
        let fields = fields.iter().map(|name| FieldPath::of_name(name)).collect();
        Self { fields, state: TransactionState::Idle, progress: None }
    }

    fn step(&mut self, step: Move) -> Result<(), SinkError> {
        self.state = self.state.after(step)?;
        Ok(())
    }
}

impl Target for Discard {
    fn fields(&self) -> &[FieldPath] {
        &self.fields
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        Ok(TargetIdentity("nowhere".into()))
    }

    async fn look(&mut self) -> Result<Option<Progress>, SinkError> {
        Ok(self.progress.clone())
    }

    async fn others(&mut self) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        Ok(Vec::new())
    }
}

impl TransactionalSink for Discard {
    async fn init_transactions(&mut self, claim: &Claim) -> Result<Progress, SinkError> {
        self.step(Move::Claim)?;
        if let Claim::Take { start, contract, session } = claim {
            self.progress = Some(Progress { generation: Generation(1), ..Progress::first(start, contract, session) });
        }
        Ok(self.progress.clone().expect("claimed"))
    }

    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError> {
        self.step(Move::Begin(epoch))
    }

    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        assert_eq!(batch.inputs.len(), batch.len());
        self.step(Move::Write)
    }

    async fn commit_transaction(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        self.step(Move::Commit)?;
        let progress = self.progress.as_mut().expect("claimed");
        progress.epoch = record.epoch;
        progress.bookmark = record.to.clone();
        progress.totals = progress.totals.plus(record.counts);
        let progress = progress.clone();
        self.step(Move::Committed)?;
        Ok(Committed {
            stored: true,
            progress,
            written: Written::default(),
            dead_inputs: Vec::new(),
            causes: Vec::new(),
        })
    }

    async fn abort_transaction(&mut self) -> Result<(), SinkError> {
        self.step(Move::Abort)?;
        self.step(Move::Aborted)
    }

    fn transaction_state(&self) -> TransactionState {
        self.state
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn save_due(&self) -> Option<Instant> {
        None
    }
}

/// No state store.
#[derive(Clone)]
pub(crate) struct NoState;

impl StateStore for NoState {
    async fn lease(&mut self, _: &DeliveryId, _: Duration, _: TakeOver) -> Result<Lease, StateError> {
        Ok(Lease::Ours)
    }

    async fn release(&mut self, _: &DeliveryId) -> Result<(), StateError> {
        Ok(())
    }

    async fn load_witness(&mut self, _: &DeliveryId) -> Result<Option<Witness>, StateError> {
        Ok(None)
    }

    async fn save_witness(&mut self, _: &DeliveryId, _: &Witness) -> Result<(), StateError> {
        Ok(())
    }

    async fn note(&mut self, _: &DeliveryId, _: &DeliveryNote) -> Result<(), StateError> {
        Ok(())
    }

    async fn paused(&mut self, _: &str) -> Result<bool, StateError> {
        Ok(false)
    }

    async fn suspect(&mut self, _: &DeliveryId, _: &Suspicion) -> Result<(), StateError> {
        Ok(())
    }

    async fn suspicion(&mut self, _: &DeliveryId) -> Result<Option<Suspicion>, StateError> {
        Ok(None)
    }

    async fn clear_suspicion(&mut self, _: &DeliveryId) -> Result<(), StateError> {
        Ok(())
    }
}
