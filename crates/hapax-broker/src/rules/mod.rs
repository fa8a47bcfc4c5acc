//! The rules of Kafka, pure: state and request in, new state or refusal out.

pub mod group;
