//! Memory for answers that wait until their client has read them, of all connections together.
//!
//! Invariant: who asks for much gets at most half of what is left, so that those who do not read leave something for those who
//! do. Not here: how long an answer may wait (`server`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of counting.
const KIB: usize = 1024;
/// Nobody is given less, unless there is less in all.
const LEAST: usize = 1024;

/// The memory for answers.
#[derive(Debug)]
pub(crate) struct Answers {
    left: Arc<Semaphore>,
    all: usize,
    waiting: AtomicUsize,
}

/// Memory that one answer may take; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Share(OwnedSemaphorePermit);

/// Somebody who waits for memory.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Answers {
    pub(crate) fn new(bytes: usize) -> Self {
        let all = bytes.div_ceil(KIB).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self { left: Arc::new(Semaphore::new(all)), all, waiting: AtomicUsize::new(0) }
    }

    /// A share of so many bytes, or of fewer where there is little left; waits where there is next to nothing. Giving up the
    /// wait loses nothing.
    pub(crate) async fn share(&self, bytes: usize) -> Share {
        let least = LEAST.min(self.all);
        let fair = (self.left.available_permits() / 2).max(least);
        let wanted = bytes.div_ceil(KIB).max(1);
        if let Ok(permit) = Arc::clone(&self.left).try_acquire_many_owned(permits(wanted.min(fair))) {
            return Share(permit);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        let permit = Arc::clone(&self.left).acquire_many_owned(permits(wanted.min(least))).await;
        Share(permit.expect("the memory is never closed"))
    }

    /// Whether somebody waits for memory that others hold.
    pub(crate) fn is_short(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

fn permits(kib: usize) -> u32 {
    u32::try_from(kib).unwrap_or(u32::MAX)
}

impl Share {
    /// How many bytes it is.
    pub(crate) fn bytes(&self) -> usize {
        self.0.num_permits() * KIB
    }

    /// Keeps only so many bytes of it.
    pub(crate) fn down_to(mut self, bytes: usize) -> Option<Self> {
        let kept = bytes.div_ceil(KIB).min(self.0.num_permits());
        self.0.split(kept).filter(|kept| kept.num_permits() > 0).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const MIB: usize = 1 << 20;

    /// Goal: nobody takes all, and who comes last still gets something. Method: 16 MiB, everybody wants all of it.
    #[test]
    fn everybody_gets_at_most_half_of_what_is_left() {
        let answers = Answers::new(16 * MIB);
        let take = || answers.share(50 * MIB).now_or_never();
        let shares: Vec<_> = std::iter::from_fn(take).collect();
        let sizes: Vec<_> = shares.iter().map(|share| share.bytes() / MIB).collect();
        assert_eq!(sizes, [8, 4, 2, 1, 1]);
        assert!(!answers.is_short(), "nobody waits any more");
    }

    /// Goal: who waits is heard, and gets what is given back. Method: all is taken, one waits, one leaves.
    #[tokio::test]
    async fn who_waits_gets_what_is_given_back() {
        let answers = Answers::new(MIB);
        let all = answers.share(MIB).await;
        let mut waits = Box::pin(answers.share(5 * MIB));
        assert!((&mut waits).now_or_never().is_none());
        assert!(answers.is_short());
        let kept = all.down_to(1_500).expect("two kilobytes");
        assert_eq!(kept.bytes(), 2 * KIB);
        assert!((&mut waits).now_or_never().is_none(), "not all is back");
        drop(kept);
        assert_eq!(waits.await.bytes(), MIB);
        assert!(!answers.is_short());
    }
}
