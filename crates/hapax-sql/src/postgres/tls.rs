//! TLS as `sslmode` asks for it: rustls with ring, the authorities of a file or of the system, a client certificate.
//!
//! Invariant: `verify-ca` and `verify-full` never connect without a verified certificate. Not here: whether the server
//! offers TLS at all (the driver asks it), the address (`url`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::tls_verify::{AnyCertificate, AuthorityOnly};
use super::url::{ClientFiles, TlsMode, TlsRoots, TlsSettings};

/// Why TLS could not be prepared, before any connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("{parameter}: {} cannot be read: {message}; correct the path, or give this user the right to read it", path.display())]
    Unreadable {
        /// Which parameter of the address names it.
        parameter: &'static str,
        /// The file, absolute.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// A file that holds something else.
    #[error("{parameter}: {} holds no {wanted} in PEM form: {message}", path.display())]
    NotPem {
        /// Which parameter of the address names it.
        parameter: &'static str,
        /// The file, absolute.
        path: PathBuf,
        /// What should be in it.
        wanted: &'static str,
        /// What was found.
        message: String,
    },
    /// The client certificate and its key do not fit.
    #[error("{} and {} cannot be used together: {message}; give the certificate and the key that belongs to it", certificate.display(), key.display())]
    Client {
        /// `sslcert`.
        certificate: PathBuf,
        /// `sslkey`.
        key: PathBuf,
        /// What rustls said.
        message: String,
    },
    /// The system has no store of authorities.
    #[error(
        "the system's store of certificate authorities is empty ({message}); install ca-certificates, or name a file: sslrootcert=/path/ca.pem"
    )]
    NoSystemRoots {
        /// What went wrong, if anything did.
        message: String,
    },
    /// rustls refuses the settings.
    #[error("TLS cannot be used: {message}")]
    Failed {
        /// What rustls said.
        message: String,
    },
}

impl TlsError {
    /// The error's page: docs/errors/HX4207.md.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "HX4207"
    }
}

/// What the handshake needs. Reads the files each time, on a blocking thread: a renewed certificate needs no restart.
pub(super) async fn client_config(settings: &TlsSettings) -> Result<Arc<ClientConfig>, TlsError> {
    let settings = settings.clone();
    let reading = tokio::task::spawn_blocking(move || read_config(&settings));
    reading.await.map_err(|error| TlsError::Failed { message: error.to_string() })?
}

fn read_config(settings: &TlsSettings) -> Result<Arc<ClientConfig>, TlsError> {
    // Named, not the process's default: two libraries that each set one would panic.
    let provider = Arc::new(ring::default_provider());
    let verifier = verifier(settings, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Failed { message: error.to_string() })?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &settings.client {
        None => builder.with_no_client_auth(),
        Some(files) => {
            let (chain, key) = client_files(files)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| TlsError::Client {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
                message: error.to_string(),
            })?
        }
    };
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(Arc::new(config))
}

fn verifier(settings: &TlsSettings, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let any = || Ok(Arc::new(AnyCertificate::new(Arc::clone(provider))) as Arc<dyn ServerCertVerifier>);
    let strict = || -> Result<Arc<WebPkiServerVerifier>, TlsError> {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots(&settings.roots)?), Arc::clone(provider))
            .build()
            .map_err(|error| TlsError::Failed { message: error.to_string() })
    };
    match (settings.mode, &settings.roots) {
        (TlsMode::Disable | TlsMode::Prefer, _) | (TlsMode::Require, TlsRoots::Unsaid) => any(),
        (TlsMode::Require, TlsRoots::File(_)) | (TlsMode::VerifyAuthority, _) => {
            Ok(Arc::new(AuthorityOnly::new(strict()?)))
        }
        // The system's authorities sign for anyone: without the name the check would mean nothing.
        (TlsMode::Require, TlsRoots::System) | (TlsMode::VerifyFull, _) => Ok(strict()?),
    }
}

fn roots(roots: &TlsRoots) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    match roots {
        TlsRoots::File(path) => {
            let found = certificates(path, "sslrootcert")?;
            for certificate in found {
                store.add(certificate).map_err(|error| TlsError::NotPem {
                    parameter: "sslrootcert",
                    path: absolute(path),
                    wanted: "certificate of an authority",
                    message: error.to_string(),
                })?;
            }
        }
        TlsRoots::System | TlsRoots::Unsaid => {
            let found = rustls_native_certs::load_native_certs();
            let _counts = store.add_parsable_certificates(found.certs);
            if store.is_empty() {
                let message = found.errors.first().map_or_else(|| "nothing found".to_owned(), ToString::to_string);
                return Err(TlsError::NoSystemRoots { message });
            }
        }
    }
    Ok(store)
}

fn client_files(files: &ClientFiles) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = certificates(&files.certificate, "sslcert")?;
    let bytes = read(&files.key, "sslkey")?;
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| TlsError::NotPem {
        parameter: "sslkey",
        path: absolute(&files.key),
        wanted: "private key without a passphrase",
        message: error.to_string(),
    })?;
    Ok((chain, key))
}

fn certificates(path: &Path, parameter: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path, parameter)?;
    let not_pem =
        |message: String| TlsError::NotPem { parameter, path: absolute(path), wanted: "certificate", message };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| not_pem(error.to_string()))?;
    if found.is_empty() {
        return Err(not_pem("no line -----BEGIN CERTIFICATE-----".to_owned()));
    }
    Ok(found)
}

fn read(path: &Path, parameter: &'static str) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| TlsError::Unreadable { parameter, path: absolute(path), message: error.to_string() })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
