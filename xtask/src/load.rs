//! Busy processes beside the tests: a machine that has other work to do.

use std::process::{Child, Stdio};

use anyhow::{Context as _, Result};

use crate::child;

/// How many of them.
const PROCESSES: usize = 4;

/// Counts without end, and looks now and then whether somebody still wants that.
const WORK: &str = "while kill -0 $PPID 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done";

/// Processes that keep the machine busy until this is dropped; they end by themselves if we are killed.
#[derive(Debug)]
pub(crate) struct Load(Vec<Child>);

impl Load {
    pub(crate) fn start() -> Result<Self> {
        let mut load = Self(Vec::new());
        for _ in 0..PROCESSES {
            let mut work = child::command("sh", ["-c", WORK]);
            let process = work.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
            load.0.push(process.context("could not start a busy process")?);
        }
        println!("{PROCESSES} busy processes beside it");
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // Both fail only if it has ended already.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a load is there while it is held, and gone afterwards. Method: look at its processes.
    #[test]
    fn a_load_ends_with_its_holder() {
        let load = Load::start().expect("a load");
        let processes: Vec<u32> = load.0.iter().map(Child::id).collect();
        let runs = |id: &u32| child::read(&mut child::command("ps", ["-o", "stat=", "-p", &id.to_string()])).is_ok();
        assert_eq!(processes.iter().filter(|id| runs(id)).count(), PROCESSES);
        drop(load);
        assert_eq!(processes.iter().filter(|id| runs(id)).count(), 0);
    }
}
