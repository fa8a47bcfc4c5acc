//! An open file, and which incarnation of its path it is: inode, time of creation, hash of the first record.
//!
//! Reads: the file's metadata and its first 64 KiB. Writes: nothing.
//! Invariant: what is said of an append-only file stays true of it; a bookmark made before the first record was
//! complete, by inode and creation alone, still belongs to it afterwards.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use hapax_model::fault::{Bug, planted};
use hapax_model::position::Bookmark;
use memchr::{memchr_iter, memrchr};
use sha2::{Digest as _, Sha256};

use super::lines::is_blank;

/// A first record that is longer is known by its beginning.
const HEAD_BYTES: usize = 64 * 1024;

/// What a file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) text: String,
    pub(super) record: FirstRecord,
}

/// Whether the first record is part of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstRecord {
    Known,
    NotYet,
}

/// Whether a position can be gone on from in a file that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// A line begins here.
    LineStart,
    /// The line before was delivered without its newline, and has not grown since.
    AfterUnterminated,
    /// The line before goes on: it was delivered before it was complete.
    InsideLine,
    /// The file ends before the position.
    Short { length: u64 },
}

/// A file that is open for reading.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    inode: u64,
    device: u64,
    identity: String,
    /// When it was created, or at least last written to: orders the files of one rotation.
    pub(super) age: SystemTime,
}

impl Opened {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Looked at before it is opened: opening a pipe would wait for a writer.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let identity = identity(&metadata);
        let age = metadata.created().or_else(|_| metadata.modified())?;
        Ok(Self { file, inode: metadata.ino(), device: metadata.dev(), identity, age })
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        let file = self.file.try_clone()?;
        Ok(Self { file, inode: self.inode, device: self.device, identity: self.identity.clone(), age: self.age })
    }

    pub(super) const fn inode(&self) -> u64 {
        self.inode
    }

    pub(super) fn is(&self, metadata: &Metadata) -> bool {
        (self.inode, self.device) == (metadata.ino(), metadata.dev())
    }

    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// What the file says of itself to a reader that has come to `position`.
    pub(super) fn describe(&self, position: u64) -> io::Result<Description> {
        let head = self.head()?;
        Ok(match first_record_end(&head) {
            Some(end) => Description { text: self.text(&head[..end]), record: FirstRecord::Known },
            None => Description { text: self.text(read_part(&head, position)), record: FirstRecord::NotYet },
        })
    }

    /// Whether `bookmark` was made in this file.
    pub(super) fn belongs(&self, bookmark: &Bookmark) -> io::Result<bool> {
        if planted(Bug::PositionWithoutIncarnation) {
            return Ok(true);
        }
        let head = self.head()?;
        let known: [&[u8]; 3] = [
            first_record_end(&head).map_or(&[], |end| &head[..end]),
            read_part(&head, bookmark.position.offset), // as it was when the first record was not complete yet
            &[],                                        // as it was when nothing had been read
        ];
        Ok(known.iter().any(|part| *bookmark.incarnation.text == *self.text(part)))
    }

    /// Whether `bookmark` was made in a file of the same inode and creation, whatever that contains now.
    pub(super) fn was(&self, bookmark: &Bookmark) -> bool {
        bookmark.incarnation.text.strip_prefix(&*self.identity).is_some_and(|rest| rest.starts_with(','))
    }

    /// Whether reading can go on at `position`.
    pub(super) fn fit(&self, position: u64) -> io::Result<Fit> {
        let length = self.length()?;
        if length < position {
            return Ok(Fit::Short { length });
        }
        let Some(before) = position.checked_sub(1) else { return Ok(Fit::LineStart) };
        let mut around = [0; 3];
        let read = read_fully(&self.file, &mut around, before)?;
        Ok(match &around[..read] {
            [b'\n', ..] => Fit::LineStart,
            [_] | [_, b'\n', ..] | [_, b'\r'] | [_, b'\r', b'\n'] => Fit::AfterUnterminated,
            _ if planted(Bug::PositionWithoutIncarnation) => Fit::LineStart,
            _ => Fit::InsideLine,
        })
    }

    /// Where the last line begins that may still grow: just past the last newline.
    pub(super) fn last_line_start(&self) -> io::Result<u64> {
        let mut block = vec![0; HEAD_BYTES];
        let mut end = self.length()?;
        while end > 0 {
            let start = end.saturating_sub(HEAD_BYTES as u64);
            let read = read_fully(&self.file, &mut block[..usize::try_from(end - start).unwrap_or(HEAD_BYTES)], start)?;
            if let Some(at) = memrchr(b'\n', &block[..read]) {
                return Ok(start + at as u64 + 1);
            }
            end = start;
        }
        Ok(0)
    }

    fn head(&self) -> io::Result<Vec<u8>> {
        let mut head = vec![0; HEAD_BYTES];
        let read = read_fully(&self.file, &mut head, 0)?;
        head.truncate(read);
        Ok(head)
    }

    fn text(&self, first: &[u8]) -> String {
        if first.is_empty() {
            return format!("{}, no record yet", self.identity);
        }
        let hash = HEXLOWER.encode(&Sha256::digest(first)[..8]);
        format!("{}, first {} bytes {hash}", self.identity, first.len())
    }
}

/// What names a file before it has content. The creation is in it because ext4 gives the inode of a deleted file to the
/// next one, and two files may begin with one line. File systems without creation times have the inode alone.
fn identity(metadata: &Metadata) -> String {
    let created = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    match created {
        Some(time) => format!("inode {}, created {}.{:09}", metadata.ino(), time.as_secs(), time.subsec_nanos()),
        None => format!("inode {}", metadata.ino()),
    }
}

/// Whether `text` may describe a file of this inode: spares a directory search from opening every file.
pub(super) fn may_be_inode(text: &str, inode: u64) -> bool {
    text.starts_with(&format!("inode {inode},"))
}

/// The end of the first line that is not blank, once it is known.
fn first_record_end(head: &[u8]) -> Option<usize> {
    let mut start = 0;
    for newline in memchr_iter(b'\n', head) {
        if !is_blank(&head[start..newline]) {
            return Some(newline + 1);
        }
        start = newline + 1;
    }
    (head.len() == HEAD_BYTES).then_some(HEAD_BYTES)
}

fn read_part(head: &[u8], position: u64) -> &[u8] {
    &head[..head.len().min(usize::try_from(position).unwrap_or(usize::MAX))]
}

/// Fills `into` from `offset` on, or as much of it as the file has.
fn read_fully(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(&mut into[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
