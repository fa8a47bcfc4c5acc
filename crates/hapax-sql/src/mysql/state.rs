//! What a session knows about itself: whether a transaction is open, whether a statement is on its way, whether anybody
//! may still use it.
//!
//! Invariant: a statement whose future was dropped leaves the session `busy` for ever: it is closed, never used again.

use std::time::{Duration, Instant};

use mysql_async::Error;
use mysql_async::consts::StatusFlags;
use tokio::time::error::Elapsed;

use super::fault::{FaultClass, SqlFault};

/// How far a session's transaction is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Transaction {
    None,
    Open,
    /// The server has rolled it back, or may have: what is sent now would be committed by itself. Only ROLLBACK goes on.
    Failed(SqlFault),
    /// COMMIT is on its way.
    Ending,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) transaction: Transaction,
    busy: bool,
    spoiled: bool,
    /// The first error after which the connection was gone: the reason of all that follow.
    lost: Option<SqlFault>,
    used: Instant,
    limit: Duration,
}

impl State {
    pub(super) fn new(limit: Duration) -> Self {
        Self { transaction: Transaction::None, busy: false, spoiled: false, lost: None, used: Instant::now(), limit }
    }

    /// How long one statement may take, answer included. Longer than the server's own limit, which says more.
    pub(super) fn limit(&self) -> Duration {
        self.limit.saturating_add(Duration::from_secs(5))
    }

    pub(super) fn idle(&self) -> Duration {
        self.used.elapsed()
    }

    pub(super) fn spoil(&mut self) {
        self.spoiled = true;
    }

    pub(super) fn is_clean(&self) -> bool {
        !self.busy && !self.spoiled && self.lost.is_none() && self.transaction == Transaction::None
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_some() || self.busy
    }

    /// A statement goes out. Refused where it could do harm.
    pub(super) fn enter(&mut self) -> Result<(), SqlFault> {
        if let Transaction::Failed(fault) = &self.transaction {
            return Err(fault.clone());
        }
        self.enter_anyway()
    }

    /// As [`enter`](Self::enter), also in a failed transaction: for ROLLBACK.
    pub(super) fn enter_anyway(&mut self) -> Result<(), SqlFault> {
        if let Some(fault) = &self.lost {
            return Err(fault.clone());
        }
        if self.busy {
            return Err(SqlFault::lost("a statement of this session was given up in the middle; it is closed"));
        }
        self.busy = true;
        Ok(())
    }

    /// The answer came, or did not. `flags` are those of the server's last OK.
    pub(super) fn leave<T>(
        &mut self,
        flags: Option<StatusFlags>,
        done: Result<Result<T, Error>, Elapsed>,
    ) -> Result<T, SqlFault> {
        self.used = Instant::now();
        let answer = match done {
            Ok(answer) => answer,
            Err(_) => {
                let message = format!("no answer within {} s; the session is closed", self.limit().as_secs());
                return Err(self.gone(SqlFault::lost(message)));
            }
        };
        match answer {
            Ok(value) => {
                self.busy = false;
                let open = flags.is_some_and(|flags| flags.contains(StatusFlags::SERVER_STATUS_IN_TRANS));
                if self.transaction == Transaction::Open && !open {
                    let message = "the transaction ended underneath a statement, which nobody asked for";
                    self.spoil();
                    self.transaction = Transaction::Failed(SqlFault::lost(message));
                    return Err(SqlFault::lost(message));
                }
                Ok(value)
            }
            Err(error @ Error::Server(_)) => {
                self.busy = false;
                let fault = SqlFault::of(&error);
                // After a deadlock the server has rolled all of it back, and would commit every further statement by
                // itself. Only the row's own faults surely leave the transaction as it was.
                if self.transaction == Transaction::Open && fault.class != FaultClass::Row {
                    self.transaction = Transaction::Failed(fault.clone());
                }
                if fault.class == FaultClass::Reconnect {
                    self.spoil();
                }
                Err(fault)
            }
            Err(error) => Err(self.gone(SqlFault::of(&error))),
        }
    }

    fn gone(&mut self, fault: SqlFault) -> SqlFault {
        self.lost.get_or_insert_with(|| fault.clone());
        fault
    }
}
