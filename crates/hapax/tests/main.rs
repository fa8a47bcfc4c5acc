//! The real program, run as a new user runs it: fresh folders, real files, real databases.

mod bad_configuration;
mod bad_files;
mod bad_input;
mod bad_tables;
mod check;
mod demo;
mod dlq;
mod follow;
mod gone_back;
mod guarantees;
#[cfg(feature = "postgres")]
mod postgres;
mod reset;
mod run;
mod setup;
mod show;
mod status;
mod two_workers;
mod world;
