//! Whether a run would take up what was delivered before and go on with what comes next, or stop.
//!
//! Reads: the source's files, progress and the witness, and the next inputs. Writes: nothing. Not here: the comparisons (`hapax-engine`), and
//! which lanes there are (`assemble`).

use std::time::Duration;

use hapax_connect::file::earlier::earlier_lanes;
use hapax_connect::file::many::{Prospect, find_stems, has_archive, prospect};
use hapax_connect::file::{Crowd, RotationRule};
use hapax_engine::batch::Inputs;
use hapax_engine::runtime;
use hapax_engine::source::{Held, Polled, Room, Source as _, SourceError};
use hapax_model::mode::ProgressPlace;
use hapax_model::position::Bookmark;

use super::super::run::moved::{Moved, refuse_other_lanes};
use crate::assemble::{
    AnySource, AnyState, How, Live, Part, is_copy_of_read, known_lanes, lanes_gone_back, lanes_of_files,
    rests_behind_gone, under_two_names,
};
use crate::config::checked::FileLane;
use crate::config::{Config, Source};
use crate::exit::Failure;
use crate::sample::{MOST, next_inputs, without_rate, would_be_too_many};

/// Of how many lanes the next inputs are read.
const MOST_LANES: usize = 16;
/// How much of a chain with archives is read to see whether they are whole.
const MOST_UNPACKED: usize = 64 * 1024 * 1024;
/// How much of it at a time.
const ROOM: Room = Room { events: 100_000, bytes: 4 * 1024 * 1024 };
/// How long an archive that may just be written is left alone.
const PAUSE: Duration = Duration::from_millis(20);

/// Why a run would stop: of all lanes, what ends with the highest code. Where nothing can be read that is one, too. Of a
/// source that cannot be read only its progress is looked at.
pub(super) async fn would_stop(
    part: &Part<'_>,
    live: &Live,
    config: &Config,
    state: Option<&AnyState>,
    readable: bool,
) -> Option<Failure> {
    look(part, live, config, state, readable).await.unwrap_or_else(Some)
}

async fn look(
    part: &Part<'_>,
    live: &Live,
    config: &Config,
    state: Option<&AnyState>,
    readable: bool,
) -> Result<Option<Failure>, Failure> {
    let moved = Moved::look(part, config).await?;
    let files = files_to_look_at(part, config).await?;
    let how = How::to_look(config);
    let of_files = files.iter().map(|file| Part { file: Some(file), ..*part });
    let others = part.lanes().filter(|_| !part.has_many_files());
    let mut worst: Option<Failure> = None;
    for (number, lane) in of_files.chain(others).enumerate() {
        let id = lane.id();
        refuse_other_lanes(part, &id, config).await?;
        moved.refuse(&id)?;
        if !readable {
            continue;
        }
        let looked = look_at_lane(&lane, live, state, &how, number < MOST_LANES).await;
        if let Err(failure) = looked
            && worst.as_ref().is_none_or(|worst| failure.exit_code > worst.exit_code)
        {
            worst = Some(failure);
        }
    }
    Ok(worst)
}

/// Whether a run of a single path would go on from its progress, or stop over it, whatever is at the path now.
pub(super) async fn has_progress_to_judge(
    part: &Part<'_>,
    live: &Live,
    config: &Config,
    state: Option<&AnyState>,
) -> bool {
    if part.has_many_files() || (part.table().progress == ProgressPlace::State && state.is_none()) {
        return false;
    }
    let how = How::to_look(config);
    let Ok(mut delivery) = part.delivery(live, state, &how) else { return false };
    !matches!(runtime::foresee_start(&mut delivery).await, Ok(None))
}

/// What a run of this lane would begin with.
async fn look_at_lane(
    lane: &Part<'_>,
    live: &Live,
    state: Option<&AnyState>,
    how: &How,
    reads_on: bool,
) -> Result<(), Failure> {
    let start = if lane.table().progress == ProgressPlace::State && state.is_none() {
        // The store that would hold progress is not there yet.
        lane.open_source_for(Some(live)).start(lane.start()).await.map(Some).or_else(passing)?
    } else {
        runtime::foresee_start(&mut lane.delivery(live, state, how)?).await?
    };
    match start.filter(|_| reads_on) {
        Some(start) => read_on(lane, live, &start).await,
        None => Ok(()),
    }
}

/// What may pass by itself is no reason.
fn passing<T>(error: SourceError) -> Result<Option<T>, Failure> {
    match Failure::of_run(error) {
        failure if failure.may_pass => Ok(None),
        failure => Err(failure),
    }
}

/// Reads what a run would read next: whether it can be read, whether an archive is whole, and whether too much of it would be
/// dead letters.
async fn read_on(lane: &Part<'_>, live: &Live, start: &Bookmark) -> Result<(), Failure> {
    let quick = match lane.source {
        Source::Generate(generate) => Some(without_rate(generate)),
        Source::File(_) => None,
    };
    let reader = Part { source: quick.as_ref().unwrap_or(lane.source), ..*lane };
    let mut source = reader.open_source_for(Some(live));
    let Some(inputs) = next_inputs(&mut source, start, MOST).await.map(Some).or_else(passing)? else { return Ok(()) };
    would_be_too_many(lane, live, inputs).await?;
    let Source::File(file) = lane.source else { return Ok(()) };
    if has_archive(lane.file.map_or(&file.path, |lane| &lane.path), file.rotation) {
        unpack(&mut source).await.map(Some).or_else(passing)?;
    }
    Ok(())
}

/// Reads the rest of a chain that has archives, up to a bound.
async fn unpack(source: &mut AnySource) -> Result<(), SourceError> {
    let mut unpacked = 0;
    while unpacked < MOST_UNPACKED {
        let mut inputs = Inputs::default();
        match source.poll(&mut inputs, ROOM).await? {
            Polled::End => return Ok(()),
            Polled::Boundary => source.step().await?,
            Polled::Records => {}
            Polled::Idle => tokio::time::sleep(PAUSE).await,
        }
        unpacked += (0..inputs.len()).map(|input| inputs.bytes(input).len() + 1).sum::<usize>();
    }
    Ok(())
}

/// The lanes of a pattern that a run would open sooner or later. Those of earlier versions are brought over by a run, which
/// alone can tell.
async fn files_to_look_at(part: &Part<'_>, config: &Config) -> Result<Vec<FileLane>, Failure> {
    let Source::File(file) = part.source else { return Ok(Vec::new()) };
    let Some(many) = &file.many else { return Ok(Vec::new()) };
    let (known, gone_back) = (known_lanes(part, config).await?, lanes_gone_back(part, config).await?);
    let mut found = find_stems(&file.written, &many.folder, file.rotation);
    let is_stem = |lane: &str| file.rotation != RotationRule::Suffixes || found.stems.iter().any(|s| s.lane == lane);
    if !earlier_lanes(&known, is_stem).is_empty() {
        return Ok(Vec::new());
    }
    found.add_known(known.keys().chain(&gone_back).map(String::as_str), &file.written, &many.folder, file.rotation);
    if let Some((one, other, name)) = found.twice() {
        return Err(under_two_names(&part.workflow.id, one, other, name));
    }
    let mut lanes = Vec::new();
    let mut candidates = lanes_of_files(file, &many.folder, known.clone());
    for name in gone_back.iter().filter(|name| !candidates.iter().any(|lane| lane.name == **name)).collect::<Vec<_>>() {
        let (name, path) = (name.clone(), many.folder.join(name));
        candidates.push(FileLane { name, path, first_seen: None, crowd: Crowd::default() });
    }
    for lane in candidates {
        let stem = found.stems.iter().find(|stem| stem.lane == lane.name);
        let opened = match known.get(&lane.name).map(|at| (at, prospect(at, stem))) {
            _ if gone_back.contains(&lane.name) => true,
            None => !is_copy_of_read(part, &lane, &known),
            Some((at, Prospect::Unfinished)) => !rests_behind_gone(part, &lane, at),
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
