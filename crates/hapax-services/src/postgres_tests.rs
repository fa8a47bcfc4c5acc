use super::*;
use crate::holder::tests::{goes_when_its_holder_is_killed, gone};

fn quick() -> Builder {
    Postgres::builder().setting("fsync", "off").setting("max_connections", "20").setting("shared_buffers", "16MB")
}

/// Goal: a server is there when `start` returns, and nothing is left after it. Method: ask, stop both ways, drop.
#[test]
fn a_server_answers_stops_starts_again_and_leaves_nothing() {
    let mut server = quick().hba("host all stranger 127.0.0.1/32 reject").start().expect("it starts");
    let version = server.query("SELECT version()").expect("it answers");
    assert!(version.value().is_some_and(|text| text.starts_with("PostgreSQL ")), "{version:?}");
    assert_eq!(server.query("SHOW fsync").expect("it answers").value(), Some("off"));
    server.query("CREATE TABLE kept (a int); INSERT INTO kept VALUES (1), (2)").expect("it writes");
    let failed = server.query("SELECT * FROM missing").expect_err("there is no such table");
    assert_eq!(failed.code(), Some("42P01"));
    for stop in [Stop::Fast, Stop::Immediate] {
        server.stop(stop);
        assert!(server.connect("postgres").is_err(), "{stop:?}");
        server.start_again().expect("it starts again");
        assert_eq!(server.query("SELECT count(*) FROM kept").expect("it answers").value(), Some("2"), "{stop:?}");
    }
    assert!(server.socket_dir().join(format!(".s.PGSQL.{}", server.port())).exists());
    let (port, directory) = (server.port(), server.socket_dir().to_owned());
    drop(server);
    assert!(gone(port, &directory), "the server on port {port} is still there");
}

/// Goal: nobody's death leaves a server behind. Method: another process holds one and is killed without a chance to act.
#[test]
fn a_server_goes_when_its_holder_is_killed() {
    let start = || {
        let server = quick().start().expect("it starts");
        let (port, directory) = (server.port(), server.socket_dir().to_owned());
        (server, port, directory)
    };
    goes_when_its_holder_is_killed("postgres::tests::a_server_goes_when_its_holder_is_killed", start, |port| {
        Client::connect(port, "postgres")?.query("SELECT version()").map(drop)
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

/// Goal: a failover can be played. Method: a standby follows, refuses to write, is promoted and writes.
#[test]
fn a_standby_follows_and_can_be_promoted() {
    let mut primary = quick().setting("wal_level", "replica").start().expect("it starts");
    primary.query("CREATE TABLE kept (a int)").expect("it writes");
    let standby = quick().start_standby(&primary).expect("it starts");
    let refused = standby.query("INSERT INTO kept VALUES (1)").expect_err("it is read-only");
    assert_eq!(refused.code(), Some("25006"));
    primary.stop(Stop::Immediate);
    standby.promote().expect("it can be promoted");
    standby.query("INSERT INTO kept VALUES (1)").expect("it writes");
}

/// Goal: a wrong setting is told with the server's own words. Method: one that does not exist.
#[test]
fn a_server_that_cannot_start_says_why() {
    let refused = quick().line("no_such_setting = 1").start().expect_err("it cannot start");
    let text = refused.to_string();
    assert!(text.contains("no_such_setting"), "{text}");
}
