//! Nouns and pure rules of delivery.
//!
//! Everything here is a function of its arguments: no clock, no randomness, no file, no network. What the rules
//! decide, the engine carries out. The only exception is [`fault`], which is empty unless the `fault` feature is on.
#![deny(missing_docs)]

pub mod audit;
pub mod condition;
pub mod contract;
pub mod counter;
pub mod dedup;
pub mod delivery;
pub mod delivery_state;
pub mod epoch;
pub mod fault;
pub mod field;
pub mod key;
pub mod ledger;
pub mod letter;
pub mod mode;
pub mod name_list;
pub mod nearest;
pub mod outcome;
pub mod position;
pub mod progress;
pub mod rejects;
pub mod tracker;
pub mod transaction;
pub mod units;
