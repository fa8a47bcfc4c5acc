//! Clients of a broker, each of which writes down what it asks and what comes of it.
//!
//! Invariant: a client never goes on past what it does not know: an idempotent producer tries a batch until it knows, or
//! until the run gives up. Not here: what happens to the broker meanwhile (`story`).

mod consumer;
mod hostile;
mod mark;
mod observer;
mod pipeline;
mod plain;
mod remover;
mod topic;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hapax_kafka::batch::NewRecord;
use hapax_kafka::{Client, ClientError, Options, Outcome as Fate};
use tokio::task::JoinSet;

pub use mark::Mark;

use super::history::{Cleanup, Logged, Moment, Name, Outcome, Recorder};

/// The topic that all write to.
pub const TOPIC: &str = "ledger";
/// Its partitions.
pub const PARTITIONS: i32 = 2;
/// Idempotent producers per partition.
const PRODUCERS: u32 = 2;
/// Producers per broker that never leave it.
const STUBBORN: u32 = 3;
/// The group that has members.
pub const MEMBERS_GROUP: u32 = 1;
/// How many.
const MEMBERS: u32 = 2;

/// What the clients are to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Pace {
    /// Everything.
    Run,
    /// Only the producers that never leave their broker write.
    Stubborn,
    /// Producers send nothing, not even what they do not know yet; what they have sent already is on its way.
    Quiet,
    /// Nothing new; know what is not known yet, and end.
    Finish,
}

/// What all clients of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    addresses: Vec<String>,
    recorder: Recorder,
    pace: AtomicU8,
    seed: u64,
    gave_up: Mutex<Vec<String>>,
    /// How many processes there are.
    processes: AtomicU32,
    /// Odd while the topic is being made anew, one more afterwards.
    generation: AtomicU32,
    cleanup: Cleanup,
    hostile: hostile::Seen,
}

impl Shared {
    fn pace(&self) -> Pace {
        match self.pace.load(Ordering::SeqCst) {
            0 => Pace::Run,
            1 => Pace::Stubborn,
            2 => Pace::Quiet,
            _ => Pace::Finish,
        }
    }

    /// The number of one more process.
    fn process(&self) -> u32 {
        self.processes.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn generation(&self) -> u32 {
        self.generation.load(Ordering::SeqCst)
    }

    fn client(&self, process: u32, answer: Duration) -> Client {
        Client::new(self.addresses.iter().cloned(), self.options(process, answer))
    }

    fn options(&self, process: u32, answer: Duration) -> Options {
        let connect = Duration::from_secs(2);
        Options { client_id: format!("process-{process}"), connect, answer, ..Options::default() }
    }

    /// Something that no client could put right.
    fn give_up(&self, why: String) {
        self.gave_up.lock().unwrap_or_else(PoisonError::into_inner).push(why);
    }
}

/// A record that carries a name, with a value of so many bytes.
fn record(name: Name, size: usize) -> NewRecord {
    NewRecord::of(name.value(size)).with_key(name.key().to_string())
}

/// What is known after an error.
fn outcome_of(error: &ClientError) -> Outcome {
    match error.outcome() {
        Fate::NotDone => Outcome::Fail(error.to_string()),
        Fate::Unknown => Outcome::Unknown(error.to_string()),
    }
}

/// How long clients may take to learn what they do not know yet, once the faults are over.
const FINISH: Duration = Duration::from_secs(60);
/// The log per partition: where it begins, and its records.
pub type Log = BTreeMap<i32, (i64, Vec<Logged>)>;

/// All clients of a run, at work.
#[derive(Debug)]
pub struct Load {
    runtime: tokio::runtime::Runtime,
    tasks: JoinSet<()>,
    shared: Arc<Shared>,
}

impl Load {
    /// Makes the topic, and starts the clients. `addresses`: all brokers, dead or alive.
    ///
    /// # Errors
    /// If the topic cannot be made.
    pub fn start(addresses: &[String], seed: u64, recorder: Recorder, cleanup: Cleanup) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let shared = Arc::new(Shared {
            addresses: addresses.to_vec(),
            recorder,
            pace: AtomicU8::new(Pace::Run as u8),
            seed,
            gave_up: Mutex::default(),
            processes: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            cleanup,
            hostile: hostile::Seen::default(),
        });
        runtime.block_on(topic::make(&shared))?;
        let mut tasks = JoinSet::new();
        let next = || shared.process();
        for partition in 0..PARTITIONS {
            for _ in 0..PRODUCERS {
                tasks.spawn_on(pipeline::run(Arc::clone(&shared), next(), partition), runtime.handle());
            }
            tasks.spawn_on(plain::run(Arc::clone(&shared), next(), partition), runtime.handle());
            tasks.spawn_on(observer::follow(Arc::clone(&shared), next(), partition), runtime.handle());
        }
        for address in addresses {
            tasks.spawn_on(observer::ask(Arc::clone(&shared), next(), address.clone()), runtime.handle());
            for _ in 0..STUBBORN {
                tasks.spawn_on(plain::stubborn(Arc::clone(&shared), next(), address.clone()), runtime.handle());
            }
        }
        for _ in 0..MEMBERS {
            tasks.spawn_on(consumer::run(Arc::clone(&shared), next()), runtime.handle());
        }
        Ok(Self { runtime, tasks, shared })
    }

    /// Sets the pace.
    pub fn pace(&self, pace: Pace) {
        self.shared.pace.store(pace as u8, Ordering::SeqCst);
    }

    /// Waits until so many more batches are known to be there.
    ///
    /// # Errors
    /// If that takes longer than `limit`.
    pub fn wait_appended(&self, more: usize, limit: Duration) -> anyhow::Result<()> {
        let (started, before) = (Instant::now(), self.shared.recorder.appended());
        while self.shared.recorder.appended() < before + more {
            let now = self.shared.recorder.appended() - before;
            anyhow::ensure!(started.elapsed() < limit, "{now} of {more} batches were appended within {limit:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// From now on logs are told to begin later, again and again.
    pub fn remove_records(&mut self) {
        let shared = Arc::clone(&self.shared);
        let process = shared.process();
        self.tasks.spawn_on(remover::run(shared, process), self.runtime.handle());
    }

    /// Makes the topic that readers ask for who do not read.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn fill_large(&self) -> anyhow::Result<()> {
        self.runtime.block_on(hostile::fill(&self.shared))
    }

    /// From now on there are clients that mean harm.
    ///
    /// # Errors
    /// If what they send cannot be made.
    pub fn beset(&mut self) -> anyhow::Result<()> {
        hostile::come(&self.shared, &mut self.tasks, self.runtime.handle())
    }

    /// Waits until each kind of harm was done so many more times.
    ///
    /// # Errors
    /// If that takes too long.
    pub fn wait_harm(&self, more: u32) -> anyhow::Result<()> {
        self.runtime.block_on(hostile::wait(&self.shared, more))
    }

    /// Where the log of partition 0 ends.
    ///
    /// # Errors
    /// If nobody says.
    pub fn end(&self) -> anyhow::Result<i64> {
        self.runtime.block_on(topic::end(&self.shared))
    }

    /// Waits until most of what is between these offsets of partition 0 was removed, superseded.
    ///
    /// # Errors
    /// If that takes too long.
    pub fn wait_compacted(&self, from: i64, upto: i64) -> anyhow::Result<()> {
        self.runtime.block_on(topic::wait_compacted(&self.shared, from, upto))
    }

    /// Removes the topic. When that began.
    ///
    /// # Errors
    /// If nobody removes it.
    pub fn delete_topic(&self) -> anyhow::Result<Moment> {
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        let began = self.shared.recorder.now();
        self.runtime.block_on(topic::delete(&self.shared))?;
        Ok(began)
    }

    /// Makes the topic again. When it was there.
    ///
    /// # Errors
    /// If nobody makes it.
    pub fn make_topic_again(&self) -> anyhow::Result<Moment> {
        self.runtime.block_on(topic::make(&self.shared))?;
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        Ok(self.shared.recorder.now())
    }

    /// Writes one batch that can be sent again later.
    ///
    /// # Errors
    /// If it is not acknowledged.
    pub fn mark(&self) -> anyhow::Result<Mark> {
        self.runtime.block_on(Mark::write(&self.shared))
    }

    /// Sends that batch again, the very same bytes. Its offset.
    ///
    /// # Errors
    /// If it is not acknowledged.
    pub fn send_again(&self, mark: &Mark) -> anyhow::Result<i64> {
        self.runtime.block_on(mark.send(&self.shared))
    }

    /// Waits until the log of partition 0 begins after this offset.
    ///
    /// # Errors
    /// If that takes too long.
    pub fn wait_start_after(&self, offset: i64) -> anyhow::Result<()> {
        self.runtime.block_on(topic::wait_start_after(&self.shared, offset))
    }

    /// How many times a log was told to begin later, and did.
    #[must_use]
    pub fn deletions(&self) -> usize {
        self.shared.recorder.deletions()
    }

    /// Who leads partition 0, as the broker at this address says; `None` if it does not say.
    #[must_use]
    pub fn leader_by(&self, address: &str) -> Option<String> {
        self.runtime.block_on(async {
            let mut client = Client::new([address], self.shared.options(0, Duration::from_secs(2)));
            client.leader_address(TOPIC, 0).await.ok()
        })
    }

    /// Lets everybody finish, and reads the log. What nobody could put right, and the log.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn finish(mut self) -> anyhow::Result<(Vec<String>, Log)> {
        self.pace(Pace::Finish);
        self.runtime.block_on(async {
            let all = async { while self.tasks.join_next().await.is_some() {} };
            // Twice as long as each has been told: whoever is still at work then hangs.
            if tokio::time::timeout(FINISH * 2, all).await.is_err() {
                self.shared.give_up("some clients did not end".to_owned());
                self.tasks.abort_all();
            }
        });
        let log = self.runtime.block_on(topic::read(&self.shared))?;
        let gave_up = std::mem::take(&mut *self.shared.gave_up.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((gave_up, log))
    }
}
