//! The ways of a stranger's bytes as functions of those bytes: what the targets in `fuzz/` call, and what a test here calls
//! with bent requests.
//!
//! Invariant: whatever the bytes are, these return, soon, and hold no more than a bounded multiple of them. They panic where
//! the broker has broken a promise: that is what a fuzzer looks for.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use futures_util::FutureExt as _;

use crate::api::recode;
use crate::batch::{
    Checked, Compression, FirstBatch, HEADER, Keys, Limits, check, rewrite, set_max_timestamp, slice, uncompressed,
    walk,
};
use crate::wire::{FrameReader, Limits as FrameLimits, Request, guard, shape};

const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 40_000);
/// Small, so that both sides of a limit are within a fuzzer's reach.
const FRAMES: FrameLimits = FrameLimits { produce: 1 << 16, other: 1 << 12 };
/// No ratio: what we compress ourselves may be small for what it holds.
const BATCHES: Limits = Limits { bytes: 1 << 20, free: 1 << 20, ratio: 1_000 };

/// A stream of frames, each with the head of a request.
///
/// # Panics
/// If a frame is longer than is taken, or came out of nothing.
pub fn frame(stream: &[u8]) {
    let mut reader = FrameReader::new(stream, FRAMES);
    let mut taken = 0;
    while let Some(Ok(true)) = reader.begun().now_or_never() {
        let next = async {
            let length = reader.length().await?;
            reader.body(length).await
        };
        let Some(Ok(body)) = next.now_or_never() else { break };
        taken += 4 + body.len();
        assert!(body.len() <= FRAMES.produce && taken <= stream.len(), "a frame of {} bytes", body.len());
        header(&body);
    }
}

/// The head of a request.
///
/// # Panics
/// If the head is not within the frame.
pub fn header(frame: &[u8]) {
    if let Ok(request) = Request::read(Bytes::copy_from_slice(frame), PEER) {
        assert!(request.body.len() + 8 <= frame.len(), "the body begins before the head ends");
    }
}

/// A request: its head, the guard, the decoder of its API and version.
///
/// # Panics
/// If guard and codec do not read the same bytes.
pub fn request(frame: &[u8]) {
    let Ok(Request { route, call, mut body, .. }) = Request::read(Bytes::copy_from_slice(frame), PEER) else { return };
    let shape = shape::shape(route.key).expect("every route has a shape");
    if !route.serves(call.version) {
        return; // ApiVersions: answered without a look at the body
    }
    let Ok(rest) = guard::check(shape, call.version, &body) else { return };
    // Whether the codec takes it (a text may not be UTF-8, a null not allowed) is its business.
    if recode(route.key, call.version, &mut body).is_ok() {
        assert_eq!(body.len(), rest, "{} {}: guard and codec end elsewhere", route.name, call.version);
    }
}

/// A record batch as Produce brings it, and as a row of the store holds it.
///
/// # Panics
/// If a batch that passed its check cannot be walked, or not after it was compressed otherwise.
pub fn batch(bytes: &[u8]) {
    look(bytes);
    drop(slice(bytes, 0, i64::MAX, 1 << 16, FirstBatch::Always));
    if bytes.len() < HEADER {
        return;
    }
    // The checksum keeps nearly all damage out: the same once more, with one that fits.
    let mut sealed = bytes.to_vec();
    let greatest = i64::from_be_bytes(sealed[35..43].try_into().expect("eight bytes"));
    set_max_timestamp(&mut sealed, greatest);
    look(&sealed);
}

fn look(bytes: &[u8]) {
    drop(check(bytes, Keys::Required, BATCHES));
    let Ok(Checked { header, .. }) = check(bytes, Keys::Optional, BATCHES) else { return };
    // Compressed records are looked at only where somebody needs them.
    let Ok(plain) = uncompressed(&header, bytes, BATCHES) else { return };
    if walk(&header, &plain, Keys::Optional).is_err() {
        let is_compressed = header.compression() != Ok(Compression::None);
        assert!(is_compressed, "a batch that passed its check cannot be walked");
        return;
    }
    if plain.len() > BATCHES.bytes {
        return;
    }
    for compression in Compression::ALL {
        let again = rewrite(bytes, compression, BATCHES).expect("its records are there");
        let checked = check(&again, Keys::Optional, BATCHES).expect("what we write passes our own check");
        let records = uncompressed(&checked.header, &again, BATCHES).expect("what we compressed");
        assert_eq!(records, plain, "{compression:?} changes the records");
    }
}

#[cfg(test)]
#[path = "fuzz_tests.rs"]
mod tests;
