//! COMMIT, with its outcome looked at.
//!
//! A server answers COMMIT of a failed transaction with the tag ROLLBACK and no error, and the driver hides the tag. So
//! a question goes before it in the same message: a failed transaction refuses the question, and the server then skips
//! the COMMIT behind it; a transaction that is not there, or wrote nothing, answers it with NULL.

use hapax_model::fault::{Bug, planted};
use tokio_postgres::error::Severity;
use tokio_postgres::{Error, SimpleQueryMessage};

use super::CommitEnd;
use super::fault::SqlFault;
use super::session::{Session, first_row};

/// What is sent, in one message: who watches the wire finds COMMIT at its end.
pub const COMMIT_MESSAGE: &str = "SELECT txid_current_if_assigned(); COMMIT";

/// Commits the open transaction of `session` and looks at what came of it. One round trip.
///
/// The transaction must have written something. If this future is dropped, the outcome is in doubt and the session
/// spoiled. Statements may still be on their way when this is called: if one of them fails, nothing is committed.
pub async fn checked_commit(session: &Session) -> CommitEnd {
    let doubt = Doubt { session, resolved: false };
    if planted(Bug::CommitOutcomeIgnored) {
        drop(session.client().batch_execute("COMMIT").await);
        return doubt.resolve(CommitEnd::Committed);
    }
    match session.client().simple_query(COMMIT_MESSAGE).await {
        Ok(answer) => doubt.resolve(after_answer(session, &answer)),
        Err(error) => match rolled_back(&error) {
            Some(fault) => {
                let end = CommitEnd::RolledBack { fault: Box::new(fault) };
                // After a refused question the failed transaction is still open. If this fails the session is spoiled,
                // and the server rolls back by itself.
                if let Err(fault) = session.rollback().await {
                    tracing::debug!(error = %fault, "no answer to ROLLBACK");
                }
                doubt.resolve(end)
            }
            None => doubt.resolve(CommitEnd::InDoubt { message: session.fault(&error).to_string() }),
        },
    }
}

/// Spoils the session unless the outcome is known: also when the future is dropped.
struct Doubt<'a> {
    session: &'a Session,
    resolved: bool,
}

impl Doubt<'_> {
    fn resolve(mut self, end: CommitEnd) -> CommitEnd {
        self.resolved = !matches!(end, CommitEnd::InDoubt { .. });
        end
    }
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if self.resolved {
            self.session.ended();
        } else {
            self.session.spoil();
        }
    }
}

fn after_answer(session: &Session, answer: &[SimpleQueryMessage]) -> CommitEnd {
    let transaction = first_row(answer).and_then(|row| row.get(0));
    if transaction.is_some() {
        return CommitEnd::Committed;
    }
    tracing::debug!(target = session.target(), "COMMIT found no transaction that wrote anything");
    let message = "no transaction that had written anything was open at COMMIT";
    CommitEnd::RolledBack { fault: Box::new(SqlFault::again(message)) }
}

/// Only an ERROR, after which the server is still there, and only of these classes, says that nothing was committed:
/// 40 and 23, and 25P02, with which a failed transaction refuses the question before COMMIT.
fn rolled_back(error: &Error) -> Option<SqlFault> {
    let answer = error.as_db_error()?;
    let severe = !matches!(answer.parsed_severity(), Some(Severity::Error));
    let state = answer.code().code();
    let clear = state == "25P02" || (state != "40003" && (state.starts_with("40") || state.starts_with("23")));
    (clear && !severe).then(|| SqlFault::of_server(answer))
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
