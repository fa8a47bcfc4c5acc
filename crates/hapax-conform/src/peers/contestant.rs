//! Who is measured: our broker as a process of its own on either store, and Apache Kafka with and without an fsync per append.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use hapax_services::{Kafka, Postgres};

use crate::program::Program;

/// The memory that Kafka's own start script gives it.
const HEAP: &str = "1g";
/// Of Linux, per second, on every machine that we know.
const TICKS: f64 = 100.0;
/// As often as Kafka is told to look.
const RETENTION: &str = "retentionInterval: 1s";

/// Who takes part, in the order of the table's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Ours, in one file.
    Embedded,
    /// Ours, on PostgreSQL with the settings it is delivered with.
    Postgres,
    /// Apache Kafka, told to be as durable as we are: an fsync before every answer.
    KafkaSynced,
    /// Apache Kafka as it comes: the system writes when it likes.
    Kafka,
}

impl Who {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Embedded, Self::Postgres, Self::KafkaSynced, Self::Kafka];

    /// The name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Embedded => "ours, embedded",
            Self::Postgres => "ours, PostgreSQL",
            Self::KafkaSynced => "Kafka, fsync per append",
            Self::Kafka => "Kafka, no fsync",
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// If it cannot be had or does not start.
    pub fn start(self, hapax: &Path) -> Result<Running> {
        let mut started = Instant::now();
        let kafka = || Kafka::builder().heap(HEAP).setting("log.retention.check.interval.ms", "1000");
        let (address, keeper) = match self {
            Self::Embedded => {
                let ours = Program::start(hapax, "embedded", RETENTION)?;
                (ours.address().to_string(), Keeper::Ours(ours, None))
            }
            Self::Postgres => {
                let database = Postgres::builder().start()?;
                started = Instant::now();
                let ours = Program::start(hapax, &database.url("postgres"), RETENTION)?;
                (ours.address().to_string(), Keeper::Ours(ours, Some(database)))
            }
            Self::KafkaSynced => {
                let server = kafka().setting("log.flush.interval.messages", "1").start()?;
                (server.bootstrap(), Keeper::Kafka(server))
            }
            Self::Kafka => {
                let server = kafka().start()?;
                (server.bootstrap(), Keeper::Kafka(server))
            }
        };
        Ok(Running { who: self, address, keeper, start: started.elapsed() })
    }
}

/// One that runs until it is dropped.
#[derive(Debug)]
pub struct Running {
    /// Which one.
    pub who: Who,
    /// Where it listens.
    pub address: String,
    /// How long it took until it listened; a database ran before.
    pub start: Duration,
    keeper: Keeper,
}

#[derive(Debug)]
enum Keeper {
    // In this order: the broker ends before its database.
    Ours(Program, Option<Postgres>),
    Kafka(Kafka),
}

impl Running {
    /// Its resident memory now, in MiB; of the broker, not of its database.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn resident(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// The processor time that it has used so far, in seconds; of the broker, not of its database.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn processor(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()?))?;
        // Its name, which may hold anything, stands in brackets; user and system time are the 12th and 13th after it.
        let fields = stat.rsplit_once(')').context("no name")?.1.split_whitespace().skip(11).take(2);
        let ticks = fields.map(str::parse::<f64>).sum::<Result<f64, _>>()?;
        Ok(ticks / TICKS)
    }

    fn pid(&self) -> Result<u32> {
        let pid = match &self.keeper {
            Keeper::Ours(ours, _) => Some(ours.pid()),
            Keeper::Kafka(server) => server.pid(),
        };
        pid.context("it does not run")
    }

    /// The database beneath, if there is one.
    #[must_use]
    pub const fn database(&self) -> Option<&Postgres> {
        match &self.keeper {
            Keeper::Ours(_, database) => database.as_ref(),
            Keeper::Kafka(_) => None,
        }
    }
}
