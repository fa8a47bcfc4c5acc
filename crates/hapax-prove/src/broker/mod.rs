//! Tries to break the broker: Kafka clients that keep a history, faults meanwhile, and a judge.
//!
//! The way of a cell: `cell` (which story on which store) → `world` (store, brokers, clients) → `story` (what happens to
//! them) → `history` (what the clients saw, the log at the end) → `check` (what is wrong with it).
//! Invariant: the clients are those of `hapax-kafka`, which shares no code with the broker.

pub mod campaign;
pub mod cell;
pub mod check;
mod disk;
pub mod history;
mod hostile;
pub mod load;
pub mod plants;
pub mod points;
pub mod power;
pub mod process;
mod removal;
pub mod report;
pub mod run;
pub mod story;
pub mod world;
