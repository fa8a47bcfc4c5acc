//! The connections of the pages: how many, for how long, and who goes when another one comes.
//!
//! Invariant: finitely many, fewer of one address, each with one request in work, each ended by a deadline; whoever sends half a
//! request is closed first when there are too many, so that a probe is always answered. Not here: what the pages say (`mod.rs`).

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, Id, JoinSet};

use crate::descriptors::Descriptors;

/// How many connections there may be, where the system gives enough descriptors.
const MAX_CONNECTIONS: usize = 64;
/// One of so many is left to other addresses.
const LEFT_TO_OTHERS: usize = 4;
/// How long the head of a request may take, and a connection may be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long a connection may live; then it takes no further request.
const CONNECTION_LIVES: Duration = Duration::from_secs(120);
/// How long the last answer of a connection may take to be read.
const LAST_ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long a connection is left alone when descriptors lack: a request comes at once.
const YOUNG: Duration = Duration::from_secs(2);
/// How long to wait when the system gives no more sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The least time between two lines about closed connections.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// All connections of the pages.
pub(super) struct Connections {
    max: usize,
    max_of_one: usize,
    descriptors: Arc<Descriptors>,
    tasks: JoinSet<()>,
    /// In the order in which they came.
    open: VecDeque<OpenConnection>,
    unsaid: u64,
    said: Option<Instant>,
}

struct OpenConnection {
    task: AbortHandle,
    from: IpAddr,
    /// Whether a whole request is being answered.
    busy: Arc<AtomicBool>,
    since: Instant,
}

impl Connections {
    pub(super) fn new(descriptors: Arc<Descriptors>) -> Self {
        let max = descriptors.share_of_pages(MAX_CONNECTIONS);
        let max_of_one = max - (max / LEFT_TO_OTHERS).max(1);
        Self { max, max_of_one, descriptors, tasks: JoinSet::new(), open: VecDeque::new(), unsaid: 0, said: None }
    }

    /// Serves `pages` until it is dropped.
    pub(super) async fn serve(mut self, listener: TcpListener, pages: Router) {
        loop {
            // Both branches may be dropped without loss.
            tokio::select! {
                // One more than there may be, until the one that was closed for it is gone.
                accepted = listener.accept(), if self.tasks.len() <= self.max => match accepted {
                    Ok((stream, from)) => self.take(stream, from, pages.clone()),
                    Err(error) => {
                        self.descriptors.note(&error);
                        match self.descriptors.with_reserve(|| accept_now(&listener)) {
                            Some((stream, from)) => self.take(stream, from, pages.clone()),
                            None => {
                                // The system says so also when nobody waits to connect: whoever has just come is not closed.
                                self.close_one(YOUNG, None);
                                tokio::time::sleep(ACCEPT_PAUSE).await;
                            }
                        }
                    }
                },
                Some(ended) = self.tasks.join_next_with_id() => {
                    let id = ended.map_or_else(|error| error.id(), |(id, ())| id);
                    self.forget(id);
                }
            }
        }
    }

    fn take(&mut self, stream: TcpStream, from: SocketAddr, pages: Router) {
        let from = from.ip().to_canonical();
        let has_room = if self.of(from) >= self.max_of_one {
            self.close_one(Duration::ZERO, Some(from))
        } else {
            self.open.len() < self.max || self.close_one(Duration::ZERO, None)
        };
        if !has_room {
            // All of them are being answered: this one can ask again.
            self.closed();
            return;
        }
        let busy = Arc::new(AtomicBool::new(false));
        let task = self.tasks.spawn(answer(stream, pages, Arc::clone(&busy)));
        self.open.push_back(OpenConnection { task, from, busy, since: Instant::now() });
    }

    /// How many there are of one address.
    fn of(&self, from: IpAddr) -> usize {
        self.open.iter().filter(|open| open.from == from).count()
    }

    /// Closes one that waits for a request, if it is `age` old: the oldest one of the address, or of whichever address has most;
    /// whether there was one.
    fn close_one(&mut self, age: Duration, of: Option<IpAddr>) -> bool {
        let may_go = |open: &OpenConnection| {
            !open.busy.load(Ordering::Relaxed)
                && open.since.elapsed() >= age
                && of.is_none_or(|address| open.from == address)
        };
        let waiting = self.open.iter().enumerate().filter(|(_, open)| may_go(open));
        let Some((at, _)) = waiting.min_by_key(|(_, open)| Reverse(self.of(open.from))) else { return false };
        if let Some(oldest) = self.open.remove(at) {
            oldest.task.abort();
            self.closed();
        }
        true
    }

    fn forget(&mut self, id: Id) {
        self.open.retain(|open| open.task.id() != id);
    }

    /// Counts, and says it now and then: a flood of connections must not be a flood of lines.
    fn closed(&mut self) {
        self.descriptors.page_closed();
        self.unsaid += 1;
        if self.said.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
            tracing::warn!(max = self.max, closed = self.unsaid, "closed connections to the pages: there are too many");
            (self.unsaid, self.said) = (0, Some(Instant::now()));
        }
    }
}

/// Whoever waits to connect.
fn accept_now(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.poll_accept(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(accepted)) => Some(accepted),
        Poll::Ready(Err(_)) | Poll::Pending => None,
    }
}

/// Answers what comes over one connection, until it ends or has lived long enough.
async fn answer(stream: TcpStream, pages: Router, busy: Arc<AtomicBool>) {
    let pages = TowerToHyperService::new(pages);
    let service = service_fn(move |request: Request<Incoming>| {
        busy.store(true, Ordering::Relaxed);
        let (answer, busy) = (pages.call(request), Arc::clone(&busy));
        async move {
            let answer = answer.await;
            busy.store(false, Ordering::Relaxed);
            answer
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(HEAD_BYTES_MAX);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    // How a peer ends its connection is its own affair.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = tokio::time::sleep(CONNECTION_LIVES) => connection.as_mut().graceful_shutdown(),
    }
    drop(tokio::time::timeout(LAST_ANSWER_WITHIN, connection).await);
}
