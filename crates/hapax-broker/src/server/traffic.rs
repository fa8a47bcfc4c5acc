//! What goes through a server, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::api::{ROUTES, Route};

/// Counters of one server; reading them costs nothing.
#[derive(Debug)]
pub struct Traffic {
    opened: AtomicU64,
    closed: AtomicU64,
    refused: AtomicU64,
    panics: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    /// One per route, in the order of [`ROUTES`].
    requests: Vec<AtomicU64>,
}

impl Default for Traffic {
    fn default() -> Self {
        let zero = AtomicU64::default;
        let requests = ROUTES.iter().map(|_| zero()).collect();
        Self {
            opened: zero(),
            closed: zero(),
            refused: zero(),
            panics: zero(),
            bytes_in: zero(),
            bytes_out: zero(),
            requests,
        }
    }
}

impl Traffic {
    /// Connections that are open now.
    pub fn connections(&self) -> u64 {
        let closed = self.closed.load(Ordering::Relaxed);
        self.opened.load(Ordering::Relaxed).saturating_sub(closed)
    }

    /// Connections taken so far.
    pub fn connections_taken(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Connections closed at once because there were too many.
    pub fn connections_refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Connections that ended because a handler panicked: a bug each.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Bytes of whole frames that came.
    pub fn bytes_in(&self) -> u64 {
        self.bytes_in.load(Ordering::Relaxed)
    }

    /// Bytes of answers.
    pub fn bytes_out(&self) -> u64 {
        self.bytes_out.load(Ordering::Relaxed)
    }

    /// Requests by the name of their API.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ROUTES.iter().zip(&self.requests).map(|(route, count)| (route.name, count.load(Ordering::Relaxed)))
    }

    /// Counts a connection as open until the value is dropped, also by a panic.
    pub(super) fn opened(&self) -> Open<'_> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        Open(self)
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn request(&self, route: &'static Route, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(at) = ROUTES.iter().position(|other| other.key == route.key) {
            self.requests[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn wrote(&self, bytes: usize) {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A connection that is open.
pub(super) struct Open<'a>(&'a Traffic);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.closed.fetch_add(1, Ordering::Relaxed);
    }
}
