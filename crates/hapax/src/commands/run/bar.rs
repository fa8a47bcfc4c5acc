//! A bar over all deliveries of `--once`, on a terminal.

use std::time::Duration;

use hapax_engine::runtime::Reading;
use indicatif::{ProgressBar, ProgressStyle};

use crate::roster::Roster;

/// A bar that is being drawn.
pub(super) struct Bar {
    bar: ProgressBar,
    task: tokio::task::JoinHandle<()>,
}

impl Bar {
    /// Draws until [`Bar::clear`].
    pub(super) fn show(roster: Roster) -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:40} {percent:>3}% {msg}").expect("the template is right");
        bar.set_style(style);
        let drawn = bar.clone();
        let task = tokio::spawn(async move {
            loop {
                draw(&drawn, &roster);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        Self { bar, task }
    }

    /// Takes it off the screen: what was delivered is in the log.
    pub(super) fn clear(self) {
        self.task.abort();
        self.bar.finish_and_clear();
    }
}

fn draw(bar: &ProgressBar, roster: &Roster) {
    let readings: Vec<Reading> = roster.members().iter().map(|member| member.meter.read()).collect();
    let bounded = || readings.iter().filter(|reading| reading.extent.is_some());
    let extent: u64 = bounded().filter_map(|reading| reading.extent).sum();
    let done: u64 = bounded().filter_map(|reading| reading.bookmark.as_ref()).map(|b| b.position.offset).sum();
    let delivered: u64 = readings.iter().map(|reading| reading.ledger.totals.delivered).sum();
    let dead: u64 = readings.iter().map(|reading| reading.ledger.totals.dead).sum();
    bar.set_length(extent.max(done));
    bar.set_position(done);
    bar.set_message(format!("{delivered} delivered, {dead} dead"));
}
