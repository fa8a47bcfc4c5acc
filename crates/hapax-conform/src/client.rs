//! The foreign clients: how each one's program is started, and what it prints.
//!
//! Reads: the programs in `clients`, the packages of the cache. Writes: what is compiled, in a directory for that.
//! Not here: what the programs do; they say so themselves.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use hapax_services::{go_program, kafka_jars, kcat, node_modules, python};

use crate::cells::{Cell, Outcome, read_line};

/// Pinned: what is tested is what the table names.
const PYTHON: [&str; 5] =
    ["confluent-kafka==2.16.1", "kafka-python==3.0.12", "python-snappy==0.7.3", "lz4==4.4.5", "zstandard==0.25.0"];
/// A program that has not ended by then is ended: all cells, on a machine that is ten times slower.
const PATIENCE: Duration = Duration::from_secs(2_400);
/// Small and quick to start rather than fast.
const JAVA: [&str; 4] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Xshare:auto"];

/// A client that somebody else wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// Apache Kafka's Java client.
    Java,
    /// Apache Kafka's command-line tools.
    Tools,
    /// librdkafka by its Python package.
    Confluent,
    /// librdkafka by kcat.
    Kcat,
    /// kafka-python.
    KafkaPython,
    /// franz-go.
    Franz,
    /// sarama.
    Sarama,
    /// kafkajs.
    Kafkajs,
}

impl Client {
    /// All, in the table's order.
    pub const ALL: [Self; 8] = [
        Self::Java,
        Self::Tools,
        Self::Confluent,
        Self::Kcat,
        Self::KafkaPython,
        Self::Franz,
        Self::Sarama,
        Self::Kafkajs,
    ];

    /// Its name, with the version that runs here where we choose it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Java => "Java client 4.3.1",
            Self::Tools => "Kafka's command-line tools 4.3.1",
            Self::Confluent => "confluent-kafka 2.16.1 (librdkafka)",
            Self::Kcat => "kcat (librdkafka of the system)",
            Self::KafkaPython => "kafka-python 3.0.12",
            Self::Franz => "franz-go 1.22.2",
            Self::Sarama => "sarama 1.61.1",
            Self::Kafkajs => "kafkajs 2.2.4",
        }
    }

    /// Its name in topics and on our command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Java => "java",
            Self::Tools => "tools",
            Self::Confluent => "confluent",
            Self::Kcat => "kcat",
            Self::KafkaPython => "kafka-python",
            Self::Franz => "franz",
            Self::Sarama => "sarama",
            Self::Kafkajs => "kafkajs",
        }
    }

    /// Runs its program for some cells; what came of each. `flaky` is the same broker behind the proxy.
    ///
    /// # Errors
    /// If the program cannot be had, does not end, or is silent about a cell.
    pub fn run(self, bootstrap: &str, flaky: &str, prefix: &str, cells: &[Cell]) -> Result<BTreeMap<Cell, Outcome>> {
        let mut command = self.command().with_context(|| format!("{} cannot run", self.title()))?;
        command.args([bootstrap, flaky, prefix]).args(cells.iter().map(|cell| cell.word()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("{:?} does not start", command.get_program()))?;
        let (printed, complained) = finish(child)?;
        let mut found: BTreeMap<_, _> = printed.lines().filter_map(read_line).collect();
        let from = complained.lines().count().saturating_sub(30);
        let end = complained.lines().skip(from).collect::<Vec<_>>().join("\n");
        for outcome in found.values_mut() {
            if let Outcome::Fail(why) = outcome {
                why.push('\n');
                why.push_str(&end);
            }
        }
        for cell in cells {
            ensure!(found.contains_key(cell), "{} says nothing of {cell}:\n{printed}\n{end}", self.title());
        }
        Ok(found)
    }

    fn command(self) -> Result<Command> {
        Ok(match self {
            Self::Java => java("Cells")?,
            Self::Tools => java("Tools")?,
            Self::Confluent => script(python(&PYTHON)?, "python/confluent.py"),
            Self::KafkaPython => script(python(&PYTHON)?, "python/kafka_python.py"),
            Self::Franz => go("franz")?,
            Self::Sarama => go("sarama")?,
            Self::Kafkajs => {
                let modules = node_modules(&clients().join("node/package.json"))?;
                let mut node = script("node".into(), "node/cells.js");
                node.env("NODE_PATH", modules);
                node
            }
            Self::Kcat => {
                let kcat = kcat()?;
                let mut shell = script("sh".into(), "kcat/cells.sh");
                shell.env("KCAT", kcat.program).envs(kcat.libraries.map(|folder| ("LD_LIBRARY_PATH", folder)));
                shell
            }
        })
    }
}

/// Where the programs are.
pub(crate) fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// Where programs are compiled to; kept, since they rarely change.
pub(crate) fn compiled() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let place = program.parent().context("a program has a folder")?.join("conform-programs");
    std::fs::create_dir_all(&place)?;
    Ok(place)
}

fn script(interpreter: PathBuf, path: &str) -> Command {
    let mut command = Command::new(interpreter);
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(clients().join(path));
    command
}

fn go(library: &str) -> Result<Command> {
    let program = compiled()?.join(format!("go-{library}"));
    go_program(&clients().join("go"), &program)?;
    let mut command = Command::new(program);
    command.arg(library);
    Ok(command)
}

fn java(class: &str) -> Result<Command> {
    let (jars, classes) = (kafka_jars()?.join("*"), compiled()?);
    let source = clients().join(format!("java/{class}.java"));
    let changed = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    if changed(&classes.join(format!("{class}.class"))) < changed(&source) {
        let mut compiler = Command::new("javac");
        compiler.args(["-nowarn", "-proc:none", "-d"]).arg(&classes).arg("-cp").arg(&jars).arg(&source);
        let output = compiler.output().context("javac does not start: install a JDK of version 17")?;
        ensure!(output.status.success(), "javac: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut java = Command::new("java");
    java.args(JAVA).arg("-Dlog4j2.level=ERROR").arg("-cp");
    java.arg(format!("{}:{}", classes.display(), jars.display())).arg(class);
    Ok(java)
}

/// Reads both outputs to their end and waits for the program.
fn finish(mut child: Child) -> Result<(String, String)> {
    let mut complaints = child.stderr.take().context("its error output is piped")?;
    let mut prints = child.stdout.take().context("its output is piped")?;
    let complained = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(complaints.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let printed = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(prints.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let started = Instant::now();
    while child.try_wait()?.is_none() {
        if started.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            bail!("it did not end within {PATIENCE:?}; it said:\n{}", printed.join().unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((printed.join().unwrap_or_default(), complained.join().unwrap_or_default()))
}
