//! Many files as lanes: which stems a pattern finds, the files of each, and what progress says of them.
//!
//! Reads: folders, each once. Writes: nothing. Invariant: a lane is a stem, the name that a file has before any rotation
//! renames it; so every process, and every later one, gives the same files the same lane. Not here: reading (`source`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hapax_model::position::Bookmark;

pub use super::chain::unpacked_name;
use super::chain::{
    Member, PACKED_ENDINGS, RotationRule, Stem, Suffix, group_by_stem, own_archives_by_stem, readable_folder, stem_name,
};
use super::config::FileFormat;
use super::facts::Facts;
use super::first_seen::FirstSeen;
use super::incarnation::was_read_to_its_end;

/// Whether a path is a pattern: it holds `*`, `?` or `[`.
#[must_use]
pub fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// Says what is wrong with a pattern, if something is.
///
/// # Errors
/// What is wrong, in words.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    glob::Pattern::new(pattern).map(drop).map_err(|error| format!("{} (at character {})", error.msg, error.pos))
}

/// The files of one lane of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundStem {
    /// The lane: the path of the stem, relative to the folder where the pattern is.
    pub lane: String,
    /// Where the file is that is written to.
    pub path: PathBuf,
    members: Vec<Member>,
    /// Names of members that the pattern itself finds.
    matched: BTreeSet<String>,
}

/// What a pattern finds.
#[derive(Debug, Default)]
pub struct FoundStems {
    /// The lanes, sorted by name.
    pub stems: Vec<FoundStem>,
    /// What could not be looked at, and why: it may be a lane of its own.
    pub unreadable: Vec<String>,
    /// Files whose names are no text: no pattern finds them. They say nothing about the lanes.
    pub misnamed: Vec<String>,
    /// One folder that the pattern finds by two paths.
    folder_twice: Option<(String, String)>,
}

/// Folders that were met, by where they really are.
#[derive(Debug, Default)]
struct Folders {
    paths: BTreeSet<PathBuf>,
    real: BTreeMap<PathBuf, PathBuf>,
}

impl Folders {
    /// The other path by which this folder was met, if it was.
    fn met_before(&mut self, path: &Path) -> Option<String> {
        if !self.paths.insert(path.to_path_buf()) {
            return None;
        }
        let real = std::fs::canonicalize(readable_folder(path)).ok()?;
        self.real.insert(real, path.to_path_buf()).map(|first| first.to_string_lossy().into_owned())
    }
}

/// Which files a new lane begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Born {
    /// The stem was there when the pattern was first looked for: with the oldest file that the pattern finds.
    Before,
    /// It came later: with the oldest of all its files.
    Since,
}

/// What a lane that progress knows has before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prospect {
    /// There is more, or may be.
    Unfinished,
    /// It was read to its end, and has not grown.
    Finished,
    /// Its files are gone; they were read to their end before.
    Gone,
    /// Its files are gone, and nobody knows that they were read to their end.
    Vanished,
}

/// All lanes that `pattern` finds in `folder`.
#[must_use]
pub fn find_stems(pattern: &str, folder: &Path, rule: RotationRule) -> FoundStems {
    if rule == RotationRule::ByName {
        return find_by_name(pattern, folder);
    }
    let whole = Path::new(&glob::Pattern::escape(&folder.to_string_lossy())).join(pattern);
    let mut found = FoundStems::default();
    let paths = match glob::glob(&whole.to_string_lossy()) {
        Ok(paths) => paths,
        Err(error) => {
            found.unreadable.push(error.to_string());
            return found;
        }
    };
    let mut met: BTreeMap<PathBuf, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    let mut folders = Folders::default();
    for path in paths {
        let path = match path {
            Ok(path) => path,
            Err(error) => {
                found.unreadable.push(error.to_string());
                continue;
            }
        };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { continue };
        if let Some(first) = folders.met_before(parent) {
            // A link that leads back would be followed for ever.
            found.folder_twice = Some((first, parent.to_string_lossy().into_owned()));
            return found;
        }
        let name = name.to_string_lossy().into_owned();
        let stem = rule.stem_of(&name).into_owned();
        met.entry(parent.to_path_buf()).or_default().entry(stem).or_default().insert(name);
    }
    for parent in met.keys() {
        found.misnamed.extend(names_that_are_no_text(parent));
    }
    for (parent, stems) in met {
        match group_by_stem(&parent, &stems.keys().cloned().collect(), rule) {
            Err(error) => found.unreadable.push(format!("{}: {error}", parent.display())),
            Ok(mut groups) => {
                for (stem, matched) in stems {
                    let members = groups.remove(&stem).unwrap_or_default();
                    if members.is_empty() {
                        continue; // folders, and what has gone since
                    }
                    let path = parent.join(&stem);
                    let lane = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                    found.stems.push(FoundStem { lane, path, members, matched });
                }
            }
        }
    }
    found.stems.sort_by(|a, b| a.lane.cmp(&b.lane));
    found
}

/// The one lane of a pattern whose files follow each other in the order of their names: its own name is the pattern.
fn find_by_name(pattern: &str, folder: &Path) -> FoundStems {
    let mut found = FoundStems::default();
    match chain_by_name(pattern, folder) {
        Ok(stem) => found.stems.extend(Some(stem).filter(|stem| !stem.matched.is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => found.unreadable.push(format!("{pattern}: {error}")),
    }
    let parent = folder.join(pattern);
    found.misnamed.extend(parent.parent().map(names_that_are_no_text).unwrap_or_default());
    found
}

/// The same, with archives of files that the pattern finds, though it may not find the archives themselves.
fn chain_by_name(pattern: &str, folder: &Path) -> std::io::Result<FoundStem> {
    let path = folder.join(pattern);
    let stem = Stem::of(&path, RotationRule::ByName)?;
    let members = stem.list(RotationRule::ByName)?;
    let finds = |name: &String| glob::Pattern::new(&stem.name).is_ok_and(|pattern| pattern.matches(name));
    let matched = members.iter().map(|member| member.name.clone()).filter(finds).collect();
    let lane = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
    Ok(FoundStem { lane, path, members, matched })
}

/// Patterns are text, so that such a name is never found by one.
fn names_that_are_no_text(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(readable_folder(folder)).into_iter().flatten().flatten();
    let odd = entries.map(|entry| entry.path()).filter(|path| path.to_str().is_none());
    odd.map(|path| format!("{}: its name is no UTF-8, rename it", path.display())).collect()
}

impl FoundStems {
    /// Adds lanes of the pattern that progress knows and that it does not meet now: only files with rotated names are left of them,
    /// and those may hold what was not read.
    pub fn add_known<'a>(
        &mut self,
        lanes: impl Iterator<Item = &'a str>,
        pattern: &str,
        folder: &Path,
        rule: RotationRule,
    ) {
        if rule == RotationRule::ByName {
            return self.add_known_by_name(lanes, pattern, folder);
        }
        let met: BTreeSet<String> = self.stems.iter().map(|stem| stem.lane.clone()).collect();
        let mut missing: BTreeMap<PathBuf, BTreeMap<String, String>> = BTreeMap::new();
        for lane in lanes.filter(|lane| !met.contains(*lane) && meets(pattern, lane, rule)) {
            let path = folder.join(lane);
            if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                let name = name.to_string_lossy().into_owned();
                missing.entry(parent.to_path_buf()).or_default().insert(name, lane.to_owned());
            }
        }
        for (parent, names) in missing {
            let groups = match files_left(&parent, &names, pattern, rule) {
                Ok(groups) => groups,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.unreadable.push(format!("{}: {error}", parent.display()));
                    continue;
                }
            };
            for (name, members) in groups.into_iter().filter(|(_, members)| !members.is_empty()) {
                let matched = members.iter().map(|member| member.name.clone()).collect();
                let lane = names.get(&name).cloned().unwrap_or_else(|| name.clone());
                self.stems.push(FoundStem { lane, path: parent.join(&name), members, matched });
            }
        }
        self.stems.sort_by(|a, b| a.lane.cmp(&b.lane));
    }

    /// Only archives are left of what the pattern met.
    fn add_known_by_name<'a>(&mut self, mut lanes: impl Iterator<Item = &'a str>, pattern: &str, folder: &Path) {
        if self.stems.is_empty()
            && let Ok(stem) = chain_by_name(pattern, folder)
            && !stem.members.is_empty()
            && lanes.any(|lane| lane == stem.lane)
        {
            self.stems.push(stem);
        }
    }

    /// One file that lies under two lanes: both would deliver it. The lanes, or two names in one lane, and the file.
    #[must_use]
    pub fn twice(&self) -> Option<(&str, &str, &str)> {
        if let Some((one, other)) = &self.folder_twice {
            return Some((one, other, "a whole folder"));
        }
        let mut seen: BTreeMap<(u64, &str), (&str, &str)> = BTreeMap::new();
        for stem in &self.stems {
            for member in &stem.members {
                let known = seen.insert((member.device, &member.identity), (&stem.lane, &member.name));
                if let Some((lane, name)) = known {
                    let in_one = lane == stem.lane;
                    return Some(if in_one { (name, &member.name, name) } else { (lane, &stem.lane, name) });
                }
            }
        }
        None
    }
}

/// The files of stems, by name in the folder and lane, that a pattern does not meet now. Where none is left but an archive of the
/// stem's own name, that may be what its file became.
fn files_left(
    folder: &Path,
    names: &BTreeMap<String, String>,
    pattern: &str,
    rule: RotationRule,
) -> std::io::Result<BTreeMap<String, Vec<Member>>> {
    let mut groups = group_by_stem(folder, &names.keys().cloned().collect(), rule)?;
    if rule == RotationRule::Replaced {
        return Ok(groups);
    }
    let bare = |name: &String, lane: &String| {
        groups.get(name).is_none_or(Vec::is_empty) && !finds_archives_of(pattern, lane, rule)
    };
    let without: BTreeSet<String> =
        names.iter().filter(|(name, lane)| bare(name, lane)).map(|(name, _)| name.clone()).collect();
    if !without.is_empty() {
        groups.extend(own_archives_by_stem(folder, &without)?);
    }
    Ok(groups)
}

/// Whether a pattern finds archives of a lane's own name: they are lanes themselves then.
#[must_use]
pub fn finds_archives_of(pattern: &str, lane: &str, rule: RotationRule) -> bool {
    PACKED_ENDINGS.iter().any(|ending| meets(pattern, &format!("{lane}{ending}"), rule))
}

/// The files of the chain of a single path, oldest first, as people call them; none if its folder cannot be read.
#[must_use]
pub fn chain_names(path: &Path, rule: RotationRule) -> Vec<String> {
    let listing = Stem::of(path, rule).and_then(|stem| stem.list(rule)).unwrap_or_default();
    listing.into_iter().map(|member| member.name).collect()
}

/// Whether a pattern would find a file of this lane.
fn meets(pattern: &str, lane: &str, rule: RotationRule) -> bool {
    let Ok(pattern) = glob::Pattern::new(pattern) else { return false };
    let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
    rule.names_of(lane).iter().any(|name| pattern.matches_with(name, options))
}

/// Whether this is a lane that a pattern can have: earlier versions made some of rotated files, which none has now.
#[must_use]
pub fn is_lane_of(pattern: &str, lane: &str, rule: RotationRule) -> bool {
    let name = lane.rsplit('/').next().unwrap_or(lane);
    let numbered = name.rsplit_once('#').is_some_and(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
    !numbered && rule.stem_of(name) == name && meets(pattern, lane, rule)
}

/// Whether one of the files of the chain of a path is compressed; not if they cannot be read.
#[must_use]
pub fn has_archive(path: &Path, rule: RotationRule) -> bool {
    let listing = Stem::of(path, rule).and_then(|stem| stem.list(rule)).unwrap_or_default();
    listing.iter().any(|member| super::is_compressed(&member.path))
}

/// The lane that a file of this name belongs to.
#[must_use]
pub fn lane_of(path: &str) -> &str {
    let name_at = path.rfind('/').map_or(0, |at| at + 1);
    &path[..name_at + stem_name(&path[name_at..]).len()]
}

impl FoundStem {
    /// What tells the file that a new lane begins with from all others.
    #[must_use]
    pub fn first(&self, born: Born, format: &FileFormat) -> Option<FirstSeen> {
        let begins = |member: &&Member| born == Born::Since || self.matched.contains(&member.name);
        let member = self.members.iter().find(begins)?;
        FirstSeen::at(&member.path, &member.name, format)
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The files, oldest first, as people call them.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.members.iter().map(|member| member.name.as_str()).collect()
    }

    /// How the folder shows the files now: if it is the same later, nothing has happened to them.
    #[must_use]
    pub fn signature(&self) -> String {
        let one =
            |member: &Member| format!("{}:{}:{}:{:?}\n", member.name, member.identity, member.length, member.modified);
        self.members.iter().map(one).collect()
    }
}

/// Pure: what a lane that progress knows has before it, as far as the folder tells.
#[must_use]
pub fn prospect(bookmark: &Bookmark, stem: Option<&FoundStem>) -> Prospect {
    let text = &*bookmark.incarnation.text;
    let ended = was_read_to_its_end(text);
    let Some(stem) = stem else { return if ended { Prospect::Gone } else { Prospect::Vanished } };
    let facts = bookmark.facts.as_deref().and_then(|facts| Facts::from_text(facts).ok()).unwrap_or_default();
    let is_current = |member: &Member| {
        text.starts_with(&format!("{},", member.identity)) || facts.copy.as_deref() == Some(&member.identity)
    };
    let unread = |member: &&Member| member.length > 0 && facts.entry(member).is_none();
    let Some(at) = stem.members.iter().position(is_current) else {
        let nothing_new = !stem.members.iter().any(|member| unread(&member));
        return if facts.gone && nothing_new { Prospect::Finished } else { Prospect::Unfinished };
    };
    let current = &stem.members[at];
    let whole = match &facts.archive {
        Some(end) => current.length == end.offset,
        None => current.length == bookmark.position.offset && !super::is_compressed(&current.path),
    };
    let last = current.suffix == Suffix::Live || !stem.members[at + 1..].iter().any(|member| unread(&member));
    // A file that nobody read has come before it: its delivery says so. Archives are told by their content, later.
    let unknown = |member: &Member| !member.packed && facts.entry(member).is_none();
    let late = bookmark.facts.is_some() && stem.members[..at].iter().any(unknown);
    // One that was given up and renamed since is warned of when the lane is opened.
    let behind = &stem.members[at + 1..];
    let given_up = behind.iter().any(|member| matches!(member.suffix, Suffix::Name(_)) && facts.has_given_up(member));
    if ended && whole && last && !late && !given_up { Prospect::Finished } else { Prospect::Unfinished }
}

#[cfg(test)]
#[path = "many_tests.rs"]
mod tests;
