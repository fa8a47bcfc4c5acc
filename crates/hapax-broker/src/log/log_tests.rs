use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;
use tokio::time::timeout;

use super::scripted_store::{Scripted, Step, batch_of};
use super::*;
use crate::batch::{BatchBuilder, Batches, Compression, FirstBatch, Header};
use crate::config::TopicConfig;
use crate::patience::LIMIT;
use crate::rules::producer_error::ProducerError;
use crate::store::{Log, NewTopic, Producers, Topics};

/// Logs over a store in a directory, leading a topic of two partitions.
struct Rig {
    store: Arc<Scripted>,
    logs: Arc<Logs<Scripted>>,
    ids: Vec<PartitionId>,
}

fn config() -> BrokerConfig {
    BrokerConfig { append_queue: 1 << 20, tail_cache: 1 << 20, ..BrokerConfig::default() }
}

impl Rig {
    async fn new(directory: &Path) -> Self {
        let store = Arc::new(Scripted::open(directory).await);
        let new = || NewTopic { name: "t".to_owned(), partitions: 2, config: TopicConfig::default() };
        let ids = match store.topic("t").await.unwrap() {
            Some(topic) => topic.partitions,
            None => store.create_topic(new()).await.unwrap().partitions,
        };
        let logs = Arc::new(Logs::new(Arc::clone(&store), config()));
        let rig = Self { store, logs, ids };
        rig.lead().await;
        rig
    }

    async fn lead(&self) {
        let led = self.store.lead(&self.ids).await.unwrap();
        self.logs.take_over(led).await.unwrap();
    }

    fn partition(&self, index: usize) -> Arc<Partition> {
        self.logs.partition(self.ids[index]).unwrap()
    }

    async fn submit(&self, index: usize, bytes: Bytes) -> Pending {
        self.submit_at(index, bytes, Time::Kept).await
    }

    async fn submit_at(&self, index: usize, bytes: Bytes, time: Time) -> Pending {
        let header = Header::read(&bytes).unwrap();
        let room = self.logs.room(bytes.len()).await;
        self.logs.append(NewBatch { partition: self.partition(index), bytes, header, time, held: None }, &room)
    }

    async fn append(&self, index: usize, bytes: Bytes) -> Result<Offset, AppendError> {
        let pending = self.submit(index, bytes).await;
        pending.outcome().await.map(|written| written.base_offset)
    }

    async fn read(&self, index: usize, from: Offset, max_bytes: usize) -> Bytes {
        let partition = self.partition(index);
        let end = partition.end();
        self.logs.read(&partition, from, end, max_bytes, FirstBatch::Always).await.unwrap()
    }
}

impl Rig {
    /// Everything, piece by piece.
    async fn read_all(&self, index: usize) -> Vec<u8> {
        let (mut all, mut next) = (Vec::new(), 0);
        while next < self.partition(index).end() {
            let piece = self.read(index, next, 10_000).await;
            next = headers(&piece).last().unwrap().last_offset() + 1;
            all.extend_from_slice(&piece);
        }
        all
    }
}

fn headers(bytes: &[u8]) -> Vec<Header> {
    Batches::new(bytes).map(|batch| batch.unwrap().1).collect()
}

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Goal: offsets are dense and in order, and what is read is what was written. Method: many batches from several tasks into
/// two partitions; then read all, from the tail and from the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_are_dense_and_records_come_back() {
    let place = directory();
    let rig = Arc::new(Rig::new(place.path()).await);
    let mut tasks = Vec::new();
    for producer in 0..4 {
        let rig = Arc::clone(&rig);
        tasks.push(tokio::spawn(async move {
            let mut last = -1;
            for index in 0..50 {
                let offset = rig.append(producer as usize % 2, batch_of(producer, index * 3, 3)).await.unwrap();
                assert!(offset > last, "a producer's batches keep their order");
                last = offset;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let commits = rig.store.commits().len();
    assert!(commits < 200, "{commits} commits for 200 batches: whatever waits goes together");
    for index in 0..2 {
        let partition = rig.partition(index);
        assert_eq!((partition.end(), partition.last_stable(), partition.log_start()), (300, 300, 0));
        let tail = rig.read_all(index).await;
        rig.logs.shared.cache.forget(&partition);
        assert_eq!(rig.logs.shared.cache.bytes() > 0, index == 0);
        let stored = rig.read_all(index).await;
        assert!(tail == stored);
        let mut next = 0;
        for header in headers(&tail) {
            assert_eq!((header.base_offset, header.leader_epoch), (next, partition.epoch()));
            next = header.last_offset() + 1;
        }
        assert_eq!(next, 300);
    }
}

/// Goal: a commit whose answer is lost makes us a stranger, and the retry finds its batch. Method: written, then in doubt.
#[tokio::test]
async fn after_a_lost_answer_the_retry_is_recognised() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    assert_eq!(rig.append(0, batch_of(7, 0, 2)).await, Ok(0));
    let mut trouble = rig.logs.trouble();
    let old = rig.partition(0);
    rig.store.next(Step::WriteAndFail(StoreError::InDoubt("the line was cut".to_owned())));
    assert_eq!(rig.append(0, batch_of(7, 2, 2)).await, Err(AppendError::NotLeader));
    assert_eq!(trouble.borrow_and_update().lost, 1);
    assert!(!old.is_led() && rig.logs.partitions().is_empty());
    assert_eq!(rig.logs.acknowledged(rig.ids[0]), Some(2), "the second batch was never acknowledged");
    rig.lead().await;
    assert_eq!(rig.partition(0).end(), 4);
    assert_eq!(rig.append(0, batch_of(7, 2, 2)).await, Ok(2), "the retry finds the first try");
    assert_eq!(rig.append(0, batch_of(7, 4, 1)).await, Ok(4));
    assert_eq!(rig.partition(0).epoch(), old.epoch() + 1);
}

/// Goal: a commit that was not written leaves nothing behind. Method: in doubt, away and full, nothing written; then retry.
#[tokio::test]
async fn a_failed_commit_is_thrown_away_whole() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let steps = [
        (StoreError::InDoubt("cut".to_owned()), AppendError::NotLeader),
        (StoreError::Away("gone".to_owned()), AppendError::NotLeader),
        (StoreError::Full("disk".to_owned()), AppendError::Storage("the store is full: disk".to_owned())),
    ];
    for (index, (error, expected)) in steps.into_iter().enumerate() {
        let sequence = index as i32;
        rig.store.next(Step::Fail(error));
        assert_eq!(rig.append(0, batch_of(7, sequence, 1)).await, Err(expected));
        if rig.logs.partitions().is_empty() {
            rig.lead().await;
        }
        assert_eq!(rig.partition(0).end(), i64::from(sequence));
        assert_eq!(rig.append(0, batch_of(7, sequence, 1)).await, Ok(i64::from(sequence)));
    }
    assert_eq!(rig.logs.trouble().borrow().stop, None);
    rig.store.next(Step::Fail(StoreError::Broken("fsync".to_owned())));
    assert!(matches!(rig.append(0, batch_of(7, 3, 1)).await, Err(AppendError::Storage(_))));
    assert!(rig.logs.trouble().borrow().stop.is_some());
}

/// Goal: a partition that another leads is left out, the others of the commit go on. Method: raise one epoch behind its back.
#[tokio::test]
async fn a_refused_partition_does_not_touch_the_others() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    rig.store.lead(&rig.ids[..1]).await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    rig.store.next(Step::Hold(Arc::clone(&gate)));
    // The first commit holds the appender, so that the next two batches go into one.
    let first = rig.submit(1, batch_of(1, 0, 1)).await;
    rig.store.reached().await;
    let refused = rig.submit(0, batch_of(2, 0, 1)).await;
    let written = rig.submit(1, batch_of(1, 1, 1)).await;
    gate.add_permits(1);
    assert_eq!(first.outcome().await.unwrap().base_offset, 0);
    assert_eq!(refused.outcome().await, Err(AppendError::NotLeader));
    assert_eq!(written.outcome().await.unwrap().base_offset, 1);
    assert!(rig.logs.partition(rig.ids[0]).is_none());
    assert!(rig.logs.partition(rig.ids[1]).is_some());
    assert_eq!(rig.logs.trouble().borrow().lost, 1);
}

/// Goal: a retry that comes while its batch is in flight gets the same offset, and nothing is written twice. Method: hold the
/// commit, send the same batch twice more, and one out of order.
#[tokio::test]
async fn a_retry_in_flight_is_judged_after_it_is_durable() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    rig.store.next(Step::Hold(Arc::clone(&gate)));
    let first = rig.submit(0, batch_of(7, 0, 2)).await;
    rig.store.reached().await;
    let again = rig.submit(0, batch_of(7, 0, 2)).await;
    let next = rig.submit(0, batch_of(7, 2, 2)).await;
    let next_again = rig.submit(0, batch_of(7, 2, 2)).await;
    let early = rig.submit(0, batch_of(7, 9, 1)).await;
    assert_eq!(rig.partition(0).end(), 0, "nothing is visible before it is durable");
    gate.add_permits(1);
    let first = first.outcome().await.unwrap();
    let again = again.outcome().await.unwrap();
    assert_eq!((first.base_offset, again.base_offset), (0, 0));
    assert_eq!((first.append_time, again.append_time), (-1, 1_001), "a repeated batch tells its own timestamp");
    assert_eq!(next.outcome().await.unwrap().base_offset, 2);
    assert_eq!(next_again.outcome().await.unwrap().base_offset, 2);
    let refused = ProducerError::OutOfOrderSequence { producer_id: 7, sequence: 9, expected: 4 };
    assert_eq!(early.outcome().await, Err(AppendError::Producer(refused)));
    assert_eq!(rig.partition(0).end(), 4);
    assert_eq!(rig.store.commits().len(), 2);
}

/// Goal: retries are recognised after a restart, after a snapshot, and after every row is gone. Method: reopen the store.
#[tokio::test]
async fn a_retry_is_recognised_after_restart_snapshot_and_retention() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    for sequence in 0..7 {
        rig.append(0, batch_of(7, sequence, 1)).await.unwrap();
    }
    drop(rig);
    let rig = Rig::new(place.path()).await;
    assert_eq!(rig.append(0, batch_of(7, 4, 1)).await, Ok(4), "by the headers alone");
    let partition = rig.partition(0);
    let (appended, _) = partition.since_snapshot();
    let snapshot = partition.snapshot();
    assert_eq!(snapshot.upto, 7);
    rig.store.save_snapshot(partition.id, partition.epoch(), snapshot).await.unwrap();
    partition.note_snapshot(7, appended);
    rig.append(0, batch_of(7, 7, 1)).await.unwrap();
    assert_eq!(partition.since_snapshot().1, 7);
    rig.store.advance_log_start(partition.id, partition.epoch(), 8).await.unwrap();
    while rig.store.trim(partition.id, partition.epoch(), 1 << 20).await.unwrap() > 0 {}
    drop((partition, rig));
    let rig = Rig::new(place.path()).await;
    assert_eq!(rig.partition(0).log_start(), 8);
    for (sequence, offset) in [(3, 3), (6, 6), (7, 7)] {
        assert_eq!(rig.append(0, batch_of(7, sequence, 1)).await, Ok(offset), "by snapshot and headers");
    }
    assert!(
        matches!(rig.append(0, batch_of(7, 2, 1)).await, Err(AppendError::Producer(_))),
        "the sixth last is too old"
    );
    assert_eq!(rig.append(0, batch_of(7, 8, 1)).await, Ok(8));
    assert_eq!(rig.partition(0).expire_producers(i64::MAX), 1);
    assert_eq!(rig.partition(0).producer_count(), 0);
}

/// Goal: a topic made anew under the same name inherits nothing. Method: delete, create, produce from any sequence.
#[tokio::test]
async fn a_topic_made_anew_inherits_nothing() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    rig.append(0, batch_of(7, 0, 5)).await.unwrap();
    let old = rig.partition(0);
    let topic = rig.store.topic("t").await.unwrap().unwrap();
    rig.store.delete_topic(topic.id).await.unwrap();
    rig.logs.forget(&topic.partitions).await;
    assert!(!old.is_led());
    drop(rig);
    let rig = Rig::new(place.path()).await;
    assert_eq!((rig.partition(0).end(), rig.partition(0).producer_count()), (0, 0));
    assert_eq!(rig.append(0, batch_of(7, 0, 5)).await, Ok(0), "not a retry: nothing is known");
    assert_eq!(rig.append(0, batch_of(7, 5, 1)).await, Ok(5));
}

/// Goal: whole batches, from the one that holds the offset, the first always. Method: several limits, tail and store.
#[tokio::test]
async fn a_read_gets_whole_batches_up_to_its_limit() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    for index in 0..10 {
        rig.append(0, batch_of(7, index * 2, 2)).await.unwrap();
    }
    let size = batch_of(7, 0, 2).len();
    for _ in 0..2 {
        for (from, max, expected) in [
            (0, usize::MAX, (0..10).collect::<Vec<_>>()),
            (0, 0, vec![0]),
            (1, size - 1, vec![0]),
            (5, size * 3, vec![2, 3, 4]),
            (5, size * 3 - 1, vec![2, 3]),
            (19, usize::MAX, vec![9]),
            (20, usize::MAX, vec![]),
        ] {
            let found = headers(&rig.read(0, from, max).await);
            let bases: Vec<_> = found.iter().map(|header| header.base_offset / 2).collect();
            assert_eq!(bases, expected, "from {from}, {max} bytes");
        }
        let partition = rig.partition(0);
        let none = rig.logs.read(&partition, 4, 20, size - 1, FirstBatch::IfItFits).await.unwrap();
        assert!(none.is_empty());
        let below = rig.logs.read(&partition, 4, 8, usize::MAX, FirstBatch::Always).await.unwrap();
        assert_eq!(headers(&below).len(), 2);
        rig.logs.shared.cache.forget(&partition);
    }
}

/// Goal: the tail stays within its bytes, and what fell out is still read. Method: more than it holds, into two partitions.
#[tokio::test]
async fn the_tail_forgets_the_oldest() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let value = vec![b'x'; 100 << 10];
    for index in 0..30 {
        let batch = BatchBuilder::new().record(index, None, Some(&value)).build().unwrap();
        rig.append((index % 2) as usize, batch).await.unwrap();
        assert!(rig.logs.shared.cache.bytes() <= 1 << 20);
    }
    let partition = rig.partition(0);
    assert!(rig.logs.shared.cache.read(&partition, 0, 1).is_none());
    assert_eq!(headers(&rig.read(0, 0, usize::MAX).await).len(), 15);
    rig.logs.give_up().await;
    assert_eq!(rig.logs.shared.cache.bytes(), 0);
}

/// Goal: one who waits learns of an append, of the end of leading, and of nothing else. Method: two partitions.
#[tokio::test]
async fn a_reader_is_woken_by_an_append_and_by_the_end() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let short = Duration::from_millis(50);
    let long = LIMIT;
    let waiter = Waiter::new([rig.partition(0)].iter());
    rig.append(1, batch_of(7, 0, 1)).await.unwrap();
    assert!(timeout(short, waiter.changed()).await.is_err());
    rig.append(0, batch_of(7, 0, 1)).await.unwrap();
    timeout(long, waiter.changed()).await.unwrap();
    rig.logs.give_up().await;
    timeout(long, waiter.changed()).await.unwrap();
    drop(waiter);
    assert!(rig.logs.partitions().is_empty());
}

/// Goal: the queue is bounded. Method: two requests fill it while a commit is held; the third waits for an answer.
#[tokio::test]
async fn a_full_queue_stops_the_next_request() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let gate = Arc::new(Semaphore::new(0));
    rig.store.next(Step::Hold(Arc::clone(&gate)));
    let big = BatchBuilder::new().record(0, None, Some(&vec![0; 700 << 10])).build().unwrap();
    let first = rig.submit(0, big).await;
    let waiting = rig.logs.room(400 << 10);
    tokio::pin!(waiting);
    assert!(timeout(Duration::from_millis(50), &mut waiting).await.is_err());
    gate.add_permits(1);
    first.outcome().await.unwrap();
    timeout(LIMIT, waiting).await.unwrap();
    // One request that is larger than the queue takes all of it.
    timeout(LIMIT, rig.logs.room(usize::MAX)).await.unwrap();
}

/// Goal: append time and corrected timestamps are written in, with a right checksum. Method: read the batches back.
#[tokio::test]
async fn times_are_written_in() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let before = now();
    let written = rig.submit_at(0, batch_of(7, 0, 3), Time::Append).await.outcome().await.unwrap();
    assert!((before..=now()).contains(&written.append_time));
    let kept = rig.submit_at(0, batch_of(7, 3, 1), Time::Corrected(77)).await.outcome().await.unwrap();
    assert_eq!(kept.append_time, -1);
    let found = rig.read(0, 0, usize::MAX).await;
    let batches = headers(&found);
    assert!(batches[0].is_append_time());
    assert_eq!((batches[0].max_timestamp, batches[1].max_timestamp), (written.append_time, 77));
    for batch in Batches::new(&found) {
        let (range, header) = batch.unwrap();
        assert_eq!(crate::batch::crc_of(&found[range]), header.crc);
    }
    assert_eq!(rig.partition(0).high_timestamp(), written.append_time);
}

/// Goal: records are found by time, whatever their compression, and only those that readers may have. Method: times that go
/// up and down, then a later log start.
#[tokio::test]
async fn records_are_found_by_time() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let times = [[100, 110, 105], [90, 95, 300], [200, 210, 220], [50, 60, 70]];
    for (index, times) in times.iter().enumerate() {
        let builder = BatchBuilder::new().compression(Compression::ALL[index]);
        let batch = times.iter().fold(builder, |builder, time| builder.record(*time, None, None)).build().unwrap();
        rig.append(0, batch).await.unwrap();
    }
    let partition = rig.partition(0);
    let epoch = partition.epoch();
    for (time, offset, found) in [(0, 0, 100), (101, 1, 110), (110, 1, 110), (111, 5, 300), (300, 5, 300)] {
        let found = Found { offset, timestamp: found, leader_epoch: epoch };
        assert_eq!(rig.logs.seek(&partition, time).await, Ok(Some(found)), "{time}");
    }
    assert_eq!(rig.logs.seek(&partition, 301).await, Ok(None));
    assert_eq!(rig.logs.newest(&partition).await.unwrap().unwrap().offset, 5);
    // The record with the greatest timestamp is gone.
    partition.advance_log_start(6);
    assert_eq!(rig.logs.seek(&partition, 100).await.unwrap().unwrap().offset, 6);
    assert_eq!(rig.logs.seek(&partition, 215).await.unwrap().unwrap().offset, 8);
    assert_eq!(rig.logs.seek(&partition, 250).await, Ok(None));
    assert_eq!(rig.logs.newest(&partition).await.unwrap().unwrap().timestamp, 220);
    partition.advance_log_start(12);
    assert_eq!(rig.logs.newest(&partition).await, Ok(None));
}

/// Goal: compressed records that nobody can read do not stop a search by time. Method: noise that says it is gzip.
#[tokio::test]
async fn a_batch_that_cannot_be_read_stands_for_its_records() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let sound = BatchBuilder::new().record(500, None, Some(b"noise that is no gzip stream")).build().unwrap();
    let mut noise = sound.to_vec();
    noise[22] = 1;
    crate::batch::set_max_timestamp(&mut noise, 500);
    rig.append(0, batch_of(7, 0, 2)).await.unwrap();
    rig.append(0, noise.into()).await.unwrap();
    let partition = rig.partition(0);
    let found = Found { offset: 2, timestamp: 500, leader_epoch: partition.epoch() };
    assert_eq!(rig.logs.seek(&partition, 1_002).await, Ok(None));
    partition.advance_log_start(2);
    assert_eq!(rig.logs.seek(&partition, 400).await, Ok(Some(found)));
    assert_eq!(rig.logs.newest(&partition).await, Ok(Some(found)));
}

/// Goal: epochs under which nothing was written are not told. Method: lead three times, write after the first and third.
#[tokio::test]
async fn epochs_without_records_are_left_out() {
    let place = directory();
    let rig = Rig::new(place.path()).await;
    let first = rig.partition(0).epoch();
    rig.append(0, batch_of(7, 0, 4)).await.unwrap();
    rig.lead().await;
    rig.lead().await;
    let partition = rig.partition(0);
    assert_eq!(partition.epoch(), first + 2);
    assert_eq!(rig.logs.epochs(&partition).await.unwrap(), [(first, 0), (first + 2, 4)]);
    assert_eq!(rig.logs.served(), rig.ids.iter().map(|id| (*id, first + 2)).collect());
}

/// Goal: producer ids are never given out twice. Method: more than a block, and a second broker's after a restart.
#[tokio::test]
async fn producer_ids_are_new() {
    let place = directory();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..2 {
        let rig = Rig::new(place.path()).await;
        for _ in 0..1_200 {
            assert!(seen.insert(rig.logs.new_producer_id().await.unwrap()));
        }
    }
}
