//! Who keeps old row versions alive in a database: the progress row has a new version per epoch, and all of them stay
//! while an older transaction could still look at them.
//!
//! Reads: `pg_stat_activity`, which shows a role only its own sessions unless it has `pg_read_all_stats`. Writes nothing.

use std::fmt;
use std::time::Duration;

use hapax_engine::sink::SinkError;
use hapax_sql::postgres::Session;

use super::ask;
use super::error::During;

/// From this age on a person should look at it.
pub const TOO_OLD: Duration = Duration::from_secs(600);

/// The transaction with the oldest view of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldestSnapshot {
    /// For how long its transaction has been open.
    pub age: Duration,
    /// The server's process.
    pub pid: i32,
    /// Its `application_name`.
    pub name: String,
    /// Its role.
    pub user: String,
}

impl fmt::Display for OldestSnapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "process {} of {:?} ({:?}) has had a transaction open for {} s: until it ends, every epoch makes the next one \
             slower; end it, or SELECT pg_terminate_backend({})",
            self.pid,
            self.user,
            self.name,
            self.age.as_secs(),
            self.pid
        )
    }
}

/// The oldest view of this database that anybody else has, as far as this role may see; none if nobody has one.
///
/// # Errors
/// If the server does not answer.
pub async fn oldest_snapshot(session: &Session) -> Result<Option<OldestSnapshot>, SinkError> {
    let sql = "SELECT pid, coalesce(application_name, ''), coalesce(usename::text, ''), \
               greatest((extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint, 0) \
               FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
               AND xact_start IS NOT NULL AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) \
               ORDER BY xact_start LIMIT 1";
    let Some(row) = ask::optional(session, During::Look, sql, &[]).await? else { return Ok(None) };
    Ok(Some(OldestSnapshot {
        pid: ask::get(session, &row, 0)?,
        name: ask::get(session, &row, 1)?,
        user: ask::get(session, &row, 2)?,
        age: Duration::from_millis(ask::unsigned(session, &row, 3)?),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{Place, run};
    use super::*;

    /// Goal: whoever keeps old versions alive is named. Method: a transaction that has looked, another that has not.
    #[tokio::test]
    async fn the_oldest_transaction_is_named() {
        let place = Place::new().await;
        let (session, old, idle) = (place.bare().await, place.bare().await, place.bare().await);
        run(&idle, "BEGIN").await;
        assert_eq!(oldest_snapshot(&session).await.unwrap(), None);
        run(&old, "SET application_name = 'report'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let found = oldest_snapshot(&session).await.unwrap().unwrap();
        assert_eq!((found.pid, found.name.as_str()), (old.backend_pid(), "report"));
        assert!(found.age >= Duration::from_millis(20) && found.age < TOO_OLD, "{found:?}");
        assert!(found.to_string().contains(&format!("pg_terminate_backend({})", found.pid)));
    }
}
