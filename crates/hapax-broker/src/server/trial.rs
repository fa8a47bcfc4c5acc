//! A whole broker on a free port, for tests: embedded store, sockets, the small client.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader};
use kafka_protocol::protocol::{Encodable, StrBytes};
use tempfile::TempDir;

use crate::broker::Broker;
use crate::config::BrokerConfig;
use crate::patience::LIMIT;
use crate::server::{Listener, Server};
use crate::store::Address;
use crate::store::embedded::{Embedded, EmbeddedOptions};
use hapax_kafka::{Connection, Options};

/// A broker that serves until it is dropped.
pub(crate) struct Trial {
    pub(crate) broker: Arc<Broker<Embedded>>,
    pub(crate) server: Server,
    _directory: TempDir,
}

impl Trial {
    /// A broker with Kafka's defaults.
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// A broker that was told something.
    pub(crate) async fn with(change: impl FnOnce(&mut BrokerConfig)) -> Self {
        let mut config = BrokerConfig { initial_rebalance_delay: Duration::ZERO, ..BrokerConfig::default() };
        change(&mut config);
        let directory = tempfile::tempdir().expect("a directory");
        let store = Embedded::open(directory.path(), EmbeddedOptions::default()).expect("opens");
        let broker = Broker::new(Arc::new(store), config);
        let listener = Listener::bind("127.0.0.1:0").await.expect("a free port");
        let address = Address { host: "127.0.0.1".to_owned(), port: listener.address().port() };
        broker.start(address).await.expect("starts");
        let server = listener.serve(Arc::clone(&broker));
        Self { broker, server, _directory: directory }
    }

    pub(crate) fn options() -> Options {
        Options { answer: LIMIT, connect: LIMIT, ..Options::default() }
    }

    /// A client that knows what is served.
    pub(crate) async fn connect(&self) -> Connection {
        Connection::connect(&self.server.address().to_string(), &Self::options()).await.expect("connects")
    }

    /// A client that has said nothing yet.
    pub(crate) async fn open(&self) -> Connection {
        Connection::open(&self.server.address().to_string(), &Self::options()).await.expect("connects")
    }
}

/// A frame with any header and any body.
pub(crate) fn frame(key: ApiKey, version: i16, correlation_id: i32, body: &[u8]) -> Bytes {
    let header = RequestHeader::default()
        .with_request_api_key(key as i16)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_static_str("trial")));
    let mut out = BytesMut::new();
    out.put_i32(0);
    header.encode(&mut out, key.request_header_version(version)).expect("encodes");
    out.put_slice(body);
    let length = i32::try_from(out.len() - 4).expect("a small frame");
    out[..4].copy_from_slice(&length.to_be_bytes());
    out.freeze()
}
