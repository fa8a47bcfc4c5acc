//! One connection: a request of any version out, its answer in, or the end of the connection.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use kafka_protocol::messages::RequestHeader;
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(240);

/// The broker ended the connection instead of answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended;

/// A connection to a broker.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    correlation: i32,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("nobody listens on {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, correlation: 0 })
    }

    /// Sends a request and decodes its answer.
    ///
    /// # Errors
    /// If the request has no such version, the answer cannot be decoded or leaves bytes over, or none comes.
    pub async fn call<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        match self.ask(version, request).await? {
            Ok(response) => Ok(response),
            Err(Ended) => bail!("the broker closed the connection on API {} version {version}", R::KEY),
        }
    }

    /// The same, where the end of the connection is an answer, too.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub async fn ask<R: Request>(&mut self, version: i16, request: &R) -> Result<Result<R::Response, Ended>> {
        let mut body = BytesMut::new();
        request.encode(&mut body, version).with_context(|| format!("API {} version {version}", R::KEY))?;
        let header = R::header_version(version);
        let answer = self.exchange(R::KEY, version, header, &body).await?;
        let Ok(mut answer) = answer else { return Ok(Err(Ended)) };
        if R::Response::header_version(version) > 0 {
            ensure!(answer.has_remaining() && answer.get_u8() == 0, "the answer's header has tagged fields");
        }
        let response = R::Response::decode(&mut answer, version)
            .with_context(|| format!("the answer of API {} version {version} cannot be decoded", R::KEY))?;
        ensure!(!answer.has_remaining(), "API {} version {version} leaves {} bytes over", R::KEY, answer.remaining());
        Ok(Ok(response))
    }

    /// Sends a body as it stands under a header of the given version; gives all that follows the correlation id.
    ///
    /// # Errors
    /// If no answer comes in time, or one to another question.
    pub async fn exchange(&mut self, key: i16, version: i16, header: i16, body: &[u8]) -> Result<Result<Bytes, Ended>> {
        self.send(key, version, header, body).await?;
        let read = tokio::time::timeout(PATIENCE, self.read_frame()).await;
        let Some(mut answer) = read.with_context(|| format!("API {key} version {version}: no answer"))?? else {
            return Ok(Err(Ended));
        };
        ensure!(answer.remaining() >= 4, "an answer of {} bytes", answer.remaining());
        let correlation = answer.get_i32();
        ensure!(correlation == self.correlation, "answer {correlation} to question {}", self.correlation);
        Ok(Ok(answer))
    }

    async fn send(&mut self, key: i16, version: i16, header: i16, body: &[u8]) -> Result<()> {
        self.correlation += 1;
        let head = RequestHeader::default()
            .with_request_api_key(key)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation)
            .with_client_id(Some(StrBytes::from_static_str("hapax-conform")));
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        head.encode(&mut frame, header)?;
        frame.put_slice(body);
        let length = i32::try_from(frame.len() - 4)?;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.stream.write_all(&frame).await?;
        Ok(())
    }

    async fn read_frame(&mut self) -> Result<Option<Bytes>> {
        let mut length = [0; 4];
        if self.stream.read_exact(&mut length).await.is_err() {
            return Ok(None);
        }
        let length = usize::try_from(i32::from_be_bytes(length)).context("a negative length")?;
        ensure!(length < 64 << 20, "a frame of {length} bytes");
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame).await.context("the broker ended in mid-frame")?;
        Ok(Some(frame.into()))
    }
}
