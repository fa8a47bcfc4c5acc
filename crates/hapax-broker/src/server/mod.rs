//! Sockets: listening, limits, one task per connection, answers in order.
//!
//! Invariant: finitely many connections, each with finitely many requests in work, each ended by a deadline when it says
//! nothing or says it too slowly. Not here: bytes (`wire`), what requests mean (`api`).

mod admission;
mod connection;
mod error;
mod room;
mod traffic;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::broker::Broker;
use crate::store::Store;

use admission::{Admission, affordable};
pub use error::ServeError;
use room::Room;
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
        let room = Room::new(broker.config.max_frame);
        let accepting = Accepting {
            listener: self.socket,
            admission: Admission::new(
                affordable(broker.config.max_connections),
                broker.config.max_connections_per_address,
            ),
            broker,
            traffic: Arc::clone(&traffic),
            room,
            unsaid: Unsaid::default(),
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
    accepting: JoinHandle<()>,
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
    room: Room,
    unsaid: Unsaid,
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
                Some(ended) = self.connections.join_next() => note_end(ended, &self.traffic),
            }
        }
        drop(self.listener);
        let Stopping::Within(grace) = *self.stopping.borrow() else { return };
        let drained = async {
            while let Some(ended) = self.connections.join_next().await {
                note_end(ended, &self.traffic);
            }
        };
        if tokio::time::timeout(grace, drained).await.is_err() {
            self.connections.shutdown().await;
        }
    }

    fn take(&mut self, stream: TcpStream, peer: SocketAddr) {
        let Some(admitted) = self.admission.admit(peer.ip()) else {
            self.traffic.refused();
            self.unsaid.say(peer);
            return;
        };
        let (broker, traffic) = (Arc::clone(&self.broker), Arc::clone(&self.traffic));
        let (room, stopping) = (self.room.clone(), self.stopping.clone());
        self.connections.spawn(async move {
            let open = traffic.opened();
            if let Err(reason) = connection::serve(stream, peer, broker, &traffic, room, stopping).await {
                tracing::warn!(%peer, %reason, "closed a connection");
            }
            drop(open);
            drop(admitted);
        });
    }
}

/// Refusals of which the log has no line yet: a flood of connections must not be a flood of lines.
#[derive(Default)]
struct Unsaid {
    count: u64,
    said: Option<Instant>,
}

impl Unsaid {
    const EVERY: Duration = Duration::from_secs(1);

    fn say(&mut self, peer: SocketAddr) {
        self.count += 1;
        if self.said.is_none_or(|said| said.elapsed() >= Self::EVERY) {
            tracing::warn!(%peer, connections = self.count, "closed connections: there are too many");
            *self = Self { count: 0, said: Some(Instant::now()) };
        }
    }
}

fn note_end(ended: Result<(), JoinError>, traffic: &Traffic) {
    if let Err(error) = ended
        && error.is_panic()
    {
        traffic.panicked();
        tracing::error!(%error, "a connection broke off");
    }
}

#[cfg(all(test, feature = "embedded"))]
mod memory_tests;
#[cfg(all(test, feature = "embedded"))]
pub(crate) mod trial;

#[cfg(all(test, feature = "embedded"))]
#[path = "server_tests.rs"]
mod tests;
