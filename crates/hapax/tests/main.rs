//! The real program, run as a new user runs it: fresh folders, real files, real databases.

#[cfg(feature = "http")]
mod alerts;
#[cfg(feature = "compression")]
mod archives;
mod backlog;
mod bad_configuration;
mod bad_files;
mod bad_input;
mod bad_tables;
#[cfg(feature = "broker")]
mod broker;
mod chains;
mod chains_elsewhere;
#[cfg(feature = "http")]
mod chat;
mod check;
mod check_and_run;
#[cfg(feature = "compression")]
mod copies;
mod demo;
mod dlq;
mod doubt_by_rules;
mod file_names;
mod files;
mod files_by_name;
mod first_letter;
mod follow;
mod given_up;
mod gone_back;
mod guarantees;
mod in_doubt;
mod init;
mod init_order;
mod limits;
mod looking;
mod many_files;
#[cfg(feature = "mysql")]
mod mysql;
mod one_story;
mod pages;
mod pause;
#[cfg(feature = "postgres")]
mod postgres;
mod quiet_lane;
mod reconcile;
mod reload;
mod reset;
mod restored_files;
mod rotations;
mod run;
mod same_table;
mod schema_change;
#[cfg(all(feature = "broker", feature = "http", feature = "mysql", feature = "postgres"))]
mod secrets;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod servers;
mod setup;
mod show;
mod status;
mod trace;
#[cfg(feature = "transform")]
mod transform;
mod trial;
mod trouble;
mod two_workers;
mod web;
mod world;
