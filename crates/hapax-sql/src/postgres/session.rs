//! One session with a PostgreSQL server, limited so that it cannot hold a lock for long once its process hangs.
//!
//! Invariant: a session whose transaction may still be open, or whose COMMIT has no clear answer, says so
//! (`is_reusable`), and is closed instead of used again. Dropping a session closes it.
//! Not here: waiting for a free session (`pool`), COMMIT (`commit`).

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Connection, Error, SimpleQueryMessage, SimpleQueryRow, Socket, Statement};

use super::connect_error::ConnectError;
use super::fault::SqlFault;
use super::tls_stream::{Encrypted, Handshakes};
use super::url::{FILE_NAMES, PostgresUrl};
use crate::limits::Limits;
use crate::pool::Pooled;
use crate::process;
use crate::tls::{self, TlsMode};

/// With this every session's `application_name` begins: sessions that we may end.
pub const OUR_NAME: &str = "hapax ";
/// How many prepared statements a session keeps.
const STATEMENTS_KEPT: usize = 256;
/// How many bytes of `application_name` a server keeps.
const LONGEST_NAME: usize = 63;

/// A session: the driver's client, its prepared statements, and the task that moves its bytes.
pub struct Session {
    client: Client,
    target: String,
    user: Option<String>,
    name: String,
    backend_pid: i32,
    server_version: u32,
    statements: Mutex<HashMap<String, Statement>>,
    open: AtomicBool,
    spoiled: AtomicBool,
    lost: Arc<Mutex<Option<SqlFault>>>,
    task: JoinHandle<()>,
}

/// What the first question of a session answers.
struct Welcome {
    backend_pid: i32,
    server_version: u32,
}

impl Session {
    /// Connects, and sets the limits in one round trip.
    ///
    /// # Errors
    /// If there is no such server or it refuses us; each variant has its cure.
    pub async fn connect(url: &PostgresUrl, limits: &Limits) -> Result<Self, ConnectError> {
        let limit = url.connect_timeout().unwrap_or(limits.connect);
        // Each host may take the whole limit, as libpq has it; name look-up, handshake and login are within it.
        let hosts = u32::try_from(url.hosts().len()).unwrap_or(u32::MAX);
        let whole = limit.saturating_mul(hosts).saturating_add(Duration::from_millis(500));
        match tokio::time::timeout(whole, Box::pin(Self::connect_now(url, limits, limit))).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::Silent { target: url.target(), limit: whole }),
        }
    }

    async fn connect_now(url: &PostgresUrl, limits: &Limits, limit: Duration) -> Result<Self, ConnectError> {
        let target = url.target();
        let name = application_name(url.application_name());
        let mut config = url.driver_config();
        config
            .application_name(&name)
            .connect_timeout(limit)
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3)
            // Data that nobody acknowledges: keepalives do not run while something is on its way.
            .tcp_user_timeout(Duration::from_secs(15));
        let lost = Arc::new(Mutex::new(None));
        let failed = |error: &Error| ConnectError::of(target.clone(), error);
        let (client, task) = if url.tls().mode == TlsMode::Disable {
            let (client, connection) = config.connect(tokio_postgres::NoTls).await.map_err(|error| failed(&error))?;
            (client, tokio::spawn(drive(connection, Arc::clone(&lost))))
        } else {
            let mut settings = tls::client_config(url.tls(), &FILE_NAMES)
                .await
                .map_err(|problem| ConnectError::TlsFiles { target: target.clone(), problem })?;
            settings.alpn_protocols = vec![b"postgresql".to_vec()];
            let (client, connection) =
                config.connect(Handshakes(Arc::new(settings))).await.map_err(|error| failed(&error))?;
            (client, tokio::spawn(drive::<Encrypted<Socket>>(connection, Arc::clone(&lost))))
        };
        // From here on the task is owned: an error below drops and aborts it.
        let mut session = Self {
            client,
            target: target.clone(),
            user: url.user().map(str::to_owned),
            name,
            backend_pid: 0,
            server_version: 0,
            statements: Mutex::new(HashMap::new()),
            open: AtomicBool::new(false),
            spoiled: AtomicBool::new(false),
            lost,
            task,
        };
        let answer = session.client.simple_query(&settings(limits)).await.map_err(|error| failed(&error))?;
        let welcome = welcome(&answer).ok_or_else(|| ConnectError::Failed {
            target: target.clone(),
            fault: Box::new(SqlFault::lost("the server did not answer as PostgreSQL does")),
        })?;
        session.backend_pid = welcome.backend_pid;
        session.server_version = welcome.server_version;
        Ok(session)
    }

    /// The driver's client. For BEGIN, COMMIT and ROLLBACK use this session's own ways: it knows then whether one is open.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The address without its password.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The role that the address names, for the GRANT that a message advises.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Under which name the server shows this session.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server's process of this session.
    #[must_use]
    pub fn backend_pid(&self) -> i32 {
        self.backend_pid
    }

    /// Such as 150004 for 15.4.
    #[must_use]
    pub fn server_version(&self) -> u32 {
        self.server_version
    }

    /// Whether the connection is gone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.client.is_closed() || self.task.is_finished()
    }

    /// Whether somebody else may use it next: connected, no open transaction, nothing in doubt.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        !self.is_closed() && !self.spoiled.load(Ordering::Acquire) && !self.open.load(Ordering::Acquire)
    }

    /// Why the connection broke, if it did: what the server said last (a time limit, an administrator), which the
    /// driver itself forgets.
    #[must_use]
    pub fn lost(&self) -> Option<SqlFault> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes an error apart; a connection that broke is explained by what the server said last.
    #[must_use]
    pub fn fault(&self, error: &Error) -> SqlFault {
        if error.as_db_error().is_some() {
            return SqlFault::of(error);
        }
        self.lost().unwrap_or_else(|| SqlFault::of(error))
    }

    /// A prepared statement, made on first use and kept for the session's life.
    ///
    /// # Errors
    /// If the server refuses the statement.
    pub async fn prepare_cached(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(statement) = self.kept().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        let mut kept = self.kept();
        // Only a caller that makes up statements without end gets here; starting over is simple and rare.
        if kept.len() >= STATEMENTS_KEPT {
            kept.clear();
        }
        kept.insert(sql.to_owned(), statement.clone());
        drop(kept);
        Ok(statement)
    }

    /// Forgets every prepared statement and every type: to be called when the schema changed.
    pub fn forget_statements(&self) {
        self.kept().clear();
        self.client.clear_type_cache();
    }

    /// Opens a transaction, READ COMMITTED. A server that takes no writes is told apart by the first write (25006).
    ///
    /// Also compares the server's process with the one of the login: behind a pooler that gives each transaction another
    /// process, our limits and prepared statements would be somebody else's.
    ///
    /// # Errors
    /// If the server refuses, or is another one than at the login.
    pub async fn begin(&self) -> Result<(), SqlFault> {
        // Set before the answer: a future dropped here leaves a transaction that may be open.
        self.open.store(true, Ordering::Release);
        let sql = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_backend_pid()";
        let answer = self.client.simple_query(sql).await.map_err(|error| self.fault(&error))?;
        match first_row(&answer).and_then(|row| row.get(0)).and_then(|pid| pid.parse::<i32>().ok()) {
            Some(pid) if pid == self.backend_pid => Ok(()),
            Some(pid) => {
                self.spoil();
                Err(pooled(&self.target, self.backend_pid, pid))
            }
            None => {
                self.spoil();
                Err(SqlFault::lost("the server did not answer BEGIN as PostgreSQL does"))
            }
        }
    }

    /// Rolls the transaction back. No transaction is no error.
    ///
    /// # Errors
    /// If the connection is lost: then the server rolls back by itself.
    pub async fn rollback(&self) -> Result<(), SqlFault> {
        match self.client.batch_execute("ROLLBACK").await {
            Ok(()) => {
                self.ended();
                Ok(())
            }
            Err(error) => {
                self.spoil();
                Err(self.fault(&error))
            }
        }
    }

    /// Marks the session as one that nobody may use again. It is closed when dropped.
    pub fn spoil(&self) {
        self.spoiled.store(true, Ordering::Release);
    }

    /// The transaction has ended, and it is known how.
    pub(super) fn ended(&self) {
        self.open.store(false, Ordering::Release);
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<String, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pooled for Session {
    type Url = PostgresUrl;
    type Limits = Limits;
    type Error = ConnectError;

    async fn open(url: &PostgresUrl, limits: &Limits) -> Result<Self, ConnectError> {
        Self::connect(url, limits).await
    }

    fn is_reusable(&self) -> bool {
        Self::is_reusable(self)
    }

    async fn answers(&mut self) -> bool {
        // The task that moves the bytes sees the end of a connection when it comes.
        true
    }

    fn all_taken(url: &PostgresUrl, connections: usize, waiting: usize, waited: Duration) -> ConnectError {
        ConnectError::PoolEmpty { target: url.target(), connections, waiting, waited }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("target", &self.target)
            .field("backend_pid", &self.backend_pid)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// Moves the bytes until the connection ends, and keeps the server's last words.
async fn drive<T>(mut connection: Connection<Socket, T>, lost: Arc<Mutex<Option<SqlFault>>>)
where
    T: tokio_postgres::tls::TlsStream + Unpin,
{
    while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => {
                tracing::debug!(severity = notice.severity(), message = notice.message(), "notice from the server");
            }
            Ok(_) => {}
            Err(error) => {
                let fault = SqlFault::of(&error);
                tracing::debug!(error = %fault, "connection ended");
                *lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
                return;
            }
        }
    }
}

/// A server that waits for a lock does not look at its client: without this a killed worker keeps its locks until then.
/// Since PostgreSQL 14, and only where the system can tell.
const WATCH_CLIENT: &str = "SELECT set_config(name, '1s', false) FROM pg_settings \
     WHERE name = 'client_connection_check_interval' AND version() LIKE '%linux%'";

/// Everything that a role, a database or the server may have set otherwise, and the questions, in one message.
fn settings(limits: &Limits) -> String {
    let milliseconds = |limit: Duration| limit.as_millis().clamp(1, i32::MAX as u128);
    format!(
        "SET idle_in_transaction_session_timeout = {}; SET statement_timeout = {}; SET lock_timeout = {}; \
         SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'; \
         SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET IntervalStyle = 'iso_8601'; SET bytea_output = 'hex'; \
         SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; SET extra_float_digits = 1; \
         SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; \
         SELECT pg_backend_pid(), current_setting('server_version_num'); {WATCH_CLIENT}",
        milliseconds(limits.idle_in_transaction),
        milliseconds(limits.statement),
        milliseconds(limits.lock),
    )
}

pub(super) fn first_row(answer: &[SimpleQueryMessage]) -> Option<&SimpleQueryRow> {
    answer.iter().find_map(|message| if let SimpleQueryMessage::Row(row) = message { Some(row) } else { None })
}

fn welcome(answer: &[SimpleQueryMessage]) -> Option<Welcome> {
    let row = first_row(answer)?;
    Some(Welcome { backend_pid: row.get(0)?.parse().ok()?, server_version: row.get(1)?.parse().ok()? })
}

fn pooled(target: &str, before: i32, now: i32) -> SqlFault {
    let message = format!(
        "{target} is a pooler that changes servers within a session (process {before}, then {now}): limits and \
         prepared statements do not hold there; connect to the server itself, or set pool_mode = session"
    );
    SqlFault::denied("HX4211", message)
}

/// Our name, the one of the address if any, and which process this is; cut to what a server keeps.
fn application_name(given: Option<&str>) -> String {
    let given = given.map(|given| format!("{given} ")).unwrap_or_default();
    let mut name = format!("{OUR_NAME}{given}{}", process::session_name());
    let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    name.truncate(end);
    name
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
