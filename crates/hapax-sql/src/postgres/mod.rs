//! PostgreSQL: address, TLS, a session with its limits, the pool, quoting, the checked COMMIT, error classes, and the end
//! of sessions that block a claim.

mod blockers;
mod commit;
mod connect_error;
mod fault;
mod pool;
mod quote;
mod session;
mod tls;
mod tls_stream;
mod tls_verify;
mod url;
mod url_parts;

#[cfg(test)]
mod test_database;
#[cfg(test)]
mod test_wire;

pub use blockers::{Blocker, BlockerEnd, end_blockers};
pub use commit::{COMMIT_MESSAGE, CommitEnd, checked_commit};
pub use connect_error::ConnectError;
pub use fault::{FaultClass, SqlFault, class_of, describe};
pub use pool::{DEFAULT_CONNECTIONS, Pool, Taken};
pub use quote::{TableName, quote_identifier, quote_table};
pub use session::{Limits, OUR_NAME, Session};
pub use tls::TlsError;
pub use tokio_postgres;
pub use url::{ClientFiles, Host, PostgresUrl, TlsMode, TlsRoots, TlsSettings, UrlError};
