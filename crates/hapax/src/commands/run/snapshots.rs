//! Watches who keeps old row versions alive in the PostgreSQL databases of this process: until such a transaction ends,
//! every epoch makes the next one a little slower.
//!
//! Reads: each database, twice a minute. Writes: the roster's gauge, and a warning above ten minutes.

use std::time::Duration;

use hapax_connect::postgres::snapshots::{OldestSnapshot, TOO_OLD, oldest_snapshot};
use hapax_sql::postgres::Pool;

use crate::assemble::all_pools;
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
            for pool in all_pools() {
                let Some(oldest) = ask(&pool).await else { continue };
                let age = oldest.as_ref().map_or(Duration::ZERO, |oldest| oldest.age);
                roster.set_snapshot_age(&pool.url().target(), age);
                if let Some(oldest) = oldest.filter(|oldest| oldest.age > TOO_OLD)
                    && question.is_multiple_of(QUESTIONS_PER_WARNING)
                {
                    tracing::warn!(target_database = %pool.url(), "{oldest}");
                }
            }
            tokio::time::sleep(INTERVAL).await;
        }
    })
}

/// The answer, if the database is there and gives one.
async fn ask(pool: &Pool) -> Option<Option<OldestSnapshot>> {
    let session = pool.take(PATIENCE).await.ok()?;
    oldest_snapshot(&session).await.ok()
}
