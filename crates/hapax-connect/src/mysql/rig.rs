//! What the tests of the sinks share: a table in a database of its own, and JSON lines delivered into it.

use hapax_model::key::DedupStrategy;
use hapax_model::mode::ConflictMode;
use hapax_sql::mysql::Session;

use super::config::MysqlSinkConfig;
use super::idempotent::MysqlIdempotentSink;
use super::sample::{Place, id, run};
use super::schema::text;
use super::sink::{MysqlDatabase, MysqlSink};
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
    pub(super) async fn at(place: Place, ddl: &str) -> Self {
        let mut look = place.connect().await;
        run(&mut look, ddl).await;
        Self { look, place }
    }
}

impl Database for Server {
    type Home = MysqlDatabase;

    const PLAIN: &'static str = "CREATE TABLE t (id bigint PRIMARY KEY, a varchar(99) DEFAULT 'none', b integer)";
    const NUMBER_AND_JSON: (&'static str, &'static str) = ("double", "json");
    const OURS: &'static str = "hapax_";

    async fn new(ddl: &str) -> Self {
        Self::at(Place::new().await, ddl).await
    }

    async fn foreign(ddl: &str) -> Self {
        let place = Place::new().await;
        let mut look = place.bare().await;
        run(&mut look, ddl).await;
        Self { look, place }
    }

    fn config(&self) -> MysqlSinkConfig {
        MysqlSinkConfig::new(self.place.url(), "t")
    }

    fn table(config: &mut MysqlSinkConfig) -> &mut TableConfig {
        &mut config.table
    }

    fn rows_per_statement(config: &mut MysqlSinkConfig) -> &mut usize {
        &mut config.rows_per_statement
    }

    fn sink(config: &MysqlSinkConfig) -> MysqlSink {
        MysqlSink::new(config.clone(), config.pool(), id("rig"))
    }

    fn keyed_sink(config: MysqlSinkConfig) -> MysqlIdempotentSink {
        let pool = config.pool();
        MysqlIdempotentSink::new(config, pool, DedupStrategy::SourceOffset)
    }

    async fn run(&mut self, sql: &str) {
        run(&mut self.look, sql).await;
    }

    async fn texts(&mut self, sql: &str) -> Vec<String> {
        texts(&mut self.look, sql).await
    }
}

pub(super) async fn texts(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = session.text_rows(sql).await.unwrap();
    rows.iter().map(|row| text(row, 0).unwrap_or_else(|| "NULL".to_owned())).collect()
}

/// A table whose inserts sleep while `slow` has a row.
pub(super) const SLEEPY: &str = "CREATE TABLE t (id int PRIMARY KEY, b int); CREATE TABLE slow (x int); INSERT INTO slow VALUES (1); \
    CREATE TRIGGER s BEFORE INSERT ON t FOR EACH ROW IF EXISTS (SELECT 1 FROM slow) THEN DO SLEEP(5); END IF";

/// Ends the session that sleeps in [`SLEEPY`], once one does; later ones do not sleep.
pub(super) async fn end_the_sleeper(mut other: Session) {
    let sleeping = "SELECT id FROM information_schema.PROCESSLIST \
                    WHERE db = DATABASE() AND id <> CONNECTION_ID() AND state = 'User sleep'";
    let found = loop {
        match texts(&mut other, sleeping).await.into_iter().next() {
            Some(id) => break id,
            None => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };
    run(&mut other, &format!("KILL {found}; DELETE FROM slow")).await;
}

/// Keyed by `id`, in this mode.
pub(super) fn keyed(mode: ConflictMode) -> impl FnOnce(&mut MysqlSinkConfig) {
    move |config| rig::by_id(&mut config.table, mode)
}
