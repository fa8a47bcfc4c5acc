//! Batches end to end, as a row of the store holds them: hopped over by their headers, cut at their boundaries.

use std::ops::Range;

use crate::batch::{BatchError, Header};
use crate::model::Offset;

/// The batches of a row: where each lies, and its header.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    row: &'a [u8],
    at: usize,
}

impl<'a> Batches<'a> {
    /// Hops over the batches of a row.
    pub fn new(row: &'a [u8]) -> Self {
        Self { row, at: 0 }
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<(Range<usize>, Header), BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.row.get(self.at..).filter(|rest| !rest.is_empty())?;
        let header = match Header::read(rest) {
            Ok(header) if header.size <= rest.len() => header,
            Ok(header) => {
                self.at = self.row.len();
                return Some(Err(BatchError::Length { said: header.size as i64, found: rest.len() }));
            }
            Err(error) => {
                self.at = self.row.len();
                return Some(Err(error));
            }
        };
        let range = self.at..self.at + header.size;
        self.at = range.end;
        Some(Ok((range, header)))
    }
}

/// The batches of a row that hold offsets from `from` on and begin below `below`, as many as fit into `max_bytes`; the
/// first even if it does not, when `first` says so. Empty if there are none.
pub fn slice(
    row: &[u8],
    from: Offset,
    below: Offset,
    max_bytes: usize,
    first: FirstBatch,
) -> Result<Slice, BatchError> {
    let mut cut = Slice { range: 0..0, more: false };
    for batch in Batches::new(row) {
        let (range, header) = batch?;
        if header.last_offset() < from {
            continue;
        }
        if header.base_offset >= below {
            break;
        }
        let taken = cut.range.len();
        let fits = taken + header.size <= max_bytes;
        if !(fits || taken == 0 && first == FirstBatch::Always) {
            cut.more = true;
            break;
        }
        cut.range = if taken == 0 { range } else { cut.range.start..range.end };
    }
    Ok(cut)
}

/// Whether the first batch comes though it is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstBatch {
    /// It does, or a reader would never get past it.
    Always,
    /// It does not: something came already.
    IfItFits,
}

/// A part of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// Which bytes.
    pub range: Range<usize>,
    /// Whether the next batch did not fit.
    pub more: bool,
}
