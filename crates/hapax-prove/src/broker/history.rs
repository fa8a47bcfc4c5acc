//! What was asked of a broker and what came of it: per process, with times; and the log as it is at the end.
//!
//! Invariant: a process does one thing at a time. Not here: what is wrong with it (`check`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Microseconds since the run began.
pub type Moment = u64;

/// A record's name, which is its value: who wrote it, and which of its records it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// The process that wrote it.
    pub process: u32,
    /// Its number, one more with each record of the process.
    pub number: u64,
}

/// How many keys records have: the more records, the more of them are superseded.
const KEYS: u64 = 32;

impl Name {
    /// The key of its record, shared by all who write: of each only the last record stays in a compacted log.
    #[must_use]
    pub const fn key(self) -> u64 {
        self.number % KEYS
    }

    /// The value that carries it, with ballast up to `size` bytes.
    #[must_use]
    pub fn value(self, size: usize) -> String {
        format!("{:<size$}", format!("{}:{}", self.process, self.number))
    }

    /// The name in a value, if it is one.
    #[must_use]
    pub fn read(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok()?.trim_end();
        let (process, number) = text.split_once(':')?;
        Some(Self { process: process.parse().ok()?, number: number.parse().ok()? })
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.process, self.number)
    }
}

/// How a producer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// With sequences: neither doubled nor reordered, whatever is tried again.
    Idempotent,
    /// Without: what is tried again may be there twice.
    Plain,
}

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Append the process's records `first .. first + count`. All tries with the same records are one batch.
    Produce {
        /// Where.
        partition: i32,
        /// The number of the first record.
        first: u64,
        /// How many.
        count: u32,
        /// How.
        way: Way,
    },
    /// Read records from an offset on.
    Read {
        /// Where.
        partition: i32,
        /// The first offset wanted.
        from: i64,
    },
    /// Where the log ends.
    End {
        /// Of which partition.
        partition: i32,
    },
    /// Where the log begins.
    Start {
        /// Of which partition.
        partition: i32,
    },
    /// Let the log begin here.
    Delete {
        /// Of which partition.
        partition: i32,
        /// The first offset that stays.
        upto: i64,
    },
    /// Commit a group's offset.
    Commit {
        /// The group.
        group: u32,
        /// The partition.
        partition: i32,
        /// The next offset to read.
        offset: i64,
    },
    /// Which offset a group has committed.
    Committed {
        /// The group.
        group: u32,
        /// The partition.
        partition: i32,
    },
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The batch is there, from this offset on.
    Appended(i64),
    /// These records, and the end of the log at that time.
    Records {
        /// Offset and name; `None`: a value that is no name.
        records: Vec<(i64, Option<Name>)>,
        /// Where the log ends.
        end: i64,
    },
    /// There is no such offset: the log ends before it.
    Beyond,
    /// There is no such offset any more: the log begins after it.
    Gone,
    /// The log ends here.
    End(i64),
    /// The log begins here.
    Start(i64),
    /// The offset is committed.
    Done,
    /// The offset that is committed, if one is.
    Offset(Option<i64>),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Ok(Answer),
    /// It was not done, and never will be.
    Fail(String),
    /// Nobody knows.
    Unknown(String),
}

/// One thing that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// By whom.
    pub process: u32,
    /// When.
    pub invoked: Moment,
    /// When the answer came, or was given up.
    pub ended: Moment,
    /// What.
    pub ask: Ask,
    /// What came of it.
    pub outcome: Outcome,
}

/// A record of the log as it is at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// Its offset.
    pub offset: i64,
    /// Its name; `None`: a value that is no name.
    pub name: Option<Name>,
    /// The epoch of the leader that wrote it.
    pub leader_epoch: i32,
    /// The bytes of its value.
    pub bytes: u32,
}

/// What may go from a log, besides by [`Ask::Delete`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cleanup {
    /// Nothing.
    #[default]
    Nothing,
    /// Records at the front, as long as so many bytes stay.
    Bytes(u64),
    /// Records whose key was written again.
    Compact,
}

/// Everything.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// What was asked, in no order.
    pub operations: Vec<Operation>,
    /// The log per partition, read when all was over.
    pub log: BTreeMap<i32, Vec<Logged>>,
    /// Where each log begins; one that is not named begins at 0.
    pub starts: BTreeMap<i32, i64>,
    /// What may be gone.
    pub cleanup: Cleanup,
}

impl History {
    /// Where a log begins.
    #[must_use]
    pub fn start(&self, partition: i32) -> i64 {
        self.starts.get(&partition).copied().unwrap_or(0)
    }

    /// Where a log ends.
    #[must_use]
    pub fn end(&self, partition: i32) -> i64 {
        let last = self.log.get(&partition).and_then(|records| records.last());
        last.map_or_else(|| self.start(partition), |last| last.offset.saturating_add(1))
    }

    /// Forgets what was of a topic that was then deleted, and made again under the same name: between these moments it is not
    /// known which of the two somebody wrote to, and earlier it was the old one.
    pub fn begin_anew(&mut self, deleted: Moment, made: Moment) {
        self.operations.retain_mut(|one| {
            if one.invoked >= made {
                return true;
            }
            let writes = matches!(one.ask, Ask::Produce { .. } | Ask::Commit { .. });
            // Of what nobody knew before the deletion, something may have come late.
            let may_be_late = one.ended >= deleted || matches!(one.outcome, Outcome::Unknown(_));
            one.outcome = Outcome::Unknown("the topic was made anew meanwhile".to_owned());
            writes && may_be_late
        });
    }

    /// One line per event, by time: for people who look for what went wrong.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines: Vec<(Moment, u8, String)> = Vec::with_capacity(self.operations.len() * 2);
        for one in &self.operations {
            lines.push((one.invoked, 1, format!("{} invoke {:?}", one.process, one.ask)));
            let outcome = match &one.outcome {
                Outcome::Ok(Answer::Records { records, end }) => {
                    let last = records.last().map(|(offset, _)| *offset);
                    format!("ok {} records up to {last:?}, end {end}", records.len())
                }
                Outcome::Ok(answer) => format!("ok {answer:?}"),
                Outcome::Fail(why) => format!("fail {why}"),
                Outcome::Unknown(why) => format!("unknown {why}"),
            };
            lines.push((one.ended, 0, format!("{} {outcome}", one.process)));
        }
        lines.sort();
        let mut out = String::new();
        for (moment, _, line) in lines {
            writeln!(out, "{:>12.6} {line}", moment as f64 / 1e6).expect("a string takes text");
        }
        for (partition, records) in &self.log {
            writeln!(out, "log {partition} begins at {}", self.start(*partition)).expect("a string takes text");
            for record in records {
                let name = record.name.map_or_else(|| "?".to_owned(), |name| name.to_string());
                writeln!(out, "log {partition} {} {name} epoch {}", record.offset, record.leader_epoch)
                    .expect("a string takes text");
            }
        }
        out
    }
}

/// Where the processes of a run write down what they do.
#[derive(Debug, Clone)]
pub struct Recorder {
    began: Instant,
    operations: Arc<Mutex<Vec<Operation>>>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { began: Instant::now(), operations: Arc::default() }
    }
}

impl Recorder {
    /// Now.
    #[must_use]
    pub fn now(&self) -> Moment {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Writes down what `process` asked at `invoked`, and what came of it just now.
    pub fn note(&self, process: u32, invoked: Moment, ask: Ask, outcome: Outcome) {
        let operation = Operation { process, invoked, ended: self.now(), ask, outcome };
        self.operations.lock().unwrap_or_else(PoisonError::into_inner).push(operation);
    }

    /// How many operations have ended so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// How many of them appended something, and are known to have.
    #[must_use]
    pub fn appended(&self) -> usize {
        let operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        operations.iter().filter(|one| matches!(one.outcome, Outcome::Ok(Answer::Appended(_)))).count()
    }

    /// How many times a log was told to begin later, and did.
    #[must_use]
    pub fn deletions(&self) -> usize {
        let operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        operations.iter().filter(|one| matches!((one.ask, &one.outcome), (Ask::Delete { .. }, Outcome::Ok(_)))).count()
    }

    /// How many offsets of a group were committed.
    #[must_use]
    pub fn commits(&self, wanted: u32) -> usize {
        let operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        let commit = |one: &&Operation| matches!((&one.ask, &one.outcome), (Ask::Commit { group, .. }, Outcome::Ok(_)) if *group == wanted);
        operations.iter().filter(commit).count()
    }

    /// All of it.
    #[must_use]
    pub fn take(&self) -> Vec<Operation> {
        std::mem::take(&mut *self.operations.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
