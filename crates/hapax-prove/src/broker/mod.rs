//! Tries to break the broker: Kafka clients that keep a history, faults meanwhile, and a judge.

pub mod check;
pub mod history;
pub mod load;
