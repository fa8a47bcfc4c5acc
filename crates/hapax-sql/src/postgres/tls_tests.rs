//! TLS with a real server, and the files that it reads.

use std::fs;

use hapax_services::Postgres;

use tokio_rustls::rustls::ClientConfig;

use super::test_database::quick;
use super::url::FILE_NAMES;
use super::{ConnectError, PostgresUrl, Session, TlsError};
use crate::test_certificates;
use crate::tls::read_config;

/// A server with TLS for the host `localhost`, and the folder with all certificates.
fn server() -> (Postgres, tempfile::TempDir) {
    let folder = test_certificates::folder();
    let at = |name: &str| folder.path().join(name);
    let server = Postgres::builder()
        .tls(&at("server.crt"), &at("server.key"))
        .tls_authority(&at("ca.pem"))
        .hba("hostssl all worker all cert")
        .hba("hostssl all bound all scram-sha-256")
        .setting("listen_addresses", "localhost")
        .start()
        .unwrap();
    server.query("CREATE ROLE worker LOGIN; CREATE ROLE bound LOGIN PASSWORD 'x'").unwrap();
    (server, folder)
}

async fn connect(login: &str, host: &str, server: &Postgres, parameters: &str) -> Result<Session, ConnectError> {
    let text = format!("postgres://{login}@{host}:{}/postgres?{parameters}", server.port());
    Session::connect(&PostgresUrl::parse(&text).unwrap(), &quick()).await
}

async fn is_encrypted(session: &Session) -> bool {
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    session.client().query_one(sql, &[]).await.unwrap().get(0)
}

/// Goal: each `sslmode` means what libpq means by it. Method: one server, its authority, another authority, a name that
/// the certificate has and one that it has not.
#[tokio::test]
async fn each_mode_verifies_what_it_says() {
    let (server, folder) = server();
    let (ca, other) = (folder.path().join("ca.pem"), folder.path().join("other.pem"));
    let (ca, other) = (ca.display(), other.display());
    for (host, parameters, encrypted) in [
        ("127.0.0.1", "sslmode=disable".to_owned(), false),
        ("127.0.0.1", "sslmode=allow".to_owned(), true),
        ("127.0.0.1", String::new(), true),
        ("127.0.0.1", "sslmode=require".to_owned(), true),
        ("127.0.0.1", format!("sslmode=require&sslrootcert={ca}"), true),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={ca}"), true),
        ("localhost", format!("sslmode=verify-full&sslrootcert={ca}"), true),
    ] {
        let session = connect("postgres", host, &server, &parameters).await.unwrap();
        assert_eq!(is_encrypted(&session).await, encrypted, "{host} {parameters}");
    }
    for (host, parameters, says) in [
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={ca}"), "write the host as the certificate names it"),
        ("localhost", format!("sslmode=verify-full&sslrootcert={other}"), "name the file of the authority"),
        ("localhost", format!("sslmode=verify-ca&sslrootcert={other}"), "name the file of the authority"),
        ("localhost", format!("sslmode=require&sslrootcert={other}"), "name the file of the authority"),
    ] {
        let error = connect("postgres", host, &server, &parameters).await.unwrap_err();
        assert_eq!(error.code(), "HX4206", "{host} {parameters}: {error:?}");
        assert!(error.to_string().contains(says), "{host} {parameters}: {error}");
    }
}

/// Goal: a client certificate opens the door that asks for one; a missing or foreign one does not.
/// Method: a role that `pg_hba.conf` lets in by certificate only.
#[tokio::test]
async fn a_client_certificate_is_shown() {
    let (server, folder) = server();
    let files = |name: &str| {
        let at = |suffix: &str| folder.path().join(format!("{name}.{suffix}")).display().to_string();
        format!("sslmode=require&sslcert={}&sslkey={}", at("crt"), at("key"))
    };
    let session = connect("worker", "localhost", &server, &files("client")).await.unwrap();
    assert!(is_encrypted(&session).await);
    let error = connect("worker", "localhost", &server, "sslmode=require").await.unwrap_err();
    assert_eq!(error.code(), "HX4204", "{error:?}");
    let error = connect("worker", "localhost", &server, &files("stranger")).await.unwrap_err();
    assert_eq!(error.code(), "HX4206", "{error:?}");
}

/// Goal: SCRAM is bound to this very TLS session. Method: `channel_binding=require`, with TLS and without.
#[tokio::test]
async fn the_password_is_bound_to_the_channel() {
    let (server, _folder) = server();
    connect("bound:x", "localhost", &server, "sslmode=require&channel_binding=require").await.unwrap();
    let error = connect("postgres", "localhost", &server, "sslmode=disable&channel_binding=require").await.unwrap_err();
    assert_eq!(error.code(), "HX4204", "{error:?}");
}

fn settings(text: &str) -> Result<ClientConfig, TlsError> {
    read_config(PostgresUrl::parse(&format!("postgres://h/d?{text}")).unwrap().tls(), &FILE_NAMES)
}

/// Goal: a file that is missing, empty, something else or of another key is named, with its parameter.
/// Method: one of each; no server is needed.
#[test]
fn each_unfit_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let ours = test_certificates::authority("ours");
    test_certificates::signed(folder.path(), "one", &ours, "a", "a");
    test_certificates::signed(folder.path(), "two", &ours, "b", "b");
    fs::write(at("text"), "no certificate").unwrap();
    fs::write(at("broken"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    for (parameters, says) in [
        (format!("sslmode=verify-ca&sslrootcert={}", at("gone")), ["sslrootcert", "gone", "correct the path"]),
        (format!("sslmode=verify-full&sslrootcert={}", at("text")), ["sslrootcert", "text", "BEGIN CERTIFICATE"]),
        (format!("sslmode=verify-full&sslrootcert={}", at("broken")), ["sslrootcert", "broken", "no certificate"]),
        (format!("sslcert={}&sslkey={}", at("one.crt"), at("one.crt")), ["sslkey", "one.crt", "private key"]),
        (format!("sslcert={}&sslkey={}", at("gone"), at("one.key")), ["sslcert", "gone", "correct the path"]),
        (format!("sslcert={}&sslkey={}", at("one.crt"), at("two.key")), ["one.crt", "two.key", "belongs to it"]),
    ] {
        let error = settings(&parameters).unwrap_err();
        assert!(says.iter().all(|word| error.to_string().contains(word)), "{parameters}: {error}");
    }
    settings(&format!("sslcert={}&sslkey={}", at("one.crt"), at("one.key"))).unwrap();
}
