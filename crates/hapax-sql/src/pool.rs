//! The sessions with one target: at most so many, handed out in the order of asking. One pool for every driver.
//!
//! Invariant: a session that is given back with an open transaction, in doubt, spoiled or closed is dropped, never handed
//! out again. Not the drivers' own pools nor deadpool's: they would pool such a session, and their statement caches and
//! error types get in the way of ours.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many sessions a pool has unless the configuration says otherwise; servers allow about 100 in all.
pub const DEFAULT_CONNECTIONS: usize = 8;

/// A session that a pool can hold.
pub trait Pooled: Sized + Send + Sync + 'static {
    /// The address of a target; prints without secrets.
    type Url: fmt::Debug + Send + Sync;
    /// What a session limits itself to.
    type Limits: Send + Sync;
    /// Why there is no session.
    type Error: Send;

    /// A new session.
    fn open(url: &Self::Url, limits: &Self::Limits) -> impl Future<Output = Result<Self, Self::Error>> + Send;

    /// Whether somebody else may use it next: connected, no open transaction, nothing in doubt.
    fn is_reusable(&self) -> bool;

    /// Whether one that lay in the pool still answers; asked only where the driver does not notice a lost connection.
    fn answers(&mut self) -> impl Future<Output = bool> + Send;

    /// All `connections` were taken for as long as `waited`, and `waiting` wait, this one included.
    fn all_taken(url: &Self::Url, connections: usize, waiting: usize, waited: Duration) -> Self::Error;
}

/// The sessions with one target. Clones share them.
pub struct Pool<S: Pooled> {
    shared: Arc<Shared<S>>,
}

struct Shared<S: Pooled> {
    url: S::Url,
    limits: S::Limits,
    connections: usize,
    places: Arc<Semaphore>,
    free: Mutex<Vec<S>>,
    waiting: AtomicUsize,
}

/// A session taken from a pool; it goes back when dropped, or is closed if it is not fit for that.
pub struct Taken<S: Pooled> {
    session: Option<S>,
    pool: Arc<Shared<S>>,
    // After the session: its place is free only when the session is back or gone.
    _place: OwnedSemaphorePermit,
}

impl<S: Pooled> Pool<S> {
    /// A pool of at most `connections` sessions (at least one). Connects nowhere yet.
    #[must_use]
    pub fn new(url: S::Url, limits: S::Limits, connections: usize) -> Self {
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
    pub async fn take(&self, patience: Duration) -> Result<Taken<S>, S::Error> {
        let place = self.place(patience).await?;
        let session = loop {
            match self.shared.live() {
                Some(mut session) => {
                    if session.answers().await {
                        break session;
                    }
                }
                None => break S::open(&self.shared.url, &self.shared.limits).await?,
            }
        };
        Ok(Taken { session: Some(session), pool: Arc::clone(&self.shared), _place: place })
    }

    async fn place(&self, patience: Duration) -> Result<OwnedSemaphorePermit, S::Error> {
        let waiting = Waiting::new(&self.shared.waiting);
        match tokio::time::timeout(patience, Arc::clone(&self.shared.places).acquire_owned()).await {
            Ok(place) => Ok(place.expect("the semaphore is never closed")),
            Err(_) => Err(S::all_taken(&self.shared.url, self.shared.connections, waiting.count(), patience)),
        }
    }

    /// A session that is not one of the pool's, for looking at and ending others.
    ///
    /// # Errors
    /// If it cannot be had.
    pub async fn extra(&self) -> Result<S, S::Error> {
        S::open(&self.shared.url, &self.shared.limits).await
    }

    /// The address of the target.
    #[must_use]
    pub fn url(&self) -> &S::Url {
        &self.shared.url
    }

    /// The limits of its sessions.
    #[must_use]
    pub fn limits(&self) -> &S::Limits {
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

impl<S: Pooled> Shared<S> {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<S>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one used last: its statements and the server's caches are warm. The dead ones are dropped on the way.
    fn live(&self) -> Option<S> {
        let mut free = self.free();
        while let Some(session) = free.pop() {
            if session.is_reusable() {
                return Some(session);
            }
        }
        None
    }
}

impl<S: Pooled> Taken<S> {
    /// Closes the session instead of giving it back: after doubt, or when its state is not known.
    pub fn discard(mut self) {
        drop(self.session.take());
    }
}

impl<S: Pooled> Deref for Taken<S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.session.as_ref().expect("taken out only by discard and drop")
    }
}

impl<S: Pooled> DerefMut for Taken<S> {
    fn deref_mut(&mut self) -> &mut S {
        self.session.as_mut().expect("taken out only by discard and drop")
    }
}

impl<S: Pooled> Drop for Taken<S> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take().filter(S::is_reusable) {
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

// Derived, it would ask the session to be `Clone`.
impl<S: Pooled> Clone for Pool<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Pooled> fmt::Debug for Pool<S> {
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

impl<S: Pooled + fmt::Debug> fmt::Debug for Taken<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Taken").field(&self.session).finish()
    }
}
