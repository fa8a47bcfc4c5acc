//! What the answers of a server mean to a delivery, where all servers answer alike. Pure.

use std::fmt::Display;

use hapax_engine::sink::SinkError;
use hapax_sql::{CommitEnd, FaultClass};

use super::during::During;

/// A COMMIT that did not succeed; nothing for one that did.
///
/// # Errors
/// What the failed COMMIT means. After [`SinkError::CommitInDoubt`] the session is closed, never used again.
pub fn after_commit<F: Display>(target: &str, during: During, end: CommitEnd<F>) -> Result<(), SinkError> {
    match end {
        CommitEnd::Committed => Ok(()),
        CommitEnd::RolledBack { fault } => Err(during.rolled_back(target.to_owned(), fault.to_string())),
        CommitEnd::InDoubt { message } => Err(during.in_doubt(target.to_owned(), message)),
    }
}

/// A session that could not be had: what the driver's error says, what it calls for, and its page.
pub(crate) fn no_session(target: &str, text: String, class: FaultClass, code: &'static str) -> SinkError {
    let (target, message) = match text.strip_prefix(target) {
        Some(rest) => (target.to_owned(), rest.trim_start_matches([':', ' ']).to_owned()),
        None => (target.to_owned(), text),
    };
    match class {
        FaultClass::Denied => SinkError::Unfit { code, target, message },
        FaultClass::Row | FaultClass::Again | FaultClass::Reconnect | FaultClass::Schema | FaultClass::ReadOnly => {
            SinkError::ConnectionFailed { target, message }
        }
    }
}
