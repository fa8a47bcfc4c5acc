//! The end of an archive, and the places in it where lines begin.
//!
//! Reads: the archive, unpacked. Writes: nothing. Invariant: an archive was read to its end only as far as it had bytes when that end
//! was met; a line that was delivered without its newline is never gone on with by a member that comes later.

use std::io;

use hapax_engine::batch::Inputs;
use hapax_engine::source::{Follow, Polled, SourceError};
use memchr::memrchr;

use super::called::unavailable;
use super::chain::RotationRule;
use super::feed::{Fed, Feed, Packing, Unreadable};
use super::incarnation::{Fit, Opened, fit_between, unpacked_range};
use super::reading::{Rules, Step};
use super::source::{FileSource, WAIT, look};

impl Opened {
    /// How a position fits into what an archive holds, or into a plain file. Of an archive that is not complete up to there reading
    /// tells.
    pub(super) fn fit_unpacked(&self, position: u64) -> io::Result<Fit> {
        let Some(before) =
            position.checked_sub(1).filter(|_| matches!(self.packing(), Ok(packing) if packing != Packing::None))
        else {
            return self.fit(position);
        };
        match unpacked_range(&mut Feed::new(self.file.try_clone()?), before, 3)? {
            None => Ok(Fit::LineStart),
            Some(around) if around.is_empty() => Ok(Fit::Short { length: self.unpacked_length()? }),
            Some(around) => Ok(fit_between(&around)),
        }
    }

    /// The offset just past the last newline of what an archive holds.
    pub(super) fn unpacked_last_line_start(&self) -> io::Result<u64> {
        let (mut feed, mut block, mut length) = (Feed::new(self.file.try_clone()?), vec![0; 256 * 1024], 0);
        let mut line_start = 0;
        loop {
            match feed.read_at(&mut block, length)? {
                Fed::Bytes(read) => {
                    if let Some(at) = memrchr(b'\n', &block[..read]) {
                        line_start = length + at as u64 + 1;
                    }
                    length += read as u64;
                }
                Fed::NotYet => {}
                Fed::Later => std::thread::sleep(WAIT),
                Fed::End => return Ok(line_start),
            }
        }
    }
}

impl FileSource {
    /// An archive was read to its end. One with a rotated name is followed by the next of its chain, and one that will be replaced
    /// by what is renamed over it; any other is the end of the lane: what comes to its path later is another file.
    pub(super) fn end_of_archive(&mut self, into: &mut Inputs) -> Result<Step, SourceError> {
        // First of all: a member that has come since may go on with the last line.
        if self.archive_has_grown().map_err(|error| self.unavailable(error))? {
            return Ok(Step::Busy);
        }
        let Self { config, reading, lane, .. } = self;
        let reading = reading.as_mut().expect("`assign` comes before `poll`");
        if reading.wait_for_member() {
            return Ok(Step::Quiet);
        }
        let rules = Rules { format: &config.format, expected: &config.expected, max_line: config.max_line };
        let step = reading.end_once(into, lane, rules).map_err(|error| unavailable(&config.path, error))?;
        if step != Step::Done(Polled::End) {
            return Ok(step);
        }
        self.note_archive_end();
        let Self { config, reading, lane, .. } = self;
        let reading = reading.as_mut().expect("`assign` comes before `poll`");
        let at_path = look(config.live_path()).map_err(|error| unavailable(&config.path, error))?;
        let is_live = at_path.as_ref().is_some_and(|found| reading.opened.is(found));
        if config.rotation.makes_chains() && !is_live {
            return self.find_next();
        }
        if config.rotation == RotationRule::Replaced {
            return self.at_quiet_end(at_path.as_ref(), into);
        }
        if reading.follow == Follow::Yes {
            tracing::info!(lane, "the archive was read to its end; compressed files are read once and not followed");
        }
        reading.mark_end();
        Ok(step)
    }

    /// Whether an archive has become longer since its end was met, as by a second gzip member: then it is unpacked again, and what it
    /// has more is read.
    fn archive_has_grown(&mut self) -> io::Result<bool> {
        let reading = self.reading.as_mut().expect("`assign` comes before `poll`");
        let end = reading.feed.archive_end();
        if end.as_ref().map(|end| end.offset) == Some(reading.opened.length()?) {
            return Ok(false);
        }
        if !reading.opened.has_archive_end(self.facts.archive.as_ref().or(end.as_ref()))? {
            return Err(Unreadable::error("HX3002", "the archive was rewritten in place after it was read".to_owned()));
        }
        reading.feed.begin_again()?;
        reading.half_line_polls = 0;
        Ok(true)
    }

    /// Remembers what an archive that was read to its end ended with: its bytes as they were then.
    fn note_archive_end(&mut self) {
        let reading = self.reading.as_ref().expect("`assign` comes before `poll`");
        let end = reading.feed.archive_end();
        if let Some(end) = end.filter(|end| self.facts.archive.as_ref().is_none_or(|known| known.offset != end.offset))
        {
            self.facts.archive = Some(end);
        }
    }
}
