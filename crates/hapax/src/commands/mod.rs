//! One file per command. Each returns the exit code, or why it failed.

#[cfg(feature = "broker")]
mod broker;
mod check;
mod demo;
mod dlq;
mod init;
mod look;
mod pause;
mod reset;
mod run;
mod setup;
mod show;
mod status;
mod table;
mod test;
#[cfg(feature = "broker")]
mod topic;

use std::io::{IsTerminal as _, Write as _};

use crate::cli::{Cli, Command, Doing, Shared};
use crate::config::{self, Config, Loaded, Workflow};
use crate::exit::{Failure, USAGE};

/// Does what the command line says.
pub(crate) async fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let shared = &cli.shared;
    match cli.command {
        Command::Demo(args) => demo::demo(&args, shared).await,
        Command::Init(args) => Box::pin(init::init(&args, shared)).await,
        Command::Check(args) => check::check(&args, shared).await,
        Command::Test(args) => test::test(&args, shared).await,
        Command::Run(args) => run::run(&args, shared).await,
        Command::Setup(args) => setup::setup(&args, shared).await,
        Command::Status(args) => status::status(&args, shared).await,
        Command::Trace(args) => look::trace::trace(&args, shared).await,
        Command::Stuck(args) => look::stuck::stuck(&args, shared).await,
        Command::Reconcile(args) => look::reconcile::reconcile(&args, shared).await,
        Command::Top(args) => look::top::top(&args, shared).await,
        Command::Tap(args) => look::tap::tap(&args, shared).await,
        Command::Dlq(command) => dlq::dlq(command, shared).await,
        Command::Reset(args) => reset::reset(&args, shared).await,
        Command::Pause(args) => pause::pause(&args, shared).await,
        Command::Resume(args) => pause::resume(&args, shared).await,
        #[cfg(feature = "broker")]
        Command::Broker(args) => Box::pin(broker::broker(&args, shared)).await,
        #[cfg(feature = "broker")]
        Command::Topic(command) => Box::pin(topic::topic(command, shared)).await,
        Command::Config(command) => show::config(&command, shared),
        Command::Completions { shell } => {
            show::completions(shell);
            Ok(0)
        }
    }
}

/// Reads the configuration; its problems are printed all at once.
fn load(shared: &Shared) -> Result<Loaded, Failure> {
    match config::load(&shared.config, &config::System) {
        Ok(loaded) => {
            loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            Ok(loaded)
        }
        Err(problems) if shared.json => {
            println!("{:#}", problems.to_json());
            Err(Failure::problems(String::new()))
        }
        Err(problems) => Err(Failure::problems(problems.to_string())),
    }
}

/// A workflow that does not exist is answered with those that do.
fn known_workflow<'a>(config: &'a Config, id: &str) -> Result<&'a Workflow, Failure> {
    config.workflows.iter().find(|workflow| workflow.id == id).ok_or_else(|| {
        let known: Vec<&str> = config.workflows.iter().map(|workflow| workflow.id.as_str()).collect();
        let message = format!("there is no workflow \"{id}\"; there are {}", known.join(", "));
        Failure::new("HX5001", message).with_exit(USAGE)
    })
}

/// Prints an answer for a program.
fn print_json(value: &serde_json::Value) {
    println!("{value:#}");
}

/// Whether to go on with something that changes things: `--dry-run` says no, `--yes` says yes, a terminal is asked.
fn confirmed(doing: Doing, question: &str) -> Result<bool, Failure> {
    if doing.dry_run {
        println!("Dry run: nothing was changed.");
        return Ok(false);
    }
    if doing.yes {
        return Ok(true);
    }
    ask(question, "say --yes to do it, or --dry-run to see what would happen")
}

/// Asks on the terminal; `otherwise` says what to do where there is none.
fn ask(question: &str, otherwise: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        let message = format!("there is no terminal to ask on: {otherwise}");
        return Err(Failure::new("HX5004", message).with_exit(USAGE));
    }
    print!("{question} [y/N] ");
    std::io::stdout().flush().ok();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|e| Failure::new("HX5004", e.to_string()))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
