//! A table of a SQLite file, described; and the types of a new one.

use std::path::Path;

use hapax_engine::sink::SinkError;
use hapax_sql::sqlite::OpenError;
use rusqlite::{Connection, OpenFlags};

use super::error::{During, open_error, sink_error};
use super::schema::{self, Found};
use crate::table::described::{Described, DescribedTable, Numbers, Sort};

/// Reads what is under `table` in the file at `path`; a file that is not there has nothing.
///
/// # Errors
/// If the file cannot be read.
pub fn describe(path: &Path, table: &str) -> Result<Described, SinkError> {
    if !path.exists() {
        return Ok(Described::Nothing);
    }
    if path.is_dir() {
        return Err(open_error(&OpenError::Folder { path: path.to_path_buf() }));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let found = Connection::open_with_flags(path, flags).and_then(|connection| schema::read(&connection, table));
    Ok(match found.map_err(|error| sink_error(path, During::Look, &error))? {
        Found::Table(table) => Described::Table(DescribedTable::from(&table.live)),
        Found::Nothing => Described::Nothing,
        Found::Other(what) => Described::Other(what.to_owned()),
    })
}

/// The type of a new column for values of this sort.
#[must_use]
pub const fn column_type(sort: Sort) -> &'static str {
    match sort {
        Sort::Number(Numbers { whole: true, .. }) => "INTEGER",
        Sort::Number(Numbers { double: true, .. }) => "REAL",
        Sort::Boolean => "BOOLEAN",
        Sort::Number(_) | Sort::Date | Sort::Timestamp | Sort::Uuid | Sort::Json | Sort::Text | Sort::Unknown => "TEXT",
    }
}
