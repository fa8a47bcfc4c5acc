use std::time::Instant;

use super::super::FaultClass;
use super::super::test_database::{TestDatabase, quick};
use super::*;

async fn value(session: &mut Session, sql: &str) -> String {
    let mut rows = session.text_rows(sql).await.unwrap();
    rows.remove(0).take(0).unwrap()
}

/// Goal: the limits hold whatever the server has set for everybody. Method: set all of them otherwise; ask the session.
#[tokio::test]
async fn the_limits_are_set_against_the_server() {
    let server = hapax_services::Mariadb::builder()
        .setting("sql_mode", "ANSI_QUOTES")
        .setting("transaction_isolation", "SERIALIZABLE")
        .setting("default_time_zone", "'+09:00'")
        .setting("autocommit", "0")
        .setting("completion_type", "CHAIN")
        .setting("lc_messages", "de_DE")
        .start()
        .unwrap();
    let url = MysqlUrl::parse(&server.url("")).unwrap();
    let mut session = Session::connect(&url, &quick()).await.unwrap();
    for (setting, expected) in [
        ("tx_isolation", "READ-COMMITTED"),
        ("time_zone", "+00:00"),
        ("autocommit", "1"),
        ("completion_type", "NO_CHAIN"),
        ("innodb_lock_wait_timeout", "10"),
        ("lock_wait_timeout", "10"),
        ("idle_transaction_timeout", "10"),
        ("max_statement_time", "10.000000"),
        ("wait_timeout", "600"),
        ("net_read_timeout", "10"),
        ("character_set_client", "utf8mb4"),
        ("tx_read_only", "0"),
    ] {
        assert_eq!(value(&mut session, &format!("SELECT @@{setting}")).await, expected, "{setting}");
    }
    let mode = value(&mut session, "SELECT @@sql_mode").await;
    assert!(mode.contains("STRICT_ALL_TABLES") && !mode.contains("ANSI"), "{mode}");
    let fault = session.text("SELECT nothing").await.unwrap_err();
    assert!(fault.message.starts_with("Unknown column"), "{fault}");
    assert!(session.name().starts_with(super::super::OUR_NAME));
    assert_eq!(value(&mut session, "SELECT CONNECTION_ID()").await, session.connection_id().to_string());
    assert_eq!(value(&mut session, "SELECT VERSION()").await.split('-').next().unwrap(), version(&session));
    assert!(!session.server().has_row_alias());
}

fn version(session: &Session) -> String {
    let (major, minor, patch) = session.server().version;
    format!("{major}.{minor}.{patch}")
}

/// Goal: the OK packet's counts and text come out, over both protocols, with found rows. Method: new, changed and
/// unchanged rows in one statement, one row alone, an UPDATE that changes nothing.
#[tokio::test]
async fn the_counts_of_the_server_are_told() {
    let database = TestDatabase::new();
    let mut session = database.session().await;
    session.text("CREATE TABLE t (id int PRIMARY KEY, n int) ENGINE=InnoDB").await.unwrap();
    session.text("INSERT INTO t VALUES (1, 1), (2, 2)").await.unwrap();
    let sql = "INSERT INTO t VALUES (?, ?), (?, ?), (?, ?) ON DUPLICATE KEY UPDATE n = VALUES(n)";
    let values: Vec<Value> = [1, 1, 2, 20, 3, 3].map(Value::from).to_vec();
    let outcome = session.execute(sql, values).await.unwrap();
    assert_eq!(outcome.info, "Records: 3  Duplicates: 2  Warnings: 0");
    assert_eq!((outcome.records(), outcome.duplicates(), outcome.affected), (Some(3), Some(2), 4));
    let outcome = session.text("INSERT INTO t VALUES (4, 4), (5, 5)").await.unwrap();
    assert_eq!((outcome.records(), outcome.duplicates(), outcome.affected), (Some(2), Some(0), 2));
    let single = session.execute("INSERT INTO t VALUES (?, 6)", vec![6.into()]).await.unwrap();
    assert_eq!((single.records(), single.affected), (None, 1));
    let same = session.execute("UPDATE t SET n = n WHERE id < ?", vec![4.into()]).await.unwrap();
    assert_eq!((same.affected, same.matched()), (3, Some(3)));
    let warned = session.text("DROP TABLE IF EXISTS not_there").await.unwrap();
    assert_eq!(warned.warnings, 1);
}

/// Goal: strictness: a value that does not fit is refused with its class, its column and its row. Method: one of each.
#[tokio::test]
async fn a_value_that_does_not_fit_is_the_rows_fault() {
    let database = TestDatabase::new();
    let mut session = database.session().await;
    let table = "CREATE TABLE t (id int PRIMARY KEY, s varchar(3) NOT NULL, n tinyint, d date, \
                 CONSTRAINT positive CHECK (n > 0), u int UNIQUE) ENGINE=InnoDB";
    session.text(table).await.unwrap();
    session.text("INSERT INTO t VALUES (1, 'a', 1, NULL, 1)").await.unwrap();
    for (values, number, column) in [
        ("(2, 'a', 1, NULL, 2), (3, 'abcd', 1, NULL, 3)", 1406, Some("s")),
        ("(3, NULL, 1, NULL, 3)", 1048, Some("s")),
        ("(3, 'a', 200, NULL, 3)", 1264, Some("n")),
        ("(3, 'a', 'x', NULL, 3)", 1366, Some("n")),
        ("(3, 'a', 1, '2023-02-30', 3)", 1292, Some("d")),
        ("(3, 'a', -1, NULL, 3)", 4025, None),
        ("(3, 'a', 1, NULL, 1)", 1062, None),
    ] {
        let fault = session.text(&format!("INSERT INTO t VALUES {values}")).await.unwrap_err();
        assert_eq!((fault.class, fault.number), (FaultClass::Row, Some(number)), "{values}: {fault}");
        assert_eq!(fault.column.as_deref(), column, "{fault}");
    }
    let fault = session.text("INSERT INTO t VALUES (2, 'a', 1, NULL, 2), (3, 'abcd', 1, NULL, 3)").await.unwrap_err();
    assert_eq!(fault.row, Some(2));
    let fault = session.text("INSERT INTO t (id) VALUES (3)").await.unwrap_err();
    assert_eq!((fault.class, fault.number), (FaultClass::Row, Some(1364)));
    for sql in ["SELECT x FROM t", "SELECT 1 FROM gone", "SELEC"] {
        assert_eq!(session.text(sql).await.unwrap_err().class, FaultClass::Schema, "{sql}");
    }
}

/// Goal: values of every kind go out bound and come back as they were, names with colons and question marks do no harm.
/// Method: one row through a prepared statement.
#[tokio::test]
async fn bound_values_come_back() {
    let database = TestDatabase::new();
    let mut session = database.session().await;
    session.text("CREATE TABLE t (`a:b?` bigint unsigned, s text, f double, n blob)").await.unwrap();
    let text = "'; DROP TABLE t; -- 🦊\\";
    let values = vec![u64::MAX.into(), text.into(), 0.1.into(), Value::NULL];
    session.execute("INSERT INTO t (`a:b?`, s, f, n) VALUES (?, ?, ?, ?)", values).await.unwrap();
    let rows = session.rows("SELECT `a:b?`, s, f, n FROM t WHERE s = ?", vec![text.into()]).await.unwrap();
    let found: (u64, String, f64, Option<Vec<u8>>) = mysql_async::from_row(rows.into_iter().next().unwrap());
    assert_eq!(found, (u64::MAX, text.to_owned(), 0.1, None));
}

/// Goal: several statements in one message stop at the first that fails, and its error is told. Method: the second fails.
#[tokio::test]
async fn the_error_of_a_later_statement_is_told() {
    let database = TestDatabase::new();
    let mut session = database.session().await;
    session.text("CREATE TABLE t (id int PRIMARY KEY)").await.unwrap();
    let fault = session.text("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").await;
    assert_eq!(fault.unwrap_err().number, Some(1062));
    assert_eq!(value(&mut session, "SELECT 7; SELECT 8").await, "7");
    assert_eq!(value(&mut session, "SELECT count(*) FROM t").await, "1");
    assert!(session.is_reusable());
}

/// Goal: rows come one by one; whoever stops before the end has spoiled the session. Method: read all, then a few.
#[tokio::test]
async fn rows_are_streamed() {
    let database = TestDatabase::new();
    let mut session = database.session().await;
    let sql = "SELECT seq FROM seq_1_to_5000 WHERE seq > ?";
    let mut rows = session.stream(sql, vec![0.into()]).await.unwrap();
    let mut sum = 0;
    while let Some(mut row) = rows.next().await.unwrap() {
        sum += row.take::<u64, _>(0).unwrap();
    }
    assert!(rows.next().await.unwrap().is_none());
    assert_eq!(sum, 5000 * 5001 / 2);
    assert!(session.is_reusable());
    let mut rows = session.stream(sql, vec![0.into()]).await.unwrap();
    rows.next().await.unwrap().unwrap();
    assert!(!session.is_reusable());
    assert!(session.text("SELECT 1").await.is_err());
}

/// Goal: a session that keeps its transaction idle loses it. Method: a limit of one second.
#[tokio::test]
async fn an_idle_transaction_ends_the_session() {
    let database = TestDatabase::new();
    let limits = Limits { idle_in_transaction: Duration::from_secs(1), ..quick() };
    let mut session = Session::connect(&database.url(), &limits).await.unwrap();
    session.begin().await.unwrap();
    session.text("CREATE TEMPORARY TABLE t (id int)").await.unwrap();
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let fault = session.text("SELECT 1").await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Reconnect, "{fault}");
    assert!(session.is_closed() || !session.is_reusable());
    assert!(session.rollback().await.is_err());
}

/// Goal: a statement that takes too long is ended by the server, or given up by the session. Method: a limit of 200 ms
/// on the server; then, for the session's own clock, a server that is stopped.
#[tokio::test]
async fn a_statement_has_its_limit() {
    let database = TestDatabase::new();
    let limits = Limits { statement: Duration::from_millis(200), ..quick() };
    let mut session = Session::connect(&database.url(), &limits).await.unwrap();
    let begun = Instant::now();
    let fault = session.text("SELECT count(*) FROM seq_1_to_1000000 a, seq_1_to_1000000 b").await.unwrap_err();
    assert_eq!((fault.class, fault.number), (FaultClass::Again, Some(1969)));
    assert!(begun.elapsed() < Duration::from_secs(60), "it would run for hours");
    assert!(session.is_reusable());
    session.state = State::new(Duration::ZERO);
    let fault = session.text("SET SESSION max_statement_time = 0; DO SLEEP(8)").await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Reconnect);
    assert!(fault.message.contains("no answer within 5 s"), "{fault}");
    assert!(session.is_closed() && !session.is_reusable());
}

/// Goal: a statement that was given up in the middle closes its session for good. Method: drop its future.
#[tokio::test]
async fn a_statement_given_up_spoils_the_session() {
    let database = TestDatabase::new();
    let mut session = database.session().await;
    tokio::time::timeout(Duration::from_millis(50), session.text("DO SLEEP(1)")).await.unwrap_err();
    assert!(session.is_closed() && !session.is_reusable());
    let fault = session.text("SELECT 1").await.unwrap_err();
    assert!(fault.message.contains("given up"), "{fault}");
}

/// Goal: a statement is prepared once, survives a change of its table, and can be forgotten. Method: the server's count.
#[tokio::test]
async fn statements_are_kept_and_forgotten() {
    let database = TestDatabase::new();
    let mut session = database.session().await;
    session.text("CREATE TABLE t (a int)").await.unwrap();
    let prepared =
        "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Com_stmt_prepare'";
    let before = value(&mut session, prepared).await;
    for _ in 0..3 {
        session.rows("SELECT * FROM t", Vec::new()).await.unwrap();
    }
    let count = |text: &str| text.parse::<u64>().unwrap();
    assert_eq!(count(&value(&mut session, prepared).await), count(&before) + 1);
    session.text("INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN b int").await.unwrap();
    let rows = session.rows("SELECT * FROM t", Vec::new()).await.unwrap();
    assert_eq!(rows[0].len(), 2);
    session.forget_statements();
    session.rows("SELECT * FROM t", Vec::new()).await.unwrap();
    let closed = "SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'Com_stmt_close'";
    assert_eq!(count(&value(&mut session, closed).await), 1);
}

/// Goal: what is larger than the server takes is told before it is sent, and the session lives. Method: a limit of 16 MB.
#[tokio::test]
async fn values_that_are_too_large_are_not_sent() {
    let database = TestDatabase::new();
    let mut session = database.session().await;
    session.text("CREATE TABLE t (b longblob)").await.unwrap();
    let limit = session.largest_packet();
    let fault = session.execute("INSERT INTO t VALUES (?)", vec![vec![1_u8; limit].into()]).await.unwrap_err();
    assert_eq!((fault.class, fault.number), (FaultClass::Row, Some(1153)));
    assert!(session.is_reusable());
    session.execute("INSERT INTO t VALUES (?)", vec![vec![1_u8; limit - 1024].into()]).await.unwrap();
    assert_eq!(value(&mut session, "SELECT length(b) FROM t").await, (limit - 1024).to_string());
}

/// Goal: a server that takes no writes is told by the first one. Method: read_only, and a user without special rights.
#[tokio::test]
async fn a_read_only_server_is_told_apart() {
    let server = hapax_services::Mariadb::builder().setting("read_only", "1").start().unwrap();
    server.query("CREATE DATABASE d; CREATE TABLE d.t (id int); CREATE USER w; GRANT ALL ON d.* TO w").unwrap();
    let url = MysqlUrl::parse(&format!("mysql://w@127.0.0.1:{}/d", server.port())).unwrap();
    let mut session = Session::connect(&url, &quick()).await.unwrap();
    session.begin().await.unwrap();
    let fault = session.text("INSERT INTO t VALUES (1)").await.unwrap_err();
    assert_eq!((fault.class, fault.number), (FaultClass::ReadOnly, Some(1290)));
}

/// Goal: a server is reached through its socket. Method: the socket of a server of our own, in both forms.
#[tokio::test]
async fn a_unix_socket_is_used() {
    let server = hapax_services::Mariadb::builder().start().unwrap();
    let socket = server.socket().display().to_string();
    let encoded = socket.replace('/', "%2F");
    for text in
        [format!("mysql://root@/mysql?socket={socket}&ssl-mode=required"), format!("mysql://root@{encoded}/mysql")]
    {
        let mut session = Session::connect(&MysqlUrl::parse(&text).unwrap(), &quick()).await.unwrap();
        assert_eq!(value(&mut session, "SELECT USER()").await, "root@localhost", "{text}");
    }
}

/// Goal: our name comes first. Method: with a name in the address and without.
#[test]
fn the_session_name_is_ours() {
    assert!(settings::session_name(None).starts_with("hapax pid "));
    assert!(settings::session_name(Some("orders")).starts_with("hapax orders pid "));
}
