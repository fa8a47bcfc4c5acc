//! Servers for tests and for the prover: found, started on a free port, stopped, never left behind.
//!
//! Reads: the PATH, the usual directories, the server's own log. Writes: one scratch directory per server.
//! Invariant: a server ends when its holder does, however that ends.
//! Not here: anything of the product; this crate knows nothing of Hapax.

#![deny(missing_docs)]

mod account;
mod cache;
mod client;
mod error;
mod fetch_mysql;
mod find;
mod find_mariadb;
mod holder;
mod install;
mod kafka;
mod launch;
mod mariadb;
mod mysql_client;
mod packages;
mod postgres;
mod product;
mod replica;
mod scratch;

pub use client::{Answer, Client};
pub use error::ServiceError;
pub use find::{Programs, find_postgres};
pub use find_mariadb::{MariadbPrograms, find_mariadb, find_mysql};
pub use holder::Stop;
pub use kafka::{Kafka, KafkaBuilder};
pub use mariadb::{Mariadb, MariadbBuilder};
pub use mysql_client::MysqlClient;
pub use packages::{KAFKA_VERSION, Kcat, Librdkafka, go_program, kafka_jars, kcat, librdkafka, node_modules, python};
pub use postgres::{Builder, Postgres};
pub use product::Product;
pub use replica::Replication;
