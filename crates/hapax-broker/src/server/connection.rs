//! One connection: a part that reads requests and begins them, a part that writes answers in the order of the requests.
//!
//! Invariant: at most `requests_in_work` requests are between the two; when they are, the socket is not read. A request that
//! cannot be read ends the connection after everything before it was answered.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use kafka_protocol::messages::ApiKey;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::api::{self, Answer, Close, Reply};
use crate::broker::Broker;
use crate::server::room::{Room, Taken};
use crate::server::{Stopping, Traffic};
use crate::store::Store;
use crate::wire::{FrameError, FrameReader, Limits, Request};

/// How long requests in work are still worked on when their client has left.
const AFTER_EOF: Duration = Duration::from_secs(5);
/// Answers that are ready go out in one write, up to so many bytes.
const WRITE_TOGETHER: usize = 64 * 1024;
/// Bytes that a peer must take while others wait for the memory of its answer, in the time that an answer may stand still.
const PACE: usize = 1 << 20;

/// Serves one connection until it ends; the error is for the log.
pub(super) async fn serve<S: Store>(
    mut stream: TcpStream,
    peer: SocketAddr,
    broker: Arc<Broker<S>>,
    traffic: &Traffic,
    room: Room,
    stopping: watch::Receiver<Stopping>,
) -> Result<(), Close> {
    stream.set_nodelay(true).map_err(|error| Close(error.to_string()))?;
    let (read, write) = stream.split();
    let limits = Limits { produce: broker.config.max_frame, other: broker.config.max_small_frame };
    // One more is in the writing part's hand.
    let (queue, answers) = mpsc::channel(broker.config.requests_in_work.saturating_sub(1).max(1));
    let in_work = AtomicUsize::new(0);
    let frames = FrameReader::new(read, limits);
    let reader = Reader { frames, peer, broker: &broker, traffic, room, stopping, queue, in_work: &in_work };
    let mut reading = pin!(reader.run());
    let writer = Writer { socket: write, traffic, in_work: &in_work, broker: &broker };
    let mut writing = pin!(writer.run(answers));
    tokio::select! {
        written = &mut writing => written,
        read = &mut reading => {
            let written = match read {
                Ok(Ended::ByUs) => writing.await,
                Ok(Ended::ByPeer) | Err(_) => timeout(AFTER_EOF, writing).await.unwrap_or(Ok(())),
            };
            read.and(written)
        }
    }
}

/// A request on its way to its answer.
struct InWork {
    answer: Answer,
    /// Room that its frame takes until it was answered.
    taken: Option<Taken>,
}

/// Who ended a connection between two frames.
#[derive(Debug, Clone, Copy)]
enum Ended {
    ByPeer,
    ByUs,
}

struct Reader<'a, R, S> {
    frames: FrameReader<R>,
    peer: SocketAddr,
    broker: &'a Arc<Broker<S>>,
    traffic: &'a Traffic,
    room: Room,
    stopping: watch::Receiver<Stopping>,
    queue: mpsc::Sender<InWork>,
    in_work: &'a AtomicUsize,
}

impl<R: AsyncRead + Unpin, S: Store> Reader<'_, R, S> {
    async fn run(mut self) -> Result<Ended, Close> {
        loop {
            if let Some(ended) = self.wait().await? {
                return Ok(ended);
            }
            let (frame, taken) = match self.frame().await {
                Ok(frame) => frame,
                Err(FrameError::Socket(error)) if is_departure(&error) => return Ok(Ended::ByPeer),
                Err(error) => return Err(Close(error.to_string())),
            };
            let bytes = frame.len();
            let request = Request::read(frame, self.peer)?;
            self.traffic.request(request.route, bytes);
            self.in_work.fetch_add(1, Ordering::Relaxed);
            // Bytes of Produce are the appender's to bound from here on; other requests keep theirs until their turn.
            let keeps = request.route.key != ApiKey::Produce;
            let answer = api::dispatch(self.broker, request).await;
            let taken = keeps.then_some(taken);
            if self.queue.send(InWork { answer, taken }).await.is_err() {
                return Ok(Ended::ByUs); // the writing part has ended, and knows why
            }
        }
    }

    /// The frame that has begun, with room for it. Waiting for room does not count against the peer.
    async fn frame(&mut self) -> Result<(Bytes, Taken), FrameError> {
        let late = |_| FrameError::Late;
        let deadline = self.broker.config.frame_deadline;
        let length = timeout(deadline, self.frames.length()).await.map_err(late)??;
        let taken = self.room.take(length).await;
        let frame = timeout(deadline, self.frames.body(length)).await.map_err(late)??;
        Ok((frame, taken))
    }

    /// Waits for a frame to begin; `Some`: none will.
    async fn wait(&mut self) -> Result<Option<Ended>, Close> {
        let idle = self.broker.config.idle;
        loop {
            let begun = tokio::select! {
                biased;
                _ = self.stopping.wait_for(|stopping| *stopping != Stopping::No) => return Ok(Some(Ended::ByUs)),
                begun = timeout(idle, self.frames.begun()) => begun,
            };
            match begun {
                Ok(Ok(true)) => return Ok(None),
                Ok(Ok(false)) => return Ok(Some(Ended::ByPeer)),
                Ok(Err(FrameError::Socket(error))) if is_departure(&error) => return Ok(Some(Ended::ByPeer)),
                Ok(Err(error)) => return Err(Close(error.to_string())),
                // A request in work is not idleness, a group may wait long for its members.
                Err(_) if self.in_work.load(Ordering::Relaxed) > 0 => {}
                Err(_) => {
                    tracing::debug!(peer = %self.peer, "closed an idle connection");
                    return Ok(Some(Ended::ByUs));
                }
            }
        }
    }
}

/// A peer that just goes is no news.
fn is_departure(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted
    )
}

struct Writer<'a, W, S> {
    socket: W,
    traffic: &'a Traffic,
    in_work: &'a AtomicUsize,
    broker: &'a Broker<S>,
}

impl<W: AsyncWrite + Unpin, S: Store> Writer<'_, W, S> {
    async fn run(mut self, mut answers: mpsc::Receiver<InWork>) -> Result<(), Close> {
        let mut next = answers.recv().await;
        while let Some(InWork { answer, taken }) = next.take() {
            let mut out = answer.await?.unwrap_or_default();
            drop(taken);
            let mut answered = 1;
            let mut failed = None;
            // What is ready already goes along: five produces in flight are answered by one commit.
            while out.frame.len() < WRITE_TOGETHER
                && let Ok(mut follower) = answers.try_recv()
            {
                match (&mut follower.answer).now_or_never() {
                    Some(Ok(ready)) => join(&mut out, ready),
                    Some(Err(close)) => {
                        failed = Some(close);
                        break;
                    }
                    None => {
                        next = Some(follower);
                        break;
                    }
                }
                answered += 1;
            }
            if let Wrote::PeerLeft = self.write(out).await? {
                return Ok(());
            }
            self.in_work.fetch_sub(answered, Ordering::Relaxed);
            if let Some(close) = failed {
                return Err(close);
            }
            if next.is_none() {
                next = answers.recv().await;
            }
        }
        Ok(())
    }

    /// Writes until the peer has taken everything. One that takes nothing for as long as it may be idle is left; one that holds
    /// memory that others wait for, sooner.
    async fn write(&mut self, out: Reply) -> Result<Wrote, Close> {
        self.traffic.wrote(out.frame.len());
        let idle = self.broker.config.idle;
        let look = self.broker.config.answer_patience.min(idle);
        let (mut left, mut still) = (&out.frame[..], Duration::ZERO);
        loop {
            let before = left.len();
            match timeout(look, push(&mut self.socket, &mut left)).await {
                Ok(Ok(())) => return Ok(Wrote::All),
                Ok(Err(error)) if is_departure(&error) => return Ok(Wrote::PeerLeft),
                Ok(Err(error)) => return Err(Close(error.to_string())),
                Err(_) => {}
            }
            let taken = before - left.len();
            if taken < PACE && out.share.is_some() && self.broker.answers.is_short() {
                return Err(Close("the peer does not take its answers, and others wait for their memory".to_owned()));
            }
            still = if taken == 0 { still + look } else { Duration::ZERO };
            if still >= idle {
                return Err(Close("the peer does not take its answers".to_owned()));
            }
        }
    }
}

/// Writes `left`, and shortens it by what was written. Cancelling it loses nothing.
async fn push<W: AsyncWrite + Unpin>(socket: &mut W, left: &mut &[u8]) -> io::Result<()> {
    while !left.is_empty() {
        match socket.write(left).await? {
            0 => return Err(io::ErrorKind::BrokenPipe.into()),
            count => *left = &left[count..],
        }
    }
    Ok(())
}

/// What became of a write.
enum Wrote {
    All,
    PeerLeft,
}

/// Answers that go out in one write.
fn join(out: &mut Reply, ready: Option<Reply>) {
    let Some(ready) = ready else { return };
    if out.frame.is_empty() {
        *out = ready;
        return;
    }
    out.frame.extend_from_slice(&ready.frame);
    // Only the last one can have a large share: what is large is not joined by others.
    out.share = ready.share.or(out.share.take());
}
