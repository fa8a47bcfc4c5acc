//! TLS with a real server, and the files that it reads.

use std::fs;

use hapax_services::Mariadb;

use super::test_database::quick;
use super::tls::{CertificateName, driver_options};
use super::{ConnectError, MysqlUrl, Session};
use crate::test_certificates;

/// A server with TLS for the host `localhost`, and the folder with all certificates.
fn server() -> (Mariadb, tempfile::TempDir) {
    let folder = test_certificates::folder();
    let at = |name: &str| folder.path().join(name);
    let server =
        Mariadb::builder().tls(&at("server.crt"), &at("server.key")).tls_authority(&at("ca.pem")).start().unwrap();
    server.query("CREATE USER worker REQUIRE X509; CREATE USER tls REQUIRE SSL").unwrap();
    (server, folder)
}

async fn connect(login: &str, host: &str, server: &Mariadb, parameters: &str) -> Result<Session, ConnectError> {
    let text = format!("mysql://{login}@{host}:{}/?{parameters}", server.port());
    Session::connect(&MysqlUrl::parse(&text).unwrap(), &quick()).await
}

async fn is_encrypted(session: &mut Session) -> bool {
    let mut rows = session.text_rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await.unwrap();
    !rows.remove(0).take::<String, _>(1).unwrap().is_empty()
}

/// Goal: each `ssl-mode` means what MySQL means by it. Method: one server, its authority, another authority, a name that
/// the certificate has and one that it has not.
#[tokio::test]
async fn each_mode_verifies_what_it_says() {
    let (server, folder) = server();
    let (ca, other) = (folder.path().join("ca.pem"), folder.path().join("other.pem"));
    let (ca, other) = (ca.display(), other.display());
    for (host, parameters, encrypted) in [
        ("127.0.0.1", "ssl-mode=disabled".to_owned(), false),
        ("127.0.0.1", String::new(), true),
        ("127.0.0.1", "ssl-mode=required".to_owned(), true),
        ("127.0.0.1", format!("ssl-mode=required&ssl-ca={ca}"), true),
        ("127.0.0.1", format!("ssl-mode=verify-ca&ssl-ca={ca}"), true),
        ("127.0.0.1", format!("ssl-ca={ca}"), true),
        ("localhost", format!("ssl-mode=verify-identity&ssl-ca={ca}"), true),
    ] {
        let mut session = connect("root", host, &server, &parameters).await.unwrap();
        assert_eq!(is_encrypted(&mut session).await, encrypted, "{host} {parameters}");
    }
    for (host, parameters, says) in [
        ("127.0.0.1", format!("ssl-mode=verify-identity&ssl-ca={ca}"), "write the host as the certificate names it"),
        ("localhost", format!("ssl-mode=verify-identity&ssl-ca={other}"), "name the file of the authority"),
        ("127.0.0.1", format!("ssl-mode=verify-ca&ssl-ca={other}"), "name the file of the authority"),
        ("127.0.0.1", format!("ssl-mode=required&ssl-ca={other}"), "name the file of the authority"),
    ] {
        let error = connect("root", host, &server, &parameters).await.unwrap_err();
        assert_eq!(error.code(), "HX4356", "{host} {parameters}: {error:?}");
        assert!(error.to_string().contains(says), "{host} {parameters}: {error}");
    }
    assert_eq!(connect("tls", "127.0.0.1", &server, "ssl-mode=disabled").await.unwrap_err().code(), "HX4352");
}

/// Goal: a client certificate opens the door that asks for one; a missing or foreign one does not.
/// Method: a user who must show one.
#[tokio::test]
async fn a_client_certificate_is_shown() {
    let (server, folder) = server();
    let files = |name: &str| {
        let at = |suffix: &str| folder.path().join(format!("{name}.{suffix}")).display().to_string();
        format!("ssl-mode=required&ssl-cert={}&ssl-key={}", at("crt"), at("key"))
    };
    let mut session = connect("worker", "localhost", &server, &files("client")).await.unwrap();
    assert!(is_encrypted(&mut session).await);
    let error = connect("worker", "localhost", &server, "ssl-mode=required").await.unwrap_err();
    assert_eq!(error.code(), "HX4352", "{error:?}");
    let error = connect("worker", "localhost", &server, &files("stranger")).await.unwrap_err();
    assert_eq!(error.code(), "HX4356", "{error:?}");
}

/// Goal: a file that is missing or something else is named, with its parameter. Method: one of each; no server is needed.
#[tokio::test]
async fn each_unfit_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let ours = test_certificates::authority("ours");
    test_certificates::signed(folder.path(), "one", &ours, "a", "a");
    test_certificates::signed(folder.path(), "two", &ours, "b", "b");
    fs::write(at("text"), "no certificate").unwrap();
    for (parameters, says) in [
        (format!("ssl-mode=verify-ca&ssl-ca={}", at("gone")), ["ssl-ca", "gone", "correct the path"]),
        (format!("ssl-mode=verify-identity&ssl-ca={}", at("text")), ["ssl-ca", "text", "BEGIN CERTIFICATE"]),
        (format!("ssl-cert={}&ssl-key={}", at("one.crt"), at("one.crt")), ["ssl-key", "one.crt", "private key"]),
        (format!("ssl-cert={}&ssl-key={}", at("one.crt"), at("two.key")), ["one.crt", "two.key", "belongs to it"]),
    ] {
        let url = MysqlUrl::parse(&format!("mysql://u@h/d?{parameters}")).unwrap();
        let error = driver_options(url.tls(), CertificateName::Host).await.unwrap_err();
        assert!(says.iter().all(|word| error.to_string().contains(word)), "{parameters}: {error}");
        assert_eq!(Session::connect(&url, &quick()).await.unwrap_err().code(), "HX4357");
    }
}
