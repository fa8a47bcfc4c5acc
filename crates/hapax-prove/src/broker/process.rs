//! A broker as a process: started on a port of its own, killed, stopped, started again on the same store.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::child::{Child, Exit};

/// How long anything may take that should take a second or two: machines have bad minutes.
pub const SOON: Duration = Duration::from_secs(60);

/// What a write beyond the file-size limit does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// As the system has it.
    Usual,
    /// Fails with an error, as on a full disk, instead of killing.
    MayFail,
}

/// A broker that can be started again and again.
#[derive(Debug)]
pub struct Broker {
    /// `host:port`, the same for all its lives.
    pub address: String,
    /// Its life, if it has one.
    pub child: Option<Child>,
    hapax: PathBuf,
    plant: Option<String>,
    dir: PathBuf,
    number: u32,
    store: String,
    lives: u32,
    writes: Writes,
}

impl Broker {
    /// A broker on `store` (a directory or the URL of a database), with a free port and no life yet.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn new(hapax: &Path, plant: Option<&str>, dir: &Path, number: u32, store: &str) -> anyhow::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?.port();
        Ok(Self {
            address: format!("127.0.0.1:{port}"),
            child: None,
            hapax: hapax.to_owned(),
            plant: plant.map(str::to_owned),
            dir: dir.to_owned(),
            number,
            store: store.to_owned(),
            lives: 0,
            writes: Writes::Usual,
        })
    }

    /// So that a file-size limit makes its writes fail, from its next life on.
    pub fn can_run_out_of_space(&mut self) {
        self.writes = Writes::MayFail;
    }

    /// Starts it with these faults (`point:action:pass`, joined by `;`), and does not wait.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(&mut self, faults: &str) -> anyhow::Result<()> {
        self.lives += 1;
        let mut command = match self.writes {
            Writes::Usual => Command::new(&self.hapax),
            Writes::MayFail => {
                // An ignored signal stays ignored across exec, and the pid stays the same.
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(&self.hapax);
                shell
            }
        };
        let flag = if self.store.starts_with("postgres://") { "--store" } else { "--data" };
        command.args(["broker", flag, &self.store, "--listen", &self.address, "--id", &self.number.to_string()]);
        command.current_dir(&self.dir).env_clear().env("NO_COLOR", "1").env("HAPAX_FAULT_LOG", self.fault_log());
        if !faults.is_empty() {
            command.env("HAPAX_FAULT", faults);
        }
        if let Some(plant) = &self.plant {
            command.env("HAPAX_PLANT", plant);
        }
        let name = format!("broker-{}", self.number);
        let log = self.dir.join(format!("{name}.log"));
        let child = Child::start(&format!("{name}, life {}", self.lives), &mut command, &log)?;
        self.child = Some(child);
        Ok(())
    }

    /// Waits until it takes connections.
    ///
    /// # Errors
    /// If it ends, or takes too long.
    pub fn wait_listening(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while std::net::TcpStream::connect(&self.address).is_err() {
            let child = self.child.as_mut().context("the broker has no life")?;
            if let Some(exit) = child.poll()? {
                anyhow::bail!("{} did not start: {exit}: {}", child.name, crate::launch::last_words(child));
            }
            anyhow::ensure!(started.elapsed() < SOON, "{} took no connection within {SOON:?}", child.name);
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Starts it and waits until it takes connections.
    ///
    /// # Errors
    /// If it does not.
    pub fn start_and_wait(&mut self, faults: &str) -> anyhow::Result<()> {
        self.start(faults)?;
        self.wait_listening()
    }

    /// Kills it, if it lives.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill();
        }
    }

    /// Waits for the end that a fault gives it.
    ///
    /// # Errors
    /// If it goes on.
    pub fn wait_end(&mut self, limit: Duration) -> anyhow::Result<Exit> {
        let child = self.child.as_mut().context("the broker has no life")?;
        let exit = child.wait(limit)?;
        self.child = None;
        Ok(exit)
    }

    /// Its life.
    ///
    /// # Errors
    /// If it has none.
    pub fn life(&mut self) -> anyhow::Result<&mut Child> {
        self.child.as_mut().context("the broker has no life")
    }

    /// Its resident memory now, in bytes; the peak is counted from here on.
    ///
    /// # Errors
    /// If it has no life, or the system does not tell.
    pub fn forget_peak(&mut self) -> anyhow::Result<usize> {
        let process = format!("/proc/{}", self.life()?.pid());
        std::fs::write(format!("{process}/clear_refs"), "5").context("the peak cannot be forgotten")?;
        told(&process, "VmRSS:")
    }

    /// The most that it was since then.
    ///
    /// # Errors
    /// If it has no life, or the system does not tell.
    pub fn peak(&mut self) -> anyhow::Result<usize> {
        told(&format!("/proc/{}", self.life()?.pid()), "VmHWM:")
    }

    fn fault_log(&self) -> PathBuf {
        self.dir.join(format!("broker-{}.faults", self.number))
    }

    /// The faults that have happened to it so far.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.fault_log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Bytes that the system tells of a process.
fn told(process: &str, field: &str) -> anyhow::Result<usize> {
    let status = std::fs::read_to_string(format!("{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).context("its memory is not told")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<usize>()? * 1024)
}
