//! The rows of one statement, one by one, as they come from the server.

use std::fmt;

use mysql_async::consts::StatusFlags;
use mysql_async::{BinaryProtocol, QueryResult, Row};
use tokio::time::timeout;

use super::fault::SqlFault;
use super::state::State;

/// The rows of one statement. Dropped before their end, they spoil the session: the rest is still on its way.
pub struct Rows<'a> {
    result: QueryResult<'a, 'static, BinaryProtocol>,
    state: &'a mut State,
    ended: bool,
}

impl<'a> Rows<'a> {
    pub(super) fn new(result: QueryResult<'a, 'static, BinaryProtocol>, state: &'a mut State) -> Self {
        Self { result, state, ended: false }
    }

    /// The next row; none behind the last.
    ///
    /// # Errors
    /// What the server or the connection said. No row comes after an error.
    pub async fn next(&mut self) -> Result<Option<Row>, SqlFault> {
        if self.ended {
            return Ok(None);
        }
        let limit = self.state.limit();
        let done = timeout(limit, self.result.next()).await;
        if let Ok(Ok(Some(row))) = done {
            return Ok(Some(row));
        }
        self.ended = true;
        // Reading changes no transaction, and the flags of the last packet are the driver's own.
        self.state.leave(Some(StatusFlags::SERVER_STATUS_IN_TRANS), done)
    }
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rows").field("ended", &self.ended).finish_non_exhaustive()
    }
}
