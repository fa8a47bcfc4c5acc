//! Orders made from a seed: a source for demonstrations, benchmarks and proofs.

mod config;
mod orders;
mod source;

pub use config::{GenerateConfig, GenerateLane};
pub use source::GenerateSource;
