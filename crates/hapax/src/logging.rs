//! Logs: lines on standard error, for people or for programs.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::cli::{LogFormat, Shared};

/// Starts logging as the command line asks for it.
pub(crate) fn start(shared: &Shared, default_level: &str) {
    let filter = shared.log_level.as_deref().unwrap_or(default_level);
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|error| {
        eprintln!("hapax: --log-level \"{filter}\" is not understood ({error}); logging at {default_level}");
        EnvFilter::new(default_level)
    });
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match shared.log_format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
}
