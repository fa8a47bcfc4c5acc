//! Clients of a broker, each of which writes down what it asks and what comes of it.
//!
//! Invariant: a client never goes on past what it does not know: an idempotent producer tries a batch until it knows, or
//! until the run gives up. Not here: what happens to the broker meanwhile (`story`).

mod consumer;
mod observer;
mod pipeline;
mod plain;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hapax_kafka::{At, Client, ClientError, Options, Outcome as Fate};
use kafka_protocol::error::ResponseError;
use tokio::task::JoinSet;

use super::history::{Logged, Name, Outcome, Recorder};

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

/// What is known after an error.
fn outcome_of(error: &ClientError) -> Outcome {
    match error.outcome() {
        Fate::NotDone => Outcome::Fail(error.to_string()),
        Fate::Unknown => Outcome::Unknown(error.to_string()),
    }
}

/// How long clients may take to learn what they do not know yet, once the faults are over.
const FINISH: Duration = Duration::from_secs(60);
/// How long a topic may be unknown to a broker that has just started.
const GONE: Duration = Duration::from_secs(10);

/// The log per partition.
pub type Log = BTreeMap<i32, Vec<Logged>>;

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
    pub fn start(addresses: &[String], seed: u64, recorder: Recorder) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let shared = Arc::new(Shared {
            addresses: addresses.to_vec(),
            recorder,
            pace: AtomicU8::new(Pace::Run as u8),
            seed,
            gave_up: Mutex::default(),
        });
        runtime.block_on(make_topic(&shared))?;
        let mut tasks = JoinSet::new();
        let mut process = 0;
        let mut next = || {
            process += 1;
            process
        };
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
        let log = self.runtime.block_on(read_log(&self.shared))?;
        let gave_up = std::mem::take(&mut *self.shared.gave_up.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((gave_up, log))
    }
}

async fn make_topic(shared: &Shared) -> anyhow::Result<()> {
    let until = Instant::now() + FINISH;
    let mut client = shared.client(0, Duration::from_secs(10));
    loop {
        let made = client.create_topic(TOPIC, PARTITIONS, &[]).await;
        let there = match &made {
            Ok(()) => true,
            Err(error) => error.code() == Some(ResponseError::TopicAlreadyExists),
        };
        if there && client.offset(TOPIC, PARTITIONS - 1, At::End).await.is_ok() {
            return Ok(());
        }
        if Instant::now() > until {
            made.context("the topic could not be made")?;
            anyhow::bail!("the topic was made, and nobody led it");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn read_log(shared: &Shared) -> anyhow::Result<Log> {
    let mut log = Log::new();
    for partition in 0..PARTITIONS {
        let (soon, until) = (Instant::now() + GONE, Instant::now() + FINISH);
        let records = loop {
            match read_partition(shared, partition).await {
                Ok(records) => break records,
                // The topic itself is gone, and all that was in it.
                Err(error) if error.code() == Some(ResponseError::UnknownTopicOrPartition) && Instant::now() > soon => {
                    break Vec::new();
                }
                Err(error) if !error.is_retriable() || Instant::now() > until => {
                    return Err(error).context("the log could not be read at the end");
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        log.insert(partition, records);
    }
    Ok(log)
}

async fn read_partition(shared: &Shared, partition: i32) -> Result<Vec<Logged>, ClientError> {
    let mut client = shared.client(0, Duration::from_secs(10));
    let end = client.offset(TOPIC, partition, At::End).await?;
    let (mut records, mut next) = (Vec::new(), 0);
    while next < end {
        let fetched = client.fetch((TOPIC, partition), next, Duration::from_secs(5), 4 << 20).await?;
        let before = next;
        for batch in fetched.batches {
            let leader_epoch = batch.leader_epoch;
            let logged = |record: hapax_kafka::records::FetchedRecord| Logged {
                offset: record.offset,
                name: record.value.as_deref().and_then(Name::read),
                leader_epoch,
            };
            let fresh = batch.records.into_iter().filter(|record| record.offset >= before.max(next));
            records.extend(fresh.map(logged));
            next = next.max(batch.last_offset + 1);
        }
        if next == before {
            let reason = format!("nothing at {next}, and the end is {end}");
            return Err(ClientError::Malformed { address: format!("{TOPIC}-{partition}"), reason });
        }
    }
    Ok(records)
}
