use hapax_engine::sink::{Reaction, TransactionalSink as _};
use hapax_model::mode::ConflictMode;

use super::super::rig::{Rig, SLEEPY, Server, end_the_sleeper, keyed};
use super::super::sample::{id, run};
use super::super::sink::MysqlSink;
use super::*;
use crate::table::contract::{self, clauses};
use crate::table::rig::{Database as _, strs};

const PLAIN: &str = Server::PLAIN;
const DEAD: &str = "SELECT code FROM hapax_dead_letters ORDER BY id";

clauses!(sink, Server:
    // Times, numbers and padded text.
    a_key_is_what_the_table_takes_for_one(&[
        ("timestamp", "\"2026-11-16T03:00:00Z\"", "\"2026-11-16 04:00:00+01:00\""),
        ("datetime(6)", "\"2026-11-16T03:00:00.5Z\"", "\"2026-11-16 03:00:00.500000\""),
        ("time", "\"03:00\"", "\"03:00:00\""),
        ("decimal(9,3)", "1.50", "15e-1"),
        ("double", "0", "-0.0"),
        ("float", "0.1", "1.0e-1"),
        ("char(5) COLLATE utf8mb4_bin", "\"a\"", "\"a  \""),
        ("uuid", "\"F0000000-0000-0000-0000-000000000001\"", "\"f0000000000000000000000000000001\""),
        ("bigint unsigned", "18446744073709551615", "18446744073709551615.0"),
        ("bit(9)", "256", "2.56e2"),
        ("year", "2026", "2026"),
        ("enum('a','b')", "\"b\"", "\"b\""),
    ]),
);

/// Goal: each bad row is a dead letter that says why, with the source bytes; the rest goes on. Method: one of each kind
/// that the table itself refuses, among those that we refuse.
#[tokio::test]
async fn bad_rows_are_dead_letters_with_their_reason() {
    let ddl = "CREATE TABLE t (id bigint PRIMARY KEY, a varchar(5) NOT NULL, b smallint, p bigint, d timestamp NULL, \
               CONSTRAINT small CHECK (b < 100), CONSTRAINT parent FOREIGN KEY (p) REFERENCES t (id));
               CREATE TRIGGER no BEFORE INSERT ON t FOR EACH ROW BEGIN \
               IF NEW.b = 13 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'unlucky 13'; END IF; \
               IF NEW.b = 14 THEN SIGNAL SQLSTATE '99999' SET MESSAGE_TEXT = 'of no known class'; END IF; END";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let inputs = [
        r#"{"id":1,"a":"x","b":1}"#,
        r#"{"id":2,"a":"x","b":70000}"#,
        r#"{"id":3,"a":null}"#,
        r#"{"id":4,"a":"too long"}"#,
        r#"{"id":5,"a":"x","b":100}"#,
        r#"{"id":6,"a":"x","b":13}"#,
        r#"{"id":7,"a":"x","b":14}"#,
        r#"{"id":8,"a":"x","d":"2300-01-01T00:00:00Z"}"#,
        r#"{"id":9,"a":"x","p":77}"#,
        "no event",
        r#"{"id":10,"a":"x","p":1}"#,
    ];
    let done = rig.deliver(&inputs).await;
    assert_eq!(done.dead_inputs, (1..10).collect::<Vec<_>>());
    let expected = ["HX2020", "HX2021", "HX2020", "HX2032", "HX2036", "HX2036", "HX2151", "HX2033"];
    assert_eq!(rig.texts(DEAD).await[..8], expected);
    let bytes = rig.texts("SELECT CONVERT(bytes USING utf8mb4) FROM hapax_dead_letters ORDER BY id").await;
    assert_eq!(bytes, inputs[1..10]);
    let named = rig.texts("SELECT fingerprint FROM hapax_dead_letters ORDER BY id").await;
    assert!(named[3].contains("constraint \"small\"") && named[7].contains("constraint \"parent\""), "{named:?}");
    assert!(named[4].contains("unlucky #"), "{named:?}");
    assert_eq!(rig.texts("SELECT id FROM t ORDER BY id").await, ["1", "10"]);
    assert!(done.progress.totals.adds_up());
    assert_eq!((done.written.failures, done.written.inserts), (8, 2));
}

/// Goal: after a rejection rows go in lane order, so that only the guilty die. Method: a row that refers to one that
/// comes before it in the lane and behind it in the order of keys, beside a poisoned one, among many.
#[tokio::test]
async fn after_a_rejection_rows_go_in_lane_order() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, p int REFERENCES t (id), b int CHECK (b <> 13))";
    let mut rig = Rig::new(ddl, |config| {
        keyed(ConflictMode::Update)(config);
        config.rows_per_statement = 8;
    })
    .await;
    let mut inputs: Vec<String> =
        vec![r#"{"id":9,"b":1}"#.into(), r#"{"id":1,"p":9,"b":1}"#.into(), r#"{"id":5,"b":13}"#.into()];
    inputs.extend((100..140).map(|id| format!("{{\"id\":{id},\"p\":9,\"b\":1}}")));
    let done = rig.deliver(&strs(&inputs)).await;
    assert_eq!((done.dead_inputs, done.written.failures, done.written.inserts), (vec![2], 1, 42));
    assert_eq!(rig.texts("SELECT id FROM t WHERE id < 100 ORDER BY id").await, ["1", "9"]);
}

/// Goal: no message is larger than the server takes: large rows go in several statements, and one that is too large
/// alone is a dead letter with its size. Method: rows of one MiB, and one of 17 where 16 are the limit.
#[tokio::test]
async fn rows_larger_than_a_message_are_dead_letters() {
    let mut rig = Rig::new("CREATE TABLE t (id int PRIMARY KEY, a longtext)", keyed(ConflictMode::Update)).await;
    let largest: usize = rig.texts("SELECT @@max_allowed_packet").await[0].parse().unwrap();
    let row = |id: usize, bytes: usize| format!("{{\"id\":{id},\"a\":\"{}\"}}", "x".repeat(bytes));
    let mut inputs: Vec<String> = (0..20).map(|id| row(id, 1 << 20)).collect();
    inputs.insert(7, row(100, largest + 1));
    inputs.push(row(101, 9 << 20));
    let done = rig.deliver(&strs(&inputs)).await;
    assert_eq!(done.dead_inputs, [7]);
    assert_eq!(rig.texts("SELECT CONCAT(count(*), ' ', sum(length(a)) >> 20) FROM t").await, ["21 29"]);
    let letters = rig.texts("SELECT CONCAT(code, ' ', message) FROM hapax_dead_letters").await;
    assert!(letters[0].starts_with("HX2150 the row has ") && letters[0].contains(&largest.to_string()), "{letters:?}");
    let alone = [row(103, largest + 1), r#"{"id":103,"op":"d"}"#.to_owned()];
    assert_eq!(rig.deliver(&strs(&alone)).await.dead_inputs, [0], "whoever takes its place");
}

/// Goal: as many values as the protocol counts go in one statement, and no more. Method: wide rows, more than fit.
#[tokio::test]
async fn wide_rows_are_cut_by_the_number_of_values() {
    let names: Vec<String> = (0..200).map(|n| format!("c{n} int")).collect();
    let ddl = format!("CREATE TABLE t (id int PRIMARY KEY, {})", names.join(", "));
    let mut rig = Rig::new(&ddl, keyed(ConflictMode::Ignore)).await;
    let row = |id: usize| {
        let fields: Vec<String> = (0..200).map(|n| format!("\"c{n}\":{n}")).collect();
        format!("{{\"id\":{id},{}}}", fields.join(","))
    };
    let inputs: Vec<String> = (0..700).map(row).collect();
    let done = rig.deliver(&strs(&inputs)).await;
    assert_eq!(done.written.inserts, 700);
    assert_eq!(rig.texts("SELECT CONCAT(count(*), ' ', sum(c199)) FROM t").await, ["700 139300"]);
}

/// Goal: keys that differ only in case, accents, trailing spaces or far decimals are different rows, also when one is
/// removed. Method: such pairs, and a delete of one.
#[tokio::test]
async fn keys_that_differ_stay_apart() {
    for (declared, first, second) in [
        ("varchar(9) COLLATE utf8mb4_nopad_bin", "\"a\"", "\"A\""),
        ("varchar(9) COLLATE utf8mb4_nopad_bin", "\"a\"", "\"a \""),
        ("varbinary(9)", "\"e\"", "\"é\""),
        ("decimal(30,0)", "123456789012345678901", "123456789012345678902"),
        ("bigint unsigned", "18446744073709551614", "18446744073709551615"),
    ] {
        let ddl = format!("CREATE TABLE t (id {declared} NOT NULL PRIMARY KEY, b int)");
        let mut rig = Rig::new(&ddl, |config| {
            keyed(ConflictMode::Update)(config);
            config.table.deletes = super::super::config::Deletes::Some;
        })
        .await;
        let event = |id: &str, rest: &str| format!("{{\"id\":{id},{rest}}}");
        let done = rig.deliver(&[&event(first, "\"b\":1"), &event(second, "\"b\":2")]).await;
        assert_eq!(done.written.inserts, 2, "{declared}");
        let done = rig.deliver(&[&event(first, "\"op\":\"d\"")]).await;
        assert_eq!(done.written.deletes, 1, "{declared}");
        assert_eq!(rig.texts("SELECT b FROM t").await, ["2"], "{declared}");
    }
}

/// Goal: a key of several columns, of a table with partitions, is written, counted and removed. Method: new and known
/// keys in two partitions, one for which there is none, deletes of many.
#[tokio::test]
async fn keys_of_several_columns_and_partitions_work() {
    let ddl = "CREATE TABLE t (id int, k varbinary(9), b int, PRIMARY KEY (id, k)) \
               PARTITION BY RANGE (id) (PARTITION p1 VALUES LESS THAN (10), PARTITION p2 VALUES LESS THAN (2000))";
    let mut rig = Rig::new(ddl, |config| {
        config.table.mode = Some(ConflictMode::Update);
        config.table.key_fields = vec!["id".parse().unwrap(), "k".parse().unwrap()];
        config.table.deletes = super::super::config::Deletes::Some;
    })
    .await;
    let first = rig.deliver(&[r#"{"id":1,"k":"x","b":1}"#, r#"{"id":11,"k":"x","b":1}"#]).await.written;
    assert_eq!((first.inserts, first.updates), (2, 0));
    let second =
        rig.deliver(&[r#"{"id":1,"k":"x","b":2}"#, r#"{"id":1,"k":"y","b":2}"#, r#"{"id":2000,"k":"x","b":0}"#]).await;
    assert_eq!((second.written.inserts, second.written.updates, second.dead_inputs), (1, 1, vec![2]));
    assert_eq!(rig.texts(DEAD).await, ["HX2152"]);
    assert_eq!(rig.texts("SELECT CONCAT(id, k, b) FROM t PARTITION (p1) ORDER BY k").await, ["1x2", "1y2"]);
    let many: Vec<String> = (100..500).map(|id| format!("{{\"id\":{id},\"k\":\"z\",\"b\":1}}")).collect();
    rig.deliver(&strs(&many)).await;
    let gone: Vec<String> = (100..500).map(|id| format!("{{\"id\":{id},\"k\":\"z\",\"op\":\"d\"}}")).collect();
    assert_eq!(rig.deliver(&strs(&gone)).await.written.deletes, 400);
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["3"]);
}

/// Goal: lanes that lock each other's rows the wrong way round both get there. Method: a deadlock with another session,
/// whose rows weigh more, so that ours is the one that is ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_is_tried_again() {
    let ddl = format!(
        "{PLAIN}; INSERT INTO t VALUES (1, 'x', 0), (2, 'x', 0); INSERT INTO t SELECT seq, 'x', 0 FROM seq_100_to_900"
    );
    let mut rig = Rig::unclaimed(&ddl, keyed(ConflictMode::Update)).await;
    // One row per statement, so that there is a moment between the two locks.
    rig.config.rows_per_statement = 1;
    rig.sink = MysqlSink::new(rig.config.clone(), rig.config.pool(), id("rig"));
    rig.claim().await;
    let mut other = rig.database.place.bare().await;
    run(&mut other, "BEGIN; UPDATE t SET b = 7 WHERE id >= 100 OR id = 2").await;
    let theirs = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        run(&mut other, "UPDATE t SET b = 7 WHERE id = 1").await;
        run(&mut other, "COMMIT").await;
    };
    let batch = rig.batch(&[r#"{"id":1,"b":1}"#, r#"{"id":2,"b":1}"#]);
    let (done, ()) = tokio::join!(rig.try_deliver(batch), theirs);
    assert_eq!(done.unwrap().written.updates, 2);
    assert_eq!(rig.texts("SELECT b FROM t WHERE id < 100 ORDER BY id").await, ["1", "1"]);
    assert_eq!(rig.sink.metrics().commit_failures, 0);
}

/// Goal: a table that somebody holds is waited for, then named, and nothing is lost. Method: another session locks it.
#[tokio::test]
async fn a_locked_table_is_waited_for_and_named() {
    let rig = Rig::new(PLAIN, |config| {
        keyed(ConflictMode::Update)(config);
        config.limits.lock = Duration::from_secs(1);
    })
    .await;
    contract::sink::a_locked_table_is_waited_for_and_named(rig, "LOCK TABLES t WRITE", "UNLOCK TABLES").await;
}

/// Goal: a session that is ended in mid-epoch leaves nothing behind, and the same epoch lands once. Method: end it while
/// a trigger sleeps.
#[tokio::test(flavor = "multi_thread")]
async fn an_ended_session_leaves_nothing_and_the_epoch_lands_once() {
    let mut rig = Rig::new(SLEEPY, keyed(ConflictMode::Update)).await;
    let ending = end_the_sleeper(rig.database.place.bare().await);
    let batch = rig.batch(&[r#"{"id":1,"b":1}"#]);
    let (done, ()) = tokio::join!(rig.try_deliver(batch), ending);
    let error = done.unwrap_err();
    assert_eq!(error.reaction(), Reaction::Retry, "{error}");
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["0"]);
    rig.commit_again(&[r#"{"id":1,"b":1}"#]).await.unwrap();
    assert_eq!(rig.texts("SELECT b FROM t").await, ["1"]);
    assert_eq!(rig.texts("SELECT epoch FROM hapax_progress").await, ["1"]);
}

/// Goal: a commit that is dropped while the server works is in doubt, and the epoch lands once. Method: drop it while a
/// trigger sleeps, take the delivery back, commit again.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_commit_is_taken_back_and_lands_once() {
    let mut rig = Rig::new(SLEEPY, |config| {
        keyed(ConflictMode::Update)(config);
        config.claim_timeout = Duration::from_millis(300);
    })
    .await;
    let record = rig.drop_commit(&[r#"{"id":1,"b":1}"#], Duration::from_millis(500)).await;
    rig.run("DROP TRIGGER s").await;
    rig.sink.commit_transaction(&record).await.unwrap();
    assert_eq!(rig.texts("SELECT b FROM t").await, ["1"]);
    assert_eq!(rig.texts("SELECT CONCAT(epoch, ' ', `rows`) FROM hapax_progress").await, ["1 1"]);
}
