//! A wire between a worker and a server that can fail at the worst moment: the request is lost, or the answer is.
//!
//! Reads: as much of the protocol as tells one statement from another (`wire`; MariaDB's in `mysql`). Writes: a line per fault, so that the
//! harness knows that it happened. Invariant: without an armed fault every byte passes as it came.
//! Not here: TLS; what a worker should do about it (`scenario`).

mod connection;
mod fault;
mod mysql;
mod wire;

pub use fault::{Deed, Fault, Watch};

use std::fs::File;
use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::database::Engine;

/// What all connections of a proxy share.
#[derive(Debug)]
struct Shared {
    engine: Engine,
    upstream: AtomicU16,
    closing: AtomicBool,
    armed: Mutex<Vec<Armed>>,
    released: Mutex<u64>,
    release: Condvar,
    happened: Mutex<Vec<(Deed, Watch)>>,
    log: Mutex<File>,
    streams: Mutex<Vec<TcpStream>>,
    connections: AtomicU64,
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    passes: u64,
}

impl Shared {
    /// Counts one pass of `watch` and returns what has to be done now; a fault happens once.
    fn pass(&self, watch: Watch) -> Option<Deed> {
        let mut armed = lock(&self.armed);
        armed.iter_mut().filter(|armed| armed.fault.watch == watch).for_each(|armed| armed.passes += 1);
        let due = armed.iter().position(|armed| armed.fault.watch == watch && armed.passes == armed.fault.pass)?;
        Some(armed.remove(due).fault.deed)
    }

    fn note(&self, connection: u64, deed: Deed, watch: Watch) {
        lock(&self.happened).push((deed, watch));
        self.write(&format!("{} {} on connection {connection}", deed.name(), watch.name()));
    }

    fn write(&self, line: &str) {
        // The log is for people; a full disk must not end the proxy.
        drop(writeln!(lock(&self.log), "{line}"));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A listening proxy; dropping it cuts everything.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts to listen, and passes everything on to the server on port `upstream`, which speaks as `engine` does.
    ///
    /// # Errors
    /// If no port can be had, or the log cannot be written.
    pub fn start(engine: Engine, upstream: u16, log: &Path) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port for the proxy")?;
        let port = listener.local_addr()?.port();
        let log = File::options().create(true).append(true).open(log).context("cannot write the proxy's log")?;
        let shared = Arc::new(Shared {
            engine,
            upstream: AtomicU16::new(upstream),
            closing: AtomicBool::new(false),
            armed: Mutex::default(),
            released: Mutex::default(),
            release: Condvar::new(),
            happened: Mutex::default(),
            log: Mutex::new(log),
            streams: Mutex::default(),
            connections: AtomicU64::new(0),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.closing.load(Ordering::SeqCst) {
                    break;
                }
                if let Ok(client) = client {
                    let shared = Arc::clone(&accepting);
                    std::thread::spawn(move || connection::serve(&shared, client));
                }
            }
        });
        Ok(Self { port, shared })
    }

    /// The port to connect to.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Lets `fault` happen, once.
    pub fn arm(&self, fault: Fault) {
        self.shared.write(&format!("armed: {} {}, pass {}", fault.deed.name(), fault.watch.name(), fault.pass));
        lock(&self.shared.armed).push(Armed { fault, passes: 0 });
    }

    /// Passes on the answers that are held back.
    pub fn release(&self) {
        *lock(&self.shared.released) += 1;
        self.shared.release.notify_all();
    }

    /// Sends new connections to another server, and cuts those that there are.
    pub fn redirect(&self, upstream: u16) {
        self.shared.upstream.store(upstream, Ordering::SeqCst);
        self.cut();
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        for stream in lock(&self.shared.streams).drain(..) {
            // Fails only if it is closed already.
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// How often a deed was done.
    #[must_use]
    pub fn happened(&self, deed: Deed, watch: Watch) -> usize {
        lock(&self.shared.happened).iter().filter(|done| **done == (deed, watch)).count()
    }

    /// Waits until a deed was done `times` times; `false` if it was not within `limit`.
    #[must_use]
    pub fn wait_happened(&self, deed: Deed, watch: Watch, times: usize, limit: Duration) -> bool {
        let started = Instant::now();
        while started.elapsed() < limit {
            if self.happened(deed, watch) >= times {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.release();
        self.cut();
        // Wakes the listener up, so that its thread ends.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
