//! How much memory the frames of all connections may take together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Frames up to this size are not counted: connections bound them well enough.
const SMALL: usize = 64 * 1024;
/// So many frames of the largest size.
const LARGEST: usize = 4;
/// The unit of counting.
const KIB: usize = 1024;

/// Room for large frames that have begun and are not yet in work.
#[derive(Clone)]
pub(crate) struct Room {
    left: Arc<Semaphore>,
}

/// Room that one frame has; dropping it gives it back.
pub(crate) struct Taken {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(crate) fn new(max_frame: usize) -> Self {
        let kib = (LARGEST * max_frame.div_ceil(KIB)).min(Semaphore::MAX_PERMITS);
        Self { left: Arc::new(Semaphore::new(kib)) }
    }

    /// Waits until there is room for a frame.
    pub(crate) async fn take(&self, length: usize) -> Taken {
        if length <= SMALL {
            return Taken { _permit: None };
        }
        let kib = u32::try_from(length.div_ceil(KIB)).unwrap_or(u32::MAX);
        // Never closed, so this only waits.
        Taken { _permit: Arc::clone(&self.left).acquire_many_owned(kib).await.ok() }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Goal: large frames wait for each other, small ones never. Method: room for four, five ask.
    #[test]
    fn large_frames_share_a_finite_room() {
        let room = Room::new(1 << 20);
        let taken: Vec<_> = (0..4).map(|_| room.take(1 << 20).now_or_never().expect("room")).collect();
        assert!(room.take(1 << 20).now_or_never().is_none(), "the fifth waits");
        assert!(room.take(SMALL).now_or_never().is_some(), "a small one does not");
        drop(taken);
        assert!(room.take(1 << 20).now_or_never().is_some());
    }
}
