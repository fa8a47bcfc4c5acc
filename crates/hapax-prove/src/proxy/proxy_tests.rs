use std::sync::OnceLock;

use hapax_services::{Client, Mariadb, MysqlClient, Postgres, ServiceError};

use super::*;
use crate::database::Line;

const SOON: Duration = Duration::from_secs(120);

/// A server of each kind for all tests of this file, which goes with this process.
fn port_of(engine: Engine) -> u16 {
    static POSTGRES: OnceLock<Postgres> = OnceLock::new();
    static MARIADB: OnceLock<Mariadb> = OnceLock::new();
    match engine {
        Engine::Mysql => {
            MARIADB.get_or_init(|| Mariadb::builder().without_sync().start().expect("MariaDB starts")).port()
        }
        Engine::Postgres | Engine::Sqlite => POSTGRES
            .get_or_init(|| Postgres::builder().setting("fsync", "off").start().expect("PostgreSQL starts"))
            .port(),
    }
}

fn connect(engine: Engine, port: u16, database: &str) -> Result<Line, ServiceError> {
    match engine {
        Engine::Mysql => MysqlClient::connect(port, database).map(Line::Mysql),
        Engine::Postgres | Engine::Sqlite => Client::connect(port, database).map(Line::Postgres),
    }
}

struct Rig {
    engine: Engine,
    proxy: Proxy,
    dir: tempfile::TempDir,
    database: String,
    /// How a transaction begins, and what it says when it is committed.
    around: [&'static str; 2],
    /// Our table.
    epochs: &'static str,
}

/// A database of its own, and a proxy before it.
fn rig(engine: Engine, name: &str) -> Rig {
    let (first, around, epochs, tables) = match engine {
        Engine::Mysql => ("mysql", ["START TRANSACTION", "0"], "hapax_epochs", "CREATE TABLE hapax_epochs (epoch int)"),
        Engine::Postgres | Engine::Sqlite => (
            "postgres",
            ["BEGIN", "COMMIT"],
            "hapax.epochs",
            "CREATE SCHEMA hapax; CREATE TABLE hapax.epochs (epoch int)",
        ),
    };
    let (port, database) = (port_of(engine), format!("proxy_{name}"));
    for (database, sql) in [(first, format!("CREATE DATABASE {database}").as_str()), (&database, tables)] {
        connect(engine, port, database).and_then(|mut line| line.query(sql)).expect("a database with a table");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let proxy = Proxy::start(engine, port, &dir.path().join("proxy.log")).expect("it listens");
    Rig { engine, proxy, dir, database, around, epochs }
}

impl Rig {
    fn client(&self) -> Line {
        connect(self.engine, self.proxy.port(), &self.database).expect("it connects")
    }

    fn mark(&self) -> String {
        format!("INSERT INTO {} VALUES (1)", self.epochs)
    }

    fn commit(&self) -> Result<String, ServiceError> {
        let mut client = self.client();
        client.query(self.around[0])?;
        client.query(&self.mark())?;
        Ok(client.query("COMMIT")?.tag)
    }

    fn commits(&self) {
        assert_eq!(self.commit().expect("it commits"), self.around[1]);
    }

    fn rows(&self) -> String {
        let mut client = connect(self.engine, port_of(self.engine), &self.database).expect("it connects");
        let answer = client.query(&format!("SELECT count(*) FROM {}", self.epochs)).expect("it counts");
        answer.value().unwrap_or_default().to_owned()
    }

    fn arm(&self, deed: Deed, pass: u64) {
        self.proxy.arm(Fault { watch: Watch::Epoch, pass, deed });
    }
}

/// Each behaviour as a test before each server.
macro_rules! before_every_server {
    ($($behaviour:ident),+ $(,)?) => {
        mod mysql {
            $(#[test] fn $behaviour() { super::$behaviour(super::Engine::Mysql); })+
        }
        mod postgres {
            $(#[test] fn $behaviour() { super::$behaviour(super::Engine::Postgres); })+
        }
    };
}

before_every_server! {
    everything_passes_until_a_fault_is_armed,
    a_dropped_answer_belongs_to_a_commit_that_happened,
    a_lost_request_takes_no_effect,
    a_held_answer_comes_when_it_is_released,
    only_commits_count_as_passes,
    connections_can_be_cut_and_sent_elsewhere,
}

/// Goal: without a fault nothing changes. Method: a transaction, an error and many rows through the proxy.
fn everything_passes_until_a_fault_is_armed(engine: Engine) {
    let rig = rig(engine, "passes");
    rig.commits();
    let mut client = rig.client();
    let missing = client.query("SELECT * FROM nothing").expect_err("it fails");
    assert!(matches!(missing.code(), Some("1146" | "42P01")), "{missing}");
    let many = match engine {
        Engine::Mysql => "SELECT seq FROM seq_1_to_20000",
        Engine::Postgres | Engine::Sqlite => "SELECT * FROM generate_series(1, 20000)",
    };
    assert_eq!(client.query(many).expect("rows").rows.len(), 20_000);
    let wide = client.query("SELECT REPEAT('x', 16500000)").expect("a row of two packets");
    assert_eq!(wide.value().map(str::len), Some(16_500_000));
    assert_eq!(rig.rows(), "1");
}

/// Goal: a dropped answer is one of a transaction that committed. Method: count from outside; the log names the deed.
fn a_dropped_answer_belongs_to_a_commit_that_happened(engine: Engine) {
    let rig = rig(engine, "drops");
    rig.arm(Deed::DropAnswer, 2);
    assert!(rig.commit().is_ok());
    assert!(rig.commit().is_err());
    assert_eq!((rig.rows().as_str(), rig.proxy.happened(Deed::DropAnswer, Watch::Epoch)), ("2", 1));
    let log = std::fs::read_to_string(rig.dir.path().join("proxy.log")).expect("a log");
    assert!(log.contains("dropped the answer to epoch on connection 2"), "{log}");
    assert!(rig.commit().is_ok(), "a fault happens once");
}

/// Goal: a lost request took no effect. Method: count from outside.
fn a_lost_request_takes_no_effect(engine: Engine) {
    let rig = rig(engine, "loses");
    rig.arm(Deed::LoseRequest, 1);
    assert!(rig.commit().is_err());
    assert_eq!((rig.rows().as_str(), rig.proxy.happened(Deed::LoseRequest, Watch::Epoch)), ("0", 1));
}

/// Goal: a held answer comes after the release, of a transaction that committed before it. Method: count meanwhile.
fn a_held_answer_comes_when_it_is_released(engine: Engine) {
    let rig = rig(engine, "holds");
    rig.arm(Deed::HoldAnswer, 1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| rig.commits());
        assert!(rig.proxy.wait_happened(Deed::HoldAnswer, Watch::Epoch, 1, SOON));
        assert_eq!(rig.rows(), "1");
        assert!(!waiting.is_finished());
        rig.proxy.release();
        waiting.join().expect("it commits");
    });
}

/// Goal: a transaction that was rolled back by its client is no pass. Method: one of each, a fault at the first pass.
fn only_commits_count_as_passes(engine: Engine) {
    let rig = rig(engine, "counts");
    rig.arm(Deed::LoseRequest, 1);
    let mut client = rig.client();
    for statement in ["BEGIN", &rig.mark(), "ROLLBACK", "BEGIN", "SELECT 1", "COMMIT"] {
        client.query(statement).expect("nothing happens");
    }
    assert_eq!(rig.proxy.happened(Deed::LoseRequest, Watch::Epoch), 0);
    assert!(rig.commit().is_err());
}

/// Goal: connections can be sent elsewhere. Method: cut, then nobody there, then the server again.
fn connections_can_be_cut_and_sent_elsewhere(engine: Engine) {
    let rig = rig(engine, "redirects");
    let mut client = rig.client();
    rig.proxy.redirect(1);
    assert!(client.query("SELECT 1").is_err());
    assert!(connect(engine, rig.proxy.port(), &rig.database).is_err());
    rig.proxy.redirect(port_of(engine));
    assert!(rig.commit().is_ok());
}

/// Goal: in PostgreSQL a transaction can fail without a word before its COMMIT. Method: the server's own tag, and nothing
/// there.
#[test]
fn a_spoiled_transaction_is_answered_with_rollback() {
    let rig = rig(Engine::Postgres, "spoils");
    rig.arm(Deed::Spoil, 1);
    assert_eq!(rig.commit().expect("no error comes"), "ROLLBACK");
    assert_eq!((rig.rows().as_str(), rig.proxy.happened(Deed::Spoil, Watch::Epoch)), ("0", 1));
    rig.commits();
}

/// Goal: a COMMIT is found wherever it stands in a message. Method: one that asks something before it.
#[test]
fn a_commit_behind_another_statement_is_found() {
    let rig = rig(Engine::Postgres, "behind");
    rig.arm(Deed::Spoil, 1);
    let mut client = rig.client();
    client.query(&format!("BEGIN; {}", rig.mark())).expect("it writes");
    let failed = client.query("SELECT 1; COMMIT").expect_err("the transaction has failed");
    assert_eq!((failed.code(), rig.rows().as_str()), (Some("25P02"), "0"));
}

/// Goal: in MariaDB a COMMIT can be refused as in a cluster. Method: the error that a client sees, nothing there, the
/// session alive.
#[test]
fn a_spoiled_transaction_is_answered_with_a_deadlock() {
    let rig = rig(Engine::Mysql, "spoils");
    rig.arm(Deed::Spoil, 1);
    let mut client = rig.client();
    client.query("START TRANSACTION").and_then(|_| client.query(&rig.mark())).expect("it writes");
    assert_eq!(client.query("COMMIT").expect_err("it is refused").code(), Some("1213"));
    assert_eq!((rig.rows().as_str(), rig.proxy.happened(Deed::Spoil, Watch::Epoch)), ("0", 1));
    assert_eq!(client.query("SELECT 7").expect("the session lives").value(), Some("7"));
    assert!(rig.commit().is_ok(), "a fault happens once");
}
