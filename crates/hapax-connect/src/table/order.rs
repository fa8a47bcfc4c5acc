//! Which events of a batch are written, and in which order. Pure.

use hapax_model::fault::{Bug, planted, point};

use super::column::LiveColumn;
use super::config::UniqueKeys;
use super::rows::Rows;
use super::tries::{Pass, Trouble};

/// Events in the order of writing.
#[derive(Debug, Default)]
pub struct RowOrder {
    /// Their indexes in the batch.
    pub(crate) events: Vec<usize>,
    /// Places in that order where a key is the one before again, ascending: a database that takes no key twice in one
    /// statement must cut there. Only in the first try.
    pub(crate) cuts: Vec<usize>,
}

impl RowOrder {
    /// Reduced and sorted in the first try; all of them in lane order in the slow one.
    ///
    /// # Errors
    /// [`Trouble::Refused`] if an event has no key and must be found.
    pub(crate) fn of<C: LiveColumn>(rows: &Rows<'_, C>, unique: UniqueKeys, pass: &Pass) -> Result<Self, Trouble> {
        match pass {
            Pass::Fast => {
                let (events, cuts) = rows.reduced(unique)?.ok_or_else(|| {
                    point("sql.rejected");
                    Trouble::Refused
                })?;
                Ok(Self { events, cuts })
            }
            Pass::Slow { .. } if planted(Bug::SortedBisect) => Ok(Self::as_given(rows.sorted_by_key())),
            Pass::Slow { .. } => Ok(Self::as_given((0..rows.batch.len()).collect())),
        }
    }

    /// Exactly these, in this order.
    pub(crate) const fn as_given(events: Vec<usize>) -> Self {
        Self { events, cuts: Vec::new() }
    }
}
