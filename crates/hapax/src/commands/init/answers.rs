//! What `init` wants to know: given by arguments, else asked on the terminal, each with a default where there is one.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use super::fit::Fit;
use super::sample::From;
use super::target::To;
use super::{MISSING, UNCLEAR};
use crate::cli::InitArgs;
use crate::exit::{Failure, USAGE};

/// Arguments first, then the terminal.
pub(super) struct Answers<'a> {
    args: &'a InitArgs,
    asks: bool,
}

impl<'a> Answers<'a> {
    /// Without a terminal everything that has no default must be given.
    pub(super) fn new(args: &'a InitArgs) -> Result<Self, Failure> {
        let asks = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let missing: Vec<&str> = [("--from", args.from.is_none()), ("--to", args.to.is_none())]
            .into_iter()
            .filter_map(|(name, missing)| missing.then_some(name))
            .collect();
        if !asks && !missing.is_empty() {
            let message = format!(
                "there is no terminal to ask on, and {} missing: hapax init --from orders.csv --to sqlite:shop.db --table orders",
                if missing.len() == 1 {
                    format!("{} is", missing[0])
                } else {
                    format!("{} are", missing.join(" and "))
                }
            );
            return Err(Failure::new(MISSING, message).with_exit(USAGE));
        }
        if asks && !missing.is_empty() {
            println!(
                "Two questions, and a file that `hapax run` can use. Ctrl-C ends it; nothing is written before the end.\n"
            );
        }
        Ok(Self { args, asks })
    }

    pub(super) fn source(&mut self) -> Result<From, Failure> {
        let text = match &self.args.from {
            Some(text) => text.clone(),
            None => ask(
                "Where do events come from? A file of JSON lines or CSV (orders.csv), a pattern ('in/*.csv'), or generate",
                Some("generate"),
            )?,
        };
        Ok(From::parse(&text))
    }

    pub(super) fn target(&mut self, folder: &Path) -> Result<To, Failure> {
        let text = match &self.args.to {
            Some(text) => text.clone(),
            None => ask(
                "Where do they go? sqlite:FILE, postgres://user:password@host/database, mysql://user:password@host/database",
                Some("sqlite:shop.db"),
            )?,
        };
        To::parse(&text, folder)
    }

    pub(super) fn table(&mut self, from: &From) -> Result<String, Failure> {
        let proposed = from.name();
        match &self.args.table {
            Some(table) => Ok(table.clone()),
            None if self.asks => ask("Into which table?", Some(&proposed)),
            None => Ok(proposed),
        }
    }

    /// The fields that name a row.
    pub(super) fn keys(&mut self, fit: &Fit) -> Result<Vec<String>, Failure> {
        let proposed = fit.proposed_keys();
        let chosen = if !self.args.key.is_empty() {
            self.args.key.clone()
        } else if self.asks {
            let shown = if proposed.is_empty() { "none".to_owned() } else { proposed.join(", ") };
            let answer = ask("Which fields name a row? A later event with the same ones replaces it", Some(&shown))?;
            answer
                .split(',')
                .map(|name| name.trim().to_owned())
                .filter(|name| !name.is_empty() && name != "none")
                .collect()
        } else {
            return Ok(proposed);
        };
        match chosen.iter().find(|name| !fit.has_field(name)) {
            Some(unknown) if fit.has_fields() => {
                let message = format!("the source has no field {unknown}; there are {}", fit.field_names().join(", "));
                Err(Failure::new(UNCLEAR, message).with_exit(USAGE))
            }
            Some(_) | None => Ok(chosen),
        }
    }
}

/// Asks for a line; an empty one is the default.
fn ask(question: &str, default: Option<&str>) -> Result<String, Failure> {
    match default {
        Some(default) => print!("{question} [{default}]: "),
        None => print!("{question}: "),
    }
    std::io::stdout().flush().ok();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer).map_err(|error| Failure::new(MISSING, error.to_string()))?;
    if read == 0 {
        return Err(
            Failure::new(MISSING, "the terminal was closed before the end; nothing was written").with_exit(USAGE)
        );
    }
    let answer = answer.trim();
    Ok(if answer.is_empty() { default.unwrap_or_default().to_owned() } else { answer.to_owned() })
}
