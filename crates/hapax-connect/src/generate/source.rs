//! The generator as a source: the whole stream or one lane of it, position = index of the event in the whole stream.
//!
//! Reads: its configuration, and the clock for the rate only. Writes: inputs.
//! Invariant: what an event is never depends on when or in which batch it is polled.

use std::time::Duration;

use hapax_engine::batch::Inputs;
use hapax_engine::source::{Follow, Held, Polled, Room, Source, SourceError, StartAt};
use hapax_model::position::{Bookmark, Position};
use tokio::time::{Instant, sleep};

use super::config::GenerateConfig;
use super::orders::{kind, order_id, write_event};

/// How long a poll waits for the next event that is due.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Orders made from a seed.
#[derive(Debug)]
pub struct GenerateSource {
    config: GenerateConfig,
    lane: String,
    bookmark: Bookmark,
    /// The next event to look at. Ahead of the bookmark where the events between are other lanes'.
    next: u64,
    /// Where and when pacing began: at the last `assign`, so that a pause between runs is not caught up.
    paced_from: Option<(u64, Instant)>,
}

impl GenerateSource {
    /// A generator that follows `config`.
    #[must_use]
    pub fn new(config: GenerateConfig) -> Self {
        let bookmark = Bookmark::at(&config.recipe(), 0);
        Self { config, lane: config.lane.name(), bookmark, next: 0, paced_from: None }
    }

    fn end(&self) -> u64 {
        self.config.count.unwrap_or(u64::MAX)
    }

    /// The index before which events are due now.
    fn due(&self) -> u64 {
        match (self.config.rate, self.paced_from) {
            (Some(rate), Some((from, since))) => {
                let nanos = since.elapsed().as_nanos().saturating_mul(u128::from(rate.max(1)));
                from.saturating_add(u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX))
            }
            (None, _) | (_, None) => u64::MAX,
        }
    }

    async fn wait_for_next(&self) {
        let period = Duration::from_secs(1) / self.config.rate.unwrap_or(1).max(1);
        sleep(period.clamp(Duration::from_millis(1), WAIT_MAX)).await;
    }

    fn fill(&mut self, into: &mut Inputs, room: Room) -> usize {
        let (config, bytes_before) = (self.config, into.byte_len());
        let until = self.due().min(self.end());
        let mut added = 0;
        while self.next < until && added < room.events && (added == 0 || into.byte_len() - bytes_before < room.bytes) {
            let index = self.next;
            self.next += 1;
            if config.lane.of > 1 && !config.lane.takes(order_id(&config, index, kind(&config, index))) {
                continue;
            }
            into.push_with(Position::at(index), |out| write_event(&config, index, out));
            self.bookmark.position = Position::at(self.next);
            added += 1;
        }
        added
    }
}

impl Source for GenerateSource {
    fn lane(&self) -> &str {
        &self.lane
    }

    fn identity(&self) -> String {
        let lane = if self.config.lane.of > 1 { format!(":lane={}", self.lane) } else { String::new() };
        format!("generate:{}{lane}", self.config.recipe())
    }

    async fn start(&mut self, at: StartAt) -> Result<Bookmark, SourceError> {
        let offset = match at {
            StartAt::Earliest => 0,
            StartAt::Latest => self.config.count.unwrap_or(0),
            StartAt::At(position) => position.offset,
        };
        Ok(Bookmark::at(&self.config.recipe(), offset))
    }

    async fn hold(&mut self, bookmark: &Bookmark) -> Result<Held, SourceError> {
        let now = self.config.recipe();
        if *bookmark.incarnation.text != *now {
            return Ok(Held::OtherIncarnation { now });
        }
        if bookmark.position.offset > self.end() {
            let missing = format!("event {} does not exist: `count` is {}", bookmark.position, self.end());
            return Ok(Held::Gone { missing });
        }
        Ok(Held::Yes)
    }

    async fn hold_range(&mut self, _from: &Bookmark, to: &Bookmark) -> Result<Held, SourceError> {
        self.hold(to).await
    }

    async fn assign(&mut self, bookmark: &Bookmark, _follow: Follow) -> Result<(), SourceError> {
        match self.hold(bookmark).await? {
            Held::Yes => {
                self.bookmark = bookmark.clone();
                self.next = bookmark.position.offset;
                self.paced_from = Some((bookmark.position.offset, Instant::now()));
                Ok(())
            }
            Held::OtherIncarnation { now } | Held::Copied { now } => {
                let what = format!("progress is at {bookmark}, but the generator now makes {now}");
                Err(SourceError::Gap { what })
            }
            Held::Gone { missing } => Err(SourceError::Gap { what: missing }),
        }
    }

    /// Cancel-safe: it waits before anything is added.
    async fn poll(&mut self, into: &mut Inputs, room: Room) -> Result<Polled, SourceError> {
        if self.next >= self.end() {
            return Ok(Polled::End);
        }
        if self.due() <= self.next {
            self.wait_for_next().await;
        }
        Ok(if self.fill(into, room) == 0 { Polled::Idle } else { Polled::Records })
    }

    fn bookmark(&self) -> Bookmark {
        self.bookmark.clone()
    }

    /// A generator is its recipe: nothing lies before a position that could change.
    async fn close_epoch(&mut self, _from: &Bookmark) -> Result<Bookmark, SourceError> {
        Ok(self.bookmark())
    }

    /// Never asked: its stream has no boundary.
    async fn step(&mut self) -> Result<(), SourceError> {
        Ok(())
    }

    /// Never: which lane has which event is in the recipe, and the recipe is in the contract.
    async fn reads_what(&mut self, _lane: &str, _other: &Bookmark) -> Result<bool, SourceError> {
        Ok(false)
    }

    async fn ack(&mut self, _upto: &Bookmark) -> Result<(), SourceError> {
        Ok(())
    }

    fn called(&self) -> Option<String> {
        None
    }

    fn extent(&self) -> Option<u64> {
        self.config.count
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
