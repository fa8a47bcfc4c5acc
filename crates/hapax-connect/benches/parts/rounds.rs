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
}

impl Run {
    pub(crate) fn told(&self, name: &str) -> String {
        let each = |nanos: u64| nanos as f64 / self.rows as f64 / 1000.0;
        let speed = self.rows as f64 / self.wall.as_secs_f64();
        let (client, server) = (each(self.client), each(self.server));
        format!("{name:<44} {speed:>9.0} rows/s; µs of processor per row: {client:.2} client, {server:.2} server")
    }
}

/// The median of each cost for itself.
pub(crate) fn median(runs: &[Run]) -> Run {
    Run {
        rows: runs[0].rows,
        wall: middle(runs.iter().map(|run| run.wall).collect()),
        client: middle(runs.iter().map(|run| run.client).collect()),
        server: middle(runs.iter().map(|run| run.server).collect()),
    }
}

pub(crate) fn middle<T: Ord + Copy>(mut all: Vec<T>) -> T {
    all.sort_unstable();
    all[all.len() / 2]
}

/// The median over rounds of how fast the second was compared with the first, with the least and the most.
pub(crate) fn ratio(first: &[Run], second: &[Run]) -> Ratio {
    Ratio::of(first.iter().zip(second).map(|(a, b)| a.wall.as_secs_f64() / b.wall.as_secs_f64()).collect())
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
        write!(formatter, "{:.2} (rounds: {:.2} to {:.2})", self.median, self.least, self.most)
    }
}
