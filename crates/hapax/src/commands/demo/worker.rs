//! A real `hapax run` as a child process.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::stage::Stage;
use crate::exit::Failure;

/// A running worker; killed if it is dropped.
pub(super) struct Worker {
    name: &'static str,
    child: Child,
}

impl Worker {
    /// Starts a worker that runs until it is killed.
    pub(super) fn start(stage: &Stage, name: &'static str) -> Result<Self, Failure> {
        Self::spawn(stage, name, &[])
    }

    /// Starts a worker that ends when everything is delivered.
    pub(super) fn start_once(stage: &Stage, name: &'static str) -> Result<Self, Failure> {
        Self::spawn(stage, name, &["--once"])
    }

    fn spawn(stage: &Stage, name: &'static str, more: &[&str]) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| failed(name, &error))?;
        let log = stage.log(name)?;
        let child = Command::new(program)
            .args(["run", "--only", name, "--config"])
            .arg(stage.config())
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| failed(name, &error))?;
        Ok(Self { name, child })
    }

    /// SIGKILL: no chance to tidy up.
    pub(super) fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill().and_then(|()| self.child.wait()).map(drop).map_err(|error| failed(self.name, &error))
    }

    /// Waits for it to end by itself.
    pub(super) async fn wait(&mut self, deadline: Instant) -> Result<(), Failure> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => {
                    let message = format!("the {} worker ended with {status}; its log is {}.log", self.name, self.name);
                    return Err(Failure::new("HX5005", message));
                }
                Ok(None) if Instant::now() > deadline => {
                    let message =
                        format!("the {} worker did not finish in time; its log is {}.log", self.name, self.name);
                    return Err(Failure::new("HX5005", message));
                }
                Ok(None) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => return Err(failed(self.name, &error)),
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            tracing::debug!(%error, "the worker had ended");
        }
    }
}

fn failed(name: &str, error: &std::io::Error) -> Failure {
    Failure::new("HX5005", format!("the {name} worker could not be started or ended: {error}"))
}
