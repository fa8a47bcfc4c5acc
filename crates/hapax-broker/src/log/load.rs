//! Taking a partition over: who wrote last, by the snapshot and the batches after it.

use crate::batch::Batches;
use crate::fault::{Bug, planted};
use crate::log::{Partition, now};
use crate::rules::producer::Producers;
use crate::store::{LedPartition, Store, StoreError};

/// Bytes read at once.
const PIECE: usize = 8 << 20;

/// Reads what the leader must know. The epoch was raised before, so nothing is added meanwhile.
pub(super) async fn load<S: Store>(store: &S, led: &LedPartition) -> Result<Partition, StoreError> {
    if led.end == 0 {
        return Ok(Partition::new(led, Producers::default(), 0));
    }
    if planted(Bug::BrokerRingInMemory) {
        return Ok(Partition::new(led, Producers::default(), 0));
    }
    let snapshot = store.snapshot(led.partition).await?;
    let mut producers = Producers::restore(&snapshot);
    let time = now();
    let mut next = snapshot.upto;
    while next < led.end {
        let rows = store.read(led.partition, next, led.end, PIECE).await?;
        let Some(last) = rows.last() else { break };
        let after = last.last_offset + 1;
        for row in &rows {
            for batch in Batches::new(&row.data) {
                let (_, header) = batch.map_err(|error| StoreError::Damaged(error.to_string()))?;
                if header.base_offset >= snapshot.upto {
                    producers.replay(&header, time);
                }
            }
        }
        next = after.max(next + 1);
    }
    Ok(Partition::new(led, producers, snapshot.upto))
}
