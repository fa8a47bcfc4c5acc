use super::*;
use crate::holder::tests::{goes_when_its_holder_is_killed, gone};

fn quick() -> MariadbBuilder {
    Mariadb::builder().without_sync().setting("innodb_log_file_size", "10M").setting("innodb_buffer_pool_size", "16M")
}

/// Goal: a server is there when `start` returns, and nothing is left after it. Method: ask, stop both ways, drop.
#[test]
fn a_server_answers_stops_starts_again_and_leaves_nothing() {
    let mut server = quick().setting("max_connections", "17").start().expect("it starts");
    let client = server.connect("").expect("it answers");
    assert!(client.version().contains("MariaDB"), "{client:?}");
    assert_eq!(server.query("SELECT @@max_connections").expect("it answers").value(), Some("17"));
    assert_eq!(server.query("SELECT @@innodb_flush_log_at_trx_commit").expect("it answers").value(), Some("1"));
    let made = "CREATE DATABASE mine; CREATE TABLE mine.kept (a int); INSERT INTO mine.kept VALUES (1), (2)";
    assert_eq!(server.query(made).expect("it writes").tag, "2");
    let failed = server.query("SELECT * FROM mine.missing").expect_err("there is no such table");
    assert_eq!(failed.code(), Some("1146"));
    let mixed = server.query("SELECT NULL, 'ü'; SELECT a FROM mine.kept ORDER BY a").expect("it answers");
    assert_eq!(mixed.rows[0], [None, Some("ü".to_owned())]);
    assert_eq!(mixed.rows.len(), 3);
    for stop in [Stop::Fast, Stop::Immediate] {
        server.stop(stop);
        assert!(server.connect("").is_err(), "{stop:?}");
        server.start_again().expect("it starts again");
        assert_eq!(server.query("SELECT count(*) FROM mine.kept").expect("it answers").value(), Some("2"), "{stop:?}");
    }
    assert!(server.socket().exists());
    let (port, directory) = (server.port(), server.directory().to_owned());
    drop(server);
    assert!(gone(port, &directory), "the server on port {port} is still there");
}

/// Goal: nobody's death leaves a server behind. Method: another process holds one and is killed without a chance to act.
#[test]
fn a_server_goes_when_its_holder_is_killed() {
    let start = || {
        let server = quick().start().expect("it starts");
        let (port, directory) = (server.port(), server.directory().to_owned());
        (server, port, directory)
    };
    goes_when_its_holder_is_killed("mariadb::tests::a_server_goes_when_its_holder_is_killed", start, |port| {
        MysqlClient::connect(port, "")?.query("SELECT version()").map(drop)
    });
}

/// Goal: a port that is taken is named, and never mistaken for ours. Method: two servers, one port.
#[test]
fn a_port_that_another_server_has_is_an_error() {
    let first = quick().start().expect("it starts");
    let second = quick().port(first.port()).start().expect_err("the port is taken");
    assert!(second.to_string().contains("Address already in use"), "{second}");
    assert!(first.query("SELECT 1").is_ok());
}

/// Goal: the variants that tests want can be had. Method: one server with all of them, and a data directory elsewhere.
#[test]
fn a_server_is_as_it_was_asked_for() {
    let data = std::env::temp_dir().join(format!("hapax-mariadb-data-{}", std::process::id()));
    let wished = [("read_only", "1"), ("performance_schema", "1"), ("max_allowed_packet", "1048576")];
    let builder = wished.iter().fold(quick(), |builder, (name, value)| builder.setting(name, value));
    let mut server = builder.data_in(&data).start().expect("it starts");
    for (name, value) in wished {
        assert_eq!(server.query(&format!("SELECT @@{name}")).expect("it answers").value(), Some(value), "{name}");
    }
    server.query("CREATE USER plain; GRANT CREATE ON *.* TO plain").expect("root may write");
    let mut plain = MysqlClient::connect_as(server.port(), "plain", "").expect("it answers");
    let refused = plain.query("CREATE DATABASE mine").expect_err("it is read-only");
    assert_eq!(refused.code(), Some("1290"));
    server.add_line("read_only = 0").expect("it is written");
    server.start_again().expect("it starts again");
    assert_eq!(server.query("SELECT @@read_only").expect("it answers").value(), Some("0"));
    assert!(data.join("ibdata1").exists());
    drop(server);
    std::fs::remove_dir_all(data).expect("it can be removed");
}

/// Goal: a wrong setting is told with the server's own words. Method: one that does not exist.
#[test]
fn a_server_that_cannot_start_says_why() {
    let refused = quick().line("no_such_setting = 1").start().expect_err("it cannot start");
    let text = refused.to_string();
    assert!(text.contains("no_such_setting") || text.contains("no-such-setting"), "{text}");
}

/// Goal: MySQL's own server can be had, or the message says why not. Method: start it, ask it, stop it at once.
#[test]
fn mysql_itself_answers_where_it_can_be_had() {
    match Mariadb::mysql().without_sync().start() {
        Ok(mut server) => {
            let version = server.connect("").expect("it answers").version().to_owned();
            assert!(!version.contains("MariaDB"), "{version}");
            server.query("CREATE DATABASE mine; CREATE TABLE mine.kept (a int)").expect("it writes");
            server.stop(Stop::Immediate);
            server.start_again().expect("it starts again");
            assert_eq!(server.query("SELECT count(*) FROM mine.kept").expect("it answers").value(), Some("0"));
        }
        Err(refused @ ServiceError::NotFound { .. }) => assert!(refused.to_string().contains("mysqld"), "{refused}"),
        Err(other) => panic!("{other}"),
    }
}
