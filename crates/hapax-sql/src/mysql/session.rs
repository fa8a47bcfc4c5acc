//! One session with a MySQL or MariaDB server, limited so that it cannot hold a lock for long once its process hangs.
//!
//! Invariant: a session whose transaction may still be open, whose COMMIT has no clear answer, or one of whose futures
//! was dropped in the middle of a statement says so (`is_reusable`), and is closed instead of used again. Dropping a
//! session closes it. Not here: waiting for a free session (`pool`), COMMIT (`commit`), what is set (`settings`).

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use mysql_async::consts::StatusFlags;
use mysql_async::prelude::{Protocol, Queryable};
use mysql_async::{Conn, DriverError, Error, OptsBuilder, Params, QueryResult, Row, Statement, Value};
use tokio::time::timeout;

use super::commit::COMMIT_MESSAGE;
use super::connect_error::{ConnectError, handshake_failure};
use super::fault::SqlFault;
use super::outcome::Outcome;
use super::rows::Rows;
use super::server::{Flavour, Server};
use super::settings;
use super::state::{State, Transaction};
use super::tls::{self, CertificateName};
use super::url::{Host, MysqlUrl};
use crate::limits::Limits;
use crate::pool::Pooled;
use crate::tls::TlsMode;

/// How many prepared statements a session keeps.
const STATEMENTS_KEPT: usize = 256;
/// The largest message that the protocol can carry. The driver cuts messages wrongly if told the server's own limit.
const LARGEST_MESSAGE: usize = 1 << 30;
/// A session that was used so recently is handed out without asking whether it still answers.
const SURELY_ALIVE: Duration = Duration::from_millis(500);

/// A statement that this session has prepared. Another session must prepare its own.
#[derive(Debug, Clone)]
pub struct Prepared(Statement);

impl Prepared {
    /// How many values it takes.
    #[must_use]
    pub fn parameters(&self) -> usize {
        usize::from(self.0.num_params())
    }
}

/// A session: the driver's connection, its prepared statements, and what is known about it.
pub struct Session {
    pub(super) connection: Conn,
    pub(super) state: State,
    target: String,
    user: String,
    name: String,
    connection_id: u64,
    server: Server,
    largest_packet: usize,
    limits: Limits,
    statements: HashMap<Box<str>, Prepared>,
    /// Forgotten, but still open on the server.
    doomed: Vec<Statement>,
}

impl Session {
    /// Connects, asks which server it is, and sets the limits.
    ///
    /// # Errors
    /// If there is no such server or it refuses us; each variant has its cure.
    pub async fn connect(url: &MysqlUrl, limits: &Limits) -> Result<Self, ConnectError> {
        let limit = url.connect_timeout().unwrap_or(limits.connect);
        match timeout(limit, Box::pin(Self::connect_now(url, limits))).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::Silent { target: url.target(), limit }),
        }
    }

    async fn connect_now(url: &MysqlUrl, limits: &Limits) -> Result<Self, ConnectError> {
        let target = url.target();
        let failed = |error: &Error| ConnectError::of(target.clone(), error);
        let name = settings::session_name(url.application_name());
        let mut connection = open(url, &name).await?;
        let question = "SELECT VERSION(), CONNECTION_ID(), @@max_allowed_packet";
        let answer: Option<(String, u64, u64)> =
            connection.query_first(question).await.map_err(|error| failed(&error))?;
        let (version, connection_id, largest_packet) = answer.ok_or_else(|| not_mysql(&target))?;
        let server = Server::parse(&version).ok_or_else(|| not_mysql(&target))?;
        if server.version < oldest(server.flavour) {
            return Err(ConnectError::TooOld { target, server });
        }
        let set = connection.query_drop(settings::settings(limits, server)).await;
        set.map_err(|error| failed(&error))?;
        // A server that knows no user locks (some clusters) still serves; but nobody may then end this session.
        if let Err(error) = connection.query_drop(settings::take_our_lock()).await {
            tracing::debug!(target = target, error = %SqlFault::of(&error), "no user lock: the session has no name");
        }
        Ok(Self {
            connection,
            state: State::new(limits.statement),
            target,
            user: url.user().to_owned(),
            name,
            connection_id,
            server,
            largest_packet: usize::try_from(largest_packet).unwrap_or(LARGEST_MESSAGE).min(LARGEST_MESSAGE),
            limits: limits.clone(),
            statements: HashMap::new(),
            doomed: Vec::new(),
        })
    }

    /// The address without its password.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The user that the address names, for the GRANT that a message advises.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Its connection attribute `program_name`, which `performance_schema` shows where it is switched on.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server's id of this session, as `SHOW PROCESSLIST` has it and KILL takes it.
    #[must_use]
    pub fn connection_id(&self) -> u64 {
        self.connection_id
    }

    /// MySQL or MariaDB, and its version.
    #[must_use]
    pub fn server(&self) -> Server {
        self.server
    }

    /// The server's `max_allowed_packet`: no message may be longer, so no row either.
    #[must_use]
    pub fn largest_packet(&self) -> usize {
        self.largest_packet
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether the connection is gone, as far as this side has noticed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.is_lost() || self.connection.is_disconnected()
    }

    /// Whether somebody else may use it next: connected, no open transaction, nothing in doubt.
    #[must_use]
    pub fn is_reusable(&self) -> bool {
        !self.is_closed() && self.state.is_clean()
    }

    /// Marks the session as one that nobody may use again. It is closed when dropped.
    pub fn spoil(&mut self) {
        self.state.spoil();
    }

    /// A prepared statement, made on first use and kept for the session's life. For a statement whose text is long, keep
    /// what this returns.
    ///
    /// # Errors
    /// If the server refuses the statement.
    pub async fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlFault> {
        if let Some(kept) = self.statements.get(sql) {
            return Ok(kept.clone());
        }
        if self.statements.len() >= STATEMENTS_KEPT {
            // Only a caller that makes up statements without end gets here; starting over is simple and rare.
            self.forget_statements();
        }
        self.state.enter()?;
        let limit = self.state.limit();
        let done = timeout(limit, prepare(&mut self.connection, &mut self.doomed, sql)).await;
        // The answer to a preparation has no flags.
        let prepared = Prepared(self.state.leave(Some(StatusFlags::SERVER_STATUS_IN_TRANS), done)?);
        self.statements.insert(sql.into(), prepared.clone());
        Ok(prepared)
    }

    /// Forgets every prepared statement: to be called when the schema changed.
    pub fn forget_statements(&mut self) {
        self.doomed.extend(self.statements.drain().map(|(_, prepared)| prepared.0));
    }

    /// Runs one prepared statement that returns no rows.
    ///
    /// # Errors
    /// What the server or the connection said. After any error but the row's own, an open transaction only takes ROLLBACK.
    pub async fn execute(&mut self, sql: &str, values: Vec<Value>) -> Result<Outcome, SqlFault> {
        let prepared = self.prepare(sql).await?;
        self.execute_prepared(&prepared, values).await
    }

    /// [`execute`](Self::execute), of what this session has prepared.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); class `Row` if the values are more than the server takes in one message.
    pub async fn execute_prepared(&mut self, prepared: &Prepared, values: Vec<Value>) -> Result<Outcome, SqlFault> {
        self.fits(&values)?;
        self.state.enter()?;
        let limit = self.state.limit();
        let done = timeout(limit, execute(&mut self.connection, &prepared.0, values)).await;
        self.leave(done).map(|(_, outcome)| outcome)
    }

    /// Runs one prepared statement and gives all its rows.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn rows(&mut self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, SqlFault> {
        let prepared = self.prepare(sql).await?;
        self.fits(&values)?;
        self.state.enter()?;
        let limit = self.state.limit();
        let done = timeout(limit, execute(&mut self.connection, &prepared.0, values)).await;
        self.leave(done).map(|(rows, _)| rows)
    }

    /// Runs one prepared statement and gives its rows one by one, as they come. Rows that nobody fetched spoil the session.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub async fn stream(&mut self, sql: &str, values: Vec<Value>) -> Result<Rows<'_>, SqlFault> {
        let prepared = self.prepare(sql).await?;
        self.fits(&values)?;
        self.state.enter()?;
        let limit = self.state.limit();
        let begun = timeout(limit, self.connection.exec_iter(&prepared.0, positional(values))).await;
        match begun {
            Ok(Ok(result)) => Ok(Rows::new(result, &mut self.state)),
            Ok(Err(error)) => self.state.leave(None, Ok(Err(error))),
            Err(elapsed) => self.state.leave(None, Err(elapsed)),
        }
    }

    /// Runs statements without values, several if semicolons part them, in one message. What the last one did.
    ///
    /// Never put a value into the text: values are bound, and names go through `quote_identifier`.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), of the first that fails; those behind it are not run.
    pub async fn text(&mut self, sql: &str) -> Result<Outcome, SqlFault> {
        self.state.enter()?;
        let limit = self.state.limit();
        let done = timeout(limit, text(&mut self.connection, sql)).await;
        self.leave(done).map(|(_, outcome)| outcome)
    }

    /// As [`text`](Self::text), with all rows of all statements, each value as text.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub async fn text_rows(&mut self, sql: &str) -> Result<Vec<Row>, SqlFault> {
        self.state.enter()?;
        let limit = self.state.limit();
        let done = timeout(limit, text(&mut self.connection, sql)).await;
        self.leave(done).map(|(rows, _)| rows)
    }

    /// How long the statements from now on may wait for a lock: whole seconds, none for the session's own limit.
    ///
    /// # Errors
    /// As [`text`](Self::text).
    pub async fn wait_for_locks(&mut self, limit: Option<Duration>) -> Result<(), SqlFault> {
        let sql = settings::lock_wait(limit.unwrap_or(self.limits.lock));
        self.text(&sql).await.map(|_| ())
    }

    /// Opens a transaction, READ COMMITTED. A server that takes no writes is told apart by the first write (1290, 1836).
    ///
    /// # Errors
    /// If the server refuses, or the session has an open transaction already.
    pub async fn begin(&mut self) -> Result<(), SqlFault> {
        if self.state.transaction != Transaction::None {
            return Err(SqlFault::lost("the session has an open transaction already"));
        }
        self.state.enter()?;
        // Set before the answer: a future dropped here leaves a transaction that may be open.
        self.state.transaction = Transaction::Open;
        let limit = self.state.limit();
        let done = timeout(limit, text(&mut self.connection, "START TRANSACTION")).await;
        self.leave(done).map(|_| ())
    }

    /// Rolls the transaction back. No transaction is no error.
    ///
    /// # Errors
    /// If the connection is lost: then the server rolls back by itself.
    pub async fn rollback(&mut self) -> Result<(), SqlFault> {
        self.state.enter_anyway()?;
        let limit = self.state.limit();
        let done = timeout(limit, text(&mut self.connection, "ROLLBACK")).await;
        self.state.transaction = Transaction::None;
        let answer = self.leave(done).map(|_| ());
        if answer.is_err() {
            self.spoil();
        }
        answer
    }

    /// COMMIT itself; `commit` looks at what came of it.
    pub(super) async fn send_commit(&mut self) -> Result<(), SqlFault> {
        self.state.enter()?;
        // Known again only when the answer is.
        self.state.transaction = Transaction::Ending;
        let limit = self.state.limit();
        let done = timeout(limit, text(&mut self.connection, COMMIT_MESSAGE)).await;
        self.leave(done).map(|_| ())
    }

    fn leave<T>(&mut self, done: Result<Result<T, Error>, tokio::time::error::Elapsed>) -> Result<T, SqlFault> {
        let flags = self.connection.last_ok_packet().map(mysql_async::OkPacket::status_flags);
        self.state.leave(flags, done)
    }

    fn fits(&self, values: &[Value]) -> Result<(), SqlFault> {
        let bytes = values.iter().map(bytes_of).sum::<usize>() + values.len().div_ceil(8) + 16;
        if bytes > self.largest_packet { Err(SqlFault::too_large(bytes, self.largest_packet)) } else { Ok(()) }
    }
}

impl Pooled for Session {
    type Url = MysqlUrl;
    type Limits = Limits;
    type Error = ConnectError;

    async fn open(url: &MysqlUrl, limits: &Limits) -> Result<Self, ConnectError> {
        Self::connect(url, limits).await
    }

    fn is_reusable(&self) -> bool {
        Self::is_reusable(self)
    }

    async fn answers(&mut self) -> bool {
        if self.state.idle() < SURELY_ALIVE {
            return true;
        }
        // The server may have ended it, and the driver looks at the connection only when it uses it.
        if self.state.idle() >= settings::idle(&self.limits, self.server) || self.state.enter().is_err() {
            return false;
        }
        let done = timeout(self.limits.connect, self.connection.ping()).await;
        self.state.leave(None, done).is_ok()
    }

    fn all_taken(url: &MysqlUrl, connections: usize, waiting: usize, waited: Duration) -> ConnectError {
        ConnectError::PoolEmpty { target: url.target(), connections, waiting, waited }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("target", &self.target)
            .field("connection_id", &self.connection_id)
            .field("server", &self.server)
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

/// A connection with TLS as the address asks for it, before anything is set.
async fn open(url: &MysqlUrl, name: &str) -> Result<Conn, ConnectError> {
    let target = url.target();
    match open_once(url, name, CertificateName::Host).await? {
        Ok(connection) => Ok(connection),
        // Told before the login: nothing was sent in the clear that should not be.
        Err(Error::Driver(DriverError::NoClientSslFlagFromServer)) if url.tls().mode == TlsMode::Prefer => {
            Conn::new(options(url, name)).await.map_err(|error| ConnectError::of(target, &error))
        }
        Err(error) => match handshake_failure(&error).and_then(|failure| tls::other_name(url.tls(), failure)) {
            Some(other) => open_once(url, name, other).await?.map_err(|error| ConnectError::of(target, &error)),
            None => Err(ConnectError::of(target, &error)),
        },
    }
}

async fn open_once(url: &MysqlUrl, name: &str, wanted: CertificateName) -> Result<Result<Conn, Error>, ConnectError> {
    let tls = tls::driver_options(url.tls(), wanted)
        .await
        .map_err(|problem| ConnectError::TlsFiles { target: url.target(), problem })?;
    Ok(Conn::new(options(url, name).ssl_opts(tls)).await)
}

fn options(url: &MysqlUrl, name: &str) -> OptsBuilder {
    let options = match url.host() {
        Host::Tcp(host, port) => OptsBuilder::default().ip_or_hostname(host).tcp_port(*port),
        Host::Unix(socket) => OptsBuilder::default().socket(Some(socket.to_string_lossy())),
    };
    options
        .user(Some(url.user()))
        .pass(url.password())
        .db_name(url.database())
        // Else the driver would leave a TCP connection for a socket of its own choice.
        .prefer_socket(false)
        .tcp_nodelay(true)
        .tcp_keepalive(Some(Duration::from_secs(5)))
        .client_found_rows(true)
        // Given, so that the driver does not ask for them.
        .max_allowed_packet(Some(LARGEST_MESSAGE))
        .wait_timeout(Some(0))
        // The session keeps its own, by text.
        .stmt_cache_size(0)
        .connect_attribute("program_name", name)
}

fn oldest(flavour: Flavour) -> (u16, u16, u16) {
    match flavour {
        Flavour::Mysql => (5, 7, 8),
        Flavour::MariaDb => (10, 3, 0),
    }
}

fn not_mysql(target: &str) -> ConnectError {
    let fault = SqlFault::lost("the server did not answer as MySQL does");
    ConnectError::Failed { target: target.to_owned(), fault: Box::new(fault) }
}

async fn prepare(connection: &mut Conn, doomed: &mut Vec<Statement>, sql: &str) -> Result<Statement, Error> {
    while let Some(statement) = doomed.pop() {
        connection.close(statement).await?;
    }
    connection.prep(sql).await
}

async fn execute(
    connection: &mut Conn,
    statement: &Statement,
    values: Vec<Value>,
) -> Result<(Vec<Row>, Outcome), Error> {
    let result = connection.exec_iter(statement, positional(values)).await?;
    let rows = all_rows(result).await?;
    Ok((rows, outcome(connection)))
}

async fn text(connection: &mut Conn, sql: &str) -> Result<(Vec<Row>, Outcome), Error> {
    let result = connection.query_iter(sql).await?;
    let rows = all_rows(result).await?;
    Ok((rows, outcome(connection)))
}

/// The rows of all results. The last step also gives the error of a statement behind the first.
async fn all_rows<P: Protocol>(mut result: QueryResult<'_, '_, P>) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    while !result.is_empty() {
        rows.append(&mut result.collect::<Row>().await?);
    }
    result.drop_result().await?;
    Ok(rows)
}

fn positional(values: Vec<Value>) -> Params {
    if values.is_empty() { Params::Empty } else { Params::Positional(values) }
}

fn outcome(connection: &Conn) -> Outcome {
    Outcome {
        affected: connection.affected_rows(),
        insert_id: connection.last_insert_id().unwrap_or_default(),
        warnings: connection.get_warnings(),
        info: connection.info().into_owned(),
    }
}

/// How much of a message a value takes, at most: its length, its type and itself.
fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.len() + 11,
        Value::NULL => 2,
        Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) => 10,
        Value::Date(..) | Value::Time(..) => 15,
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
