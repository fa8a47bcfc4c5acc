//! A relay between a sink and the test server that counts what the sink asks. Not here: anything that tests.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::sample::server_address;

/// How a connection begins; what comes before it only asks for encryption.
const PROTOCOL_3_0: [u8; 4] = 196_608_u32.to_be_bytes();

/// Relays connections to the test server for as long as this process lives.
pub(super) struct CountingRelay {
    pub(super) port: u16,
    requests: Arc<AtomicU64>,
}

impl CountingRelay {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (server, requests) = (server_address(), Arc::new(AtomicU64::new(0)));
        let counter = Arc::clone(&requests);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (mut client, mut server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
                let (asking, asked) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let counter = Arc::clone(&counter);
                thread::spawn(move || {
                    // Ends with an error when either side has left.
                    drop(relay_requests(asking, &asked, &counter));
                    drop(asked.shutdown(Shutdown::Both));
                });
                thread::spawn(move || {
                    drop(io::copy(&mut server, &mut client));
                    drop(client.shutdown(Shutdown::Both));
                });
            }
        });
        Self { port, requests }
    }

    /// How often the server was asked for an answer.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Message by message: a kind, which the first ones lack, a length that counts itself, and the rest.
fn relay_requests(mut from: TcpStream, mut to: &TcpStream, requests: &AtomicU64) -> io::Result<()> {
    let mut has_begun = false;
    loop {
        let mut message = vec![0; if has_begun { 5 } else { 4 }];
        from.read_exact(&mut message)?;
        let (kind, length) = message.split_at(message.len() - 4);
        let asks = matches!(kind, b"S" | b"Q");
        let length = u32::from_be_bytes(length.try_into().unwrap());
        let head = message.len();
        message.resize(head + length as usize - 4, 0);
        from.read_exact(&mut message[head..])?;
        has_begun |= message[head..].starts_with(&PROTOCOL_3_0);
        if asks {
            requests.fetch_add(1, Ordering::SeqCst);
        }
        to.write_all(&message)?;
    }
}
