//! How many files and sockets the process may have open, how many it has, and that it says when there are none left.
//!
//! Reads: the system's limit, and once a second what is open. Writes: a warning, counters, the soft limit. Invariant: the pages
//! take at most their share, what is left belongs to deliveries, and a few are kept for probes. Not here: who opens what.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};

/// How often what is open is counted.
const INTERVAL: Duration = Duration::from_secs(1);
/// The pages of the process have at most one of so many descriptors.
const SHARE_OF_PAGES: u64 = 8;
/// So many are kept for probes.
const RESERVED: u64 = 4;
/// With fewer left it is said, before there are none.
const FEW: u64 = 16;
/// The least time between two lines about it.
const SAY_EVERY: Duration = Duration::from_secs(30);

/// The descriptors of this process.
#[derive(Debug)]
pub(crate) struct Descriptors {
    limit: u64,
    /// Of these, how many are kept for probes: those with the highest numbers, which the soft limit does not give out.
    reserved: u64,
    open: AtomicU64,
    exhausted: AtomicU64,
    pages_closed: AtomicU64,
    said: Mutex<Option<Instant>>,
}

impl Descriptors {
    /// Takes as many as the system gives: the soft limit is raised to the hard one, less a few.
    pub(crate) fn new() -> Arc<Self> {
        let limit = rustix::process::getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let reserved = RESERVED.min(limit / SHARE_OF_PAGES);
        let limit = if set_soft_limit(limit - reserved) { limit } else { soft_limit() };
        Arc::new(Self {
            limit,
            reserved,
            open: AtomicU64::new(0),
            exhausted: AtomicU64::new(0),
            pages_closed: AtomicU64::new(0),
            said: Mutex::default(),
        })
    }

    /// How many there may be.
    pub(crate) const fn limit(&self) -> u64 {
        self.limit
    }

    /// How many were open at the last count.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// How often there were none left.
    pub(crate) fn exhausted(&self) -> u64 {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// How many connections of the pages were closed to make room.
    pub(crate) fn pages_closed(&self) -> u64 {
        self.pages_closed.load(Ordering::Relaxed)
    }

    /// Does something that may take a descriptor of those that are kept for probes.
    pub(crate) fn with_reserve<T>(&self, take: impl FnOnce() -> T) -> T {
        set_soft_limit(self.limit);
        let taken = take();
        set_soft_limit(self.limit - self.reserved);
        taken
    }

    /// Of `wanted` connections of the pages, those that leave enough for deliveries.
    pub(crate) fn share_of_pages(&self, wanted: usize) -> usize {
        let share = usize::try_from(self.limit / SHARE_OF_PAGES).unwrap_or(usize::MAX);
        share.clamp(2, wanted.max(2))
    }

    /// A connection of the pages was closed to make room for another.
    pub(crate) fn page_closed(&self) {
        self.pages_closed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts and says what is wrong if `error` means that there is no descriptor left.
    pub(crate) fn note(&self, error: &std::io::Error) {
        if is_exhaustion(error) {
            self.exhausted.fetch_add(1, Ordering::Relaxed);
            self.say(&format!("there are none left ({error})"));
        }
    }

    /// Counts what is open until it is aborted.
    pub(crate) fn watch(self: &Arc<Self>) -> tokio::task::JoinHandle<()> {
        let descriptors = Arc::clone(self);
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(INTERVAL);
            loop {
                tick.tick().await;
                descriptors.look();
            }
        })
    }

    fn look(&self) {
        match count_open() {
            Ok(open) => {
                self.open.store(open, Ordering::Relaxed);
                let left = (self.limit - self.reserved).saturating_sub(open);
                if left == 0 {
                    self.exhausted.fetch_add(1, Ordering::Relaxed);
                }
                if left < FEW.min(self.limit / 4) {
                    self.say(&format!("{left} are left"));
                }
            }
            Err(error) => self.note(&error),
        }
    }

    fn say(&self, what: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
            *said = Some(Instant::now());
            tracing::error!(
                code = "HX5064",
                limit = self.limit,
                "the process needs more descriptors for files and connections than it may have: {what}; raise the limit \
                 (ulimit -n, LimitNOFILE=)"
            );
        }
    }
}

/// Whether `error` means that the process, or the whole system, has no descriptor left.
fn is_exhaustion(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn soft_limit() -> u64 {
    rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Whether the system allows it.
fn set_soft_limit(soft: u64) -> bool {
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    // No limit at all stays none.
    let current = maximum.map(|hard| soft.min(hard));
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current, maximum }).is_ok()
}

/// How many are open; the one that looks is not counted.
fn count_open() -> std::io::Result<u64> {
    let entries = std::fs::read_dir("/proc/self/fd").or_else(|error| {
        // Elsewhere than on Linux nobody tells, which is no lack of descriptors.
        if is_exhaustion(&error) { Err(error) } else { std::fs::read_dir("/dev/fd") }
    });
    entries.map(|entries| u64::try_from(entries.count()).unwrap_or(u64::MAX).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(limit: u64) -> Descriptors {
        Descriptors {
            limit,
            reserved: 0,
            open: AtomicU64::new(0),
            exhausted: AtomicU64::new(0),
            pages_closed: AtomicU64::new(0),
            said: Mutex::default(),
        }
    }

    /// Goal: the pages leave most descriptors to deliveries, and always have some. Method: low, usual and high limits.
    #[test]
    fn pages_have_a_share_of_the_descriptors() {
        let shares: Vec<usize> = [8, 64, 256, 1024, 1 << 20].map(|limit| of(limit).share_of_pages(64)).to_vec();
        assert_eq!(shares, [2, 8, 32, 64, 64]);
    }

    /// Goal: only a lack of descriptors counts as one. Method: the system's two errors, and others.
    #[test]
    fn only_a_lack_of_descriptors_is_counted() {
        let descriptors = of(64);
        for (error, counted) in [(Errno::MFILE, 1), (Errno::NFILE, 2), (Errno::NOENT, 2), (Errno::CONNABORTED, 2)] {
            descriptors.note(&std::io::Error::from(error));
            assert_eq!(descriptors.exhausted(), counted, "{error}");
        }
    }

    /// Goal: what is open is counted. Method: open three files.
    #[test]
    fn open_files_are_counted() {
        let before = count_open().expect("a count");
        let files: Vec<_> = (0..200).map(|_| std::fs::File::open("/dev/null").expect("a file")).collect();
        assert!(
            count_open().expect("a count") >= before.saturating_sub(50) + 200,
            "tests beside this one open and close"
        );
        drop(files);
    }
}
