//! Watches who keeps old row versions alive in the PostgreSQL databases of this process: until such a transaction ends,
//! every epoch makes the next one a little slower.
//!
//! Reads: each database, twice a minute. Writes: the roster's gauge, and a warning above ten minutes.

use std::time::Duration;

use hapax_connect::postgres::snapshots::{OldestSnapshot, TOO_OLD, oldest_snapshot};
use hapax_sql::postgres::Pool;

use crate::assemble::postgres_pools;
use crate::roster::Roster;

/// How often a database is asked.
const INTERVAL: Duration = Duration::from_secs(30);
/// How long a free session is waited for: deliveries go first.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many questions lie between two warnings about one database.
const QUESTIONS_PER_WARNING: u32 = 20;

/// Watches until it is aborted.
pub(super) fn watch(roster: Roster) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        for question in 0_u32.. {
            for pool in postgres_pools() {
                let answer = ask(&pool).await;
                // A figure that is not known is not shown: the last one would be a lie.
                let age =
                    answer.as_ref().ok().map(|oldest| oldest.as_ref().map_or(Duration::ZERO, |oldest| oldest.age));
                roster.set_snapshot_age(&pool.url().target(), age);
                match answer {
                    Ok(Some(oldest)) if oldest.age > TOO_OLD && question.is_multiple_of(QUESTIONS_PER_WARNING) => {
                        tracing::warn!(database = %pool.url(), "{oldest}");
                    }
                    Ok(_) => {}
                    Err(why) => tracing::debug!(database = %pool.url(), why, "open transactions were not looked for"),
                }
            }
            tokio::time::sleep(INTERVAL).await;
        }
    })
}

/// The oldest one, none if there is none; why nobody can tell.
async fn ask(pool: &Pool) -> Result<Option<OldestSnapshot>, String> {
    let session = pool.take(PATIENCE).await.map_err(|error| error.to_string())?;
    oldest_snapshot(&session).await.map_err(|error| error.to_string())
}
