//! Fault points and planted bugs. Without the `fault` feature every function here is empty and costs nothing.
//!
//! A fault point is a named place in the production code where a prover may kill or stop the real process. A planted
//! bug is a switch in the production line that it breaks. Both are chosen by environment variables, so that the
//! process under test is the same program as ever:
//!
//! - `HAPAX_FAULT=sql.cas_done:kill:3` kills the process the third time it passes `sql.cas_done`; `stop` stops it;
//!   `pause-250` sleeps 250 ms there; `hold` keeps the thread there until the file `HAPAX_FAULT_LOG` with `.go` behind
//!   its name exists. Several faults are joined by `;`.
//! - `HAPAX_FAULT_LOG=path`: every fault appends its name there before it acts, which is how a prover knows that it
//!   happened.
//! - `HAPAX_HURRY=second-pass`: a time that takes too long for a prover is over at once.
//! - `HAPAX_PLANT=no-fence` switches one [`Bug`] on.

/// A bug that can be planted, to see that the prover catches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The compare-and-swap no longer looks at the generation.
    NoFence,
    /// The source is acknowledged, and the witness saved, before the epoch has committed.
    AckBeforeCommit,
    /// Progress is read before the generation is raised.
    ProgressBeforeFence,
    /// An error of COMMIT is taken for success.
    CommitOutcomeIgnored,
    /// A reclaim raises the generation whoever owns it.
    UnconditionalReclaim,
    /// `progress: state` saves the position before the rows are written, for every guarantee.
    OffsetsBeforeEffect,
    /// Progress commits in a transaction of its own, after the data.
    ProgressOutsideTransaction,
    /// The reduction keeps the last event in mode `ignore`.
    ReductionKeepsLastInIgnore,
    /// Rows of a rejected epoch are tried in key order.
    SortedBisect,
    /// Mode `newer` overwrites whatever is there.
    NewestWinsRemoved,
    /// Key fields are joined by `:` before they are hashed.
    KeyOfJoinedFields,
    /// The event key lacks the version.
    KeyWithoutVersion,
    /// The incarnation of a position is not compared.
    PositionWithoutIncarnation,
    /// A start takes the file that it finds for the one that progress names, and remembers what that file is now.
    IncarnationLearnedAnew,
    /// Which file is read is compared only while nothing flows.
    SourceComparedOnlyWhenIdle,
    /// `start: latest` is resolved at every start.
    LatestAtEveryStart,
    /// Dead letters are written in a transaction of their own, after the epoch's.
    LettersOutsideTransaction,
    /// A part of an epoch that commits by itself saves the position of the whole.
    PrefixSavesWholePosition,
    /// A delivery has no memory of its own: whoever comes first takes all of the budget.
    NoReserve,
    /// The broker appends without looking at the leader's epoch.
    BrokerNoFence,
    /// The broker forgets the last batches of producers when it starts.
    BrokerRingInMemory,
    /// The broker's snapshot of producers holds a group that is not durable yet.
    BrokerUndurableSnapshot,
    /// The broker answers a producer before its batch is durable.
    BrokerAnswerBeforeCommit,
    /// The broker's embedded store does not wait for the disk.
    BrokerNoSync,
    /// The broker removes rows of which no snapshot remembers the producers.
    BrokerTrimWithoutSnapshot,
    /// The broker keeps in memory only that a log begins later.
    BrokerStartInMemory,
    /// The broker's compaction takes the last record of a key for superseded.
    BrokerCompactsLast,
}

impl Bug {
    /// Every bug, with the name that `HAPAX_PLANT` knows it by.
    pub const ALL: [(Self, &'static str); 27] = [
        (Self::NoFence, "no-fence"),
        (Self::AckBeforeCommit, "ack-before-commit"),
        (Self::ProgressBeforeFence, "progress-before-fence"),
        (Self::CommitOutcomeIgnored, "commit-outcome-ignored"),
        (Self::UnconditionalReclaim, "unconditional-reclaim"),
        (Self::OffsetsBeforeEffect, "offsets-before-effect"),
        (Self::ProgressOutsideTransaction, "progress-outside-transaction"),
        (Self::ReductionKeepsLastInIgnore, "reduction-keeps-last-in-ignore"),
        (Self::SortedBisect, "sorted-bisect"),
        (Self::NewestWinsRemoved, "newest-wins-removed"),
        (Self::KeyOfJoinedFields, "key-of-joined-fields"),
        (Self::KeyWithoutVersion, "key-without-version"),
        (Self::PositionWithoutIncarnation, "position-without-incarnation"),
        (Self::IncarnationLearnedAnew, "incarnation-learned-anew"),
        (Self::SourceComparedOnlyWhenIdle, "source-compared-only-when-idle"),
        (Self::LatestAtEveryStart, "latest-at-every-start"),
        (Self::LettersOutsideTransaction, "letters-outside-transaction"),
        (Self::PrefixSavesWholePosition, "prefix-saves-whole-position"),
        (Self::NoReserve, "no-reserve"),
        (Self::BrokerNoFence, "broker-no-fence"),
        (Self::BrokerRingInMemory, "broker-ring-in-memory"),
        (Self::BrokerUndurableSnapshot, "broker-undurable-snapshot"),
        (Self::BrokerAnswerBeforeCommit, "broker-answer-before-commit"),
        (Self::BrokerNoSync, "broker-no-sync"),
        (Self::BrokerTrimWithoutSnapshot, "broker-trim-without-snapshot"),
        (Self::BrokerStartInMemory, "broker-start-in-memory"),
        (Self::BrokerCompactsLast, "broker-compacts-last"),
    ];
}

#[cfg(not(feature = "fault"))]
mod switch {
    use super::Bug;

    /// A place where a prover may kill or stop this process.
    #[inline(always)]
    pub const fn point(_name: &str) {}

    /// Whether a time is over at once.
    #[inline(always)]
    #[must_use]
    pub const fn hurried(_time: &str) -> bool {
        false
    }

    /// Whether a bug is planted.
    #[inline(always)]
    #[must_use]
    pub const fn planted(_bug: Bug) -> bool {
        false
    }
}

#[cfg(feature = "fault")]
mod switch {
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use super::Bug;

    #[derive(Debug)]
    enum Action {
        Kill,
        Stop,
        Pause(Duration),
        Hold,
    }

    #[derive(Debug)]
    struct Fault {
        name: String,
        action: Action,
        on_hit: u64,
        hits: AtomicU64,
    }

    fn faults() -> &'static [Fault] {
        static FAULTS: OnceLock<Vec<Fault>> = OnceLock::new();
        FAULTS.get_or_init(|| std::env::var("HAPAX_FAULT").map_or_else(|_| Vec::new(), |text| parse(&text)))
    }

    fn parse(text: &str) -> Vec<Fault> {
        text.split(';').filter(|part| !part.is_empty()).map(parse_one).collect()
    }

    fn parse_one(text: &str) -> Fault {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().to_owned();
        let action = match parts.next().unwrap_or("kill") {
            "kill" => Action::Kill,
            "stop" => Action::Stop,
            "hold" => Action::Hold,
            other => {
                let ms = other.strip_prefix("pause-").and_then(|ms| ms.parse().ok());
                Action::Pause(Duration::from_millis(ms.expect("HAPAX_FAULT: kill, stop, hold or pause-MS")))
            }
        };
        let on_hit = parts.next().map_or(1, |n| n.parse().expect("HAPAX_FAULT: the third part is a count"));
        Fault { name, action, on_hit, hits: AtomicU64::new(0) }
    }

    /// A place where a prover may kill or stop this process.
    pub fn point(name: &str) {
        for fault in faults().iter().filter(|fault| fault.name == name) {
            if fault.hits.fetch_add(1, Ordering::SeqCst) + 1 == fault.on_hit {
                act(fault);
            }
        }
    }

    fn act(fault: &Fault) {
        if let Ok(path) = std::env::var("HAPAX_FAULT_LOG") {
            let mut log =
                std::fs::OpenOptions::new().create(true).append(true).open(path).expect("the fault log opens");
            writeln!(log, "{} {:?}", fault.name, fault.action).expect("the fault log takes a line");
        }
        match fault.action {
            Action::Kill => kill_process(getpid(), Signal::KILL).expect("a process may kill itself"),
            Action::Stop => {
                kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
                // Another thread may be the one that takes the signal: this one must not go on meanwhile.
                std::thread::sleep(Duration::from_millis(100));
            }
            Action::Pause(time) => std::thread::sleep(time),
            Action::Hold => hold(),
        }
    }

    /// Keeps this thread until the file `FAULT_LOG.go` is there; the others go on.
    fn hold() {
        let log = std::env::var("HAPAX_FAULT_LOG").expect("HAPAX_FAULT: who is held is let go beside HAPAX_FAULT_LOG");
        while !std::path::Path::new(&format!("{log}.go")).exists() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether a time is over at once.
    #[must_use]
    pub fn hurried(time: &str) -> bool {
        static HURRIED: OnceLock<Option<String>> = OnceLock::new();
        HURRIED.get_or_init(|| std::env::var("HAPAX_HURRY").ok()).as_deref() == Some(time)
    }

    /// Whether a bug is planted.
    #[must_use]
    pub fn planted(bug: Bug) -> bool {
        static PLANTED: OnceLock<Option<Bug>> = OnceLock::new();
        let chosen = PLANTED.get_or_init(|| {
            let name = std::env::var("HAPAX_PLANT").ok()?;
            let known = Bug::ALL.iter().find(|(_, known)| *known == name);
            Some(known.expect("HAPAX_PLANT names a known bug").0)
        });
        *chosen == Some(bug)
    }
}

pub use switch::{hurried, planted, point};
