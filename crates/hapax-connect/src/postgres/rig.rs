//! What the tests of the sinks share: a table in a database of its own, and JSON lines delivered into it.

use hapax_model::key::DedupStrategy;
use hapax_model::mode::ConflictMode;
use hapax_sql::postgres::Session;
use tokio_postgres::SimpleQueryMessage;

use super::config::PostgresSinkConfig;
use super::idempotent::PostgresIdempotentSink;
use super::sample::{Place, id, run};
use super::sink::{PostgresDatabase, PostgresSink};
use crate::table::config::TableConfig;
use crate::table::rig::{self, Database};

pub(super) type Rig = rig::Rig<Server>;

/// A database of its own on the test server.
pub(super) struct Server {
    /// Another session, as any reader has one.
    pub(super) look: Session,
    // Last: the database is dropped after everybody has left it.
    pub(super) place: Place,
}

impl Server {
    /// In a database that is there, with our tables.
    async fn at(place: Place, ddl: &str) -> Self {
        let look = place.connect().await;
        run(&look, ddl).await;
        Self { look, place }
    }
}

impl Database for Server {
    type Home = PostgresDatabase;

    const PLAIN: &'static str = "CREATE TABLE t (id bigint PRIMARY KEY, a text DEFAULT 'none', b integer)";
    const NUMBER_AND_JSON: (&'static str, &'static str) = ("float8", "jsonb");
    const OURS: &'static str = "hapax.";

    async fn new(ddl: &str) -> Self {
        Self::at(Place::new().await, ddl).await
    }

    async fn foreign(ddl: &str) -> Self {
        let place = Place::new().await;
        let look = place.bare().await;
        run(&look, ddl).await;
        Self { look, place }
    }

    fn config(&self) -> PostgresSinkConfig {
        PostgresSinkConfig::new(self.place.url(), "t")
    }

    fn table(config: &mut PostgresSinkConfig) -> &mut TableConfig {
        &mut config.table
    }

    fn rows_per_statement(config: &mut PostgresSinkConfig) -> &mut usize {
        &mut config.rows_per_statement
    }

    fn sink(config: &PostgresSinkConfig) -> PostgresSink {
        PostgresSink::new(config.clone(), config.pool(), id("rig"))
    }

    fn keyed_sink(config: PostgresSinkConfig) -> PostgresIdempotentSink {
        let pool = config.pool();
        PostgresIdempotentSink::new(config, pool, DedupStrategy::SourceOffset)
    }

    async fn run(&mut self, sql: &str) {
        run(&self.look, sql).await;
    }

    async fn texts(&mut self, sql: &str) -> Vec<String> {
        texts(&self.look, sql).await
    }
}

pub(super) async fn texts(session: &Session, sql: &str) -> Vec<String> {
    let answer = session.client().simple_query(sql).await.unwrap();
    let mut rows = Vec::new();
    for message in &answer {
        if let SimpleQueryMessage::Row(row) = message {
            rows.push(row.get(0).unwrap_or("NULL").to_owned());
        }
    }
    rows
}

/// A table whose inserts sleep while `slow` has a row.
pub(super) const SLEEPY: &str = "CREATE TABLE t (id int PRIMARY KEY, b int); CREATE TABLE slow (x int); \
    INSERT INTO slow VALUES (1); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
    IF EXISTS (SELECT FROM slow) THEN PERFORM pg_sleep(50); END IF; RETURN new; END $$; \
    CREATE TRIGGER s BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()";

/// Ends the session that sleeps in [`SLEEPY`], once one does; later ones do not sleep.
pub(super) async fn end_the_sleeper(other: Session) {
    let sleeping = "FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
    while texts(&other, &format!("SELECT pid::text {sleeping}")).await.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    run(&other, &format!("DELETE FROM slow; SELECT pg_terminate_backend(pid) {sleeping}")).await;
}

/// Keyed by `id`, in this mode.
pub(super) fn keyed(mode: ConflictMode) -> impl FnOnce(&mut PostgresSinkConfig) {
    move |config| rig::by_id(&mut config.table, mode)
}
