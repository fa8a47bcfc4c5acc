//! An open file, and which incarnation of its path it is: inode, time of creation, hash of the first record (of CSV:
//! of header and first record).
//!
//! Reads: the file's metadata and its first 64 KiB. Writes: nothing.
//! Invariant: what is said of an append-only file stays true of it; a bookmark made before the first record was
//! complete, by inode and creation alone, still belongs to it afterwards.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use data_encoding::HEXLOWER;
use hapax_model::fault::{Bug, planted};
use hapax_model::position::Bookmark;
use memchr::{memchr_iter, memrchr};
use sha2::{Digest as _, Sha256};

use super::config::FileFormat;
use super::facts::{Facts, ReadMember, TailHash, first_in};
use super::feed::{Fed, Feed, Packing, Unreadable, read_once};
use super::lines::{Seam, TAIL_BYTES, is_blank};
use super::source::WAIT;

/// A first record that is longer is known by its beginning.
const HEAD_BYTES: usize = 64 * 1024;
/// A packed file is known by so many of its own bytes, once it has them.
const PACKED_BYTES: usize = 256;
/// Smaller archives are unpacked whenever it is asked what they hold.
const UNPACKED_AT_ONCE: u64 = 1024 * 1024;
/// How much of a header is shown.
const HEADER_CHARACTERS: usize = 80;
/// What the description of a file ends with that was read to its end, where each file is a lane of its own.
const READ_TO_ITS_END: &str = ", read to its end";

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

/// How far an archive agrees with the file beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// All that it holds lies in the file too, from its beginning on.
    Whole,
    /// So does what is there of it; it is not complete.
    SoFar,
    /// It holds other bytes, or more.
    Other,
}

/// A file that is open for reading.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) file: File,
    inode: u64,
    device: u64,
    identity: String,
    has_header: bool,
}

impl Opened {
    pub(super) fn open(path: &Path, format: &FileFormat) -> io::Result<Self> {
        // Looked at before it is opened: opening a pipe would wait for a writer.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let identity = identity(&metadata);
        let has_header = format.header_in_file().is_some();
        Ok(Self { file, inode: metadata.ino(), device: metadata.dev(), identity, has_header })
    }

    pub(super) fn try_clone(&self) -> io::Result<Self> {
        let file = self.file.try_clone()?;
        let Self { inode, device, has_header, .. } = *self;
        Ok(Self { file, inode, device, identity: self.identity.clone(), has_header })
    }

    /// Inode and time of creation, in words.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    pub(super) const fn device(&self) -> u64 {
        self.device
    }

    /// The hash of the bytes before `position`; none at the beginning, and inside an archive.
    pub(super) fn tail(&self, position: u64) -> io::Result<Option<String>> {
        if position == 0 || self.packing()? != Packing::None {
            return Ok(None);
        }
        self.hash_before(position).map(Some)
    }

    /// The hash of the file's own bytes before an offset.
    fn hash_before(&self, offset: u64) -> io::Result<String> {
        Ok(hash(&self.bytes_before(offset)?))
    }

    /// The file's own last bytes before an offset.
    pub(super) fn bytes_before(&self, offset: u64) -> io::Result<Vec<u8>> {
        let start = offset.saturating_sub(TAIL_BYTES as u64);
        let mut bytes = vec![0; usize::try_from(offset - start).unwrap_or_default()];
        let read = read_fully(&self.file, &mut bytes, start)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Whether an archive still has what it ended with; it may have grown behind that.
    pub(super) fn has_archive_end(&self, end: Option<&TailHash>) -> io::Result<bool> {
        match end {
            Some(TailHash { offset, hash }) => Ok(self.length()? >= *offset && self.hash_before(*offset)? == *hash),
            None => Ok(true),
        }
    }

    /// The same, with its offset.
    pub(super) fn tail_hash(&self, offset: u64) -> io::Result<Option<TailHash>> {
        Ok(self.tail(offset)?.map(|hash| TailHash { offset, hash }))
    }

    /// Whether the bytes are still there that were read before a place.
    pub(super) fn has_tail(&self, tail: Option<&TailHash>) -> io::Result<bool> {
        match tail {
            Some(TailHash { offset, hash }) => Ok(self.tail(*offset)?.as_ref() == Some(hash)),
            None => Ok(true),
        }
    }

    /// Whether this is an archive of what `bookmark` was made in: it begins with the same record, and holds the same bytes
    /// before the place that was read up to, if anything was. None while the archive is not complete up to there.
    pub(super) fn is_copy(&self, bookmark: &Bookmark, tail: Option<&TailHash>) -> io::Result<Option<bool>> {
        let first = first_in(&bookmark.incarnation.text);
        let (Some(length), true) = (described_length(first), self.packing()? != Packing::None) else {
            return Ok(Some(false)); // nothing is known of it that could be compared
        };
        if tail.is_none() && bookmark.position.offset > 0 {
            return Ok(Some(false));
        }
        let mut feed = Feed::new(self.file.try_clone()?);
        let Some(head) = unpacked_range(&mut feed, 0, length)? else { return Ok(None) };
        if head.len() < length || !self.text(&head).contains(first) {
            return Ok(Some(false));
        }
        let Some(tail) = tail else { return Ok(Some(true)) };
        let start = tail.offset.saturating_sub(TAIL_BYTES as u64);
        let wanted = usize::try_from(tail.offset - start).unwrap_or_default();
        let Some(before) = unpacked_range(&mut feed, start, wanted)? else { return Ok(None) };
        Ok(Some(before.len() == wanted && hash(&before) == tail.hash))
    }

    /// Whether this is an archive that begins as `bookmark` says and reaches as far as its position.
    pub(super) fn is_archive_up_to(&self, bookmark: &Bookmark) -> io::Result<bool> {
        if self.packing()? == Packing::None || self.unpacks_to(&bookmark.incarnation.text)? != Some(true) {
            return Ok(false);
        }
        let Some(last) = bookmark.position.offset.checked_sub(1) else { return Ok(true) };
        let byte = unpacked_range(&mut Feed::new(self.file.try_clone()?), last, 1)?;
        Ok(byte.is_some_and(|byte| byte.len() == 1))
    }

    /// Whether this file holds what `bookmark` was made in under another inode: moved to another disk, or compressed. The
    /// beginning must agree, and what lay before the place that was read up to.
    pub(super) fn holds_what_was_read(&self, bookmark: &Bookmark, facts: &Facts) -> io::Result<bool> {
        let text = &bookmark.incarnation.text;
        if first_in(text).is_empty() {
            return Ok(false); // nothing that could be compared
        }
        match (self.packing()?, &facts.tail, &facts.archive) {
            (Packing::None, Some(tail), _) => Ok(self.begins_as(text)? && self.has_tail(Some(tail))?),
            (Packing::Gzip | Packing::Zstd, Some(tail), _) => Ok(self.is_copy(bookmark, Some(tail))? == Some(true)),
            (Packing::Gzip | Packing::Zstd, None, Some(end)) => {
                // Its own bytes, or those of the file that it was made of.
                Ok(self.has_archive_end(Some(end))? && (self.begins_as(text)? || self.unpacks_to(text)? == Some(true)))
            }
            (_, None, _) => Ok(false),
        }
    }

    /// Whether this archive holds a file that was read to its end, and nothing more; none while it is not complete. Of one that was
    /// passed only the length is known.
    pub(super) fn holds_all_of(&self, read: &ReadMember) -> io::Result<Option<bool>> {
        if self.length()? == 0 {
            return Ok(None);
        }
        if !read.first.is_empty() {
            match self.unpacks_to(&format!("{}, {}", read.identity, read.first))? {
                Some(true) => {}
                other => return Ok(other),
            }
        }
        // This is asked every 30 seconds: a large archive that was made in one piece says its length itself.
        if self.length()? > UNPACKED_AT_ONCE && self.stated_length()? == Some(read.length & u64::from(u32::MAX)) {
            return Ok(Some(true));
        }
        let mut feed = Feed::new(self.file.try_clone()?);
        let start = read.length.saturating_sub(TAIL_BYTES as u64);
        let wanted = usize::try_from(read.length - start).unwrap_or_default();
        let Some(last) = unpacked_range(&mut feed, start, wanted)? else { return Ok(None) };
        if last.len() < wanted || read.tail.as_ref().is_some_and(|tail| *tail != hash(&last)) {
            return Ok(Some(false));
        }
        Ok(unpacked_range(&mut feed, read.length, 1)?.map(|more| more.is_empty()))
    }

    /// How much a gzip archive says that its last member holds, less multiples of 4 GiB.
    fn stated_length(&self) -> io::Result<Option<u64>> {
        let mut stated = [0; 4];
        if self.packing()? != Packing::Gzip {
            return Ok(None);
        }
        let read = read_fully(&self.file, &mut stated, self.length()?.saturating_sub(4))?;
        Ok((read == stated.len()).then(|| u64::from(u32::from_le_bytes(stated))))
    }

    /// Whether this archive holds what `original` begins with, or all of it.
    pub(super) fn is_part_of(&self, original: &Self) -> io::Result<Agreement> {
        let (mut archive, mut beside) = (Feed::new(self.file.try_clone()?), Feed::new(original.file.try_clone()?));
        let (mut block, mut at) = (vec![0; 256 * 1024], 0);
        loop {
            match archive.read_at(&mut block, at) {
                Ok(Fed::Bytes(read)) => match unpacked_range(&mut beside, at, read)? {
                    None => return Ok(Agreement::SoFar),
                    Some(bytes) if bytes == block[..read] => at += read as u64,
                    Some(_) => return Ok(Agreement::Other),
                },
                Ok(Fed::NotYet) => {}
                Ok(Fed::Later) => return Ok(Agreement::SoFar),
                Ok(Fed::End) => return Ok(Agreement::Whole),
                Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Unreadable>()) => {
                    return Ok(Agreement::Other);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether an archive is whole, as far as it can be told: one that is damaged is none that still grows.
    pub(super) fn is_whole(&self) -> io::Result<bool> {
        let (mut feed, mut block, mut at) = (Feed::new(self.file.try_clone()?), vec![0; 256 * 1024], 0);
        loop {
            match feed.read_at(&mut block, at) {
                Ok(Fed::Bytes(read)) => at += read as u64,
                Ok(Fed::NotYet) => {}
                Ok(Fed::Later) => return Ok(false),
                Ok(Fed::End) => return Ok(true),
                Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Unreadable>()) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// How much an archive holds: it must be unpacked to know.
    pub(super) fn unpacked_length(&self) -> io::Result<u64> {
        let (mut feed, mut block, mut length) = (Feed::new(self.file.try_clone()?), vec![0; 256 * 1024], 0);
        loop {
            match feed.read_at(&mut block, length)? {
                Fed::Bytes(read) => length += read as u64,
                Fed::NotYet => {}
                Fed::Later => std::thread::sleep(WAIT),
                Fed::End => return Ok(length),
            }
        }
    }

    /// Whether this archive's content begins as the description says; none while it is not complete up to there.
    pub(super) fn unpacks_to(&self, text: &str) -> io::Result<Option<bool>> {
        let first = first_in(text);
        let Some(length) = described_length(first) else { return Ok(Some(false)) };
        if self.length()? == 0 {
            return Ok(None);
        }
        let head = unpacked_range(&mut Feed::new(self.file.try_clone()?), 0, length)?;
        Ok(head.map(|head| head.len() == length && self.text(&head).contains(first)))
    }

    /// Whether the file begins as the description says, whatever its inode is.
    pub(super) fn begins_as(&self, text: &str) -> io::Result<bool> {
        let first = first_in(text);
        let head = self.head()?;
        Ok(described_length(first)
            .is_some_and(|length| head.len() >= length && self.text(&head[..length]).contains(first)))
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
        Ok(match self.first_record_end(&head) {
            None if is_packed(&head) => {
                // All that there is of it, once something was read.
                let known = if position > 0 { &*head } else { &[] };
                Description { text: self.text(known), record: FirstRecord::NotYet }
            }
            Some(end) => Description { text: self.text(&head[..end]), record: FirstRecord::Known },
            None => Description { text: self.text(read_part(&head, position)), record: FirstRecord::NotYet },
        })
    }

    /// Whether the first record is part of what `text` says of this file: then it is never learned again.
    pub(super) fn settled(&self, text: &str) -> io::Result<FirstRecord> {
        let now = self.describe(0)?;
        let same = *without_end(text) == *now.text;
        Ok(if same { now.record } else { FirstRecord::NotYet })
    }

    /// Whether `bookmark` was made in this file.
    pub(super) fn belongs(&self, bookmark: &Bookmark) -> io::Result<bool> {
        if planted(Bug::PositionWithoutIncarnation) {
            return Ok(true);
        }
        let head = self.head()?;
        let known: [&[u8]; 3] = [
            self.first_record_end(&head).map_or(&[], |end| &head[..end]),
            read_part(&head, bookmark.position.offset), // as it was when the first record was not complete yet
            &[],                                        // as it was when nothing had been read
        ];
        let described = without_end(&bookmark.incarnation.text);
        let known_length = described_length(first_in(described));
        // A small archive is known by what it had when it was read.
        if let (true, Some(length)) = (is_packed(&head), known_length) {
            return Ok(head.get(..length).is_some_and(|first| *described == *self.text(first)));
        }
        // So is a file whose first record came later: of CSV only its header was there.
        let so_far = known_length.and_then(|length| head.get(..length)).unwrap_or_default();
        Ok(known.iter().chain([&so_far]).any(|part| *described == *self.text(part)))
    }

    /// Whether `bookmark` was made in a file of the same inode and creation, whatever that contains now.
    pub(super) fn was(&self, bookmark: &Bookmark) -> bool {
        bookmark.incarnation.text.strip_prefix(&*self.identity).is_some_and(|rest| rest.starts_with(','))
    }

    /// Whether reading can go on at `position`.
    pub(super) fn fit(&self, position: u64) -> io::Result<Fit> {
        if self.packing()? != Packing::None {
            return Ok(Fit::LineStart); // only unpacking it would tell
        }
        let length = self.length()?;
        if length < position {
            return Ok(Fit::Short { length });
        }
        let Some(before) = position.checked_sub(1) else { return Ok(Fit::LineStart) };
        let mut around = [0; 3];
        let read = read_fully(&self.file, &mut around, before)?;
        Ok(match fit_between(&around[..read]) {
            Fit::InsideLine if planted(Bug::PositionWithoutIncarnation) => Fit::LineStart,
            fit @ (Fit::LineStart | Fit::AfterUnterminated | Fit::InsideLine | Fit::Short { .. }) => fit,
        })
    }

    /// What an archive holds before a position that was taken in its original.
    pub(super) fn unpacked_seam(&self, position: u64) -> io::Result<Seam> {
        let Some(before) = position.checked_sub(1) else { return Ok(Seam::LineStart) };
        let mut feed = Feed::new(self.file.try_clone()?);
        let byte = unpacked_range(&mut feed, before, 1)?.unwrap_or_default();
        Ok(if matches!(byte[..], [] | [b'\n']) { Seam::LineStart } else { Seam::Unterminated })
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

    /// How the file is packed; as none while it has no content.
    pub(super) fn packing(&self) -> io::Result<Packing> {
        let mut head = [0; 4];
        let read = read_once(&self.file, &mut head, 0)?;
        Ok(Packing::of(&head[..read]).unwrap_or(Packing::None))
    }

    /// How many line ends lie before `position`, if that is soon told.
    pub(super) fn lines_before(&self, position: u64) -> io::Result<Option<u64>> {
        const MOST: u64 = 256 * 1024 * 1024;
        if position > MOST || self.packing()? != Packing::None {
            return Ok(None);
        }
        let (mut block, mut at, mut lines) = (vec![0; HEAD_BYTES], 0, 0);
        while at < position {
            let most = HEAD_BYTES.min(usize::try_from(position - at).unwrap_or(HEAD_BYTES));
            let read = read_once(&self.file, &mut block[..most], at)?;
            if read == 0 {
                return Ok(None);
            }
            lines += memchr_iter(b'\n', &block[..read]).count() as u64;
            at += read as u64;
        }
        Ok(Some(lines))
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
        let hash = hash(first);
        match self.header_in(first) {
            Some(header) => format!("{}, first {} bytes {hash}, header \"{header}\"", self.identity, first.len()),
            None => format!("{}, first {} bytes {hash}", self.identity, first.len()),
        }
    }

    /// The header line, for people: a file that another has replaced is known by it.
    fn header_in(&self, first: &[u8]) -> Option<String> {
        if !self.has_header || is_packed(first) {
            return None;
        }
        let mut lines = first.split_inclusive(|byte| *byte == b'\n');
        let line = lines.find(|line| !is_blank(line.trim_ascii_end()))?.strip_suffix(b"\n")?;
        let text = String::from_utf8_lossy(line);
        let text = text.trim_start_matches('\u{feff}').trim_end();
        Some(text.chars().take(HEADER_CHARACTERS).collect())
    }

    /// The end of the first line that is not blank, of CSV with a header of the second one; once it is known.
    fn first_record_end(&self, head: &[u8]) -> Option<usize> {
        if is_packed(head) {
            return (head.len() >= PACKED_BYTES).then_some(PACKED_BYTES);
        }
        let (mut start, mut wanted) = (0, if self.has_header { 2 } else { 1 });
        for newline in memchr_iter(b'\n', head) {
            if !is_blank(&head[start..newline]) {
                wanted -= 1;
                if wanted == 0 {
                    return Some(newline + 1);
                }
            }
            start = newline + 1;
        }
        (head.len() == HEAD_BYTES).then_some(HEAD_BYTES)
    }
}

/// Pure: what the byte before a position and up to two behind it say.
pub(super) fn fit_between(around: &[u8]) -> Fit {
    match around {
        [b'\n', ..] => Fit::LineStart,
        [_] | [_, b'\n', ..] | [_, b'\r'] | [_, b'\r', b'\n'] => Fit::AfterUnterminated,
        _ => Fit::InsideLine,
    }
}

fn is_packed(head: &[u8]) -> bool {
    !matches!(Packing::of(head), None | Some(Packing::None))
}

/// The description of a file that was read to its end, or whose rest a person gives up.
#[must_use]
pub fn with_end(text: &str) -> String {
    format!("{}{READ_TO_ITS_END}", without_end(text))
}

/// The description of a file, whether it was read to its end or not.
#[must_use]
pub fn without_end(text: &str) -> &str {
    text.strip_suffix(READ_TO_ITS_END).unwrap_or(text)
}

/// Whether a description says that the file was read to its end.
#[must_use]
pub fn was_read_to_its_end(text: &str) -> bool {
    text.ends_with(READ_TO_ITS_END)
}

/// Whether a file is compressed; not if it cannot be read.
#[must_use]
pub fn is_compressed(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|file| read_once(&file, &mut head, 0)).unwrap_or(0);
    is_packed(&head[..read])
}

/// How many bytes a description's hash is over.
pub(super) fn described_length(first: &str) -> Option<usize> {
    first.strip_prefix("first ")?.split(' ').next()?.parse().ok()
}

/// Bytes of an archive's content; none if it is not complete up to there.
pub(super) fn unpacked_range(feed: &mut Feed, start: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
    let (mut bytes, mut filled) = (vec![0; length], 0);
    while filled < length {
        match feed.read_at(&mut bytes[filled..], start + filled as u64) {
            Ok(Fed::Bytes(read)) => filled += read,
            Ok(Fed::NotYet) => {}
            Ok(Fed::Later) => return Ok(None),
            Ok(Fed::End) => break,
            Err(error) if error.get_ref().is_some_and(|inner| inner.is::<Unreadable>()) => break,
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(Some(bytes))
}

pub(super) fn hash(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes)[..8])
}

/// What names a file before it has content. The creation is in it because ext4 gives the inode of a deleted file to the
/// next one, and two files may begin with one line. File systems without creation times have the inode alone.
pub(super) fn identity(metadata: &Metadata) -> String {
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
