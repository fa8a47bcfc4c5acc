use std::time::Instant;

use super::super::test_database::{TestDatabase, quick};
use super::super::{FaultClass, PostgresUrl};
use super::*;

async fn setting(session: &Session, name: &str) -> String {
    session.client().query_one("SELECT current_setting($1)", &[&name]).await.unwrap().get(0)
}

/// Goal: the limits hold whatever the role has set. Method: a role that sets all of them otherwise; ask the server.
#[tokio::test]
async fn the_limits_are_set_against_the_role() {
    let database = TestDatabase::new();
    let name = database.url().database().unwrap().to_owned();
    for other in [
        "synchronous_commit = off",
        "TimeZone = 'Asia/Tokyo'",
        "DateStyle = 'German'",
        "default_transaction_isolation = 'serializable'",
        "idle_in_transaction_session_timeout = 0",
        "extra_float_digits = -15",
        "client_encoding = 'LATIN1'",
    ] {
        database.on_server(&format!("ALTER DATABASE {name} SET {other}"));
    }
    let session = database.session().await;
    for (setting_name, value) in [
        ("synchronous_commit", "on"),
        ("TimeZone", "UTC"),
        ("DateStyle", "ISO, DMY"),
        ("default_transaction_isolation", "read committed"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("statement_timeout", "10s"),
        ("lock_timeout", "10s"),
        ("client_encoding", "UTF8"),
        ("extra_float_digits", "1"),
        ("tcp_keepalives_idle", "5"),
        ("tcp_keepalives_interval", "2"),
        ("tcp_keepalives_count", "3"),
        ("client_connection_check_interval", "1s"),
    ] {
        assert_eq!(setting(&session, setting_name).await, value, "{setting_name}");
    }
    assert!(setting(&session, "application_name").await.starts_with(OUR_NAME));
    assert_eq!(setting(&session, "application_name").await, session.name());
    assert_eq!(setting(&session, "server_version_num").await, session.server_version().to_string());
    let pid: i32 = session.client().query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    assert_eq!(session.backend_pid(), pid);
}

/// Goal: a session that keeps its transaction idle loses it, and learns the reason. Method: a limit of 100 ms.
#[tokio::test]
async fn an_idle_transaction_ends_the_session() {
    let database = TestDatabase::new();
    let limits = Limits { idle_in_transaction: Duration::from_millis(100), ..quick() };
    let session = Session::connect(&database.url(), &limits).await.unwrap();
    session.begin().await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(session.is_closed());
    let error = session.client().batch_execute("SELECT 1").await.unwrap_err();
    let fault = session.fault(&error);
    assert_eq!((fault.class, fault.sqlstate.as_deref()), (FaultClass::Reconnect, Some("25P03")));
    assert!(session.rollback().await.is_err());
}

/// Goal: dropping a session ends it on the server soon, even while a statement runs. Method: a long sleep; look for it.
#[tokio::test]
async fn a_dropped_session_is_gone_from_the_server() {
    let database = TestDatabase::new();
    let watcher = database.session().await;
    let session = database.session().await;
    let pid = session.backend_pid();
    let running = session.client().batch_execute("SELECT pg_sleep(600)");
    tokio::time::timeout(Duration::from_millis(50), running).await.unwrap_err();
    drop(session);
    let begun = Instant::now();
    let gone = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";
    while watcher.client().query_one(gone, &[&pid]).await.unwrap().get::<_, i64>(0) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Goal: a statement is prepared once, and again after the schema changed. Method: count them on the server.
#[tokio::test]
async fn statements_are_kept_and_forgotten() {
    let database = TestDatabase::new();
    let session = database.session().await;
    session.client().batch_execute("CREATE TABLE t (a int)").await.unwrap();
    let sql = "SELECT * FROM t";
    for _ in 0..3 {
        let statement = session.prepare_cached(sql).await.unwrap();
        assert_eq!(statement.columns().len(), 1);
    }
    let count = "SELECT count(*)::int FROM pg_prepared_statements WHERE statement = 'SELECT * FROM t'";
    assert_eq!(session.client().query_one(count, &[]).await.unwrap().get::<_, i32>(0), 1);
    session.client().batch_execute("ALTER TABLE t ADD COLUMN b int").await.unwrap();
    let stale = session.prepare_cached(sql).await.unwrap();
    let error = session.client().query(&stale, &[]).await.unwrap_err();
    assert_eq!(session.fault(&error).class, FaultClass::Schema);
    drop(stale);
    session.forget_statements();
    let fresh = session.prepare_cached(sql).await.unwrap();
    assert_eq!(fresh.columns().len(), 2);
    session.client().query(&fresh, &[]).await.unwrap();
}

/// Goal: a pooler that changes servers under a session is refused at BEGIN. Method: a session that expects another process.
#[tokio::test]
async fn another_process_at_begin_is_refused() {
    let database = TestDatabase::new();
    let mut session = database.session().await;
    session.backend_pid += 1;
    let fault = session.begin().await.unwrap_err();
    assert_eq!((fault.class, fault.code), (FaultClass::Denied, Some("HX4211")));
    assert!(fault.message.contains("pool_mode"), "{fault}");
    assert!(!session.is_reusable());
}

/// Goal: a server is reached through its socket. Method: the folder that the server itself names.
#[tokio::test]
async fn a_unix_socket_is_used() {
    let database = TestDatabase::new();
    let folders = setting(&database.session().await, "unix_socket_directories").await;
    let folder = folders.split(',').next().unwrap().trim();
    let (port, name) = (database.port(), database.url().database().unwrap().to_owned());
    let encoded = folder.replace('/', "%2F");
    for text in [
        format!("postgres://postgres@:{port}/{name}?host={folder}&sslmode=verify-full"),
        format!("postgres://postgres@{encoded}:{port}/{name}"),
    ] {
        let session = Session::connect(&PostgresUrl::parse(&text).unwrap(), &quick()).await.unwrap();
        let row = session.client().query_one("SELECT inet_client_addr() IS NULL", &[]).await.unwrap();
        assert!(row.get::<_, bool>(0), "{text}");
    }
}

/// Goal: our name comes first, stays ours when cut, and fits. Method: long and odd names.
#[test]
fn the_session_name_is_ours_and_fits() {
    assert!(application_name(None).starts_with("hapax pid "));
    assert!(application_name(Some("orders")).starts_with("hapax orders pid "));
    let long = application_name(Some(&"ä".repeat(60)));
    assert!(long.starts_with("hapax ää") && long.len() <= 63, "{long}");
}
