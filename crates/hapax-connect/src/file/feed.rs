//! The bytes of an open file from any offset on, unpacked where it is compressed.
//!
//! Reads: the file. Writes: nothing. Invariant: the same offset always gives the same bytes; the offset counts unpacked
//! bytes, and to come to one a packed file is unpacked from its beginning. Memory does not depend on how much there is.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use super::facts::TailHash;
#[cfg(feature = "compression")]
use super::unpack::Unpacking;

/// How long an archive that is cut off may take to grow, where nobody follows it: it may just be written.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed {
    /// So many bytes, at least one.
    Bytes(usize),
    /// It is on its way to the offset; ask again.
    #[cfg_attr(not(feature = "compression"), expect(dead_code, reason = "only packed files have a way to go"))]
    NotYet,
    /// The archive is cut off, and may still grow; ask later.
    #[cfg_attr(not(feature = "compression"), expect(dead_code, reason = "only archives are cut off"))]
    Later,
    /// There is nothing more.
    End,
}

/// How a file is packed: its content tells, never its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    /// Told by the first bytes of a file; none while they are too few.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [] | [0x1f] | [0x28] | [0x28, 0xb5] | [0x28, 0xb5, 0x2f] => None,
            [_, ..] => Some(Self::None),
        }
    }

    /// What it is called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// What is in a file cannot be read; travels as an I/O error, and is told apart from one.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(super) struct Unreadable {
    pub(super) code: &'static str,
    pub(super) what: String,
}

impl Unreadable {
    pub(super) fn error(code: &'static str, what: String) -> io::Error {
        io::Error::other(Self { code, what })
    }
}

/// The bytes of a file.
#[derive(Debug)]
pub(super) struct Feed {
    file: File,
    way: Way,
    patience: Duration,
}

#[derive(Debug)]
enum Way {
    /// Nothing was read yet that could tell.
    Undecided,
    Plain,
    #[cfg(feature = "compression")]
    Packed(Box<Unpacking>),
}

impl Feed {
    pub(super) const fn new(file: File) -> Self {
        Self { file, way: Way::Undecided, patience: SHORT_PATIENCE }
    }

    /// The same, with so much patience for an archive that is not complete.
    pub(super) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The same from its beginning on, where it has become longer since: it stays packed as it was.
    pub(super) fn begin_again(&mut self) -> io::Result<()> {
        self.way = match self.packing() {
            Packing::None => Way::Undecided,
            packing @ (Packing::Gzip | Packing::Zstd) => packed(&self.file, packing, self.patience)?,
        };
        Ok(())
    }

    /// How the file is packed, as far as it is known.
    pub(super) const fn packing(&self) -> Packing {
        match &self.way {
            Way::Undecided | Way::Plain => Packing::None,
            #[cfg(feature = "compression")]
            Way::Packed(unpacking) => unpacking.packing(),
        }
    }

    /// What an archive that was read to its end ended with, in its own bytes as they were then.
    pub(super) fn archive_end(&self) -> Option<TailHash> {
        match &self.way {
            Way::Undecided | Way::Plain => None,
            #[cfg(feature = "compression")]
            Way::Packed(unpacking) => Some(unpacking.own_end()),
        }
    }

    /// How many line ends lie before the offset that was last read, where that is known.
    pub(super) const fn lines_passed(&self) -> Option<u64> {
        match &self.way {
            Way::Undecided | Way::Plain => None,
            #[cfg(feature = "compression")]
            Way::Packed(unpacking) => Some(unpacking.lines_passed()),
        }
    }

    /// What lies before the bytes that were last read, in an archive; none at its beginning.
    pub(super) const fn byte_before(&self) -> Option<u8> {
        match &self.way {
            Way::Undecided | Way::Plain => None,
            #[cfg(feature = "compression")]
            Way::Packed(unpacking) => unpacking.byte_before(),
        }
    }

    /// Reads what is at `offset`.
    pub(super) fn read_at(&mut self, into: &mut [u8], offset: u64) -> io::Result<Fed> {
        if let Way::Undecided = self.way
            && !self.decide()?
        {
            return Ok(Fed::End);
        }
        match &mut self.way {
            Way::Undecided | Way::Plain => match read_once(&self.file, into, offset)? {
                0 => Ok(Fed::End),
                read => Ok(Fed::Bytes(read)),
            },
            #[cfg(feature = "compression")]
            Way::Packed(unpacking) => unpacking.read_at(into, offset),
        }
    }

    /// Whether the first bytes tell how the file is packed.
    pub(super) fn decide(&mut self) -> io::Result<bool> {
        let mut head = [0; 4];
        let read = read_once(&self.file, &mut head, 0)?;
        self.way = match Packing::of(&head[..read]) {
            None => return Ok(false),
            Some(Packing::None) => Way::Plain,
            Some(packing) => packed(&self.file, packing, self.patience)?,
        };
        Ok(true)
    }
}

#[cfg(feature = "compression")]
fn packed(file: &File, packing: Packing, patience: Duration) -> io::Result<Way> {
    Ok(Way::Packed(Box::new(Unpacking::new(file.try_clone()?, packing, patience))))
}

#[cfg(not(feature = "compression"))]
fn packed(_file: &File, packing: Packing, _patience: Duration) -> io::Result<Way> {
    let what = format!(
        "it is compressed ({}), and this edition cannot unpack: build with --features compression, or unpack it",
        packing.name()
    );
    Err(Unreadable::error("HX3013", what))
}

/// One read that no signal interrupts.
pub(super) fn read_once(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(into, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer,
        }
    }
}

#[cfg(test)]
#[path = "feed_tests.rs"]
mod tests;
