//! Where replayed letters are written: beside their mark, or in a target that holds none of our tables.

use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(feature = "postgres")]
use hapax_connect::postgres::{PostgresIdempotentSink, PostgresSink};
use hapax_connect::sqlite::{SqliteIdempotentSink, SqliteSink};
use hapax_engine::batch::Batch;
use hapax_engine::books::Books as _;
use hapax_engine::letters::{Replay, Replayed};
use hapax_engine::sink::{IdempotentSink, Target as _};
use hapax_model::field::FieldPath;
use hapax_model::mode::ProgressPlace;

use super::{AnyBooks, Part, plan};
use crate::config::Target;
use crate::exit::Failure;

/// A target into which letters are replayed.
#[derive(Debug)]
pub(crate) enum Writer {
    /// Row and mark in one transaction.
    Sqlite(Box<SqliteSink>),
    /// The row in the target, then the mark in the state store.
    SqliteApart(Box<SqliteIdempotentSink>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresSink>),
    #[cfg(feature = "postgres")]
    PostgresApart(Box<PostgresIdempotentSink>),
}

impl Writer {
    /// Opens the target and reads its table.
    pub(crate) async fn open(part: &Part<'_>) -> Result<Self, Failure> {
        let strategy = || plan::strategy(&part.workflow.delivery);
        match (&part.sink.target, part.table().progress) {
            (Target::Sqlite(sqlite), ProgressPlace::Sink) => {
                let mut sink = SqliteSink::new(part.sqlite_config(sqlite), part.id());
                sink.inspect().await?;
                Ok(Self::Sqlite(Box::new(sink)))
            }
            (Target::Sqlite(sqlite), ProgressPlace::State) => {
                let mut sink = SqliteIdempotentSink::new(part.sqlite_config(sqlite), strategy());
                sink.inspect().await?;
                Ok(Self::SqliteApart(Box::new(sink)))
            }
            #[cfg(feature = "postgres")]
            (Target::Postgres(postgres), ProgressPlace::Sink) => {
                let mut sink = PostgresSink::new(part.postgres_config(postgres), part.pool(postgres), part.id());
                sink.inspect().await?;
                Ok(Self::Postgres(Box::new(sink)))
            }
            #[cfg(feature = "postgres")]
            (Target::Postgres(postgres), ProgressPlace::State) => {
                let (config, pool) = (part.postgres_config(postgres), part.pool(postgres));
                let mut sink = PostgresIdempotentSink::new(config, pool, strategy());
                sink.inspect().await?;
                Ok(Self::PostgresApart(Box::new(sink)))
            }
        }
    }

    /// The fields that the table wants.
    pub(crate) fn fields(&self) -> &[FieldPath] {
        match self {
            Self::Sqlite(sink) => sink.fields(),
            Self::SqliteApart(sink) => sink.fields(),
            #[cfg(feature = "postgres")]
            Self::Postgres(sink) => sink.fields(),
            #[cfg(feature = "postgres")]
            Self::PostgresApart(sink) => sink.fields(),
        }
    }

    /// Writes the events of `batch`, whose inputs are the letters `ids`, and marks those that went through.
    pub(crate) async fn write(&mut self, books: &mut AnyBooks, ids: &[i64], batch: Batch) -> Result<Replayed, Failure> {
        match self {
            Self::Sqlite(sink) => Ok(sink.replay(ids, batch).await?),
            Self::SqliteApart(sink) => write_apart(sink.as_mut(), books, ids, batch).await,
            #[cfg(feature = "postgres")]
            Self::Postgres(sink) => Ok(sink.replay(ids, batch).await?),
            #[cfg(feature = "postgres")]
            Self::PostgresApart(sink) => write_apart(sink.as_mut(), books, ids, batch).await,
        }
    }
}

async fn write_apart<K: IdempotentSink>(
    sink: &mut K,
    books: &mut AnyBooks,
    ids: &[i64],
    batch: Batch,
) -> Result<Replayed, Failure> {
    let batch = Arc::new(batch);
    let upserted = sink.upsert_batch(Arc::clone(&batch)).await?;
    let mut refused: BTreeMap<usize, String> =
        batch.letters().iter().map(|(input, letter)| (*input, letter.cause.to_string())).collect();
    refused.extend(upserted.rejected.iter().map(|(event, cause)| (batch.event(*event).input(), cause.to_string())));
    let good: Vec<i64> = ids.iter().enumerate().filter(|(n, _)| !refused.contains_key(n)).map(|(_, id)| *id).collect();
    let replayed = books.mark_replayed(&good).await?;
    let refused = refused.into_iter().map(|(input, why)| (ids[input], why)).collect();
    Ok(Replayed { replayed, taken: 0, refused, written: upserted.written })
}
