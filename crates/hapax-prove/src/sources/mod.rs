//! An adversary for file sources: a writer appends numbered records while files are rotated, rewritten, moved and removed.
//!
//! A seed deals one case: what is done to the files, at which moment, over which layout, with which workers, into which table.
//! Invariant: what must follow is said by the protocol's rules (`expectation`), never by what the program does.
//! Not here: faults of processes, wires and servers (`scenario`, `points`).

pub mod campaign;
pub mod case;
pub mod deal;
pub mod expectation;
pub mod file_faults;
pub mod lane_ledger;
pub mod packed_faults;
pub mod plants;
pub mod record_writer;
pub mod report;
pub mod rotation;
pub mod source_world;
pub mod story;
pub mod verdict;
pub mod workforce;
