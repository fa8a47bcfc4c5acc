//! Does our broker pass for Kafka? Unmodified clients and raw frames, against ours and against Apache Kafka.
//!
//! Reads: the programs in `clients`. Writes: topics of its own on the broker under test, `docs/kafka/clients-table.md`.
//! Not here: what a broker must do (`hapax-broker`), how servers and packages are had (`hapax-services`).

#![deny(missing_docs)]

pub mod cells;
pub mod client;
pub mod log_check;
pub mod matrix;
pub mod peers;
pub mod program;
pub mod proxy;
pub mod table;
pub mod target;
pub mod wire;
