//! What is done to the files of one stem: each fault of a case, step by step.
//!
//! Invariant: the writer stands still while a fault is done that makes what it writes next worthless, so that it is known
//! which records may still be delivered.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

use super::case::{FaultMoment, FileFault, RecordFormat, SourceLayout};
use super::packed_faults::{self, PackedSpoiling, write_in_place};
use super::rotation::{Compression, MarkPlace, Pace, RotationStyle, StemFiles, compress};
use super::source_world::{SPOOL, SourceWorld};

/// What a fault left behind.
#[derive(Debug, Default)]
pub struct DoneFault {
    /// How many records of the stem may be delivered at most, if a stop must follow.
    pub deliverable: Option<usize>,
    /// What a stop must name.
    pub names: Vec<String>,
    /// What has to be renamed back once workers had time to notice.
    pub undo: Option<(PathBuf, PathBuf)>,
    /// What is still missing from a file, and comes while workers see it grow.
    pub rest: Option<(PathBuf, Vec<u8>)>,
}

/// Who does it: which names were given away already, and the dice.
#[derive(Debug)]
pub struct FileAdversary {
    /// The dice.
    pub random: fastrand::Rng,
    dates: BTreeMap<usize, u32>,
    date_style: RotationStyle,
    date_compression: Compression,
}

impl FileAdversary {
    /// One with dice of its own.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let date_style = if random.bool() { RotationStyle::Dated } else { RotationStyle::DatedWithPoint };
        let date_compression =
            [Compression::Never, Compression::Never, Compression::AtOnce, Compression::Later][random.usize(..4)];
        Self { random, dates: BTreeMap::new(), date_style, date_compression }
    }

    /// Rotates a stem as its case does it; returns the suffix that the live file got.
    ///
    /// # Errors
    /// If a file cannot be renamed.
    pub fn rotate(&mut self, world: &mut SourceWorld, stem: usize) -> anyhow::Result<String> {
        let dated = matches!(world.case.fault, FileFault::RotateDated | FileFault::FallingDates);
        let style = if dated { self.date_style } else { RotationStyle::Numbered };
        self.rotate_as(world, stem, style, None)
    }

    fn compression(&self, fault: FileFault) -> Compression {
        if fault == FileFault::RotateDated {
            return self.date_compression;
        }
        let packed =
            matches!(fault, FileFault::RotateCompressed | FileFault::RewritePackedRead | FileFault::LateGrowthPacked);
        match (packed, fault == FileFault::RotateDelayed) {
            (true, _) => Compression::AtOnce,
            (_, true) => Compression::Later,
            (false, false) => Compression::Never,
        }
    }

    fn rotate_as(
        &mut self,
        world: &mut SourceWorld,
        stem: usize,
        style: RotationStyle,
        date: Option<u32>,
    ) -> anyhow::Result<String> {
        let compression = self.compression(world.case.fault);
        let files = world.stem_files(stem);
        if files.mark == MarkPlace::NextName {
            return self.begin_next(world, stem, &files);
        }
        let turn = self.dates.entry(stem).or_default();
        *turn += 1;
        // Times of modification have to differ, as those of real logs do.
        std::thread::sleep(Duration::from_millis(12));
        let suffix = files.rename_live(style, date.unwrap_or(*turn), compression)?;
        if self.random.bool() {
            std::fs::File::create_new(files.live()).context("the new live file cannot be made")?;
        }
        std::thread::sleep(Duration::from_millis(self.random.u64(0..40)));
        let writer = world.writer.clone();
        let mut stems = writer.stems();
        stems.stems[stem].open()?;
        if self.random.bool() {
            // Of CSV: a live file that has a header only. The guard is held since it was opened: traffic writes none before.
            stems.write_header(stem)?;
        }
        drop(stems);
        world.tell(format!("rotated {} to {suffix}", files.name));
        if compression == Compression::AtOnce {
            let pace = if self.random.u8(0..4) == 0 { Pace::Slow } else { Pace::Quick };
            compress(&files.member(&suffix), pace)?;
            world.tell(format!("compressed {}{suffix}, {pace:?}", files.name));
        }
        Ok(suffix)
    }

    /// Every file keeps its name, and the next one is begun; returns what the one before is called from it.
    fn begin_next(&mut self, world: &mut SourceWorld, stem: usize, files: &StemFiles) -> anyhow::Result<String> {
        let compression = self.compression(world.case.fault);
        let before = files.member(".1");
        if compression == Compression::Later && before.exists() {
            compress(&before, Pace::Quick)?;
        }
        if self.random.bool() {
            std::fs::File::create_new(files.next()).context("the next file cannot be made")?;
        }
        std::thread::sleep(Duration::from_millis(self.random.u64(0..40)));
        world.writer.stems().stems[stem].begin(&files.next())?;
        world.tell(format!("began {}", files.next().display()));
        if compression == Compression::AtOnce {
            let pace = if self.random.u8(0..4) == 0 { Pace::Slow } else { Pace::Quick };
            compress(&files.live(), pace)?;
            world.tell(format!("compressed {}, {pace:?}", files.name));
        }
        Ok(".1".to_owned())
    }

    fn append(&mut self, world: &mut SourceWorld, stem: usize) -> anyhow::Result<()> {
        let count = self.random.usize(15..40);
        world.writer.stems().append(stem, count)?;
        let name = world.writer.stems().stems[stem].name.clone();
        world.tell(format!("wrote {count} records to {name}"));
        Ok(())
    }

    /// Does the fault of the case to `stem`.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn strike(&mut self, world: &mut SourceWorld, stem: usize) -> anyhow::Result<DoneFault> {
        let name = world.writer.stems().stems[stem].name.clone();
        world.tell(format!("FAULT {} of {name}", world.case.fault.name()));
        // The lane is the pattern's: only a place among the names is told with the names of files.
        let by_place = matches!(world.case.fault, FileFault::OlderAppears | FileFault::HardLink);
        let named =
            if world.case.layout == SourceLayout::OrderedByName && !by_place { "batch-".to_owned() } else { name };
        let mut done = DoneFault { names: vec![named], ..DoneFault::default() };
        match world.case.fault {
            FileFault::RotateNumbered
            | FileFault::RotateDated
            | FileFault::RotateCompressed
            | FileFault::RotateDelayed => self.rotate_some(world, stem)?,
            // Whether or not the writer made it: there is a live file, and it is empty, or has a header only.
            FileFault::RotateEmpty => {
                self.rotate(world, stem)?;
                self.rotate(world, stem)?;
            }
            FileFault::RemoveRead => self.remove_read(world, stem)?,
            FileFault::FolderAway => done.undo = Some(move_folder_away(world)?),
            FileFault::DropFiles => {
                self.drop_file(world)?;
                self.drop_file(world)?;
            }
            FileFault::ReplaceDeclared => replace_as_declared(world, stem)?,
            FileFault::CopyTruncate => done.deliverable = Some(spoil_live(world, stem, Spoiling::CopyTruncate)?),
            FileFault::RewriteShorter => done.deliverable = Some(spoil_live(world, stem, Spoiling::Shorter)?),
            FileFault::RewriteEqual => done.deliverable = Some(spoil_live(world, stem, Spoiling::Equal)?),
            FileFault::RewriteLonger => done.deliverable = Some(spoil_live(world, stem, Spoiling::Longer)?),
            FileFault::RewriteTail => done.deliverable = Some(spoil_live(world, stem, Spoiling::Tail)?),
            FileFault::ReplaceByRename => done.deliverable = Some(spoil_live(world, stem, Spoiling::Replace)?),
            FileFault::RemoveAndRecreate => done.deliverable = Some(spoil_live(world, stem, Spoiling::Recreate)?),
            FileFault::RewriteRead => rewrite_read(world, stem)?,
            FileFault::RemoveUnread | FileFault::RemoveCurrent => done.deliverable = self.remove_member(world, stem)?,
            FileFault::MixedSuffixes => {
                self.rotate_as(world, stem, RotationStyle::Numbered, None)?;
                self.append(world, stem)?;
                self.rotate_as(world, stem, self.date_style, None)?;
                self.append(world, stem)?;
            }
            FileFault::FallingDates => self.rotate_to_falling_dates(world, stem)?,
            FileFault::LateGrowth if world.case.layout.is_dropped() => packed_faults::grow_archive(world, stem)?,
            FileFault::LateGrowth => grow_late(world, stem)?,
            FileFault::OlderAppears => make_older(world, stem)?,
            FileFault::HardLink => done.names.push(link_under_second_name(world, stem)?),
            FileFault::FolderMoved => done.names = move_folder(world)?,
            FileFault::PathEdited => done.names = rename_and_edit_path(world, stem)?,
            FileFault::LayoutChanged => done.names = change_layout(world, stem)?,
            FileFault::RewritePackedRead => packed_faults::change_packed_member(world, stem, false)?,
            FileFault::LateGrowthPacked => packed_faults::change_packed_member(world, stem, true)?,
            FileFault::OwnArchive => packed_faults::pack_live(world, stem, &mut self.random)?,
            FileFault::RestoredCopy => {
                packed_faults::restore_folder(world, &mut self.random)?;
                done.names = vec!["what was read".to_owned()];
            }
            FileFault::TwinFiles => self.drop_twins(world)?,
            FileFault::GrowingArchive => return self.begin_archive(world),
        }
        Ok(done)
    }

    fn rotate_to_falling_dates(&mut self, world: &mut SourceWorld, stem: usize) -> anyhow::Result<()> {
        let suffix = self.rotate_as(world, stem, self.date_style, Some(25))?;
        // Hours apart, as real ones are: no clock is so coarse that it could not tell.
        let earlier = std::time::SystemTime::now() - Duration::from_secs(7200);
        let files = world.stem_files(stem);
        std::fs::File::options().append(true).open(files.member(&suffix))?.set_modified(earlier)?;
        self.append(world, stem)?;
        self.rotate_as(world, stem, self.date_style, Some(20))?;
        self.append(world, stem)
    }

    /// One to three rotations, with records in between; now and then of all stems.
    fn rotate_some(&mut self, world: &mut SourceWorld, stem: usize) -> anyhow::Result<()> {
        let times = self.random.u32(1..=3);
        let all = self.random.u8(0..3) == 0;
        let stems: Vec<usize> = if all { (0..world.case.layout.files()).collect() } else { vec![stem] };
        for _ in 0..times {
            for stem in stems.iter().copied() {
                self.rotate(world, stem)?;
            }
            for stem in stems.iter().copied() {
                self.append(world, stem)?;
            }
            if matches!(world.case.moment, FaultMoment::Traffic | FaultMoment::TakeOver | FaultMoment::Idle) {
                std::thread::sleep(Duration::from_millis(self.random.u64(0..500)));
            }
        }
        Ok(())
    }

    fn remove_read(&mut self, world: &mut SourceWorld, stem: usize) -> anyhow::Result<()> {
        let files = world.stem_files(stem);
        let dropped = world.case.layout.is_dropped();
        let path = if dropped { files.live() } else { files.member(".1") };
        std::fs::remove_file(&path).with_context(|| format!("{} is not there", path.display()))?;
        world.tell(format!("removed {}", path.display()));
        if dropped { self.drop_file(world) } else { Ok(()) }
    }

    /// Rotates twice or three times and removes a member: the one that progress names, or one after it.
    fn remove_member(&mut self, world: &mut SourceWorld, stem: usize) -> anyhow::Result<Option<usize>> {
        let current = world.case.fault == FileFault::RemoveCurrent;
        let before = world.writer.stems().stems[stem].records.len();
        let times = if current { 2 } else { 3 };
        let mut upto_removed = before;
        for n in 0..times {
            self.rotate(world, stem)?;
            self.append(world, stem)?;
            if n == 0 {
                upto_removed = world.writer.stems().stems[stem].records.len();
            }
        }
        let files = world.stem_files(stem);
        std::fs::remove_file(files.member(".2"))?;
        world.tell(format!("removed {}.2", files.name));
        // What is still open somewhere can be read: of the current file anything, of the next one all that was in it.
        Ok(match (current, world.case.moment == FaultMoment::Down) {
            (_, true) => Some(before),
            (true, false) => None,
            (false, false) => Some(upto_removed),
        })
    }

    /// Adds a stem that is complete from the first moment on.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn drop_file(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        let mut stems = world.writer.stems();
        let number = stems.stems.len();
        let packing = world.case.layout.packing();
        let name = match packing {
            Some(_) => format!("batch-{number:03}.{}", world.case.layout.extension()),
            None => format!("batch.part.{}", number + 1),
        };
        let path = world.folder.join(name);
        let stem = stems.add_stem(&path);
        let text = stems.compose(stem, self.random.usize(60..160));
        drop(stems);
        let whole = world.dir.join("whole");
        let bytes = packing.map_or_else(|| Ok(text.clone().into_bytes()), |packing| packing.pack_twofold(&text))?;
        std::fs::write(&whole, bytes)?;
        std::fs::rename(&whole, &path)?;
        world.tell(format!("dropped {}", path.display()));
        Ok(())
    }
}

fn move_folder_away(world: &mut SourceWorld) -> anyhow::Result<(PathBuf, PathBuf)> {
    let away = world.dir.join("away");
    let folder = world.folder.clone();
    // Whoever writes has his files open; opened again they would be looked for in vain.
    std::fs::rename(&folder, &away)?;
    world.tell(format!("moved {} away", folder.display()));
    Ok((away, folder))
}

/// A whole new file takes the place of one that was read to its end.
fn replace_as_declared(world: &mut SourceWorld, stem: usize) -> anyhow::Result<()> {
    let files = world.stem_files(stem);
    let text = world.writer.stems().compose(stem, 60);
    let other = world.dir.join("replacement");
    std::fs::write(&other, text)?;
    world.writer.stems().stems[stem].close();
    std::fs::rename(&other, files.live())?;
    world.tell(format!("renamed the next file over {}", files.name));
    Ok(())
}

/// A second name for the same file, which is returned.
fn link_under_second_name(world: &SourceWorld, stem: usize) -> anyhow::Result<String> {
    let files = world.stem_files(stem);
    let number = if world.case.layout.is_dropped() { ".1" } else { "" };
    let before = if world.case.layout == SourceLayout::OrderedByName { "batch-" } else { "" };
    let second = format!("{before}zulu.{}{number}", world.case.layout.extension());
    std::fs::hard_link(files.live(), files.folder.join(&second))?;
    Ok(second)
}

/// How a live file becomes worthless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoiling {
    /// Copied away and truncated.
    CopyTruncate,
    /// Written anew in place, with a third of its length.
    Shorter,
    /// Written anew in place, with its length.
    Equal,
    /// Written anew in place, longer.
    Longer,
    /// Written anew in place behind its first record, with its length.
    Tail,
    /// Another file is renamed over it.
    Replace,
    /// It is removed, and another file is written under its name.
    Recreate,
}

impl Spoiling {
    /// What it is of an archive, where that is another thing to do.
    const fn of_archive(self) -> Option<PackedSpoiling> {
        match self {
            Self::Shorter => Some(PackedSpoiling::Shorter),
            Self::Equal => Some(PackedSpoiling::Equal),
            Self::Longer => Some(PackedSpoiling::Longer),
            Self::Tail => Some(PackedSpoiling::Tail),
            Self::CopyTruncate | Self::Replace | Self::Recreate => None,
        }
    }
}

/// Makes what the live file holds worthless, and says how many records it held before.
fn spoil_live(world: &mut SourceWorld, stem: usize, spoiling: Spoiling) -> anyhow::Result<usize> {
    if let (Some(packing), Some(how)) = (world.case.layout.packing(), spoiling.of_archive()) {
        return packed_faults::spoil_archive(world, stem, packing, how);
    }
    let files = world.stem_files(stem);
    let writer = world.writer.clone();
    let mut stems = writer.stems();
    let before = stems.stems[stem].records.len();
    let live = files.live();
    let length = usize::try_from(std::fs::metadata(&live)?.len())?;
    match spoiling {
        Spoiling::CopyTruncate => {
            let copy = copy_as_first(&files)?;
            std::fs::File::options().write(true).open(&live)?.set_len(0)?;
            world.tell(format!("copied {} to {copy} and truncated it", files.name));
        }
        Spoiling::Replace => {
            let other = world.dir.join("replacement");
            let text = stems.decoy_file(stem, length + 2000).into_bytes();
            let packing = world.case.layout.packing();
            std::fs::write(&other, packing.map_or_else(|| Ok(text.clone()), |packing| packing.pack(&text))?)?;
            std::fs::rename(&other, &live)?;
            stems.stems[stem].close();
            world.tell(format!("renamed another file over {}", files.name));
        }
        Spoiling::Recreate => {
            std::fs::remove_file(&live)?;
            let text = stems.decoy_file(stem, 1500);
            std::fs::write(&live, text)?;
            stems.stems[stem].close();
            world.tell(format!("removed {} and wrote another file under its name", files.name));
        }
        Spoiling::Shorter | Spoiling::Equal | Spoiling::Longer | Spoiling::Tail => {
            let text = match spoiling {
                Spoiling::Shorter => stems.decoy_file(stem, length / 3).into_bytes(),
                Spoiling::Longer => stems.decoy_file(stem, length + 3000).into_bytes(),
                Spoiling::Tail => cut(
                    first_lines(&live, if world.case.format == RecordFormat::Csv { 2 } else { 1 })?
                        + &stems.decoys(stem, length),
                    length,
                ),
                Spoiling::CopyTruncate | Spoiling::Replace | Spoiling::Recreate | Spoiling::Equal => {
                    cut(stems.decoy_file(stem, length + 1), length)
                }
            };
            write_in_place(&live, &text)?;
            world.tell(format!("wrote {} anew in place, {} bytes where {length} were", files.name, text.len()));
        }
    }
    Ok(before)
}

/// `text` with exactly `length` bytes, the last of them a newline.
fn cut(text: String, length: usize) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    bytes.truncate(length.saturating_sub(1));
    bytes.push(b'\n');
    bytes
}

/// A header and the first record, or the record alone.
fn first_lines(path: &std::path::Path, count: usize) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)?;
    Ok(text.split_inclusive('\n').take(count).collect())
}

/// A copy under the first number; those that are there move up.
fn copy_as_first(files: &StemFiles) -> anyhow::Result<String> {
    files.make_room(Compression::Never)?;
    std::fs::copy(files.live(), files.member(".1"))?;
    Ok(".1".to_owned())
}

/// Writes a member anew that was read to its end.
fn rewrite_read(world: &mut SourceWorld, stem: usize) -> anyhow::Result<()> {
    let files = world.stem_files(stem);
    let path = if world.case.layout.is_dropped() { files.live() } else { files.member(".1") };
    let length = usize::try_from(std::fs::metadata(&path)?.len())?;
    let text = world.writer.stems().decoy_file(stem, length + 1);
    let packing = world.case.layout.packing();
    let bytes = packing.map_or_else(|| Ok(cut(text.clone(), length)), |packing| packing.pack(text.as_bytes()))?;
    write_in_place(&path, &bytes)?;
    world.tell(format!("wrote {} anew in place, {} bytes where {length} were", path.display(), bytes.len()));
    Ok(())
}

/// A line for a member that was read to its end, and whose successor was read.
fn grow_late(world: &mut SourceWorld, stem: usize) -> anyhow::Result<()> {
    let files = world.stem_files(stem);
    let text = world.writer.stems().decoys(stem, 1);
    std::fs::File::options().append(true).open(files.member(".1"))?.write_all(text.as_bytes())?;
    world.tell(format!("wrote a line to {}.1", files.name));
    Ok(())
}

/// A member with a higher number and an older time than all others.
fn make_older(world: &mut SourceWorld, stem: usize) -> anyhow::Result<()> {
    let files = world.stem_files(stem);
    let text = world.writer.stems().decoy_file(stem, 2000);
    let part = world.dir.join("older");
    std::fs::write(&part, text)?;
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(86_400);
    std::fs::File::options().write(true).open(&part)?.set_modified(long_ago)?;
    std::fs::rename(&part, files.member(".9"))?;
    world.tell(format!("made {}.9, a day old", files.name));
    Ok(())
}

/// The folder gets another name, and the path in the configuration follows it; returns what a stop must name.
fn move_folder(world: &mut SourceWorld) -> anyhow::Result<Vec<String>> {
    let moved = world.dir.join("moved");
    std::fs::rename(&world.folder, &moved)?;
    let mut stems = world.writer.stems();
    for stem in &mut stems.stems {
        let path = moved.join(&stem.name);
        stem.move_to(&path);
    }
    drop(stems);
    world.folder = moved;
    let path = world.source_path.replacen(SPOOL, "moved", 1);
    change_path(world, path)?;
    Ok(vec![format!("{SPOOL}/"), "moved/".to_owned()])
}

/// The file gets another name, and the path in the configuration follows it; returns what a stop must name.
fn rename_and_edit_path(world: &mut SourceWorld, stem: usize) -> anyhow::Result<Vec<String>> {
    let files = world.stem_files(stem);
    let renamed = files.folder.join("renamed.log");
    std::fs::rename(files.live(), &renamed)?;
    world.writer.stems().stems[stem].move_to(&renamed);
    change_path(world, format!("{SPOOL}/renamed.log"))?;
    Ok(vec![files.name, "renamed.log".to_owned()])
}

/// A path becomes a pattern, a pattern a path; returns what a stop must name.
fn change_layout(world: &mut SourceWorld, stem: usize) -> anyhow::Result<Vec<String>> {
    let files = world.stem_files(stem);
    let name = if world.case.layout.pattern().is_none() { "*.log" } else { &files.name };
    change_path(world, format!("{SPOOL}/{name}"))?;
    Ok(vec![files.name])
}

fn change_path(world: &mut SourceWorld, path: String) -> anyhow::Result<()> {
    world.source_path = path;
    world.write_config()?;
    world.tell(format!("the path is {} now", world.source_path));
    Ok(())
}
