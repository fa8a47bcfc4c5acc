//! A part's target, opened for looking at its rows.

use std::sync::Arc;

use hapax_connect::sqlite::read::SqliteRows;
use hapax_engine::batch::Batch;
use hapax_engine::rows::{FoundRow, Hold, RowChoice, RowReader, RowState, TableShape};
use hapax_engine::sink::SinkError;
use hapax_model::letter::Cause;

use super::Part;
use crate::exit::Failure;

/// The rows of any target.
#[derive(Debug)]
pub(crate) enum AnyRows {
    Sqlite(Box<SqliteRows>),
}

impl AnyRows {
    /// Opens the target of `part` for reading.
    pub(crate) async fn of_part(part: &Part<'_>) -> Result<Self, Failure> {
        Ok(Self::Sqlite(Box::new(SqliteRows::open(&part.connector()).await?)))
    }
}

macro_rules! each {
    ($self:expr, $rows:ident => $answer:expr) => {
        match $self {
            AnyRows::Sqlite($rows) => $answer,
        }
    };
}

impl RowReader for AnyRows {
    fn shape(&self) -> &TableShape {
        each!(self, rows => rows.shape())
    }

    fn misfits(&self, batch: &Batch) -> Vec<(usize, Cause)> {
        each!(self, rows => rows.misfits(batch))
    }

    fn row_keys(&self, batch: &Batch) -> Vec<Option<Vec<u8>>> {
        each!(self, rows => rows.row_keys(batch))
    }

    async fn find(&mut self, choice: RowChoice) -> Result<Option<FoundRow>, SinkError> {
        each!(self, rows => rows.find(choice).await)
    }

    async fn states(&mut self, batch: Arc<Batch>, events: Vec<usize>) -> Result<Vec<RowState>, SinkError> {
        each!(self, rows => rows.states(batch, events).await)
    }

    async fn count(&mut self) -> Result<u64, SinkError> {
        each!(self, rows => rows.count().await)
    }

    async fn holds(&mut self) -> Result<Vec<Hold>, SinkError> {
        each!(self, rows => rows.holds().await)
    }
}
