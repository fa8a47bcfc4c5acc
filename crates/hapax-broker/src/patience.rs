//! How long tests wait, and for what: a limit that a machine ten times slower meets, and a word for who reads the failure.

use std::future::Future;
use std::time::{Duration, Instant};

/// What is not there by then never comes.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} for this: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits for something that must end.
pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for this: {what}"))
}
