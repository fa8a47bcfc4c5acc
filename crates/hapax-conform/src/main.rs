//! `hapax-conform clients TARGET [CLIENT…]`: runs foreign clients against a broker and prints what came of it.
//! `hapax-conform wire TARGET TARGET`: sends the same frames to two brokers and prints what differs; no addresses, since
//! both are started again.
//! `hapax-conform peers HAPAX ROUNDS [PART…]`: measures the release build HAPAX beside Apache Kafka.
//! A target is `ours` (embedded), `postgres` (ours on it), `program` (`hapax broker`), `kafka`, or an address.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use hapax_conform::cells::{Cell, Outcome};
use hapax_conform::client::Client;
use hapax_conform::matrix::{self, Codecs};
use hapax_conform::peers::{self, Part};
use hapax_conform::target::Target;
use hapax_conform::wire::{AGREED, Agreed, ON_POSTGRES, compare, play};

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["clients", target, names @ ..] => clients(&target_of(target)?, names),
        ["wire", one, other] => differences(&mut target_of(one)?, &mut target_of(other)?),
        ["peers", hapax, rounds, names @ ..] => measure(Path::new(hapax), rounds, names),
        _ => bail!(
            "hapax-conform clients TARGET [CLIENT…] | wire TARGET TARGET | peers HAPAX ROUNDS [PART…]; \
             a target is ours, postgres, program, kafka, or an address"
        ),
    }
}

fn target_of(word: &str) -> Result<Target> {
    match word {
        "kafka" => Target::kafka(),
        "ours" => Target::ours(),
        "program" => Target::program(),
        "postgres" => Target::ours_on_postgres(),
        _ => Ok(Target::running(word.parse().with_context(|| format!("\"{word}\" is no address"))?)),
    }
}

fn measure(hapax: &Path, rounds: &str, names: &[&str]) -> Result<ExitCode> {
    let rounds = rounds.parse().with_context(|| format!("\"{rounds}\" is no number of rounds"))?;
    let part_of = |name: &&str| {
        let part = Part::ALL.into_iter().chain([Part::Glance]).find(|part| part.word() == *name);
        part.with_context(|| format!("there is no part \"{name}\"; there are {}", Part::ALL.map(Part::word).join(", ")))
    };
    let parts = names.iter().map(part_of).collect::<Result<Vec<_>>>()?;
    peers::run(hapax, if parts.is_empty() { &Part::ALL } else { &parts }, rounds)?;
    Ok(ExitCode::SUCCESS)
}

fn differences(one: &mut Target, other: &mut Target) -> Result<ExitCode> {
    let agreed: Vec<Agreed> = match other.name.contains("PostgreSQL") {
        true => AGREED.iter().chain(ON_POSTGRES).copied().collect(),
        false => AGREED.to_vec(),
    };
    let (kafka, ours) = (play(one)?, play(other)?);
    let (found, used) = compare(&kafka.entries, &ours.entries, &agreed);
    found.iter().for_each(|difference| println!("{difference}"));
    println!("{} answers, {} differences, {} agreements used", kafka.entries.len(), found.len(), used.len());
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn clients(target: &Target, names: &[&str]) -> Result<ExitCode> {
    let mut failed = false;
    for client in Client::ALL.into_iter().filter(|client| names.is_empty() || names.contains(&client.word())) {
        let started = std::time::Instant::now();
        let codecs = if target.name.contains("PostgreSQL") { Codecs::Undone } else { Codecs::Kept };
        let found = matrix::run(client, target, codecs, &Cell::ALL)?;
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
