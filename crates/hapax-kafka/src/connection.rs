//! One connection: frames out, frames in, in order.
//!
//! Reads and writes: one socket. Invariant: an answer is read whole by whoever its request belongs to, or the connection is
//! spent; so a call that was given up can never be mistaken for another's. Not here: who leads what (`cluster`).

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, RequestHeader, ResponseHeader, api_versions_response::ApiVersion,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Message, Request, StrBytes, VersionRange};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::error::{ClientError, check};
use super::layout;

/// What a client may be told.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the client calls itself.
    pub client_id: String,
    /// How long connecting may take.
    pub connect: Duration,
    /// How long an answer may take.
    pub answer: Duration,
    /// The largest answer.
    pub max_frame: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            client_id: "hapax".to_owned(),
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(30),
            max_frame: 128 << 20,
        }
    }
}

/// A request that was sent and whose answer is still to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Ticket {
    correlation: i32,
    version: i16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Usable,
    /// A frame is half written or half read, or the peer is gone.
    Spent,
}

/// One connection to one broker.
#[derive(Debug)]
pub struct Connection {
    address: String,
    stream: TcpStream,
    options: Options,
    correlation: i32,
    served: HashMap<i16, VersionRange>,
    state: State,
}

impl Connection {
    /// Connects, and asks which versions the broker serves.
    ///
    /// # Errors
    /// If it cannot be reached, or does not answer as a broker.
    pub async fn connect(address: &str, options: &Options) -> Result<Self, ClientError> {
        let mut connection = Self::open(address, options).await?;
        let answer = connection.ask_versions().await?;
        let range = |api: &ApiVersion| VersionRange { min: api.min_version, max: api.max_version };
        connection.served = answer.api_keys.iter().map(|api| (api.api_key, range(api))).collect();
        Ok(connection)
    }

    /// Connects, and says nothing.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub async fn open(address: &str, options: &Options) -> Result<Self, ClientError> {
        let unreachable = |source| ClientError::Unreachable { address: address.to_owned(), source };
        let connecting = timeout(options.connect, TcpStream::connect(address)).await;
        let stream = connecting.map_err(|_| unreachable(io::ErrorKind::TimedOut.into()))?.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let (address, options) = (address.to_owned(), options.clone());
        Ok(Self { address, stream, options, correlation: 0, served: HashMap::new(), state: State::Usable })
    }

    /// In the newest version that we know; a broker that does not know it answers in version 0, with error 35.
    async fn ask_versions(&mut self) -> Result<ApiVersionsResponse, ClientError> {
        let software = |text: &'static str| StrBytes::from_static_str(text);
        let request = ApiVersionsRequest::default()
            .with_client_software_name(software("hapax"))
            .with_client_software_version(software(env!("CARGO_PKG_VERSION")));
        let newest = ApiVersionsRequest::VERSIONS.max;
        let ticket = self.begin(newest, &request).await?;
        let frame = self.answer_frame(ticket).await?;
        let refused = frame.get(0..2) == Some([0, 35].as_slice());
        let answer = if refused {
            self.call_at(0, &request).await?
        } else {
            self.decode(ApiVersionsRequest::KEY, frame, newest)?
        };
        check(answer.error_code, || format!("{} was asked for its versions", self.address))?;
        Ok(answer)
    }

    /// Where it leads to.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether it can still be used.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.state == State::Usable
    }

    /// The versions of an API that the broker says it serves.
    #[must_use]
    pub fn served(&self, api: i16) -> Option<VersionRange> {
        self.served.get(&api).copied()
    }

    /// The newest version, at most `newest`, that both sides know.
    ///
    /// # Errors
    /// If there is none.
    pub fn version<R: Request>(&self, newest: i16) -> Result<i16, ClientError> {
        let ours = R::VERSIONS.intersect(&VersionRange { min: i16::MIN, max: newest });
        let both = self.served(R::KEY).map(|theirs| theirs.intersect(&ours)).filter(|both| !both.is_empty());
        let none = || ClientError::Unsupported { address: self.address.clone(), api: R::KEY, version: -1 };
        both.map(|both| both.max).ok_or_else(none)
    }

    /// Sends a request in the newest version that both sides know, and reads its answer.
    ///
    /// # Errors
    /// If it cannot be sent, or no answer comes.
    pub async fn call<R: Request>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        let version = self.version::<R>(i16::MAX)?;
        self.call_at(version, request).await
    }

    /// Sends a request in this version, whatever the broker says it serves, and reads its answer.
    ///
    /// # Errors
    /// If it cannot be sent, or no answer comes.
    pub async fn call_at<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response, ClientError> {
        let ticket = self.begin(version, request).await?;
        self.finish::<R>(ticket).await
    }

    /// Sends a request without waiting. Answers come in the order of the requests: finish them in that order.
    ///
    /// # Errors
    /// If it cannot be sent.
    pub async fn begin<R: Request>(&mut self, version: i16, request: &R) -> Result<Ticket, ClientError> {
        self.correlation = self.correlation.wrapping_add(1);
        let ticket = Ticket { correlation: self.correlation, version };
        let unspeakable = |reason: String| ClientError::Unspeakable { api: R::KEY, version, reason };
        let frame = encode(ticket, &self.options.client_id, request).map_err(unspeakable)?;
        self.send_bytes(&frame).await?;
        Ok(ticket)
    }

    /// Reads the answer of a request that was begun.
    ///
    /// # Errors
    /// If no answer comes, or another's.
    pub async fn finish<R: Request>(&mut self, ticket: Ticket) -> Result<R::Response, ClientError> {
        let mut frame = self.receive_bytes().await?;
        let header = R::Response::header_version(ticket.version);
        let found = ResponseHeader::decode(&mut frame, header).map_err(|error| self.malformed(&error))?;
        self.expect_correlation(found.correlation_id, ticket)?;
        self.decode(R::KEY, frame, ticket.version)
    }

    /// An answer without its header, for who must look before decoding. The header is that of version 0.
    async fn answer_frame(&mut self, ticket: Ticket) -> Result<Bytes, ClientError> {
        let mut frame = self.receive_bytes().await?;
        let found = ResponseHeader::decode(&mut frame, 0).map_err(|error| self.malformed(&error))?;
        self.expect_correlation(found.correlation_id, ticket)?;
        Ok(frame)
    }

    fn expect_correlation(&mut self, found: i32, ticket: Ticket) -> Result<(), ClientError> {
        if found == ticket.correlation {
            return Ok(());
        }
        self.state = State::Spent;
        Err(self.malformed(&format!("it is the answer to request {found}, not to {}", ticket.correlation)))
    }

    fn decode<A: Decodable>(&mut self, api: i16, mut frame: Bytes, version: i16) -> Result<A, ClientError> {
        layout::check(api, version, &frame).map_err(|reason| self.malformed(&reason))?;
        let answer = A::decode(&mut frame, version).map_err(|error| self.malformed(&error))?;
        if frame.is_empty() { Ok(answer) } else { Err(self.malformed(&format!("{} bytes are left", frame.len()))) }
    }

    fn malformed(&self, reason: &dyn std::fmt::Display) -> ClientError {
        ClientError::Malformed { address: self.address.clone(), reason: reason.to_string() }
    }

    /// Writes these bytes as they are: a frame with its length in front, or whatever a test wants to say.
    ///
    /// # Errors
    /// If they cannot be written in time.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.spend()?;
        let written = timeout(self.options.answer, self.stream.write_all(bytes)).await;
        self.settle(written)
    }

    /// Reads one frame, without its length.
    ///
    /// # Errors
    /// If none comes in time, or one that is too large.
    pub async fn receive_bytes(&mut self) -> Result<Bytes, ClientError> {
        self.spend()?;
        let read = timeout(self.options.answer, read_frame(&mut self.stream, self.options.max_frame)).await;
        self.settle(read)
    }

    /// From here until [`Self::settle`] a frame is half done: whoever is cancelled meanwhile leaves a spent connection.
    fn spend(&mut self) -> Result<(), ClientError> {
        match std::mem::replace(&mut self.state, State::Spent) {
            State::Usable => Ok(()),
            State::Spent => Err(ClientError::Spent { address: self.address.clone() }),
        }
    }

    fn settle<T>(&mut self, done: Result<io::Result<T>, tokio::time::error::Elapsed>) -> Result<T, ClientError> {
        let address = || self.address.clone();
        let value = done.map_err(|_| ClientError::Late { address: address() })?;
        let value = value.map_err(|source| ClientError::Lost { address: address(), source })?;
        self.state = State::Usable;
        Ok(value)
    }
}

async fn read_frame(stream: &mut TcpStream, max: usize) -> io::Result<Bytes> {
    let length = stream.read_i32().await?;
    let fits = usize::try_from(length).ok().filter(|length| *length <= max);
    let Some(length) = fits else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
    };
    // Grows with what arrives: a length alone does not take memory.
    let mut frame = BytesMut::with_capacity(length.min(1 << 16));
    let mut limited = stream.take(length as u64);
    while frame.len() < length {
        if limited.read_buf(&mut frame).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(frame.freeze())
}

/// The whole frame, length in front.
fn encode<R: Request>(ticket: Ticket, client_id: &str, request: &R) -> Result<Bytes, String> {
    let version = ticket.version;
    if !(R::VERSIONS.min..=R::VERSIONS.max).contains(&version) {
        return Err(format!("this client knows versions {}", R::VERSIONS));
    }
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(ticket.correlation)
        .with_client_id(Some(StrBytes::from_string(client_id.to_owned())));
    let key = ApiKey::try_from(R::KEY).map_err(|()| "there is no such API".to_owned())?;
    if !layout::is_known(R::KEY) {
        return Err("this client does not know how its answers lie in their bytes".to_owned());
    }
    let mut frame = BytesMut::new();
    frame.put_i32(0);
    header.encode(&mut frame, key.request_header_version(version)).map_err(|error| error.to_string())?;
    request.encode(&mut frame, version).map_err(|error| error.to_string())?;
    let length = i32::try_from(frame.len() - 4).map_err(|_| "it is too large".to_owned())?;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    Ok(frame.freeze())
}
