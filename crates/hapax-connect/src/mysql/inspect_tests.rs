use hapax_engine::sink::Target as _;
use hapax_model::field::FieldPath;

use super::super::rig::{Rig, keyed};
use super::super::sample::{Place, run};
use super::*;
use crate::table::mapping::{KEY_COLUMN_UNFIT, NO_COLUMN, NO_UNIQUE_INDEX, NO_VERSION, UNFED_COLUMN};

const UPDATE: Option<ConflictMode> = Some(ConflictMode::Update);
const IGNORE: Option<ConflictMode> = Some(ConflictMode::Ignore);
const NEWER: Option<ConflictMode> = Some(ConflictMode::Newer);
const APPEND: Option<ConflictMode> = Some(ConflictMode::Append);

fn config(place: &Place, mode: Option<ConflictMode>) -> MysqlSinkConfig {
    let mut config = MysqlSinkConfig::new(place.url(), "t");
    config.table.mode = mode;
    if mode.is_some_and(|mode| mode != ConflictMode::Append) {
        config.table.key_fields = vec![FieldPath::of_name("id")];
    }
    config
}

/// Goal: a table that cannot keep the promise is refused with its own code. Method: one flaw at a time, in one database.
#[tokio::test]
async fn an_unfit_table_is_refused_with_its_code() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    for (mode, ddl, code) in [
        (UPDATE, "CREATE TABLE t (id int PRIMARY KEY)", "fit"),
        (UPDATE, "CREATE TABLE t (id int NOT NULL)", NO_UNIQUE_INDEX),
        (UPDATE, "CREATE TABLE t (id int NOT NULL, b int, UNIQUE (id, b))", NO_UNIQUE_INDEX),
        (UPDATE, "CREATE TABLE t (id varbinary(99) NOT NULL, UNIQUE (id(9)))", NO_UNIQUE_INDEX),
        (UPDATE, "CREATE TABLE t (id int PRIMARY KEY, b int UNIQUE)", SECOND_INDEX),
        (IGNORE, "CREATE TABLE t (id int PRIMARY KEY, b int UNIQUE)", SECOND_INDEX),
        (UPDATE, "CREATE TABLE t (n int AUTO_INCREMENT PRIMARY KEY, id int NOT NULL UNIQUE)", SECOND_INDEX),
        (APPEND, "CREATE TABLE t (id int PRIMARY KEY, b int UNIQUE)", "fit"),
        (UPDATE, "CREATE TABLE t (id int PRIMARY KEY, UNIQUE (id))", "fit"),
        (UPDATE, "CREATE TABLE t (id int UNIQUE)", KEY_COLUMN_UNFIT),
        (UPDATE, "CREATE TABLE t (id set('a') PRIMARY KEY)", KEY_COLUMN_UNFIT),
        (UPDATE, "CREATE TABLE t (id inet6 PRIMARY KEY)", KEY_COLUMN_UNFIT),
        (UPDATE, "CREATE TABLE t (id varchar(9) PRIMARY KEY)", WEAK_COLLATION),
        (UPDATE, "CREATE TABLE t (id varchar(9) COLLATE utf8mb4_bin PRIMARY KEY)", WEAK_COLLATION),
        (UPDATE, "CREATE TABLE t (id varchar(9) COLLATE utf8mb4_nopad_bin PRIMARY KEY)", "fit"),
        (UPDATE, "CREATE TABLE t (id char(9) COLLATE utf8mb4_bin PRIMARY KEY)", "fit"),
        (UPDATE, "CREATE TABLE t (id varbinary(9) PRIMARY KEY)", "fit"),
        (UPDATE, "CREATE TABLE t (id enum('a') PRIMARY KEY)", "fit"),
        (UPDATE, "CREATE TABLE t (n int, id int AS (n + 1) STORED, UNIQUE (id))", NO_COLUMN),
        (NEWER, "CREATE TABLE t (id int PRIMARY KEY)", NO_VERSION),
        (NEWER, "CREATE TABLE t (id int PRIMARY KEY, hapax_version binary(16))", NO_VERSION),
        (NEWER, "CREATE TABLE t (id int PRIMARY KEY, hapax_version binary(18))", "fit"),
        (APPEND, "CREATE TABLE t (id int, hapax_version int NOT NULL)", UNFED_COLUMN),
        (APPEND, "CREATE TABLE t (id int) ENGINE = MyISAM", ENGINE),
        (APPEND, "CREATE TABLE t (id int) ENGINE = MEMORY", ENGINE),
        (APPEND, "CREATE TABLE t (id int) ENGINE = Aria", ENGINE),
        (APPEND, "CREATE VIEW t AS SELECT 1 AS id", NO_PLAIN_TABLE),
        (APPEND, "CREATE SEQUENCE t", NO_PLAIN_TABLE),
        (APPEND, "SELECT 1", NO_TABLE),
    ] {
        run(&mut session, ddl).await;
        let found = check_live(&config(&place, mode)).await;
        assert_eq!(found.as_ref().map_or_else(SinkError::code, |_| "fit"), code, "{ddl}: {found:?}");
        for kind in ["VIEW", "SEQUENCE", "TABLE"] {
            drop(session.text(&format!("DROP {kind} IF EXISTS t")).await);
        }
    }
}

/// Goal: a hash is safe in every collation, and an engine without transactions is fit for progress kept elsewhere.
/// Method: one table of each.
#[tokio::test]
async fn what_is_safe_is_not_refused() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    run(&mut session, "CREATE TABLE t (k varchar(29) COLLATE utf8mb4_general_ci PRIMARY KEY, id int)").await;
    let mut hashed = config(&place, UPDATE);
    hashed.table.key_column = Some("k".into());
    let found = check_live(&hashed).await.unwrap();
    let stop = found.would_stop.expect("a run would stop: our tables are missing");
    assert!(stop.1.contains("hapax setup"), "{stop:?}");
    run(&mut session, "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY) ENGINE = MyISAM").await;
    let mut elsewhere = config(&place, UPDATE);
    elsewhere.table.progress = ProgressPlace::State;
    let found = check_live(&elsewhere).await.unwrap();
    assert_eq!((found.engine.as_str(), found.notes.len()), ("MyISAM", 1));
}

/// Goal: a user without rights learns which, and how to get them. Method: none, then one more at a time.
#[tokio::test]
async fn missing_rights_are_named_with_their_cure() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    let (user, database) = (format!("u{}", place.name()), place.name().to_owned());
    run(
        &mut session,
        &format!("CREATE TABLE t (id int PRIMARY KEY, a int); CREATE TABLE other (id int); CREATE USER '{user}'@'%'"),
    )
    .await;
    run(&mut session, &format!("GRANT SELECT ON `{database}`.other TO '{user}'@'%'")).await;
    let mut config = config(&place, UPDATE);
    config.url = place.url_of(&user);
    config.table.deletes = Deletes::Some;
    for (grant, missing) in [
        ("", "GRANT SELECT, INSERT ON"),
        ("SELECT", "GRANT INSERT, UPDATE, DELETE ON"),
        ("INSERT (id), UPDATE", "GRANT INSERT, DELETE ON"),
        ("INSERT", "GRANT DELETE ON"),
        ("DELETE", ""),
    ] {
        if !grant.is_empty() {
            run(&mut session, &format!("GRANT {grant} ON `{database}`.t TO '{user}'@'%'")).await;
        }
        let found = check_live(&config).await;
        match found {
            Ok(found) => {
                assert_eq!(missing, "");
                assert!(found.notes.iter().any(|note| note.contains("GRANT PROCESS")), "{:?}", found.notes);
                assert!(found.identity.unwrap().0.contains("/t of 20"));
            }
            Err(error) => {
                assert!(matches!(error, SinkError::Denied { .. }), "{error}");
                let text = error.to_string();
                assert!(!missing.is_empty() && text.contains(missing) && text.contains(&user), "{grant}: {text}");
            }
        }
    }
    run(&mut session, &format!("DROP USER '{user}'@'%'")).await;
}

/// Goal: names that InnoDB spells its own way. Method: plain ones, blanks, letters of other scripts.
#[test]
fn a_table_is_asked_for_as_innodb_spells_it() {
    assert_eq!(file_name("order_by2").as_deref(), Some("order_by2"));
    assert_eq!(file_name("t x-$").as_deref(), Some("t@0020x@002d@0024"));
    assert_eq!(file_name("é"), None);
}

/// Goal: a table is the same after a rename and after a change in place, and another one after it was made again.
/// Method: each, asked as the contract asks.
#[tokio::test]
async fn a_table_is_known_by_its_number() {
    let mut rig = Rig::new("CREATE TABLE t (id int PRIMARY KEY, a int)", keyed(ConflictMode::Update)).await;
    let before = rig.sink.inspect().await.unwrap();
    rig.run("ALTER TABLE t ADD COLUMN b int; RENAME TABLE t TO u; RENAME TABLE u TO t").await;
    assert_eq!(rig.sink.inspect().await.unwrap(), before);
    rig.run("DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, a int)").await;
    assert_ne!(rig.sink.inspect().await.unwrap(), before);
}
