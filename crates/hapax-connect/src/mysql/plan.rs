//! Events cut into statements, in their order: each statement carries rows of one shape, as many as fit.
//!
//! Reads: rows of a batch. Writes: nothing, so that the next statement can be made while the server works on this one.

use std::slice::Iter;
use std::sync::Arc;

use hapax_sql::mysql::Value;

use super::chunk::{Place, Shaped, Shapes};
use crate::table::tries::Fault;

/// How many bytes several rows have together at most. Above 16 MiB the driver would send every value by itself.
const MOST_BYTES: usize = 8 << 20;

/// A statement that can be sent.
pub(super) struct Ready {
    pub(super) shaped: Arc<Shaped>,
    pub(super) rows: usize,
    pub(super) values: Vec<Value>,
}

/// The statements for events, made one by one.
pub(super) struct Plan<'a> {
    place: &'a Place<'a>,
    shapes: &'a mut Shapes,
    events: Iter<'a, usize>,
    waiting: Option<Waiting>,
    /// The event that did not go with those that wait.
    next: Option<usize>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(place: &'a Place<'a>, shapes: &'a mut Shapes, events: &'a [usize]) -> Self {
        Self { place, shapes, events: events.iter(), waiting: None, next: None }
    }

    /// The next statement; none at the end. Rows are never put together by their shape: every lane locks them in the
    /// order of their keys, else two lanes meet in a deadlock.
    pub(super) fn next(&mut self) -> Result<Option<Ready>, Fault> {
        while let Some(event) = self.next.take().or_else(|| self.events.next().copied()) {
            let shape = self.shapes.of(self.place, event)?;
            let shaped = Arc::clone(self.shapes.get(shape));
            let waiting = self.waiting.get_or_insert_with(|| Waiting::new(shape, Arc::clone(&shaped)));
            if waiting.shape != shape {
                self.next = Some(event);
                break;
            }
            waiting.push(self.place, event)?;
            if waiting.is_full(self.place) {
                break;
            }
        }
        let Some(waiting) = &mut self.waiting else { return Ok(None) };
        let ready = waiting.take(self.place);
        if waiting.is_empty() {
            self.waiting = None;
        }
        Ok(Some(ready))
    }
}

/// How many of so many rows the next statement takes. Few sizes, so that few statements are prepared: as many as one
/// carries, or a power of two.
pub(super) const fn next_size(rows: usize, most: usize) -> usize {
    if rows >= most || rows == 0 {
        return if rows < most { rows } else { most };
    }
    1 << rows.ilog2()
}

/// Rows of one shape that wait to be sent together.
struct Waiting {
    shape: usize,
    shaped: Arc<Shaped>,
    values: Vec<Value>,
    /// The bytes of each row.
    sizes: Vec<usize>,
    bytes: usize,
}

impl Waiting {
    const fn new(shape: usize, shaped: Arc<Shaped>) -> Self {
        Self { shape, shaped, values: Vec::new(), sizes: Vec::new(), bytes: 0 }
    }

    const fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Takes an event's row in.
    fn push(&mut self, place: &Place<'_>, event: usize) -> Result<(), Fault> {
        if self.values.capacity() == 0 {
            self.values.reserve(self.shaped.shape.bound.len() * self.shaped.most.min(place.rows.batch.len()));
        }
        let bytes = place.push_row(&self.shaped, event, &mut self.values)?;
        self.sizes.push(bytes);
        self.bytes += bytes;
        Ok(())
    }

    /// Whether a statement is full.
    fn is_full(&self, place: &Place<'_>) -> bool {
        self.sizes.len() >= self.shaped.most || self.bytes > MOST_BYTES || !place.fits(self.bytes)
    }

    /// How many rows the next statement takes: as many as fit, by their number and by their bytes.
    fn fitting(&self, place: &Place<'_>) -> usize {
        let mut bytes = 0;
        let fits = |size: &&usize| {
            bytes += **size;
            place.fits(bytes) && bytes <= MOST_BYTES
        };
        let count = self.sizes.iter().take(self.shaped.most).take_while(fits).count();
        next_size(count.max(1), self.shaped.most)
    }

    /// Takes out the rows of the next statement.
    fn take(&mut self, place: &Place<'_>) -> Ready {
        let rows = self.fitting(place).min(self.sizes.len());
        let rest = self.values.split_off(rows * self.shaped.shape.bound.len());
        let values = std::mem::replace(&mut self.values, rest);
        self.bytes -= self.sizes.drain(..rows).sum::<usize>();
        Ready { shaped: Arc::clone(&self.shaped), rows, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: few sizes of statements, whatever the number of rows. Method: all numbers up to three full statements.
    #[test]
    fn any_number_of_rows_goes_in_few_sizes() {
        let mut sizes = std::collections::BTreeSet::new();
        for rows in 1..3_000 {
            let mut rest = rows;
            while rest > 0 {
                let size = next_size(rest, 1_000);
                assert!((1..=rest).contains(&size));
                sizes.insert(size);
                rest -= size;
            }
        }
        assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000]);
    }
}
