//! Who blocks a session, and the end of those who are ours: how a claim gets past a stopped worker.
//!
//! MySQL shows no name of a session to everybody: connection attributes need `performance_schema`, which MariaDB has
//! switched off. So every session of ours holds a user lock named after its own connection id; whoever asks
//! `IS_USED_LOCK` of that name and gets that id knows the session is ours. The lock ends with the session, needs no
//! right and no table, and a connection id is not used again while the server runs.

use std::fmt;
use std::time::Duration;

use super::fault::{FaultClass, SqlFault};
use super::server::Flavour;
use super::session::Session;
use super::settings::OUR_LOCK;

/// What became of a session that blocked another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockerEnd {
    /// It carried our name and was told to end; its locks are free in a moment.
    Ended,
    /// It carried our name and was gone before we could end it.
    Gone,
    /// Another program's: never ended by us.
    NotOurs,
    /// It carried our name, but belongs to another user, and this one may not end it.
    Denied(String),
    /// This user may not see who blocks whom.
    Unseen(String),
}

/// A session that blocked another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// The server's id of the session; 0 for a prepared XA transaction, which has none, and if it cannot be seen.
    pub connection_id: u64,
    /// Its user and host, if this user may see them.
    pub user: String,
    /// Such as `Sleep`.
    pub command: String,
    /// How long its transaction has been open.
    pub open_for: Option<Duration>,
    /// What became of it.
    pub end: BlockerEnd,
}

impl fmt::Display for Blocker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let BlockerEnd::Unseen(message) = &self.end {
            return write!(
                formatter,
                "somebody whom this user may not see: {message}; GRANT PROCESS ON *.* TO this user, or wait until the \
                 server ends idle transactions"
            );
        }
        if self.connection_id == 0 {
            return formatter
                .write_str("a prepared XA transaction (see XA RECOVER; end it with XA COMMIT or XA ROLLBACK)");
        }
        write!(formatter, "connection {} of {:?} ({}", self.connection_id, self.user, self.command)?;
        if let Some(open_for) = self.open_for {
            write!(formatter, ", its transaction open for {} s", open_for.as_secs())?;
        }
        formatter.write_str(")")?;
        match &self.end {
            BlockerEnd::Ended => formatter.write_str(", ended"),
            BlockerEnd::Gone => formatter.write_str(", gone by itself"),
            BlockerEnd::NotOurs => {
                write!(formatter, ", not ours: end its transaction, or KILL {}", self.connection_id)
            }
            BlockerEnd::Denied(message) => write!(
                formatter,
                ", ours but of another user: {message}; run both workers as one user, or GRANT CONNECTION_ADMIN \
                 (MariaDB: CONNECTION ADMIN) ON *.*"
            ),
            BlockerEnd::Unseen(_) => Ok(()),
        }
    }
}

/// Both end in the same columns: id, user, command, seconds, whether it holds the lock that is named after it.
const FOUND: &str = "SELECT b.id, COALESCE(CONCAT(p.user, '@', p.host), ''), COALESCE(p.command, ''), b.seconds, \
     COALESCE(IS_USED_LOCK(CONCAT(?, b.id)) = b.id, 0) FROM (";
const BEHIND: &str = ") AS b LEFT JOIN information_schema.processlist AS p ON p.id = b.id ORDER BY b.id";
const BY_MARIADB: &str = "SELECT DISTINCT t.trx_mysql_thread_id AS id, \
     TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) AS seconds FROM information_schema.innodb_trx AS r \
     JOIN information_schema.innodb_lock_waits AS w ON w.requesting_trx_id = r.trx_id \
     JOIN information_schema.innodb_trx AS t ON t.trx_id = w.blocking_trx_id WHERE r.trx_mysql_thread_id = ?";
const BY_MYSQL: &str = "SELECT DISTINCT t.trx_mysql_thread_id AS id, \
     TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) AS seconds FROM information_schema.innodb_trx AS r \
     JOIN performance_schema.data_lock_waits AS w ON w.requesting_engine_transaction_id = r.trx_id \
     JOIN information_schema.innodb_trx AS t ON t.trx_id = w.blocking_engine_transaction_id \
     WHERE r.trx_mysql_thread_id = ?";

/// The server tells of transactions from a copy, which it renews only if nobody has read it for a tenth of a second. So
/// an answer may be old, and who finds nobody asks again.
const LOOKS: usize = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(170);

fn find(session: &Session) -> String {
    let server = session.server();
    // Before 8.0, MySQL had the tables that MariaDB still has.
    let by = if server.flavour == Flavour::MariaDb || server.version < (8, 0, 1) { BY_MARIADB } else { BY_MYSQL };
    format!("{FOUND}{by}{BEHIND}")
}

/// Ends the sessions that block the session `connection_id` and are ours; asked over `watcher`, another session.
///
/// Needs the right PROCESS to see who blocks whom (and SELECT on `performance_schema` on MySQL 8); without it the
/// answer is one blocker that cannot be seen. Ending sessions of the same user needs no right. A blocker that waits for
/// a third one is ended all the same: look again if the wait goes on.
///
/// # Errors
/// If the server does not answer.
pub async fn end_blockers(watcher: &mut Session, connection_id: u64) -> Result<Vec<Blocker>, SqlFault> {
    let sql = find(watcher);
    let mut rows = Vec::new();
    for asked in 0..LOOKS {
        if asked > 0 {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        rows = match watcher.rows(&sql, vec![OUR_LOCK.into(), connection_id.into()]).await {
            Ok(rows) => rows,
            Err(fault) if fault.class == FaultClass::Denied => return Ok(vec![unseen(&fault)]),
            Err(fault) => return Err(fault),
        };
        if !rows.is_empty() {
            break;
        }
    }
    let mut blockers = Vec::new();
    for row in rows {
        let (id, user, command, seconds, ours): (u64, String, String, Option<i64>, i64) =
            mysql_async::from_row_opt(row).map_err(|error| SqlFault::lost(error.to_string()))?;
        let end = if id != 0 && ours == 1 { end(watcher, id).await? } else { BlockerEnd::NotOurs };
        let open_for = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        blockers.push(Blocker { connection_id: id, user, command, open_for, end });
    }
    Ok(blockers)
}

/// The id is a number of the server's own; KILL takes no bound value on every server.
async fn end(watcher: &mut Session, id: u64) -> Result<BlockerEnd, SqlFault> {
    match watcher.text(&format!("KILL {id}")).await {
        Ok(_) => Ok(BlockerEnd::Ended),
        Err(fault) if fault.number == Some(1094) => Ok(BlockerEnd::Gone),
        Err(fault) if matches!(fault.number, Some(1095 | 1227)) => Ok(BlockerEnd::Denied(fault.to_string())),
        Err(fault) => Err(fault),
    }
}

fn unseen(fault: &SqlFault) -> Blocker {
    Blocker {
        connection_id: 0,
        user: String::new(),
        command: String::new(),
        open_for: None,
        end: BlockerEnd::Unseen(fault.to_string()),
    }
}

#[cfg(test)]
#[path = "blockers_tests.rs"]
mod tests;
