//! The tables that this program can write to, one variant for each database, behind the engine's traits.
//!
//! A new database is one variant in each of the two enums, and one arm in each of the two macros.

use std::sync::Arc;
use std::time::Instant;

#[cfg(feature = "mysql")]
use hapax_connect::mysql::{MysqlIdempotentSink, MysqlSink};
#[cfg(feature = "postgres")]
use hapax_connect::postgres::{PostgresIdempotentSink, PostgresSink};
use hapax_connect::sqlite::config::SqliteSinkConfig;
use hapax_connect::sqlite::{SqliteIdempotentSink, SqliteSink};
use hapax_engine::batch::{Batch, OutputEvent};
use hapax_engine::letters::{Replay as _, ReplayRule, Replayed};
use hapax_engine::sink::{
    Claim, Committed, EpochRecord, IdempotentSink, SinkError, Target, TargetIdentity, TransactionalSink, UpsertLimits,
    WriteOutcome, Written,
};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyHash};
use hapax_model::letter::Cause;
use hapax_model::position::DeliveryId;
use hapax_model::progress::Progress;
use hapax_model::transaction::TransactionState;

use super::{Part, Purpose};
use crate::config;

/// A table that has our progress beside it, and commits both in one transaction.
#[derive(Debug)]
pub(crate) enum AnyTable {
    Sqlite(Box<SqliteSink>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresSink>),
    #[cfg(feature = "mysql")]
    Mysql(Box<MysqlSink>),
}

macro_rules! each {
    ($self:expr, $sink:ident => $answer:expr) => {
        match $self {
            AnyTable::Sqlite($sink) => $answer,
            #[cfg(feature = "postgres")]
            AnyTable::Postgres($sink) => $answer,
            #[cfg(feature = "mysql")]
            AnyTable::Mysql($sink) => $answer,
        }
    };
}

impl AnyTable {
    /// The table of `part`; nothing is opened before the first question.
    pub(super) fn of_part(part: &Part<'_>, id: DeliveryId, purpose: Purpose) -> Self {
        match &part.sink.target {
            config::Target::Sqlite(sqlite) => {
                let config = SqliteSinkConfig { open: purpose.of_file(), ..part.sqlite_config(sqlite) };
                Self::Sqlite(Box::new(SqliteSink::new(config, id)))
            }
            #[cfg(feature = "postgres")]
            config::Target::Postgres(postgres) => {
                let (config, pool) = (part.postgres_config(postgres), part.postgres_pool(postgres));
                Self::Postgres(Box::new(PostgresSink::new(config, pool, id)))
            }
            #[cfg(feature = "mysql")]
            config::Target::Mysql(mysql) => {
                let (config, pool) = (part.mysql_config(mysql), part.mysql_pool(mysql));
                Self::Mysql(Box::new(MysqlSink::new(config, pool, id)))
            }
        }
    }

    /// Writes the outputs of letters and marks them, in one transaction.
    pub(super) async fn replay(
        &mut self,
        letters: &[i64],
        batch: Batch,
        rule: ReplayRule,
    ) -> Result<Replayed, SinkError> {
        each!(self, sink => sink.replay(letters, batch, rule).await)
    }
}

impl Target for AnyTable {
    fn fields(&self) -> &[FieldPath] {
        each!(self, sink => sink.fields())
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        each!(self, sink => sink.inspect().await)
    }

    async fn look(&mut self) -> Result<Option<Progress>, SinkError> {
        each!(self, sink => sink.look().await)
    }

    async fn others(&mut self) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        each!(self, sink => sink.others().await)
    }
}

impl TransactionalSink for AnyTable {
    async fn init_transactions(&mut self, claim: &Claim) -> Result<Progress, SinkError> {
        each!(self, sink => sink.init_transactions(claim).await)
    }

    fn begin_transaction(&mut self, epoch: Epoch) -> Result<(), SinkError> {
        each!(self, sink => sink.begin_transaction(epoch))
    }

    fn write(&mut self, batch: Arc<Batch>) -> Result<(), SinkError> {
        each!(self, sink => sink.write(batch))
    }

    async fn commit_transaction(&mut self, record: &EpochRecord) -> Result<Committed, SinkError> {
        each!(self, sink => sink.commit_transaction(record).await)
    }

    async fn abort_transaction(&mut self) -> Result<(), SinkError> {
        each!(self, sink => sink.abort_transaction().await)
    }

    fn transaction_state(&self) -> TransactionState {
        each!(self, sink => sink.transaction_state())
    }

    async fn finish(&mut self) -> Result<(), SinkError> {
        each!(self, sink => sink.finish().await)
    }

    fn save_due(&self) -> Option<Instant> {
        each!(self, sink => sink.save_due())
    }
}

/// A table in whose database none of ours are: its progress is in the state store.
#[derive(Debug)]
pub(crate) enum AnyBareTable {
    Sqlite(Box<SqliteIdempotentSink>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresIdempotentSink>),
    #[cfg(feature = "mysql")]
    Mysql(Box<MysqlIdempotentSink>),
}

macro_rules! each_bare {
    ($self:expr, $sink:ident => $answer:expr) => {
        match $self {
            AnyBareTable::Sqlite($sink) => $answer,
            #[cfg(feature = "postgres")]
            AnyBareTable::Postgres($sink) => $answer,
            #[cfg(feature = "mysql")]
            AnyBareTable::Mysql($sink) => $answer,
        }
    };
}

impl AnyBareTable {
    /// The table of `part`; nothing is opened before the first question.
    pub(super) fn of_part(part: &Part<'_>, strategy: DedupStrategy, purpose: Purpose) -> Self {
        match &part.sink.target {
            config::Target::Sqlite(sqlite) => {
                let config = SqliteSinkConfig { open: purpose.of_file(), ..part.sqlite_config(sqlite) };
                Self::Sqlite(Box::new(SqliteIdempotentSink::new(config, strategy)))
            }
            #[cfg(feature = "postgres")]
            config::Target::Postgres(postgres) => {
                let (config, pool) = (part.postgres_config(postgres), part.postgres_pool(postgres));
                Self::Postgres(Box::new(PostgresIdempotentSink::new(config, pool, strategy)))
            }
            #[cfg(feature = "mysql")]
            config::Target::Mysql(mysql) => {
                let (config, pool) = (part.mysql_config(mysql), part.mysql_pool(mysql));
                Self::Mysql(Box::new(MysqlIdempotentSink::new(config, pool, strategy)))
            }
        }
    }
}

impl IdempotentSink for AnyBareTable {
    fn fields(&self) -> &[FieldPath] {
        each_bare!(self, sink => sink.fields())
    }

    async fn inspect(&mut self) -> Result<TargetIdentity, SinkError> {
        each_bare!(self, sink => sink.inspect().await)
    }

    fn derive_dedup_key(&self, event: &OutputEvent<'_>) -> Option<KeyHash> {
        each_bare!(self, sink => sink.derive_dedup_key(event))
    }

    async fn upsert(&mut self, event: &OutputEvent<'_>) -> Result<Written, SinkError> {
        each_bare!(self, sink => sink.upsert(event).await)
    }

    async fn upsert_batch(&mut self, batch: Arc<Batch>, limits: &UpsertLimits) -> Result<WriteOutcome, SinkError> {
        each_bare!(self, sink => sink.upsert_batch(batch, limits).await)
    }

    fn row_rules(&self) -> String {
        each_bare!(self, sink => sink.row_rules())
    }

    fn misfits(&self, batch: &Batch) -> Vec<(usize, Cause)> {
        each_bare!(self, sink => sink.misfits(batch))
    }

    fn dedup_strategy(&self) -> &DedupStrategy {
        each_bare!(self, sink => sink.dedup_strategy())
    }
}
