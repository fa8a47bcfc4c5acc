//! Frames out of a stream of bytes.
//!
//! Invariant: a frame's announced length buys it no memory; room grows with the bytes that have come. While nothing comes,
//! a connection holds a few kilobytes. Not here: deadlines (`server`).

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::wire::WireError;

/// How long frames may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Of Produce.
    pub(crate) produce: usize,
    /// Of everything else.
    pub(crate) other: usize,
}

/// Why no frame came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("the connection broke: {0}")]
    Socket(#[from] io::Error),
    #[error("a frame that had begun was not whole in time")]
    Late,
}

/// Room that a waiting connection holds.
const IDLE_ROOM: usize = 4 * 1024;
/// Room that is given before its bytes have come; untouched it costs no memory.
const EARLY_ROOM: usize = 1 << 20;
/// The length field.
const LENGTH: usize = 4;
/// API, version and correlation id.
const SHORTEST: usize = 8;

/// Reads frames one after the other.
pub(crate) struct FrameReader<R> {
    stream: R,
    limits: Limits,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(stream: R, limits: Limits) -> Self {
        Self { stream, limits, buffer: BytesMut::new() }
    }

    /// Waits until a frame has begun; false: the peer left between two frames. Cancelling it loses nothing.
    pub(crate) async fn begun(&mut self) -> Result<bool, FrameError> {
        if !self.buffer.is_empty() {
            return Ok(true);
        }
        if self.buffer.capacity() > IDLE_ROOM {
            self.buffer = BytesMut::new(); // a large frame is over: its room goes with it
        }
        self.buffer.reserve(IDLE_ROOM);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }

    /// The length of the frame that has begun, if it may have that.
    pub(crate) async fn length(&mut self) -> Result<usize, FrameError> {
        self.fill(LENGTH).await?;
        let announced = i32::from_be_bytes([self.buffer[0], self.buffer[1], self.buffer[2], self.buffer[3]]);
        let length = match usize::try_from(announced) {
            Ok(length) if (SHORTEST..=self.limits.produce).contains(&length) => length,
            _ => return Err(WireError::FrameLength { length: announced, max: self.limits.produce }.into()),
        };
        self.fill(LENGTH + 2).await?;
        let key = i16::from_be_bytes([self.buffer[LENGTH], self.buffer[LENGTH + 1]]);
        if key != ApiKey::Produce as i16 && length > self.limits.other {
            return Err(WireError::FrameLength { length: announced, max: self.limits.other }.into());
        }
        Ok(length)
    }

    /// The frame whose length was just told, without it.
    pub(crate) async fn body(&mut self, length: usize) -> Result<Bytes, FrameError> {
        self.fill(LENGTH + length).await?;
        self.buffer.advance(LENGTH);
        Ok(self.buffer.split_to(length).freeze())
    }

    /// Reads until `count` bytes are there.
    async fn fill(&mut self, count: usize) -> Result<(), FrameError> {
        while self.buffer.len() < count {
            let missing = count - self.buffer.len();
            self.buffer.reserve(missing.min(self.buffer.len().max(EARLY_ROOM)));
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(WireError::FrameCut.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
