//! Handing a batch to the appender.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::batch::Header;
use crate::log::{Logs, Partition};
use crate::model::{Offset, Timestamp};
use crate::rules::producer_error::{Asked, ProducerError};
use crate::store::Store;

/// A checked batch on its way into the log.
#[derive(Debug)]
pub struct NewBatch {
    /// Where it goes.
    pub partition: Arc<Partition>,
    /// Its bytes, exactly one batch.
    pub bytes: Bytes,
    /// Its header.
    pub header: Header,
    /// Whose clock counts.
    pub time: Time,
    /// Memory that its bytes take, where they are not those that came.
    pub held: Option<Held>,
}

/// Memory for looking into compressed batches, of all connections together; dropping it gives it back.
#[derive(Debug)]
pub struct Held(OwnedSemaphorePermit);

impl Held {
    /// Keeps only so many bytes of it.
    pub(crate) fn down_to(mut self, bytes: usize) -> Option<Self> {
        let kept = bytes.div_ceil(KIB).min(self.0.num_permits());
        let kept = self.0.split(kept)?;
        (kept.num_permits() > 0).then_some(Self(kept))
    }
}

/// The unit in which memory is counted.
const KIB: usize = 1024;

/// Whose clock gives the records of a batch their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// The client's, as the batch has it.
    Kept,
    /// The client's, but the header is wrong about the greatest.
    Corrected(Timestamp),
    /// Ours, when it is appended.
    Append,
}

/// A batch that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The offset of its first record, from the first time it came.
    pub base_offset: Offset,
    /// The time it was appended; -1 where the client's clock counts. A repeated batch has its greatest timestamp here.
    pub append_time: Timestamp,
    /// The first offset that readers may have.
    pub log_start: Offset,
}

/// Why a batch was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Somebody else leads, or nobody knows yet.
    #[error("this broker does not lead the partition now")]
    NotLeader,
    /// Its producer may not write it.
    #[error(transparent)]
    Producer(#[from] ProducerError),
    /// There is no room, or the store has failed.
    #[error("{0}")]
    Storage(String),
}

impl AppendError {
    /// What a client is told.
    pub fn response(&self) -> ResponseError {
        match self {
            Self::NotLeader => ResponseError::NotLeaderOrFollower,
            Self::Producer(error) => error.to_kafka_error(Asked::Produce),
            Self::Storage(_) => ResponseError::KafkaStorageError,
        }
    }
}

/// Room in the queue, taken before anything is put in, and kept until the answer.
#[derive(Debug, Clone)]
pub struct Room {
    _permit: Arc<OwnedSemaphorePermit>,
}

pub(super) type Outcome = Result<Written, AppendError>;

/// A batch in the queue.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) batch: NewBatch,
    pub(super) reply: Reply,
}

/// Where the answer goes.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answer: oneshot::Sender<Outcome>,
    _room: Room,
}

/// The answer to come.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Outcome>);

impl Pending {
    /// Waits until the batch is durable, or refused.
    pub async fn outcome(self) -> Result<Written, AppendError> {
        self.0.await.unwrap_or(Err(AppendError::NotLeader))
    }
}

impl<S: Store> Logs<S> {
    /// Waits until so many bytes have room in the queue. One request takes all it needs at once, so that two never wait for
    /// each other.
    pub async fn room(&self, bytes: usize) -> Room {
        let bytes = bytes.min(self.shared.config.append_queue);
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.room).acquire_many_owned(permits).await;
        Room { _permit: Arc::new(permit.expect("the queue is never closed")) }
    }

    /// Waits until there is memory for looking into a batch. One batch of a request after the other: what the ones before hold
    /// is given back when they are in a row, and that waits for nobody.
    pub async fn hold(&self, bytes: usize) -> Held {
        let kib = bytes.div_ceil(KIB).min(self.shared.config.inflate_memory.div_ceil(KIB));
        let permits = u32::try_from(kib).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.memory).acquire_many_owned(permits).await;
        Held(permit.expect("the memory is never closed"))
    }

    /// Puts a batch into the queue. Batches of one caller are appended in the order in which they are put in.
    pub fn append(&self, batch: NewBatch, room: &Room) -> Pending {
        let (answer, pending) = oneshot::channel();
        let reply = Reply { answer, _room: room.clone() };
        if self.queue.send(Work { batch, reply }).is_err() {
            tracing::error!("the appender has ended");
        }
        Pending(pending)
    }
}
