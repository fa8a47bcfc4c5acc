use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use hapax_services::{Mariadb, MysqlClient, ServiceError};

use super::*;
use crate::database::Engine;
use crate::proxy::{Fault, Proxy};

const SOON: Duration = Duration::from_secs(10);
const MARK: &str = "INSERT INTO hapax_epochs VALUES (1)";

/// A server for all tests of this file, which goes with this process.
fn server() -> &'static Mariadb {
    static SERVER: OnceLock<Mariadb> = OnceLock::new();
    SERVER.get_or_init(|| Mariadb::builder().without_sync().start().expect("MariaDB starts"))
}

struct Rig {
    proxy: Proxy,
    log: PathBuf,
    database: String,
    _dir: tempfile::TempDir,
}

/// A database of its own, and a proxy before it.
fn rig(name: &str) -> Rig {
    let database = format!("proxy_{name}");
    server().query(&format!("CREATE DATABASE {database}")).expect("a database");
    server().query(&format!("CREATE TABLE {database}.hapax_epochs (epoch int)")).expect("a table");
    let dir = tempfile::tempdir().expect("a directory");
    let log = dir.path().join("proxy.log");
    let proxy = Proxy::start(Engine::Mysql, server().port(), &log).expect("it listens");
    Rig { proxy, log, database, _dir: dir }
}

impl Rig {
    fn client(&self) -> MysqlClient {
        MysqlClient::connect(self.proxy.port(), &self.database).expect("it connects")
    }

    fn commit(&self) -> Result<String, ServiceError> {
        let mut client = self.client();
        client.query("START TRANSACTION")?;
        client.query(MARK)?;
        Ok(client.query("COMMIT")?.tag)
    }

    fn rows(&self) -> String {
        let answer = server().query(&format!("SELECT count(*) FROM {}.hapax_epochs", self.database)).expect("a count");
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
    assert_eq!(rig.commit().expect("it commits"), "0");
    let mut client = rig.client();
    assert_eq!(client.query("SELECT * FROM nothing").expect_err("it fails").code(), Some("1146"));
    assert_eq!(client.query("SELECT seq FROM seq_1_to_20000").expect("rows").rows.len(), 20_000);
    let wide = client.query("SELECT REPEAT('x', 16500000)").expect("a row of two packets");
    assert_eq!(wide.value().map(str::len), Some(16_500_000));
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
    let log = std::fs::read_to_string(&rig.log).expect("a log");
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
        assert_eq!(waiting.join().expect("it ends").expect("it commits"), "0");
    });
}

/// Goal: a COMMIT can be refused as in a cluster. Method: the error that a client sees, nothing there, the session alive.
#[test]
fn a_spoiled_transaction_is_answered_with_a_deadlock() {
    let rig = rig("spoils");
    rig.arm(Deed::Spoil, 1);
    let mut client = rig.client();
    client.query("START TRANSACTION").and_then(|_| client.query(MARK)).expect("it writes");
    assert_eq!(client.query("COMMIT").expect_err("it is refused").code(), Some("1213"));
    assert_eq!((rig.rows().as_str(), rig.proxy.happened(Deed::Spoil, Watch::Epoch)), ("0", 1));
    assert_eq!(client.query("SELECT 7").expect("the session lives").value(), Some("7"));
    assert!(rig.commit().is_ok(), "a fault happens once");
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
    assert!(MysqlClient::connect(rig.proxy.port(), &rig.database).is_err());
    rig.proxy.redirect(server().port());
    assert!(rig.commit().is_ok());
}

/// Goal: a prepared statement is known when it runs, not before. Method: prepare, the server's answer, execute.
#[test]
fn a_prepared_statement_is_known_when_it_runs() {
    let mut talk = Talk::default();
    assert_eq!(talk.run_by(&Packet::new(0, b"\x16INSERT INTO `hapax_epochs` VALUES (?)")), None);
    let execute = Packet::new(0, b"\x17\x05\0\0\0\0\x01\0\0\0");
    assert_eq!(talk.run_by(&execute), None, "its number is not known yet");
    talk.learn(&Packet::new(1, b"\0\x05\0\0\0\0\0\x01\0\0\0\0"));
    assert_eq!(talk.run_by(&execute), Some("insert into hapax_epochs values (?)".to_owned()));
    assert_eq!(talk.run_by(&Packet::new(0, b"\x03COMMIT")), Some("commit".to_owned()));
    assert_eq!(talk.run_by(&Packet::new(3, b"\x03COMMIT")), None, "a later part of a question");
    assert_eq!(talk.run_by(&Packet::new(0, b"\x17\x05")), None);
    talk.run_by(&Packet::new(0, b"\x16nonsense"));
    talk.learn(&Packet::new(1, b"\xff\x28\x04"));
    assert_eq!(talk.prepared.len(), 1, "what was refused has no number");
}

/// Goal: packets pass unchanged, and cut ones do not bring the proxy down. Method: whole and cut.
#[test]
fn packets_are_read_or_refused() {
    let whole = Packet::new(0, b"\x03COMMIT");
    assert_eq!(Packet::read(&mut whole.bytes.as_slice()).expect("it is whole"), whole);
    for cut in 0..whole.bytes.len() {
        assert!(Packet::read(&mut &whole.bytes[..cut]).is_err());
    }
    assert_eq!(Packet::new(0, b"").command(), None);
}
