//! The five ways in which the records of a batch may be packed, unpacked into bounded memory.

use std::io::{self, Read};

/// More than this in one batch is no batch.
const MOST: u64 = 256 << 20;

/// Unpacks what the attribute bits name; `None`: no such way, or not what it says, or too large.
pub(super) fn unpack(attributes: i16, bytes: &[u8]) -> Option<Vec<u8>> {
    match attributes & 7 {
        0 => Some(bytes.to_vec()),
        1 => all(flate2::read::MultiGzDecoder::new(bytes)).ok(),
        2 => snappy(bytes),
        3 => all(lz4_flex::frame::FrameDecoder::new(bytes)).ok(),
        4 => all(zstd::stream::read::Decoder::new(bytes).ok()?).ok(),
        _ => None,
    }
}

fn all(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let read = reader.take(MOST).read_to_end(&mut out)?;
    if read as u64 == MOST { Err(io::ErrorKind::InvalidData.into()) } else { Ok(out) }
}

/// Java writes blocks behind a header of its own; others write one raw block.
fn snappy(bytes: &[u8]) -> Option<Vec<u8>> {
    const JAVA: &[u8] = b"\x82SNAPPY\0";
    let Some(rest) = bytes.strip_prefix(JAVA) else { return block(bytes) };
    let mut rest = rest.get(8..)?;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        out.extend(block(after.get(..length)?)?);
        rest = after.get(length..)?;
        if out.len() as u64 > MOST {
            return None;
        }
    }
    Some(out)
}

fn block(bytes: &[u8]) -> Option<Vec<u8>> {
    let length = snap::raw::decompress_len(bytes).ok()?;
    if length as u64 > MOST {
        return None;
    }
    snap::raw::Decoder::new().decompress_vec(bytes).ok()
}
