//! One connection through the proxy in MariaDB's protocol: packets, the statements in them, and the answer to COMMIT.
//!
//! Strictly one question, one answer: what the server says after a COMMIT is the answer to it.
//! Not here: TLS, compression; workers are told to use neither.

use std::collections::HashMap;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

use super::connection::{cut, hold, upstream};
use super::fault::{Deed, Watch, normal};
use super::{Shared, lock};

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const OK: u8 = 0x00;
/// What a server says that had to roll back at COMMIT.
const DEADLOCK: &[u8] = b"\xff\xbd\x04#40001Deadlock found when trying to get lock; try restarting transaction";

/// One packet: four bytes of head, and what they announce.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Packet {
    bytes: Vec<u8>,
}

impl Packet {
    fn new(sequence: u8, body: &[u8]) -> Self {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = vec![length[0], length[1], length[2], sequence];
        bytes.extend_from_slice(body);
        Self { bytes }
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 4];
        from.read_exact(&mut head)?;
        let mut bytes = head.to_vec();
        bytes.resize(4 + u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize, 0);
        from.read_exact(&mut bytes[4..])?;
        Ok(Self { bytes })
    }

    fn body(&self) -> &[u8] {
        &self.bytes[4..]
    }

    /// What a client asks for, with its words. Only the first packet of a question has the number 0.
    fn command(&self) -> Option<(u8, &[u8])> {
        if self.bytes[3] != 0 {
            return None;
        }
        self.body().split_first().map(|(command, words)| (*command, words))
    }

    fn is(&self, kind: u8) -> bool {
        self.body().first() == Some(&kind)
    }
}

/// What both threads of a connection know.
#[derive(Debug, Default)]
struct Talk {
    prepared: HashMap<u32, String>,
    preparing: Option<String>,
    expected: Option<(Deed, Watch)>,
}

impl Talk {
    /// The statement that the server runs on this packet, normal; none if it runs nothing.
    fn run_by(&mut self, packet: &Packet) -> Option<String> {
        let (command, words) = packet.command()?;
        match command {
            QUERY => Some(normal(&String::from_utf8_lossy(words))),
            PREPARE => {
                self.preparing = Some(normal(&String::from_utf8_lossy(words)));
                None
            }
            EXECUTE => self.prepared.get(&id(words)?).cloned(),
            _ => None,
        }
    }

    /// Learns the number of a statement that was being prepared.
    fn learn(&mut self, answer: &Packet) {
        if let Some(statement) = self.preparing.take()
            && answer.is(OK)
            && let Some(id) = id(&answer.body()[1..])
        {
            self.prepared.insert(id, statement);
        }
    }
}

fn id(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?))
}

/// Serves a connection until one side ends it.
pub(super) fn pass(shared: &Arc<Shared>, connection: u64, client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    let server = upstream(shared)?;
    server.set_nodelay(true)?;
    lock(&shared.streams).extend([client.try_clone()?, server.try_clone()?]);
    let talk = Arc::new(Mutex::new(Talk::default()));
    let answers = {
        let (shared, talk) = (Arc::clone(shared), Arc::clone(&talk));
        let (server, client) = (server.try_clone()?, client.try_clone()?);
        std::thread::spawn(move || {
            drop(answers(&shared, connection, &server, &client, &talk));
            cut(&server, &client);
        })
    };
    drop(requests(shared, connection, &client, &server, &talk));
    // What the server has already said may still be on its way to a client that asked and left.
    drop(server.shutdown(Shutdown::Write));
    drop(answers.join());
    cut(&server, &client);
    Ok(())
}

/// Passes on what the client says.
fn requests(
    shared: &Shared,
    connection: u64,
    client: &TcpStream,
    server: &TcpStream,
    talk: &Mutex<Talk>,
) -> io::Result<()> {
    let mut from_client = BufReader::new(client.try_clone()?);
    let mut known: Vec<Watch> = Vec::new();
    let mut to_server = server;
    loop {
        let mut packet = Packet::read(&mut from_client)?;
        let text = lock(talk).run_by(&packet).unwrap_or_default();
        let marked = Watch::ALL.into_iter().find(|watch| watch.knows(&text) && !known.contains(watch));
        known.extend(marked);
        match text.trim_end_matches(';') {
            "commit" => {
                for (watch, deed) in known.drain(..).filter_map(|watch| Some((watch, shared.pass(watch)?))) {
                    lock(talk).expected = Some((deed, watch));
                    match deed {
                        Deed::LoseRequest => {
                            shared.note(connection, deed, watch);
                            cut(server, client);
                            return Ok(());
                        }
                        Deed::Spoil => packet = Packet::new(0, b"\x03ROLLBACK"),
                        Deed::DropAnswer | Deed::HoldAnswer => {}
                    }
                }
            }
            "rollback" => known.clear(),
            _ => {}
        }
        to_server.write_all(&packet.bytes)?;
    }
}

/// Passes on what the server answers.
fn answers(
    shared: &Shared,
    connection: u64,
    server: &TcpStream,
    client: &TcpStream,
    talk: &Mutex<Talk>,
) -> io::Result<()> {
    let mut from_server = BufReader::new(server.try_clone()?);
    let mut to_client = client;
    loop {
        let mut packet = Packet::read(&mut from_server)?;
        lock(talk).learn(&packet);
        let deed = lock(talk).expected.take();
        // A COMMIT that the server refuses is its own affair.
        if let Some((deed, watch)) = deed.filter(|_| packet.is(OK)) {
            shared.note(connection, deed, watch);
            match deed {
                Deed::DropAnswer => return Ok(()),
                Deed::HoldAnswer => hold(shared),
                Deed::Spoil => packet = Packet::new(1, DEADLOCK),
                Deed::LoseRequest => {}
            }
        }
        to_client.write_all(&packet.bytes)?;
    }
}

#[cfg(test)]
#[path = "mysql_tests.rs"]
mod tests;
