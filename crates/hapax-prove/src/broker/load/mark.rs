//! One batch of an idempotent producer that writes nothing else, to be sent again when much has happened since.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use hapax_kafka::batch::{self, BatchHeader};
use hapax_kafka::{Acks, Identity};

use super::{FINISH, Shared, TOPIC, record};
use crate::broker::history::{Answer, Ask, Name, Outcome, Way};

const COUNT: u32 = 3;
const PARTITION: i32 = 0;
const PAUSE: Duration = Duration::from_millis(50);

/// A batch that is there.
#[derive(Debug)]
pub struct Mark {
    /// The offset at which it was written first.
    pub base: i64,
    process: u32,
    bytes: Bytes,
}

impl Mark {
    /// Writes it.
    pub(super) async fn write(shared: &Shared) -> anyhow::Result<Self> {
        let process = shared.process();
        let mut client = shared.client(process, Duration::from_secs(3));
        let Identity { producer_id, epoch } = client.init_producer_id(None).await.context("no producer id")?;
        let records: Vec<_> = (0..u64::from(COUNT)).map(|number| record(Name { process, number }, 40)).collect();
        let header = BatchHeader { producer_id, epoch, first_sequence: 0, attributes: 0 };
        let mut mark = Self { base: -1, process, bytes: batch::encode(header, &records) };
        mark.base = mark.send(shared).await?;
        Ok(mark)
    }

    /// Sends it until it is acknowledged: the same bytes each time. Where it is.
    pub(super) async fn send(&self, shared: &Shared) -> anyhow::Result<i64> {
        let mut client = shared.client(self.process, Duration::from_secs(3));
        let ask = Ask::Produce { partition: PARTITION, first: 0, count: COUNT, way: Way::Idempotent };
        let (invoked, until) = (shared.recorder.now(), Instant::now() + FINISH);
        loop {
            match client.produce((TOPIC, PARTITION), self.bytes.clone(), Acks::All).await {
                Ok(found) => {
                    let outcome = Outcome::Ok(Answer::Appended(found.base_offset));
                    shared.recorder.note(self.process, invoked, ask, outcome);
                    return Ok(found.base_offset);
                }
                Err(error) if error.is_retriable() && Instant::now() < until => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    shared.recorder.note(self.process, invoked, ask, Outcome::Fail(error.to_string()));
                    return Err(error).context("a batch was refused");
                }
            }
        }
    }
}
