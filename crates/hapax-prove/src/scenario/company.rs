//! Who is beside a worker that runs short, and what becomes of it in the middle: dealt over the settings, so that every guarantee
//! meets most of them and every shortage all of them.
//!
//! Invariant: a process that is sent away has ended, well if it was asked to, before the story goes on.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::Signal;

use crate::child::{Child, Exit};
use crate::setting::{Guarantee, Place, Setting};
use crate::shape::Shape;
use crate::world::{SOON, Trouble, World};

/// The settings in which things run short, over files.
pub(super) const SETTINGS: [Setting; 9] = [
    Setting::strictest(),
    Setting::new(Guarantee::AtMostOnce, Shape::Append, Place::Sink),
    Setting::new(Guarantee::AtLeastOnce, Shape::Append, Place::Sink),
    Setting::new(Guarantee::IdempotentKeys, Shape::IgnoreEvent, Place::State),
    Setting::new(Guarantee::ExactlyOnce, Shape::Update, Place::Sink),
    Setting::new(Guarantee::AtMostOnce, Shape::Append, Place::State),
    Setting::new(Guarantee::AtLeastOnce, Shape::Append, Place::State),
    Setting::new(Guarantee::IdempotentKeys, Shape::Update, Place::Sink),
    Setting::new(Guarantee::ExactlyOnce, Shape::Newer, Place::Sink),
];

/// Who is there, and what happens in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Company {
    /// One worker, to the end.
    Alone,
    /// It is killed, and a new one started.
    Killed,
    /// It is asked to end, and a new one started.
    Restarted,
    /// Another stands by, to the end.
    StoodBy,
    /// Another stands by, and the first is killed.
    TakenOver,
    /// Another stands by, and the first is asked to end.
    HandedOver,
}

impl Company {
    /// All of them.
    pub(super) const ALL: [Self; 6] =
        [Self::Alone, Self::Killed, Self::Restarted, Self::StoodBy, Self::TakenOver, Self::HandedOver];

    /// The one of this setting; `turn` is another number for each story.
    pub(super) fn dealt(setting: Setting, turn: usize) -> Self {
        let same = |other: &Setting| other.on(setting.stack) == setting;
        let position = SETTINGS.iter().position(same).unwrap_or(SETTINGS.len());
        Self::ALL[(position + turn + setting.stack as usize) % Self::ALL.len()]
    }

    /// What it is for a delivery that nothing else happened to.
    pub(super) const fn trouble(self, place: Place) -> Trouble {
        match place {
            Place::Sink => Trouble::None,
            // Who ends in the middle of an epoch leaves a doubt where progress is elsewhere.
            Place::State => match self {
                Self::Killed | Self::TakenOver | Self::Restarted | Self::HandedOver => Trouble::Some,
                Self::Alone | Self::StoodBy => Trouble::None,
            },
        }
    }

    /// So long that a live worker of a busy machine keeps it; where it must run out, not much longer than that takes.
    pub(super) const fn lease(self) -> Duration {
        match self {
            Self::TakenOver => Duration::from_secs(4),
            Self::Alone | Self::Killed | Self::Restarted | Self::StoodBy | Self::HandedOver => Duration::from_secs(20),
        }
    }

    const fn has_standby(self) -> bool {
        matches!(self, Self::StoodBy | Self::TakenOver | Self::HandedOver)
    }
}

/// What keeps a worker from ending when it is asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Targets {
    /// Nothing.
    Open,
    /// Some are locked: it is asked twice, and says by its code that not everything was delivered.
    Locked,
}

/// Longer than two signals that count as one.
const ASKED_AGAIN: Duration = Duration::from_millis(400);

/// The worker that delivers, and who stands by.
#[derive(Debug)]
pub(super) struct Crew {
    /// The one that delivers.
    pub(super) worker: Child,
    /// The address of its pages.
    pub(super) pages: String,
    /// What happens in the middle.
    pub(super) company: Company,
    standby: Option<Child>,
    deliveries: usize,
}

impl Crew {
    /// A worker that has claimed so many deliveries, and whoever is beside it.
    pub(super) fn start(world: &mut World, company: Company, deliveries: usize) -> anyhow::Result<Self> {
        let mut worker = world.follow("beside-neighbours")?;
        wait_words(&mut worker, "claimed", deliveries)?;
        let pages = pages_of(&worker)?;
        let mut standby = None;
        if company.has_standby() {
            let mut second = world.follow("stands-by")?;
            wait_words(&mut second, "standing by", deliveries)?;
            standby = Some(second);
        }
        Ok(Self { worker, pages, company, standby, deliveries })
    }

    /// What happens in the middle. Whether another worker delivers from here on.
    pub(super) fn middle(&mut self, world: &mut World, targets: Targets) -> anyhow::Result<bool> {
        match self.company {
            Company::Alone | Company::StoodBy => return Ok(false),
            Company::Killed | Company::TakenOver => {
                world.signal(&mut self.worker, Signal::KILL)?;
                world.wait(&mut self.worker)?;
            }
            Company::Restarted | Company::HandedOver => match targets {
                Targets::Open => world.drain(&mut self.worker)?,
                Targets::Locked => self.ask_twice(world)?,
            },
        }
        self.worker = match self.standby.take() {
            Some(standby) => standby,
            None => world.launch("next", &["run", "--take-over"]).start()?,
        };
        self.pages = pages_of_started(&mut self.worker)?;
        Ok(true)
    }

    fn ask_twice(&mut self, world: &mut World) -> anyhow::Result<()> {
        world.signal(&mut self.worker, Signal::TERM)?;
        let heard = self.worker.wait_said("draining", SOON)?;
        world.must(heard.into(), "the worker never said that it was asked to end");
        std::thread::sleep(ASKED_AGAIN);
        world.signal(&mut self.worker, Signal::TERM)?;
        world.expect(&mut self.worker, Exit::Code(1))?;
        Ok(())
    }

    /// Waits until the worker that delivers has claimed everything.
    pub(super) fn wait_claimed(&mut self) -> anyhow::Result<()> {
        wait_words(&mut self.worker, "claimed", self.deliveries)
    }

    /// Everybody is asked to end, and ends well.
    pub(super) fn drain(&mut self, world: &mut World) -> anyhow::Result<()> {
        if let Some(mut standby) = self.standby.take() {
            let said = standby.said();
            world.must((!said.contains("claimed")).into(), format!("{} took over from a live worker", standby.name));
            world.drain(&mut standby)?;
        }
        world.drain(&mut self.worker)
    }
}

/// Waits until a worker has said a word so many times.
fn wait_words(worker: &mut Child, word: &str, times: usize) -> anyhow::Result<()> {
    let started = Instant::now();
    while worker.said().matches(word).count() < times {
        anyhow::ensure!(worker.poll()?.is_none(), "the worker ended: {}", worker.said());
        anyhow::ensure!(started.elapsed() < SOON, "not {times} times {word:?}: {}", worker.said());
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn pages_of_started(worker: &mut Child) -> anyhow::Result<String> {
    worker.wait_said("address=", SOON)?;
    pages_of(worker)
}

fn pages_of(worker: &Child) -> anyhow::Result<String> {
    let said = worker.said();
    let address = said.split("address=").nth(1).and_then(|rest| rest.split_whitespace().next());
    Ok(address.context("the worker never said where its pages are")?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Goal: every shortage meets every company, and every guarantee at least four of six, among them a kill and a standby.
    /// Method: all stories, all settings.
    #[test]
    fn companies_are_dealt_over_all_guarantees() {
        for turn in 0..3 {
            let dealt: BTreeSet<String> =
                SETTINGS.iter().map(|one| format!("{:?}", Company::dealt(*one, turn))).collect();
            assert_eq!(dealt.len(), Company::ALL.len(), "turn {turn}");
        }
        for guarantee in Guarantee::ALL {
            let its: Vec<Setting> = SETTINGS.into_iter().filter(|setting| setting.guarantee == guarantee).collect();
            let dealt: Vec<Company> =
                (0..3).flat_map(|turn| its.iter().map(move |setting| Company::dealt(*setting, turn))).collect();
            let kinds: BTreeSet<String> = dealt.iter().map(|one| format!("{one:?}")).collect();
            assert!(kinds.len() >= 4, "{guarantee:?}: {kinds:?}");
            assert!(dealt.iter().any(|one| matches!(one, Company::Killed | Company::TakenOver)), "{guarantee:?}");
            assert!(dealt.iter().any(|one| one.has_standby()), "{guarantee:?}");
        }
    }
}
