//! The connections of the pages: how many, for how long, and who goes when another one comes.
//!
//! Invariant: finitely many, each with one request in work, each ended by a deadline; whoever sends half a request is closed
//! first when there are too many, so that a probe is always answered. Not here: what the pages say, and to whom (`mod.rs`).

use std::collections::VecDeque;
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
    descriptors: Arc<Descriptors>,
    tasks: JoinSet<()>,
    /// In the order in which they came.
    open: VecDeque<OpenConnection>,
    unsaid: u64,
    said: Option<Instant>,
}

struct OpenConnection {
    task: AbortHandle,
    /// Whether a whole request is being answered.
    busy: Arc<AtomicBool>,
    since: Instant,
}

impl Connections {
    pub(super) fn new(descriptors: Arc<Descriptors>) -> Self {
        let max = descriptors.share_of_pages(MAX_CONNECTIONS);
        Self { max, descriptors, tasks: JoinSet::new(), open: VecDeque::new(), unsaid: 0, said: None }
    }

    /// Serves `pages` until it is dropped.
    pub(super) async fn serve(mut self, listener: TcpListener, pages: Router) {
        loop {
            // Both branches may be dropped without loss.
            tokio::select! {
                // One more than there may be, until the one that was closed for it is gone.
                accepted = listener.accept(), if self.tasks.len() <= self.max => match accepted {
                    Ok((stream, _)) => self.take(stream, pages.clone()),
                    Err(error) => {
                        self.descriptors.note(&error);
                        match self.descriptors.with_reserve(|| accept_now(&listener)) {
                            Some(stream) => self.take(stream, pages.clone()),
                            None => {
                                // The system says so also when nobody waits to connect: whoever has just come is not closed.
                                self.close_one(YOUNG);
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

    fn take(&mut self, stream: TcpStream, pages: Router) {
        if self.open.len() >= self.max && !self.close_one(Duration::ZERO) {
            // All of them are being answered: this one can ask again.
            self.closed();
            return;
        }
        let busy = Arc::new(AtomicBool::new(false));
        let task = self.tasks.spawn(answer(stream, pages, Arc::clone(&busy)));
        self.open.push_back(OpenConnection { task, busy, since: Instant::now() });
    }

    /// Closes the oldest one that waits for a request, if it is `age` old; whether there was one.
    fn close_one(&mut self, age: Duration) -> bool {
        let waits = |open: &OpenConnection| !open.busy.load(Ordering::Relaxed) && open.since.elapsed() >= age;
        let Some(at) = self.open.iter().position(waits) else { return false };
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
fn accept_now(listener: &TcpListener) -> Option<TcpStream> {
    match listener.poll_accept(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok((stream, _))) => Some(stream),
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
