//! Certificates for tests with TLS: an authority of ours, what it signed, and what it did not.

use std::fs;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

pub(crate) fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes NAME.crt and NAME.key, signed by `by`, for `host` and the common name `common`.
pub(crate) fn signed(folder: &Path, name: &str, by: &Authority, host: &str, common: &str) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, common);
    let certificate = params.signed_by(&key, by).unwrap();
    fs::write(folder.join(format!("{name}.crt")), certificate.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// A folder with `ca.pem`, `other.pem`, and what the server and its clients show: `server` for the host `localhost`,
/// `client` for the user `worker`, `stranger` by nobody we know.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let ours = authority("ours");
    fs::write(at("ca.pem"), ours.pem()).unwrap();
    fs::write(at("other.pem"), authority("other").pem()).unwrap();
    signed(folder.path(), "server", &ours, "localhost", "server");
    signed(folder.path(), "client", &ours, "client", "worker");
    signed(folder.path(), "stranger", &authority("stranger"), "client", "worker");
    folder
}
