//! Restarts the process when a program does not get done with one input; that input is set aside.
//!
//! Reads: the pulse of every delivery that has a transform, and the size of the process. Writes: suspicions and verdicts
//! into the state store, then starts the same command line again in the same process, with the verdicts in a variable.
//! A thread of its own: a program that never returns keeps one of the runtime's threads, or all of them.
//! Invariant: nothing here is waited for without a limit.

use std::collections::HashMap;
use std::os::unix::process::CommandExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use hapax_engine::memory::MemoryBudget;
use hapax_engine::pulse::{Running, Verdict};
use hapax_engine::runtime::Meter;
use hapax_engine::state::{StateStore as _, Suspicion};
use hapax_model::position::{Bookmark, DeliveryId};
use serde_json::{Value, json};

use crate::assemble::AnyState;
use crate::roster::Roster;

/// Carries verdicts from one life of the process to the next, so that they arrive without a state store too.
const VARIABLE: &str = "HAPAX_SET_ASIDE";
/// How often the pulses are felt.
const TICK: Duration = Duration::from_millis(50);
/// An input that takes so long is written down, before anything can happen to the process.
const SUSPICIOUS: Duration = Duration::from_secs(1);
/// How long the state store may take to write something down.
const PATIENCE: Duration = Duration::from_secs(2);

/// Starts the thread when the first delivery with a transform comes.
pub(super) struct Watchdog {
    roster: Roster,
    state: Option<AnyState>,
    memory: Arc<MemoryBudget>,
    /// By how much one input may make the process grow, in bytes.
    room: usize,
    started: OnceLock<()>,
    /// Whether the process was asked to end: then it does not start again.
    ending: Arc<AtomicBool>,
    /// What the last life of the process found, until its delivery begins.
    inherited: Mutex<Vec<(DeliveryId, Bookmark, Verdict)>>,
}

impl Watchdog {
    pub(super) fn new(roster: Roster, state: Option<AnyState>, memory: Arc<MemoryBudget>, room: usize) -> Self {
        let inherited = std::env::var(VARIABLE).map_or_else(|_| Vec::new(), |text| read(&text));
        let (started, ending, inherited) = (OnceLock::new(), Arc::default(), Mutex::new(inherited));
        Self { roster, state, memory, room, started, ending, inherited }
    }

    /// The process was asked to end.
    pub(super) fn ending(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// A delivery with a transform begins.
    pub(super) fn watch(&self, id: &DeliveryId, meter: &Meter) {
        let mut inherited = self.inherited.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, at, verdict) in inherited.extract_if(.., |(of, _, _)| of == id) {
            meter.pulse().set_aside(at, verdict);
        }
        self.started.get_or_init(|| {
            let thread = Thread {
                roster: self.roster.clone(),
                state: self.state.clone(),
                memory: Arc::clone(&self.memory),
                room: self.room,
                ending: Arc::clone(&self.ending),
                runtime: tokio::runtime::Handle::current(),
                seen: HashMap::new(),
                size: None,
            };
            let started = std::thread::Builder::new().name("watchdog".into()).spawn(move || thread.run());
            if let Err(error) = started {
                tracing::error!("HX5071: no watchdog over transforms: its thread could not be started: {error}");
            }
        });
    }
}

/// An input that was running when it was looked at.
struct Seen {
    turn: u64,
    since: Instant,
    before: Size,
    noted: bool,
}

struct Thread {
    roster: Roster,
    state: Option<AnyState>,
    memory: Arc<MemoryBudget>,
    room: usize,
    ending: Arc<AtomicBool>,
    runtime: tokio::runtime::Handle,
    seen: HashMap<DeliveryId, Seen>,
    /// At the last tick, if anything ran then.
    size: Option<Size>,
}

/// How much memory the process has.
#[derive(Debug, Clone, Copy)]
struct Size {
    whole: usize,
    without_buffers: usize,
}

impl Size {
    fn now(memory: &MemoryBudget) -> Self {
        let whole = process_size();
        Self { whole, without_buffers: whole.saturating_sub(memory.used()) }
    }

    /// By how much it grew that no buffer explains: neither one that was filled, nor one that was given back and that
    /// the allocator keeps.
    fn grown_since(self, before: Self) -> usize {
        let whole = self.whole.saturating_sub(before.whole);
        whole.min(self.without_buffers.saturating_sub(before.without_buffers))
    }
}

impl Thread {
    fn run(mut self) {
        loop {
            std::thread::sleep(TICK);
            self.tick();
        }
    }

    fn tick(&mut self) {
        let members = self.roster.members();
        let last = self.size;
        let mut measured = None;
        for member in &members {
            let pulse = member.meter.pulse();
            let (Some(limit), turn) = (pulse.limit(), pulse.turn()) else { continue };
            if turn == 0 {
                self.seen.remove(&member.id);
                continue;
            }
            let size = *measured.get_or_insert_with(|| Size::now(&self.memory));
            let seen = self.seen.get(&member.id).filter(|seen| seen.turn == turn);
            let Some(Seen { since, before, noted, .. }) = seen else {
                let seen = Seen { turn, since: Instant::now(), before: last.unwrap_or(size), noted: false };
                self.seen.insert(member.id.clone(), seen);
                continue;
            };
            let (took, grown) = (since.elapsed(), size.grown_since(*before));
            // The turn may have passed on since it was looked at.
            let Some(running) = pulse.running().filter(|running| running.turn == turn) else { continue };
            if took >= limit {
                self.restart(&member.id, &running, Verdict::TooLong);
            } else if grown > self.room {
                self.restart(&member.id, &running, Verdict::TooLarge);
            } else if !noted && (took >= SUSPICIOUS.min(limit / 2) || grown > self.room / 4) {
                let lives = pulse.lives(&running.at) + 1;
                pulse.suspect(running.at.clone(), lives);
                self.note(&member.id, Suspicion { at: running.at, lives, verdict: None });
                if let Some(seen) = self.seen.get_mut(&member.id) {
                    seen.noted = true;
                }
            }
        }
        self.size = measured;
    }

    /// Does something with the state store, with patience: its connection may wait for a thread that is busy.
    fn ask<F, T>(&self, work: F)
    where
        F: FnOnce(AnyState) -> T,
        T: Future<Output = ()> + Send + 'static,
    {
        let Some(state) = self.state.clone() else { return };
        let (done, wait) = mpsc::channel();
        let (runtime, work) = (self.runtime.clone(), work(state));
        let asking = std::thread::Builder::new().name("watchdog-note".into()).spawn(move || {
            runtime.block_on(work);
            done.send(()).ok();
        });
        if asking.is_err() || wait.recv_timeout(PATIENCE).is_err() {
            tracing::warn!("the state store did not take the watchdog's note in time");
        }
    }

    fn note(&self, id: &DeliveryId, suspicion: Suspicion) {
        let id = id.clone();
        self.ask(|mut state| async move {
            if let Err(error) = state.suspect(&id, &suspicion).await {
                tracing::warn!(delivery = %id, %error, "the state store did not take the watchdog's note");
            }
        });
    }

    /// The verdict: written down, then carried into the next life of this process. Does not return.
    fn restart(&self, id: &DeliveryId, running: &Running, verdict: Verdict) {
        let at = &running.at;
        tracing::error!(delivery = %id, position = %at.position, code = "HX5070",
            "{}: the process starts itself again, and this input becomes a dead letter", verdict.cause().message);
        let lives = self.roster.meter(id).map_or(1, |meter| meter.pulse().lives(at)).max(1);
        self.note(id, Suspicion { at: at.clone(), lives, verdict: Some(verdict) });
        let members = self.roster.members();
        let mut verdicts = vec![write(id, at, verdict)];
        for member in &members {
            let aside = member.meter.pulse().all_set_aside();
            verdicts.extend(aside.into_iter().map(|(at, verdict)| write(&member.id, &at, verdict)));
        }
        // So that the next life need not wait for the leases of this one.
        self.ask(|mut state| async move {
            for member in members {
                drop(state.release(&member.id).await);
            }
        });
        if self.ending.load(Ordering::Relaxed) {
            tracing::error!("asked to end while a transform ran too long: ended without it");
            std::process::exit(1);
        }
        let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
        let error = std::process::Command::new(&program)
            .args(std::env::args_os().skip(1))
            .env(VARIABLE, Value::Array(verdicts).to_string())
            .exec();
        tracing::error!("HX5071: {} could not be started again: {error}", program.display());
        std::process::exit(1);
    }
}

fn write(id: &DeliveryId, at: &Bookmark, verdict: Verdict) -> Value {
    json!({
        "workflow": id.workflow, "sink": id.sink, "lane": id.lane, "incarnation": at.incarnation.to_string(),
        "position": at.position.to_string(), "verdict": verdict.name(),
    })
}

/// What the last life of the process found; whatever cannot be read is left out.
fn read(text: &str) -> Vec<(DeliveryId, Bookmark, Verdict)> {
    let list: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    let one = |value: &Value| {
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let id =
            DeliveryId { workflow: text("workflow")?.into(), sink: text("sink")?.into(), lane: text("lane")?.into() };
        let at = Bookmark::new(text("incarnation")?.parse().ok()?, text("position")?.parse().ok()?);
        Some((id, at, Verdict::of_name(text("verdict")?)?))
    };
    list.iter().filter_map(one).collect()
}

/// How much memory the process has, in bytes; 0 where nobody tells.
fn process_size() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()).and_then(|number| number.parse::<usize>().ok());
    kilobytes.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: verdicts arrive in the next life as they left. Method: names with odd characters; texts that are none.
    #[test]
    fn verdicts_are_carried_over() {
        let id = DeliveryId { workflow: "w".into(), sink: "s \"x\"".into(), lane: "in/a:b.jsonl".into() };
        let at = Bookmark::at("inode 7: \u{e9}", 12);
        let text = Value::Array(vec![write(&id, &at, Verdict::TooLong), json!({"workflow": "w"})]).to_string();
        assert_eq!(read(&text), [(id, at, Verdict::TooLong)]);
        assert_eq!(read("no JSON"), []);
    }

    /// Goal: only growth that no buffer explains counts. Method: a filled buffer, one given back, and a program's own.
    #[test]
    fn buffers_are_no_growth() {
        let size = |whole, without_buffers| Size { whole, without_buffers };
        assert_eq!(size(300, 100).grown_since(size(100, 100)), 0, "a buffer was filled");
        assert_eq!(size(300, 300).grown_since(size(300, 100)), 0, "a buffer was given back, and its memory kept");
        assert_eq!(size(400, 200).grown_since(size(100, 50)), 150, "a buffer and a program");
    }

    /// Goal: the size of a process is a size.
    #[test]
    fn the_size_of_this_process_is_told() {
        assert!(process_size() > 1 << 20);
    }
}
