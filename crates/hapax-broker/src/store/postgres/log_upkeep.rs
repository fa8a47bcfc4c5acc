//! What retention and compaction write, on a session of their own.

use super::PostgresStore;
use crate::model::{Offset, PartitionId};
use crate::store::{Replacement, StoreError};

impl PostgresStore {
    pub(super) async fn raise_log_start(
        &self,
        partition: PartitionId,
        epoch: i32,
        log_start: Offset,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE kafka.partitions SET log_start = greatest(log_start, $3) WHERE id = $1 AND leader_epoch = $2 RETURNING id";
        let rows = self.side.write(sql, &[&partition.0, &epoch, &log_start]).await?;
        if rows.is_empty() { Err(StoreError::Fenced) } else { Ok(()) }
    }

    pub(super) async fn trim_rows(
        &self,
        partition: PartitionId,
        epoch: i32,
        max_bytes: usize,
    ) -> Result<u64, StoreError> {
        let most = i64::try_from(max_bytes).unwrap_or(i64::MAX);
        let rows = self.side.write("SELECT kafka.trim($1, $2, $3)", &[&partition.0, &epoch, &most]).await?;
        let removed: i64 = rows.first().map_or(-1, |row| row.get(0));
        u64::try_from(removed).map_err(|_| StoreError::Fenced)
    }

    pub(super) async fn replace_rows(
        &self,
        partition: PartitionId,
        epoch: i32,
        rows: &[Replacement],
    ) -> Result<(), StoreError> {
        let bases: Vec<i64> = rows.iter().map(|row| row.base_offset).collect();
        let datas: Vec<Option<&[u8]>> = rows.iter().map(|row| row.data.as_deref()).collect();
        let sql = "SELECT kafka.replace_rows($1, $2, $3, $4)";
        let answer = self.side.write(sql, &[&partition.0, &epoch, &bases, &datas]).await?;
        match answer.first().map(|row| row.get::<_, i32>(0)) {
            Some(0) => Ok(()),
            Some(2) => Err(StoreError::Conflict),
            _ => Err(StoreError::Fenced),
        }
    }
}
