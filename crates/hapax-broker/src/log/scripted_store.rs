//! The embedded store, whose appends fail, wait or lose their answer as a test says.

use std::collections::VecDeque;
use std::future::Future;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::config::TopicConfig;
use crate::model::{BrokerId, LiveBroker, Offset, PartitionId, Timestamp, Topic, TopicId};
use crate::store::embedded::{Embedded, EmbeddedOptions, OpenError};
use crate::store::*;

/// What becomes of the next append.
pub(crate) enum Step {
    /// It fails, and nothing was written.
    Fail(StoreError),
    /// It is written, and its answer is lost.
    WriteAndFail(StoreError),
    /// It waits for a permit.
    Hold(Arc<Semaphore>),
}

pub(crate) struct Scripted {
    pub(crate) inner: Embedded,
    steps: Mutex<VecDeque<Step>>,
    appended: Mutex<Vec<Vec<(PartitionId, Offset, usize)>>>,
}

impl Scripted {
    /// Opens it, once the appender of the one before has let go.
    pub(crate) async fn open(directory: &Path) -> Self {
        for _ in 0..12_000 {
            match Embedded::open(directory, EmbeddedOptions::default()) {
                Ok(inner) => return Self { inner, steps: Mutex::default(), appended: Mutex::default() },
                Err(OpenError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the directory is still in use");
    }

    /// Until all steps were taken.
    pub(crate) async fn reached(&self) {
        while !self.steps.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) fn next(&self, step: Step) {
        self.steps.lock().unwrap().push_back(step);
    }

    /// The commits so far: partition, base offset and bytes of each row.
    pub(crate) fn commits(&self) -> Vec<Vec<(PartitionId, Offset, usize)>> {
        self.appended.lock().unwrap().clone()
    }

    async fn write(&self, group: Append) -> Result<Appended, StoreError> {
        let rows = group.rows.iter().map(|row| (row.partition, row.base_offset, row.data.len())).collect();
        let outcome = self.inner.append(group).await;
        if outcome == Ok(Appended::Done) {
            self.appended.lock().unwrap().push(rows);
        }
        outcome
    }
}

macro_rules! pass_on {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> impl Future<Output = Result<$answer, StoreError>> + Send {
            self.inner.$name($($argument),*)
        })*
    };
}

impl Log for Scripted {
    async fn append(&self, group: Append) -> Result<Appended, StoreError> {
        let step = self.steps.lock().unwrap().pop_front();
        match step {
            None => self.write(group).await,
            Some(Step::Fail(error)) => Err(error),
            Some(Step::WriteAndFail(error)) => {
                self.write(group).await.unwrap();
                Err(error)
            }
            Some(Step::Hold(gate)) => {
                gate.acquire().await.unwrap().forget();
                self.write(group).await
            }
        }
    }

    pass_on! {
        lead(partitions: &[PartitionId]) -> Vec<LedPartition>;
        read(partition: PartitionId, from: Offset, below: Offset, max_bytes: usize) -> Vec<StoredRow>;
        row_at_time(partition: PartitionId, timestamp: Timestamp) -> Option<StoredRow>;
        list(partition: PartitionId, from: Offset, limit: usize) -> Vec<RowInfo>;
        sizes(partitions: &[PartitionId]) -> Vec<(PartitionId, u64)>;
        leader_epochs(partition: PartitionId) -> Vec<(i32, Offset)>;
        advance_log_start(partition: PartitionId, epoch: i32, log_start: Offset) -> ();
        trim(partition: PartitionId, epoch: i32, max_bytes: usize) -> u64;
        replace(partition: PartitionId, epoch: i32, rows: Vec<Replacement>) -> ();
    }
}

impl Topics for Scripted {
    pass_on! {
        topics() -> Vec<Topic>;
        topic(name: &str) -> Option<Topic>;
        create_topic(new: NewTopic) -> Topic;
        delete_topic(id: TopicId) -> bool;
        grow_topic(id: TopicId, count: i32) -> Topic;
        configure_topic(id: TopicId, old: &TopicConfig, new: TopicConfig) -> Topic;
    }
}

impl Producers for Scripted {
    pass_on! {
        producer_id_block() -> Range<i64>;
        note_producer(row: ProducerRow) -> ();
        producer(producer_id: i64) -> Option<ProducerRow>;
        forget_producers(before: Timestamp) -> u64;
        transactional(id: &str) -> Option<TransactionalRow>;
        swap_transactional(expected: Option<i64>, row: TransactionalRow) -> ();
        snapshot(partition: PartitionId) -> ProducerSnapshot;
        save_snapshot(partition: PartitionId, epoch: i32, snapshot: ProducerSnapshot) -> ();
    }
}

impl Groups for Scripted {
    pass_on! {
        lead_groups() -> GroupsLed;
        save_group(fence: &GroupFence, row: GroupRow) -> ();
        delete_groups(fence: &GroupFence, ids: &[String]) -> ();
        commit_offsets(fence: &GroupFence, offsets: Vec<(String, CommittedOffset)>) -> ();
        offsets(group: &str) -> Vec<CommittedOffset>;
        groups_with_offsets() -> Vec<(String, Timestamp)>;
        delete_offsets(fence: &GroupFence, group: &str, partitions: &[(TopicId, i32)]) -> ();
    }
}

impl Brokers for Scripted {
    fn cluster_id(&self) -> &str {
        self.inner.cluster_id()
    }

    fn me(&self) -> BrokerId {
        self.inner.me()
    }

    fn lease(&self) -> Option<Duration> {
        self.inner.lease()
    }

    pass_on! {
        join(address: Address) -> ();
        renew() -> ();
        brokers() -> Vec<LiveBroker>;
        leaders() -> Vec<(PartitionId, Option<BrokerId>, i32)>;
        leave() -> ();
    }
}

/// A batch of so many records of a producer.
pub(crate) fn batch_of(producer_id: i64, sequence: i32, count: i32) -> Bytes {
    let builder = crate::batch::BatchBuilder::new().producer(producer_id, 0, sequence);
    let records = (0..count).fold(builder, |builder, index| {
        builder.record(1_000 + i64::from(sequence + index), Some(b"key"), Some(b"a value of some length"))
    });
    records.build().unwrap()
}
