//! A reader with its own connection that looks all the time, as a user's application would.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};

use crate::check::history::{Moment, Sample};
use crate::database::Database;
use crate::observe::{Blind, Eyes, Subject};

const BETWEEN_LOOKS: Duration = Duration::from_millis(4);

/// Moments in the order in which they happened, from several threads.
pub type SharedHistory = Arc<Mutex<Vec<Moment>>>;

/// Adds a moment.
pub fn note(history: &SharedHistory, moment: Moment) {
    history.lock().unwrap_or_else(PoisonError::into_inner).push(moment);
}

/// The reading thread.
#[derive(Debug)]
pub struct Reader {
    thread: Option<JoinHandle<anyhow::Result<()>>>,
    stop: Arc<AtomicBool>,
    latest: Arc<Mutex<Option<Sample>>>,
    looks: Arc<AtomicU64>,
}

impl Reader {
    /// Starts to look at `target`; what differs from the last look becomes a moment of `history`.
    #[must_use]
    pub fn start(target: &Database, subject: Subject, history: SharedHistory) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let latest = Arc::new(Mutex::new(None));
        let looks = Arc::new(AtomicU64::new(0));
        let (told, shown, counted) = (Arc::clone(&stop), Arc::clone(&latest), Arc::clone(&looks));
        let target = target.clone();
        let thread = std::thread::spawn(move || {
            let mut eyes = None;
            while !told.load(Ordering::SeqCst) {
                let seen = match look(&mut eyes, &target, &subject) {
                    Ok(seen) => seen,
                    Err(Blind::Now(_)) => None,
                    Err(Blind::Ever(error)) => bail!("the reader failed: {error:#}"),
                };
                counted.fetch_add(1, Ordering::SeqCst);
                if let Some(sample) = seen {
                    let mut latest = shown.lock().unwrap_or_else(PoisonError::into_inner);
                    if latest.as_ref() != Some(&sample) {
                        note(&history, Moment::Saw(sample.clone()));
                        *latest = Some(sample);
                    }
                }
                std::thread::sleep(BETWEEN_LOOKS);
            }
            Ok(())
        });
        Self { thread: Some(thread), stop, latest, looks }
    }

    /// What it saw last.
    #[must_use]
    pub fn latest(&self) -> Option<Sample> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until what it sees satisfies `wanted`; `false` if that has not happened within `limit`.
    pub fn wait_for(&self, limit: Duration, wanted: impl Fn(&Sample) -> bool) -> bool {
        let started = Instant::now();
        while started.elapsed() < limit {
            if self.latest().as_ref().is_some_and(&wanted) {
                return true;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        false
    }

    /// Waits until a look that began after this call is over, so that the latest sample is of now.
    pub fn refresh(&self) {
        let before = self.looks.load(Ordering::SeqCst);
        let running = || self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while self.looks.load(Ordering::SeqCst) < before + 2 && running() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Ends the looking.
    ///
    /// # Errors
    /// If the reader met anything but a busy database.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::SeqCst);
        match self.thread.take() {
            Some(thread) => thread.join().map_err(|_| anyhow!("the reader panicked"))?,
            None => Ok(()),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Looks through eyes that are opened when there are none: a server that went away takes them with it.
fn look(eyes: &mut Option<Eyes>, target: &Database, subject: &Subject) -> Result<Option<Sample>, Blind> {
    let mut open = match eyes.take() {
        Some(open) => open,
        None => Eyes::open(target, Duration::ZERO)?,
    };
    let seen = open.sample(subject);
    if seen.is_ok() || matches!(open, Eyes::File(_)) {
        *eyes = Some(open);
    }
    seen
}
