//! What is MariaDB's own, with the real program against a real server.

mod bad_rows;
mod bad_servers;
mod bad_tables;
mod init;
mod pages;
mod setup;
pub(crate) mod world;
