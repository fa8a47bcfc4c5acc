//! What the tests of this folder share: a database of one's own on the test server, a delivery, an epoch.

use std::sync::atomic::{AtomicU32, Ordering};

use hapax_model::position::DeliveryId;
use hapax_sql::mysql::{Limits, MysqlUrl, Session, quote_identifier};

use super::tables::ensure;
pub(super) use crate::table::sample::{contract, letter, next, take};

static MADE: AtomicU32 = AtomicU32::new(0);

/// A database of its own, dropped when this is.
pub(super) struct Place {
    server: MysqlUrl,
    name: String,
}

impl Place {
    pub(super) async fn new() -> Self {
        Self::at(&given()).await
    }

    /// A database of MySQL's own server, which not every machine can have. A test that needs it is ignored, and its name
    /// begins with `mysqls_own_server`: `cargo xtask test` runs it where there is one, and counts it as left out elsewhere.
    pub(super) async fn of_mysql() -> Self {
        let server = std::env::var("HAPAX_TEST_MYSQL8");
        Self::at(&server.expect("run `cargo xtask test` where MySQL's own server can be had")).await
    }

    async fn at(server: &str) -> Self {
        let server = MysqlUrl::parse(server).unwrap();
        let name = format!("ledger_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let place = Self { server, name };
        let make = format!("CREATE DATABASE {} CHARACTER SET utf8mb4", quote_identifier(&place.name).unwrap());
        let mut session = Session::connect(&place.server, &Limits::default()).await.unwrap();
        run(&mut session, &make).await;
        place
    }

    pub(super) fn url(&self) -> MysqlUrl {
        self.server.with_database(&self.name)
    }

    /// The same database, as this user without a password.
    pub(super) fn url_of(&self, user: &str) -> MysqlUrl {
        let text = given();
        let (_, host) = text.split_once('@').expect("the URL of the test server names a user");
        MysqlUrl::parse(&format!("mysql://{user}@{host}")).unwrap().with_database(&self.name)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Somebody else's connection, which nobody takes for one of ours.
    pub(super) fn stranger(&self) -> hapax_services::MysqlClient {
        let text = given();
        let port = text.rsplit_once(':').and_then(|(_, port)| port.trim_end_matches('/').parse().ok());
        hapax_services::MysqlClient::connect(port.expect("the URL names a port"), &self.name).unwrap()
    }

    /// A session without our tables.
    pub(super) async fn bare(&self) -> Session {
        Session::connect(&self.url(), &Limits::default()).await.unwrap()
    }

    /// A session of its own, with our tables.
    pub(super) async fn connect(&self) -> Session {
        let mut session = self.bare().await;
        ensure(&mut session).await.unwrap();
        session
    }

    /// Two sessions, with our tables.
    pub(super) async fn connect_two(&self) -> (Session, Session) {
        (self.connect().await, self.bare().await)
    }
}

fn given() -> String {
    std::env::var("HAPAX_TEST_MYSQL").expect("run `cargo xtask test`, or `cargo xtask services -- cargo test …`")
}

impl Drop for Place {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), quote_identifier(&self.name).unwrap());
        let drop = async move {
            let mut session = Session::connect(&server, &Limits::default()).await.unwrap();
            run(&mut session, &format!("DROP DATABASE IF EXISTS {name}")).await;
        };
        // A thread of its own: the test's runtime is busy, or gone.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        std::thread::spawn(move || runtime.block_on(drop)).join().unwrap();
    }
}

/// Runs statements, as a person with a client would.
pub(super) async fn run(session: &mut Session, sql: &str) {
    session.text(sql).await.unwrap();
}

/// The one number that a question answers.
pub(super) async fn number(session: &mut Session, sql: &str) -> i64 {
    let rows = session.rows(sql, Vec::new()).await.unwrap();
    rows[0].get(0).unwrap()
}

/// Returns once a session of the same database is seen in this state of the server's list of processes.
pub(super) async fn until_a_session_is(session: &mut Session, state: &str) {
    let begun = std::time::Instant::now();
    let seen =
        format!("SELECT count(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND STATE = '{state}'");
    while number(session, &seen).await == 0 {
        assert!(begun.elapsed().as_secs() < 60, "waited in vain until a session is in the state {state:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

pub(super) fn id(workflow: &str) -> DeliveryId {
    DeliveryId { workflow: workflow.into(), sink: "table".into(), lane: "lane".into() }
}
