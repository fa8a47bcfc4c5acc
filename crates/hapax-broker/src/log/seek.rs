//! Finding records by time, and epochs by offset.

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::batch::{BatchError, Batches, Compression, Header, Limits, pass};
use crate::log::read::{again, damaged};
use crate::log::{Logs, Partition};
use crate::model::{Offset, Timestamp};
use crate::store::{Store, StoreError};

/// Bytes read at once.
const PIECE: usize = 1 << 20;

/// A record that was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub offset: Offset,
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// Under which leader it was appended.
    pub leader_epoch: i32,
}

impl<S: Store> Logs<S> {
    /// The first record with this timestamp or a later one that readers may have.
    pub async fn seek(&self, partition: &Partition, timestamp: Timestamp) -> Result<Option<Found>, StoreError> {
        let store = &self.shared.store;
        let (start, end) = (partition.log_start(), partition.end());
        let Some(row) = again(|| store.row_at_time(partition.id, timestamp)).await? else { return Ok(None) };
        if let Some(found) = first_at(row.data, timestamp, start, end).await? {
            return Ok(Some(found));
        }
        // The greatest timestamp so far was that of a record that is gone.
        let mut next = row.last_offset + 1;
        while next < end {
            let rows = again(|| store.read(partition.id, next, end, PIECE)).await?;
            let Some(last) = rows.last() else { break };
            next = (last.last_offset + 1).max(next + 1);
            for row in rows {
                if let Some(found) = first_at(row.data, timestamp, start, end).await? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// The first of the records with the greatest timestamp.
    pub async fn newest(&self, partition: &Partition) -> Result<Option<Found>, StoreError> {
        let (start, end) = (partition.log_start(), partition.end());
        if start >= end {
            return Ok(None);
        }
        if let Some(found) = self.seek(partition, partition.high_timestamp()).await? {
            return Ok(Some(found));
        }
        // It is gone: look at all the others.
        let (mut next, mut newest): (Offset, Option<(Timestamp, Bytes)>) = (start, None);
        while next < end {
            let rows = again(|| self.shared.store.read(partition.id, next, end, PIECE)).await?;
            let Some(last) = rows.last() else { break };
            next = (last.last_offset + 1).max(next + 1);
            for row in rows {
                for batch in Batches::new(&row.data) {
                    let (range, header) = batch.map_err(damaged)?;
                    let later = newest.as_ref().is_none_or(|(timestamp, _)| header.max_timestamp > *timestamp);
                    if later && header.last_offset() >= start {
                        newest = Some((header.max_timestamp, row.data.slice(range)));
                    }
                }
            }
        }
        match newest {
            Some((timestamp, batch)) => first_at(batch, timestamp, start, end).await,
            None => Ok(None),
        }
    }

    /// All epochs that something was written under, with their first offset, oldest first.
    pub async fn epochs<'a>(&self, partition: &'a Partition) -> Result<&'a [(i32, Offset)], StoreError> {
        let load = || async {
            let all = again(|| self.shared.store.leader_epochs(partition.id)).await?;
            // Later ones of ours are none of this partition's: it is led under one.
            Ok(written(all.into_iter().filter(|(epoch, _)| *epoch <= partition.epoch())))
        };
        partition.epochs.get_or_try_init(load).await.map(Vec::as_slice)
    }
}

/// Leaves out epochs under which nothing was written.
fn written(all: impl Iterator<Item = (i32, Offset)>) -> Vec<(i32, Offset)> {
    let mut kept: Vec<(i32, Offset)> = Vec::new();
    for entry in all {
        kept.retain(|known| known.1 < entry.1);
        kept.push(entry);
    }
    kept
}

/// The first record of some batches that is late enough and lies in `start..end`. On a thread for such things where a batch
/// must be undone.
async fn first_at(data: Bytes, timestamp: Timestamp, start: Offset, end: Offset) -> Result<Option<Found>, StoreError> {
    let is_compressed =
        |header: &Header| header.compression().is_ok_and(|compression| compression != Compression::None);
    if !Batches::new(&data).flatten().any(|(_, header)| is_compressed(&header)) {
        return first_of(&data, timestamp, start, end);
    }
    let looked = tokio::task::spawn_blocking(move || first_of(&data, timestamp, start, end)).await;
    looked.map_err(|error| StoreError::Damaged(error.to_string()))?
}

fn first_of(data: &[u8], timestamp: Timestamp, start: Offset, end: Offset) -> Result<Option<Found>, StoreError> {
    for batch in Batches::new(data) {
        let (range, header) = batch.map_err(damaged)?;
        if header.base_offset >= end {
            break;
        }
        if header.last_offset() < start || header.max_timestamp < timestamp {
            continue;
        }
        // Earlier versions kept compressed records unseen: where they cannot be read the batch stands for them.
        let found = first_in(&header, &data[range], timestamp, start).unwrap_or_else(|error| {
            tracing::warn!(offset = header.base_offset, %error, "a batch cannot be looked through for a time");
            let (offset, leader_epoch) = (header.base_offset.max(start), header.leader_epoch);
            Some(Found { offset, timestamp: header.max_timestamp, leader_epoch })
        });
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn first_in(header: &Header, batch: &[u8], timestamp: Timestamp, start: Offset) -> Result<Option<Found>, BatchError> {
    let mut found = None;
    // It was taken under its topic's limits, whatever those are now.
    pass(header, batch, Limits::of_topic(batch.len()), None, |record| {
        let offset = header.base_offset + i64::from(record.offset_delta);
        let own = header.timestamp(record.timestamp_delta);
        if offset >= start && own >= timestamp {
            found = Some(Found { offset, timestamp: own, leader_epoch: header.leader_epoch });
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
