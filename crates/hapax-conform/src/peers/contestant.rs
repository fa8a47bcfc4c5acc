//! Who is measured: our broker as a process of its own on either store, and Apache Kafka with and without an fsync per append.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use hapax_services::{Kafka, Postgres};

/// The memory that Kafka's own start script gives it.
const HEAP: &str = "1g";
/// Of Linux, per second, on every machine that we know.
const TICKS: f64 = 100.0;
const PATIENCE: Duration = Duration::from_secs(60);

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
                let ours = Ours::start(hapax, "embedded")?;
                (ours.address.clone(), Keeper::Ours(ours, None))
            }
            Self::Postgres => {
                let database = Postgres::builder().start()?;
                started = Instant::now();
                let ours = Ours::start(hapax, &database.url("postgres"))?;
                (ours.address.clone(), Keeper::Ours(ours, Some(database)))
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
    Ours(Ours, Option<Postgres>),
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
            Keeper::Ours(ours, _) => Some(ours.child.id()),
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

/// `hapax broker` in a folder of its own.
#[derive(Debug)]
struct Ours {
    address: String,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Ours {
    fn start(hapax: &Path, store: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let text =
            format!("broker: {{ listen: \"{address}\", store: \"{store}\", data: data, retentionInterval: 1s }}\n");
        std::fs::write(folder.path().join("hapax.yaml"), text)?;
        let log: PathBuf = folder.path().join("log");
        let mut command = Command::new(hapax);
        command.arg("broker").current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(&log)?);
        let child = command.spawn().with_context(|| format!("{} does not start", hapax.display()))?;
        let mut ours = Self { address, child, _folder: folder };
        let started = Instant::now();
        while TcpStream::connect(&ours.address).is_err() {
            if let Some(status) = ours.child.try_wait()? {
                bail!("hapax broker ended with {status}: {}", std::fs::read_to_string(&log)?);
            }
            ensure!(started.elapsed() < PATIENCE, "hapax broker took no connection within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(ours)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
