//! The files of one lane: those that carry its name, and those that a rotation moved away from it, oldest first.
//!
//! Reads: the folder of the lane. Writes: nothing. Invariant: the order comes from the names alone, and where names or
//! times contradict each other nothing is chosen. Not here: what the files hold (`incarnation`), reading them (`source`).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::incarnation::identity;

/// What a file that appears under a rotated name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RotationRule {
    /// `app.log.1`, `app.log-20261117` and the like were `app.log` before.
    #[default]
    Suffixes,
    /// `app.1.log`, `app-20261117.log` and the like were `app.log` before, or would be.
    BeforeExtension,
    /// Every file is a lane of its own.
    None,
    /// The path is written anew and renamed over: what is there next follows.
    Replaced,
    /// All files of a pattern follow each other in the order of their names. The lane's own name is the pattern.
    ByName,
}

impl RotationRule {
    /// The option and its value, as the configuration and the contract have them; none for what is usual.
    #[must_use]
    pub const fn in_contract(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Suffixes => None,
            Self::BeforeExtension => Some(("rotation", "beforeExtension")),
            Self::None => Some(("rotation", "none")),
            Self::Replaced => Some(("rotation", "replaced")),
            Self::ByName => Some(("order", "name")),
        }
    }

    /// Whether names tell which files follow each other.
    #[must_use]
    pub const fn makes_chains(self) -> bool {
        match self {
            Self::Suffixes | Self::BeforeExtension | Self::ByName => true,
            Self::None | Self::Replaced => false,
        }
    }

    /// Whether the youngest file is the one that is written to, where none has the lane's own name.
    #[must_use]
    pub const fn follows_youngest(self) -> bool {
        match self {
            Self::BeforeExtension | Self::ByName => true,
            Self::Suffixes | Self::None | Self::Replaced => false,
        }
    }

    /// The name of the lane that a file belongs to: its own, less what a rotation has added.
    pub(super) fn stem_of(self, name: &str) -> Cow<'_, str> {
        match self {
            Self::None | Self::Replaced | Self::ByName => name.into(),
            Self::Suffixes => stem_name(name).into(),
            Self::BeforeExtension => {
                let Some((before, extension)) = split_extension(unpacked_name(name).unwrap_or(name)) else {
                    return name.into();
                };
                match mark_at(before, |packed| !packed) {
                    Some(at) => format!("{}{extension}", &before[..at]).into(),
                    None => name.into(),
                }
            }
        }
    }

    /// A lane's own name, and examples of what a rotation makes of it where its own need not be there.
    pub(super) fn names_of(self, lane: &str) -> Vec<String> {
        let mut names = vec![lane.to_owned()];
        if self == Self::BeforeExtension {
            let (before, extension) = split_extension(lane).unwrap_or((lane, ""));
            let marks = [".1", ".20260101", "-20260101", "_20260101", ".2026-01-01", "-2026-01-01", "_2026-01-01"];
            names.extend(marks.map(|mark| format!("{before}{mark}{extension}")));
        }
        names
    }

    /// What a rotation has made of the name `stem`, and whether the file is compressed; none if it is no file of that lane.
    fn place_of(self, name: &str, stem: &str) -> Option<(Suffix, bool)> {
        if name == stem && self != Self::ByName {
            return Some((Suffix::Live, false));
        }
        match self {
            Self::ByName => {
                let (pattern, unpacked) = (glob::Pattern::new(stem).ok()?, unpacked_name(name));
                let place = || (Suffix::Name(unpacked.unwrap_or(name).to_owned()), unpacked.is_some());
                (pattern.matches(name) || unpacked.is_some_and(|name| pattern.matches(name))).then(place)
            }
            Self::None | Self::Replaced => None,
            Self::Suffixes => name.strip_prefix(stem).and_then(parse_suffix),
            Self::BeforeExtension => {
                let unpacked = unpacked_name(name);
                let (before, extension) = split_extension(stem)?;
                let rest = unpacked.unwrap_or(name).strip_prefix(before)?.strip_suffix(extension)?;
                match parse_suffix(rest)? {
                    (Suffix::Live | Suffix::Packed | Suffix::Name(_), _) | (_, true) => None,
                    (suffix, false) => Some((suffix, unpacked.is_some())),
                }
            }
        }
    }
}

/// Pure: whether the file that was called `was` may be called as `now` is: a rotation makes numbers higher, and leaves dates and
/// names as they are.
pub(super) fn may_have_become(rule: RotationRule, stem: &str, was: &str, now: &Member) -> bool {
    let Some((was, _)) = rule.place_of(was, stem) else { return true }; // nothing is known of it
    match (&was, &now.suffix) {
        (Suffix::Live, _) => true,
        (Suffix::Number(was), Suffix::Number(now)) => now >= was,
        (Suffix::Date(was, _), Suffix::Date(now, _)) => was == now,
        (Suffix::Name(was), Suffix::Name(now)) => was == now,
        (Suffix::Number(_) | Suffix::Date(..) | Suffix::Name(_) | Suffix::Packed, _) => false,
    }
}

/// A name and its extension, with the dot; none if it has none, for digits are no extension.
fn split_extension(name: &str) -> Option<(&str, &str)> {
    let at = name.rfind('.').filter(|at| *at > 0)?;
    name[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic()).then(|| name.split_at(at))
}

/// Where a rotation puts a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Suffix {
    /// It still has the lane's own name.
    Live,
    /// The lane's own name, compressed: what had that name last.
    Packed,
    /// `.1`: the higher, the older.
    Number(u64),
    /// `-20261117`, `.2026-11-17.3`: the higher, the younger; so is the number after it.
    Date(String, Option<u64>),
    /// With the rule `ByName`: the name, less what says that it is compressed. Byte by byte, the higher, the younger.
    Name(String),
}

/// A file of a chain, as its folder shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Inode and time of creation, in words.
    pub(super) identity: String,
    pub(super) device: u64,
    pub(super) length: u64,
    pub(super) modified: SystemTime,
    pub(super) suffix: Suffix,
    /// Whether its name says that it is compressed.
    pub(super) packed: bool,
}

/// The endings that compressed files have.
pub(super) const PACKED_ENDINGS: [&str; 8] = [".gz", ".gzip", ".zst", ".zstd", ".bz2", ".xz", ".lz4", ".Z"];
/// From so many digits on a number is a date.
const DATE_DIGITS: usize = 8;
/// Times of modification that differ by less say nothing.
const SAME_TIME: Duration = Duration::from_secs(2);

/// Where the files of a lane are: links are followed, the chain lies beside what they lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stem {
    pub(super) folder: PathBuf,
    pub(super) name: String,
}

impl Stem {
    /// The stem of the file at `path`, whether it is there or not.
    pub(super) fn of(path: &Path, rule: RotationRule) -> io::Result<Self> {
        let linked =
            rule != RotationRule::ByName && std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        let whole = if linked { std::fs::canonicalize(path)? } else { path.to_path_buf() };
        let name = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = readable_folder(whole.parent().unwrap_or(Path::new(""))).to_path_buf();
        Ok(Self { folder, name })
    }

    /// Its files, oldest first. A compressed file beside its original is left out: the original is read, and the two are compared
    /// (`beside`).
    pub(super) fn list(&self, rule: RotationRule) -> io::Result<Vec<Member>> {
        self.list_all(rule).map(in_order)
    }

    /// Compressed files that lie beside a file that they may be copies of: that one, and the archive.
    pub(super) fn archives_beside(&self, rule: RotationRule) -> io::Result<Vec<(Member, Member)>> {
        let (packed, plain): (Vec<Member>, Vec<Member>) =
            self.list_all(rule)?.into_iter().partition(|member| member.packed);
        let original = |archive: &Member| plain.iter().find(|member| member.suffix == archive.suffix).cloned();
        Ok(packed.into_iter().filter_map(|archive| original(&archive).map(|original| (original, archive))).collect())
    }

    /// Files that carry the lane's own name and what says that they are compressed. They are of the lane only if its file has
    /// become one of them.
    pub(super) fn own_archives(&self) -> io::Result<Vec<Member>> {
        let mut archives = Vec::new();
        for ending in PACKED_ENDINGS {
            let name = format!("{}{ending}", self.name);
            archives.extend(look_at(&self.folder.join(&name), &name, Suffix::Packed, true)?);
        }
        Ok(archives)
    }

    fn list_all(&self, rule: RotationRule) -> io::Result<Vec<Member>> {
        if !rule.makes_chains() {
            let path = self.folder.join(&self.name);
            return Ok(look_at(&path, &self.name, Suffix::Live, false)?.into_iter().collect());
        }
        let mut members = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = match entry.file_name().into_string() {
                Ok(name) => name,
                Err(_) if rule == RotationRule::ByName => continue, // no pattern finds it; it is named in the log
                Err(odd) => odd.to_string_lossy().into_owned(),
            };
            if let Some((suffix, packed)) = rule.place_of(&name, &self.name) {
                members.extend(look_at(&entry.path(), &name, suffix, packed)?);
            }
        }
        Ok(members)
    }
}

/// The folder of a name without one is the folder that the process is in.
pub(super) fn readable_folder(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// The files of several stems of one folder, which is read once.
pub(super) fn group_by_stem(
    folder: &Path,
    stems: &BTreeSet<String>,
    rule: RotationRule,
) -> io::Result<BTreeMap<String, Vec<Member>>> {
    let mut groups: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for entry in std::fs::read_dir(readable_folder(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let stem = if stems.contains(&name) { Cow::from(&name) } else { rule.stem_of(&name) };
        if !stems.contains(&*stem) {
            continue;
        }
        if let Some((suffix, packed)) = rule.place_of(&name, &stem) {
            let member = look_at(&entry.path(), &name, suffix, packed)?;
            groups.entry(stem.into_owned()).or_default().extend(member);
        }
    }
    Ok(groups.into_iter().map(|(stem, members)| (stem, in_order(members))).collect())
}

/// The archives of the stems' own names, in a folder that is read once.
pub(super) fn own_archives_by_stem(
    folder: &Path,
    stems: &BTreeSet<String>,
) -> io::Result<BTreeMap<String, Vec<Member>>> {
    let mut groups: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for entry in std::fs::read_dir(readable_folder(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(stem) = unpacked_name(&name).filter(|stem| stems.contains(*stem)) {
            let member = look_at(&entry.path(), &name, Suffix::Packed, true)?;
            groups.entry(stem.to_owned()).or_default().extend(member);
        }
    }
    Ok(groups)
}

/// Oldest first, without compressed files that lie beside their originals.
fn in_order(mut members: Vec<Member>) -> Vec<Member> {
    let plain: BTreeSet<Suffix> = members.iter().filter(|m| !m.packed).map(|m| m.suffix.clone()).collect();
    members.retain(|member| !member.packed || !plain.contains(&member.suffix));
    members.sort_by(|a, b| age_order(&a.suffix).cmp(&age_order(&b.suffix)).then(a.name.cmp(&b.name)));
    members
}

/// A name, less what a rotation has added to its end.
pub(super) fn stem_name(name: &str) -> &str {
    mark_at(name, |_| true).map_or(name, |at| &name[..at])
}

/// Where what a rotation has added begins, up to the end; `wanted` says whether it may be packed, or not.
fn mark_at(name: &str, wanted: impl Fn(bool) -> bool) -> Option<usize> {
    let mut marks = name.char_indices().filter(|(at, c)| *at > 0 && matches!(c, '.' | '-' | '_')).map(|(at, _)| at);
    marks.find(|at| match parse_suffix(&name[*at..]) {
        Some((Suffix::Number(_) | Suffix::Date(..), packed)) => wanted(packed),
        Some((Suffix::Live | Suffix::Packed | Suffix::Name(_), _)) | None => false,
    })
}

fn look_at(path: &Path, name: &str, suffix: Suffix, packed: bool) -> io::Result<Option<Member>> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None), // moved since; the next listing has it
        Err(error) => return Err(io::Error::new(error.kind(), format!("{name}: {error}"))),
    };
    if !metadata.is_file() {
        return Ok(None);
    }
    Ok(Some(Member::new(path, name, suffix, packed, &metadata)))
}

impl Member {
    fn new(path: &Path, name: &str, suffix: Suffix, packed: bool, metadata: &Metadata) -> Self {
        Self {
            name: name.to_owned(),
            path: path.to_path_buf(),
            identity: identity(metadata),
            device: metadata.dev(),
            length: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            suffix,
            packed,
        }
    }
}

/// What is after the lane's name: nothing, or what a rotation adds.
fn parse_suffix(rest: &str) -> Option<(Suffix, bool)> {
    if rest.is_empty() {
        return Some((Suffix::Live, false));
    }
    let unpacked = unpacked_name(rest);
    let (rest, packed) = (unpacked.unwrap_or(rest), unpacked.is_some());
    let mut characters = rest.chars();
    let mark = characters.next().filter(|mark| matches!(mark, '.' | '-' | '_'))?;
    let body = characters.as_str();
    let well_formed = body.starts_with(|c: char| c.is_ascii_digit())
        && body.ends_with(|c: char| c.is_ascii_digit() || c == 'Z')
        && body.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '_' | '.' | ':' | 'T' | 'Z'));
    if !well_formed {
        return None;
    }
    if mark == '.' && body.len() < DATE_DIGITS && body.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some((Suffix::Number(body.parse().ok()?), packed));
    }
    let (date, number) = match body.rsplit_once('.') {
        Some((date, number)) if digits(date).len() >= DATE_DIGITS => (date, Some(number.parse().ok()?)),
        Some(_) | None => (body, None),
    };
    let date = digits(date);
    (date.len() >= DATE_DIGITS).then_some((Suffix::Date(date, number), packed))
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// Sorts the oldest first: numbers fall, dates rise, what is still written comes last.
fn age_order(suffix: &Suffix) -> (u8, std::cmp::Reverse<u64>, &str, Option<u64>) {
    use std::cmp::Reverse;
    match suffix {
        Suffix::Number(number) => (0, Reverse(*number), "", None),
        Suffix::Date(date, number) => (1, Reverse(0), date, *number),
        Suffix::Name(name) => (1, Reverse(0), name, None),
        Suffix::Packed => (2, Reverse(0), "", None),
        Suffix::Live => (3, Reverse(0), "", None),
    }
}

/// What follows a file that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Successor {
    /// Nothing yet.
    None,
    /// This file; those between hold nothing.
    Next { member: Member, passed: Vec<Member> },
    /// A file that must lie between is not there: it may just be on its way from one name to the next.
    Missing(String),
    /// The names contradict each other; a person decides.
    Contradiction(String),
}

/// Pure: which file follows `members[at]`. `known` are files that were read or passed before.
pub(super) fn decide_successor(members: &[Member], at: usize, known: impl Fn(&Member) -> bool) -> Successor {
    let current = &members[at];
    if current.suffix == Suffix::Live {
        return Successor::None;
    }
    let is_current = |member: &&Member| member.identity == current.identity && member.device == current.device;
    if let Some(same) = members[at + 1..].iter().find(is_current) {
        return Successor::Contradiction(format!("{} and {} are one file, by a link", current.name, same.name));
    }
    let younger: Vec<&Member> = members[at + 1..].iter().filter(|member| !known(member)).collect();
    // The time of a file that was compressed since it was read may be that of its compression.
    let compared: Vec<&Member> =
        Some(current).filter(|current| !current.packed).into_iter().chain(younger.iter().copied()).collect();
    if let Some(contradiction) = contradiction(current, &compared) {
        return Successor::Contradiction(contradiction);
    }
    if let Suffix::Number(number) = current.suffix {
        let has = |n: u64| members[at + 1..].iter().any(|member| member.suffix == Suffix::Number(n));
        if let Some(missing) = (1..number).rev().find(|n| !has(*n)) {
            let name = unpacked_name(&current.name).filter(|_| current.packed).unwrap_or(&current.name);
            let (before, after) = name.rsplit_once(&format!(".{number}")).unwrap_or((name, ""));
            return Successor::Missing(format!(
                "{before}.{missing}{after}, between {} and {before}{after}",
                current.name
            ));
        }
    }
    let mut passed = Vec::new();
    for member in younger {
        match (&member.suffix, member.length) {
            (Suffix::Live, 0) => return Successor::None, // its writer may still hold the old file
            (Suffix::Packed | Suffix::Number(_) | Suffix::Date(..) | Suffix::Name(_), 0) => passed.push(member.clone()),
            (Suffix::Live | Suffix::Packed | Suffix::Number(_) | Suffix::Date(..) | Suffix::Name(_), _) => {
                return Successor::Next { member: member.clone(), passed };
            }
        }
    }
    Successor::None
}

/// What the names and times of all files that a delivery begins with say against each other.
pub(super) fn contradiction_among(members: &[Member]) -> Option<String> {
    let first = members.first().filter(|first| first.suffix != Suffix::Live)?;
    contradiction(first, &members.iter().collect::<Vec<_>>())
}

/// What the names and times of files say against each other, and against the kind of name that `current` has.
fn contradiction(current: &Member, compared: &[&Member]) -> Option<String> {
    if let Suffix::Name(_) | Suffix::Packed = current.suffix {
        return None; // a person has said that names decide, and nothing else; or only the file of the lane's own name follows
    }
    let kind = |member: &Member| match &member.suffix {
        Suffix::Live | Suffix::Packed | Suffix::Name(_) => None,
        Suffix::Number(_) => Some(0),
        Suffix::Date(date, _) => Some(date.len()),
    };
    let has_mark = |member: &&&Member| !matches!(member.suffix, Suffix::Live | Suffix::Packed);
    let rotated: Vec<&&Member> = compared.iter().filter(has_mark).collect();
    if let Some(other) = rotated.iter().find(|member| kind(member) != kind(current)) {
        return Some(format!(
            "{} and {} were named by two kinds of rotation, so that nobody can say which is older",
            current.name, other.name
        ));
    }
    let later = |a: &Member, b: &Member| a.modified.duration_since(b.modified).is_ok_and(|by| by > SAME_TIME);
    let turned = rotated.windows(2).find(|pair| later(pair[0], pair[1]))?;
    Some(format!("by its name {} is older than {}, but it was written to later", turned[0].name, turned[1].name))
}

/// The name that a compressed file had before; none if its name does not say that it is compressed.
#[must_use]
pub fn unpacked_name(name: &str) -> Option<&str> {
    PACKED_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
