//! The real program against a real PostgreSQL server, each test in a database of its own.

mod bad_rows;
mod bad_servers;
mod bad_tables;
#[cfg(feature = "broker")]
mod broker;
mod day_two;
mod files;
mod init;
mod lanes;
mod life;
mod looking;
mod workers;
pub(crate) mod world;
