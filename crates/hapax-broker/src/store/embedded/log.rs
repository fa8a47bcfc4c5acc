//! The log in SQLite. Every write checks, inside its transaction, under which epoch the caller leads.

use rusqlite::{Connection, OptionalExtension, params};

use super::failure::Undone;
use super::{Embedded, rows};
use crate::model::{BrokerId, Offset, PartitionId, Timestamp};
use crate::store::{Append, Appended, LedPartition, Log, Replacement, RowInfo, StoreError, StoredRow};

impl Log for Embedded {
    async fn lead(&self, partitions: &[PartitionId]) -> Result<Vec<LedPartition>, StoreError> {
        let (partitions, me) = (partitions.to_vec(), self.me);
        self.writer
            .call(move |connection| {
                let led = partitions.iter().map(|&partition| lead(connection, me, partition));
                led.filter_map(Result::transpose).collect()
            })
            .await
    }

    async fn append(&self, group: Append) -> Result<Appended, StoreError> {
        self.writer.call(move |connection| append(connection, &group)).await
    }

    async fn read(
        &self,
        partition: PartitionId,
        from: Offset,
        below: Offset,
        max_bytes: usize,
    ) -> Result<Vec<StoredRow>, StoreError> {
        self.readers.call(move |connection| rows::read(connection, partition, from, below, max_bytes)).await
    }

    async fn row_at_time(&self, partition: PartitionId, timestamp: Timestamp) -> Result<Option<StoredRow>, StoreError> {
        self.readers.call(move |connection| rows::at_time(connection, partition, timestamp)).await
    }

    async fn list(&self, partition: PartitionId, from: Offset, limit: usize) -> Result<Vec<RowInfo>, StoreError> {
        self.readers.call(move |connection| rows::list(connection, partition, from, limit)).await
    }

    async fn sizes(&self, partitions: &[PartitionId]) -> Result<Vec<(PartitionId, u64)>, StoreError> {
        let partitions = partitions.to_vec();
        self.readers
            .call(move |connection| {
                partitions.into_iter().map(|partition| Ok((partition, rows::size(connection, partition)?))).collect()
            })
            .await
    }

    async fn leader_epochs(&self, partition: PartitionId) -> Result<Vec<(i32, Offset)>, StoreError> {
        self.readers
            .call(move |connection| {
                let sql = "SELECT epoch, start_offset FROM leader_epochs WHERE partition_id = ?1 ORDER BY epoch";
                let mut statement = connection.prepare_cached(sql)?;
                let found = statement.query_map([partition.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
                Ok(found.collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn advance_log_start(&self, partition: PartitionId, epoch: i32, log_start: Offset) -> Result<(), StoreError> {
        self.writer
            .call(move |connection| {
                fenced(connection, partition, epoch)?;
                let sql = "UPDATE partitions SET log_start = ?2 WHERE id = ?1 AND log_start < ?2";
                connection.prepare_cached(sql)?.execute(params![partition.0, log_start])?;
                Ok(())
            })
            .await
    }

    async fn trim(&self, partition: PartitionId, epoch: i32, max_bytes: usize) -> Result<u64, StoreError> {
        self.writer.call(move |connection| trim(connection, partition, epoch, max_bytes)).await
    }

    async fn replace(&self, partition: PartitionId, epoch: i32, rows: Vec<Replacement>) -> Result<(), StoreError> {
        self.writer.call(move |connection| replace(connection, partition, epoch, &rows)).await
    }
}

fn lead(connection: &Connection, me: BrokerId, partition: PartitionId) -> Result<Option<LedPartition>, Undone> {
    let sql = "UPDATE partitions SET leader = ?2, leader_epoch = leader_epoch + 1 WHERE id = ?1
        RETURNING leader_epoch, log_start";
    let mut statement = connection.prepare_cached(sql)?;
    let raised: Option<(i32, Offset)> =
        statement.query_row(params![partition.0, me.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((epoch, log_start)) = raised else { return Ok(None) };
    let (end, high_timestamp) = rows::end(connection, partition)?.unwrap_or((log_start, -1));
    let end = end.max(log_start);
    let sql = "INSERT INTO leader_epochs VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![partition.0, epoch, end])?;
    Ok(Some(LedPartition { partition, epoch, log_start, end, high_timestamp }))
}

/// The epoch under which a partition is led; `None`: there is no such partition.
fn epoch_of(connection: &Connection, partition: PartitionId) -> Result<Option<i32>, Undone> {
    let mut statement = connection.prepare_cached("SELECT leader_epoch FROM partitions WHERE id = ?1")?;
    Ok(statement.query_row([partition.0], |row| row.get(0)).optional()?)
}

/// Refuses a caller who does not lead the partition under the store's epoch.
pub(super) fn fenced(connection: &Connection, partition: PartitionId, epoch: i32) -> Result<(), Undone> {
    if epoch_of(connection, partition)? == Some(epoch) { Ok(()) } else { Err(StoreError::Fenced.into()) }
}

fn append(connection: &Connection, group: &Append) -> Result<Appended, Undone> {
    let mut refused = Vec::new();
    for &(partition, epoch) in &group.led {
        if epoch_of(connection, partition)? != Some(epoch) {
            refused.push(partition);
        }
    }
    // A row of a partition that was not named as led has no epoch to be checked.
    refused.extend(group.rows.iter().map(|row| row.partition).filter(|row| !group.led.iter().any(|led| led.0 == *row)));
    if !refused.is_empty() {
        return Ok(Appended::Refused(refused));
    }
    let mut last: Option<(PartitionId, Offset)> = None;
    for row in &group.rows {
        let end = match last {
            Some((partition, end)) if partition == row.partition => Some(end),
            Some(_) | None => rows::end(connection, row.partition)?.map(|end| end.0),
        };
        if end.is_some_and(|end| row.base_offset < end) {
            return Err(StoreError::Conflict.into());
        }
        rows::insert(connection, row)?;
        last = Some((row.partition, row.last_offset + 1));
    }
    Ok(Appended::Done)
}

fn trim(connection: &Connection, partition: PartitionId, epoch: i32, max_bytes: usize) -> Result<u64, Undone> {
    fenced(connection, partition, epoch)?;
    let sql = "SELECT log_start FROM partitions WHERE id = ?1";
    let log_start: Offset = connection.prepare_cached(sql)?.query_row([partition.0], |row| row.get(0))?;
    let sql = "SELECT max(base_offset) FROM batches WHERE partition_id = ?1";
    let last: Option<Offset> = connection.prepare_cached(sql)?.query_row([partition.0], |row| row.get(0))?;
    // Rows before the last one end below its base, so this spares the last one and no other.
    let below = log_start.min(last.unwrap_or(0));
    let bytes = rows::remove_front(connection, partition, below, max_bytes)?;
    // An epoch that ended before the log starts has nothing left to say.
    let sql = "DELETE FROM leader_epochs WHERE partition_id = ?1 AND epoch <
        (SELECT max(epoch) FROM leader_epochs WHERE partition_id = ?1 AND start_offset <= ?2)";
    connection.prepare_cached(sql)?.execute(params![partition.0, log_start])?;
    Ok(bytes)
}

fn replace(
    connection: &Connection,
    partition: PartitionId,
    epoch: i32,
    replacements: &[Replacement],
) -> Result<(), Undone> {
    fenced(connection, partition, epoch)?;
    let sql = "SELECT max(base_offset) FROM batches WHERE partition_id = ?1";
    let last: Option<Offset> = connection.prepare_cached(sql)?.query_row([partition.0], |row| row.get(0))?;
    for replacement in replacements {
        if Some(replacement.base_offset) == last {
            return Err(StoreError::Conflict.into());
        }
        rows::replace(connection, partition, replacement.base_offset, replacement.data.as_ref())?;
    }
    Ok(())
}
