use std::time::Duration;

use hapax_services::Postgres;

use super::super::test_database::{TestDatabase, quick};
use super::super::{ConnectError, FaultClass, PostgresUrl, Session};

async fn refused(address: &str) -> ConnectError {
    let url = PostgresUrl::parse(address).unwrap();
    let error = Session::connect(&url, &quick()).await.unwrap_err();
    assert!(!error.to_string().contains("s3cret") && !format!("{error:?}").contains("s3cret"), "{error}");
    error
}

/// Goal: each way of not getting in has its own page, cure and reaction. Method: a server that refuses in each of them.
#[tokio::test]
async fn each_refusal_has_its_page_and_cure() {
    let server = Postgres::builder()
        .hba("host all locked 127.0.0.1/32 scram-sha-256")
        .hba("host all barred 127.0.0.1/32 reject")
        .hba("hostssl all tls_only 127.0.0.1/32 trust")
        .start()
        .unwrap();
    let setup = "CREATE ROLE locked LOGIN PASSWORD 's3cret'; CREATE ROLE barred LOGIN; CREATE ROLE plain LOGIN; \
                 CREATE ROLE nologin; CREATE ROLE few LOGIN CONNECTION LIMIT 0; \
                 REVOKE CONNECT ON DATABASE template1 FROM PUBLIC";
    server.query(setup).unwrap();
    let port = server.port();
    let at = |login: &str, rest: &str| format!("postgres://{login}@127.0.0.1:{port}/{rest}");
    Session::connect(&PostgresUrl::parse(&at("locked:s3cret", "postgres")).unwrap(), &quick()).await.unwrap();
    for (address, code, class, says) in [
        (at("locked:wrong", "postgres"), "HX4202", FaultClass::Denied, "28P01"),
        (at("locked", "postgres"), "HX4202", FaultClass::Denied, "password missing"),
        (at("locked:s3cret", "nowhere"), "HX4203", FaultClass::Denied, "\"nowhere\" does not exist"),
        (at("barred:s3cret", "postgres"), "HX4204", FaultClass::Denied, "pg_hba.conf"),
        (at("nobody:s3cret", "postgres"), "HX4204", FaultClass::Denied, "\"nobody\" does not exist"),
        (at("nologin", "postgres"), "HX4204", FaultClass::Denied, "not permitted to log in"),
        (at("postgres", "postgres?sslmode=require"), "HX4205", FaultClass::Denied, "sslmode=prefer"),
        (at("few", "postgres"), "HX4208", FaultClass::Reconnect, "max_connections"),
        (at("plain", "template1"), "HX4209", FaultClass::Denied, "GRANT CONNECT"),
        (at("postgres", "postgres?target_session_attrs=read-only"), "HX4212", FaultClass::ReadOnly, "not read only"),
    ] {
        let error = refused(&address).await;
        assert_eq!((error.code(), error.class()), (code, class), "{address}: {error:?}");
        assert!(error.to_string().contains(says), "{address}: {error}");
    }
}

/// Goal: nobody at the address, and silence at the address, are told apart from refusals, in time.
/// Method: a closed port, a name that does not exist, a listener that never answers.
#[tokio::test]
async fn an_unreachable_server_is_told_in_time() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed_port = closed.local_addr().unwrap().port();
    drop(closed);
    for address in [
        format!("postgres://u:s3cret@127.0.0.1:{closed_port}/d"),
        format!("postgres://u:s3cret@127.0.0.1:{silent_port}/d?connect_timeout=1"),
        "postgres://u:s3cret@no-such-host.invalid/d".to_owned(),
        "postgres://u:s3cret@/d?host=/no/such/folder".to_owned(),
    ] {
        let begun = std::time::Instant::now();
        let error = refused(&address).await;
        assert_eq!((error.code(), error.class()), ("HX4201", FaultClass::Reconnect), "{address}: {error:?}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{address}");
    }
}

/// Goal: of several hosts the one that takes writes is used. Method: a dead port first, then the server.
#[tokio::test]
async fn the_next_host_is_tried() {
    let database = TestDatabase::new();
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = closed.local_addr().unwrap().port();
    drop(closed);
    let (port, name) = (database.port(), database.url().database().unwrap().to_owned());
    let text = format!("postgres://postgres@127.0.0.1:{dead},127.0.0.1:{port}/{name}");
    Session::connect(&PostgresUrl::parse(&text).unwrap(), &quick()).await.unwrap();
    database.on_server(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    assert_eq!(refused(&text).await.code(), "HX4212");
}

/// Goal: a standby is passed over where writes are asked for, and told by the first write where they are not.
/// Method: a primary and its standby, the standby first.
#[tokio::test]
async fn a_standby_is_passed_over() {
    let primary = Postgres::builder().start().unwrap();
    let standby = Postgres::builder().start_standby(&primary).unwrap();
    primary.query("CREATE TABLE t (id int)").unwrap();
    let both = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", standby.port(), primary.port());
    let session = Session::connect(&PostgresUrl::parse(&both).unwrap(), &quick()).await.unwrap();
    session.begin().await.unwrap();
    session.client().batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    let alone = PostgresUrl::parse(&standby.url("postgres")).unwrap();
    let session = Session::connect(&alone, &quick()).await.unwrap();
    session.begin().await.unwrap();
    let error = session.client().batch_execute("CREATE TABLE u (id int)").await.unwrap_err();
    assert_eq!(session.fault(&error).class, FaultClass::ReadOnly);
    let asked = format!("{}?target_session_attrs=primary", standby.url("postgres"));
    assert_eq!(refused(&asked).await.code(), "HX4212");
}

/// Goal: a file of the TLS settings that is not there is named before anything is sent. Method: no server is needed.
#[tokio::test]
async fn a_missing_file_of_the_tls_settings_is_named() {
    let error = refused("postgres://u:s3cret@127.0.0.1:1/d?sslmode=verify-ca&sslrootcert=/no/such/ca.pem").await;
    assert_eq!((error.code(), error.class()), ("HX4207", FaultClass::Denied), "{error:?}");
    assert!(error.to_string().contains("/no/such/ca.pem"), "{error}");
}

/// Goal: a server that is still starting is waited for, not given up. Method: a listener that answers as PostgreSQL does
/// while it recovers.
#[tokio::test]
async fn a_server_that_is_still_starting_is_waited_for() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert_ne!(stream.read(&mut [0; 1024]).await.unwrap(), 0, "the first message of a session");
        let fields = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0";
        let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
        stream.write_all(&[b"E", &length[..], fields].concat()).await.unwrap();
    });
    let error = refused(&format!("postgres://u:s3cret@127.0.0.1:{port}/d?sslmode=disable")).await;
    assert_eq!((error.code(), error.class()), ("HX4213", FaultClass::Reconnect), "{error:?}");
    assert!(error.to_string().contains("starting up"), "{error}");
}
