//! What a run cost, and the medians of many: ratios are taken within a round, because the machine is shared.

use std::time::Duration;

/// What one run cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) rows: u64,
    pub(crate) wall: Duration,
    /// Nanoseconds of processor time of this process.
    pub(crate) client: u64,
    /// The same of the server, 0 if unknown.
    pub(crate) server: u64,
    /// Which part of the machine other processes used meanwhile.
    pub(crate) others: f64,
}

/// A round is quiet if other processes used less of the machine than this while it ran.
const QUIET: f64 = 0.15;

impl Run {
    pub(crate) fn told(&self, name: &str) -> String {
        let each = |nanos: u64| nanos as f64 / self.rows as f64 / 1000.0;
        let speed = self.rows as f64 / self.wall.as_secs_f64();
        let (client, server) = (each(self.client), each(self.server));
        let others = self.others * 100.0;
        format!(
            "{name:<40} {speed:>9.0} rows/s; µs of processor per row: {client:.2} client, {server:.2} server; others \
             used {others:.0} %"
        )
    }
}

/// The median of each cost for itself.
pub(crate) fn median(runs: &[Run]) -> Run {
    Run {
        rows: runs[0].rows,
        wall: middle(runs.iter().map(|run| run.wall).collect()),
        client: middle(runs.iter().map(|run| run.client).collect()),
        server: middle(runs.iter().map(|run| run.server).collect()),
        others: runs.iter().map(|run| run.others).sum::<f64>() / runs.len() as f64,
    }
}

pub(crate) fn middle<T: Ord + Copy>(mut all: Vec<T>) -> T {
    all.sort_unstable();
    all[all.len() / 2]
}

/// The medians over rounds of how fast the second was compared with the first: by the clock in all rounds and in quiet
/// ones, and by the server's processor time, which is what the clock would say if nobody ever waited for a processor.
pub(crate) fn ratios(first: &[Run], second: &[Run]) -> String {
    let clock = |a: &Run, b: &Run| a.wall.as_secs_f64() / b.wall.as_secs_f64();
    let all: Vec<(&Run, &Run)> = first.iter().zip(second).collect();
    let of = |rounds: &[(&Run, &Run)]| Ratio::of(rounds.iter().map(|(a, b)| clock(a, b)).collect());
    let quiet: Vec<_> = all.iter().copied().filter(|(a, b)| a.others.max(b.others) < QUIET).collect();
    let quiet = if quiet.is_empty() { "none quiet".into() } else { format!("{} quiet {}", quiet.len(), of(&quiet)) };
    let server = Ratio::of(all.iter().map(|(a, b)| a.server as f64 / b.server.max(1) as f64).collect());
    format!("{}; {quiet}; by the server's processor time {server}", of(&all))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

impl Ratio {
    pub(crate) fn of(mut all: Vec<f64>) -> Self {
        all.sort_by(f64::total_cmp);
        Self { least: all[0], median: all[all.len() / 2], most: all[all.len() - 1] }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:.2} ({:.2} to {:.2})", self.median, self.least, self.most)
    }
}
