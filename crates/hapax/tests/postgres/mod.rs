//! What is PostgreSQL's own, with the real program against a real server.

mod bad_rows;
mod bad_servers;
mod bad_tables;
#[cfg(feature = "broker")]
mod broker;
mod day_two;
mod files;
mod init;
mod setup;
pub(crate) mod world;
