//! Many files as many lanes: which files a pattern finds, and which lane each of them is.
//!
//! Reads: directories, and what progress remembers. Writes: nothing. Invariant: a file is one lane for ever, under
//! whatever name it lies now, told by inode and time of creation; two files are never one lane. So a file that a rotation
//! moved from one name of the pattern to another is not read twice, and its successor is read once.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::incarnation::{Sighted, is_compressed, was_read_to_its_end};

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

/// A file that a pattern has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Its path as a lane is called: relative to the folder where the pattern is.
    pub shown: String,
    /// Where it is.
    pub path: PathBuf,
    /// What the directory says of it.
    pub sighted: Sighted,
}

/// All files that `pattern` finds in `folder`, sorted by path. What cannot be looked at is left out; it may come back.
#[must_use]
pub fn list(pattern: &str, folder: &Path) -> Vec<FoundFile> {
    let whole = Path::new(&glob::Pattern::escape(&folder.to_string_lossy())).join(pattern);
    let Ok(paths) = glob::glob(&whole.to_string_lossy()) else { return Vec::new() };
    let mut found: Vec<FoundFile> = paths
        .filter_map(Result::ok)
        .filter_map(|path| {
            let sighted = Sighted::at(&path).ok().flatten()?;
            let shown = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            Some(FoundFile { shown, path, sighted })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// A lane that progress knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLane {
    /// Its name.
    pub name: String,
    /// The text of the incarnation that its bookmark is of.
    pub incarnation: String,
    /// How far it was read.
    pub offset: u64,
}

/// What a lane of many has before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prospect {
    /// Nothing was read of it yet.
    New,
    /// There is more, or may be.
    Unfinished,
    /// It was read to its end, and has not grown.
    Finished,
    /// The file is gone; it was read to its end before.
    Gone,
    /// The file is gone, and nobody knows that it was read to its end.
    Vanished,
}

/// One file as a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledLane {
    /// The lane's name.
    pub name: String,
    /// Where the file is, or was.
    pub path: PathBuf,
    /// What it has before it.
    pub prospect: Prospect,
    /// What the directory says of it; none if it is gone.
    pub sighted: Option<Sighted>,
}

/// Gives each file its lane: the one that it had before, else one under its path. A path whose name another file has
/// taken before goes by `path#2`, `path#3`.
#[must_use]
pub fn roll(known: &[KnownLane], found: &[FoundFile], folder: &Path) -> Vec<RolledLane> {
    let by_identity: HashMap<&str, usize> =
        known.iter().enumerate().map(|(at, lane)| (identity_in(&lane.incarnation), at)).collect();
    let mut names: HashSet<String> = known.iter().map(|lane| lane.name.clone()).collect();
    let (mut seen, mut matched) = (HashSet::new(), HashSet::new());
    let mut rolled = Vec::with_capacity(found.len());
    for file in found.iter().filter(|file| seen.insert(file.sighted.identity().to_owned())) {
        let (path, sighted) = (file.path.clone(), Some(file.sighted.clone()));
        rolled.push(match by_identity.get(file.sighted.identity()) {
            Some(at) => {
                matched.insert(*at);
                let lane = &known[*at];
                let done = was_read_to_its_end(&lane.incarnation)
                    && (lane.offset == file.sighted.length || is_compressed(&file.path));
                let prospect = if done { Prospect::Finished } else { Prospect::Unfinished };
                RolledLane { name: lane.name.clone(), path, prospect, sighted }
            }
            None => {
                let mut fresh = (2..).map(|n| format!("{}#{n}", file.shown));
                let name = std::iter::once(file.shown.clone()).chain(&mut fresh).find(|name| !names.contains(name));
                let name = name.unwrap_or_default();
                names.insert(name.clone());
                RolledLane { name, path, prospect: Prospect::New, sighted }
            }
        });
    }
    for (_, lane) in known.iter().enumerate().filter(|(at, _)| !matched.contains(at)) {
        let prospect = if was_read_to_its_end(&lane.incarnation) { Prospect::Gone } else { Prospect::Vanished };
        let path = folder.join(base_name(&lane.name));
        rolled.push(RolledLane { name: lane.name.clone(), path, prospect, sighted: None });
    }
    rolled
}

/// A lane's name without the number that tells files of one path apart: those are read one after the other.
#[must_use]
pub fn base_name(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((base, number)) if !base.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => base,
        Some(_) | None => name,
    }
}

/// What tells the file of an incarnation from all others.
fn identity_in(incarnation: &str) -> &str {
    let end = incarnation.find(", first ").or_else(|| incarnation.find(", no record yet"));
    &incarnation[..end.unwrap_or(incarnation.len())]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn known(name: &str, file: &FoundFile, offset: u64, end: &str) -> KnownLane {
        let incarnation = format!("{}, first 9 bytes 0123456789abcdef{end}", file.sighted.identity());
        KnownLane { name: name.into(), incarnation, offset }
    }

    fn names(rolled: &[RolledLane]) -> Vec<(&str, Prospect)> {
        rolled.iter().map(|lane| (lane.name.as_str(), lane.prospect)).collect()
    }

    /// Goal: a rotation inside a pattern reads every file once. Method: two rotations, with what progress knows.
    #[test]
    fn a_file_keeps_its_lane_under_whatever_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("app.log"), "a\n").expect("written");
        let first = list("app.log*", folder.path());
        assert_eq!(names(&roll(&[], &first, folder.path())), [("app.log", Prospect::New)]);
        let a = known("app.log", &first[0], 2, ", read to its end");

        fs::rename(at("app.log"), at("app.log.1")).expect("moved");
        fs::write(at("app.log"), "b\nb\n").expect("written");
        let second = list("app.log*", folder.path());
        let rolled = roll(std::slice::from_ref(&a), &second, folder.path());
        assert_eq!(names(&rolled), [("app.log#2", Prospect::New), ("app.log", Prospect::Finished)]);
        assert_eq!(rolled[1].path, at("app.log.1"));
        let b = known("app.log#2", &second[0], 2, "");

        fs::rename(at("app.log.1"), at("app.log.2")).expect("moved");
        fs::rename(at("app.log"), at("app.log.1")).expect("moved");
        fs::write(at("app.log"), "c\n").expect("written");
        let rolled = roll(&[a.clone(), b.clone()], &list("app.log*", folder.path()), folder.path());
        let expected =
            [("app.log#3", Prospect::New), ("app.log#2", Prospect::Unfinished), ("app.log", Prospect::Finished)];
        assert_eq!(names(&rolled), expected);

        fs::write(at("app.log.2"), "a\nlate\n").expect("in place");
        assert_eq!(
            roll(std::slice::from_ref(&a), &list("*.2", folder.path()), folder.path())[0].prospect,
            Prospect::Unfinished
        );
        let gone = roll(&[a, b], &[], folder.path());
        assert_eq!(names(&gone), [("app.log", Prospect::Gone), ("app.log#2", Prospect::Vanished)]);
        assert_eq!(gone[1].path, at("app.log"));
    }

    /// Goal: patterns find files, in order, also below folders, and a link to a file is the same file. Method: a tree.
    #[test]
    fn patterns_find_files_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("in/deep.csv")).expect("folders");
        for name in ["in/b.csv", "in/a.csv", "in/deep.csv/c.csv", "in/x.txt"] {
            fs::write(folder.path().join(name), "x\n").expect("written");
        }
        fs::hard_link(folder.path().join("in/a.csv"), folder.path().join("in/z.csv")).expect("a link");
        let shown = |pattern: &str| list(pattern, folder.path()).into_iter().map(|file| file.shown).collect::<Vec<_>>();
        assert_eq!(shown("in/*.csv"), ["in/a.csv", "in/b.csv", "in/z.csv"]);
        assert_eq!(shown("**/*.csv"), ["in/a.csv", "in/b.csv", "in/deep.csv/c.csv", "in/z.csv"]);
        let rolled = roll(&[], &list("in/*.csv", folder.path()), folder.path());
        assert_eq!(names(&rolled).len(), 2, "a link is no other file");
        assert!(check_pattern("in/[a").is_err() && check_pattern("in/**/x").is_ok());
        assert!(is_pattern("a*") && !is_pattern("orders-1.csv"));
        assert_eq!(["a#2", "a#x", "#1", "a"].map(base_name), ["a", "a#x", "#1", "a"]);
    }
}
