//! The schema `kafka`: looked at, and made if it is not there, before anything else happens.
//!
//! Invariant: two brokers that start at once make it once; a schema of a newer program, or somebody else's, stays as it is.

use hapax_sql::postgres::{CommitEnd, FaultClass, Limits, PostgresUrl, Session, SqlFault, checked_commit};

use super::open_error::OpenError;

/// All but `CREATE SCHEMA`.
pub(super) const SCHEMA: &str = include_str!("schema.sql");
/// The version that [`SCHEMA`] writes into `kafka.meta`.
const VERSION: i32 = 1;
const OLDEST: u32 = 140_000;

/// Refuses a server that cannot keep its word, makes the schema if need be, and tells the cluster's id.
pub(super) async fn prepare(url: &PostgresUrl, limits: &Limits) -> Result<String, OpenError> {
    let session = Session::connect(url, limits).await?;
    let target = url.target();
    check_server(&session, &target).await?;
    session.begin().await.map_err(|fault| failed(&target, fault))?;
    let answer = prepare_in_transaction(&session, &target).await;
    match answer {
        Ok((cluster_id, Made::Now)) => match checked_commit(&session).await {
            CommitEnd::Committed => Ok(cluster_id),
            CommitEnd::RolledBack { fault } => Err(failed(&target, *fault)),
            CommitEnd::InDoubt { message } => Err(failed(&target, SqlFault::lost(message))),
        },
        Ok((cluster_id, Made::Before)) => {
            session.rollback().await.map_err(|fault| failed(&target, fault))?;
            Ok(cluster_id)
        }
        // The session is dropped, and the server rolls back.
        Err(error) => Err(error),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Now,
    Before,
}

async fn check_server(session: &Session, target: &str) -> Result<(), OpenError> {
    let version = session.server_version();
    if version < OLDEST {
        return Err(OpenError::TooOld { target: target.to_owned(), version });
    }
    let sql = "SELECT current_setting('fsync') = 'off', \
         pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on'";
    let row = session.client().query_one(sql, &[]).await.map_err(|error| failed(target, session.fault(&error)))?;
    if row.get(0) {
        return Err(OpenError::NotDurable { target: target.to_owned() });
    }
    if row.get(1) {
        return Err(OpenError::ReadOnly { target: target.to_owned() });
    }
    Ok(())
}

async fn prepare_in_transaction(session: &Session, target: &str) -> Result<(String, Made), OpenError> {
    let fault = |error: &hapax_sql::postgres::tokio_postgres::Error| failed(target, session.fault(error));
    // One broker at a time gets past here, so a second finds what the first has made.
    let sql = "SELECT pg_advisory_xact_lock(1214345336, -1), current_database()::text, current_user::text";
    let row = session.client().query_one(sql, &[]).await.map_err(|error| fault(&error))?;
    let (database, user): (String, String) = (row.get(1), row.get(2));
    let sql = "SELECT to_regnamespace('kafka') IS NOT NULL, has_database_privilege(current_database(), 'CREATE')";
    let row = session.client().query_one(sql, &[]).await.map_err(|error| fault(&error))?;
    let (there, may_create): (bool, bool) = (row.get(0), row.get(1));
    let made = if there {
        check_rights(session, target, &user).await?;
        Made::Before
    } else if may_create {
        let sql = format!("CREATE SCHEMA kafka;\n{SCHEMA}");
        session.client().batch_execute(&sql).await.map_err(|error| fault(&error))?;
        tracing::info!(target, "made the schema kafka");
        Made::Now
    } else {
        return Err(OpenError::Rights {
            target: target.to_owned(),
            message: format!("the role {user} may not make the schema kafka"),
            sql: format!("GRANT CREATE ON DATABASE {} TO {}", quoted(&database), quoted(&user)),
        });
    };
    let sql = "SELECT (SELECT value FROM kafka.meta WHERE name = 'schema_version')::int, \
         (SELECT value FROM kafka.meta WHERE name = 'cluster_id')";
    let row = session.client().query_one(sql, &[]).await.map_err(|error| fault(&error))?;
    match (row.get::<_, Option<i32>>(0), row.get::<_, Option<String>>(1)) {
        (Some(found), _) if found > VERSION => {
            Err(OpenError::Newer { target: target.to_owned(), found, known: VERSION })
        }
        (Some(_), Some(cluster_id)) => Ok((cluster_id, made)),
        _ => Err(OpenError::NotOurs { target: target.to_owned() }),
    }
}

/// A schema that is there: ours, and ours to use.
async fn check_rights(session: &Session, target: &str, user: &str) -> Result<(), OpenError> {
    let missing = |message: &str, sql: &str| OpenError::Rights {
        target: target.to_owned(),
        message: format!("the role {user} {message}"),
        sql: sql.replace("ROLE", &quoted(user)),
    };
    let ask = async |sql: &str| -> Result<bool, OpenError> {
        let row = session.client().query_one(sql, &[]).await;
        row.map(|row| row.get(0)).map_err(|error| failed(target, session.fault(&error)))
    };
    if !ask("SELECT has_schema_privilege('kafka', 'USAGE')").await? {
        return Err(missing("may not use the schema kafka", GRANTS));
    }
    if !ask("SELECT to_regclass('kafka.meta') IS NOT NULL AND to_regclass('kafka.batches') IS NOT NULL").await? {
        return Err(OpenError::NotOurs { target: target.to_owned() });
    }
    let sql = "SELECT bool_and(has_table_privilege(c.oid, p)) FROM pg_class c, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) p \
         WHERE c.relnamespace = 'kafka'::regnamespace AND c.relkind = 'r'";
    if !ask(sql).await? {
        return Err(missing("may not write to the tables of the schema kafka", GRANTS));
    }
    Ok(())
}

const GRANTS: &str = "GRANT USAGE ON SCHEMA kafka TO ROLE; GRANT ALL ON ALL TABLES IN SCHEMA kafka TO ROLE; \
     GRANT ALL ON ALL SEQUENCES IN SCHEMA kafka TO ROLE; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA kafka TO ROLE";

fn quoted(name: &str) -> String {
    hapax_sql::postgres::quote_identifier(name).unwrap_or_else(|_| name.to_owned())
}

fn failed(target: &str, fault: SqlFault) -> OpenError {
    if fault.class == FaultClass::ReadOnly {
        return OpenError::ReadOnly { target: target.to_owned() };
    }
    OpenError::Failed { target: target.to_owned(), fault: Box::new(fault) }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
