//! Statements that we suggest for SQLite and never run.

use super::config::SqliteSinkConfig;
use super::schema::SqliteColumn;
use crate::table::ddl;

/// A `CREATE TABLE` that fits the configuration; SQLite takes any value in a column without a type.
#[must_use]
pub fn suggested_ddl(config: &SqliteSinkConfig) -> String {
    ddl::suggested_ddl::<SqliteColumn>(&config.table)
}

#[cfg(test)]
#[path = "ddl_tests.rs"]
mod tests;
