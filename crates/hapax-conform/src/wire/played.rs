//! The whole play on one broker, its restart included.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};

use super::scenes;
use super::script::{Entry, Script};
use crate::target::Target;

/// What came of it.
#[derive(Debug)]
pub struct Played {
    /// Every answer.
    pub entries: Vec<Entry>,
    /// API and version of every question.
    pub asked: BTreeSet<(i16, i16)>,
    /// What the broker says it serves: API → oldest and newest version.
    pub advertised: BTreeMap<i16, (i16, i16)>,
}

/// Plays all scenes on a fresh broker, starts it again, and plays those that need a second epoch.
///
/// # Errors
/// If the broker does not answer, or not in a way that can be decoded, or does not start again: that is no difference but a
/// breakdown.
pub fn play(target: &mut Target) -> Result<Played> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut script = runtime.block_on(Script::open(target.address))?;
    let first = runtime.block_on(scenes::play(&mut script));
    let stage = first.with_context(|| format!("{} broke down", target.name))?;
    target.start_again().with_context(|| format!("{} does not start again", target.name))?;
    let second = runtime.block_on(async {
        script.reach(target.address).await?;
        scenes::play_on(&mut script, &stage).await
    });
    second.with_context(|| format!("{} broke down after its restart", target.name))?;
    let (asked, advertised) = (script.asked.clone(), script.advertised.clone());
    Ok(Played { entries: script.into_entries(), asked, advertised })
}
