//! TLS as an address asks for it: rustls with ring, the authorities of a file or of the system, a client certificate.
//!
//! Invariant: whoever asks for a verified certificate never connects without one. Not here: whether the server offers
//! TLS at all (the drivers ask it), the addresses (`url` of each database).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use tokio_rustls::rustls;

use crate::tls_verify::{AnyCertificate, AuthorityOnly};

/// How much of TLS an address asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// No TLS.
    Disable,
    /// TLS if the server offers it; nothing is verified.
    Prefer,
    /// TLS or nothing. The certificate is only verified if a file of authorities is given, then as with
    /// [`VerifyAuthority`](Self::VerifyAuthority).
    Require,
    /// TLS with a certificate of a known authority, whatever name it carries.
    VerifyAuthority,
    /// TLS with a certificate of a known authority for this very host.
    VerifyFull,
}

/// Whose certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsRoots {
    /// The address names none: the system's store where verifying is asked for.
    Unsaid,
    /// The system's store, by name.
    System,
    /// A file of certificates in PEM form.
    File(PathBuf),
}

/// The TLS part of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// What is asked for.
    pub mode: TlsMode,
    /// Whose certificates are believed.
    pub roots: TlsRoots,
    /// Our own certificate (chain) and its key, in PEM form.
    pub client: Option<ClientFiles>,
}

/// The files of a client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// Our certificate (chain).
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What a database's addresses call the three files, for messages.
#[derive(Debug)]
pub(crate) struct FileNames {
    pub(crate) roots: &'static str,
    pub(crate) certificate: &'static str,
    pub(crate) key: &'static str,
}

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
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What rustls said.
        message: String,
    },
    /// The system has no store of authorities.
    #[error(
        "the system's store of certificate authorities is empty ({message}); install ca-certificates, or name a file: {parameter}=/path/ca.pem"
    )]
    NoSystemRoots {
        /// Which parameter of the address names one.
        parameter: &'static str,
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

/// What the handshake needs. Reads the files each time, on a blocking thread: a renewed certificate needs no restart.
#[cfg(feature = "postgres")]
pub(crate) async fn client_config(settings: &TlsSettings, names: &'static FileNames) -> Result<ClientConfig, TlsError> {
    let settings = settings.clone();
    let reading = tokio::task::spawn_blocking(move || read_config(&settings, names));
    reading.await.map_err(|error| TlsError::Failed { message: error.to_string() })?
}

pub(crate) fn read_config(settings: &TlsSettings, names: &'static FileNames) -> Result<ClientConfig, TlsError> {
    // Named, not the process's default: two libraries that each set one would panic.
    let provider = Arc::new(ring::default_provider());
    let verifier = verifier(settings, names, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Failed { message: error.to_string() })?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match &settings.client {
        None => Ok(builder.with_no_client_auth()),
        Some(files) => {
            let (chain, key) = client_files(files, names)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| TlsError::Client {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
                message: error.to_string(),
            })
        }
    }
}

fn verifier(
    settings: &TlsSettings,
    names: &'static FileNames,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let any = || Ok(Arc::new(AnyCertificate::new(Arc::clone(provider))) as Arc<dyn ServerCertVerifier>);
    let strict = || -> Result<Arc<WebPkiServerVerifier>, TlsError> {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots(&settings.roots, names)?), Arc::clone(provider))
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

/// The certificates of the authorities, at least one, each of them readable.
#[cfg(feature = "mysql")]
pub(crate) fn root_certificates(
    wanted: &TlsRoots,
    names: &'static FileNames,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    match wanted {
        TlsRoots::File(path) => certificates(path, names.roots),
        TlsRoots::System | TlsRoots::Unsaid => {
            roots(wanted, names)?;
            let mut store = RootCertStore::empty();
            let found = rustls_native_certs::load_native_certs().certs;
            Ok(found.into_iter().filter(|certificate| store.add(certificate.clone()).is_ok()).collect())
        }
    }
}

fn roots(roots: &TlsRoots, names: &'static FileNames) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    match roots {
        TlsRoots::File(path) => {
            let found = certificates(path, names.roots)?;
            for certificate in found {
                store.add(certificate).map_err(|error| TlsError::NotPem {
                    parameter: names.roots,
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
                return Err(TlsError::NoSystemRoots { parameter: names.roots, message });
            }
        }
    }
    Ok(store)
}

fn client_files(
    files: &ClientFiles,
    names: &'static FileNames,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = certificates(&files.certificate, names.certificate)?;
    let bytes = read(&files.key, names.key)?;
    let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| TlsError::NotPem {
        parameter: names.key,
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

pub(crate) fn read(path: &Path, parameter: &'static str) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| TlsError::Unreadable { parameter, path: absolute(path), message: error.to_string() })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// What to do about a handshake that failed.
pub(crate) fn cure(error: &rustls::Error, names: &FileNames) -> String {
    use rustls::CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext,
        UnknownIssuer,
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other failure has the same cure")]
    match error {
        rustls::Error::InvalidCertificate(UnknownIssuer) => {
            format!("name the file of the authority that signed the server's certificate: {}=/path/ca.pem", names.roots)
        }
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            "write the host as the certificate names it, or give the server a certificate for this host".to_owned()
        }
        rustls::Error::InvalidCertificate(
            Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
        ) => "renew the server's certificate, or set the clock".to_owned(),
        rustls::Error::AlertReceived(_) => {
            format!(
                "the server refuses our side: give it the client certificate that it asks for ({}, {})",
                names.certificate, names.key
            )
        }
        _ => "look at the server's certificate and at what the address asks of TLS".to_owned(),
    }
}
