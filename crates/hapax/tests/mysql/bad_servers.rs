//! A server of MariaDB that is full, read-only, restarted, or does not know us: the message has place, code and cure, and
//! nothing is lost.

use std::time::Duration;

use hapax_services::{Mariadb, Stop};

use super::world::{Mysql, Shop};
use crate::servers::Server as _;
use crate::world::{KEYED, orders, until};

const PATIENT: (&str, &str) = ("giveUpAfter: 500ms", "giveUpAfter: 60s");

/// Goal: a URL without a database is refused before anything is tried. Method: check.
#[test]
fn a_url_without_a_database_is_refused() {
    let shop = Shop::new("", KEYED);
    shop.configure_as("mysql://root@127.0.0.1:1", "", KEYED);
    shop.hapax(&["check"]).exits(2).says(&["HX1490", "names no database"]);
}

/// Goal: a user without a free connection is told, waited for, and nothing is lost. Method: a user who may have one
/// connection, which is taken.
#[test]
fn too_many_connections_are_told() {
    let shop = Shop::ready("", KEYED);
    let (user, database) = (format!("crowded_of_{}", shop.database()), shop.database());
    shop.sql(&format!("CREATE USER {user} WITH MAX_USER_CONNECTIONS 1; GRANT ALL ON {database}.* TO {user}"));
    let taken = hapax_services::MysqlClient::connect_as(port_of(&shop), &user, database).expect("a connection");
    shop.configure_as(&shop.url_of(&user), "", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["run", "--once"]).exits(1).says(&["max_user_connections"]);
    assert_eq!(shop.rows(), 0);
    drop(taken);
    shop.sql(&format!("ALTER USER {user} WITH MAX_USER_CONNECTIONS 10"));
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 0);
    shop.sql(&format!("DROP USER {user}"));
}

fn port_of(shop: &Shop) -> u16 {
    shop.server_address().rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port")
}

/// Goal: a wrong password and an unknown user are told at once, never with the password, by a run and by a check, which
/// judges nothing then. Method: both.
#[test]
fn a_wrong_password_is_refused_at_once() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let user = format!("locked_of_{}", shop.database());
    shop.sql(&format!("CREATE USER {user} IDENTIFIED BY 'right'; GRANT ALL ON {}.* TO {user}", shop.database()));
    for login in [format!("{user}:hunter2"), "nobody_at_all:hunter2".to_owned()] {
        shop.configure_as(&shop.url_of(&login), "", KEYED);
        let answer = shop.hapax(&["run", "--once"]);
        answer.exits(1).says(&[login.split(':').next().expect("a name")]);
        answer.keeps_silent_about(&["hunter2", "trying again"]);
        let check = shop.hapax(&["check", "--live"]);
        check.exits(1).says(&["not judged"]).keeps_silent_about(&["hunter2", "exactly-once holds"]);
        assert_eq!(shop.rows(), 0);
    }
    shop.configure_as(&shop.url_of(&format!("{user}:right")), "", KEYED);
    shop.hapax(&["check", "--live"]).exits(0).says(&["exactly-once holds"]).keeps_silent_about(&["right@"]);
    shop.hapax(&["run", "--once"]).exits(0).keeps_silent_about(&["right@"]);
    shop.sql(&format!("DROP USER {user}"));
}

/// Goal: a server that is stopped in mid-work and started again loses and doubles nothing. Method: a server of its own,
/// ended by SIGKILL while rows flow, twice.
#[test]
fn a_server_that_is_killed_and_started_again_loses_nothing() {
    let mut server = Mariadb::builder().start().expect("a server");
    let shop = Shop::on_server(&server.url(""));
    shop.sql("CREATE TABLE orders (id bigint, customer varchar(200), amount integer)");
    shop.configure("onConflict: append", "guarantee: exactly-once");
    shop.reconfigure(PATIENT.0, PATIENT.1);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.world.write("orders.jsonl", orders(1..=2_000));
    let worker = shop.start("worker.log", &["run"]);
    until("the first rows are there", || shop.rows() > 0);
    for round in 1..=2 {
        shop.world.append("orders.jsonl", orders(round * 2_000 + 1..=(round + 1) * 2_000));
        server.stop(Stop::Immediate);
        server.start_again().expect("it starts again");
    }
    until("all rows are there", || shop.rows() == 6_000);
    worker.terminate();
    worker.ends().exits(0);
    assert_eq!(shop.ask("SELECT count(DISTINCT id) FROM orders"), "6000");
    shop.accounts_for(6_000, 0);
}

/// Goal: a server that takes no writes for a while is waited for. Method: `read_only` under a user without the right to
/// ignore it, switched on and off.
#[test]
fn a_read_only_server_is_waited_for() {
    let server = Mariadb::builder().start().expect("a server");
    let shop = Shop::on_server(&server.url(""));
    shop.sql(Mysql::ORDERS);
    shop.configure("", KEYED);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.sql(&format!("CREATE USER worker; GRANT ALL ON {}.* TO worker", shop.database()));
    shop.configure_as(&shop.url_of("worker"), "", KEYED);
    shop.reconfigure(PATIENT.0, PATIENT.1);
    shop.world.write("orders.jsonl", orders(1..=3));
    let worker = shop.start("worker.log", &["run"]);
    until("the first rows are there", || shop.rows() == 3);
    shop.sql("SET GLOBAL read_only = 1");
    shop.world.append("orders.jsonl", orders(4..=6));
    worker.until_it_says("read-only");
    assert_eq!(shop.rows(), 3);
    shop.sql("SET GLOBAL read_only = 0");
    until("it goes on", || shop.rows() == 6);
    worker.terminate();
    worker.ends().exits(0);
    shop.accounts_for(6, 0);
}

/// Goal: a disk without room is waited for, and nothing is lost. Method: all tables in one file of a fixed size, filled by
/// somebody else; then a second file.
#[test]
fn a_full_disk_is_waited_for() {
    let mut server = Mariadb::builder()
        .setting("innodb_file_per_table", "0")
        .setting("innodb_data_file_path", "ibdata1:40M")
        .start()
        .expect("a server");
    let shop = Shop::on_server(&server.url(""));
    shop.sql("CREATE TABLE orders (id bigint PRIMARY KEY, customer longtext, amount integer)");
    shop.configure("statementTimeout: 3s", KEYED);
    shop.reconfigure(PATIENT.0, PATIENT.1);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.world.write("orders.jsonl", orders(1..=3));
    let worker = shop.start("worker.log", &["run"]);
    until("the first rows are there", || shop.rows() == 3);
    let mut client = server.connect(shop.database()).expect("a connection");
    client.query("CREATE TABLE ballast (id int AUTO_INCREMENT PRIMARY KEY, bulk longblob)").expect("a table");
    // A refused row's own space comes back a moment later: full is what refuses again and again.
    let mut refusals = 0;
    while refusals < 4 {
        match client.query("INSERT INTO ballast (bulk) VALUES (REPEAT('x', 500000))") {
            Ok(_) => refusals = 0,
            Err(error) => {
                assert!(error.to_string().contains("full"), "the file has a fixed size: {error}");
                refusals += 1;
                std::thread::sleep(Duration::from_millis(300));
            }
        }
    }
    let large = format!("{{\"id\":4,\"customer\":\"{}\",\"amount\":40}}\n", "y".repeat(6 << 20));
    shop.world.append("orders.jsonl", large);
    // A server in such need answers late, or not at all.
    worker.until_it_says_one_of(&["free space on the server", "no answer within", "cannot be reached"]);
    match server.connect(shop.database()) {
        Ok(_) => assert_eq!(shop.rows(), 3),
        // In want of space it may have ended by itself; else it has to answer.
        Err(error) => {
            let pid = server.pid().expect("it was started");
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(state.is_empty() || state.contains(") Z "), "it runs and does not answer: {error}");
        }
    }
    server.add_line("innodb_data_file_path = ibdata1:40M;ibdata2:20M").expect("a line");
    server.start_again().expect("it starts again");
    until("it goes on", || shop.rows() == 4);
    worker.terminate();
    worker.ends().exits(0);
    shop.accounts_for(4, 0);
}

/// Goal: a certificate that nobody vouches for is refused at once where verification is asked for. Method: a server with a
/// certificate of its own; `verify-ca` against another authority, then `require` without one.
#[test]
fn a_wrong_certificate_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("server.pem"), issued.cert.pem()).expect("a file");
    std::fs::write(path("server.key"), issued.signing_key.serialize_pem()).expect("a file");
    std::fs::write(path("other.pem"), other.cert.pem()).expect("a file");
    let server = Mariadb::builder().tls(&path("server.pem"), &path("server.key")).start().expect("a server");
    let shop = Shop::on_server(&server.url(""));
    shop.sql(Mysql::ORDERS);
    shop.world.write("orders.jsonl", orders(1..=3));
    let with = |options: &str| format!("{}?{options}", shop.url());
    shop.configure_as(&with(&format!("ssl-mode=VERIFY_CA&ssl-ca={}", path("other.pem").display())), "", KEYED);
    shop.hapax(&["setup", "--yes"]).exits(1).says(&["certificate"]);
    shop.configure_as(&with("ssl-mode=REQUIRED"), "", KEYED);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 0);
}
