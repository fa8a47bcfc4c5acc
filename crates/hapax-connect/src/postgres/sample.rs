//! What the tests of this folder share: a database of one's own on the test server, a delivery, an epoch.

use std::sync::atomic::{AtomicU32, Ordering};

use hapax_engine::books::Pause;
use hapax_model::position::DeliveryId;
use hapax_sql::postgres::{Limits, PostgresUrl, Session, quote_identifier};

use super::tables::{Role, ensure};
pub(super) use crate::table::sample::{contract, letter, next, take};

static MADE: AtomicU32 = AtomicU32::new(0);

/// A database of its own, dropped when this is.
pub(super) struct Place {
    server: PostgresUrl,
    name: String,
}

impl Place {
    pub(super) async fn new() -> Self {
        Self::with("ENCODING 'UTF8'").await
    }

    /// A database made with these options.
    pub(super) async fn with(options: &str) -> Self {
        let server = std::env::var("HAPAX_TEST_POSTGRES")
            .expect("run `cargo xtask test`, or `cargo xtask services -- cargo test …`");
        let server = PostgresUrl::parse(&server).unwrap();
        let name = format!("ledger_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let place = Self { server, name };
        let make = format!("CREATE DATABASE {} TEMPLATE template0 {options}", quote_identifier(&place.name).unwrap());
        let session = Session::connect(&place.server, &Limits::default()).await.unwrap();
        session.client().batch_execute(&make).await.unwrap();
        place
    }

    pub(super) fn url(&self) -> PostgresUrl {
        self.server.with_database(&self.name)
    }

    /// The same database, as this role.
    pub(super) fn url_of(&self, user: &str) -> PostgresUrl {
        let text = std::env::var("HAPAX_TEST_POSTGRES").unwrap();
        let (_, host) = text.split_once('@').expect("the URL of the test server names a user");
        PostgresUrl::parse(&format!("postgres://{user}@{host}")).unwrap().with_database(&self.name)
    }

    /// The same database by another port of this machine.
    pub(super) fn url_by(&self, port: u16) -> PostgresUrl {
        let text = std::env::var("HAPAX_TEST_POSTGRES").unwrap();
        let text = text.replace(&server_address(), &format!("127.0.0.1:{port}"));
        PostgresUrl::parse(&text).unwrap().with_database(&self.name)
    }

    /// A session without our tables.
    pub(super) async fn bare(&self) -> Session {
        Session::connect(&self.url(), &Limits::default()).await.unwrap()
    }

    /// A session of its own, with our tables.
    pub(super) async fn connect(&self) -> Session {
        let session = self.bare().await;
        ensure(&session, Role::State).await.unwrap();
        session
    }

    /// Returns once so many sessions of this database wait for a lock.
    pub(super) async fn until_waiting(&self, sessions: i64) {
        let (session, begun) = (self.bare().await, std::time::Instant::now());
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                       AND wait_event_type = 'Lock'";
        while number(&session, waiting).await < sessions {
            assert!(begun.elapsed().as_secs() < 60, "waited in vain until {sessions} session(s) wait for a lock");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Two sessions, with our tables.
    pub(super) async fn connect_two(&self) -> (Session, Session) {
        (self.connect().await, self.bare().await)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), quote_identifier(&self.name).unwrap());
        let drop = async move {
            let session = Session::connect(&server, &Limits::default()).await.unwrap();
            session.client().batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
        };
        // A thread of its own: the test's runtime is busy, or gone.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        std::thread::spawn(move || runtime.block_on(drop)).join().unwrap();
    }
}

/// Host and port of the test server.
pub(super) fn server_address() -> String {
    let text = std::env::var("HAPAX_TEST_POSTGRES").unwrap();
    let (_, host) = text.split_once('@').expect("the URL of the test server names a user");
    host.split(['/', '?']).next().unwrap_or_default().to_owned()
}

/// Runs statements, as a person with psql would.
pub(super) async fn run(session: &Session, sql: &str) {
    session.client().batch_execute(sql).await.unwrap();
}

/// The one number that a question answers.
pub(super) async fn number(session: &Session, sql: &str) -> i64 {
    session.client().query_one(sql, &[]).await.unwrap().get(0)
}

pub(super) fn id(workflow: &str) -> DeliveryId {
    DeliveryId { workflow: workflow.into(), sink: "table".into(), lane: "lane".into() }
}

pub(super) fn pause(workflow: &str) -> Pause {
    Pause { workflow: workflow.into(), by: "me".into(), why: String::new(), since_ms: 1, until_ms: None }
}
