//! Statements that we suggest for PostgreSQL and never run.

use super::column::PostgresColumn;
use super::config::PostgresSinkConfig;
use crate::table::ddl;

/// A `CREATE TABLE` that fits the configuration; columns of which nothing is known are `text`.
#[must_use]
pub fn suggested_ddl(config: &PostgresSinkConfig) -> String {
    ddl::suggested_ddl::<PostgresColumn>(&config.table)
}
