//! A database of one's own for a test, in one server for all tests of this crate, as durable as the store
//! demands; dropped at the end.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use hapax_sql::postgres::PostgresUrl;

use super::{PostgresOptions, PostgresStore};
use crate::model::BrokerId;

static COUNT: AtomicU32 = AtomicU32::new(0);
/// The server that other crates' tests share has `fsync = off`, which the store refuses.
static SERVER: LazyLock<hapax_services::Postgres> = LazyLock::new(|| {
    let server = hapax_services::Postgres::builder().setting("max_connections", "300").start();
    server.expect("the tests need PostgreSQL")
});

/// A database of one's own.
pub(crate) struct TestDatabase {
    server: PostgresUrl,
    name: String,
}

impl TestDatabase {
    pub(crate) fn new() -> Self {
        let server = PostgresUrl::parse(&SERVER.url("postgres")).unwrap();
        let name = format!("hapax_broker_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let database = Self { server, name };
        database.on_server(&format!("CREATE DATABASE {}", database.name));
        database
    }

    pub(crate) fn url(&self) -> PostgresUrl {
        self.server.with_database(&self.name)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The store of broker `number`.
    pub(crate) async fn store(&self, number: i32) -> PostgresStore {
        PostgresStore::open(PostgresOptions { url: self.url(), broker: BrokerId(number) }).await.unwrap()
    }

    /// Runs SQL in this database; the rows as text.
    pub(crate) fn sql(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        query(self.server.hosts()[0].1, &self.name, sql)
    }

    /// Gives broker `number` a lease that does not end while a test runs, so that only what the test does can end its turn.
    pub(crate) fn lend(&self, number: i32) {
        self.sql(&format!("UPDATE kafka.brokers SET lease_until = now() + interval '1 hour' WHERE id = {number}"));
    }

    pub(crate) fn on_server(&self, sql: &str) {
        query(self.server.hosts()[0].1, "postgres", sql);
    }
}

fn query(port: u16, database: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    hapax_services::Client::connect(port, database).unwrap().query(sql).unwrap().rows
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        self.on_server(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}
