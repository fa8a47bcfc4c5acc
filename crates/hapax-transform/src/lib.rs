//! The transform of a workflow: a VRL program, compiled once, from a white list of functions.
//!
//! Reads: a program's text, then decoded inputs. Writes: events, straight into the slots of a batch.
//! Invariant: the same input gives the same events in every process. Not here: when a program took too long (the
//! engine's pulse and the binary's watchdog), where its text stands in a file (the binary's configuration).
#![deny(missing_docs)]

mod event;
pub mod functions;
mod json;
mod keys;
mod lane;
mod program;
mod syntax;
mod write;

pub use program::{Fault, Program};

#[cfg(test)]
mod page_tests;
