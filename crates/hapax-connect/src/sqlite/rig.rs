//! What the tests of the sinks share: a table in a file of its own, and JSON lines delivered into it.

use hapax_model::key::DedupStrategy;
use hapax_model::mode::ConflictMode;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::config::SqliteSinkConfig;
use super::idempotent::SqliteIdempotentSink;
use super::sample::{Place, bare, id};
use super::sink::{SqliteDatabase, SqliteSink};
use crate::table::config::TableConfig;
use crate::table::rig::{self, Database};

pub(super) type Rig = rig::Rig<File>;

/// A file of its own.
pub(super) struct File {
    pub(super) place: Place,
}

impl Rig {
    pub(super) fn look(&self) -> Connection {
        bare(&self.database.place.path())
    }
}

impl Database for File {
    type Home = SqliteDatabase;

    const PLAIN: &'static str = "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT DEFAULT 'none', b INTEGER)";
    const NUMBER_AND_JSON: (&'static str, &'static str) = ("REAL", "");
    const OURS: &'static str = "hapax_";

    async fn new(ddl: &str) -> Self {
        let place = Place::new();
        bare(&place.path()).execute_batch(ddl).unwrap();
        Self { place }
    }

    async fn foreign(ddl: &str) -> Self {
        Self::new(ddl).await
    }

    fn config(&self) -> SqliteSinkConfig {
        SqliteSinkConfig::new(self.place.path(), "t")
    }

    fn table(config: &mut SqliteSinkConfig) -> &mut TableConfig {
        &mut config.table
    }

    fn rows_per_statement(config: &mut SqliteSinkConfig) -> &mut usize {
        &mut config.rows_per_statement
    }

    fn sink(config: &SqliteSinkConfig) -> SqliteSink {
        SqliteSink::new(config.clone(), id("rig"))
    }

    fn keyed_sink(config: SqliteSinkConfig) -> SqliteIdempotentSink {
        SqliteIdempotentSink::new(config, DedupStrategy::SourceOffset)
    }

    async fn run(&mut self, sql: &str) {
        bare(&self.place.path()).execute_batch(sql).unwrap();
    }

    async fn texts(&mut self, sql: &str) -> Vec<String> {
        texts(&bare(&self.place.path()), sql)
    }
}

/// The only column of a query, as text.
pub(super) fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let text = |value: Value| match value {
        Value::Text(text) => text,
        Value::Integer(number) => number.to_string(),
        value @ (Value::Null | Value::Real(_) | Value::Blob(_)) => panic!("{sql} gives {value:?}"),
    };
    statement.query_map([], |row| Ok(text(row.get(0)?))).unwrap().map(Result::unwrap).collect()
}

/// Keyed by `id`, in this mode.
pub(super) fn keyed(mode: ConflictMode) -> impl FnOnce(&mut SqliteSinkConfig) {
    move |config| rig::by_id(&mut config.table, mode)
}
