//! A table of a PostgreSQL database, described; and the types of a new one.

use hapax_engine::sink::SinkError;
use hapax_sql::postgres::{Limits, PostgresUrl, Session, TableName};

use super::error::{During, connect_error, sink_error};
use super::schema::{self, Found, NoTable};
use crate::table::described::{Described, DescribedTable, Numbers, Sort};

/// Reads what is under `table`.
///
/// # Errors
/// If the database cannot be reached, or does not answer.
pub async fn describe(url: &PostgresUrl, table: &TableName) -> Result<Described, SinkError> {
    let target = url.to_string();
    let session = Session::connect(url, &Limits::default()).await.map_err(|error| connect_error(&target, &error))?;
    let found = schema::read(&session, table).await.map_err(|fault| sink_error(&target, During::Look, &fault))?;
    Ok(match found {
        Found::Table(table) => Described::Table(DescribedTable::from(&table.live)),
        Found::Nothing => Described::Nothing,
        Found::Other(NoTable::Kind(what)) => Described::Other(what.to_owned()),
        Found::Other(NoTable::Foreign) => Described::Other("a foreign table".to_owned()),
        Found::Other(NoTable::Unlogged) => Described::Other("an unlogged table, which a crash empties".to_owned()),
        Found::Other(NoTable::Temporary) => Described::Other("a temporary table".to_owned()),
    })
}

/// The type of a new column for values of this sort.
#[must_use]
pub const fn column_type(sort: Sort) -> &'static str {
    match sort {
        Sort::Number(Numbers { whole: true, .. }) => "bigint",
        Sort::Number(_) => "numeric",
        Sort::Boolean => "boolean",
        Sort::Date => "date",
        Sort::Timestamp => "timestamptz",
        Sort::Uuid => "uuid",
        Sort::Json => "jsonb",
        Sort::Text | Sort::Unknown => "text",
    }
}
