//! What is done to compressed files and to copies: each step by step, as `file_faults` has it for plain ones.
//!
//! Invariant: every archive that is written here is whole and sound: what must follow follows from its content, not from damage.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::file_faults::{DoneFault, FileAdversary};
use super::record_writer::WrittenStems;
use super::rotation::{Pace, compress};
use super::source_world::SourceWorld;

/// What a file is compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// gzip; several members are one stream.
    Gzip,
    /// zstd; several frames are one stream.
    Zstd,
}

/// The least bytes of what holds nothing: a gzip member with an extra field, a zstd frame that is skipped.
const LEAST_PADDING: usize = 24;

impl Packing {
    /// `text`, compressed: one member.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn pack(self, text: &[u8]) -> anyhow::Result<Vec<u8>> {
        let (program, arguments): (_, &[&str]) = match self {
            Self::Gzip => ("gzip", &["-c"]),
            Self::Zstd => ("zstd", &["-q", "-c"]),
        };
        let mut command = Command::new(program);
        let child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("there is no {program}"))?;
        let mut input = child.stdin.take().context("it has an input")?;
        // Neither a pipe's buffer nor the program's own can be full before both ends are served.
        let output = std::thread::scope(|scope| {
            let written = scope.spawn(move || input.write_all(text));
            let output = child.wait_with_output();
            written.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
            anyhow::Ok(output?)
        })?;
        ensure!(output.status.success(), "{program} failed: {}", output.status);
        Ok(output.stdout)
    }

    /// A member that holds nothing and is `length` bytes long.
    fn padding(self, length: usize) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(length);
        match self {
            // The header with FEXTRA, the extra field, one empty final block, and checksum and length of nothing.
            Self::Gzip => {
                let extra = length.checked_sub(22).context("too short for a member")?;
                bytes.extend([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 3]);
                bytes.extend(u16::try_from(extra)?.to_le_bytes());
                bytes.resize(12 + extra, 0);
                bytes.extend([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            }
            Self::Zstd => {
                let skipped = length.checked_sub(8).context("too short for a frame")?;
                bytes.extend(0x184d_2a50_u32.to_le_bytes());
                bytes.extend(u32::try_from(skipped)?.to_le_bytes());
                bytes.resize(length, 0);
            }
        }
        Ok(bytes)
    }

    /// Two members that hold `text`, cut behind a line.
    ///
    /// # Errors
    /// If there is no such program.
    pub fn pack_twofold(self, text: &str) -> anyhow::Result<Vec<u8>> {
        let middle = text[..text.len() / 2].rfind('\n').map_or(0, |at| at + 1);
        let mut bytes = self.pack(&text.as_bytes()[..middle])?;
        bytes.extend(self.pack(&text.as_bytes()[middle..])?);
        Ok(bytes)
    }
}

/// How an archive becomes worthless in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackedSpoiling {
    /// Shorter than it was.
    Shorter,
    /// As long as it was, to the byte.
    Equal,
    /// Longer.
    Longer,
    /// Behind its first member.
    Tail,
}

/// An archive of other records: of so many bytes, if that is asked for.
fn decoy_archive(
    stems: &mut WrittenStems,
    stem: usize,
    packing: Packing,
    how: PackedSpoiling,
    before: &[u8],
) -> anyhow::Result<Vec<u8>> {
    let length = before.len();
    let packed = |text: &str| packing.pack(text.as_bytes());
    match how {
        PackedSpoiling::Shorter => packed(&stems.decoy_file(stem, 1)),
        PackedSpoiling::Longer => {
            // Some hundred bytes a line, which pack to thirty and more.
            let bytes = packed(&stems.decoy_file(stem, 20 * length + 4000))?;
            ensure!(bytes.len() > length, "{} bytes are not longer than {length}", bytes.len());
            Ok(bytes)
        }
        PackedSpoiling::Equal => {
            let mut bytes = packed(&stems.decoy_file(stem, length))?;
            let missing = length.checked_sub(bytes.len()).filter(|missing| *missing >= LEAST_PADDING);
            bytes.extend(packing.padding(missing.context("no room to be of equal length")?)?);
            Ok(bytes)
        }
        PackedSpoiling::Tail => {
            let first = packing.first_member(before)?;
            let mut bytes = before[..first].to_vec();
            bytes.extend(packed(&stems.decoys(stem, 6000))?);
            Ok(bytes)
        }
    }
}

impl Packing {
    /// Where the second member of an archive begins: its first bytes are looked for behind the first ones.
    fn first_member(self, bytes: &[u8]) -> anyhow::Result<usize> {
        let magic: &[u8] = match self {
            Self::Gzip => &[0x1f, 0x8b, 8, 0],
            Self::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
        };
        let at = bytes.windows(magic.len()).skip(1).position(|window| window == magic);
        Ok(at.context("the archive has one member only")? + 1)
    }
}

/// Writes an archive that was read anew in place, and says how many records it held before.
///
/// # Errors
/// If it cannot be written.
pub fn spoil_archive(
    world: &mut SourceWorld,
    stem: usize,
    packing: Packing,
    how: PackedSpoiling,
) -> anyhow::Result<usize> {
    let files = world.stem_files(stem);
    let before = std::fs::read(files.live())?;
    let writer = world.writer.clone();
    let mut stems = writer.stems();
    let bytes = decoy_archive(&mut stems, stem, packing, how, &before)?;
    ensure!(how != PackedSpoiling::Equal || bytes.len() == before.len(), "not of equal length");
    write_in_place(&files.live(), &bytes)?;
    world.tell(format!("wrote {} anew in place, {} bytes where {} were", files.name, bytes.len(), before.len()));
    Ok(stems.stems[stem].records.len())
}

/// A second member for an archive that was read to its end: its records are to be delivered, too.
///
/// # Errors
/// If it cannot be written.
pub fn grow_archive(world: &mut SourceWorld, stem: usize) -> anyhow::Result<()> {
    let packing = world.case.layout.packing().context("an archive")?;
    let files = world.stem_files(stem);
    let text = world.writer.stems().compose_more(stem, 25);
    std::fs::File::options().append(true).open(files.live())?.write_all(&packing.pack(text.as_bytes())?)?;
    world.tell(format!("appended a member with 25 records to {}", files.name));
    Ok(())
}

/// Changes a compressed member that was read to its end, and whose successor was read: written anew in place, or grown.
///
/// # Errors
/// If it cannot be written.
pub fn change_packed_member(world: &mut SourceWorld, stem: usize, grow: bool) -> anyhow::Result<()> {
    let path = world.stem_files(stem).member(".1.gz");
    let before = std::fs::read(&path).with_context(|| format!("{} is not there", path.display()))?;
    let text = if grow { world.writer.stems().decoys(stem, 1) } else { world.writer.stems().decoy_file(stem, 3000) };
    let packed = Packing::Gzip.pack(text.as_bytes())?;
    let bytes = if grow { [before.clone(), packed].concat() } else { packed };
    if grow {
        std::fs::File::options().append(true).open(&path)?.write_all(&bytes[before.len()..])?;
    } else {
        write_in_place(&path, &bytes)?;
    }
    world.tell(format!("{} has {} bytes where {} were", path.display(), bytes.len(), before.len()));
    Ok(())
}

/// The live file becomes an archive of its own name, and the next one is written at its path.
///
/// # Errors
/// If it cannot be written.
pub fn pack_live(world: &mut SourceWorld, stem: usize, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let files = world.stem_files(stem);
    let writer = world.writer.clone();
    let mut stems = writer.stems();
    stems.stems[stem].close();
    compress(&files.live(), if random.u8(0..4) == 0 { Pace::Slow } else { Pace::Quick })?;
    world.tell(format!("compressed {} under its own name", files.name));
    std::thread::sleep(Duration::from_millis(random.u64(0..1500)));
    stems.append(stem, random.usize(5..30))?;
    world.tell(format!("wrote records to a new {}", files.name));
    Ok(())
}

/// The folder is replaced by a copy of it, as `cp -r` makes it: no inode is the same.
///
/// # Errors
/// If it cannot be copied.
pub fn restore_folder(world: &mut SourceWorld, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let folder = world.folder.clone();
    let (copy, before) = (world.dir.join("copy"), world.dir.join("before"));
    let keeps_times = random.bool();
    let output = Command::new("cp").arg(if keeps_times { "-a" } else { "-r" }).arg(&folder).arg(&copy).output()?;
    ensure!(output.status.success(), "cp failed: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&folder, &before)?;
    std::fs::rename(&copy, &folder)?;
    std::fs::remove_dir_all(&before)?;
    for stem in &mut world.writer.stems().stems {
        stem.close();
    }
    world.tell(format!("replaced {} by a copy, times kept: {keeps_times}", folder.display()));
    Ok(())
}

impl FileAdversary {
    /// Drops two files with the same content, one after the other.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn drop_twins(&mut self, world: &mut SourceWorld) -> anyhow::Result<()> {
        self.drop_file(world)?;
        let mut stems = world.writer.stems();
        let first = stems.stems.len() - 1;
        let path = world.folder.join(format!("batch.part.{}", first + 2));
        let twin = stems.add_stem(&path);
        stems.stems[twin].records = stems.stems[first].records.clone();
        stems.stems[twin].twin_of = Some(first);
        let original = stems.stems[first].path().to_owned();
        drop(stems);
        std::thread::sleep(Duration::from_millis(self.random.u64(0..1200)));
        let part = world.dir.join("twin");
        std::fs::copy(&original, &part)?;
        std::fs::rename(&part, &path)?;
        world.tell(format!("dropped {} with the same content", path.display()));
        Ok(())
    }

    /// The first half of an archive under its own name; the rest comes while workers see it grow.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin_archive(&mut self, world: &mut SourceWorld) -> anyhow::Result<DoneFault> {
        let packing = world.case.layout.packing().context("an archive")?;
        let mut stems = world.writer.stems();
        let number = stems.stems.len();
        let path = world.folder.join(format!("batch-{number:03}.{}", world.case.layout.extension()));
        let stem = stems.add_stem(&path);
        let text = stems.compose(stem, self.random.usize(60..160));
        drop(stems);
        let bytes = packing.pack_twofold(&text)?;
        let half = self.random.usize(1..bytes.len() / 2);
        std::fs::write(&path, &bytes[..half])?;
        world.tell(format!("wrote {half} of {} bytes to {}", bytes.len(), path.display()));
        Ok(DoneFault { rest: Some((path, bytes[half..].to_vec())), ..DoneFault::default() })
    }
}

/// Writes the rest of an archive: a piece every quarter of a second until `seen` by a worker, then some more, then all at once. So it
/// grows whenever it is looked at.
///
/// # Errors
/// If it cannot be written, or nobody saw the half of it.
pub fn finish_archive(path: &Path, rest: &[u8], mut seen: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let mut file = std::fs::File::options().append(true).open(path)?;
    let (mut written, mut since) = (0, 0);
    for piece in rest.chunks(rest.len().div_ceil(200)) {
        file.write_all(piece)?;
        written += piece.len();
        since += u32::from(since > 0 || seen()?);
        if since > 6 {
            break;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    ensure!(since > 0 && written < rest.len(), "nobody saw the archive grow");
    Ok(file.write_all(&rest[written..])?)
}

/// The same file with other bytes: no other inode.
///
/// # Errors
/// If it cannot be written.
pub fn write_in_place(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut file = std::fs::File::options().write(true).truncate(true).open(path)?;
    Ok(file.write_all(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::super::case::RecordFormat;
    use super::super::record_writer::RecordWriter;
    use super::*;
    use crate::shape::Shape;

    fn unpacked(packing: Packing, bytes: &[u8]) -> String {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("packed");
        std::fs::write(&path, bytes).expect("written");
        let program = if packing == Packing::Gzip { "gzip" } else { "zstd" };
        let output = Command::new(program).arg("-dc").stdin(std::fs::File::open(&path).expect("open")).output();
        let output = output.expect("it unpacks");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Goal: what is written over an archive is a sound one, of the length that its name says, and holds decoys only. Method: each
    /// kind in both formats, unpacked by their own programs.
    #[test]
    fn what_is_written_over_an_archive_is_a_sound_one() {
        let dir = tempfile::tempdir().expect("a directory");
        for packing in [Packing::Gzip, Packing::Zstd] {
            let writer = RecordWriter::new(Shape::Append, RecordFormat::Jsonl, 5);
            let mut stems = writer.stems();
            stems.add_stem(&dir.path().join("a"));
            let text = stems.compose(0, 60);
            let before = packing.pack_twofold(&text).expect("packed");
            assert_eq!(unpacked(packing, &before), text);
            let mut spoiled = |how| decoy_archive(&mut stems, 0, packing, how, &before).expect("packed");
            let [shorter, equal, longer, tail] =
                [PackedSpoiling::Shorter, PackedSpoiling::Equal, PackedSpoiling::Longer, PackedSpoiling::Tail]
                    .map(&mut spoiled);
            assert!(shorter.len() < before.len() && longer.len() > before.len() && equal.len() == before.len());
            for bytes in [&shorter, &equal, &longer] {
                let text = unpacked(packing, bytes);
                assert!(!text.is_empty() && text.lines().all(|line| line.contains("\"n\":90")), "{text}");
            }
            let tail = unpacked(packing, &tail);
            let (first, rest) = tail.split_at(text[..text.len() / 2].rfind('\n').expect("a line") + 1);
            assert!(text.starts_with(first) && !first.is_empty() && rest.lines().all(|line| line.contains("\"n\":90")));
        }
    }
}
