//! The five compressions, with a bound on what may come out.

use std::io::{self, Read, Write};

use crate::batch::BatchError;

/// How the records of a batch are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy, in Java's blocks or bare.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// By the number in a batch's attributes.
    pub fn of(id: i16) -> Result<Self, BatchError> {
        usize::try_from(id).ok().and_then(|id| Self::ALL.get(id).copied()).ok_or(BatchError::Compression { id })
    }

    /// By the name that Kafka's settings use.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|compression| compression.name() == name)
    }

    /// Its number in a batch's attributes.
    pub fn id(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Its name in Kafka's settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// How much may come out of a compressed batch: never more than `bytes`, and above `free` not more than `ratio` times what
/// went in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in all.
    pub bytes: usize,
    /// Bytes that no ratio forbids.
    pub free: usize,
    /// Bytes out per byte in.
    pub ratio: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 64 << 20, free: 16 << 20, ratio: 1_000 }
    }
}

impl Limits {
    /// For a topic whose largest batch has so many bytes: 64 times that, and never less than by default.
    pub fn of_topic(max_message_bytes: usize) -> Self {
        let usual = Self::default();
        Self { bytes: usual.bytes.max(max_message_bytes.saturating_mul(64)), ..usual }
    }

    /// Bytes that may come out of so many.
    pub(crate) fn of(self, compressed: usize) -> usize {
        self.bytes.min(self.free.max(compressed.saturating_mul(self.ratio)))
    }
}

/// Bytes that a decoder holds at most while its output is looked at piece by piece. A zstd frame may refer back to all that
/// came out of it, and snappy comes out in whole blocks.
pub fn working_memory(compression: Compression, compressed: usize, limits: Limits) -> usize {
    const PIECES: usize = 128 << 10;
    const LZ4_BLOCKS: usize = 9 << 20;
    let most = limits.of(compressed);
    match compression {
        Compression::None => 0,
        Compression::Gzip => PIECES,
        Compression::Snappy => PIECES + most.min(snappy_most(compressed)),
        Compression::Lz4 => PIECES + most.min(LZ4_BLOCKS),
        Compression::Zstd => PIECES + most,
    }
}

/// Undoes a compression.
pub fn decompress(compression: Compression, bytes: &[u8], limits: Limits) -> Result<Vec<u8>, BatchError> {
    let limit = limits.of(bytes.len());
    let mut out = Vec::new();
    let read =
        decoder(compression, bytes, limit).and_then(|reader| reader.take(limit as u64 + 1).read_to_end(&mut out));
    match read {
        Ok(_) if out.len() <= limit => Ok(out),
        Ok(_) => Err(bomb(compression, bytes.len(), limit)),
        Err(error) => Err(undecodable(compression, bytes.len(), limit, &error)),
    }
}

pub(crate) fn bomb(compression: Compression, compressed: usize, limit: usize) -> BatchError {
    BatchError::Bomb { compression: compression.name(), compressed, limit }
}

pub(crate) fn undecodable(compression: Compression, compressed: usize, limit: usize, error: &io::Error) -> BatchError {
    if error.kind() == io::ErrorKind::FileTooLarge {
        return bomb(compression, compressed, limit);
    }
    BatchError::Corrupt { compression: compression.name(), reason: error.to_string() }
}

/// Reads what a compression holds, piece by piece. The caller stops at `limit`; a block that alone has more is refused.
pub(crate) fn decoder<'a>(compression: Compression, bytes: &'a [u8], limit: usize) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match compression {
        Compression::None => Box::new(bytes),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        Compression::Snappy => Box::new(SnappyReader::new(bytes, limit)?),
        Compression::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(bytes)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
            // As much as Kafka's own. A frame that says so takes no more than what comes out of it.
            decoder.window_log_max(27)?;
            Box::new(decoder)
        }
    })
}

/// What Java's snappy stream begins with; two numbers for versions follow.
const XERIAL: &[u8; 8] = b"\x82SNAPPY\0";
const XERIAL_HEADER: usize = 16;
const XERIAL_BLOCK: usize = 32 << 10;

/// Snappy's shortest reference stands for 64 bytes and takes three.
fn snappy_most(compressed: usize) -> usize {
    compressed.saturating_mul(22).saturating_add(64)
}

/// Snappy, block by block.
struct SnappyReader<'a> {
    /// What is not undone yet: blocks with their length in front, or one bare block.
    rest: &'a [u8],
    is_bare: bool,
    block: Vec<u8>,
    at: usize,
    /// Bytes that may still come out.
    left: usize,
}

impl<'a> SnappyReader<'a> {
    fn new(bytes: &'a [u8], limit: usize) -> io::Result<Self> {
        let is_bare = !bytes.starts_with(XERIAL);
        let rest = if is_bare { bytes } else { bytes.get(XERIAL_HEADER..).ok_or_else(cut)? };
        Ok(Self { rest, is_bare, block: Vec::new(), at: 0, left: limit })
    }

    fn next_block(&mut self) -> io::Result<()> {
        let (block, after) = if self.is_bare {
            (self.rest, &[][..])
        } else {
            let (length, after) = self.rest.split_first_chunk::<4>().ok_or_else(cut)?;
            after.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(cut)?
        };
        let length = snap::raw::decompress_len(block).map_err(io::Error::other)?;
        self.left = self.left.checked_sub(length).ok_or(io::ErrorKind::FileTooLarge)?;
        if length > snappy_most(block.len()) {
            return Err(io::Error::other("a block says that it holds more than it can"));
        }
        self.block.clear();
        self.block.resize(length, 0);
        snap::raw::Decoder::new().decompress(block, &mut self.block).map_err(io::Error::other)?;
        (self.rest, self.at) = (after, 0);
        Ok(())
    }
}

impl Read for SnappyReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() && !self.rest.is_empty() {
            self.next_block()?;
        }
        let count = out.len().min(self.block.len() - self.at);
        out[..count].copy_from_slice(&self.block[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a block is cut short")
}

/// Compresses in the form that Java's client reads, as hard as the codec does by itself.
pub fn compress(compression: Compression, bytes: &[u8]) -> Result<Vec<u8>, BatchError> {
    compress_at(compression, None, bytes)
}

/// Compresses as hard as `level` says, where the codec has levels.
pub fn compress_at(compression: Compression, level: Option<i32>, bytes: &[u8]) -> Result<Vec<u8>, BatchError> {
    let mut encoder = Encoder::new(compression, level, Vec::new())
        .map_err(|error| BatchError::Corrupt { compression: compression.name(), reason: error.to_string() })?;
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map_err(|error| BatchError::Corrupt { compression: compression.name(), reason: error.to_string() })
}

/// Compresses what is written into it, piece by piece.
pub(crate) enum Encoder<W: Write> {
    None(W),
    Gzip(flate2::write::GzEncoder<W>),
    Snappy(SnappyWriter<W>),
    Lz4(Box<lz4_flex::frame::FrameEncoder<W>>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
}

impl<W: Write> Encoder<W> {
    pub(crate) fn new(compression: Compression, level: Option<i32>, out: W) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(out),
            Compression::Gzip => Self::Gzip(flate2::write::GzEncoder::new(out, gzip_level(level))),
            Compression::Snappy => Self::Snappy(SnappyWriter::new(out)?),
            Compression::Lz4 => {
                // Java reads only blocks that stand alone.
                let info = lz4_flex::frame::FrameInfo::new()
                    .block_mode(lz4_flex::frame::BlockMode::Independent)
                    .block_size(lz4_flex::frame::BlockSize::Max64KB);
                Self::Lz4(Box::new(lz4_flex::frame::FrameEncoder::with_frame_info(info, out)))
            }
            Compression::Zstd => {
                let level = level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
                Self::Zstd(zstd::stream::write::Encoder::new(out, level)?)
            }
        })
    }

    /// Ends the stream, and hands back what it was written to.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::None(out) => Ok(out),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Snappy(encoder) => encoder.finish(),
            Self::Lz4(encoder) => encoder.finish().map_err(io::Error::other),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::None(out) => out.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Snappy(encoder) => encoder.write(bytes),
            Self::Lz4(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // a stream is whole when it is finished
    }
}

/// -1 is Kafka's word for the codec's own level.
fn gzip_level(level: Option<i32>) -> flate2::Compression {
    let level = level.and_then(|level| u32::try_from(level).ok()).filter(|level| *level <= 9);
    level.map_or_else(flate2::Compression::default, flate2::Compression::new)
}

/// Java's snappy: its head, then blocks.
pub(crate) struct SnappyWriter<W> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> SnappyWriter<W> {
    fn new(mut out: W) -> io::Result<Self> {
        out.write_all(XERIAL)?;
        out.write_all(&1_i32.to_be_bytes())?;
        out.write_all(&1_i32.to_be_bytes())?;
        Ok(Self { out, block: Vec::with_capacity(XERIAL_BLOCK) })
    }

    fn end_block(&mut self) -> io::Result<()> {
        let packed = snap::raw::Encoder::new().compress_vec(&self.block).map_err(io::Error::other)?;
        let length = u32::try_from(packed.len()).map_err(io::Error::other)?;
        self.block.clear();
        self.out.write_all(&length.to_be_bytes())?;
        self.out.write_all(&packed)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(XERIAL_BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..count]);
        if self.block.len() == XERIAL_BLOCK {
            self.end_block()?;
        }
        Ok(count)
    }

    fn finish(mut self) -> io::Result<W> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        Ok(self.out)
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
