//! The rules of Kafka, pure: state and request in, new state or refusal out.

pub mod group;
pub mod init_producer;
pub mod producer;
pub mod producer_error;
pub mod sequence;
