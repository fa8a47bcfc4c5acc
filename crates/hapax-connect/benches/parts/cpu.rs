//! Processor time of this process's threads, by the first letter of their names: walls lie on a shared machine.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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
