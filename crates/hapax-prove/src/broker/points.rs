//! The points at which a broker can be killed, and how far it gets there.

/// A point in the broker's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Its name.
    pub name: &'static str,
    /// The broker is killed at one of its first so many passes.
    pub latest_pass: u64,
}

const fn point(name: &'static str, latest_pass: u64) -> Point {
    Point { name, latest_pass }
}

/// All points that a broker passes whenever clients work; most are in `hapax-broker`'s `fault.rs`.
pub static POINTS: [Point; 8] = [
    point("append.before_commit", 40),
    point("append.after_commit", 40),
    point("append.before_answer", 40),
    point("broker.taken_over", 1),
    point("offsets.before_commit", 20),
    point("offsets.after_commit", 20),
    point("group.before_save", 1),
    point("group.after_save", 1),
];

/// Points that a broker passes when retention removes something.
pub static RETENTION: [Point; 2] = [point("retention.start_moved", 4), point("retention.before_trim", 4)];

/// Points that a broker passes when it compacts a log.
pub static COMPACTION: [Point; 2] = [point("compaction.before_replace", 4), point("compaction.after_replace", 4)];
