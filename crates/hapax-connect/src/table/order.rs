//! Which events of a batch are written, and in which order. Pure.

use hapax_model::fault::{Bug, planted, point};

use super::column::LiveColumn;
use super::config::UniqueKeys;
use super::mapping::WriteOrder;
use super::rows::Rows;
use super::tries::{Pass, Trouble};

/// An event has no key: it must be found.
fn refused() -> Trouble {
    point("sql.rejected");
    Trouble::Refused
}

/// Events in the order of writing.
#[derive(Debug, Default)]
pub struct RowOrder {
    /// Their indexes in the batch.
    pub(crate) events: Vec<usize>,
    /// Places in that order where a statement must end, ascending: a key comes again, and a database may take no key twice
    /// in one statement, or every row is a statement of its own. Only in the first try.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "the others write row by row, or take a key twice")
    )]
    pub(crate) cuts: Vec<usize>,
}

impl RowOrder {
    /// Reduced and sorted in the first try, where the table allows it; all of them in lane order in the slow one.
    ///
    /// # Errors
    /// [`Trouble::Refused`] if an event has no key and must be found.
    pub(crate) fn of<C: LiveColumn>(rows: &Rows<'_, C>, unique: UniqueKeys, pass: &Pass) -> Result<Self, Trouble> {
        match pass {
            Pass::Fast if rows.mapping.order != WriteOrder::AnyOrder => {
                let events: Vec<usize> = (0..rows.batch.len()).collect();
                let cuts = match rows.mapping.order.wants_rows_alone() {
                    true => (1..events.len()).collect(),
                    false => rows.repeats(unique)?.ok_or_else(refused)?,
                };
                Ok(Self { events, cuts })
            }
            Pass::Fast => {
                let (events, cuts) = rows.reduced(unique)?.ok_or_else(refused)?;
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
