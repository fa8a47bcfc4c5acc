//! Whether a run would take up what was delivered before, or stop for a person.
//!
//! Reads: the source's files, progress and the witness. Writes: nothing. Not here: the comparisons (`hapax-engine`), and
//! which lanes there are (`assemble`).

use hapax_connect::file::RotationRule;
use hapax_connect::file::earlier::earlier_lanes;
use hapax_connect::file::many::{Prospect, find_stems, prospect};
use hapax_engine::books::Books as _;
use hapax_engine::runtime;
use hapax_engine::source::{Follow, Held, Source as _, SourceError};
use hapax_engine::state::TakeOver;

use crate::assemble::{
    AnyBooks, AnyState, How, Live, Part, is_copy_of_read, known_lanes, lanes_of_files, under_two_names,
};
use crate::config::checked::FileLane;
use crate::config::{Config, Source};
use crate::exit::Failure;

/// Why a run would stop, of the first lane that would. Where nothing can be read that is one, too.
pub(super) async fn would_stop(part: &Part<'_>, live: &Live, config: &Config) -> Option<Failure> {
    look(part, live, config).await.unwrap_or_else(Some)
}

async fn look(part: &Part<'_>, live: &Live, config: &Config) -> Result<Option<Failure>, Failure> {
    let files = files_to_look_at(part, config).await?;
    // Where nothing was delivered there is nothing to compare with, and our tables need not be made.
    let Some(mut books) = AnyBooks::of_part(part, config).await? else { return Ok(None) };
    if books.deliveries().await?.is_empty() {
        return Ok(None);
    }
    // A file for it is not made here.
    let state = match AnyBooks::of_state(config).await? {
        Some(_) => AnyState::open(config).await?,
        None => None,
    };
    let how = How::new(config, Follow::No, TakeOver::Never);
    let of_files = files.iter().map(|file| Part { file: Some(file), ..*part });
    let others = part.lanes().filter(|_| !part.has_many_files());
    for lane in of_files.chain(others) {
        let mut delivery = lane.delivery(live, state.as_ref(), &how)?;
        if let Some(stop) = runtime::would_stop(&mut delivery).await {
            return Ok(Some(Failure::new(stop.code, stop.message).with_exit(stop.exit_code)));
        }
    }
    Ok(None)
}

/// The lanes of a pattern that a run would open sooner or later. Those of earlier versions are brought over by a run, which
/// alone can tell.
async fn files_to_look_at(part: &Part<'_>, config: &Config) -> Result<Vec<FileLane>, Failure> {
    let Source::File(file) = part.source else { return Ok(Vec::new()) };
    let Some(many) = &file.many else { return Ok(Vec::new()) };
    let known = known_lanes(part, config).await?;
    let mut found = find_stems(&file.written, &many.folder, file.rotation);
    let is_stem = |lane: &str| file.rotation != RotationRule::Suffixes || found.stems.iter().any(|s| s.lane == lane);
    if !earlier_lanes(&known, is_stem).is_empty() {
        return Ok(Vec::new());
    }
    found.add_known(known.keys().map(String::as_str), &file.written, &many.folder, file.rotation);
    if let Some((one, other, name)) = found.twice() {
        return Err(under_two_names(&part.workflow.id, one, other, name));
    }
    let mut lanes = Vec::new();
    for lane in lanes_of_files(file, &many.folder, known.clone()) {
        let stem = found.stems.iter().find(|stem| stem.lane == lane.name);
        let opened = match known.get(&lane.name).map(|at| (at, prospect(at, stem))) {
            None => !is_copy_of_read(part, &lane, &known),
            Some((_, Prospect::Unfinished)) => true,
            Some((_, Prospect::Gone)) => false,
            Some((_, Prospect::Vanished)) => found.unreadable.is_empty(),
            // At rest: opened only if it is no longer what was read.
            Some((at, Prospect::Finished)) => {
                let mut source = Part { file: Some(&lane), ..*part }.open_source();
                !matches!(source.hold(at).await, Ok(Held::Yes) | Err(SourceError::Unavailable { .. }))
            }
        };
        if opened {
            lanes.push(lane);
        }
    }
    // What a new lane would deliver again explains what is odd about the old one.
    lanes.sort_by_key(|lane| known.contains_key(&lane.name));
    Ok(lanes)
}
