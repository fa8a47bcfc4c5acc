//! `hapax demo`: two workers on one stream of orders, both killed at the same moments; a separate connection counts.
//!
//! Everything is real: the workers are `hapax run`, the file is a `hapax.yaml` that is the user's to edit, the kills are
//! SIGKILL. Only the counting is ours, and it uses a connection of its own.

mod count;
mod stage;
mod worker;

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use self::count::{Count, Truth};
use self::stage::Stage;
use self::worker::Worker;
use super::table::Table;
use crate::cli::{DemoArgs, Shared};
use crate::exit::Failure;

/// About how long the orders take, kills not counted.
const STREAM_SECONDS: u64 = 12;
/// How long the last run of each worker may take after the last kill.
const FINISH_WITHIN: Duration = Duration::from_secs(120);
const NAMES: [&str; 2] = ["guarded", "naive"];

/// Shows it.
pub(crate) async fn demo(args: &DemoArgs, shared: &Shared) -> Result<u8, Failure> {
    if args.orders == 0 {
        return Err(
            Failure::new("HX5001", "a demo without orders shows nothing: --orders 20000").with_exit(crate::exit::USAGE)
        );
    }
    let rate = (args.orders / STREAM_SECONDS).max(1);
    let stage = Stage::build(&args.folder, args.seed, args.orders, rate)?;
    let truth = Truth::of(args.seed, args.orders).await?;
    let say = Say { quiet: shared.json };
    say.line(&format!("{} orders, seed {}, in {}/", args.orders, args.seed, args.folder.display()));
    say.line("guarded: exactly-once        naive: at-least-once, as most pipelines do it");
    let moments = kill_moments(args.seed, args.kills);
    let listed: Vec<String> = moments.iter().map(|at| format!("{:.2}s", at.as_secs_f64())).collect();
    say.line(&format!(
        "both will be killed (SIGKILL) at {}",
        if listed.is_empty() { "no time".into() } else { listed.join(", ") }
    ));
    let first_row = perform(&stage, &moments, &say).await?;
    finish(&stage, &say).await?;
    let counts = [stage.count(0)?, stage.count(1)?];
    report(&counts, &truth, args, shared, first_row);
    Ok(u8::from(counts[0].lost(&truth) != 0 || counts[0].doubled() != 0 || counts[0].balance_off_by(&truth) != 0))
}

/// Prints, or not.
struct Say {
    quiet: bool,
}

impl Say {
    fn line(&self, text: &str) {
        if !self.quiet {
            println!("{text}");
        }
    }
}

/// Seeded moments, from the first second to the end of the stream, at least half a second apart.
fn kill_moments(seed: u64, kills: u32) -> Vec<Duration> {
    let mut random = fastrand::Rng::with_seed(seed);
    let slot = STREAM_SECONDS as f64 / f64::from(kills.max(1));
    (0..kills).map(|n| Duration::from_secs_f64(0.7 + slot * f64::from(n) + random.f64() * slot * 0.5)).collect()
}

/// Starts both workers, kills both at each moment, starts them again. Returns how long the first row took.
async fn perform(stage: &Stage, moments: &[Duration], say: &Say) -> Result<Option<Duration>, Failure> {
    let started = Instant::now();
    let mut workers = [Worker::start(stage, NAMES[0])?, Worker::start(stage, NAMES[1])?];
    let mut first_row = None;
    for (n, moment) in moments.iter().enumerate() {
        while started.elapsed() < *moment {
            if first_row.is_none() && stage.rows(0)? > 0 {
                first_row = Some(started.elapsed());
                say.line(&format!("first row after {:.1}s", started.elapsed().as_secs_f64()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        workers.iter_mut().try_for_each(Worker::kill)?;
        say.line(&format!(
            "{:>6.2}s  killed both ({} of {})   rows so far: guarded {}, naive {}",
            started.elapsed().as_secs_f64(),
            n + 1,
            moments.len(),
            stage.rows(0)?,
            stage.rows(1)?
        ));
        workers = [Worker::start(stage, NAMES[0])?, Worker::start(stage, NAMES[1])?];
    }
    workers.iter_mut().try_for_each(Worker::kill)?;
    Ok(first_row)
}

/// Lets both deliver the rest and end by themselves.
async fn finish(stage: &Stage, say: &Say) -> Result<(), Failure> {
    say.line("letting both finish …");
    let mut workers = [Worker::start_once(stage, NAMES[0])?, Worker::start_once(stage, NAMES[1])?];
    let deadline = Instant::now() + FINISH_WITHIN;
    for worker in &mut workers {
        worker.wait(deadline).await?;
    }
    Ok(())
}

fn report(counts: &[Count; 2], truth: &Truth, args: &DemoArgs, shared: &Shared, first_row: Option<Duration>) {
    if shared.json {
        super::print_json(&serde_json::json!({
            "seed": args.seed, "sent": truth.orders, "firstRowMs": first_row.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)),
            "workers": NAMES.iter().zip(counts).map(|(name, count)| serde_json::json!({
                "name": name, "rows": count.rows, "lost": count.lost(truth), "doubled": count.doubled(),
                "balanceOffBy": count.balance_off_by(truth),
            })).collect::<Vec<_>>(),
        }));
        return;
    }
    let mut table = Table::new(&["name", "sent", "rows", "lost", "doubled", "balance off by"]);
    for (name, count) in NAMES.iter().zip(counts) {
        let off = count.balance_off_by(truth);
        let euros = format!("{}{}.{:02}", if off < 0 { "-" } else { "" }, off.abs() / 100, off.abs() % 100);
        let numbers = [truth.orders, count.rows, count.lost(truth), count.doubled()].map(|n| n.to_string());
        table.row([vec![(*name).to_owned()], numbers.to_vec(), vec![euros]].concat());
    }
    println!("\n{table}");
    if std::io::stdout().is_terminal() {
        println!("The same seed kills at the same moments: --seed {}.", args.seed);
    }
    print_next(args);
}

fn print_next(args: &DemoArgs) {
    let program = std::env::current_exe().map_or_else(|_| "hapax".into(), |path| path.display().to_string());
    let file = args.folder.join("hapax.yaml");
    println!("Next:");
    println!("  {program} check --explain -c {}    why one holds and the other does not promise it", file.display());
    println!("  {program} status -c {}             how each delivery stands", file.display());
    println!("  edit {}, raise `count`, and try to break it yourself:", file.display());
    println!("  {program} run -c {}                kill -9 it as often as you like", file.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the same seed kills at the same moments, in order, apart. Method: two draws of one seed, one of another.
    #[test]
    fn kill_moments_come_from_the_seed() {
        let moments = kill_moments(7, 8);
        assert_eq!(moments, kill_moments(7, 8));
        assert_ne!(moments, kill_moments(8, 8));
        assert!(moments.windows(2).all(|pair| pair[1] - pair[0] > Duration::from_millis(500)));
        assert!(kill_moments(7, 0).is_empty());
    }
}
