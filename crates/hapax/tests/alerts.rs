//! Alerts by webhook, received by a real server.

use std::io::Read as _;

use crate::chat::Chat;
use crate::world::{FORGIVING, World, order, orders, until};

const SECRET: &str = "/hooks/hunter2";

fn world(chat: &Chat) -> World {
    let world = World::shop("", FORGIVING);
    let address = &chat.address;
    world.write(
        "hapax.yaml",
        format!("alerts: {{ webhook: \"http://{address}{SECRET}\" }}\n{}", world.read("hapax.yaml")),
    );
    world
}

fn kinds(chat: &Chat) -> Vec<String> {
    chat.posted().iter().map(|(_, body)| body["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Goal: a new cause of dead letters is told once, whatever restarts, and the server's moods are borne. Method: the same
/// cause twice in one run, again after a restart, then another cause; the first two posts are refused with 503.
#[test]
fn a_new_cause_is_told_once() {
    let chat = Chat::new(&[503, 503]);
    let world = world(&chat);
    world.write("orders.jsonl", orders(1..=2) + "no json\nno json either\n");
    let worker = world.start("worker.log", &["run"]);
    until("the alert came", || chat.posted().len() == 1);
    assert_eq!(chat.left(), 0, "it was refused twice");
    let (path, body) = chat.posted().remove(0);
    assert_eq!(path, SECRET);
    assert_eq!(
        (&body["kind"], &body["workflow"], &body["code"]),
        (&"deadLetters".into(), &"orders".into(), &"HX2001".into())
    );
    for field in ["text", "sink", "lane", "cause", "message", "worker"] {
        assert!(body[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {body:#}");
    }
    assert!(body["text"].as_str().is_some_and(|text| text.contains("new cause of dead letters")), "{body:#}");
    world.append("orders.jsonl", "no json again\n");
    until("it is a letter", || world.ask::<i64>("SELECT count(*) FROM hapax_dead_letters") == 3);
    worker.terminate();
    worker.ends().exits(0).keeps_silent_about(&["hunter2"]);
    world.append("orders.jsonl", format!("not json\n{{\"customer\":\"bo\"}}\n{}", order(9, 9)));
    world.hapax(&["run", "--once"]).exits(0).keeps_silent_about(&["hunter2"]);
    let posted = chat.posted();
    assert_eq!(posted.len(), 2, "only the cause that is new: {posted:#?}");
    assert_ne!(posted[1].1["cause"], posted[0].1["cause"]);
    world.accounts_for(8, 5);
}

/// Goal: a ledger that does not add up, and a delivery that stopped, are told, and the process waits for that before it
/// ends. Method: totals changed by hand; then a table dropped and made anew.
#[test]
fn a_wrong_ledger_and_a_stop_are_told() {
    let chat = Chat::new(&[]);
    let world = world(&chat);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(kinds(&chat), [""; 0]);
    world.sql("UPDATE hapax_progress SET delivered = delivered - 1");
    world.hapax(&["run", "--once"]).exits(0).says(&["does not add up"]);
    assert_eq!(kinds(&chat), ["ledger"]);
    world.sql("UPDATE hapax_progress SET delivered = delivered + 1; DROP TABLE orders");
    world.sql(crate::world::ORDERS);
    world.hapax(&["run", "--once"]).exits(5);
    assert_eq!(kinds(&chat), ["ledger", "stopped"]);
    let (_, body) = chat.posted().remove(1);
    assert_eq!(body["code"], "HX4012", "{body:#}");
}

/// Goal: a webhook that nobody answers holds nothing up. Method: a port where nobody listens.
#[test]
fn a_dead_webhook_holds_nothing_up() {
    let chat = Chat::new(&[]);
    let world = world(&chat);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    world.write("hapax.yaml", world.read("hapax.yaml").replace(&chat.address, &closed.to_string()));
    world.write("orders.jsonl", "no json\n".to_owned() + &orders(1..=3));
    let began = std::time::Instant::now();
    world.hapax(&["run", "--once"]).exits(0).says(&["alerts unsent"]).keeps_silent_about(&["hunter2"]);
    assert!(began.elapsed() < std::time::Duration::from_secs(100), "it waits 10 s and no longer");
    assert_eq!(world.rows(), 3);
}

/// Goal: `https` is trusted only by the certificates that this machine trusts. Method: a certificate of our own, named in
/// `SSL_CERT_FILE`, and then another one there.
#[test]
fn a_webhook_behind_tls_is_called_if_it_is_trusted() {
    use tokio_rustls::rustls::ServerConfig;
    use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    let certify = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (ours, other) = (certify(), certify());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(ours.signing_key.serialize_der()));
    let server = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![ours.cert.der().clone()], key);
    let chat = Chat::behind(std::sync::Arc::new(server.expect("a right pair")));
    let world = world(&chat);
    let port = chat.address.rsplit(':').next().expect("a port");
    let url = format!("https://localhost:{port}");
    world.write("hapax.yaml", world.read("hapax.yaml").replace(&format!("http://{}", chat.address), &url));
    world.write("ours.pem", ours.cert.pem());
    world.write("other.pem", other.cert.pem());
    world.write("orders.jsonl", "no json\n");
    let run = |roots: &str| {
        let path = world.path(roots).display().to_string();
        world.hapax_with(
            &["run", "--once", "--log-level", "debug"],
            &[("SSL_CERT_FILE", &path), ("SSL_CERT_DIR", "/nowhere")],
        )
    };
    run("other.pem").exits(0).says(&["alerts unsent", "ertificate"]).keeps_silent_about(&["hunter2"]);
    assert_eq!(kinds(&chat), [""; 0]);
    world.append("orders.jsonl", "{}\n");
    run("ours.pem").exits(0).keeps_silent_about(&["hunter2"]);
    assert_eq!(kinds(&chat), ["deadLetters"]);
}

/// Goal: alerts that could never be sent are told at the start. Method: an address that needs roots of trust, on a
/// machine that has none.
#[test]
fn a_webhook_without_roots_of_trust_is_refused_at_the_start() {
    let world = World::shop("", FORGIVING);
    let text = format!("alerts: {{ webhook: \"https://127.0.0.1:1{SECRET}\" }}\n{}", world.read("hapax.yaml"));
    world.write("hapax.yaml", text);
    world.write("orders.jsonl", orders(1..=2));
    world.write("none.pem", "");
    std::fs::create_dir(world.path("none")).expect("a folder");
    let none = [("SSL_CERT_FILE", "none.pem"), ("SSL_CERT_DIR", "none")];
    let answer = world.hapax_with(&["run", "--once"], &none);
    answer.exits(1).says(&["HX5062", "no roots of trust"]).keeps_silent_about(&["hunter2"]);
    assert_eq!(world.rows(), 0, "nothing was started");
}

/// Goal: a webhook that takes the call and says nothing is called again, after the time that it has and with the very same
/// words, so that it can tell. Method: a port that never answers; the time between two calls, and the bytes of both.
#[test]
fn a_webhook_that_never_answers_is_tried_again() {
    let chat = Chat::new(&[]);
    let world = world(&chat);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    world.write("hapax.yaml", world.read("hapax.yaml").replace(&chat.address, &address));
    world.write("orders.jsonl", "no json\n");
    let _worker = world.start("worker.log", &["run"]);
    let (mut first, _) = silent.accept().expect("a call");
    let called = std::time::Instant::now();
    let (mut second, _) = silent.accept().expect("another call");
    assert!(called.elapsed() >= std::time::Duration::from_secs(9), "it had 10 s: {:?}", called.elapsed());
    // The caller has left the first; the second is as long.
    let mut said = Vec::new();
    first.read_to_end(&mut said).expect("what the first call said");
    let mut said_again = vec![0; said.len()];
    second.read_exact(&mut said_again).expect("what the second call said");
    let said = String::from_utf8(said).expect("text");
    assert!(said.contains("\"atMs\":") && said.contains("\"kind\":\"deadLetters\""), "{said}");
    assert_eq!(String::from_utf8(said_again).expect("text"), said);
}
