use hapax_sql::postgres::PostgresUrl;

use super::super::test_database::TestDatabase;
use super::super::{PostgresOptions, PostgresStore, limits};
use super::*;
use crate::model::BrokerId;

async fn refused(url: PostgresUrl) -> OpenError {
    PostgresStore::open(PostgresOptions { url, broker: BrokerId(1) }).await.unwrap_err()
}

/// Goal: two brokers that start at once make one schema and agree on the cluster. Method: four of them.
#[tokio::test]
async fn the_schema_is_made_once() {
    let database = TestDatabase::new();
    let (url, limits) = (database.url(), limits());
    let (one, two, three, four) =
        tokio::join!(prepare(&url, &limits), prepare(&url, &limits), prepare(&url, &limits), prepare(&url, &limits));
    let cluster = one.unwrap();
    assert_eq!(cluster.len(), 22, "{cluster}");
    for other in [two, three, four] {
        assert_eq!(other.unwrap(), cluster);
    }
    let rows = database.sql("SELECT count(*) FROM kafka.shards");
    assert_eq!(rows[0][0].as_deref(), Some("16"));
}

/// Goal: HX4501 names the SQL that helps, and it does. Method: a role without rights; run what the error says.
#[tokio::test]
async fn a_role_without_rights_is_told_what_to_grant() {
    let database = TestDatabase::new();
    let role = format!("{}_role", database.name());
    database.on_server(&format!("CREATE ROLE {role} LOGIN"));
    let url =
        PostgresUrl::parse(&format!("postgres://{role}@127.0.0.1:{}/{}", database.url().hosts()[0].1, database.name()))
            .unwrap();
    for expected in ["CREATE ON DATABASE", "USAGE ON SCHEMA"] {
        let error = refused(url.clone()).await;
        assert_eq!(error.code(), "HX4501");
        let OpenError::Rights { sql, .. } = &error else { panic!("{error}") };
        assert!(sql.contains(expected), "{error}");
        if expected == "CREATE ON DATABASE" {
            // The administrator may also make it himself: then the role may not use it yet.
            database.sql(&PostgresStore::schema_sql());
        } else {
            database.sql(sql);
        }
    }
    assert!(PostgresStore::open(PostgresOptions { url, broker: BrokerId(1) }).await.is_ok());
    database.sql(&format!("DROP OWNED BY {role}"));
    database.on_server(&format!("DROP ROLE {role}"));
}

/// Goal: a newer schema (HX4502) and somebody else's (HX4503) stay untouched. Method: a raised version; a foreign schema.
#[tokio::test]
async fn a_schema_that_we_do_not_know_is_refused() {
    let database = TestDatabase::new();
    drop(database.store(1).await);
    database.sql("UPDATE kafka.meta SET value = '2' WHERE name = 'schema_version'");
    assert_eq!(refused(database.url()).await.code(), "HX4502");
    database.sql("DROP SCHEMA kafka CASCADE; CREATE SCHEMA kafka; CREATE TABLE kafka.mine (a int)");
    assert_eq!(refused(database.url()).await.code(), "HX4503");
}

/// Goal: a server that would lose what it confirmed (HX4504), or takes no writes (HX4506), is refused.
/// Method: a server with fsync = off, then on and read-only.
#[tokio::test]
async fn a_server_that_cannot_keep_its_word_is_refused() {
    let server = hapax_services::Postgres::builder().setting("fsync", "off").start().unwrap();
    let url = PostgresUrl::parse(&server.url("postgres")).unwrap();
    let error = refused(url.clone()).await;
    assert_eq!(error.code(), "HX4504");
    assert!(error.to_string().contains("fsync = on"), "{error}");
    server.query("ALTER SYSTEM SET fsync = on").unwrap();
    server.query("ALTER SYSTEM SET default_transaction_read_only = on").unwrap();
    server.query("SELECT pg_reload_conf()").unwrap();
    let begun = std::time::Instant::now();
    while refused(url.clone()).await.code() == "HX4504" {
        assert!(begun.elapsed() < crate::patience::LIMIT, "the server does not reload");
    }
    assert_eq!(refused(url).await.code(), "HX4506");
}

/// Goal: the other errors have their pages. Method: one of each.
#[test]
fn every_error_has_its_page() {
    let target = || "postgres://host/db".to_owned();
    let old = OpenError::TooOld { target: target(), version: 130_012 };
    assert_eq!(old.code(), "HX4505");
    assert!(old.to_string().contains("PostgreSQL 13;"), "{old}");
    let failed = OpenError::Failed { target: target(), fault: Box::new(SqlFault::lost("gone")) };
    assert_eq!(failed.code(), "HX4500");
}
