//! Finds the file that a bookmark was made in, whatever it is called now, and tells whether it is still what it was.
//!
//! Reads: the folder of the lane, the beginning of files, and the bytes before the position. Writes: nothing.
//! Invariant: inode and content must both agree. If only one of them does, or neither, nothing is read from it; a
//! compressed copy of a file that is gone is the same file if its content agrees.

use std::io;
use std::os::unix::fs::DirEntryExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hapax_engine::source::SourceError;
use hapax_model::fault::{Bug, planted};
use hapax_model::position::Bookmark;

use super::chain::{Member, RotationRule, Stem, Suffix, readable_folder, unpacked_name};
use super::copies::{Copied, Older};
use super::facts::{Facts, READ_MAX, ReadMember, first_in};
use super::feed::Packing;
use super::incarnation::{Fit, Opened, may_be_inode, was_read_to_its_end};
use super::lines::Seam;
use super::many::is_lane_of;
use super::reading::{REST_PATIENCE, Reading, Step};
use super::restored::RestoredCopy;
use super::source::FileSource;

/// How long an archive that is not complete may stand still before it counts as cut off.
pub const STANDS_AT_MOST: Duration = Duration::from_secs(60);
/// The same, of a compressed copy.
pub(super) const COPY_PATIENCE: Duration = if cfg!(test) { Duration::from_millis(300) } else { STANDS_AT_MOST };

/// Whether reading can go on from a bookmark, and with what.
#[derive(Debug)]
pub(super) enum Place {
    Found(Opened, Seam),
    /// The file was read to its end and is gone; this one is at its path, and follows.
    Replaced(Opened),
    /// The file is gone, which a person has accepted, and no other that was not read has come yet.
    Resting,
    /// The file is gone, and a copy of it lies there: the same bytes under another inode. A person decides.
    Restored(RestoredCopy),
    Gone(String),
    Other(String),
}

/// A compressed copy that is not complete yet.
#[derive(Debug)]
pub(super) struct GrowingCopy {
    length: u64,
    since: Instant,
}

impl FileSource {
    /// What the bookmark's own facts say; of a place in the file that is being read, what the reader knows; none from a
    /// version that kept none.
    pub(super) fn facts_of(&self, bookmark: &Bookmark) -> Result<Facts, SourceError> {
        let here = |reading: &&Reading| reading.incarnation.number == bookmark.incarnation.number;
        let unsaid = bookmark.facts.is_none() || planted(Bug::IncarnationLearnedAnew);
        if let (true, Some(reading)) = (unsaid, self.reading.as_ref().filter(here)) {
            let stands_there = bookmark.position.offset == reading.lines.offset() && !reading.is_packed();
            let tail = if stands_there { reading.tail_hash() } else { self.facts.tail.clone() };
            return Ok(Facts { tail, ..self.facts.clone() });
        }
        let Some(facts) = bookmark.facts.as_deref() else { return self.facts_from_progress(bookmark) };
        Facts::from_text(facts).map_err(|what| self.gap(&what))
    }

    /// Where the file of `bookmark` is, and whether it is still what it was.
    pub(super) fn place(&mut self, bookmark: &Bookmark) -> Result<Place, SourceError> {
        let facts = self.facts_of(bookmark)?;
        let away = |source: &Self, error| source.unavailable(error);
        if let Some(opened) = self.find_by_identity(bookmark, &facts).map_err(|error| away(self, error))? {
            if planted(Bug::IncarnationLearnedAnew) && self.reading.is_none() {
                return Ok(Place::Found(opened, Seam::LineStart));
            }
            let copied = facts.copy.as_deref() == Some(opened.identity());
            let compared =
                if copied { compare_copy(opened, bookmark, &facts) } else { compare(opened, bookmark, &facts) };
            return compared.map_err(|error| self.unavailable(error));
        }
        match self.find_copy(bookmark, &facts).map_err(|error| away(self, error))? {
            Copied::Found(opened) => {
                let seam = opened.unpacked_seam(bookmark.position.offset).map_err(|error| away(self, error))?;
                return Ok(Place::Found(opened, seam));
            }
            Copied::Growing(member) => return self.wait_for_whole(&member).map(Place::Gone),
            Copied::Several(names) => {
                let what = "the file is gone, and each of these holds what was read of it, so that nobody can say which it became";
                return Ok(Place::Gone(format!("{what}: {}", names.join(", "))));
            }
            Copied::None => {}
        }
        self.not_found(bookmark, &facts)
    }

    /// By inode and creation: the handles that are open come first, since their files may have been deleted.
    fn find_by_identity(&self, bookmark: &Bookmark, facts: &Facts) -> io::Result<Option<Opened>> {
        let wanted = |opened: &Opened| opened.was(bookmark) || facts.copy.as_deref() == Some(opened.identity());
        for opened in self.handles() {
            if wanted(opened) {
                return opened.try_clone().map(Some);
            }
        }
        let text = facts.copy.as_ref().map_or(&*bookmark.incarnation.text, |copy| copy);
        let Ok(stem) = Stem::of(&self.config.path, self.config.rotation) else { return Ok(None) };
        let entries = match std::fs::read_dir(&stem.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if (may_be_inode(text, entry.ino()) || planted(Bug::PositionWithoutIncarnation))
                && let Some(opened) = self.open_if_there(&entry.path())?
                && (wanted(&opened) || (planted(Bug::PositionWithoutIncarnation) && entry.path() == self.config.path))
            {
                return Ok(Some(opened));
            }
        }
        Ok(None)
    }

    /// A copy that is being written is waited for; what is said of one that has stood still for long.
    pub(super) fn wait_for_whole(&mut self, member: &Member) -> Result<String, SourceError> {
        let seen = self.growing.take().filter(|seen| seen.length == member.length);
        let seen = seen.unwrap_or_else(|| GrowingCopy { length: member.length, since: Instant::now() });
        let stands = seen.since.elapsed() >= COPY_PATIENCE;
        self.growing = Some(seen);
        if stands {
            return Ok(format!("{} is cut off, and has not grown for {} s", member.name, COPY_PATIENCE.as_secs()));
        }
        let error = io::Error::other(format!("{} is not complete yet", member.name));
        Err(self.unavailable(error))
    }

    /// The archive that is read is not complete: what it lacks is waited for as long as it grows, and for a while after that.
    pub(super) fn wait_for_rest(&mut self) -> Step {
        if self.reading.as_mut().is_some_and(Reading::is_incomplete_for_long) {
            let (reading, waits_s) = (self.reading(), REST_PATIENCE.as_secs());
            let (file, offset) = (self.path_of(&reading.opened).display().to_string(), reading.lines.offset());
            tracing::warn!(lane = %self.lane, file, offset, "the archive is not complete: waiting for the rest of it, as long \
                as it grows and for {waits_s} s after that");
        }
        Step::Quiet
    }

    /// The file is nowhere: what is there in its place?
    fn not_found(&mut self, bookmark: &Bookmark, facts: &Facts) -> Result<Place, SourceError> {
        if facts.gone {
            return self.after_gone(bookmark, facts);
        }
        let copy = || self.find_restored(bookmark, facts).map_err(|error| self.unavailable(error));
        let opened = match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_one_of_many() => {
                self.same_device(facts).map_err(|error| self.unavailable(error))?;
                if let Some(copy) = copy()? {
                    return Ok(Place::Restored(copy));
                }
                return Ok(Place::Gone(self.how_gone(bookmark, facts)));
            }
            opened => opened.map_err(|error| self.unavailable(error))?,
        };
        self.same_device(facts).map_err(|error| self.unavailable(error))?;
        let ended = was_read_to_its_end(&bookmark.incarnation.text);
        let has_content = opened.length().map_err(|error| self.unavailable(error))? > 0;
        if self.config.rotation == RotationRule::Replaced && ended && has_content {
            return Ok(Place::Replaced(opened));
        }
        if let Some(copy) = copy()? {
            return Ok(Place::Restored(copy));
        }
        let now = opened.describe(0).map_err(|error| self.unavailable(error))?.text;
        Ok(Place::Other(now + &self.may_be_archive(bookmark, facts)))
    }

    /// Which archives a file may have become of which nothing is known that could be compared. None is taken for it: it may have
    /// had a successor that was compressed too, and be gone itself.
    pub(super) fn may_be_archive(&self, bookmark: &Bookmark, facts: &Facts) -> String {
        let listing = Stem::of(&self.config.path, self.config.rotation)
            .and_then(|stem| stem.list(self.config.rotation))
            .unwrap_or_default();
        let unread = listing.iter().filter(|member| member.packed && facts.entry(member).is_none());
        let names: Vec<&str> = unread.map(|member| member.name.as_str()).collect();
        if names.is_empty() || !first_in(&bookmark.incarnation.text).is_empty() {
            return String::new();
        }
        format!(
            "; {} may be what it became, but it was empty whenever it was looked at, so that nothing can be compared",
            names.join(" or ")
        )
    }

    /// Only a folder that is on the same device as before can tell that a file is gone: another may be mounted there.
    pub(super) fn same_device(&self, facts: &Facts) -> io::Result<()> {
        use std::os::unix::fs::MetadataExt as _;
        let stem = Stem::of(&self.config.path, self.config.rotation)?;
        let device = std::fs::metadata(&stem.folder)?.dev();
        match facts.device {
            Some(before) if before != device => {
                Err(io::Error::other("its folder is on another device than before: mount the one it was on"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A file as it was listed; none if it has gone since, or another has its name.
    pub(super) fn open_member(&self, member: &Member) -> io::Result<Option<Opened>> {
        Ok(self.open_if_there(&member.path)?.filter(|opened| opened.identity() == member.identity))
    }

    /// None for what is no file, or has gone since the folder was read.
    pub(super) fn open_if_there(&self, path: &Path) -> io::Result<Option<Opened>> {
        match Opened::open(path, &self.config.format) {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether another lane's bookmark lies in a file of this one's chain. What a file holds says so only if the other lane's own
    /// is gone: it was moved to another disk, or copied. An archive of it may just be made, and its original be about to go.
    pub(super) fn is_of_this_chain(&self, lane: &str, other: &Bookmark) -> Result<bool, SourceError> {
        let theirs = self.facts_of(other)?;
        let packed_from_it = unpacked_name(&self.lane).is_some_and(|name| name == lane);
        let look = || -> io::Result<bool> {
            let stem = Stem::of(&self.config.path, self.config.rotation)?;
            for member in stem.list(self.config.rotation)? {
                if other.incarnation.text.starts_with(&format!("{},", member.identity))
                    || theirs.entry(&member).is_some()
                {
                    return Ok(true);
                }
                let Some(opened) = self.open_member(&member)? else { continue };
                // Of a header alone nothing was delivered, and every file may begin with it.
                let same =
                    opened.holds_what_was_read(other, &theirs)? && other.position.offset > self.header_end(&opened)?;
                // Asked last: it reads the whole folder.
                if same && (packed_from_it || !self.still_has(lane, other, &theirs)?) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        match look() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            answer => answer.map_err(|error| self.unavailable(error)),
        }
    }

    /// Whether the other lane is one of the same pattern, and its bookmark's file lies where it is.
    fn still_has(&self, lane: &str, other: &Bookmark, theirs: &Facts) -> io::Result<bool> {
        let (path, pattern) = (self.config.path.to_string_lossy(), self.config.name.identity.strip_prefix("file:"));
        let (Some(root), Some(pattern)) = (path.strip_suffix(&*self.lane), pattern) else { return Ok(false) };
        let path = format!("{root}{lane}");
        if !self.is_one_of_many() || !is_lane_of(pattern, &path, self.config.rotation) {
            return Ok(false); // the path was changed: nobody reads the other lane any more
        }
        let path = PathBuf::from(path);
        let Some(folder) = path.parent().map(readable_folder) else { return Ok(false) };
        let entries = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let text = theirs.copy.as_ref().map_or(&*other.incarnation.text, |copy| copy);
            if may_be_inode(text, entry.ino())
                && let Some(opened) = self.open_if_there(&entry.path())?
                && (opened.was(other) || theirs.copy.as_deref() == Some(opened.identity()))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Files that were read before are still what they were; else what has changed about which, all of them.
    pub(super) fn changed_after_reading(&self, facts: &Facts) -> io::Result<Option<String>> {
        if !self.config.rotation.makes_chains() || facts.read.is_empty() {
            return Ok(None);
        }
        let listing = self.members(facts)?;
        let mut changes = Vec::new();
        for member in &listing {
            let Some(entry) = facts.entry(member) else { continue };
            changes.extend(self.changed(member, entry)?);
        }
        Ok((!changes.is_empty()).then(|| changes.join("; ")))
    }

    /// A file of the chain that is older than the one that is read, and that nobody has read.
    pub(super) fn unknown_older(&mut self, current: &Opened, facts: &Facts) -> Result<Option<String>, SourceError> {
        if !self.config.rotation.makes_chains() {
            return Ok(None);
        }
        let listing = self.members(facts).map_err(|error| self.unavailable(error))?;
        let Some(at) = listing.iter().position(|member| member.identity == current.identity()) else { return Ok(None) };
        for member in listing[..at].iter().filter(|member| facts.entry(member).is_none()) {
            match self.judge_older(member, current, facts, &listing).map_err(|error| self.unavailable(error))? {
                Older::Read(_) => {}
                Older::Later => return self.wait_for_whole(member).map(Some),
                Older::Unread => return Ok(Some(never_read(member, &listing[at], facts))),
            }
        }
        Ok(None)
    }

    pub(super) fn changed(&self, member: &Member, entry: &ReadMember) -> io::Result<Option<String>> {
        let name = &member.name;
        if member.length != entry.length {
            return Ok(Some(late_lines(name, entry.length, member.length)));
        }
        if entry.first.is_empty() {
            return Ok(None);
        }
        let Some(opened) = self.open_member(member)? else { return Ok(None) };
        let begins = || opened.begins_as(&format!("{}, {}", entry.identity, entry.first));
        let ends = || Ok::<_, io::Error>(entry.tail.is_none() || opened.tail(entry.length)? == entry.tail);
        let same = member.packed || (begins()? && ends()?);
        Ok((!same).then(|| format!("{name} was read, and rewritten in place since: what it holds now was not read")))
    }
}

/// What is said of a line that was delivered too early.
pub(super) fn continued(offset: u64) -> String {
    format!(
        "the line that ends at byte {offset} was delivered without its newline, and now goes on: \
         it was delivered before it was complete"
    )
}

/// What is said of a file that is gone before a reader could open it.
pub(super) fn vanished(bookmark: &Bookmark, now: &str) -> String {
    format!(
        "progress is at byte {bookmark}, but the path now holds {now}, and the old file is not beside it \
         under another name: what it held from that byte on cannot be read"
    )
}

/// What is said of a file that lies where nothing unread can be.
pub(super) fn never_read(older: &Member, current: &Member, facts: &Facts) -> String {
    let forgotten = match facts.is_full() {
        true => format!(
            ", or so long ago that it is not remembered: the last {READ_MAX} files that were read are, move older ones away"
        ),
        false => String::new(),
    };
    let cure = match older.suffix {
        Suffix::Name(_) => format!(
            ". Rename it so that its name comes after {}, and it is read in its turn; `--accept` gives it up for good, under \
             whatever name",
            current.name
        ),
        Suffix::Live | Suffix::Packed | Suffix::Number(_) | Suffix::Date(..) => String::new(),
    };
    format!("{} lies before {} in its chain, and was never read{forgotten}{cure}", older.name, current.name)
}

/// What is said of a file that has another length than when it was left.
pub(super) fn late_lines(name: &str, was: u64, is: u64) -> String {
    if is > was {
        format!(
            "lines were written to {name} behind byte {was} after its successor had been started; they were not read: \
             copy them into the new file"
        )
    } else {
        format!(
            "{name} was read up to byte {was}, and was rewritten since: it ends at {is}, and what it holds now was not read"
        )
    }
}

/// A file that has the inode of the bookmark: is its content what it was?
fn compare(opened: Opened, bookmark: &Bookmark, facts: &Facts) -> io::Result<Place> {
    if let Some(gone) = truncated_before(&opened, bookmark)? {
        return Ok(gone);
    }
    if !opened.belongs(bookmark)? || !opened.has_archive_end(facts.archive.as_ref())? {
        return Ok(Place::Other(format!("{}: it was rewritten in place", opened.describe(0)?.text)));
    }
    compare_place(opened, bookmark, facts)
}

fn truncated_before(opened: &Opened, bookmark: &Bookmark) -> io::Result<Option<Place>> {
    let at = bookmark.position.offset;
    let Fit::Short { length } = opened.fit(at)? else { return Ok(None) };
    let what = format!("bytes {length} to {at}: the file was truncated in place, it ends at {length}");
    Ok(Some(Place::Gone(what)))
}

/// A file that begins as it did: do the bytes still lie before the place that was read up to?
fn compare_place(opened: Opened, bookmark: &Bookmark, facts: &Facts) -> io::Result<Place> {
    let at = bookmark.position.offset;
    if let Some(gone) = truncated_before(&opened, bookmark)? {
        return Ok(gone);
    }
    let fit = opened.fit(at)?;
    if !opened.has_tail(facts.tail.as_ref())? && !planted(Bug::PositionWithoutIncarnation) {
        let (now, upto) = (opened.describe(0)?.text, facts.tail.as_ref().map_or(at, |tail| tail.offset));
        let what = format!("{now}: it was rewritten in place, other bytes lie before byte {upto}");
        return Ok(Place::Other(what));
    }
    Ok(match fit {
        Fit::LineStart => Place::Found(opened, Seam::LineStart),
        Fit::AfterUnterminated => Place::Found(opened, Seam::Unterminated),
        Fit::InsideLine | Fit::Short { .. } => Place::Gone(continued(at)),
    })
}

/// The copy that was read before, compressed or moved here from another disk: is it still what it was?
pub(super) fn compare_copy(opened: Opened, bookmark: &Bookmark, facts: &Facts) -> io::Result<Place> {
    if opened.packing()? == Packing::None {
        if opened.begins_as(&bookmark.incarnation.text)? {
            return compare_place(opened, bookmark, facts);
        }
        return Ok(Place::Other(format!("{}: it was rewritten in place", opened.describe(0)?.text)));
    }
    let text = &bookmark.incarnation.text;
    let begins = opened.begins_as(text)? || opened.unpacks_to(text)? == Some(true);
    if begins && opened.has_archive_end(facts.archive.as_ref())? {
        let seam = opened.unpacked_seam(bookmark.position.offset)?;
        return Ok(Place::Found(opened, seam));
    }
    Ok(Place::Other(format!("{}: the archive holds something else now", opened.describe(0)?.text)))
}
