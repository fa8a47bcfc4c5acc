//! The commands that look: `trace`, `stuck`, `reconcile`, `top`, `tap`.
//!
//! Reads: progress, epoch log, letters, notes, the target's rows, and the source on a cursor of its own.
//! Writes: nothing. Invariant: none of them claims, takes a lease, or takes a lock that a worker would wait for.

pub(crate) mod clock;
mod history;
mod reader;
pub(super) mod reconcile;
pub(super) mod stuck;
pub(super) mod subject;
pub(super) mod tap;
pub(super) mod top;
pub(super) mod trace;

use std::io::IsTerminal as _;

use crate::cli::Shared;
use crate::exit::{Failure, USAGE};

/// What was asked for cannot be understood.
const UNCLEAR: &str = "HX5040";
/// The source cannot be read from there.
const UNREADABLE: &str = "HX5041";

fn unclear(message: impl Into<String>) -> Failure {
    Failure::new(UNCLEAR, message).with_exit(USAGE)
}

/// At most `characters` of a text, in one line.
fn short(text: &str, characters: usize) -> String {
    let mut line: String = text.chars().take(characters).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(characters).is_some() {
        line.push('…');
    }
    line
}

/// A progress bar over `total` inputs, where a person is there to see it.
fn bar(total: u64, shared: &Shared) -> indicatif::ProgressBar {
    if shared.json || !std::io::stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    let style = indicatif::ProgressStyle::with_template("{msg}{bar:40} {percent:>3}% {pos} of {len} inputs");
    indicatif::ProgressBar::new(total).with_style(style.expect("the template is right"))
}
