//! Processor time of this process's threads, by the first letter of their names: walls lie on a shared machine.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A runtime with `workers` threads for futures, called `f…`, and others for databases, called `b…`.
pub(crate) fn runtime(workers: usize) -> tokio::runtime::Runtime {
    let started = AtomicUsize::new(0);
    let name = move || match started.fetch_add(1, Ordering::Relaxed) {
        at if at < workers => format!("f{at}"),
        at => format!("b{at}"),
    };
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(workers).thread_name_fn(name).enable_all().build().expect("a runtime");
    // Each thread takes the work that it was started for before there is any other.
    std::thread::sleep(Duration::from_millis(20));
    runtime
}

/// Nanoseconds that the living threads whose name begins with `letter` have run; all threads for a space.
pub(crate) fn spent(letter: char) -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("a list of threads");
    let of_one = |folder: std::path::PathBuf| {
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        let ran = fs::read_to_string(folder.join("schedstat")).ok()?;
        let counts = letter == ' ' || name.starts_with(letter);
        counts.then(|| ran.split(' ').next()?.parse::<u64>().ok()).flatten()
    };
    tasks.filter_map(|task| of_one(task.ok()?.path())).sum()
}

/// Which part of the machine other processes used while something ran, from 0 to 1.
pub(crate) struct Others {
    since: Instant,
    machine: u64,
    own: u64,
}

/// The unit of `/proc/stat`.
const TICK: Duration = Duration::from_millis(10);

impl Others {
    pub(crate) fn watch() -> Self {
        Self { since: Instant::now(), machine: machine_ticks(), own: own_ticks() }
    }

    pub(crate) fn share(&self) -> f64 {
        let others = (machine_ticks() - self.machine).saturating_sub(own_ticks() - self.own);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        others as f64 * TICK.as_secs_f64() / (self.since.elapsed().as_secs_f64() * processors as f64)
    }
}

/// All ticks that were not idle.
fn machine_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("the machine's counters");
    let line = stat.lines().next().expect("the line of all processors");
    let ticks = line.split_whitespace().skip(1).map(|ticks| ticks.parse::<u64>().expect("a count"));
    let idle = |at: &usize| matches!(at, 3 | 4);
    ticks.enumerate().take(8).filter(|(at, _)| !idle(at)).map(|(_, ticks)| ticks).sum()
}

fn own_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("this process's counters");
    let behind_name = stat.rsplit_once(')').expect("a name in brackets").1;
    behind_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a count")).sum()
}
