//! A real process under test: started, signalled, waited for with a deadline, never left behind.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process, prlimit, waitid};

use crate::guardian;

const POLL: Duration = Duration::from_millis(2);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// Ended by SIGKILL.
    pub const KILLED: Self = Self::Signal(9);
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A process and everything it said.
#[derive(Debug)]
pub struct Child {
    /// Its name in logs and histories.
    pub name: String,
    process: std::process::Child,
    said: Arc<Mutex<String>>,
    listeners: Vec<JoinHandle<()>>,
    ended: Option<Exit>,
}

impl Child {
    /// Starts `command`; what it says is kept, and also written to `log`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        guardian::guard(process.id()).context("nobody can be told to kill it if we are killed")?;
        let said = Arc::new(Mutex::new(String::new()));
        let log = Arc::new(Mutex::new(File::options().create(true).append(true).open(log)?));
        let mut listeners = Vec::new();
        for stream in [
            process.stdout.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
            process.stderr.take().map(|s| Box::new(s) as Box<dyn Read + Send>),
        ] {
            let stream = stream.context("the child's output is piped")?;
            let (said, log) = (Arc::clone(&said), Arc::clone(&log));
            listeners.push(std::thread::spawn(move || listen(stream, &said, &log)));
        }
        Ok(Self { name: name.to_owned(), process, said, listeners, ended: None })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    fn rustix_pid(&self) -> anyhow::Result<Pid> {
        i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).context("a process id is positive")
    }

    /// Everything it has said so far.
    #[must_use]
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a signal; a process that has ended already takes none, which is no error.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        if self.poll()?.is_none() {
            kill_process(self.rustix_pid()?, signal).with_context(|| format!("cannot signal {}", self.name))?;
        }
        Ok(())
    }

    /// Limits how far any file that it writes may reach; `None` lifts the limit.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn limit_file_size(&mut self, bytes: Option<u64>) -> anyhow::Result<()> {
        if self.poll()?.is_none() {
            let limit = Rlimit { current: bytes, maximum: None };
            prlimit(Some(self.rustix_pid()?), Resource::Fsize, limit).context("cannot set the file-size limit")?;
        }
        Ok(())
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn poll(&mut self) -> anyhow::Result<Option<Exit>> {
        if self.ended.is_none()
            && let Some(status) = self.process.try_wait()?
        {
            self.ended = Some(match (status.code(), status.signal()) {
                (Some(code), _) => Exit::Code(code),
                (None, Some(signal)) => Exit::Signal(signal),
                (None, None) => bail!("{} ended without code or signal", self.name),
            });
            guardian::release(self.process.id());
            self.listeners.drain(..).for_each(|listener| drop(listener.join()));
        }
        Ok(self.ended)
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// If it is still there after `limit`; it is then killed.
    pub fn wait(&mut self, limit: Duration) -> anyhow::Result<Exit> {
        let started = Instant::now();
        loop {
            if let Some(exit) = self.poll()? {
                return Ok(exit);
            }
            if started.elapsed() > limit {
                self.kill();
                bail!("{} was still running after {limit:?}", self.name);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until a signal has stopped it. `false` if it ended instead, or went on for longer than `limit`.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait_stopped(&mut self, limit: Duration) -> anyhow::Result<bool> {
        let started = Instant::now();
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while started.elapsed() < limit {
            if self.poll()?.is_some() {
                return Ok(false);
            }
            let status = waitid(WaitId::Pid(self.rustix_pid()?), options)?;
            if status.is_some_and(|status| status.stopped()) {
                return Ok(true);
            }
            std::thread::sleep(POLL);
        }
        Ok(false)
    }

    /// Waits until it has said `text`. `false` if it ended, or `limit` passed, without.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait_said(&mut self, text: &str, limit: Duration) -> anyhow::Result<bool> {
        self.wait_said_any(&[text], limit)
    }

    /// Waits until it has said one of `texts`; see [`Child::wait_said`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait_said_any(&mut self, texts: &[&str], limit: Duration) -> anyhow::Result<bool> {
        let started = Instant::now();
        loop {
            let ended = self.poll()?.is_some();
            let said = self.said();
            if texts.iter().any(|text| said.contains(text)) {
                return Ok(true);
            }
            if ended || started.elapsed() > limit {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
    }

    /// Kills it, stopped or not, and waits for the end.
    pub fn kill(&mut self) {
        // Both fail only if the process has ended already, which is what is wanted.
        drop(self.process.kill());
        drop(self.process.wait());
        guardian::release(self.process.id());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
        }
    }
}

fn listen(stream: Box<dyn Read + Send>, said: &Mutex<String>, log: &Mutex<File>) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        said.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&line));
        // The log is for people; a full disk must not end the listening.
        drop(log.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line));
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(120);

    fn shell(script: &str) -> (Child, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("log");
        let child = Child::start("sh", Command::new("sh").arg("-c").arg(script), &log).expect("sh starts");
        (child, dir)
    }

    /// Goal: code, signal and words of a process are known. Method: a shell that says something and ends.
    #[test]
    fn the_end_of_a_process_is_known() {
        let (mut child, dir) = shell("echo out; echo err >&2; exit 4");
        assert_eq!(child.wait(SOON).expect("it ends"), Exit::Code(4));
        assert!(child.said().contains("out") && child.said().contains("err"));
        let log = std::fs::read_to_string(dir.path().join("log")).expect("the log is there");
        assert!(log.contains("out") && log.contains("err"));
        let (mut child, _dir) = shell("kill -9 $$");
        assert_eq!(child.wait(SOON).expect("it ends"), Exit::KILLED);
    }

    /// Goal: a stop is noticed, and the process goes on afterwards. Method: a shell that stops itself.
    #[test]
    fn a_stopped_process_is_noticed_and_continued() {
        let (mut child, _dir) = shell("kill -STOP $$; exit 3");
        assert!(child.wait_stopped(SOON).expect("it can be asked"));
        assert_eq!(child.poll().expect("it can be asked"), None);
        child.signal(Signal::CONT).expect("it takes a signal");
        assert_eq!(child.wait(SOON).expect("it ends"), Exit::Code(3));
        assert!(!child.wait_stopped(SOON).expect("it can be asked"), "it has ended");
    }

    /// Goal: nothing is left running. Method: a deadline, and a drop while it is stopped.
    #[test]
    fn no_process_is_left_behind() {
        let (mut child, _dir) = shell("sleep 60");
        assert!(child.wait(Duration::from_millis(20)).is_err());
        let (mut child, _dir) = shell("kill -STOP $$; sleep 60");
        assert!(child.wait_stopped(SOON).expect("it can be asked"));
        let pid = child.rustix_pid().expect("a pid");
        drop(child);
        assert!(rustix::process::test_kill_process(pid).is_err(), "it is gone");
    }

    /// Goal: a write beyond the limit fails without killing, and works again once the limit is lifted.
    #[test]
    fn a_file_size_limit_can_be_set_and_lifted() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        let script = "trap '' XFSZ; read_go() { while [ ! -e \"$1.$2\" ]; do sleep 0.01; done; }; \
             read_go \"$0\" 1; printf 0123456789 >> \"$0\" 2>/dev/null || echo refused; \
             read_go \"$0\" 2; printf 0123456789 >> \"$0\" && echo taken";
        let log = dir.path().join("log");
        std::fs::write(&path, "0123456789").expect("a file");
        let mut child =
            Child::start("sh", Command::new("sh").arg("-c").arg(script).arg(&path), &log).expect("sh starts");
        child.limit_file_size(Some(10)).expect("a limit");
        std::fs::write(dir.path().join("f.1"), "").expect("go");
        assert!(child.wait_said("refused", SOON).expect("it can be asked"));
        child.limit_file_size(None).expect("no limit");
        std::fs::write(dir.path().join("f.2"), "").expect("go");
        assert!(child.wait_said("taken", SOON).expect("it can be asked"));
    }
}
