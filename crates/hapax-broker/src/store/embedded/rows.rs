//! Rows of the log in SQLite: written, found, removed.
//!
//! Each row is one entry in `batches` and one in `batch_data`; both come and go in one transaction.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::failure::{Undone, damaged};
use crate::model::{Offset, PartitionId, Timestamp};
use crate::store::{Row, RowInfo, StoreError, StoredRow};

/// Bytes removed in one commit when a topic is deleted.
const SWEEP: usize = 8 << 20;
/// Rows of one read.
const READ_ROWS: usize = 64;

/// The end of a partition, as its last row says: the next offset, and the greatest timestamp.
pub(super) fn end(connection: &Connection, partition: PartitionId) -> Result<Option<(Offset, Timestamp)>, Undone> {
    let sql = "SELECT last_offset + 1, high_timestamp FROM batches WHERE partition_id = ?1
        ORDER BY base_offset DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row([partition.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// Writes one row behind the last one.
pub(super) fn insert(connection: &Connection, row: &Row) -> Result<(), Undone> {
    let size = u32::try_from(row.data.len()).map_err(damaged)?;
    connection.prepare_cached("INSERT INTO batch_data (data) VALUES (?1)")?.execute([&row.data[..]])?;
    let data_id = connection.last_insert_rowid();
    let values = params![row.partition.0, row.base_offset, row.last_offset, size, row.high_timestamp, data_id];
    connection.prepare_cached("INSERT INTO batches VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(values)?;
    Ok(())
}

/// Rows from the one that holds `from`, or the next, below `below`.
pub(super) fn read(
    connection: &Connection,
    partition: PartitionId,
    from: Offset,
    below: Offset,
    max_bytes: usize,
) -> Result<Vec<StoredRow>, Undone> {
    // A row before `from` counts only if it reaches `from`: compaction may have removed the one between.
    let sql = "SELECT b.base_offset, b.last_offset, d.data FROM batches b JOIN batch_data d ON d.id = b.data_id
        WHERE b.partition_id = ?1 AND b.base_offset < ?3 AND b.base_offset >= coalesce((SELECT p.base_offset FROM
            (SELECT base_offset, last_offset FROM batches WHERE partition_id = ?1 AND base_offset <= ?2
            ORDER BY base_offset DESC LIMIT 1) p WHERE p.last_offset >= ?2), ?2)
        AND EXISTS (SELECT 1 FROM partitions WHERE id = ?1) ORDER BY b.base_offset";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(params![partition.0, from, below])?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while rows.len() < READ_ROWS
        && (rows.is_empty() || bytes < max_bytes)
        && let Some(row) = found.next()?
    {
        let row = stored(row)?;
        bytes += row.data.len();
        rows.push(row);
    }
    Ok(rows)
}

fn stored(row: &rusqlite::Row<'_>) -> Result<StoredRow, Undone> {
    let data = row.get_ref(2)?.as_blob().map_err(damaged)?;
    Ok(StoredRow { base_offset: row.get(0)?, last_offset: row.get(1)?, data: Bytes::copy_from_slice(data) })
}

/// The first row whose greatest timestamp so far is `timestamp` or later.
///
/// That timestamp only grows from row to row, so a search by halves over the offsets finds it, and no index is needed.
pub(super) fn at_time(
    connection: &Connection,
    partition: PartitionId,
    timestamp: Timestamp,
) -> Result<Option<StoredRow>, Undone> {
    let transaction = connection.unchecked_transaction()?;
    let sql = "SELECT min(base_offset), max(base_offset) FROM batches WHERE partition_id = ?1
        AND EXISTS (SELECT 1 FROM partitions WHERE id = ?1)";
    let ends = transaction.prepare_cached(sql)?.query_row([partition.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(mut low), Some(mut high)): (Option<Offset>, Option<Offset>) = ends else { return Ok(None) };
    // Invariant: the row is at or after `low`, and, if there is one, at or before `high`.
    let sql = "SELECT base_offset, high_timestamp FROM batches WHERE partition_id = ?1 AND base_offset <= ?2
        ORDER BY base_offset DESC LIMIT 1";
    let mut probe = transaction.prepare_cached(sql)?;
    while low < high {
        let middle = low + (high - low) / 2;
        let at: (Offset, Timestamp) =
            probe.query_row(params![partition.0, middle], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if at.1 >= timestamp {
            high = at.0.max(low);
        } else {
            low = middle + 1;
        }
    }
    drop(probe);
    let sql = "SELECT b.base_offset, b.last_offset, d.data, b.high_timestamp FROM batches b
        JOIN batch_data d ON d.id = b.data_id
        WHERE b.partition_id = ?1 AND b.base_offset >= ?2 ORDER BY b.base_offset LIMIT 1";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut found = statement.query(params![partition.0, low])?;
    match found.next()? {
        Some(row) if row.get::<_, Timestamp>(3)? >= timestamp => stored(row).map(Some),
        Some(_) | None => Ok(None),
    }
}

/// Rows without data.
pub(super) fn list(
    connection: &Connection,
    partition: PartitionId,
    from: Offset,
    limit: usize,
) -> Result<Vec<RowInfo>, Undone> {
    let sql = "SELECT base_offset, last_offset, size, high_timestamp FROM batches
        WHERE partition_id = ?1 AND base_offset >= ?2 AND EXISTS (SELECT 1 FROM partitions WHERE id = ?1)
        ORDER BY base_offset LIMIT ?3";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map(params![partition.0, from, limit], |row| {
        Ok(RowInfo {
            base_offset: row.get(0)?,
            last_offset: row.get(1)?,
            size: row.get(2)?,
            high_timestamp: row.get(3)?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Bytes of a partition.
pub(super) fn size(connection: &Connection, partition: PartitionId) -> Result<u64, Undone> {
    let sql = "SELECT coalesce(sum(size), 0) FROM batches WHERE partition_id = ?1
        AND EXISTS (SELECT 1 FROM partitions WHERE id = ?1)";
    let size: i64 = connection.prepare_cached(sql)?.query_row([partition.0], |row| row.get(0))?;
    u64::try_from(size).map_err(damaged)
}

/// Removes rows from the front whose last offset is below `below`, about `max_bytes` of them. How many bytes went.
pub(super) fn remove_front(
    connection: &Connection,
    partition: PartitionId,
    below: Offset,
    max_bytes: usize,
) -> Result<u64, Undone> {
    let sql = "SELECT base_offset, last_offset, size, data_id FROM batches WHERE partition_id = ?1
        ORDER BY base_offset";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query([partition.0])?;
    let (mut bytes, mut upto, mut ids) = (0_u64, None, Vec::new());
    while bytes < max_bytes as u64
        && let Some(row) = found.next()?
    {
        if row.get::<_, Offset>(1)? >= below {
            break;
        }
        upto = Some(row.get::<_, Offset>(0)?);
        bytes += u64::from(row.get::<_, u32>(2)?);
        ids.push(row.get::<_, i64>(3)?);
    }
    drop(found);
    let Some(upto) = upto else { return Ok(0) };
    let mut delete = connection.prepare_cached("DELETE FROM batch_data WHERE id = ?1")?;
    for id in ids {
        delete.execute([id])?;
    }
    let sql = "DELETE FROM batches WHERE partition_id = ?1 AND base_offset <= ?2";
    connection.prepare_cached(sql)?.execute(params![partition.0, upto])?;
    Ok(bytes)
}

/// Puts other bytes into a row, or removes it.
pub(super) fn replace(
    connection: &Connection,
    partition: PartitionId,
    base_offset: Offset,
    data: Option<&Bytes>,
) -> Result<(), Undone> {
    let sql = "SELECT data_id FROM batches WHERE partition_id = ?1 AND base_offset = ?2";
    let key = params![partition.0, base_offset];
    let data_id: Option<i64> = connection.prepare_cached(sql)?.query_row(key, |row| row.get(0)).optional()?;
    let Some(data_id) = data_id else { return Err(StoreError::Conflict.into()) };
    match data {
        Some(data) => {
            let size = u32::try_from(data.len()).map_err(damaged)?;
            let sql = "UPDATE batch_data SET data = ?2 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![data_id, &data[..]])?;
            let sql = "UPDATE batches SET size = ?3 WHERE partition_id = ?1 AND base_offset = ?2";
            connection.prepare_cached(sql)?.execute(params![partition.0, base_offset, size])?;
        }
        None => {
            connection.prepare_cached("DELETE FROM batch_data WHERE id = ?1")?.execute([data_id])?;
            let sql = "DELETE FROM batches WHERE partition_id = ?1 AND base_offset = ?2";
            connection.prepare_cached(sql)?.execute(key)?;
        }
    }
    Ok(())
}

/// Removes some rows of deleted partitions. Whether more are left.
pub(super) fn sweep(connection: &Connection) -> Result<bool, Undone> {
    let sql = "SELECT partition_id FROM removed_partitions LIMIT 1";
    let next: Option<i32> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
    let Some(partition) = next else { return Ok(false) };
    if remove_front(connection, PartitionId(partition), Offset::MAX, SWEEP)? == 0 {
        connection.prepare_cached("DELETE FROM removed_partitions WHERE partition_id = ?1")?.execute([partition])?;
    }
    Ok(true)
}
