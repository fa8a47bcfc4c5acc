//! COMMIT, with its outcome looked at.
//!
//! Unlike PostgreSQL, a statement that failed leaves the transaction open, except after a deadlock: then the server has
//! rolled it back, and a COMMIT behind it would answer OK for nothing. So the session looks at the flag "in transaction"
//! of every answer, refuses statements after such an error, and COMMIT goes out only while the transaction is known to
//! live.

use hapax_model::fault::{Bug, planted};

use super::CommitEnd;
use super::fault::SqlFault;
use super::session::Session;
use super::state::Transaction;

/// What is sent, alone in its packet: who watches the wire must look at the whole packet, as `READ COMMITTED` passes too.
pub const COMMIT_MESSAGE: &str = "COMMIT";

/// Commits the open transaction of `session` and looks at what came of it. One round trip.
///
/// If this future is dropped, the outcome is in doubt and the session spoiled.
pub async fn checked_commit(session: &mut Session) -> CommitEnd {
    if planted(Bug::CommitOutcomeIgnored) {
        drop(session.send_commit().await);
        session.state.transaction = Transaction::None;
        return CommitEnd::Committed;
    }
    match &session.state.transaction {
        Transaction::Open => {}
        Transaction::Failed(fault) => {
            let fault = Box::new(fault.clone());
            roll_back(session).await;
            return CommitEnd::RolledBack { fault };
        }
        Transaction::None => {
            return CommitEnd::RolledBack { fault: Box::new(SqlFault::again("no transaction was open at COMMIT")) };
        }
        Transaction::Ending => return in_doubt(session, "a COMMIT of this session has no answer yet".to_owned()),
    }
    match session.send_commit().await {
        Ok(()) => {
            session.state.transaction = Transaction::None;
            CommitEnd::Committed
        }
        Err(fault) if rolled_back(&fault) => {
            roll_back(session).await;
            CommitEnd::RolledBack { fault: Box::new(fault) }
        }
        Err(fault) => in_doubt(session, fault.to_string()),
    }
}

/// Only a deadlock, which in a cluster also means that another node was first, says that nothing was committed.
fn rolled_back(fault: &SqlFault) -> bool {
    fault.number == Some(1213)
}

fn in_doubt(session: &mut Session, message: String) -> CommitEnd {
    session.spoil();
    CommitEnd::InDoubt { message }
}

/// If this fails the session is spoiled, and the server rolls back by itself.
async fn roll_back(session: &mut Session) {
    if let Err(fault) = session.rollback().await {
        tracing::debug!(error = %fault, "no answer to ROLLBACK");
    }
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
