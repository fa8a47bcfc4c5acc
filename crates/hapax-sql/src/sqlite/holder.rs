//! Who holds the lock of a database, as the operating system tells it.
//!
//! Reads `/proc/locks`; only looks at files' metadata, because opening and closing a database file by ourselves would
//! drop the locks that SQLite holds in this process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::process;

/// In a write-ahead-log database the writer locks this byte of the `-shm` file.
const WRITER_BYTE: u64 = 120;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Shared,
    Exclusive,
    Writer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lock {
    strength: Strength,
    pid: u32,
}

/// Which process holds the lock of the database at `path`, for people: `pid 4711 (hapax)`.
///
/// A writer is named before other holders. None if nobody holds a lock, or the system does not tell.
#[must_use]
pub fn holder(path: &Path) -> Option<String> {
    let own = std::process::id();
    let mut locks = locks(path)?;
    // The strongest first; among equals another process first, since we are the one who waits.
    locks.sort_by_key(|lock| (std::cmp::Reverse(lock.strength), lock.pid == own));
    let found = locks.into_iter().find(|lock| lock.strength > Strength::Shared || lock.pid != own)?;
    Some(describe(found.pid, own))
}

/// Which other process is writing to the database at `path`, in the words of [`holder`]. Readers are none.
#[must_use]
pub fn writer(path: &Path) -> Option<String> {
    let own = std::process::id();
    let found = locks(path)?.into_iter().find(|lock| lock.strength == Strength::Writer && lock.pid != own)?;
    Some(describe(found.pid, own))
}

fn locks(path: &Path) -> Option<Vec<Lock>> {
    let text = fs::read_to_string("/proc/locks").ok()?;
    let main = fs::metadata(path).ok()?;
    let shared = fs::metadata(beside(path, "-shm")).ok();
    let files = Files { main: main.ino(), shared: shared.map(|found| found.ino()), device: main.dev() };
    Some(text.lines().filter_map(|line| parse(line, &files)).collect())
}

struct Files {
    main: u64,
    shared: Option<u64>,
    device: u64,
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// One line such as `5: POSIX  ADVISORY  WRITE 4711 fe:01:5242 120 120`; a waiting one has `->` after the number.
fn parse(line: &str, files: &Files) -> Option<Lock> {
    let mut words = line.split_whitespace().skip(1);
    if words.next()? != "POSIX" {
        return None;
    }
    let _advisory = words.next()?;
    let exclusive = words.next()? == "WRITE";
    let pid = words.next()?.parse().ok().filter(|pid| *pid != 0)?;
    let mut file = words.next()?.split(':');
    let (major, minor) = (u32::from_str_radix(file.next()?, 16).ok()?, u32::from_str_radix(file.next()?, 16).ok()?);
    let inode: u64 = file.next()?.parse().ok()?;
    let from: u64 = words.next()?.parse().ok()?;
    let to = words.next()?.parse().unwrap_or(u64::MAX);
    let is_shared_file = files.shared == Some(inode);
    // An overlay shows another device than the file below it has: a stacked one has no major number of its own.
    let device = rustix::fs::makedev(major, minor);
    let same_device = device == files.device || rustix::fs::major(files.device) == 0 || major == 0;
    if !(same_device && (is_shared_file || inode == files.main)) {
        return None;
    }
    let strength = match exclusive {
        true if is_shared_file && (from..=to).contains(&WRITER_BYTE) => Strength::Writer,
        true => Strength::Exclusive,
        false => Strength::Shared,
    };
    Some(Lock { strength, pid })
}

fn describe(pid: u32, own: u32) -> String {
    let stat = process::stat(pid);
    let name = stat.as_ref().map(|stat| format!(" ({})", stat.name)).unwrap_or_default();
    let stopped = match stat {
        Some(stat) if stat.state == 'T' => ", which is stopped: continue it with kill -CONT, or end it",
        Some(_) | None => "",
    };
    let ours = if pid == own { ", this process" } else { "" };
    format!("pid {pid}{name}{ours}{stopped}")
}

#[cfg(test)]
#[path = "holder_tests.rs"]
mod tests;
