//! Who blocks a session, and the end of those who are ours: how a claim gets past a stopped worker.

use std::fmt;
use std::time::Duration;

use super::fault::{FaultClass, SqlFault};
use super::session::{OUR_NAME, Session};

/// What became of a session that blocked another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockerEnd {
    /// It carried our name and was told to end; its locks are free in a moment.
    Ended,
    /// It carried our name and was gone before we could end it.
    Gone,
    /// Another program's: never ended by us.
    NotOurs,
    /// It carried our name, but belongs to another role, and this one may not end it.
    Denied(String),
}

/// A session that blocked another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The server's process; 0 for a prepared transaction, which has none.
    pub pid: i32,
    /// Its `application_name`.
    pub name: String,
    /// Its role.
    pub user: String,
    /// Such as `idle in transaction`; empty if this role may not see it.
    pub state: String,
    /// How long its transaction has been open, if this role may see it.
    pub open_for: Option<Duration>,
    /// What became of it.
    pub end: BlockerEnd,
}

impl fmt::Display for Blocker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid == 0 {
            return formatter.write_str(
                "a prepared transaction (see pg_prepared_xacts; end it with COMMIT PREPARED or ROLLBACK PREPARED)",
            );
        }
        write!(formatter, "process {} of {:?} ({:?}", self.pid, self.user, self.name)?;
        if !self.state.is_empty() {
            write!(formatter, ", {}", self.state)?;
        }
        if let Some(open_for) = self.open_for {
            write!(formatter, ", its transaction open for {} s", open_for.as_secs())?;
        }
        formatter.write_str(")")?;
        match &self.end {
            BlockerEnd::Ended => formatter.write_str(", ended"),
            BlockerEnd::Gone => formatter.write_str(", gone by itself"),
            BlockerEnd::NotOurs => {
                write!(formatter, ", not ours: end its transaction, or SELECT pg_terminate_backend({})", self.pid)
            }
            BlockerEnd::Denied(message) => write!(
                formatter,
                ", ours but of another role: {message}; run both workers as one role, or GRANT pg_signal_backend"
            ),
        }
    }
}

const FIND: &str = "SELECT b.pid, coalesce(a.application_name, ''), coalesce(a.usename::text, ''), \
     coalesce(a.state, ''), extract(epoch FROM clock_timestamp() - a.xact_start)::float8 \
     FROM (SELECT DISTINCT unnest(pg_blocking_pids($1)) AS pid) AS b LEFT JOIN pg_stat_activity AS a ON a.pid = b.pid \
     ORDER BY b.pid";

/// Ends the sessions that block the server's process `pid` and carry our name; asked over `watcher`, another session.
///
/// Needs no special right for sessions of the same role. A blocker that waits for a third one is ended all the same:
/// look again if the wait goes on.
///
/// # Errors
/// If the server does not answer; a missing right is told with the blocker it concerns.
pub async fn end_blockers(watcher: &Session, pid: i32) -> Result<Vec<Blocker>, SqlFault> {
    let fault = |error: tokio_postgres::Error| watcher.fault(&error);
    let find = watcher.prepare_cached(FIND).await.map_err(fault)?;
    let mut blockers = Vec::new();
    for row in watcher.client().query(&find, &[&pid]).await.map_err(fault)? {
        let open_for: Option<f64> = row.get(4);
        let (pid, name): (i32, String) = (row.get(0), row.get(1));
        let end =
            if pid != 0 && name.starts_with(OUR_NAME) { end(watcher, pid, &name).await? } else { BlockerEnd::NotOurs };
        blockers.push(Blocker {
            pid,
            name,
            user: row.get(2),
            state: row.get(3),
            open_for: open_for.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            end,
        });
    }
    Ok(blockers)
}

/// Asks for the name once more in the same statement: a process id is soon somebody else's.
async fn end(watcher: &Session, pid: i32, name: &str) -> Result<BlockerEnd, SqlFault> {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2";
    let statement = watcher.prepare_cached(sql).await.map_err(|error| watcher.fault(&error))?;
    match watcher.client().query_opt(&statement, &[&pid, &name]).await {
        Ok(Some(row)) if row.get(0) => Ok(BlockerEnd::Ended),
        Ok(_) => Ok(BlockerEnd::Gone),
        Err(error) => match watcher.fault(&error) {
            fault if fault.class == FaultClass::Denied => Ok(BlockerEnd::Denied(fault.to_string())),
            fault => Err(fault),
        },
    }
}

#[cfg(test)]
#[path = "blockers_tests.rs"]
mod tests;
