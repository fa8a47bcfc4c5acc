use hapax_engine::sink::Target as _;
use hapax_model::field::FieldPath;

use super::super::rig::{Rig, keyed, texts};
use super::super::sample::{Place, run};
use super::*;
use crate::table::mapping::{KEY_COLUMN_UNFIT, NO_UNIQUE_INDEX, NO_VERSION};

const UPDATE: Option<ConflictMode> = Some(ConflictMode::Update);
const APPEND: Option<ConflictMode> = Some(ConflictMode::Append);

fn config(place: &Place, mode: Option<ConflictMode>) -> PostgresSinkConfig {
    let mut config = PostgresSinkConfig::new(place.url(), "t");
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
    let session = place.bare().await;
    let mood = "CREATE TYPE mood AS ENUM ('sad')";
    let loose = "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";
    run(
        &session,
        &format!("{mood}; {loose}; CREATE EXTENSION postgres_fdw; CREATE SERVER s FOREIGN DATA WRAPPER postgres_fdw"),
    )
    .await;
    for (mode, ddl, code) in [
        (UPDATE, "CREATE TABLE t (id int PRIMARY KEY)", "fit"),
        (UPDATE, "CREATE TABLE t (id int NOT NULL)", NO_UNIQUE_INDEX),
        (UPDATE, "CREATE TABLE t (id int NOT NULL, b int, UNIQUE (id, b))", NO_UNIQUE_INDEX),
        (UPDATE, "CREATE TABLE t (id int NOT NULL, b int); CREATE UNIQUE INDEX ON t (id) INCLUDE (b)", "fit"),
        (UPDATE, "CREATE TABLE t (id int NOT NULL, b bool); CREATE UNIQUE INDEX ON t (id) WHERE b", NO_UNIQUE_INDEX),
        (UPDATE, "CREATE TABLE t (id int NOT NULL); CREATE UNIQUE INDEX ON t ((id + 1))", NO_UNIQUE_INDEX),
        (UPDATE, "CREATE TABLE t (id int NOT NULL UNIQUE DEFERRABLE)", NO_UNIQUE_INDEX),
        (UPDATE, "CREATE TABLE t (id text COLLATE loose PRIMARY KEY)", NO_UNIQUE_INDEX),
        (UPDATE, "CREATE TABLE t (id int UNIQUE)", KEY_COLUMN_UNFIT),
        (UPDATE, "CREATE TABLE t (id interval PRIMARY KEY)", KEY_COLUMN_UNFIT),
        (UPDATE, "CREATE TABLE t (id mood PRIMARY KEY)", KEY_COLUMN_UNFIT),
        (Some(ConflictMode::Newer), "CREATE TABLE t (id int PRIMARY KEY)", NO_VERSION),
        (APPEND, "CREATE UNLOGGED TABLE t (id int)", "HX4251"),
        (APPEND, "CREATE FOREIGN TABLE t (id int) SERVER s", "HX4250"),
        (APPEND, "CREATE VIEW t AS SELECT 1 AS id", NO_PLAIN_TABLE),
        (APPEND, "CREATE MATERIALIZED VIEW t AS SELECT 1 AS id", NO_PLAIN_TABLE),
        (APPEND, "CREATE SEQUENCE t", NO_PLAIN_TABLE),
        (APPEND, "SELECT 1", NO_TABLE),
        (APPEND, "CREATE TABLE t (id int); CREATE RULE r AS ON INSERT TO t DO INSTEAD NOTHING", "HX4253"),
        (
            APPEND,
            "CREATE TABLE t (id int) PARTITION BY LIST (id); CREATE UNLOGGED TABLE p PARTITION OF t DEFAULT",
            "HX4251",
        ),
        (UPDATE, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE h () INHERITS (t)", "HX4255"),
        (APPEND, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE h () INHERITS (t)", "fit"),
        (APPEND, "CREATE TABLE t (id int); ALTER TABLE t ENABLE ROW LEVEL SECURITY", "fit"),
    ] {
        run(&session, ddl).await;
        let found = check_live(&config(&place, mode)).await;
        assert_eq!(found.as_ref().map_or_else(SinkError::code, |_| "fit"), code, "{ddl}: {found:?}");
        let drop = "DO $$ DECLARE r record; BEGIN FOR r IN SELECT relname, relkind FROM pg_class \
                    WHERE relname IN ('t', 'h', 'p') AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') \
                    ORDER BY relname DESC LOOP EXECUTE format('DROP %s IF EXISTS %I CASCADE', CASE r.relkind \
                    WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'f' THEN 'FOREIGN TABLE' \
                    WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, r.relname); END LOOP; END $$";
        run(&session, drop).await;
    }
}

/// Goal: a temporary table of this very session is refused. Method: read it over the session that has it.
#[tokio::test]
async fn a_temporary_table_is_refused() {
    let place = Place::new().await;
    let session = place.bare().await;
    run(&session, "CREATE TEMP TABLE t (id int)").await;
    let error = inspect_foreign(&session, &config(&place, APPEND)).await.unwrap_err();
    assert_eq!(error.code(), "HX4252");
}

/// Goal: missing rights are named with the GRANTs that give them, those on our own tables too. Method: a role that has
/// nothing; type what the message says, and try again.
#[tokio::test]
async fn missing_rights_are_named_with_their_cure() {
    let place = Place::new().await;
    let session = place.connect().await;
    run(&session, "CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY, a text)").await;
    let user = format!("role_{}", std::process::id());
    run(&session, &format!("DROP ROLE IF EXISTS {user}; CREATE ROLE {user} LOGIN")).await;
    let mut config = config(&place, UPDATE);
    (config.url, config.table.name) = (place.url_of(&user), "s.t".into());
    config.table.deletes = Deletes::Some;
    let error = check_live(&config).await.unwrap_err();
    assert_eq!(error.code(), "HX4016", "{error}");
    let message = error.to_string();
    for part in ["GRANT USAGE ON SCHEMA \"s\"", "GRANT INSERT, SELECT, UPDATE, DELETE ON TABLE \"s\".\"t\""] {
        assert!(message.contains(part), "{message}");
    }
    run(&session, message.split_once("run: ").unwrap().1).await;
    assert_eq!(check_live(&config).await.unwrap().would_stop, None);
    run(&session, &format!("DROP OWNED BY {user}; DROP ROLE {user}")).await;
}

/// Goal: row security that binds our role is refused with its cure; one that does not is said. Method: the owner, and a
/// role that is bound.
#[tokio::test]
async fn row_security_is_refused_or_said() {
    let place = Place::new().await;
    let session = place.connect().await;
    let user = format!("bound_{}", std::process::id());
    run(
        &session,
        &format!(
            "CREATE TABLE t (id int); ALTER TABLE t ENABLE ROW LEVEL SECURITY; DROP ROLE IF EXISTS {user}; \
             CREATE ROLE {user} LOGIN; GRANT ALL ON t TO {user}"
        ),
    )
    .await;
    let mut config = config(&place, APPEND);
    let live = check_live(&config).await.unwrap();
    assert!(live.notes.iter().any(|note| note.contains("row security")), "{:?}", live.notes);
    config.url = place.url_of(&user);
    let error = check_live(&config).await.unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("BYPASSRLS")), ("HX4254", true), "{error}");
    run(&session, &format!("DROP OWNED BY {user}; DROP ROLE {user}")).await;
}

/// Goal: a missing table is named with a statement that makes it, under any name. Method: type what the message says,
/// then try again, in every mode.
#[tokio::test]
async fn a_missing_table_is_named_with_its_cure() {
    let place = Place::new().await;
    let session = place.bare().await;
    for mode in [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer] {
        for key_column in [None, Some("hapax_key".to_owned())] {
            let mut config = config(&place, Some(mode));
            config.table.name = "\"a\"\"; DROP TABLE x; --\"".into();
            config.table.key_column = key_column;
            if mode == ConflictMode::Newer {
                config.table.deletes = Deletes::Some;
            }
            let error = check_live(&config).await.unwrap_err();
            assert_eq!(error.code(), NO_TABLE, "{error}");
            let message = error.to_string();
            run(&session, &message[message.find("CREATE TABLE").unwrap()..]).await;
            assert_eq!(check_live(&config).await.unwrap().mapping.mode, mode);
            run(&session, "DROP TABLE \"a\"\"; DROP TABLE x; --\"").await;
        }
    }
}

/// Goal: without our own tables a run is refused and says what makes them. Method: a bare database.
#[tokio::test]
async fn a_database_without_our_tables_says_setup() {
    let place = Place::new().await;
    run(&place.bare().await, "CREATE TABLE t (id int PRIMARY KEY)").await;
    let config = config(&place, UPDATE);
    let session = place.bare().await;
    let error = inspect(&session, &config).await.unwrap_err();
    assert!(error.to_string().contains("hapax setup"), "{error}");
    let (_, stop) = check_live(&config).await.unwrap().would_stop.expect("a run would stop");
    assert!(stop.contains("hapax setup"), "{stop}");
}

/// Goal: `check` and `run` see one identity, and a check writes nothing. Method: compare; the catalogue before and after.
#[tokio::test]
async fn a_check_sees_the_identity_of_a_run_and_writes_nothing() {
    let ddl = "CREATE TABLE t (id int PRIMARY KEY, n bigint GENERATED ALWAYS AS IDENTITY);
               CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
               CREATE TRIGGER looks BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()";
    let mut rig = Rig::new(ddl, keyed(ConflictMode::Update)).await;
    let made = rig.sink.inspect().await.unwrap();
    let catalogue = "SELECT count(*) || ' ' || max(oid) FROM pg_class";
    let before = texts(&rig.database.look, catalogue).await;
    let live = check_live(&rig.config).await.unwrap();
    assert_eq!(live.identity, Some(made));
    assert_eq!(texts(&rig.database.look, catalogue).await, before);
    assert!(live.notes.iter().any(|note| note.contains("looks")), "{:?}", live.notes);
    assert!(live.notes.iter().any(|note| note.contains("\"n\" is GENERATED ALWAYS")), "{:?}", live.notes);
}
