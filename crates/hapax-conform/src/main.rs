//! `hapax-conform clients kafka|ADDRESS [CLIENT…]`: runs foreign clients against a broker and prints what came of it.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use hapax_conform::cells::{Cell, Outcome};
use hapax_conform::client::Client;
use hapax_conform::matrix::{self, Codecs};
use hapax_conform::target::Target;

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["clients", target, names @ ..] => clients(&target_of(target)?, names),
        _ => bail!("hapax-conform clients kafka|ADDRESS [CLIENT…]"),
    }
}

fn target_of(word: &str) -> Result<Target> {
    if word == "kafka" {
        return Target::kafka();
    }
    Ok(Target::running("given", word.parse().with_context(|| format!("\"{word}\" is no address"))?))
}

fn clients(target: &Target, names: &[&str]) -> Result<ExitCode> {
    let mut failed = false;
    for client in Client::ALL.into_iter().filter(|client| names.is_empty() || names.contains(&client.word())) {
        let started = std::time::Instant::now();
        let found = matrix::run(client, target, Codecs::Kept, &Cell::ALL)?;
        println!("{} ({:.1} s)", client.title(), started.elapsed().as_secs_f32());
        for (cell, outcome) in found {
            failed |= matches!(outcome, Outcome::Fail(_));
            match outcome {
                Outcome::Pass(seen) => println!("  {:10} yes: {seen}", cell.word()),
                Outcome::Cannot(why) => println!("  {:10} client cannot: {why}", cell.word()),
                Outcome::Fail(why) => println!("  {:10} NO: {why}", cell.word()),
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
