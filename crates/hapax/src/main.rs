//! The program: flags, configuration, assembly, commands.

#[macro_use]
mod output;

#[cfg(feature = "http")]
mod alert;
mod assemble;
mod cli;
mod commands;
mod config;
mod descriptors;
mod exit;
mod logging;
mod roster;
mod sample;
mod serve;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};

/// Whether it runs until it is asked to end, and its log is all that people see of it.
const fn serves(command: &Command) -> bool {
    #[cfg(feature = "broker")]
    if matches!(command, Command::Broker(_)) {
        return true;
    }
    matches!(command, Command::Run(_))
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let level = if serves(&cli.command) { "info" } else { "warn" };
    logging::start(&cli.shared, level);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("hapax: no threads could be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(commands::dispatch(cli));
    runtime.shutdown_background();
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let text = failure.to_string();
            if !text.is_empty() {
                eprintln!("hapax: {text}");
            }
            ExitCode::from(failure.exit_code)
        }
    }
}
