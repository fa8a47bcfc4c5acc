//! Producer ids, transactional ids, and the snapshot of the producers of a partition.

use std::ops::Range;

use hapax_sql::postgres::tokio_postgres::Row;

use super::PostgresStore;
use super::text::{given, kept};
use crate::model::{PartitionId, Timestamp};
use crate::store::ring;
use crate::store::{ProducerRow, ProducerSnapshot, ProducerState, Producers, StoreError, TransactionalRow};

/// How many ids a broker takes at once; the sequence's increment.
const BLOCK: i64 = 1000;

const TRANSACTIONAL: &str = "SELECT revision, serial, state, version, producer_id, epoch, last_epoch, prev_producer_id, \
     next_producer_id, timeout_ms, kafka.ms(updated) FROM kafka.transactions WHERE id = $1";

const SNAPSHOT: &str = "SELECT s.upto, p.producer_id, p.epoch, p.ring, p.open_since, kafka.ms(p.updated_at) \
     FROM kafka.snapshots s LEFT JOIN kafka.producer_sequences p ON p.partition_id = s.partition_id \
     WHERE s.partition_id = $1 ORDER BY p.producer_id";

impl Producers for PostgresStore {
    async fn producer_id_block(&self) -> Result<Range<i64>, StoreError> {
        // A lost block is a gap, nothing more: so it may be asked twice.
        let rows = self.desk.read("SELECT nextval('kafka.producer_id_blocks')", &[]).await?;
        let first: i64 = rows.first().map_or(0, |row| row.get(0));
        Ok(first..first + BLOCK)
    }

    async fn note_producer(&self, row: ProducerRow) -> Result<(), StoreError> {
        let (client, transactional) = (row.client_id.as_deref().map(kept), row.transactional_id.as_deref().map(kept));
        let sql = "SELECT kafka.note_producer($1, $2, $3, $4)";
        self.desk.write(sql, &[&row.producer_id, &row.epoch, &client, &transactional]).await?;
        Ok(())
    }

    async fn producer(&self, producer_id: i64) -> Result<Option<ProducerRow>, StoreError> {
        let sql = "SELECT epoch, client_id, transactional_id::text FROM kafka.producer_ids WHERE producer_id = $1";
        let rows = self.desk.read(sql, &[&producer_id]).await?;
        Ok(rows.first().map(|row| ProducerRow {
            producer_id,
            epoch: row.get(0),
            client_id: row.get::<_, Option<String>>(1).map(given),
            transactional_id: row.get::<_, Option<String>>(2).map(given),
        }))
    }

    async fn forget_producers(&self, before: Timestamp) -> Result<u64, StoreError> {
        let sql = "WITH gone AS (DELETE FROM kafka.producer_ids \
             WHERE transactional_id IS NULL AND last_active_at < kafka.at($1) RETURNING 1) SELECT count(*) FROM gone";
        let rows = self.side.write(sql, &[&before]).await?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
    }

    async fn transactional(&self, id: &str) -> Result<Option<TransactionalRow>, StoreError> {
        let rows = self.desk.read(TRANSACTIONAL, &[&kept(id)]).await?;
        Ok(rows.first().map(|row| transactional(id, row)))
    }

    async fn swap_transactional(&self, expected: Option<i64>, row: TransactionalRow) -> Result<(), StoreError> {
        let sql = "SELECT kafka.swap_transactional($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let rows = self
            .desk
            .write(
                sql,
                &[
                    &expected,
                    &kept(&row.id),
                    &row.revision,
                    &row.serial,
                    &row.state,
                    &row.version,
                    &row.producer_id,
                    &row.epoch,
                    &row.last_epoch,
                    &row.prev_producer_id,
                    &row.next_producer_id,
                    &row.timeout_ms,
                    &row.updated,
                ],
            )
            .await?;
        if rows.first().is_some_and(|row| row.get(0)) { Ok(()) } else { Err(StoreError::Conflict) }
    }

    async fn snapshot(&self, partition: PartitionId) -> Result<ProducerSnapshot, StoreError> {
        let rows = self.desk.read(SNAPSHOT, &[&partition.0]).await?;
        let upto = rows.first().map_or(0, |row| row.get(0));
        let known = rows.iter().filter(|row| row.get::<_, Option<i64>>(1).is_some());
        Ok(ProducerSnapshot { upto, producers: known.map(producer).collect::<Result<_, _>>()? })
    }

    async fn save_snapshot(
        &self,
        partition: PartitionId,
        epoch: i32,
        snapshot: ProducerSnapshot,
    ) -> Result<(), StoreError> {
        let producers = &snapshot.producers;
        let ids: Vec<i64> = producers.iter().map(|producer| producer.producer_id).collect();
        let epochs: Vec<i16> = producers.iter().map(|producer| producer.epoch).collect();
        let last = |producer: &ProducerState| producer.ring.last().map_or(-1, |entry| entry.last_sequence);
        let lasts: Vec<i32> = producers.iter().map(last).collect();
        let rings: Vec<Vec<u8>> = producers.iter().map(|producer| ring::encode(&producer.ring)).collect();
        let opens: Vec<Option<i64>> = producers.iter().map(|producer| producer.open_since).collect();
        let updates: Vec<i64> = producers.iter().map(|producer| producer.updated).collect();
        let sql = "SELECT kafka.save_snapshot($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let rows = self
            .side
            .write(sql, &[&partition.0, &epoch, &snapshot.upto, &ids, &epochs, &lasts, &rings, &opens, &updates])
            .await?;
        if rows.first().is_some_and(|row| row.get(0)) { Ok(()) } else { Err(StoreError::Fenced) }
    }
}

fn transactional(id: &str, row: &Row) -> TransactionalRow {
    TransactionalRow {
        id: id.to_owned(),
        revision: row.get(0),
        serial: row.get(1),
        state: row.get(2),
        version: row.get(3),
        producer_id: row.get(4),
        epoch: row.get(5),
        last_epoch: row.get(6),
        prev_producer_id: row.get(7),
        next_producer_id: row.get(8),
        timeout_ms: row.get(9),
        updated: row.get(10),
    }
}

fn producer(row: &Row) -> Result<ProducerState, StoreError> {
    Ok(ProducerState {
        producer_id: row.get(1),
        epoch: row.get(2),
        ring: ring::decode(row.get(3))?,
        open_since: row.get(4),
        updated: row.get(5),
    })
}
