//! An Apache Kafka server of one's own: one node that is broker and controller, in a scratch directory, on free ports.
//!
//! Reads: the jars of the cache. Writes: the scratch directory. Invariant: it ends with its holder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::account::Account;
use crate::error::{Doing, ServiceError};
use crate::holder::{Holder, Stop, clean};
use crate::launch::{PATIENCE, free_port, on_a_port, run, wait_until_it_answers};
use crate::packages::kafka_jars;
use crate::product::Product;
use crate::scratch::Scratch;

const CLUSTER: &str = "aGFwYXgtc2VydmljZXMtMQ";
const STARTED: &str = "Kafka Server started";
/// Only what went wrong, and the line that says that it is up.
const LOGGING: &str = "appender.out.type=Console\nappender.out.name=out\nappender.out.layout.type=PatternLayout\n\
                       appender.out.layout.pattern=[%d] %p %m (%c)%n\nrootLogger.level=WARN\n\
                       rootLogger.appenderRef.out.ref=out\nlogger.up.name=kafka.server.KafkaRaftServer\nlogger.up.level=INFO\n";
/// Topics of its own with one copy, groups that do not wait for others.
const SETTINGS: &str = "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
                        offsets.topic.replication.factor=1\noffsets.topic.num.partitions=4\n\
                        transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
                        transaction.state.log.num.partitions=4\nshare.coordinator.state.topic.replication.factor=1\n\
                        share.coordinator.state.topic.min.isr=1\ngroup.initial.rebalance.delay.ms=0\n";

/// What a server is to be like.
#[derive(Debug, Clone)]
pub struct KafkaBuilder {
    settings: Vec<(String, String)>,
    heap: String,
    port: Option<u16>,
}

impl KafkaBuilder {
    /// One setting, as `server.properties` names it; it wins over what is set here anyway.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Its memory, as Java writes it: `512m`.
    #[must_use]
    pub fn heap(mut self, heap: &str) -> Self {
        heap.clone_into(&mut self.heap);
        self
    }

    /// This port and no other; without it, a free one.
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Formats the directory and starts the server; returns when it answers.
    ///
    /// # Errors
    /// If its jars cannot be had, or it does not start; the message says what was tried.
    pub fn start(&self) -> Result<Kafka, ServiceError> {
        let jars = kafka_jars()?;
        let account = Account::of(Product::Kafka)?;
        let scratch = Scratch::create(Product::Kafka, account.as_ref())?;
        let mut server = Kafka { jars, account, scratch, heap: self.heap.clone(), port: 0, holder: None };
        server.write("log4j2.properties", LOGGING)?;
        on_a_port(self.port, |port| {
            server.port = port;
            self.configure(&server)?;
            server.format()?;
            server.launch()
        })?;
        Ok(server)
    }

    fn configure(&self, server: &Kafka) -> Result<(), ServiceError> {
        let (port, controller) = (server.port, free_port()?);
        let mut text = SETTINGS.to_owned();
        let data = server.directory().join("data");
        write!(
            text,
            "controller.quorum.voters=1@127.0.0.1:{controller}\nadvertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\nlog.dirs={}\n",
            data.display()
        )
        .expect("a string takes text");
        for (name, value) in &self.settings {
            writeln!(text, "{name}={value}").expect("a string takes text");
        }
        server.write("server.properties", &text)
    }
}

/// A server; dropping it stops it and removes its directory.
#[derive(Debug)]
pub struct Kafka {
    jars: PathBuf,
    account: Option<Account>,
    scratch: Scratch,
    heap: String,
    port: u16,
    holder: Option<Holder>,
}

impl Kafka {
    /// A server with Kafka's own settings but for what makes one node enough.
    #[must_use]
    pub fn builder() -> KafkaBuilder {
        KafkaBuilder { settings: Vec::new(), heap: "512m".to_owned(), port: None }
    }

    /// Where clients connect: `127.0.0.1:PORT`.
    #[must_use]
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The directory that holds its settings, its log and its data.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.directory().join("log")
    }

    /// The directory of its jars, which hold Java's client and the tools as well.
    #[must_use]
    pub fn jars(&self) -> &Path {
        &self.jars
    }

    /// The number of its process, to look at its memory; nothing where there is no `/proc`, or while it does not run.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        let settings = self.directory().join("server.properties");
        let ours = |pid: &u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut words = words.split(|byte| *byte == 0);
            words.next().is_some_and(|program| program.ends_with(b"java"))
                && words.any(|word| word == settings.as_os_str().as_encoded_bytes())
        };
        let running = std::fs::read_dir("/proc").ok()?.flatten();
        running.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(ours)
    }

    /// Stops it and waits for its end. The directory stays.
    pub fn stop(&mut self, stop: Stop) {
        if let Some(holder) = &mut self.holder {
            holder.stop(stop, PATIENCE);
        }
    }

    /// Starts it again on the same port.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self) -> Result<(), ServiceError> {
        self.stop(Stop::Fast);
        self.launch()
    }

    fn write(&self, name: &str, text: &str) -> Result<(), ServiceError> {
        let path = self.directory().join(name);
        std::fs::write(&path, text).doing(|| format!("write {}", path.display()))
    }

    fn java(&self, heap: &str) -> Command {
        let mut java = clean(Path::new("java"), self.directory(), self.account.as_ref());
        let logging = self.directory().join("log4j2.properties");
        java.args([format!("-Xmx{heap}"), format!("-Dlog4j2.configurationFile={}", logging.display())]);
        java.arg("-cp").arg(self.jars.join("*"));
        java
    }

    fn format(&self) -> Result<(), ServiceError> {
        let mut tool = self.java("128m");
        tool.args(["kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", CLUSTER, "-c"]);
        run(tool.arg(self.directory().join("server.properties")))
    }

    fn launch(&mut self) -> Result<(), ServiceError> {
        if let Some(before) = self.holder.take() {
            before.release();
        }
        let mut server = self.java(&self.heap);
        server.arg("kafka.Kafka").arg(self.directory().join("server.properties"));
        let log = self.log();
        let seen = said(&log).len();
        let mut holder = Holder::start(Product::Kafka, &server, self.directory(), self.account.as_ref())?;
        let up = || said(&log).get(seen..).is_some_and(|new| new.contains(STARTED));
        let outcome = wait_until_it_answers(Product::Kafka, self.port, &log, &mut holder, up);
        self.holder = Some(holder);
        outcome
    }
}

fn said(log: &Path) -> String {
    std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

impl Drop for Kafka {
    fn drop(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            holder.stop(Stop::Immediate, PATIENCE);
            holder.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    /// Goal: a server is there when `start` returns, and nothing is left after it. Method: connect, stop, start again, drop.
    #[test]
    fn a_server_answers_starts_again_and_leaves_nothing() {
        let mut server = Kafka::builder().heap("256m").start().expect("it starts");
        let reachable = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(reachable(server.port()) && server.pid().is_some());
        server.stop(Stop::Immediate);
        assert!(!reachable(server.port()) && server.pid().is_none());
        server.start_again().expect("it starts again");
        assert!(reachable(server.port()), "{}", said(&server.log()));
        let (port, directory) = (server.port(), server.directory().to_owned());
        drop(server);
        assert!(!reachable(port) && !directory.exists());
    }
}
