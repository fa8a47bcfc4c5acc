use hapax_services::Mariadb;

use super::super::test_database::quick;
use super::super::{MysqlUrl, Session};
use super::*;

async fn refused(address: &str) -> ConnectError {
    let error = Session::connect(&MysqlUrl::parse(address).unwrap(), &quick()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    error
}

/// Goal: each way of not getting in has its own page, cure and reaction. Method: a server that refuses in each of them.
#[tokio::test]
async fn each_refusal_has_its_page_and_cure() {
    let server = Mariadb::builder().setting("max_connections", "10").start().unwrap();
    let setup = "CREATE USER locked IDENTIFIED BY 's3cret'; CREATE USER barred ACCOUNT LOCK; CREATE USER plain; \
                 CREATE USER few WITH MAX_USER_CONNECTIONS 1; CREATE DATABASE d; CREATE USER away@'10.9.8.7'; \
                 CREATE USER tls REQUIRE SSL; GRANT ALL ON d.* TO locked, few";
    server.query(setup).unwrap();
    let at = |login: &str, rest: &str| format!("mysql://{login}@127.0.0.1:{}/{rest}", server.port());
    Session::connect(&MysqlUrl::parse(&at("locked:s3cret", "d")).unwrap(), &quick()).await.unwrap();
    let _few = Session::connect(&MysqlUrl::parse(&at("few", "d")).unwrap(), &quick()).await.unwrap();
    for (address, code, class, says) in [
        (at("locked:wrong", "d"), "HX4352", FaultClass::Denied, "1045"),
        (at("locked", "d"), "HX4352", FaultClass::Denied, "correct user and password"),
        (at("nobody:s3cret", "d"), "HX4352", FaultClass::Denied, "'nobody'"),
        (at("root", "nowhere"), "HX4353", FaultClass::Denied, "create the database"),
        (at("barred", ""), "HX4354", FaultClass::Denied, "ALTER USER"),
        (at("root", "d?ssl-mode=required"), "HX4355", FaultClass::Denied, "ssl-mode=preferred"),
        (at("few", "d"), "HX4358", FaultClass::Reconnect, "max_connections"),
        (at("plain", "d"), "HX4359", FaultClass::Denied, "GRANT"),
    ] {
        let error = refused(&address).await;
        assert_eq!((error.code(), error.class()), (code, class), "{address}: {error:?}");
        assert!(error.to_string().contains(says), "{address}: {error}");
    }
    let mut all = Vec::new();
    let error = loop {
        match Session::connect(&MysqlUrl::parse(&at("plain", "")).unwrap(), &quick()).await {
            Ok(session) => all.push(session),
            Err(error) => break error,
        }
    };
    assert_eq!((error.code(), error.class()), ("HX4358", FaultClass::Reconnect), "{error:?}");
}

/// Goal: nobody at the address, and silence at the address, are told apart from refusals, in time.
/// Method: a closed port, a name that does not exist, a socket that is none, a listener that never answers.
#[tokio::test]
async fn an_unreachable_server_is_told_in_time() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed_port = closed.local_addr().unwrap().port();
    drop(closed);
    for address in [
        format!("mysql://u:s3cret@127.0.0.1:{closed_port}/d"),
        format!("mysql://u:s3cret@127.0.0.1:{silent_port}/d?connect-timeout=1"),
        "mysql://u:s3cret@no-such-host.invalid/d".to_owned(),
        "mysql://u:s3cret@/d?socket=/no/such/socket".to_owned(),
    ] {
        let begun = std::time::Instant::now();
        let error = refused(&address).await;
        assert_eq!((error.code(), error.class()), ("HX4351", FaultClass::Reconnect), "{address}: {error:?}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{address}");
    }
}

/// Goal: what answers but is no MySQL is no panic. Method: a listener that says something else, and hangs up.
#[tokio::test]
async fn something_else_at_the_address_is_told() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        for answer in [b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), b"\x05\0\0\0\x0a9.x\0", b""] {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.unwrap();
        }
    });
    for _ in 0..3 {
        let error = refused(&format!("mysql://u:s3cret@127.0.0.1:{port}/d")).await;
        assert_eq!(error.class(), FaultClass::Reconnect, "{error:?}");
    }
}

/// Goal: every number that a server refuses with has its page. Method: made-up answers that no test server gives.
#[test]
fn each_number_has_its_page() {
    for (number, code) in [
        (1129, "HX4354"),
        (1130, "HX4354"),
        (3159, "HX4354"),
        (1251, "HX4354"),
        (3118, "HX4354"),
        (1698, "HX4352"),
        (1053, "HX4362"),
        (1226, "HX4358"),
        (1105, "HX4001"),
    ] {
        let error = mysql_async::ServerError { code: number, message: "m".into(), state: "HY000".into() };
        assert_eq!(ConnectError::of("t".to_owned(), &error.into()).code(), code, "{number}");
    }
    let plugin = Error::Driver(DriverError::UnknownAuthPlugin { name: "x".into() });
    assert_eq!(ConnectError::of("t".to_owned(), &plugin).code(), "HX4354");
    let server = Server::parse("5.6.51").unwrap();
    let old = ConnectError::TooOld { target: "t".to_owned(), server };
    assert_eq!((old.code(), old.class()), ("HX4361", FaultClass::Denied));
    assert!(old.to_string().contains("MySQL 5.6.51"));
}
