//! MySQL and MariaDB: address, TLS, a session with its limits, the pool, quoting, the checked COMMIT, error classes, and
//! the end of sessions that block a claim.

mod blockers;
mod commit;
mod connect_error;
mod fault;
mod outcome;
mod quote;
mod rows;
mod server;
mod session;
mod settings;
mod state;
mod tls;
mod url;

#[cfg(test)]
mod pool_tests;
#[cfg(test)]
mod test_database;
#[cfg(test)]
mod test_wire;
#[cfg(test)]
mod tls_tests;

pub use blockers::{Blocker, BlockerEnd, end_blockers};
pub use commit::{COMMIT_MESSAGE, checked_commit};
pub use connect_error::ConnectError;
pub use fault::{FaultClass, SqlFault, class_of};
pub use mysql_async;
pub use mysql_async::{Row, Value};
pub use outcome::Outcome;
pub use quote::{TableName, quote_identifier, quote_table};
pub use rows::Rows;
pub use server::{Flavour, Server};
pub use session::{Prepared, Session};
pub use settings::OUR_NAME;
pub use url::{Host, MysqlUrl, UrlError};

pub use crate::limits::Limits;
pub use crate::pool::DEFAULT_CONNECTIONS;
pub use crate::tls::{ClientFiles, TlsError, TlsMode, TlsRoots, TlsSettings};

/// How a COMMIT ended.
pub type CommitEnd = crate::commit_end::CommitEnd<SqlFault>;
/// The sessions with one MySQL or MariaDB database.
pub type Pool = crate::pool::Pool<Session>;
/// A session taken from a [`Pool`].
pub type Taken = crate::pool::Taken<Session>;
