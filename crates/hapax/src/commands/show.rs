//! `hapax config show|schema` and `hapax completions`.

use clap::CommandFactory as _;

use super::{load, print_json};
use crate::cli::{Cli, ConfigCommand, Shared};
use crate::config;
use crate::exit::Failure;

/// Shows the configuration as it is understood, or its schema.
pub(crate) fn config(command: &ConfigCommand, shared: &Shared) -> Result<u8, Failure> {
    match command {
        ConfigCommand::Schema => print_json(&config::json_schema()),
        ConfigCommand::Show => {
            let loaded = load(shared)?;
            if shared.json { print_json(&loaded.to_json()) } else { print!("{}", loaded.to_yaml()) }
        }
    }
    Ok(0)
}

/// Prints completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "hapax", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
}
