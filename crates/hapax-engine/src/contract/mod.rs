//! Tests that every implementation of a trait runs, so that the trait's doc is true of each.

pub mod sink;
pub mod source;
pub mod state;
