//! Which events of a batch are written, and in which order. Pure.

use hapax_model::fault::{Bug, planted, point};

use super::column::LiveColumn;
use super::config::UniqueKeys;
use super::mapping::WriteOrder;
use super::rows::Rows;
use super::tries::{Pass, Trouble};

/// An event cannot be written: it must be found.
pub(crate) fn refused() -> Trouble {
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
    /// Events that are not written, because another of their key takes their place, in lane order. They are judged all the
    /// same: where an epoch is cut must not show.
    pub(crate) superseded: Vec<usize>,
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
                Ok(Self { events, cuts, superseded: Vec::new() })
            }
            Pass::Fast => {
                let (events, cuts) = rows.reduced(unique)?.ok_or_else(refused)?;
                let superseded = left_out(rows.batch.len(), &events);
                Ok(Self { events, cuts, superseded })
            }
            Pass::Slow { .. } if planted(Bug::SortedBisect) => Ok(Self::as_given(rows.sorted_by_key())),
            Pass::Slow { .. } => Ok(Self::as_given((0..rows.batch.len()).collect())),
        }
    }

    /// Exactly these, in this order.
    pub(crate) const fn as_given(events: Vec<usize>) -> Self {
        Self { events, cuts: Vec::new(), superseded: Vec::new() }
    }
}

/// Those of so many events that are not among `kept`, ascending.
fn left_out(events: usize, kept: &[usize]) -> Vec<usize> {
    if kept.len() == events {
        return Vec::new();
    }
    let mut is_kept = vec![false; events];
    kept.iter().for_each(|event| is_kept[*event] = true);
    (0..events).filter(|event| !is_kept[*event]).collect()
}
