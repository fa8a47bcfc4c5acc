//! `hapax-prove`: tries to break a `hapax` binary that was built with its fault points.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;

use hapax_prove::broker::campaign::{self, Campaign, Extent, Plants};
use hapax_prove::catalog::cells;
use hapax_prove::cell::Cell;
use hapax_prove::plants::{self, PLANTS, Planted};
use hapax_prove::report::{Report, line};
use hapax_prove::run::{Keep, run_all};
use hapax_prove::servers::{Family, Servers};
use hapax_prove::slice::{fitting, order};
use hapax_prove::sources::campaign::{PlantedBugs, SeedRange, SourcesCampaign};
use hapax_prove::sources::deal::pairs;
use hapax_prove::world::Environment;

/// Kills and stops real `hapax` processes at every fault point, and judges from outside whether the promise held.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The program under test, built with `--features fault`.
    #[arg(long, default_value = "target/debug/hapax")]
    hapax: PathBuf,
    /// Workloads, moments and the choice of cells follow from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run as many cells as fit into --minutes, chosen by the seed, every kind its turn.
    #[arg(long, conflicts_with = "all")]
    slice: bool,
    /// How long a slice may take.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// Run every cell, and every planted bug.
    #[arg(long)]
    all: bool,
    /// Only cells whose name contains this text, where `*` is any text; `=NAME` for exactly that one.
    #[arg(long, value_name = "FILTER")]
    only: Option<String>,
    /// Run the planted bugs: each must be caught, and the same seed must pass without it. --only looks at "BUG CELL".
    #[arg(long)]
    plants: bool,
    /// Plant this bug in every process of this run.
    #[arg(long, value_name = "BUG")]
    plant: Option<String>,
    /// Tell the cells of MariaDB on MySQL's own server. Not every machine can have it, and no run needs it.
    #[arg(long)]
    mysql: bool,
    /// The broker's cells instead of the workflows'.
    #[arg(long)]
    broker: bool,
    /// With --broker: only power loss, with so many seeds. Needs root and loop devices.
    #[arg(long, value_name = "SEEDS", requires = "broker", conflicts_with_all = ["all", "slice", "plants"])]
    power: Option<u64>,
    /// File sources instead of the workflows' cells: every seed deals a case, from --seed on.
    #[arg(long, conflicts_with_all = ["broker", "all"])]
    sources: bool,
    /// With --sources: how many seeds.
    #[arg(long, value_name = "COUNT", default_value_t = 200, requires = "sources")]
    seeds: u64,
    /// Print the names of the cells and run none.
    #[arg(long)]
    list: bool,
    /// The report as JSON, to this file or to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// The report as text, to this file too.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// How many cells run at a time: by default two per core, for they wait most of their time.
    #[arg(long, default_value_t = jobs())]
    jobs: usize,
    /// Where cells make their directories; those of failed cells are kept.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Keep the directories of cells that passed, too.
    #[arg(long)]
    keep: bool,
}

fn jobs() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (2 * cores).min(8)
}

/// The part of a slice's time that the cells may take; the rest is for planted bugs.
const CELLS_PART: f64 = 0.75;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("hapax-prove: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.broker {
        return run_broker(arguments);
    }
    if arguments.sources {
        return run_sources(arguments);
    }
    let chosen = choose(arguments);
    if arguments.list {
        chosen.iter().for_each(|cell| println!("{}", cell.name()));
        return Ok(ExitCode::SUCCESS);
    }
    let environment = environment(arguments)?;
    let started = Instant::now();
    let part = |part: f64| started + Duration::from_secs_f64(arguments.minutes * 60.0 * part);
    let keep = if arguments.keep { Keep::All } else { Keep::Failed };
    let with_plants = wants_plants(arguments);
    let cells = if with_plants && !arguments.all && !arguments.slice { Vec::new() } else { chosen };
    let count = cells.len();
    eprintln!("{count} cells, seed {}, {} at a time", arguments.seed, arguments.jobs);
    if arguments.mysql {
        eprintln!("left out: the cells of MariaDB's replica, which is not made of MySQL's own server");
    }
    let show = |done: &_| eprintln!("{}", line(done));
    // Part of a slice's time belongs to the planted bugs, however slow the machine is.
    let until = arguments.slice.then(|| part(CELLS_PART));
    let (done, not_started) = run_all(&environment, cells, arguments.seed, arguments.jobs, until, keep, show);
    let until = arguments.slice.then(|| part(1.0));
    let planted = if with_plants { run_plants(&environment, arguments, until) } else { Vec::new() };
    let report = Report {
        seed: arguments.seed,
        hapax: environment.hapax.display().to_string(),
        took: started.elapsed(),
        chosen: count,
        not_started,
        cells: done,
        plants: planted,
        servers: environment.servers.versions(),
    };
    write_report(arguments, report.text(), &report.json())?;
    if arguments.dir.is_none() {
        // Fails if cells were kept in it, as it should.
        drop(std::fs::remove_dir(&environment.base));
    }
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The planted bugs belong to a whole run and, some of them, to a slice; a chosen bug or cell excludes them.
fn wants_plants(arguments: &Arguments) -> bool {
    arguments.plants || ((arguments.all || arguments.slice) && arguments.plant.is_none() && arguments.only.is_none())
}

/// Whether `name` holds the parts of `filter` between its stars, in their order.
fn contains(name: &str, filter: &str) -> bool {
    let after = |rest: &'_ str, part: &str| rest.find(part).map(|at| at + part.len());
    let mut start = 0;
    filter.split('*').all(|part| {
        after(&name[start..], part).is_some_and(|end| {
            start += end;
            true
        })
    })
}

/// Whether `--only` names this cell.
fn wanted(arguments: &Arguments, name: &str) -> bool {
    match arguments.only.as_deref() {
        None => true,
        Some(filter) => match filter.strip_prefix('=') {
            Some(exactly) => name == exactly,
            None => contains(name, filter),
        },
    }
}

/// The broker's cells: the same words on the command line, the same names in the report.
fn run_broker(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let wanted = |name: &str| wanted(arguments, name);
    if arguments.list {
        campaign::chosen(arguments.seed, wanted).iter().for_each(|cell| println!("{}", cell.name()));
        return Ok(ExitCode::SUCCESS);
    }
    let Environment { hapax, plant, base, .. } = environment(arguments)?;
    let plants = match (arguments.plants, wants_plants(arguments)) {
        (true, _) if !arguments.all && !arguments.slice => Plants::Only,
        (_, true) => Plants::Too,
        (_, false) => Plants::No,
    };
    let extent = match arguments.power {
        Some(seeds) => Extent::Power(seeds),
        None if arguments.slice => Extent::Slice(arguments.minutes),
        None => Extent::All,
    };
    let keep = if arguments.keep { Keep::All } else { Keep::Failed };
    let (seed, jobs) = (arguments.seed, arguments.jobs);
    let report = Campaign { hapax, plant, base: base.clone(), seed, extent, plants, jobs, keep }.run(wanted);
    write_report(arguments, report.text(), &report.json())?;
    if arguments.dir.is_none() {
        // Fails if cells were kept in it, as it should.
        drop(std::fs::remove_dir(&base));
    }
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The cases of file sources: the same words on the command line, the same names in the report.
fn run_sources(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let environment = environment(arguments)?;
    let base = environment.base.clone();
    let plants = match (arguments.plants, wants_source_plants(arguments)) {
        (true, _) => PlantedBugs::Only,
        (false, true) => PlantedBugs::Too,
        (false, false) => PlantedBugs::No,
    };
    let campaign = SourcesCampaign {
        hapax: environment.hapax.clone(),
        environment,
        seed: arguments.seed,
        range: if arguments.slice { SeedRange::Minutes(arguments.minutes) } else { SeedRange::Count(arguments.seeds) },
        plants,
        jobs: arguments.jobs,
        keep: if arguments.keep { Keep::All } else { Keep::Failed },
    };
    let wanted = |name: &str| wanted(arguments, name);
    let holds = if arguments.list {
        campaign.names(wanted).iter().for_each(|name| println!("{name}"));
        true
    } else {
        let report = campaign.run(wanted);
        write_report(arguments, report.text(), &report.json())?;
        report.holds()
    };
    if arguments.dir.is_none() {
        // Fails if cases were kept in it, as it should.
        drop(std::fs::remove_dir(&base));
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The planted bugs belong to a run that meets every fault; a slice and a chosen bug or case exclude them.
fn wants_source_plants(arguments: &Arguments) -> bool {
    let whole = arguments.seeds >= pairs().len() as u64 && !arguments.slice;
    whole && arguments.plant.is_none() && arguments.only.is_none()
}

fn choose(arguments: &Arguments) -> Vec<Cell> {
    // MySQL's own server has other words for replication, and no replica is made of it.
    let told = |cell: &Cell| !(arguments.mysql && cell.needs_replica());
    let wanted = |cell: &Cell| wanted(arguments, &cell.name()) && told(cell);
    let ordered = order(cells().into_iter().filter(wanted).collect(), arguments.seed);
    if arguments.slice {
        // The rest is for a machine that is slower than thought.
        fitting(ordered, Duration::from_secs_f64(arguments.minutes * 60.0 * CELLS_PART * 0.75), arguments.jobs)
    } else {
        ordered
    }
}

fn environment(arguments: &Arguments) -> anyhow::Result<Environment> {
    let hapax = std::path::absolute(&arguments.hapax)?;
    if !hapax.exists() {
        bail!("{} does not exist: build it with cargo build -p hapax --features fault", hapax.display());
    }
    let base = match &arguments.dir {
        Some(dir) => std::path::absolute(dir)?,
        None => std::env::temp_dir().join(format!("hapax-prove-{}", std::process::id())),
    };
    std::fs::create_dir_all(&base).with_context(|| format!("cannot create {}", base.display()))?;
    let family = if arguments.mysql { Family::Mysql } else { Family::Mariadb };
    let servers = Arc::new(Servers::with(family));
    Ok(Environment { hapax, plant: arguments.plant.clone(), base, servers })
}

/// Bugs that are caught because nothing happens for a long time.
const SLOW_PLANTS: [&str; 1] = ["no-reserve"];

/// All of them in a whole run; in a slice those over files, and four of the slow ones, which the seed chooses: over servers,
/// and [`SLOW_PLANTS`].
fn run_plants(environment: &Environment, arguments: &Arguments, until: Option<Instant>) -> Vec<Planted<Cell>> {
    let mut chosen = PLANTS.to_vec();
    if let Some(filter) = &arguments.only {
        chosen.retain(|(bug, name)| contains(&format!("{bug} {name}"), filter.trim_start_matches('=')));
    }
    if arguments.slice {
        let is_slow = |bug: &str, name: &str| {
            SLOW_PLANTS.contains(&bug) || plants::cell(name).is_some_and(|cell| cell.setting.stack.has_server())
        };
        let (mut slow, quick): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|(bug, name)| is_slow(bug, name));
        fastrand::Rng::with_seed(arguments.seed).shuffle(&mut slow);
        slow.truncate(4);
        chosen = [quick, slow].concat();
    }
    let mut planted = Vec::new();
    for (bug, name) in chosen {
        let Some(cell) = plants::cell(name) else { continue };
        if until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        let result = plants::run(environment, bug, cell, arguments.seed);
        eprintln!("{}", result.line());
        planted.push(result);
    }
    planted
}

fn write_report(arguments: &Arguments, text: String, json: &serde_json::Value) -> anyhow::Result<()> {
    let json = format!("{json:#}\n");
    match arguments.json.as_deref() {
        Some(path) if path.as_os_str() == "-" => print!("{json}"),
        Some(path) => {
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
            }
            std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
            print!("{text}");
        }
        None => print!("{text}"),
    }
    if let Some(path) = &arguments.report {
        std::fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a filter finds what it says. Method: plain text, and parts in and out of order.
    #[test]
    fn a_filter_finds_parts_in_their_order() {
        let name = "point/sql.begun/kill/exactly-once/append+sink/postgres";
        for filter in ["sql.begun", "point/*/postgres", "*", "kill*append*post"] {
            assert!(contains(name, filter), "{filter}");
        }
        for filter in ["stop", "postgres*kill", "begun*begun"] {
            assert!(!contains(name, filter), "{filter}");
        }
    }
}
