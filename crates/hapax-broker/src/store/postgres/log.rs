//! The log in `kafka.batches`: leading, the one statement of a commit, reading.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use bytes::Bytes;
use hapax_sql::postgres::tokio_postgres::Row as SqlRow;

use super::PostgresStore;
use super::link::{Failure, Link, Parameters, run};
use crate::fault::{Bug, planted};
use crate::model::{Offset, PartitionId, Timestamp};
use crate::store::{Append, Appended, LedPartition, Log, Replacement, RowInfo, StoreError, StoredRow};

/// Of several arrays row by row; empty = committed, else the partitions that are led under another epoch.
const APPEND: &str = "SELECT which FROM kafka.append($1, $2, $3, $4, $5, $6, $7, $8)";

/// From the row that holds $2 or the next; the window's sum is over sizes, the data is fetched for what is returned.
const READ: &str = "SELECT base_offset, last_offset, data FROM ( \
       SELECT base_offset, last_offset, data, sum(size) OVER (ORDER BY base_offset) - size AS before FROM kafka.batches \
       WHERE partition_id = $1 AND base_offset < $3 AND last_offset >= $2 AND base_offset >= coalesce( \
         (SELECT base_offset FROM kafka.batches WHERE partition_id = $1 AND base_offset <= $2 ORDER BY base_offset DESC LIMIT 1), $2) \
       ORDER BY base_offset LIMIT 64) r WHERE before < $4 OR before = 0 ORDER BY base_offset";

const AT_TIME: &str = "SELECT base_offset, last_offset, data FROM kafka.batches \
     WHERE partition_id = $1 AND high_ts >= $2 ORDER BY high_ts, base_offset LIMIT 1";

const LIST: &str = "SELECT base_offset, last_offset, size, high_ts FROM kafka.batches \
     WHERE partition_id = $1 AND base_offset >= $2 ORDER BY base_offset LIMIT $3";

const SIZES: &str = "SELECT u.id, coalesce((SELECT sum(b.size) FROM kafka.batches b WHERE b.partition_id = u.id), 0)::bigint \
     FROM unnest($1::int[]) WITH ORDINALITY u(id, n) ORDER BY u.n";

const EPOCHS: &str = "SELECT epoch, start_offset FROM kafka.leader_epochs WHERE partition_id = $1 ORDER BY epoch";

impl Log for PostgresStore {
    fn keeps_compression(&self) -> bool {
        // SQL reads the batches, and TOAST compresses them.
        false
    }

    async fn lead(&self, partitions: &[PartitionId]) -> Result<Vec<LedPartition>, StoreError> {
        let ids: Vec<i32> = partitions.iter().map(|partition| partition.0).collect();
        let sql = "SELECT partition_id, epoch, log_start, next_offset, high_ts FROM kafka.lead($1, $2)";
        let session = self.writer.session().await?;
        let rows = run(&session, sql, &[&self.me.0, &ids]).await.map_err(Failure::of_a_write)?;
        let led: Vec<LedPartition> = rows.iter().map(led).collect();
        self.led_in().extend(led.iter().map(|led| (led.partition, session.backend_pid())));
        Ok(led)
    }

    async fn append(&self, group: Append) -> Result<Appended, StoreError> {
        let (ids, mut epochs): (Vec<i32>, Vec<i32>) =
            group.led.iter().map(|(partition, epoch)| (partition.0, *epoch)).unzip();
        if planted(Bug::BrokerNoFence) {
            // Whoever leads: ours is always right.
            let sql = "SELECT leader_epoch FROM kafka.partitions WHERE id = ANY($1) ORDER BY id";
            epochs = self.desk.read(sql, &[&ids]).await?.iter().map(|row| row.get(0)).collect();
        }
        let rows = &group.rows;
        let partitions: Vec<i32> = rows.iter().map(|row| row.partition.0).collect();
        let bases: Vec<i64> = rows.iter().map(|row| row.base_offset).collect();
        let lasts: Vec<i64> = rows.iter().map(|row| row.last_offset).collect();
        let sizes: Vec<i32> = rows.iter().map(|row| i32::try_from(row.data.len()).unwrap_or(i32::MAX)).collect();
        let highs: Vec<i64> = rows.iter().map(|row| row.high_timestamp).collect();
        let datas: Vec<&[u8]> = rows.iter().map(|row| row.data.as_ref()).collect();
        let session = self.writer.session().await?;
        self.check_session(&group, session.backend_pid())?;
        let arrays: Parameters<'_> = &[&ids, &epochs, &partitions, &bases, &lasts, &sizes, &highs, &datas];
        let culprits = run(&session, APPEND, arrays).await.map_err(Failure::of_a_write)?;
        if culprits.is_empty() {
            return Ok(Appended::Done);
        }
        Ok(Appended::Refused(culprits.iter().map(|row| PartitionId(row.get(0))).collect()))
    }

    async fn read(
        &self,
        partition: PartitionId,
        from: Offset,
        below: Offset,
        max_bytes: usize,
    ) -> Result<Vec<StoredRow>, StoreError> {
        let most = i64::try_from(max_bytes).unwrap_or(i64::MAX);
        let rows = self.reader().read(READ, &[&partition.0, &from, &below, &most]).await?;
        Ok(rows.iter().map(stored).collect())
    }

    async fn row_at_time(&self, partition: PartitionId, timestamp: Timestamp) -> Result<Option<StoredRow>, StoreError> {
        let rows = self.reader().read(AT_TIME, &[&partition.0, &timestamp]).await?;
        Ok(rows.first().map(stored))
    }

    async fn list(&self, partition: PartitionId, from: Offset, limit: usize) -> Result<Vec<RowInfo>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.side.read(LIST, &[&partition.0, &from, &limit]).await?;
        Ok(rows.iter().map(info).collect())
    }

    async fn sizes(&self, partitions: &[PartitionId]) -> Result<Vec<(PartitionId, u64)>, StoreError> {
        let ids: Vec<i32> = partitions.iter().map(|partition| partition.0).collect();
        let rows = self.side.read(SIZES, &[&ids]).await?;
        Ok(rows.iter().map(|row| (PartitionId(row.get(0)), row.get::<_, i64>(1).cast_unsigned())).collect())
    }

    async fn leader_epochs(&self, partition: PartitionId) -> Result<Vec<(i32, Offset)>, StoreError> {
        let rows = self.desk.read(EPOCHS, &[&partition.0]).await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    async fn advance_log_start(&self, partition: PartitionId, epoch: i32, log_start: Offset) -> Result<(), StoreError> {
        self.raise_log_start(partition, epoch, log_start).await
    }

    async fn trim(&self, partition: PartitionId, epoch: i32, max_bytes: usize) -> Result<u64, StoreError> {
        self.trim_rows(partition, epoch, max_bytes).await
    }

    async fn replace(&self, partition: PartitionId, epoch: i32, rows: Vec<Replacement>) -> Result<(), StoreError> {
        self.replace_rows(partition, epoch, &rows).await
    }
}

impl PostgresStore {
    fn led_in(&self) -> MutexGuard<'_, HashMap<PartitionId, i32>> {
        self.led_in.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A leader writes only in the session in which it led.
    fn check_session(&self, group: &Append, session: i32) -> Result<(), StoreError> {
        let led_in = self.led_in();
        if group.led.iter().all(|(partition, _)| led_in.get(partition).is_none_or(|led| *led == session)) {
            return Ok(());
        }
        Err(StoreError::InDoubt("the session in which this broker led was lost".to_owned()))
    }

    /// The two sessions for cold reads, in turn.
    fn reader(&self) -> &Link {
        let turn = self.next_reader.fetch_add(1, Ordering::Relaxed);
        &self.readers[turn % self.readers.len()]
    }
}

fn led(row: &SqlRow) -> LedPartition {
    LedPartition {
        partition: PartitionId(row.get(0)),
        epoch: row.get(1),
        log_start: row.get(2),
        end: row.get(3),
        high_timestamp: row.get(4),
    }
}

fn stored(row: &SqlRow) -> StoredRow {
    let data: &[u8] = row.get(2);
    StoredRow { base_offset: row.get(0), last_offset: row.get(1), data: Bytes::copy_from_slice(data) }
}

fn info(row: &SqlRow) -> RowInfo {
    let size: i32 = row.get(2);
    RowInfo { base_offset: row.get(0), last_offset: row.get(1), size: size.cast_unsigned(), high_timestamp: row.get(3) }
}
