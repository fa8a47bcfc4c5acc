//! Foreign clients and raw frames against our broker and Apache Kafka.

mod clients;
mod wire;
