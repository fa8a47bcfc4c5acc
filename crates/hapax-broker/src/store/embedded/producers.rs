//! Producers in SQLite: ids, transactional ids, and the snapshot that is the table `producer_sequences`.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, params};

use super::failure::{Undone, damaged};
use super::{Embedded, log, now};
use crate::model::{Offset, PartitionId, Timestamp};
use crate::store::{ProducerRow, ProducerSnapshot, ProducerState, Producers, StoreError, TransactionalRow, ring};

/// Ids of one block.
const BLOCK: i64 = 1000;

impl Producers for Embedded {
    async fn producer_id_block(&self) -> Result<Range<i64>, StoreError> {
        self.writer
            .call(|connection| {
                let sql = "UPDATE meta SET value = value + ?1 WHERE name = 'next_producer_id' RETURNING value";
                let end: i64 = connection.query_row(sql, [BLOCK], |row| row.get(0))?;
                Ok(end - BLOCK..end)
            })
            .await
    }

    async fn note_producer(&self, row: ProducerRow) -> Result<(), StoreError> {
        self.writer.call(move |connection| note(connection, &row)).await
    }

    async fn producer(&self, producer_id: i64) -> Result<Option<ProducerRow>, StoreError> {
        self.readers
            .call(move |connection| {
                let sql = "SELECT epoch, client_id, transactional_id FROM producer_ids WHERE producer_id = ?1";
                let mut statement = connection.prepare_cached(sql)?;
                let found = statement.query_row([producer_id], |row| {
                    Ok(ProducerRow {
                        producer_id,
                        epoch: row.get(0)?,
                        client_id: row.get(1)?,
                        transactional_id: row.get(2)?,
                    })
                });
                Ok(found.optional()?)
            })
            .await
    }

    async fn forget_producers(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.writer
            .call(move |connection| {
                let sql = "DELETE FROM producer_ids WHERE transactional_id IS NULL AND last_active_at < ?1";
                Ok(connection.execute(sql, [before])? as u64)
            })
            .await
    }

    async fn transactional(&self, id: &str) -> Result<Option<TransactionalRow>, StoreError> {
        let id = id.to_owned();
        self.readers.call(move |connection| transactional(connection, id)).await
    }

    async fn swap_transactional(&self, expected: Option<i64>, row: TransactionalRow) -> Result<(), StoreError> {
        self.writer.call(move |connection| swap(connection, expected, row)).await
    }

    async fn snapshot(&self, partition: PartitionId) -> Result<ProducerSnapshot, StoreError> {
        self.readers.call(move |connection| snapshot(connection, partition)).await
    }

    async fn save_snapshot(
        &self,
        partition: PartitionId,
        epoch: i32,
        snapshot: ProducerSnapshot,
    ) -> Result<(), StoreError> {
        self.writer.call(move |connection| save(connection, partition, epoch, &snapshot)).await
    }
}

fn note(connection: &Connection, row: &ProducerRow) -> Result<(), Undone> {
    let sql = "INSERT INTO producer_ids VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT (producer_id) DO UPDATE SET
        epoch = max(epoch, excluded.epoch), client_id = coalesce(excluded.client_id, client_id),
        transactional_id = coalesce(excluded.transactional_id, transactional_id),
        last_active_at = max(last_active_at, excluded.last_active_at)";
    let values = params![row.producer_id, row.epoch, row.client_id, row.transactional_id, now()];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

fn transactional(connection: &Connection, id: String) -> Result<Option<TransactionalRow>, Undone> {
    let sql = "SELECT revision, serial, state, version, producer_id, epoch, last_epoch, prev_producer_id,
        next_producer_id, timeout_ms, updated FROM transactions WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query([&id])?;
    let Some(row) = found.next()? else { return Ok(None) };
    Ok(Some(TransactionalRow {
        revision: row.get(0)?,
        serial: row.get(1)?,
        state: row.get(2)?,
        version: row.get(3)?,
        producer_id: row.get(4)?,
        epoch: row.get(5)?,
        last_epoch: row.get(6)?,
        prev_producer_id: row.get(7)?,
        next_producer_id: row.get(8)?,
        timeout_ms: row.get(9)?,
        updated: row.get(10)?,
        id,
    }))
}

fn swap(connection: &Connection, expected: Option<i64>, row: TransactionalRow) -> Result<(), Undone> {
    let sql = "SELECT revision FROM transactions WHERE id = ?1";
    let found: Option<i64> = connection.prepare_cached(sql)?.query_row([&row.id], |row| row.get(0)).optional()?;
    if found != expected {
        return Err(StoreError::Conflict.into());
    }
    let sql =
        "INSERT OR REPLACE INTO transactions (id, revision, serial, state, version, producer_id, epoch, last_epoch,
        prev_producer_id, next_producer_id, timeout_ms, updated)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    connection.prepare_cached(sql)?.execute(params![
        row.id,
        row.revision,
        row.serial,
        row.state,
        row.version,
        row.producer_id,
        row.epoch,
        row.last_epoch,
        row.prev_producer_id,
        row.next_producer_id,
        row.timeout_ms,
        row.updated,
    ])?;
    let (producer_id, epoch) = (row.producer_id, row.epoch);
    note(connection, &ProducerRow { producer_id, epoch, client_id: None, transactional_id: Some(row.id) })
}

fn upto(connection: &Connection, partition: PartitionId) -> Result<Option<Offset>, Undone> {
    let mut statement = connection.prepare_cached("SELECT upto FROM snapshots WHERE partition_id = ?1")?;
    Ok(statement.query_row([partition.0], |row| row.get(0)).optional()?)
}

fn snapshot(connection: &Connection, partition: PartitionId) -> Result<ProducerSnapshot, Undone> {
    let transaction = connection.unchecked_transaction()?;
    let Some(upto) = upto(&transaction, partition)? else { return Ok(ProducerSnapshot::default()) };
    let sql = "SELECT producer_id, epoch, ring, open_since, updated_at FROM producer_sequences WHERE partition_id = ?1
        ORDER BY producer_id";
    let mut statement = transaction.prepare_cached(sql)?;
    let mut found = statement.query([partition.0])?;
    let mut producers = Vec::new();
    while let Some(row) = found.next()? {
        let bytes = row.get_ref(2)?.as_blob().map_err(damaged)?;
        producers.push(ProducerState {
            producer_id: row.get(0)?,
            epoch: row.get(1)?,
            ring: ring::decode(bytes)?,
            open_since: row.get(3)?,
            updated: row.get(4)?,
        });
    }
    Ok(ProducerSnapshot { upto, producers })
}

fn save(
    connection: &Connection,
    partition: PartitionId,
    epoch: i32,
    snapshot: &ProducerSnapshot,
) -> Result<(), Undone> {
    log::fenced(connection, partition, epoch)?;
    if upto(connection, partition)?.is_some_and(|upto| snapshot.upto <= upto) {
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO snapshots VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![partition.0, snapshot.upto])?;
    connection.prepare_cached("DELETE FROM producer_sequences WHERE partition_id = ?1")?.execute([partition.0])?;
    let sql =
        "INSERT INTO producer_sequences VALUES (?1, (SELECT topic_id FROM partitions WHERE id = ?2), ?2, ?3, ?4, ?5,
        ?6, ?7, ?8)";
    let mut insert = connection.prepare_cached(sql)?;
    for producer in &snapshot.producers {
        insert.execute(params![
            producer.producer_id,
            partition.0,
            producer.epoch,
            producer.ring.last().map_or(-1, |last| last.last_sequence),
            ring::encode(&producer.ring),
            producer.open_since,
            snapshot.upto,
            producer.updated,
        ])?;
    }
    let sql = "UPDATE producer_ids SET last_active_at = s.updated_at FROM producer_sequences s
        WHERE s.partition_id = ?1 AND s.producer_id = producer_ids.producer_id
        AND s.updated_at > producer_ids.last_active_at";
    connection.prepare_cached(sql)?.execute([partition.0])?;
    Ok(())
}
