//! For now: reads a configuration, says all that is wrong with it, or prints it with every default.

mod config;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (options, paths): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    if options.iter().any(|option| option == "--schema") {
        println!("{:#}", config::json_schema());
        return ExitCode::SUCCESS;
    }
    let json = options.iter().any(|option| option == "--json");
    let path = paths.first().map_or_else(|| PathBuf::from(config::DEFAULT_FILE), PathBuf::from);
    match config::load(&path, &config::System) {
        Ok(loaded) => {
            loaded.warnings.iter().for_each(|warning| eprintln!("{warning}"));
            for workflow in &loaded.config.workflows {
                if let Some(lacking) = workflow.incomplete() {
                    eprintln!("{} is incomplete: it lacks {lacking}", workflow.id);
                }
            }
            if json { println!("{:#}", loaded.to_json()) } else { print!("{}", loaded.to_yaml()) }
            ExitCode::SUCCESS
        }
        Err(problems) if json => {
            println!("{:#}", problems.to_json());
            ExitCode::from(2)
        }
        Err(problems) => {
            eprintln!("{problems}");
            ExitCode::from(2)
        }
    }
}
