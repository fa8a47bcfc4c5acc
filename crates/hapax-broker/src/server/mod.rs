//! Sockets: listening, limits, one task per connection, answers in order.
//!
//! Invariant: finitely many connections, each with finitely many requests in work, each ended by a deadline when it says
//! nothing or says it too slowly. Not here: bytes (`wire`), what requests mean (`api`).

mod admission;
mod connection;
mod error;
mod traffic;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::broker::Broker;
use crate::store::Store;

use admission::Admission;
pub use error::ServeError;
pub use traffic::Traffic;

/// A port that is ours, before anything is served on it: the broker makes its address known between the two.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes a port, `"127.0.0.1:9092"`; port 0 takes any. Loopback only: whoever connects may do everything.
    pub async fn bind(listen: &str) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Bind { address: listen.to_owned(), source };
        let mut found: Vec<SocketAddr> = tokio::net::lookup_host(listen).await.map_err(failed)?.collect();
        if let Some(outside) = found.iter().find(|address| !address.ip().to_canonical().is_loopback()) {
            return Err(ServeError::NotLoopback { address: *outside });
        }
        found.sort_by_key(SocketAddr::is_ipv6); // clients try "localhost" by its older address, too
        let socket = TcpListener::bind(found.as_slice()).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address })
    }

    /// What was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves in the background from now on.
    pub fn serve<S: Store>(self, broker: Arc<Broker<S>>) -> Server {
        let (stop, stopping) = watch::channel(Stopping::No);
        let traffic = Arc::new(Traffic::default());
        let accepting = Accepting {
            listener: self.socket,
            admission: Admission::new(broker.config.max_connections, broker.config.max_connections_per_address),
            broker,
            traffic: Arc::clone(&traffic),
            stopping,
            connections: JoinSet::new(),
        };
        Server { address: self.address, stop, traffic, accepting: tokio::spawn(accepting.run()) }
    }
}

/// Whether the server is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopping {
    No,
    /// Read no more requests, answer those that are in work, as long as this lasts.
    Within(Duration),
}

/// A running server. Dropping it stops reading; [`Server::stop`] also waits.
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<Stopping>,
    traffic: Arc<Traffic>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What went through it.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// Takes no more connections or requests, gives those in work `grace` to be answered, and closes the rest.
    pub async fn stop(self, grace: Duration) {
        self.stop.send_replace(Stopping::Within(grace));
        if let Err(error) = self.accepting.await {
            tracing::error!(%error, "the listener broke off");
        }
    }
}

/// The task that owns all connections.
struct Accepting<S: Store> {
    listener: TcpListener,
    admission: Arc<Admission>,
    broker: Arc<Broker<S>>,
    traffic: Arc<Traffic>,
    stopping: watch::Receiver<Stopping>,
    connections: JoinSet<()>,
}

/// How long to wait when the system gives no more sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl<S: Store> Accepting<S> {
    async fn run(mut self) {
        loop {
            // Every branch may be dropped without loss: accept and join_next are cancel safe.
            tokio::select! {
                _ = self.stopping.changed() => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.take(stream, peer),
                    Err(error) => {
                        tracing::warn!(%error, "no connection could be taken");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = self.connections.join_next() => note_end(ended),
            }
        }
        drop(self.listener);
        let Stopping::Within(grace) = *self.stopping.borrow() else { return };
        let drained = async {
            while let Some(ended) = self.connections.join_next().await {
                note_end(ended);
            }
        };
        if tokio::time::timeout(grace, drained).await.is_err() {
            self.connections.shutdown().await;
        }
    }

    fn take(&mut self, stream: TcpStream, peer: SocketAddr) {
        let Some(admitted) = self.admission.admit(peer.ip()) else {
            self.traffic.refused();
            tracing::warn!(%peer, "closed a connection: there are too many");
            return;
        };
        let (broker, traffic, stopping) = (Arc::clone(&self.broker), Arc::clone(&self.traffic), self.stopping.clone());
        self.connections.spawn(async move {
            traffic.opened();
            if let Err(reason) = connection::serve(stream, peer, broker, &traffic, stopping).await {
                tracing::warn!(%peer, %reason, "closed a connection");
            }
            traffic.closed();
            drop(admitted);
        });
    }
}

fn note_end(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection broke off");
    }
}

#[cfg(all(test, feature = "embedded"))]
pub(crate) mod trial;

#[cfg(all(test, feature = "embedded"))]
#[path = "server_tests.rs"]
mod tests;
