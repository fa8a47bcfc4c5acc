//! A part's target, opened for looking at its rows.

use std::sync::Arc;

#[cfg(feature = "mysql")]
use hapax_connect::mysql::read::MysqlRows;
#[cfg(feature = "postgres")]
use hapax_connect::postgres::read::PostgresRows;
use hapax_connect::sqlite::read::SqliteRows;
use hapax_connect::table::mapping::NO_TABLE;
use hapax_engine::batch::Batch;
use hapax_engine::rows::{FoundRow, Hold, RowChoice, RowReader, RowState, TableShape};
use hapax_engine::sink::SinkError;
use hapax_model::letter::Cause;

use super::Part;
use crate::config::Target;
use crate::exit::Failure;

/// The rows of any target.
#[derive(Debug)]
pub(crate) enum AnyRows {
    Sqlite(Box<SqliteRows>),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresRows>),
    #[cfg(feature = "mysql")]
    Mysql(Box<MysqlRows>),
}

impl AnyRows {
    /// Opens the target of `part` for reading.
    pub(crate) async fn of_part(part: &Part<'_>) -> Result<Self, Failure> {
        match &part.sink.target {
            Target::Sqlite(sqlite) => Ok(Self::Sqlite(Box::new(SqliteRows::open(&part.sqlite_config(sqlite)).await?))),
            #[cfg(feature = "postgres")]
            Target::Postgres(postgres) => {
                Ok(Self::Postgres(Box::new(PostgresRows::open(&part.postgres_config(postgres)).await?)))
            }
            #[cfg(feature = "mysql")]
            Target::Mysql(mysql) => Ok(Self::Mysql(Box::new(MysqlRows::open(&part.mysql_config(mysql)).await?))),
        }
    }
}

/// What a target that could not be opened for looking is: a table that was read and is not fit is no target that is away.
pub(crate) fn why_not_looked_at(failure: &Failure) -> &'static str {
    let unfit = ["HX4111"..="HX4118", "HX4250"..="HX4255", "HX4400"..="HX4402"];
    match failure.code {
        Some(NO_TABLE) => "the table is not there",
        Some(code) if unfit.iter().any(|codes| codes.contains(&code)) => "the table is not fit",
        Some(_) | None => "the target cannot be read",
    }
}

macro_rules! each {
    ($self:expr, $rows:ident => $answer:expr) => {
        match $self {
            AnyRows::Sqlite($rows) => $answer,
            #[cfg(feature = "postgres")]
            AnyRows::Postgres($rows) => $answer,
            #[cfg(feature = "mysql")]
            AnyRows::Mysql($rows) => $answer,
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
