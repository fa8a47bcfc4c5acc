//! Rotation as logrotate does it: renames along a chain, dates, compression now or at the next turn.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::packed_faults::Packing;

/// How a file's past is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationStyle {
    /// `app.log.1`, `app.log.2`, the higher the older.
    Numbered,
    /// `app.log-20261101`, the higher the younger.
    Dated,
    /// `app.log.2026-11-01`, the higher the younger.
    DatedWithPoint,
}

/// What happens to rotated files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// They stay as they are.
    Never,
    /// They are compressed as soon as they are rotated.
    AtOnce,
    /// They are compressed when the next one is rotated.
    Later,
}

/// The files of one stem in one folder.
#[derive(Debug, Clone)]
pub struct StemFiles {
    /// Where they are.
    pub folder: PathBuf,
    /// The live file's name.
    pub name: String,
    /// Where a rotation writes its number or date.
    pub mark: MarkPlace,
}

/// Where a rotation writes its number or date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkPlace {
    /// `app.log.1`
    AtEnd,
    /// `app.1.log`
    BeforeExtension,
    /// Nowhere: no file is renamed, each is written under the name after that of the one before, `batch-101.lines`.
    NextName,
}

/// The first name where every file has the next one.
pub const FIRST_NAME: &str = "batch-100.lines";

/// The last file name of a chain of numbers: `suffix` without a point is its number, `.gz` if it is compressed.
fn number_of(rest: &str) -> Option<(u32, &'static str)> {
    let (digits, ending) = rest.strip_suffix(".gz").map_or((rest, ""), |digits| (digits, ".gz"));
    digits.parse().ok().map(|number| (number, ending))
}

impl StemFiles {
    /// The live file.
    #[must_use]
    pub fn live(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// What is before a rotation's mark, and what is after it.
    fn around_mark(&self) -> (&str, &str) {
        match self.mark {
            MarkPlace::AtEnd | MarkPlace::NextName => (&self.name, ""),
            MarkPlace::BeforeExtension => self.name.split_at(self.name.rfind('.').unwrap_or(self.name.len())),
        }
    }

    /// The member with this suffix, behind which there may be `.gz`.
    #[must_use]
    pub fn member(&self, suffix: &str) -> PathBuf {
        let (mark, packed) = suffix.strip_suffix(".gz").map_or((suffix, ""), |mark| (mark, ".gz"));
        if self.mark == MarkPlace::NextName {
            let back = mark.trim_start_matches('.').parse().unwrap_or(0);
            return self.folder.join(format!("{}{packed}", self.numbered(self.number().saturating_sub(back))));
        }
        let (before, after) = self.around_mark();
        self.folder.join(format!("{before}{mark}{after}{packed}"))
    }

    /// The number in the live file's name, where every file has the next one.
    fn number(&self) -> u32 {
        let digits: String = self.name.chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    }

    fn numbered(&self, number: u32) -> String {
        self.name.replacen(&format!("{:03}", self.number()), &format!("{number:03}"), 1)
    }

    /// The file after the live one, where every file has the next name.
    #[must_use]
    pub fn next(&self) -> PathBuf {
        self.folder.join(self.numbered(self.number() + 1))
    }

    /// The suffix of the member with this name, as [`StemFiles::member`] takes it.
    fn suffix_of(&self, name: &str) -> Option<String> {
        let (before, after) = self.around_mark();
        let (plain, packed) = name.strip_suffix(".gz").map_or((name, ""), |plain| (plain, ".gz"));
        Some(format!("{}{packed}", plain.strip_prefix(before)?.strip_suffix(after)?))
    }

    /// The numbers in use, each with its ending, the highest first.
    fn numbers(&self) -> anyhow::Result<Vec<(u32, &'static str)>> {
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let suffix = self.suffix_of(&name).unwrap_or_default();
            numbers.extend(suffix.strip_prefix('.').and_then(number_of));
        }
        numbers.sort_unstable();
        numbers.reverse();
        Ok(numbers)
    }

    /// Moves every number up by one, and compresses the youngest before, if that was left for later.
    ///
    /// # Errors
    /// If a rename fails.
    pub fn make_room(&self, compression: Compression) -> anyhow::Result<()> {
        if compression == Compression::Later && self.member(".1").exists() {
            compress(&self.member(".1"), Pace::Quick)?;
        }
        for (number, ending) in self.numbers()? {
            let (from, to) = (format!(".{number}{ending}"), format!(".{}{ending}", number + 1));
            std::fs::rename(self.member(&from), self.member(&to))?;
        }
        Ok(())
    }

    /// Compresses the members with dates that are plain yet.
    fn compress_dated(&self) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let rest = self.suffix_of(&name).unwrap_or_default();
            if (rest.starts_with('-') || rest.starts_with(".2026")) && !rest.ends_with(".gz") {
                compress(&self.member(&rest), Pace::Quick)?;
            }
        }
        Ok(())
    }

    /// Renames the live file to what it is called from now on, and says what that is.
    ///
    /// # Errors
    /// If a rename fails.
    pub fn rename_live(&self, style: RotationStyle, turn: u32, compression: Compression) -> anyhow::Result<String> {
        let suffix = match style {
            RotationStyle::Numbered => {
                self.make_room(compression)?;
                ".1".to_owned()
            }
            RotationStyle::Dated => format!("-202611{turn:02}"),
            RotationStyle::DatedWithPoint => format!(".2026-11-{turn:02}"),
        };
        if style != RotationStyle::Numbered && compression == Compression::Later {
            self.compress_dated()?;
        }
        ensure!(!self.member(&suffix).exists(), "{suffix} is taken");
        std::fs::rename(self.live(), self.member(&suffix)).context("the live file cannot be renamed")?;
        Ok(suffix)
    }
}

/// How fast a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As gzip does it.
    Quick,
    /// So that the half of it can be seen.
    Slow,
}

/// Replaces `path` by its compressed copy, which keeps its time, as gzip and logrotate do.
///
/// # Errors
/// If it cannot be written.
pub fn compress(path: &Path, pace: Pace) -> anyhow::Result<()> {
    use std::io::Write as _;
    let bytes = Packing::Gzip.pack(&std::fs::read(path)?)?;
    let modified = std::fs::metadata(path)?.modified()?;
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    let mut copy = std::fs::File::create_new(Path::new(&name))?;
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    copy.write_all(first)?;
    if pace == Pace::Slow {
        std::thread::sleep(Duration::from_millis(1200));
    }
    copy.write_all(rest)?;
    copy.set_modified(modified)?;
    drop(copy);
    Ok(std::fs::remove_file(path)?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn files(dir: &Path) -> StemFiles {
        StemFiles { folder: dir.to_owned(), name: "app.log".to_owned(), mark: MarkPlace::AtEnd }
    }

    fn rotate_three(compression: Compression, style: RotationStyle) -> Vec<String> {
        let dir = tempfile::tempdir().expect("a directory");
        rotate_three_of(&files(dir.path()), compression, style)
    }

    fn rotate_three_of(stem: &StemFiles, compression: Compression, style: RotationStyle) -> Vec<String> {
        for turn in 1..=3 {
            std::fs::write(stem.live(), format!("line {turn}\n")).expect("a live file");
            let suffix = stem.rename_live(style, turn, compression).expect("rotated");
            if compression == Compression::AtOnce {
                compress(&stem.member(&suffix), Pace::Quick).expect("compressed");
            }
        }
        let names = std::fs::read_dir(&stem.folder).expect("a directory").map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// Goal: the names are those that logrotate leaves. Method: three rotations of each kind.
    #[test]
    fn rotated_files_have_logrotates_names() {
        use RotationStyle::{Dated, DatedWithPoint, Numbered};
        assert_eq!(rotate_three(Compression::Never, Numbered), ["app.log.1", "app.log.2", "app.log.3"]);
        assert_eq!(rotate_three(Compression::AtOnce, Numbered), ["app.log.1.gz", "app.log.2.gz", "app.log.3.gz"]);
        assert_eq!(rotate_three(Compression::Later, Numbered), ["app.log.1", "app.log.2.gz", "app.log.3.gz"]);
        let dated = ["app.log-20261101", "app.log-20261102", "app.log-20261103"];
        assert_eq!(rotate_three(Compression::Never, Dated), dated);
        let dated = ["app.log.2026-11-01.gz", "app.log.2026-11-02.gz", "app.log.2026-11-03"];
        assert_eq!(rotate_three(Compression::Later, DatedWithPoint), dated);
        for (style, names) in [
            (Numbered, ["app.1.log", "app.2.log.gz", "app.3.log.gz"]),
            (Dated, ["app-20261101.log.gz", "app-20261102.log.gz", "app-20261103.log"]),
        ] {
            let dir = tempfile::tempdir().expect("a directory");
            let stem = StemFiles { mark: MarkPlace::BeforeExtension, ..files(dir.path()) };
            assert_eq!(rotate_three_of(&stem, Compression::Later, style), names);
        }
    }

    /// Goal: names that rise are told from the live one. Method: those around one.
    #[test]
    fn names_that_rise_are_told_from_the_live_one() {
        let name = FIRST_NAME.to_owned();
        let stem = StemFiles { name, mark: MarkPlace::NextName, ..files(Path::new("in")) };
        assert_eq!(stem.next(), Path::new("in/batch-101.lines"));
        assert_eq!(stem.member(".1"), Path::new("in/batch-099.lines"));
        assert_eq!(stem.member(".9.gz"), Path::new("in/batch-091.lines.gz"));
    }

    /// Goal: a compressed copy has the bytes and the time of its original. Method: unpack it.
    #[test]
    fn a_compressed_copy_keeps_bytes_and_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("app.log.1");
        std::fs::write(&path, "one\ntwo\n").expect("a file");
        let before = std::fs::metadata(&path).expect("it is there").modified().expect("a time");
        compress(&path, Pace::Quick).expect("compressed");
        let copy = dir.path().join("app.log.1.gz");
        assert_eq!(std::fs::metadata(&copy).expect("it is there").modified().expect("a time"), before);
        let unpacked = Command::new("gzip").arg("-dc").arg(&copy).output().expect("gzip");
        assert_eq!(unpacked.stdout, b"one\ntwo\n");
        assert!(!path.exists());
    }
}
