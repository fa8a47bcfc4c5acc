//! What a session sets for itself in its first round trip, whatever the server, the user or `init_connect` had set.

use std::time::Duration;

use super::server::{Flavour, Server};
use crate::limits::Limits;
use crate::process;

/// With this the name of every session of ours begins.
pub const OUR_NAME: &str = "hapax ";
/// With this and its connection id begins the name of the user lock that every session of ours holds: how another
/// session of ours knows it, since MySQL shows no other name of a session to everybody. See `blockers`.
pub(super) const OUR_LOCK: &str = "hapax.session.";
/// How long an idle session stays open at least where idle transactions have a limit of their own.
const IDLE: Duration = Duration::from_secs(600);

/// How long the server keeps a session that says nothing. MySQL has no limit for an idle transaction alone.
pub(super) fn idle(limits: &Limits, server: Server) -> Duration {
    if server.limits_idle_transactions() { IDLE.max(limits.idle_in_transaction) } else { limits.idle_in_transaction }
}

/// The statements, in one message.
///
/// `ANSI_QUOTES` and the like are off: names are in backticks, texts in single quotes. STRICT_ALL_TABLES: a value that
/// does not fit is refused, never cut.
pub(super) fn settings(limits: &Limits, server: Server) -> String {
    let idle = seconds(idle(limits, server));
    let mut text = format!(
        "SET NAMES utf8mb4; SET SESSION lc_messages = 'en_US', sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,\
         ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION', autocommit = 1, time_zone = '+00:00', \
         completion_type = 0, foreign_key_checks = 1, unique_checks = 1, innodb_lock_wait_timeout = {lock}, \
         lock_wait_timeout = {lock}, wait_timeout = {idle}, net_read_timeout = {silent}, net_write_timeout = 60; \
         SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; SET SESSION TRANSACTION READ WRITE; ",
        lock = seconds(limits.lock),
        // A client that stops in the middle of a message holds its locks as one that stops between two.
        silent = seconds(limits.idle_in_transaction),
    );
    let statement = limits.statement.as_secs_f64().max(0.001);
    let own = match server.flavour {
        Flavour::MariaDb => format!("SET SESSION max_statement_time = {statement:.3}; "),
        // Only for SELECT; the session's own clock limits the rest.
        Flavour::Mysql => format!("SET SESSION max_execution_time = {:.0}; ", statement * 1000.0),
    };
    text.push_str(&own);
    if server.limits_idle_transactions() {
        text.push_str(&format!("SET SESSION idle_transaction_timeout = {}; ", seconds(limits.idle_in_transaction)));
    }
    text
}

/// How long a statement may wait for a lock, in a transaction too.
pub(super) fn lock_wait(limit: Duration) -> String {
    format!("SET SESSION innodb_lock_wait_timeout = {0}, lock_wait_timeout = {0}", seconds(limit))
}

/// The servers take whole seconds, at least one.
fn seconds(limit: Duration) -> f64 {
    limit.as_secs_f64().ceil().clamp(1.0, 31_536_000.0)
}

/// Takes the user lock that names this session as ours. It never waits: nobody else has a lock of this name.
pub(super) fn take_our_lock() -> String {
    format!("DO GET_LOCK(CONCAT('{OUR_LOCK}', CONNECTION_ID()), 0)")
}

/// Our name, the one of the address if any, and which process this is: the connection attribute `program_name`.
pub(super) fn session_name(given: Option<&str>) -> String {
    let given = given.map(|given| format!("{given} ")).unwrap_or_default();
    format!("{OUR_NAME}{given}{}", process::session_name())
}
