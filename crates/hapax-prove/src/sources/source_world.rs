//! A case's own directory: configuration, files, target, logs; and the story of what was done, line by line.
//!
//! Invariant: every process started here is a child and dies with it; nothing outside the directory is written.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::case::{FaultMoment, RecordFormat, SourceCase, SourceLayout, WorkerArrangement};
use super::lane_ledger::{LaneLedger, lane_ledgers, unended_lanes};
use super::record_writer::{CSV_HEADER, RecordWriter};
use super::rotation::{FIRST_NAME, MarkPlace, StemFiles};
use crate::check::doubt::Doubt;
use crate::check::history::Found;
use crate::check::{Anomaly, Finding};
use crate::child::{Child, Exit};
use crate::database::{Database, Engine};
use crate::ddl;
use crate::lodging::Lodging;
use crate::observe::{self, Eyes, Subject};
use crate::proxy::Proxy;
use crate::servers::Need;
use crate::setting::{Guarantee, Place};
use crate::truth::Digest;
use crate::world::{Environment, SOON, url};

/// The workflow's id.
pub const WORKFLOW: &str = "orders";
/// Where the files are.
pub const SPOOL: &str = "spool";
/// Where the files of a linked path really are.
pub const REAL: &str = "real";
/// The names of stems; archives and what is added later have numbers.
const NAMES: [&str; 13] = [
    "alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo", "lima",
    "mike",
];

/// A case's directory and everything in it.
#[derive(Debug)]
pub struct SourceWorld {
    /// The directory.
    pub dir: PathBuf,
    /// The case.
    pub case: SourceCase,
    /// Who writes the files.
    pub writer: RecordWriter,
    /// The path in the configuration, relative to the directory.
    pub source_path: String,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What is wrong, and allowed by the guarantee.
    pub allowed: Vec<Finding>,
    /// Whether nobody was killed, taken over from, or shut out in the middle: then every guarantee delivers everything once.
    pub calm: bool,
    /// Where the live files are.
    pub folder: PathBuf,
    environment: Environment,
    story: Vec<String>,
    began: Instant,
    processes: u32,
    lock: Option<rusqlite::Connection>,
    proxy: Option<Proxy>,
    lodging: Option<Lodging>,
}

impl SourceWorld {
    /// Makes the directory, the table and the configuration, and stems without records.
    ///
    /// # Errors
    /// If the directory cannot be written, or there is no server.
    pub fn new(environment: &Environment, dir: &Path, case: SourceCase, seed: u64) -> anyhow::Result<Self> {
        let stack = case.setting.stack;
        let linked = case.layout == SourceLayout::LinkedPath;
        let folder = dir.join(if linked { REAL } else { SPOOL });
        for folder in [dir.join(SPOOL), folder.clone()] {
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let need = || Lodging::take(&environment.servers, Need::Databases, stack);
        let mut world = Self {
            dir: dir.to_owned(),
            case,
            writer: RecordWriter::new(case.setting.shape, case.format, seed),
            source_path: String::new(),
            findings: Vec::new(),
            allowed: Vec::new(),
            calm: case.moment != FaultMoment::TargetAway && case.workers != WorkerArrangement::TakenOver,
            folder,
            environment: environment.clone(),
            story: Vec::new(),
            began: Instant::now(),
            processes: 0,
            lock: None,
            proxy: None,
            lodging: stack.has_server().then(need).transpose()?,
        };
        let (pattern, single) = (case.layout.pattern(), format!("{}.{}", NAMES[0], case.layout.extension()));
        world.source_path = format!("{SPOOL}/{}", pattern.unwrap_or(&single));
        if let Some(lodging) = &world.lodging {
            let port = lodging.server.port();
            world.proxy = Some(Proxy::start(stack.engine(), port, &dir.join("proxy.log"))?);
        }
        world.write_config()?;
        world.target().execute(&ddl::tables(case.setting.shape, stack.engine()))?;
        if stack.has_server() {
            world.command("setup", &["setup", "--yes"])?;
        }
        if !case.layout.is_dropped() {
            for name in NAMES.iter().take(case.layout.files()) {
                let by_name = case.layout == SourceLayout::OrderedByName;
                let name = if by_name { FIRST_NAME.to_owned() } else { format!("{name}.{}", case.layout.extension()) };
                let path = world.folder.join(name);
                world.writer.stems().add_stem(&path);
            }
        }
        if linked {
            std::os::unix::fs::symlink(world.folder.join(&single), dir.join(SPOOL).join(&single))?;
        }
        Ok(world)
    }

    /// The files of a stem.
    #[must_use]
    pub fn stem_files(&self, stem: usize) -> StemFiles {
        let mark = match self.case.layout {
            SourceLayout::PatternBeforeExtension => MarkPlace::BeforeExtension,
            SourceLayout::OrderedByName => MarkPlace::NextName,
            SourceLayout::SinglePath
            | SourceLayout::LinkedPath
            | SourceLayout::PatternWithSuffixes
            | SourceLayout::PatternOfNames
            | SourceLayout::ManyFiles
            | SourceLayout::Archives
            | SourceLayout::ZstdArchives
            | SourceLayout::DroppedFiles => MarkPlace::AtEnd,
        };
        StemFiles { folder: self.folder.clone(), name: self.writer.stems().stems[stem].name.clone(), mark }
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> Database {
        self.lodging.as_ref().map_or_else(|| Database::File(self.dir.join("target.db")), Lodging::target)
    }

    fn state(&self) -> Database {
        let at_server = self.lodging.as_ref().and_then(Lodging::state);
        at_server.unwrap_or_else(|| Database::File(self.dir.join("state.db")))
    }

    /// Writes `hapax.yaml`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_config(&self) -> anyhow::Result<()> {
        let setting = self.case.setting;
        let shape = setting.shape;
        let state = match self.case.workers {
            WorkerArrangement::Unleased => "none".to_owned(),
            WorkerArrangement::One
            | WorkerArrangement::Standby
            | WorkerArrangement::TakenOver
            | WorkerArrangement::Restarted => {
                url(&self.state(), None).unwrap_or_else(|| "sqlite://state.db".to_owned())
            }
        };
        let interval = if setting.place == Place::State { ", progressInterval: 20ms" } else { "" };
        let (mode, place, extra) = (shape.mode(), setting.place.name(), shape.sink_extra());
        let table = format!("table: orders, onConflict: {mode}, progress: {place}{interval}{extra}");
        let target = url(&self.target(), self.proxy.as_ref().map(Proxy::port)).unwrap_or_default();
        let sink = match setting.stack.engine() {
            Engine::Sqlite => format!("sqlite: {{ path: target.db, {table}, busyTimeout: 1s }}"),
            Engine::Postgres => format!("postgres: {{ url: \"{target}\", {table} }}"),
            Engine::Mysql => format!("mysql: {{ url: \"{target}\", {table} }}"),
        };
        let text = format!(
            "state: \"{state}\"\nworkflows:\n\
             \x20 - id: {WORKFLOW}\n\
             \x20   source: {{ file: {{ path: \"{path}\", start: earliest{rule}{format} }} }}\n\
             \x20   sink: {{ {sink} }}\n\
             \x20   delivery: {{ guarantee: {guarantee}, deduplication: {{ keyFields: [{keys}]{unique} }}, \
             epoch: {{ interval: 10ms, maxEvents: 50, commitTimeout: 30s }}, lease: 1500ms, claimTimeout: 1s, \
             maxRejects: 50%, retries: {{ backoffMs: [20, 50, 100] }}, conditions: [one-worker] }}\n",
            path = self.source_path,
            rule = self.case.rule().map_or_else(String::new, |rule| format!(", {rule}")),
            format = if self.case.format == RecordFormat::Csv { ", format: csv" } else { ", format: jsonl" },
            guarantee = setting.guarantee.name(),
            keys = shape.key_fields(),
            unique = shape.deduplication_extra(),
        );
        Ok(std::fs::write(self.dir.join("hapax.yaml"), text)?)
    }

    /// Writes a line of the story.
    pub fn tell(&mut self, text: impl AsRef<str>) {
        let line = format!("{:8.3} {}", self.began.elapsed().as_secs_f64(), text.as_ref());
        self.story.push(line);
    }

    /// The story so far.
    #[must_use]
    pub fn story(&self) -> String {
        self.story.join("\n") + "\n"
    }

    /// Whether a finding breaks the promise here. Where progress is in the target and no commit can be in doubt, all
    /// guarantees deliver everything once, whoever is killed.
    #[must_use]
    pub fn forbids(&self, anomaly: Anomaly) -> bool {
        let forbidden = self.case.setting.forbids(anomaly);
        match self.case.setting.place {
            Place::Sink => !self.commits_may_be_in_doubt() || forbidden,
            Place::State => self.calm || forbidden,
        }
    }

    /// Whether an input may be missing for which a letter in doubt stands.
    #[must_use]
    pub fn doubt(&self) -> Doubt {
        let in_doubt = self.case.setting.place == Place::State || self.commits_may_be_in_doubt();
        match self.case.setting.guarantee {
            Guarantee::AtMostOnce if in_doubt => Doubt::Allowed,
            Guarantee::AtMostOnce | Guarantee::AtLeastOnce | Guarantee::IdempotentKeys | Guarantee::ExactlyOnce => {
                Doubt::Excluded
            }
        }
    }

    fn commits_may_be_in_doubt(&self) -> bool {
        self.case.moment == FaultMoment::TargetAway && !self.target_is_file()
    }

    /// Says that something is wrong.
    pub fn accuse(&mut self, anomaly: Anomaly, text: impl Into<String>) {
        let finding = Finding::new(anomaly, text);
        if self.forbids(anomaly) {
            self.tell(format!("WRONG {finding}"));
            self.findings.push(finding);
        } else {
            self.tell(format!("allowed: {finding}"));
            self.allowed.push(finding);
        }
    }

    /// Starts a process of the program under test.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self, name: &str, arguments: &[&str]) -> anyhow::Result<Child> {
        self.processes += 1;
        let name = format!("{}-{name}", self.processes);
        let mut command = Command::new(&self.environment.hapax);
        command.args(arguments).args(["-c", "hapax.yaml"]).current_dir(&self.dir).env_clear().env("NO_COLOR", "1");
        if let Some(plant) = &self.environment.plant {
            command.env("HAPAX_PLANT", plant);
        }
        self.tell(format!("start {name}: hapax {}", arguments.join(" ")));
        Child::start(&name, &mut command, &self.dir.join(format!("{name}.log")))
    }

    /// Runs a command to its end, and returns how it ended and what it said.
    ///
    /// # Errors
    /// If it does not end.
    pub fn run(&mut self, name: &str, arguments: &[&str]) -> anyhow::Result<(Exit, String)> {
        let mut child = self.start(name, arguments)?;
        let exit = child.wait(2 * SOON)?;
        self.tell(format!("{} ended with {exit}", child.name));
        Ok((exit, child.said()))
    }

    /// Runs a command that must succeed.
    ///
    /// # Errors
    /// If it does not.
    pub fn command(&mut self, name: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let (exit, said) = self.run(name, arguments)?;
        anyhow::ensure!(exit == Exit::Code(0), "hapax {} ended with {exit}: {said}", arguments.join(" "));
        Ok(said)
    }

    /// Shuts the workers out of the target.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn take_target_away(&mut self) -> anyhow::Result<()> {
        self.tell("the target takes no writes");
        match self.target() {
            Database::File(path) => {
                let connection = rusqlite::Connection::open(path)?;
                connection.busy_timeout(SOON)?;
                connection.execute_batch("BEGIN IMMEDIATE")?;
                self.lock = Some(connection);
            }
            Database::Postgres { .. } | Database::Mysql { .. } => {
                // Nobody listens on a port that was free just now.
                let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
                self.proxy.as_ref().context("a server has a proxy")?.redirect(free);
            }
        }
        Ok(())
    }

    /// Lets the workers write again.
    ///
    /// # Errors
    /// If that is not possible.
    pub fn bring_target_back(&mut self) -> anyhow::Result<()> {
        self.tell("the target takes writes again");
        if let Some(connection) = self.lock.take() {
            connection.execute_batch("ROLLBACK")?;
        }
        if let (Some(proxy), Some(lodging)) = (&self.proxy, &self.lodging) {
            proxy.redirect(lodging.server.port());
        }
        Ok(())
    }

    /// The ledgers of all lanes, wherever progress is.
    ///
    /// # Errors
    /// What the database says.
    pub fn ledgers(&self) -> anyhow::Result<Vec<LaneLedger>> {
        match self.case.setting.place {
            Place::Sink => lane_ledgers(&self.target(), WORKFLOW),
            Place::State => lane_ledgers(&self.state(), WORKFLOW),
        }
    }

    /// Whether progress says of every lane that its file was read to its end: only then may another take its place.
    ///
    /// # Errors
    /// What the database says.
    pub fn ends_are_known(&self) -> anyhow::Result<bool> {
        let books = if self.case.setting.place == Place::Sink { self.target() } else { self.state() };
        Ok(unended_lanes(&books, WORKFLOW)? == 0)
    }

    /// How many inputs all lanes count as read.
    ///
    /// # Errors
    /// What the database says.
    pub fn counted_read(&self) -> anyhow::Result<u64> {
        Ok(self.ledgers()?.iter().map(LaneLedger::read).sum())
    }

    /// A number that changes whenever a worker delivers something. Where rows and ledger are two commits, it is made of the rows.
    ///
    /// # Errors
    /// What the database says.
    pub fn delivery_mark(&self) -> anyhow::Result<u64> {
        match self.case.setting.place {
            Place::Sink => self.counted_read(),
            Place::State => Ok(Digest::of(&self.found()?.rows).sum),
        }
    }

    /// What the table and the letters hold now.
    ///
    /// # Errors
    /// What the database says.
    pub fn found(&self) -> anyhow::Result<Found> {
        let subject = Subject { workflow: WORKFLOW.to_owned(), shape: self.case.setting.shape };
        let mut found = Eyes::open(&self.target(), Duration::from_secs(10))?.found(&subject)?;
        if self.case.setting.place == Place::State {
            found.letters = observe::books_in(&self.state(), WORKFLOW)?.letters;
        }
        if self.case.format == RecordFormat::Csv {
            // A letter of CSV keeps the header before its record; one that does not is none that the judge knows.
            let header = format!("{CSV_HEADER}\n");
            for letter in &mut found.letters {
                letter.bytes = match letter.bytes.strip_prefix(header.as_bytes()) {
                    Some(record) => record.to_vec(),
                    None => [b"without its header: ".as_slice(), &letter.bytes].concat(),
                };
            }
        }
        Ok(found)
    }

    /// Whether the target is a file: what is away is then locked, and no commit is in doubt.
    #[must_use]
    pub fn target_is_file(&self) -> bool {
        self.target().engine() == Engine::Sqlite
    }
}
