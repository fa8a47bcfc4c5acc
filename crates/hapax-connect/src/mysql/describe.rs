//! A table of a MySQL or MariaDB database, described; and the types of a new one.

use hapax_engine::sink::SinkError;
use hapax_sql::mysql::{Limits, MysqlUrl, Session, TableName};

use super::column::MysqlColumn;
use super::error::{During, connect_error, sink_error};
use super::schema::{self, Found};
use crate::table::LiveColumn as _;
use crate::table::described::{Described, DescribedTable, InKey, Numbers, Room, Sort};

/// Reads what is under `table`.
///
/// # Errors
/// If the database cannot be reached, or does not answer.
pub async fn describe(url: &MysqlUrl, table: &TableName) -> Result<Described, SinkError> {
    let target = url.to_string();
    let connected = Session::connect(url, &Limits::default()).await;
    let mut session = connected.map_err(|error| connect_error(&target, &error))?;
    let found = schema::read(&mut session, table).await.map_err(|fault| sink_error(&target, During::Look, &fault))?;
    Ok(match found {
        Found::Table(table) => Described::Table(DescribedTable::from(&table.live)),
        Found::Nothing => Described::Nothing,
        Found::Other(what) => Described::Other(what.to_owned()),
    })
}

/// The type of a new column for values of this sort; of a key column, one that an index can hold and that compares
/// texts byte by byte.
#[must_use]
pub const fn column_type(sort: Sort, key: InKey) -> &'static str {
    match (sort, key) {
        (Sort::Number(Numbers { whole: true, .. }), _) => "BIGINT",
        (Sort::Number(Numbers { room: Room::Usual, .. }), _) => "DECIMAL(38, 9)",
        (Sort::Number(Numbers { room: Room::Wide, .. }), _) => "DECIMAL(65, 30)",
        (Sort::Number(Numbers { double: true, .. }), _) => "DOUBLE",
        (Sort::Boolean, _) => "BOOLEAN",
        (Sort::Date, _) => "DATE",
        (Sort::Timestamp, _) => "DATETIME(6)",
        (Sort::Number(_) | Sort::Uuid | Sort::Text | Sort::Unknown | Sort::Json, InKey::Yes) => MysqlColumn::KEY_TYPE,
        (Sort::Uuid, InKey::No) => "CHAR(36)",
        (Sort::Json, InKey::No) => "JSON",
        (Sort::Number(_) | Sort::Text | Sort::Unknown, InKey::No) => "LONGTEXT",
    }
}
