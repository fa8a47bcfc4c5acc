//! The five compressions, with a bound on what may come out.

use std::io::{self, Read, Write as _};

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
    fn of(self, compressed: usize) -> usize {
        self.bytes.min(self.free.max(compressed.saturating_mul(self.ratio)))
    }
}

/// Undoes a compression.
pub fn decompress(compression: Compression, bytes: &[u8], limits: Limits) -> Result<Vec<u8>, BatchError> {
    let limit = limits.of(bytes.len());
    let bomb = || BatchError::Bomb { compression: compression.name(), compressed: bytes.len(), limit };
    let result = match compression {
        Compression::None => Ok(bytes.to_vec()),
        Compression::Gzip => drain(flate2::read::MultiGzDecoder::new(bytes), limit),
        Compression::Snappy => unsnap(bytes, limit),
        Compression::Lz4 => drain(lz4_flex::frame::FrameDecoder::new(bytes), limit),
        Compression::Zstd => unzstd(bytes, limit),
    };
    match result {
        Ok(out) if out.len() <= limit => Ok(out),
        Ok(_) => Err(bomb()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(bomb()),
        Err(error) => Err(BatchError::Corrupt { compression: compression.name(), reason: error.to_string() }),
    }
}

/// Reads at most one byte more than the limit.
fn drain(reader: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut out)?;
    Ok(out)
}

fn unzstd(bytes: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
    // A frame may ask for a window of gigabytes: no more than what may come out.
    decoder.window_log_max(26)?;
    drain(decoder, limit)
}

/// What Java's snappy stream begins with; two numbers for versions follow.
const XERIAL: &[u8; 8] = b"\x82SNAPPY\0";
const XERIAL_HEADER: usize = 16;
const XERIAL_BLOCK: usize = 32 << 10;

fn unsnap(bytes: &[u8], limit: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    if !bytes.starts_with(XERIAL) {
        unsnap_block(bytes, &mut out, limit)?;
        return Ok(out);
    }
    let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "a block is cut short");
    let mut rest = bytes.get(XERIAL_HEADER..).ok_or_else(cut)?;
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let (block, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(cut)?;
        unsnap_block(block, &mut out, limit)?;
        rest = after;
    }
    Ok(out)
}

fn unsnap_block(block: &[u8], out: &mut Vec<u8>, limit: usize) -> io::Result<()> {
    let length = snap::raw::decompress_len(block).map_err(io::Error::other)?;
    let start = out.len();
    if start.saturating_add(length) > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    out.resize(start + length, 0);
    snap::raw::Decoder::new().decompress(block, &mut out[start..]).map_err(io::Error::other)?;
    Ok(())
}

/// Compresses in the form that Java's client reads, as hard as the codec does by itself.
pub fn compress(compression: Compression, bytes: &[u8]) -> Result<Vec<u8>, BatchError> {
    compress_at(compression, None, bytes)
}

/// Compresses as hard as `level` says, where the codec has levels.
pub fn compress_at(compression: Compression, level: Option<i32>, bytes: &[u8]) -> Result<Vec<u8>, BatchError> {
    let result = match compression {
        Compression::None => Ok(bytes.to_vec()),
        Compression::Gzip => gzip(level, bytes),
        Compression::Snappy => snap(bytes),
        Compression::Lz4 => lz4(bytes),
        Compression::Zstd => zstd::stream::encode_all(bytes, level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL)),
    };
    result.map_err(|error| BatchError::Corrupt { compression: compression.name(), reason: error.to_string() })
}

/// -1 is Kafka's word for the codec's own level.
fn gzip(level: Option<i32>, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let level = level.and_then(|level| u32::try_from(level).ok()).filter(|level| *level <= 9);
    let level = level.map_or_else(flate2::Compression::default, flate2::Compression::new);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn lz4(bytes: &[u8]) -> io::Result<Vec<u8>> {
    // Java reads only blocks that stand alone.
    let info = lz4_flex::frame::FrameInfo::new()
        .block_mode(lz4_flex::frame::BlockMode::Independent)
        .block_size(lz4_flex::frame::BlockSize::Max64KB);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes)?;
    encoder.finish().map_err(io::Error::other)
}

fn snap(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(XERIAL_HEADER + bytes.len() / 2);
    out.extend_from_slice(XERIAL);
    out.extend_from_slice(&1_i32.to_be_bytes());
    out.extend_from_slice(&1_i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in bytes.chunks(XERIAL_BLOCK) {
        let packed = encoder.compress_vec(block).map_err(io::Error::other)?;
        let length = u32::try_from(packed.len()).map_err(io::Error::other)?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&packed);
    }
    Ok(out)
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
