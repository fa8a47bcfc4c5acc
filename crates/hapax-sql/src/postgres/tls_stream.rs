//! rustls as the driver wants it: the handshake, the stream, and the channel binding of SCRAM.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::SupportedCipherSuite;
use tokio_rustls::rustls::crypto::hash::Hash;
use tokio_rustls::rustls::crypto::ring::cipher_suite;
use tokio_rustls::rustls::pki_types::{InvalidDnsNameError, ServerName};

/// Makes a handshake for each host.
#[derive(Clone)]
pub(super) struct Handshakes(pub(super) Arc<ClientConfig>);

/// The handshake with one host. A socket in the file system has no name, and never gets as far as the handshake.
pub(super) struct Handshake {
    config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

/// The encrypted stream.
pub(super) struct Encrypted<S>(client::TlsStream<S>);

impl<S> MakeTlsConnect<S> for Handshakes
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, InvalidDnsNameError> {
        let name = match host {
            "" => None,
            host => Some(ServerName::try_from(host.to_owned())?),
        };
        Ok(Handshake { config: Arc::clone(&self.0), name })
    }
}

impl<S> TlsConnect<S> for Handshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = self.name.ok_or_else(|| io::Error::other("a Unix socket has no name for TLS"))?;
            Ok(Encrypted(TlsConnector::from(self.config).connect(name, stream).await?))
        })
    }
}

impl<S> TlsStream for Encrypted<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    fn channel_binding(&self) -> ChannelBinding {
        let chain = self.0.get_ref().1.peer_certificates();
        match chain.and_then(|chain| chain.first()).and_then(|certificate| end_point(certificate)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// `tls-server-end-point` (RFC 5929): the certificate, hashed as its own signature was, but never weaker than SHA-256.
/// None for algorithms whose hash is not at hand (SHA-512, Ed25519): then SCRAM runs without channel binding.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let hash = match signature_algorithm(certificate)? {
        // RSA with MD5, SHA-1, SHA-256; ECDSA with SHA-1, SHA-256.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04 | 0x05 | 0x0b]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02] => hash_of(cipher_suite::TLS13_AES_128_GCM_SHA256)?,
        // RSA and ECDSA with SHA-384.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03] => {
            hash_of(cipher_suite::TLS13_AES_256_GCM_SHA384)?
        }
        _ => return None,
    };
    Some(hash.hash(certificate).as_ref().to_vec())
}

fn hash_of(suite: SupportedCipherSuite) -> Option<&'static dyn Hash> {
    match suite {
        SupportedCipherSuite::Tls13(suite) => Some(suite.common.hash_provider),
        SupportedCipherSuite::Tls12(_) => None,
    }
}

/// The object id in `Certificate ::= SEQUENCE { tbs, SEQUENCE { OBJECT IDENTIFIER, … }, … }`.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_ID: u8 = 0x06;
    let (inside, _) = element(certificate, SEQUENCE)?;
    let (_, after_tbs) = element(inside, SEQUENCE)?;
    let (algorithm, _) = element(after_tbs, SEQUENCE)?;
    element(algorithm, OBJECT_ID).map(|(id, _)| id)
}

/// One element in DER form with this tag: its content, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    if found != tag {
        return None;
    }
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let digits = usize::from(first & 0x7f);
        if digits == 0 || digits > 4 {
            return None;
        }
        let (length, rest) = rest.split_at_checked(digits)?;
        (length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)), rest)
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: broken certificates give no binding and no panic. Method: every cut of a real one, and rubbish.
    #[test]
    fn a_broken_certificate_gives_no_channel_binding() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let bytes: &[u8] = made.cert.der();
        assert_eq!(end_point(bytes).map(|hash| hash.len()), Some(32));
        for end in 0..bytes.len() {
            assert_eq!(end_point(&bytes[..end]), None, "{end}");
        }
        assert_eq!(end_point(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0x30]), None);
        assert_eq!(end_point(&[0x30, 0x80]), None);
    }
}
