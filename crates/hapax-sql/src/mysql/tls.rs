//! TLS as the driver takes it. The files are read and tried here first, by the code that PostgreSQL's sessions use too:
//! the driver's own messages name neither the file nor the parameter.
//!
//! Invariant: whoever asks for a verified certificate never connects without one.

use std::borrow::Cow;

use mysql_async::{ClientIdentity, SslOpts};
use tokio_rustls::rustls;
use tokio_rustls::rustls::CertificateError::NotValidForNameContext;
use tokio_rustls::rustls::crypto::ring;

use super::url::FILE_NAMES;
use crate::tls::{self, TlsError, TlsMode, TlsRoots, TlsSettings};

/// Which name the certificate must carry.
#[derive(Debug, Clone)]
pub(super) enum CertificateName {
    /// The host's, as the address has it.
    Host,
    /// This one: any that the certificate carries will do, and it carries this one.
    Carried(String),
}

/// What the driver needs for the handshake; none if no TLS is asked for. Reads files, so on a blocking thread.
pub(super) async fn driver_options(settings: &TlsSettings, name: CertificateName) -> Result<Option<SslOpts>, TlsError> {
    if settings.mode == TlsMode::Disable {
        return Ok(None);
    }
    let settings = settings.clone();
    let reading = tokio::task::spawn_blocking(move || options(&settings, name));
    reading.await.map_err(|error| TlsError::Failed { message: error.to_string() })?.map(Some)
}

fn options(settings: &TlsSettings, name: CertificateName) -> Result<SslOpts, TlsError> {
    // Also tells a certificate that does not fit its key; what it builds is not used.
    tls::read_config(settings, &FILE_NAMES)?;
    // The driver asks rustls for the process's provider, and rustls panics if two are built in and none was chosen.
    // Whoever chose before us may keep theirs.
    drop(ring::default_provider().install_default());
    let mut options = SslOpts::default();
    if let Some(files) = &settings.client {
        let certificate = tls::read(&files.certificate, FILE_NAMES.certificate)?;
        let key = tls::read(&files.key, FILE_NAMES.key)?;
        options = options.with_client_identity(Some(ClientIdentity::new(certificate.into(), key.into())));
    }
    if let CertificateName::Carried(name) = name {
        options = options.with_danger_tls_hostname_override(Some(Cow::Owned(name)));
    }
    match (settings.mode, &settings.roots) {
        (TlsMode::Disable | TlsMode::Prefer, _) | (TlsMode::Require, TlsRoots::Unsaid) => {
            Ok(options.with_danger_accept_invalid_certs(true))
        }
        (TlsMode::Require | TlsMode::VerifyAuthority | TlsMode::VerifyFull, roots) => {
            let roots = tls::root_certificates(roots, &FILE_NAMES)?;
            let roots = roots.into_iter().map(|root| root.as_ref().to_vec().into()).collect();
            Ok(options.with_root_certs(roots).with_disable_built_in_roots(true))
        }
    }
}

/// Where the authority alone decides, another name than the host's is no failure: the name with which to try again.
///
/// The driver's own switch for this looks for words that rustls no longer says. The second handshake verifies the whole
/// chain again, so nothing is believed that the first one said. None if the certificate carries no name at all: then
/// rustls never takes it.
pub(super) fn other_name(settings: &TlsSettings, failure: &rustls::Error) -> Option<CertificateName> {
    let any_name = matches!(
        (settings.mode, &settings.roots),
        (TlsMode::VerifyAuthority, _) | (TlsMode::Require, TlsRoots::File(_))
    );
    let rustls::Error::InvalidCertificate(NotValidForNameContext { presented, .. }) = failure else { return None };
    let name = presented.iter().find_map(|name| plain_name(name)).filter(|_| any_name)?;
    Some(CertificateName::Carried(name))
}

/// rustls shows names as `DnsName("*.example")` and `IpAddress(127.0.0.1)`.
fn plain_name(shown: &str) -> Option<String> {
    let inner = shown.split_once('(')?.1.strip_suffix(')')?;
    let name = inner.trim_matches('"');
    // Any label stands for the star.
    Some(name.strip_prefix("*.").map_or_else(|| name.to_owned(), |rest| format!("any.{rest}")))
}
