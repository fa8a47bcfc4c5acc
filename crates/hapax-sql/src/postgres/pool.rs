//! The sessions with one target: at most so many, handed out in the order of asking.
//!
//! Invariant: a session that is given back with an open transaction, in doubt, spoiled or closed is dropped, never handed
//! out again. Not deadpool-postgres: it would pool such a session, and its own statement cache and error type get in the
//! way of ours.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connect_error::ConnectError;
use super::session::{Limits, Session};
use super::url::PostgresUrl;

/// How many sessions a pool has unless the configuration says otherwise; servers allow about 100 in all.
pub const DEFAULT_CONNECTIONS: usize = 8;

/// The sessions with one target. Clones share them.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    url: PostgresUrl,
    limits: Limits,
    connections: usize,
    places: Arc<Semaphore>,
    free: Mutex<Vec<Session>>,
    waiting: AtomicUsize,
}

/// A session taken from a pool; it goes back when dropped, or is closed if it is not fit for that.
pub struct Taken {
    session: Option<Session>,
    pool: Arc<Shared>,
    // After the session: its place is free only when the session is back or gone.
    _place: OwnedSemaphorePermit,
}

impl Pool {
    /// A pool of at most `connections` sessions (at least one). Connects nowhere yet.
    #[must_use]
    pub fn new(url: PostgresUrl, limits: Limits, connections: usize) -> Self {
        let connections = connections.clamp(1, Semaphore::MAX_PERMITS);
        let shared = Shared {
            url,
            limits,
            connections,
            places: Arc::new(Semaphore::new(connections)),
            free: Mutex::new(Vec::new()),
            waiting: AtomicUsize::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Takes a session: a free one that still lives, else a new one. Whoever asked first is served first.
    ///
    /// # Errors
    /// If all were taken for longer than `patience`, or a new one cannot be had.
    pub async fn take(&self, patience: Duration) -> Result<Taken, ConnectError> {
        let place = self.place(patience).await?;
        let live = self.shared.live();
        let session = match live {
            Some(session) => session,
            None => Session::connect(&self.shared.url, &self.shared.limits).await?,
        };
        Ok(Taken { session: Some(session), pool: Arc::clone(&self.shared), _place: place })
    }

    async fn place(&self, patience: Duration) -> Result<OwnedSemaphorePermit, ConnectError> {
        let waiting = Waiting::new(&self.shared.waiting);
        match tokio::time::timeout(patience, Arc::clone(&self.shared.places).acquire_owned()).await {
            Ok(place) => Ok(place.expect("the semaphore is never closed")),
            Err(_) => Err(ConnectError::PoolEmpty {
                target: self.shared.url.target(),
                connections: self.shared.connections,
                waiting: waiting.count(),
                waited: patience,
            }),
        }
    }

    /// A session that is not one of the pool's, for looking at and ending others.
    ///
    /// # Errors
    /// If it cannot be had.
    pub async fn extra(&self) -> Result<Session, ConnectError> {
        Session::connect(&self.shared.url, &self.shared.limits).await
    }

    /// The address of the target.
    #[must_use]
    pub fn url(&self) -> &PostgresUrl {
        &self.shared.url
    }

    /// The limits of its sessions.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// How many sessions there may be.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections
    }

    /// How many are taken now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.shared.connections - self.shared.places.available_permits()
    }

    /// How many wait for one now.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one used last: its statements and the server's caches are warm. The dead ones are dropped on the way.
    fn live(&self) -> Option<Session> {
        let mut free = self.free();
        while let Some(session) = free.pop() {
            if session.is_reusable() {
                return Some(session);
            }
        }
        None
    }
}

impl Taken {
    /// Closes the session instead of giving it back: after doubt, or when its state is not known.
    pub fn discard(mut self) {
        drop(self.session.take());
    }
}

impl Deref for Taken {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().expect("taken out only by discard and drop")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(session) = self.session.take().filter(Session::is_reusable) {
            self.pool.free().push(session);
        }
    }
}

/// Counts one that waits, until it is served, gives up or is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pool")
            .field("url", &self.shared.url)
            .field("connections", &self.connections())
            .field("taken", &self.taken())
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Taken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Taken").field(&self.session).finish()
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
