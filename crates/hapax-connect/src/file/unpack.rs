//! A gzip or zstd file as a stream of unpacked bytes, several members or frames as one.
//!
//! Reads: the file, from its beginning on. Writes: nothing. Invariant: an archive that ends before it is complete is
//! never taken for its end; what came before is given first. Memory is bounded by what the formats allow (128 MiB).

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use memchr::memchr_iter;

use super::facts::TailHash;
use super::feed::{Fed, Packing, Unreadable, read_once};
use super::incarnation::hash;
use super::lines::TAIL_BYTES;

/// The code of an archive that is cut off or damaged.
const BROKEN: &str = "HX3010";
/// How much one call unpacks on its way to an offset.
const STEP: u64 = 8 * 1024 * 1024;
/// How much of that is unpacked in one go.
const PASSED_AT_ONCE: usize = 64 * 1024;
/// How often a long way is spoken of.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// A file on its way out of its archive.
pub(super) struct Unpacking {
    file: File,
    packing: Packing,
    reader: Option<Box<dyn Read + Send + Sync>>,
    /// How many bytes were unpacked.
    at: u64,
    lines: u64,
    /// What was unpacked last, and before that.
    last: Option<u8>,
    before: Option<u8>,
    /// How far the archive's own bytes were read, and the last of them.
    own: Arc<Mutex<OwnBytes>>,
    /// Room for what is unpacked on the way to an offset.
    passed: Vec<u8>,
    /// Where the file ended when the archive was not complete, and since when.
    cut: Option<(u64, Instant)>,
    said: Instant,
    /// How long it may stand still before it counts as cut off: it may just be written.
    patience: Duration,
}

impl fmt::Debug for Unpacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacking").field("packing", &self.packing).field("at", &self.at).finish_non_exhaustive()
    }
}

/// How far a file was read, and the last bytes before that.
#[derive(Debug, Default)]
struct OwnBytes {
    at: u64,
    last: Vec<u8>,
}

/// A file read from its beginning, with a place of its own.
struct FromStart {
    file: File,
    own: Arc<Mutex<OwnBytes>>,
}

impl Read for FromStart {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let read = read_once(&self.file, into, own.at)?;
        own.at += read as u64;
        own.last.extend_from_slice(&into[read.saturating_sub(TAIL_BYTES)..read]);
        let surplus = own.last.len().saturating_sub(TAIL_BYTES);
        own.last.drain(..surplus);
        Ok(read)
    }
}

impl Unpacking {
    pub(super) fn new(file: File, packing: Packing, patience: Duration) -> Self {
        Self {
            file,
            packing,
            reader: None,
            at: 0,
            lines: 0,
            last: None,
            before: None,
            own: Arc::default(),
            passed: Vec::new(),
            cut: None,
            said: Instant::now(),
            patience,
        }
    }

    pub(super) const fn packing(&self) -> Packing {
        self.packing
    }

    /// How many line ends were unpacked so far.
    pub(super) const fn lines_passed(&self) -> u64 {
        self.lines
    }

    /// What lies before the bytes that were last given; none at the beginning.
    pub(super) const fn byte_before(&self) -> Option<u8> {
        self.before
    }

    /// How far the archive's own bytes were read, and the hash of the last of them: what it ended with, once its end was given.
    pub(super) fn own_end(&self) -> TailHash {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        TailHash { offset: own.at, hash: hash(&own.last) }
    }

    pub(super) fn read_at(&mut self, into: &mut [u8], offset: u64) -> io::Result<Fed> {
        if let Some((length, since)) = self.cut {
            let same = self.file.metadata()?.len() == length;
            if same && since.elapsed() < self.patience {
                return Ok(Fed::Later);
            }
            if same {
                let stood = self.patience.as_secs();
                return Err(self.broken(&format!("it is cut off, and has not grown for {stood} s")));
            }
        }
        if offset < self.at || self.reader.is_none() {
            self.begin()?;
        }
        let stop = self.at + STEP;
        while self.at < offset {
            if self.at >= stop {
                self.say(offset);
                return Ok(Fed::NotYet);
            }
            // Not into what the caller gave: that may be a single byte.
            let mut passed = std::mem::take(&mut self.passed);
            passed.resize(PASSED_AT_ONCE, 0);
            let most = usize::try_from(offset - self.at).unwrap_or(usize::MAX).min(passed.len());
            let fed = self.unpack(&mut passed[..most]);
            self.passed = passed;
            match fed? {
                Fed::Bytes(_) => {}
                // The archive held more when the position was taken.
                Fed::End => return Err(self.broken("it ends before the position that was delivered")),
                fed @ (Fed::NotYet | Fed::Later) => return Ok(fed),
            }
        }
        self.unpack(into)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.own = Arc::default();
        let from = FromStart { file: self.file.try_clone()?, own: Arc::clone(&self.own) };
        self.reader = Some(match self.packing {
            Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(from)?),
            Packing::Gzip | Packing::None => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(from))),
        });
        (self.at, self.lines, self.last, self.before) = (0, 0, None, None);
        Ok(())
    }

    fn unpack(&mut self, into: &mut [u8]) -> io::Result<Fed> {
        let Some(reader) = &mut self.reader else { return Ok(Fed::End) };
        let read = loop {
            match reader.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                answer => break answer,
            }
        };
        match read {
            Ok(0) => Ok(Fed::End),
            Ok(read) => {
                self.at += read as u64;
                (self.before, self.last) = (self.last, into[..read].last().copied());
                self.lines += memchr_iter(b'\n', &into[..read]).count() as u64;
                self.cut = None;
                Ok(Fed::Bytes(read))
            }
            // The disk's own trouble may pass.
            Err(error) if error.raw_os_error().is_some() => Err(error),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.reader = None;
                self.cut = Some((self.file.metadata()?.len(), Instant::now()));
                Ok(Fed::Later)
            }
            Err(error) => {
                self.reader = None;
                Err(self.broken(&format!("it is damaged ({error})")))
            }
        }
    }

    fn broken(&self, why: &str) -> io::Error {
        let what = format!("the {} archive cannot be unpacked behind byte {}: {why}", self.packing.name(), self.at);
        Unreadable::error(BROKEN, what)
    }

    fn say(&mut self, offset: u64) {
        if self.said.elapsed() >= SAY_EVERY {
            self.said = Instant::now();
            tracing::info!(at = self.at, to = offset, "unpacking up to the position that was delivered");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Gives as many zeros as there is room for, and counts how often it is asked.
    struct Zeros(Arc<AtomicU64>);

    impl Read for Zeros {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.fetch_add(1, Ordering::SeqCst);
            into.fill(0);
            Ok(into.len())
        }
    }

    /// Goal: the way to a position costs as little for one byte as for many. Method: a single byte behind a megabyte.
    #[test]
    fn the_way_to_one_byte_is_unpacked_in_large_steps() {
        let asked = Arc::new(AtomicU64::new(0));
        let file = tempfile::tempfile().expect("a file");
        let mut unpacking = Unpacking::new(file, Packing::Gzip, Duration::ZERO);
        unpacking.reader = Some(Box::new(Zeros(Arc::clone(&asked))));
        assert!(matches!(unpacking.read_at(&mut [0], 1_000_000), Ok(Fed::Bytes(1))));
        assert_eq!(unpacking.at, 1_000_001);
        let asked = asked.load(Ordering::SeqCst);
        assert!(asked <= 1_000_000 / PASSED_AT_ONCE as u64 + 2, "asked {asked} times");
    }

    /// Goal: a long way to a position is spoken of every five seconds. Method: a step before and after they have passed.
    #[test]
    fn the_way_to_a_position_is_spoken_of_every_five_seconds() {
        let mut unpacking = Unpacking::new(tempfile::tempfile().expect("a file"), Packing::Gzip, Duration::ZERO);
        unpacking.reader = Some(Box::new(Zeros(Arc::default())));
        let ago = |ms| Instant::now().checked_sub(Duration::from_millis(ms)).expect("the machine runs for longer");
        // A machine that is busy for long may pause here, but never goes back in time.
        unpacking.said = ago(0);
        let before = unpacking.said;
        unpacking.say(STEP);
        assert!(unpacking.said == before || before.elapsed() >= Duration::from_secs(5), "too soon");
        let long_ago = ago(5_000);
        unpacking.said = long_ago;
        assert!(matches!(unpacking.read_at(&mut [0], 2 * STEP), Ok(Fed::NotYet)));
        assert!(unpacking.said > long_ago, "five seconds have passed");
    }
}
