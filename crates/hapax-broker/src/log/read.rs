//! Reading records: from the tail, else from the store.

use std::future::Future;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::batch::{FirstBatch, slice};
use crate::log::cache::CachedRow;
use crate::log::{Logs, Partition};
use crate::model::Offset;
use crate::store::{Store, StoreError};

impl<S: Store> Logs<S> {
    /// Whole batches from the one that holds `from` on, those that begin below `below`, at most `max_bytes` of them; the first
    /// comes though it is larger when `first` says so. Empty: there is nothing, or it does not fit.
    pub async fn read(
        &self,
        partition: &Partition,
        from: Offset,
        below: Offset,
        max_bytes: usize,
        first: FirstBatch,
    ) -> Result<Bytes, StoreError> {
        if let Some(rows) = self.shared.cache.read(partition, from, max_bytes) {
            return gather(&rows, from, below, max_bytes, first);
        }
        let mut next = from;
        // What compaction has left of a row may lie wholly before the offset asked for.
        while next < below {
            let rows = again(|| self.shared.store.read(partition.id, next, below, max_bytes)).await?;
            let Some(last) = rows.last() else { break };
            next = (last.last_offset + 1).max(next + 1);
            let rows: Vec<_> = rows
                .into_iter()
                .map(|row| CachedRow { base_offset: row.base_offset, last_offset: row.last_offset, data: row.data })
                .collect();
            let records = gather(&rows, from, below, max_bytes, first)?;
            if !records.is_empty() || holds(&rows, from, below)? {
                return Ok(records);
            }
        }
        Ok(Bytes::new())
    }
}

/// How long a read waits for a store that was away for a moment: a session that was cut is opened anew.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(150)];

/// Reads, and reads again while the store is away, before a client is told to look for another leader.
pub(super) async fn again<T, F>(read: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    for pause in PAUSES {
        match read().await {
            Err(StoreError::Away(_)) => tokio::time::sleep(pause).await,
            outcome => return outcome,
        }
    }
    read().await
}

/// Whether any batch would do if only it were small enough.
fn holds(rows: &[CachedRow], from: Offset, below: Offset) -> Result<bool, StoreError> {
    for row in rows {
        if slice(&row.data, from, below, usize::MAX, FirstBatch::Always).map_err(damaged)?.range.end > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Cuts rows at their batches. One piece is handed on as it is, several are put together.
fn gather(
    rows: &[CachedRow],
    from: Offset,
    below: Offset,
    max_bytes: usize,
    mut first: FirstBatch,
) -> Result<Bytes, StoreError> {
    let mut pieces: Vec<Bytes> = Vec::with_capacity(rows.len());
    let mut left = max_bytes;
    for row in rows {
        let whole = row.base_offset >= from && row.last_offset < below && row.data.len() <= left;
        let (piece, more) = if whole {
            (row.data.clone(), false)
        } else {
            let cut = slice(&row.data, from, below, left, first).map_err(damaged)?;
            (row.data.slice(cut.range), cut.more)
        };
        left = left.saturating_sub(piece.len());
        if !piece.is_empty() {
            pieces.push(piece);
            first = FirstBatch::IfItFits;
        }
        if more {
            break;
        }
    }
    match pieces.as_slice() {
        [] => Ok(Bytes::new()),
        [one] => Ok(one.clone()),
        several => {
            let mut all = BytesMut::with_capacity(several.iter().map(Bytes::len).sum());
            several.iter().for_each(|piece| all.extend_from_slice(piece));
            Ok(all.freeze())
        }
    }
}

pub(super) fn damaged(error: crate::batch::BatchError) -> StoreError {
    StoreError::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Goal: a store that is away for a moment is asked again, one that stays away or fails is not for ever. Method: count.
    #[tokio::test]
    async fn a_read_is_tried_again_while_the_store_is_away() {
        for (away, expected, tries) in [(0, Ok(()), 1), (2, Ok(()), 3), (9, Err(gone()), 3)] {
            let count = AtomicU32::new(0);
            let read = || {
                let outcome = if count.fetch_add(1, Ordering::Relaxed) < away { Err(gone()) } else { Ok(()) };
                async move { outcome }
            };
            assert_eq!(again(read).await, expected);
            assert_eq!(count.load(Ordering::Relaxed), tries);
        }
        let broken = || async { Err::<(), _>(StoreError::Damaged("row".to_owned())) };
        assert_eq!(again(broken).await, Err(StoreError::Damaged("row".to_owned())));
    }

    fn gone() -> StoreError {
        StoreError::Away("gone".to_owned())
    }
}
