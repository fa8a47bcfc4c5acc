//! A chat server of a few lines: whom a process calls.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

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
