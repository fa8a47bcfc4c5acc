use std::sync::OnceLock;

use hapax_services::{Client, Postgres, ServiceError};

use super::*;

const SOON: Duration = Duration::from_secs(10);
const MARK: &str = "INSERT INTO hapax.epochs VALUES (1)";

/// A server for all tests of this file, which goes with this process.
fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Postgres::builder().setting("fsync", "off").start().expect("PostgreSQL starts");
        server.query("CREATE SCHEMA hapax").expect("a schema");
        server.query("CREATE TABLE hapax.epochs (epoch int)").expect("a table");
        server
    })
}

struct Rig {
    proxy: Proxy,
    dir: tempfile::TempDir,
    database: String,
}

/// A database of its own, and a proxy before it.
fn rig(name: &str) -> Rig {
    let database = format!("proxy_{name}");
    server().query(&format!("CREATE DATABASE {database}")).expect("a database");
    let sql = "CREATE SCHEMA hapax; CREATE TABLE hapax.epochs (epoch int)";
    server().connect(&database).and_then(|mut client| client.query(sql)).expect("a table");
    let dir = tempfile::tempdir().expect("a directory");
    let proxy = Proxy::start(Engine::Postgres, server().port(), &dir.path().join("proxy.log")).expect("it listens");
    Rig { proxy, dir, database }
}

impl Rig {
    fn client(&self) -> Client {
        Client::connect(self.proxy.port(), &self.database).expect("it connects")
    }

    fn commit(&self) -> Result<String, ServiceError> {
        let mut client = self.client();
        client.query("BEGIN")?;
        client.query(MARK)?;
        Ok(client.query("COMMIT")?.tag)
    }

    fn rows(&self) -> String {
        let mut client = server().connect(&self.database).expect("it connects");
        let answer = client.query("SELECT count(*) FROM hapax.epochs").expect("it counts");
        answer.value().unwrap_or_default().to_owned()
    }

    fn arm(&self, deed: Deed, pass: u64) {
        self.proxy.arm(Fault { watch: Watch::Epoch, pass, deed });
    }
}

/// Goal: without a fault nothing changes. Method: a transaction, an error and many rows through the proxy.
#[test]
fn everything_passes_until_a_fault_is_armed() {
    let rig = rig("passes");
    assert_eq!(rig.commit().expect("it commits"), "COMMIT");
    let mut client = rig.client();
    assert_eq!(client.query("SELECT 1/0").expect_err("it fails").code(), Some("22012"));
    assert_eq!(client.query("SELECT * FROM generate_series(1, 20000)").expect("rows").rows.len(), 20_000);
    assert_eq!(rig.rows(), "1");
}

/// Goal: a dropped answer is one of a transaction that committed. Method: count from outside; the log names the deed.
#[test]
fn a_dropped_answer_belongs_to_a_commit_that_happened() {
    let rig = rig("drops");
    rig.arm(Deed::DropAnswer, 2);
    assert!(rig.commit().is_ok());
    assert!(rig.commit().is_err());
    assert_eq!((rig.rows().as_str(), rig.proxy.happened(Deed::DropAnswer, Watch::Epoch)), ("2", 1));
    let log = std::fs::read_to_string(rig.dir.path().join("proxy.log")).expect("a log");
    assert!(log.contains("dropped the answer to epoch on connection 2"), "{log}");
    assert!(rig.commit().is_ok(), "a fault happens once");
}

/// Goal: a lost request took no effect. Method: count from outside.
#[test]
fn a_lost_request_takes_no_effect() {
    let rig = rig("loses");
    rig.arm(Deed::LoseRequest, 1);
    assert!(rig.commit().is_err());
    assert_eq!((rig.rows().as_str(), rig.proxy.happened(Deed::LoseRequest, Watch::Epoch)), ("0", 1));
}

/// Goal: a held answer comes after the release, of a transaction that committed before it. Method: count meanwhile.
#[test]
fn a_held_answer_comes_when_it_is_released() {
    let rig = rig("holds");
    rig.arm(Deed::HoldAnswer, 1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| rig.commit());
        assert!(rig.proxy.wait_happened(Deed::HoldAnswer, Watch::Epoch, 1, SOON));
        assert_eq!(rig.rows(), "1");
        assert!(!waiting.is_finished());
        rig.proxy.release();
        assert_eq!(waiting.join().expect("it ends").expect("it commits"), "COMMIT");
    });
}

/// Goal: a transaction can fail without a word before its COMMIT. Method: the server's own tag, and nothing there.
#[test]
fn a_spoiled_transaction_is_answered_with_rollback() {
    let rig = rig("spoils");
    rig.arm(Deed::Spoil, 1);
    assert_eq!(rig.commit().expect("no error comes"), "ROLLBACK");
    assert_eq!((rig.rows().as_str(), rig.proxy.happened(Deed::Spoil, Watch::Epoch)), ("0", 1));
    assert_eq!(rig.commit().expect("a fault happens once"), "COMMIT");
}

/// Goal: a COMMIT is found wherever it stands in a message. Method: one that asks something before it.
#[test]
fn a_commit_behind_another_statement_is_found() {
    let rig = rig("behind");
    rig.arm(Deed::Spoil, 1);
    let mut client = rig.client();
    client.query(&format!("BEGIN; {MARK}")).expect("it writes");
    let failed = client.query("SELECT 1; COMMIT").expect_err("the transaction has failed");
    assert_eq!((failed.code(), rig.rows().as_str()), (Some("25P02"), "0"));
}

/// Goal: a transaction that was rolled back by its client is no pass. Method: one of each, a fault at the first pass.
#[test]
fn only_commits_count_as_passes() {
    let rig = rig("counts");
    rig.arm(Deed::LoseRequest, 1);
    let mut client = rig.client();
    for statement in ["BEGIN", MARK, "ROLLBACK", "BEGIN", "SELECT 1", "COMMIT"] {
        client.query(statement).expect("nothing happens");
    }
    assert_eq!(rig.proxy.happened(Deed::LoseRequest, Watch::Epoch), 0);
    assert!(rig.commit().is_err());
}

/// Goal: connections can be sent elsewhere. Method: cut, then nobody there, then the server again.
#[test]
fn connections_can_be_cut_and_sent_elsewhere() {
    let rig = rig("redirects");
    let mut client = rig.client();
    rig.proxy.redirect(1);
    assert!(client.query("SELECT 1").is_err());
    assert!(Client::connect(rig.proxy.port(), &rig.database).is_err());
    rig.proxy.redirect(server().port());
    assert!(rig.commit().is_ok());
}
