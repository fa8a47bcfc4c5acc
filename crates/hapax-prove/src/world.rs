//! A cell's own directory: configuration, input, target, logs; and what happened in it.
//!
//! Invariant: every process started here is a child of a [`Child`] and dies with it; nothing outside the directory
//! is written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::Signal;

use crate::check::doubt::Doubt;
use crate::check::history::{Found, History, Moment, Outcome, Sample};
use crate::check::{Anomaly, Finding, Terms, judge};
use crate::child::{Child, Exit};
use crate::config::Config;
use crate::database::Database;
use crate::ddl;
use crate::feed::{Feeder, Pace, append};
use crate::launch::{Launch, fault_log, last_words};
use crate::lodging::Lodging;
use crate::observe::{self, Eyes, Subject};
use crate::proxy::Proxy;
use crate::reader::{Reader, SharedHistory, note};
use crate::servers::{Need, Servers, WORKER};
use crate::setting::{Guarantee, Place, Setting};
use crate::truth::Truth;
use crate::workload::{Mix, PAIRS, inputs};

/// How long anything may take that should take a second or two: machines have bad minutes.
pub const SOON: Duration = Duration::from_secs(60);
/// The lease that workers are configured with.
pub const LEASE: Duration = Duration::from_millis(1500);

/// What all cells share.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The program under test.
    pub hapax: PathBuf,
    /// A bug to plant in it.
    pub plant: Option<String>,
    /// Where cells make their directories.
    pub base: PathBuf,
    /// PostgreSQL and MariaDB, for the cells that need them.
    pub servers: Arc<Servers>,
}

/// A cell's directory and everything in it.
#[derive(Debug)]
pub struct World {
    /// The directory.
    pub dir: PathBuf,
    /// What is promised.
    pub setting: Setting,
    /// What must be true.
    pub truth: Truth,
    /// How many inputs have been written.
    pub fed: usize,
    /// What the configuration file says.
    pub config: Config,
    /// Remarks for the report.
    pub remarks: Vec<String>,
    /// What is judged strictly even under a weak guarantee.
    pub trouble: Trouble,
    environment: Environment,
    history: SharedHistory,
    findings: Vec<Finding>,
    started: u32,
    proxy: Option<Proxy>,
    lodging: Option<Lodging>,
}

impl World {
    /// Makes the directory, the target and the configuration, and an input of `count` lines of which none is written.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn new(
        environment: &Environment,
        dir: &Path,
        setting: Setting,
        (mix, need): (Mix, Need),
        seed: u64,
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let lodging =
            setting.stack.has_server().then(|| Lodging::take(&environment.servers, need, setting.stack)).transpose()?;
        let count = 2400;
        let transform = (mix == Mix::Paired).then_some(PAIRS);
        let world = Self {
            dir: dir.to_owned(),
            setting,
            truth: Truth::new(setting.shape, inputs(setting.shape, mix, count, seed)),
            fed: 0,
            config: Config { transform, ..Config::new(setting, LEASE) },
            remarks: Vec::new(),
            trouble: Trouble::Some,
            environment: environment.clone(),
            history: Arc::default(),
            findings: Vec::new(),
            started: 0,
            proxy: None,
            lodging,
        };
        world.write_config()?;
        world.make_target()?;
        std::fs::write(world.input(), "")?;
        Ok(world)
    }

    /// The input file.
    #[must_use]
    pub fn input(&self) -> PathBuf {
        self.dir.join("input.jsonl")
    }

    /// The target database.
    #[must_use]
    pub fn target(&self) -> Database {
        match &self.lodging {
            None => Database::File(self.dir.join(&self.config.target)),
            Some(lodging) => lodging.target(),
        }
    }

    /// The state store.
    #[must_use]
    pub fn state(&self) -> Database {
        let at_server = self.lodging.as_ref().and_then(Lodging::state);
        at_server.unwrap_or_else(|| Database::File(self.dir.join("state.db")))
    }

    /// The server that the cell's databases are on.
    ///
    /// # Errors
    /// If they are files.
    pub fn lodging(&mut self) -> anyhow::Result<&mut Lodging> {
        self.lodging.as_mut().context("this cell has no server")
    }

    /// The wire between workers and the target, which is there from the first time somebody asks for it.
    ///
    /// # Errors
    /// If there is no server, or no wire can be laid.
    pub fn wire(&mut self) -> anyhow::Result<&Proxy> {
        if self.proxy.is_none() {
            let (port, engine) = (self.lodging()?.server.port(), self.target().engine());
            self.proxy = Some(Proxy::start(engine, port, &self.dir.join("proxy.log"))?);
            self.write_config()?;
        }
        self.proxy.as_ref().context("it was laid just now")
    }

    /// Makes the user's tables in the target.
    ///
    /// # Errors
    /// What the database says.
    pub fn make_target(&self) -> anyhow::Result<()> {
        self.target().execute(&ddl::tables(self.setting.shape, self.target().engine()))
    }

    /// Has Hapax make its own tables, where it does not do that by itself.
    ///
    /// # Errors
    /// If it does not end.
    pub fn set_up(&mut self) -> anyhow::Result<()> {
        if self.setting.stack.has_server() {
            let mut child = self.launch("sets-up", &["setup", "--yes"]).start()?;
            self.expect(&mut child, Exit::Code(0))?;
        }
        Ok(())
    }

    /// Writes `hapax.yaml`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_config(&self) -> anyhow::Result<()> {
        let target = url(&self.target(), self.proxy.as_ref().map(Proxy::port));
        let state = url(&self.state(), None).unwrap_or_else(|| "sqlite://state.db".to_owned());
        let text = self.config.text(self.setting, target.as_deref(), &state);
        Ok(std::fs::write(self.dir.join("hapax.yaml"), text)?)
    }

    /// From here on an epoch closes only when it is full or the input ends, however slowly it is read: what one holds is
    /// the same on every machine.
    ///
    /// # Errors
    /// If the configuration cannot be written.
    pub fn epochs_close_when_full(&mut self) -> anyhow::Result<()> {
        self.config.epoch_interval = Duration::from_secs(600);
        self.write_config()
    }

    /// Keeps what is in the server's databases beside the logs: they go away with the cell.
    pub fn dump(&self) {
        for database in [self.target(), self.state()] {
            // For whoever looks into a failed cell; without it there are still the logs.
            drop(dump(&database, &self.dir));
        }
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(crate) fn note(&self, moment: Moment) {
        note(&self.history, moment);
    }

    /// Prepares a process of the program under test.
    pub fn launch<'a>(&'a mut self, name: &str, arguments: &[&str]) -> Launch<'a> {
        self.started += 1;
        let name = format!("{}-{name}", self.started);
        let arguments = arguments.iter().map(|a| (*a).to_owned()).chain(["-c".into(), "hapax.yaml".into()]).collect();
        Launch::new(self, name, arguments)
    }

    /// Starts a worker that follows the input.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn follow(&mut self, name: &str) -> anyhow::Result<Child> {
        self.launch(name, &["run"]).start()
    }

    /// Runs a worker to the end of the input and expects it to succeed.
    ///
    /// # Errors
    /// If it cannot be started or does not end.
    pub fn run_once(&mut self, name: &str) -> anyhow::Result<()> {
        let mut child = self.launch(name, &["run", "--once"]).start()?;
        self.expect(&mut child, Exit::Code(0))?;
        Ok(())
    }

    /// Waits for the end of `child` and blames any other end than `wanted`.
    ///
    /// # Errors
    /// If it does not end.
    pub fn expect(&mut self, child: &mut Child, wanted: Exit) -> anyhow::Result<Exit> {
        let exit = self.wait(child)?;
        if exit != wanted {
            self.blame(format!("{} ended with {exit}, must end with {wanted}: {}", child.name, last_words(child)));
        }
        Ok(exit)
    }

    /// Waits for the end of `child`, whatever it is.
    ///
    /// # Errors
    /// If it does not end.
    pub fn wait(&mut self, child: &mut Child) -> anyhow::Result<Exit> {
        let exit = child.wait(SOON).with_context(|| format!("last words: {}", last_words(child)))?;
        let outcome = match exit {
            Exit::Code(0) => Outcome::Ok,
            Exit::Code(code) => Outcome::Failed(code),
            Exit::Signal(_) => Outcome::Unknown,
        };
        note(&self.history, Moment::Ended { worker: child.name.clone(), outcome });
        Ok(exit)
    }

    /// Asks `child` to end, and expects it to end well.
    ///
    /// # Errors
    /// If it does not end.
    pub fn drain(&mut self, child: &mut Child) -> anyhow::Result<()> {
        // Before it says one of these it may not listen for signals yet.
        child.wait_said_any(&["claimed", "standing by"], SOON)?;
        self.signal(child, Signal::TERM)?;
        self.expect(child, Exit::Code(0))?;
        Ok(())
    }

    /// Sends a signal, and writes it down.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn signal(&mut self, child: &mut Child, signal: Signal) -> anyhow::Result<()> {
        note(&self.history, Moment::Faulted { worker: child.name.clone(), fault: format!("{signal:?}") });
        child.signal(signal)
    }

    /// Whether a fault happened in the process called `child`.
    #[must_use]
    pub fn fault_happened(&self, child: &Child, point: &str) -> bool {
        let log = std::fs::read_to_string(self.dir.join(fault_log(&child.name))).unwrap_or_default();
        log.lines().any(|line| line.split_whitespace().next() == Some(point))
    }

    /// Waits until a fault has happened; `false` if it has not within [`SOON`].
    #[must_use]
    pub fn wait_fault(&self, child: &Child, point: &str) -> bool {
        let started = Instant::now();
        while started.elapsed() < SOON {
            if self.fault_happened(child, point) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Lets a process go on that a fault holds.
    ///
    /// # Errors
    /// If the file that it waits for cannot be written.
    pub fn let_go(&self, child: &Child) -> anyhow::Result<()> {
        Ok(std::fs::write(self.dir.join(format!("{}.go", fault_log(&child.name))), "")?)
    }

    /// Whether `worker` delivers everything that was fed: false once it has ended without, or [`SOON`] is over.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn delivers_all(&self, reader: &Reader, worker: &mut Child) -> anyhow::Result<bool> {
        let (started, fed) = (Instant::now(), self.fed as u64);
        let all = |sample: &Sample| sample.progress.read >= fed;
        while started.elapsed() < SOON {
            let ended = worker.poll()?.is_some();
            if ended {
                reader.refresh();
            }
            if reader.latest().as_ref().is_some_and(all) {
                return Ok(true);
            }
            if ended {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }

    /// Writes the input up to line `upto`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn feed(&mut self, upto: usize) -> anyhow::Result<()> {
        append(&self.input(), self.lines(upto).iter().map(String::as_str))?;
        self.fed = upto.max(self.fed);
        Ok(())
    }

    /// Starts to write the input up to line `upto`, slowly.
    pub fn feed_slowly(&mut self, upto: usize, pace: Pace) -> Feeder {
        let feeder = Feeder::start(&self.input(), self.lines(upto), pace);
        self.fed = upto.max(self.fed);
        feeder
    }

    fn lines(&self, upto: usize) -> Vec<String> {
        let wanted = self.truth.inputs.get(self.fed..upto).unwrap_or_default();
        wanted.iter().map(|input| input.line.clone()).collect()
    }

    /// How many inputs there are in all.
    #[must_use]
    pub fn count(&self) -> usize {
        self.truth.inputs.len()
    }

    /// What the reader and the judge look at.
    #[must_use]
    pub fn subject(&self) -> Subject {
        Subject { workflow: self.config.id.clone(), shape: self.setting.shape }
    }

    /// Starts the concurrent reader; none where progress is elsewhere and nothing can be said of a single moment.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::start(&self.target(), self.subject(), Arc::clone(&self.history))
    }

    /// Writes down that the target was replaced by an older copy.
    pub fn note_restored(&self) {
        note(&self.history, Moment::Restored);
    }

    /// Waits until the table has at least `rows` rows; works whatever keeps progress.
    ///
    /// # Errors
    /// What the database says.
    pub fn wait_rows(&self, rows: u64) -> anyhow::Result<bool> {
        let mut eyes = Eyes::open(&self.target(), Duration::from_secs(1))?;
        let started = Instant::now();
        while started.elapsed() < SOON {
            if eyes.count()? >= rows {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }

    /// Waits until progress counts everything that was fed as read; only where progress is in the target.
    ///
    /// # Errors
    /// What the database says.
    pub fn wait_all_read(&mut self) -> anyhow::Result<()> {
        let (started, fed) = (Instant::now(), self.fed as u64);
        while self.found()?.progress.is_none_or(|progress| progress.read < fed) {
            if started.elapsed() > SOON {
                self.blame("what was fed was not delivered");
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What the target holds now.
    ///
    /// # Errors
    /// What the database says.
    pub fn found(&self) -> anyhow::Result<Found> {
        let mut found = Eyes::open(&self.target(), Duration::from_secs(2))?.found(&self.subject())?;
        if self.setting.place == Place::State {
            let books = observe::books_in(&self.state(), &self.config.id)?;
            (found.progress, found.epochs, found.letters) = (books.progress, books.epochs, books.letters);
        }
        Ok(found)
    }

    /// Says that a process did not do what it should.
    pub fn blame(&mut self, text: impl Into<String>) {
        self.findings.push(Finding::new(Anomaly::Conduct, text));
    }

    /// Says that something is wrong.
    pub fn accuse(&mut self, anomaly: Anomaly, text: impl Into<String>) {
        self.findings.push(Finding::new(anomaly, text));
    }

    /// Blames unless `fact` holds.
    pub fn must(&mut self, fact: Fact, text: impl Into<String>) {
        if fact == Fact::Broken {
            self.blame(text);
        }
    }

    /// The witness may lag behind the target, never run ahead of it.
    ///
    /// # Errors
    /// What the databases say.
    pub fn check_witness(&mut self) -> anyhow::Result<()> {
        if self.setting.place == Place::Sink {
            // In this order: progress that moves meanwhile can only make the witness look older.
            let witness = observe::witness_epoch(&self.state(), &self.config.id)?;
            let progress = self.found()?.progress.map_or(0, |progress| progress.epoch);
            if witness > progress {
                let text = format!("the witness has seen epoch {witness}, the target is at {progress}");
                self.accuse(Anomaly::WitnessAhead, text);
            }
        }
        Ok(())
    }

    /// Says that no live worker has a COMMIT in doubt here. Where progress is in the target, every guarantee then
    /// delivers everything once: who is killed leaves nothing open that the next claim does not answer.
    pub fn nobody_doubts(&mut self) {
        if self.setting.place == Place::Sink {
            self.trouble = Trouble::None;
        }
    }

    /// What happened, so far.
    #[must_use]
    pub fn history(&self) -> History {
        History { moments: self.history.lock().unwrap_or_else(PoisonError::into_inner).clone() }
    }

    /// Judges the end: everything that was fed must have had its one fate.
    ///
    /// # Errors
    /// What the database says.
    pub fn conclude(&mut self) -> anyhow::Result<()> {
        self.check_witness()?;
        let found = self.found()?;
        let doubt = match (self.trouble, self.setting.guarantee) {
            (Trouble::Some, Guarantee::AtMostOnce) => Doubt::Allowed,
            (Trouble::None, _) | (_, Guarantee::AtLeastOnce | Guarantee::IdempotentKeys | Guarantee::ExactlyOnce) => {
                Doubt::Excluded
            }
        };
        let terms = Terms { place: self.setting.place, doubt };
        self.findings.extend(judge(&self.truth, self.fed, terms, &found, &self.history()));
        Ok(())
    }

    /// Judges only what was seen on the way, for scenarios whose end is not that of the plain workload.
    pub fn conclude_timeline(&mut self) {
        let findings = crate::check::timeline::judge(&self.truth, &self.history(), &[]);
        self.findings.extend(findings);
    }

    /// What is wrong and forbidden here.
    #[must_use]
    pub fn verdict(&self) -> Vec<Finding> {
        let forbidden = |finding: &&Finding| match self.trouble {
            Trouble::None => true,
            Trouble::Some => self.setting.forbids(finding.anomaly),
        };
        self.findings.iter().filter(forbidden).cloned().collect()
    }
}

/// The address of a database for workers, through `wire` if there is one; none for a file.
pub(crate) fn url(database: &Database, wire: Option<u16>) -> Option<String> {
    match database {
        Database::File(_) => None,
        Database::Postgres { port, name } => {
            Some(format!("postgres://postgres@127.0.0.1:{}/{name}?sslmode=disable", wire.unwrap_or(*port)))
        }
        Database::Mysql { port, name } => {
            Some(format!("mysql://{WORKER}@127.0.0.1:{}/{name}?ssl-mode=disabled", wire.unwrap_or(*port)))
        }
    }
}

/// Writes every table of a server's database into a file, a line per row.
fn dump(database: &Database, dir: &Path) -> anyhow::Result<()> {
    let (tables, name) = match database {
        Database::File(_) => return Ok(()),
        Database::Postgres { name, .. } => (
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname IN ('public', 'hapax') ORDER BY 1",
            name,
        ),
        Database::Mysql { name, .. } => ("SHOW TABLES", name),
    };
    let mut text = String::new();
    let mut line = database.line()?;
    for table in line.query(tables)?.rows.into_iter().filter_map(|row| row.into_iter().next().flatten()) {
        text.push_str(&format!("== {table}\n"));
        for row in line.query(&format!("SELECT * FROM {table}"))?.rows {
            let values: Vec<String> = row.into_iter().map(|value| value.unwrap_or_else(|| "NULL".into())).collect();
            text.push_str(&format!("{}\n", values.join("\t")));
        }
    }
    Ok(std::fs::write(dir.join(format!("{name}.tsv")), text)?)
}

/// Whether anything happened that a weaker guarantee may answer with less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No fault, or none that leaves a doubt: every guarantee then delivers everything once.
    None,
    /// There was some.
    Some,
}

/// Whether something that must be so is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// It is.
    Holds,
    /// It is not.
    Broken,
}

impl From<bool> for Fact {
    fn from(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Broken }
    }
}
