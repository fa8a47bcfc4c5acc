//! The kinds of source and sink that this program knows, behind the engine's traits.

use std::sync::Arc;
use std::time::Instant;

use hapax_connect::file::FileSource;
use hapax_connect::generate::GenerateSource;
use hapax_engine::batch::{Batch, Inputs};
use hapax_engine::sink::{Claim, Committed, EpochRecord, SinkError, Target, TargetIdentity, TransactionalSink};
use hapax_engine::source::{Follow, Held, Polled, Room, Source, SourceError, StartAt};
use hapax_engine::state_progress::StateProgress;
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Progress;
use hapax_model::transaction::TransactionState;

use super::{AnyBareTable, AnyState, AnyTable};

/// A source of any kind.
#[derive(Debug)]
pub(crate) enum AnySource {
    File(Box<FileSource>),
    Generate(Box<GenerateSource>),
}

macro_rules! each_source {
    ($self:expr, $source:ident => $answer:expr) => {
        match $self {
            AnySource::File($source) => $answer,
            AnySource::Generate($source) => $answer,
        }
    };
}

impl Source for AnySource {
    fn lane(&self) -> &str {
        each_source!(self, source => source.lane())
    }

    fn identity(&self) -> String {
        each_source!(self, source => source.identity())
    }

    async fn start(&mut self, at: StartAt) -> Result<Bookmark, SourceError> {
        each_source!(self, source => source.start(at).await)
    }

    async fn hold(&mut self, bookmark: &Bookmark) -> Result<Held, SourceError> {
        each_source!(self, source => source.hold(bookmark).await)
    }

    async fn hold_range(&mut self, from: &Bookmark, to: &Bookmark) -> Result<Held, SourceError> {
        each_source!(self, source => source.hold_range(from, to).await)
    }

    async fn assign(&mut self, bookmark: &Bookmark, follow: Follow) -> Result<(), SourceError> {
        each_source!(self, source => source.assign(bookmark, follow).await)
    }

    async fn poll(&mut self, into: &mut Inputs, room: Room) -> Result<Polled, SourceError> {
        each_source!(self, source => source.poll(into, room).await)
    }

    fn bookmark(&self) -> Bookmark {
        each_source!(self, source => source.bookmark())
    }

    async fn close_epoch(&mut self, from: &Bookmark) -> Result<Bookmark, SourceError> {
        each_source!(self, source => source.close_epoch(from).await)
    }

    async fn step(&mut self) -> Result<(), SourceError> {
        each_source!(self, source => source.step().await)
    }

    async fn reads_what(&mut self, lane: &str, other: &Bookmark) -> Result<bool, SourceError> {
        each_source!(self, source => source.reads_what(lane, other).await)
    }

    async fn ack(&mut self, upto: &Bookmark) -> Result<(), SourceError> {
        each_source!(self, source => source.ack(upto).await)
    }

    fn called(&self) -> Option<String> {
        each_source!(self, source => source.called())
    }

    fn extent(&self) -> Option<u64> {
        each_source!(self, source => source.extent())
    }
}

/// A sink of any kind.
#[derive(Debug)]
pub(crate) enum AnySink {
    /// Progress in the target, in the same transaction as the data.
    Table(AnyTable),
    /// Progress in the state store.
    ByState(Box<StateProgress<AnyBareTable, AnyState>>),
}

macro_rules! each_sink {
    ($self:expr, $sink:ident => $answer:expr) => {
        match $self {
            AnySink::Table($sink) => $answer,
            AnySink::ByState($sink) => $answer,
        }
    };
}

impl Target for AnySink {
    fn fields(&self) -> &[FieldPath] {
        each_sink!(self, sink => sink.fields())
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        each_sink!(self, sink => sink.inspect().await)
    }

    async fn look(&mut self) -> Result<Option<Progress>, SinkError> {
        each_sink!(self, sink => sink.look().await)
    }

    async fn others(&mut self) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        each_sink!(self, sink => sink.others().await)
    }
}

impl TransactionalSink for AnySink {
    async fn init_transactions(&mut self, claim: &Claim) -> Result<Progress, SinkError> {
        each_sink!(self, sink => sink.init_transactions(claim).await)
    }

    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError> {
        each_sink!(self, sink => sink.begin_transaction(epoch))
    }

    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        each_sink!(self, sink => sink.write(batch))
    }

    async fn commit_transaction(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        each_sink!(self, sink => sink.commit_transaction(record).await)
    }

    async fn abort_transaction(&mut self) -> Result<(), SinkError> {
        each_sink!(self, sink => sink.abort_transaction().await)
    }

    fn transaction_state(&self) -> TransactionState {
        each_sink!(self, sink => sink.transaction_state())
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        each_sink!(self, sink => sink.finish().await)
    }

    fn save_due(&self) -> Option<Instant> {
        each_sink!(self, sink => sink.save_due())
    }
}
