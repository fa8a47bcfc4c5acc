//! A proxy that loses answers: the broker has done what it was asked, and the client never hears of it.
//!
//! Reads: a request's API and number, a Metadata answer's brokers, which it replaces by itself. Invariant: requests reach
//! the broker whole; only answers of Produce are lost, with the connection that waits for them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, MetadataResponse};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// Every so manieth answer of Produce is lost, and so many in all.
const EVERY: u32 = 4;
const LOST_MAX: u32 = 4;

/// A running proxy; dropping it closes it and its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    lost: Arc<AtomicU32>,
    _runtime: tokio::runtime::Runtime,
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    broker: SocketAddr,
    address: SocketAddr,
    answered: AtomicU32,
    lost: Arc<AtomicU32>,
}

/// Requests under way on one connection: number → API and version.
type Asked = Arc<Mutex<HashMap<i32, (i16, i16)>>>;

impl Proxy {
    /// Starts a proxy before `broker`, on a thread of its own.
    ///
    /// # Errors
    /// If the system gives no port.
    pub fn start(broker: SocketAddr) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let lost = Arc::new(AtomicU32::new(0));
        let shared = Arc::new(Shared { broker, address, answered: AtomicU32::new(0), lost: Arc::clone(&lost) });
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                // However a connection ends, the client sees that it ended.
                tokio::spawn(async move { drop(connect(client, shared).await) });
            }
        });
        Ok(Self { address, lost, _runtime: runtime })
    }

    /// Where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many answers were lost so far.
    #[must_use]
    pub fn lost(&self) -> u32 {
        self.lost.load(Ordering::Relaxed)
    }
}

async fn connect(client: TcpStream, shared: Arc<Shared>) -> Result<()> {
    let broker = TcpStream::connect(shared.broker).await?;
    client.set_nodelay(true)?;
    broker.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    let asked = Asked::default();
    // Whichever direction ends first takes the other with it: both sockets close.
    tokio::select! {
        ended = requests(from_client, to_broker, Arc::clone(&asked)) => ended,
        ended = answers(from_broker, to_client, asked, shared) => ended,
    }
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, asked: Asked) -> Result<()> {
    loop {
        let frame = read(&mut from).await?;
        let mut head = frame.get(..8).context("a request without a head")?;
        let (key, version, number) = (head.get_i16(), head.get_i16(), head.get_i32());
        asked.lock().unwrap_or_else(PoisonError::into_inner).insert(number, (key, version));
        write(&mut to, &frame).await?;
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, asked: Asked, shared: Arc<Shared>) -> Result<()> {
    loop {
        let frame = read(&mut from).await?;
        let number = frame.get(..4).context("an answer without a number")?.get_i32();
        let known = asked.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        match known {
            Some((key, _)) if key == ApiKey::Produce as i16 && shared.loses() => return Ok(()),
            Some((key, version)) if key == ApiKey::Metadata as i16 => {
                write(&mut to, &shared.ourselves(frame, version)?).await?;
            }
            _ => write(&mut to, &frame).await?,
        }
    }
}

impl Shared {
    fn loses(&self) -> bool {
        let answered = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
        let loses = answered.is_multiple_of(EVERY) && answered <= EVERY * LOST_MAX;
        self.lost.fetch_add(u32::from(loses), Ordering::Relaxed);
        loses
    }

    /// A Metadata answer whose brokers are all this proxy.
    fn ourselves(&self, mut frame: Bytes, version: i16) -> Result<Bytes> {
        let head = if MetadataResponse::header_version(version) > 0 { 5 } else { 4 };
        let mut out = BytesMut::from(&frame.split_to(head)[..]);
        let mut metadata = MetadataResponse::decode(&mut frame, version)?;
        for broker in &mut metadata.brokers {
            broker.host = StrBytes::from_string(self.address.ip().to_string());
            broker.port = i32::from(self.address.port());
        }
        metadata.encode(&mut out, version)?;
        Ok(out.freeze())
    }
}

async fn read(from: &mut OwnedReadHalf) -> Result<Bytes> {
    let length = from.read_i32().await?;
    ensure!((0..64 << 20).contains(&length), "a frame of {length} bytes");
    let mut frame = vec![0; usize::try_from(length)?];
    from.read_exact(&mut frame).await?;
    Ok(frame.into())
}

async fn write(to: &mut OwnedWriteHalf, frame: &[u8]) -> Result<()> {
    let mut whole = BytesMut::with_capacity(frame.len() + 4);
    whole.put_i32(i32::try_from(frame.len())?);
    whole.put_slice(frame);
    to.write_all(&whole).await?;
    Ok(())
}
