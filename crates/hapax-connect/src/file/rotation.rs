//! Finds the files that a rotation has moved away: the one that a bookmark was made in, and the one that follows it.
//!
//! Reads: the directory of the path. Writes: nothing.
//! Invariant: a file that was rotated away unread is not skipped when it lies beside its predecessor under a name of
//! the same shape (`orders.jsonl.2`, `orders.jsonl.1`; `orders.jsonl-20261114`, `orders.jsonl-20261115`).

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::DirEntryExt as _;
use std::path::{Path, PathBuf};

use hapax_model::position::Bookmark;

use super::config::FileFormat;
use super::incarnation::{Opened, may_be_inode};

/// The file that `bookmark` was made in, under whatever name it has in the directory of `path` now.
pub(super) fn find(path: &Path, format: &FileFormat, bookmark: &Bookmark) -> io::Result<Option<Opened>> {
    for entry in std::fs::read_dir(directory(path))? {
        let entry = entry?;
        if may_be_inode(&bookmark.incarnation.text, entry.ino())
            && let Some(opened) = open_if_there(&entry.path(), format)?
            && opened.belongs(bookmark)?
        {
            return Ok(Some(opened));
        }
    }
    Ok(None)
}

/// The file that follows `old`: the oldest younger one of its rotation, else the one at `path` if it has content.
/// An empty new file is none yet: its writer may still hold the old one.
pub(super) fn successor(path: &Path, format: &FileFormat, old: &Opened) -> io::Result<Option<Opened>> {
    let mut beside = Vec::new();
    for entry in std::fs::read_dir(directory(path))? {
        let entry = entry?;
        if let Some(shape) = shape_of(&entry.file_name(), path) {
            beside.push((entry.ino(), shape, entry.path()));
        }
    }
    let own_shape = beside.iter().find(|(inode, ..)| *inode == old.inode()).map(|(_, shape, _)| shape.clone());
    let mut between: Option<Opened> = None;
    for (inode, shape, candidate) in &beside {
        if *inode == old.inode() || Some(shape) != own_shape.as_ref() {
            continue;
        }
        let younger = open_if_there(candidate, format)?.filter(|file| file.age > old.age);
        between = between.into_iter().chain(younger).min_by_key(|file| file.age);
    }
    match between {
        Some(file) => Ok(Some(file)),
        None => Ok(open_if_there(path, format)?.filter(|file| file.length().is_ok_and(|length| length > 0))),
    }
}

/// What follows the path's own stem in the name of a rotated file, with its digits made alike: short counts all `#`,
/// longer ones (dates) digit by digit. None for the path itself and for names that begin otherwise.
fn shape_of(name: &OsStr, path: &Path) -> Option<String> {
    let (name, own) = (name.to_str()?, path.file_name()?.to_str()?);
    let stem = own.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(own);
    let rest = name.strip_prefix(stem).filter(|_| name != own)?;
    let mut shape = String::with_capacity(rest.len());
    for run in rest.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
        match run {
            [b'0'..=b'9', ..] if run.len() < 4 => shape.push('#'),
            [b'0'..=b'9', ..] => shape.extend(std::iter::repeat_n('#', run.len())),
            _ => shape.push_str(&String::from_utf8_lossy(run)),
        }
    }
    Some(shape)
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// None for what is no file, or has gone since the directory was read.
fn open_if_there(path: &Path, format: &FileFormat) -> io::Result<Option<Opened>> {
    match Opened::open(path, format) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only files of one rotation are taken for each other. Method: names that rotations make, and neighbours.
    #[test]
    fn names_of_one_rotation_have_one_shape() {
        let shape = |name: &str| shape_of(OsStr::new(name), Path::new("/data/orders.jsonl"));
        assert_eq!(shape("orders.jsonl.1"), shape("orders.jsonl.12"));
        assert_eq!(shape("orders.jsonl-20261114"), shape("orders.jsonl-20261115"));
        assert_eq!(shape("orders-20261114.jsonl"), shape("orders-20261115.jsonl"));
        assert_eq!(shape("orders.jsonl"), None);
        assert_eq!(shape("customers.jsonl.1"), None);
        for other in ["orders.jsonl.bak", "orders.jsonl.2.gz", "orders1.jsonl.1", "orders_eu.jsonl", "orders-1.jsonl"] {
            assert_ne!(shape(other), shape("orders.jsonl.1"), "{other}");
            assert_ne!(shape(other), shape("orders-20261114.jsonl"), "{other}");
        }
    }
}
