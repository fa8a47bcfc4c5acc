//! A database of one's own for a test, in the server that HAPAX_TEST_MYSQL names; dropped at the end.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{Host, Limits, MysqlUrl, Session};

static COUNT: AtomicU32 = AtomicU32::new(0);

pub(super) struct TestDatabase {
    server: MysqlUrl,
    name: String,
}

impl TestDatabase {
    pub(super) fn new() -> Self {
        let given = std::env::var("HAPAX_TEST_MYSQL")
            .expect("run `cargo xtask test`, or `cargo xtask services -- cargo test …`");
        let server = MysqlUrl::parse(&given).unwrap();
        let name = format!("hapax_sql_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let database = Self { server, name };
        database.on_server(&format!("CREATE DATABASE {}", database.name));
        database
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn url(&self) -> MysqlUrl {
        self.server.with_database(&self.name)
    }

    pub(super) fn port(&self) -> u16 {
        let Host::Tcp(_, port) = self.server.host() else { panic!("a server on loopback") };
        *port
    }

    pub(super) async fn session(&self) -> Session {
        Session::connect(&self.url(), &quick()).await.unwrap()
    }

    /// The address of the same database behind another port.
    pub(super) fn behind(&self, port: u16) -> MysqlUrl {
        MysqlUrl::parse(&format!("mysql://root@127.0.0.1:{port}/{}?ssl-mode=disabled", self.name)).unwrap()
    }

    pub(super) fn on_server(&self, sql: &str) {
        hapax_services::MysqlClient::connect(self.port(), "").unwrap().query(sql).unwrap();
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        self.on_server(&format!("DROP DATABASE {}", self.name));
    }
}

/// Limits under which a test that waits for the wrong thing ends soon.
pub(super) fn quick() -> Limits {
    Limits {
        idle_in_transaction: Duration::from_secs(10),
        statement: Duration::from_secs(10),
        lock: Duration::from_secs(10),
        connect: Duration::from_secs(5),
    }
}
