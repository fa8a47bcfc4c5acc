//! A browser and a chat server, both of a few lines: what a process shows, and whom it calls.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::world::{Worker, until};

/// Where a worker serves its pages, as its log says.
pub(crate) fn address(worker: &Worker) -> String {
    worker.until_it_says("address=");
    let said = worker.said();
    let rest = said.split("address=").nth(1).expect("an address");
    rest.split_whitespace().next().expect("an address").to_owned()
}

/// GET; the status and the body.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    get_with(address, path, "")
}

/// The same with a header line.
pub(crate) fn get_with(address: &str, path: &str, header: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the port is open");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let extra = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{extra}\r\n")
        .expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, body.to_owned())
}

/// GET, and the body as JSON.
pub(crate) fn get_json(address: &str, path: &str) -> (u16, Value) {
    let (status, body) = get(address, path);
    (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("no JSON ({error}): {body}")))
}

/// The value of the first line of a metrics page that begins with `name` and holds all `labels`.
pub(crate) fn metric(page: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let line = page.lines().find(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' '])) && labels.iter().all(|label| line.contains(label))
    })?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Waits until a metric of a live worker has this value.
pub(crate) fn until_metric(address: &str, name: &str, labels: &[&str], value: f64) {
    until(&format!("{name} {labels:?} is {value}"), || {
        metric(&get(address, "/metrics").1, name, labels) == Some(value)
    });
}

/// A server that keeps what was posted to it.
pub(crate) struct Chat {
    pub(crate) address: String,
    posted: Arc<Mutex<Vec<(String, Value)>>>,
    /// Statuses that it answers with, first; then 200.
    answers: Arc<Mutex<Vec<u16>>>,
}

impl Chat {
    /// Listens on a free port; answers with `answers` first.
    pub(crate) fn new(answers: &[u16]) -> Self {
        Self::start(answers, None)
    }

    /// The same behind TLS.
    pub(crate) fn behind(tls: Arc<ServerConfig>) -> Self {
        Self::start(&[], Some(tls))
    }

    fn start(answers: &[u16], tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (posted, answers) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(answers.to_vec())));
        let chat = Self { address, posted: Arc::clone(&posted), answers: Arc::clone(&answers) };
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (posted, answers, tls) = (Arc::clone(&posted), Arc::clone(&answers), tls.clone());
                std::thread::spawn(move || match tls {
                    None => take(stream, &posted, &answers),
                    Some(tls) => {
                        let connection = ServerConnection::new(tls).expect("the settings are right");
                        take(StreamOwned::new(connection, stream), &posted, &answers);
                    }
                });
            }
        });
        chat
    }

    /// Path and body of everything that it took.
    pub(crate) fn posted(&self) -> Vec<(String, Value)> {
        self.posted.lock().expect("unpoisoned").clone()
    }

    /// How many it still refuses.
    pub(crate) fn left(&self) -> usize {
        self.answers.lock().expect("unpoisoned").len()
    }
}

fn take(stream: impl Read + Write, posted: &Mutex<Vec<(String, Value)>>, answers: &Mutex<Vec<u16>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut path, mut line) = (0, String::new(), String::new());
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        path.push_str(line.split(' ').nth(1).unwrap_or_default());
        loop {
            line.clear();
            reader.read_line(&mut line).expect("a header");
            let Some((name, value)) = line.trim().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let status = {
            let mut answers = answers.lock().expect("unpoisoned");
            if answers.is_empty() { 200 } else { answers.remove(0) }
        };
        if status == 200 {
            posted.lock().expect("unpoisoned").push((path, serde_json::from_slice(&body).expect("JSON")));
        }
        let answer = reader.get_mut();
        write!(answer, "HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n").expect("the answer is sent");
        answer.flush().expect("the answer is sent");
    }
}
