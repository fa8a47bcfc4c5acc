//! What a cell has: a directory, a store, one or two brokers on it, clients at work.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use hapax_services::{Answer, Postgres};
use rustix::process::Signal;

use super::cell::{BrokerCell, Store, Story};
use super::history::{Cleanup, History, Moment, Recorder};
use super::load::{Load, MEMBERS_GROUP};
use super::power::LoopDisk;
use super::process::Broker;
use crate::scenario::disk::SmallDisk;

/// What all cells of a run share.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The program under test.
    pub hapax: PathBuf,
    /// A bug to plant in it.
    pub plant: Option<String>,
    /// Where cells make their directories.
    pub base: PathBuf,
    /// The PostgreSQL server of the cells that leave it alone; started when the first asks for it.
    pub postgres: Arc<Mutex<Option<Arc<Postgres>>>>,
}

impl Environment {
    fn postgres(&self) -> anyhow::Result<Arc<Postgres>> {
        let mut place = self.postgres.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = place.as_ref() {
            return Ok(Arc::clone(server));
        }
        let server = Arc::new(start_postgres()?);
        *place = Some(Arc::clone(&server));
        Ok(server)
    }

    /// The server's version, if a cell needed one.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        let server = self.postgres.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        server.query("SHOW server_version").ok()?.value().map(str::to_owned)
    }
}

/// With fsync: a broker refuses to work on a server without.
fn start_postgres() -> anyhow::Result<Postgres> {
    Postgres::builder()
        .setting("max_connections", "200")
        .setting("shared_buffers", "32MB")
        .start()
        .context("no PostgreSQL")
}

/// Where the log is.
#[derive(Debug)]
pub enum Place {
    /// In a directory.
    Directory(PathBuf),
    /// In a database of a server that others use, too.
    Shared(Arc<Postgres>, String),
    /// In a database of the cell's own server.
    Own(Box<Postgres>, String),
}

impl Place {
    fn take(environment: &Environment, cell: BrokerCell, dir: &Path) -> anyhow::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if cell.store == Store::Embedded {
            let directory = dir.join("store");
            std::fs::create_dir_all(&directory)?;
            return Ok(Self::Directory(directory));
        }
        let name = format!("broker_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let place = match cell.story {
            Story::ServerStopped | Story::DiskFull => Self::Own(Box::new(start_postgres()?), name.clone()),
            Story::Plain
            | Story::RandomKills
            | Story::Point(_)
            | Story::GracefulStops
            | Story::Retention
            | Story::Compaction
            | Story::DeleteRecords
            | Story::MadeAgain
            | Story::Hostile
            | Story::PowerLoss
            | Story::WriterEnded
            | Story::LeaderKilled
            | Story::LeaderStopped
            | Story::StoppedBeforeAppend => Self::Shared(environment.postgres()?, name.clone()),
        };
        place.server()?.query(&format!("CREATE DATABASE {name}"))?;
        Ok(place)
    }

    /// The server.
    ///
    /// # Errors
    /// If there is none.
    pub fn server(&self) -> anyhow::Result<&Postgres> {
        match self {
            Self::Directory(_) => anyhow::bail!("a directory has no server"),
            Self::Shared(server, _) => Ok(server),
            Self::Own(server, _) => Ok(server),
        }
    }

    /// The server, to stop it and start it again.
    ///
    /// # Errors
    /// If it is not the cell's own.
    pub fn own_server(&mut self) -> anyhow::Result<&mut Postgres> {
        match self {
            Self::Directory(_) | Self::Shared(..) => anyhow::bail!("this cell has no server of its own"),
            Self::Own(server, _) => Ok(server),
        }
    }

    fn database(&self) -> Option<&str> {
        match self {
            Self::Directory(_) => None,
            Self::Shared(_, name) | Self::Own(_, name) => Some(name),
        }
    }

    /// As `hapax broker --store` takes it.
    fn argument(&self) -> String {
        match self {
            Self::Directory(path) => path.display().to_string(),
            Self::Shared(server, name) => server.url(name),
            Self::Own(server, name) => server.url(name),
        }
    }

    /// One question to the database.
    ///
    /// # Errors
    /// If there is none, or it says no.
    pub fn ask(&self, sql: &str) -> anyhow::Result<Answer> {
        let mut client = self.server()?.connect(self.database().context("a directory has no database")?)?;
        Ok(client.query(sql)?)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Shared(server, name) = self {
            // What cannot be dropped goes with the server.
            drop(server.query(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")));
        }
    }
}

/// A disk of a cell's own.
#[derive(Debug)]
#[expect(dead_code, reason = "it is held, and goes with the cell")]
pub(super) enum Disk {
    /// One that can be full.
    Small(SmallDisk),
    /// One whose power can be cut.
    Loop(LoopDisk),
}

/// A cell at work.
#[derive(Debug)]
pub struct World {
    /// Its directory.
    pub dir: PathBuf,
    /// Its brokers: the first leads when all live.
    pub brokers: Vec<Broker>,
    /// Its store.
    pub place: Place,
    /// Its clients, from [`World::open`] on.
    pub load: Option<Load>,
    /// Remarks for the report.
    pub remarks: Vec<String>,
    /// What the broker did not do though it must.
    pub complaints: Vec<String>,
    /// Chances.
    pub random: fastrand::Rng,
    /// What the topic lets go; to be said before [`World::open`].
    pub cleanup: Cleanup,
    /// When the topic was deleted, and when it was there again.
    pub made_again: Option<(Moment, Moment)>,
    recorder: Recorder,
    seed: u64,
    /// Goes last: the store may be on it.
    disk: Option<Disk>,
}

impl World {
    /// Makes the directory and the store; no broker lives yet.
    ///
    /// # Errors
    /// If there is no room or no server.
    pub fn new(environment: &Environment, cell: BrokerCell, dir: &Path, seed: u64) -> anyhow::Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let place = Place::take(environment, cell, dir)?;
        let count = match cell.story {
            Story::LeaderKilled | Story::LeaderStopped | Story::StoppedBeforeAppend => 2,
            Story::Plain
            | Story::RandomKills
            | Story::Point(_)
            | Story::GracefulStops
            | Story::DiskFull
            | Story::Retention
            | Story::Compaction
            | Story::DeleteRecords
            | Story::MadeAgain
            | Story::Hostile
            | Story::PowerLoss
            | Story::ServerStopped
            | Story::WriterEnded => 1,
        };
        let (hapax, plant, store) = (&environment.hapax, environment.plant.as_deref(), place.argument());
        let brokers: anyhow::Result<Vec<Broker>> =
            (1..=count).map(|number| Broker::new(hapax, plant, dir, number, &store)).collect();
        let random = fastrand::Rng::with_seed(seed);
        Ok(Self {
            dir: dir.to_owned(),
            brokers: brokers?,
            place,
            load: None,
            remarks: Vec::new(),
            complaints: Vec::new(),
            random,
            cleanup: Cleanup::Nothing,
            made_again: None,
            recorder: Recorder::default(),
            seed,
            disk: None,
        })
    }

    /// Keeps a disk until the cell is over.
    pub(super) fn keep(&mut self, disk: Disk) {
        self.disk = Some(disk);
    }

    /// From their next life on the brokers look every 100 ms what may go, the least that they can be told.
    ///
    /// # Errors
    /// If there is no room.
    pub(super) fn look_often(&self) -> anyhow::Result<()> {
        std::fs::write(self.dir.join("hapax.yaml"), "broker:\n  retentionInterval: 100ms\n")?;
        Ok(())
    }

    /// Starts the brokers, the first with these faults, and the clients.
    ///
    /// # Errors
    /// If they do not start, or make no topic.
    pub fn open(&mut self, faults: &str) -> anyhow::Result<()> {
        for (index, broker) in self.brokers.iter_mut().enumerate() {
            broker.start_and_wait(if index == 0 { faults } else { "" })?;
        }
        let addresses: Vec<String> = self.brokers.iter().map(|broker| broker.address.clone()).collect();
        self.load = Some(Load::start(&addresses, self.seed, self.recorder.clone(), self.cleanup)?);
        Ok(())
    }

    /// The clients.
    ///
    /// # Errors
    /// Before [`World::open`].
    pub fn load(&self) -> anyhow::Result<&Load> {
        self.load.as_ref().context("the clients have not been started")
    }

    /// How many operations have ended so far.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.recorder.count()
    }

    /// After a story that broke off: whoever is stopped goes on, and whoever is dead lives again if it can, so that the
    /// clients can finish.
    pub(super) fn wake_all(&mut self) {
        for broker in &mut self.brokers {
            let lives = broker.child.as_mut().is_some_and(|child| matches!(child.poll(), Ok(None)));
            let woken = match &mut broker.child {
                Some(child) if lives => child.signal(Signal::CONT),
                Some(_) | None => broker.start_and_wait(""),
            };
            if let Err(error) = woken {
                self.complaints.push(format!("{error:#}"));
            }
        }
    }

    /// How many offsets the members of the group have committed.
    #[must_use]
    pub fn commits_of_members(&self) -> usize {
        self.recorder.commits(MEMBERS_GROUP)
    }

    /// Lets the clients finish, and gives the whole history. Afterwards the brokers are ended.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn close(&mut self) -> anyhow::Result<History> {
        let load = self.load.take().context("the clients have not been started")?;
        let (gave_up, log) = load.finish()?;
        self.complaints.extend(gave_up);
        self.brokers.iter_mut().for_each(Broker::kill);
        let starts = log.iter().map(|(partition, (start, _))| (*partition, *start)).collect();
        let log = log.into_iter().map(|(partition, (_, records))| (partition, records)).collect();
        let mut history = History { operations: self.recorder.take(), log, starts, cleanup: self.cleanup };
        if let Some((deleted, made)) = self.made_again {
            history.begin_anew(deleted, made);
        }
        Ok(history)
    }
}
