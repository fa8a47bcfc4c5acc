//! Tries to break Hapax from outside, and says whether it held.
//!
//! Starts the real `hapax` binary as child processes, kills and stops them at named places, and judges with its own
//! connection to the target. Links nothing that it judges: what it knows of Hapax is the command line, the
//! configuration file and the tables that any user can read. The broker is asked by our Kafka client, which
//! shares no code with the broker.
#![deny(missing_docs)]

pub mod broker;
pub mod catalog;
pub mod cell;
pub mod check;
pub mod child;
pub mod config;
pub mod database;
pub mod ddl;
pub mod feed;
pub mod guardian;
pub mod launch;
pub mod lodging;
pub mod observe;
pub mod plants;
pub mod points;
pub mod proxy;
pub mod reader;
pub mod report;
pub mod run;
pub mod scenario;
pub mod servers;
pub mod setting;
pub mod shape;
pub mod slice;
pub mod sources;
mod tell;
pub mod truth;
pub mod workload;
pub mod world;
