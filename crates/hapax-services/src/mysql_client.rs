//! A MySQL client that can do one thing: send text and read text, over loopback, without a password.
//!
//! Why our own: as for PostgreSQL; whoever judges a driver must not use it.
//! Not here: TLS, passwords, prepared statements, compression, LOAD DATA.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::client::Answer;
use crate::error::{Doing, ServiceError};
use crate::product::Product;

/// Long flags, a database at connect, protocol 4.1, transactions, secure connection, several statements and results,
/// authentication plugins.
const CAPABILITIES: u32 = 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x1_0000 | 0x2_0000 | 0x8_0000;
/// utf8mb4_general_ci.
const CHARACTER_SET: u8 = 45;
const PACKET_MAX: usize = 0xff_ffff;
const MORE_RESULTS: u16 = 0x8;

/// A connection.
#[derive(Debug)]
pub struct MysqlClient {
    stream: BufReader<TcpStream>,
    sequence: u8,
    id: u32,
    version: String,
}

impl MysqlClient {
    /// Connects to a server on loopback as `root`; `database` may be empty.
    ///
    /// # Errors
    /// If the server is not there, or refuses.
    pub fn connect(port: u16, database: &str) -> Result<Self, ServiceError> {
        Self::connect_as(port, "root", database)
    }

    /// Connects as another account that has no password.
    ///
    /// # Errors
    /// If the server is not there, or refuses.
    pub fn connect_as(port: u16, user: &str, database: &str) -> Result<Self, ServiceError> {
        let address = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&address).doing(|| format!("connect to {address}"))?;
        stream.set_nodelay(true).doing(|| "set up the connection".to_owned())?;
        let mut client = Self { stream: BufReader::new(stream), sequence: 0, id: 0, version: String::new() };
        client.greet(user, database)?;
        Ok(client)
    }

    /// The server's number for this connection: what `KILL` takes.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The server's version, as it greets.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How long an answer may take; without a limit it may take for ever.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn limit(&self, limit: Duration) -> Result<(), ServiceError> {
        self.stream.get_ref().set_read_timeout(Some(limit)).doing(|| "limit the waiting".to_owned())
    }

    /// Sends one or more statements, and reads what they answer. The first that fails ends it.
    ///
    /// # Errors
    /// What the server says, or a connection that broke.
    pub fn query(&mut self, sql: &str) -> Result<Answer, ServiceError> {
        let mut body = vec![3];
        body.extend_from_slice(sql.as_bytes());
        self.sequence = 0;
        self.send(&body)?;
        let mut answer = Answer::default();
        loop {
            let status = self.result(&mut answer)?;
            if status & MORE_RESULTS == 0 {
                return Ok(answer);
            }
        }
    }

    /// One result: its rows are added. Returns the server's status.
    fn result(&mut self, answer: &mut Answer) -> Result<u16, ServiceError> {
        let first = self.receive()?;
        if first.first() == Some(&0) {
            let (rows, status) = ok(&first).ok_or_else(|| unexpected("an OK that is cut"))?;
            answer.tag = rows.to_string();
            return Ok(status);
        }
        let mut at = 0;
        let columns = length(&first, &mut at).flatten().ok_or_else(|| unexpected("a head that is no number"))?;
        // The descriptions of the columns, and the packet that ends them.
        for _ in 0..=columns {
            self.receive()?;
        }
        loop {
            let packet = self.receive()?;
            if packet.first() == Some(&0xfe) && packet.len() < 9 {
                return Ok(packet.get(3..5).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]])));
            }
            answer.rows.push(row(&packet).ok_or_else(|| unexpected("a row that is cut"))?);
        }
    }

    fn greet(&mut self, user: &str, database: &str) -> Result<(), ServiceError> {
        let greeting = self.receive()?;
        let (version, id) = greeted(&greeting).ok_or_else(|| unexpected("a greeting that is cut"))?;
        (self.version, self.id) = (version, id);
        let mut body = CAPABILITIES.to_le_bytes().to_vec();
        body.extend_from_slice(&0x0100_0000_u32.to_le_bytes());
        body.push(CHARACTER_SET);
        body.extend_from_slice(&[0; 23]);
        body.extend_from_slice(user.as_bytes());
        // The end of the name, and an empty password.
        body.extend_from_slice(&[0, 0]);
        body.extend_from_slice(database.as_bytes());
        body.push(0);
        body.extend_from_slice(b"mysql_native_password\0");
        self.send(&body)?;
        loop {
            let packet = self.receive()?;
            match packet.first() {
                Some(0) => return Ok(()),
                // Another way to say nothing: the plugin of MySQL 8 wants the empty password with its end.
                Some(0xfe) if packet[1..].starts_with(b"caching_sha2_password") => self.send(&[0])?,
                Some(0xfe) => self.send(&[])?,
                Some(1) => {}
                _ => return Err(unexpected("a question that is not known")),
            }
        }
    }

    fn send(&mut self, body: &[u8]) -> Result<(), ServiceError> {
        let mut packets = body.chunks(PACKET_MAX).collect::<Vec<_>>();
        if body.len().is_multiple_of(PACKET_MAX) {
            packets.push(&[]);
        }
        for packet in packets {
            let length = u32::try_from(packet.len()).map_err(|_| unexpected("too long a text"))?.to_le_bytes();
            let head = [length[0], length[1], length[2], self.sequence];
            self.sequence = self.sequence.wrapping_add(1);
            let stream = self.stream.get_mut();
            stream.write_all(&[&head[..], packet].concat()).doing(|| "send to the server".to_owned())?;
        }
        Ok(())
    }

    /// One packet, put together if it came in parts; an error packet is an error.
    fn receive(&mut self) -> Result<Vec<u8>, ServiceError> {
        let mut body = Vec::new();
        loop {
            let mut head = [0; 4];
            self.stream.read_exact(&mut head).doing(|| "read from the server".to_owned())?;
            self.sequence = head[3].wrapping_add(1);
            let (start, part) = (body.len(), usize_of(&head[..3]));
            body.resize(start + part, 0);
            self.stream.read_exact(&mut body[start..]).doing(|| "read from the server".to_owned())?;
            if part < PACKET_MAX {
                break;
            }
        }
        if body.first() == Some(&0xff) { Err(error(&body)) } else { Ok(body) }
    }
}

fn unexpected(what: &str) -> ServiceError {
    ServiceError::Protocol(what.to_owned())
}

fn usize_of(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | usize::from(*byte))
}

/// The version and the connection's number of the first packet.
fn greeted(packet: &[u8]) -> Option<(String, u32)> {
    let rest = packet.strip_prefix(&[10])?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let id = rest.get(end + 1..end + 5)?;
    Some((String::from_utf8_lossy(&rest[..end]).into_owned(), u32::from_le_bytes(id.try_into().ok()?)))
}

/// A number of the protocol's own form, or NULL.
fn length(bytes: &[u8], at: &mut usize) -> Option<Option<usize>> {
    let first = *bytes.get(*at)?;
    *at += 1;
    let size = match first {
        0xfb => return Some(None),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xff => return None,
        small => return Some(Some(usize::from(small))),
    };
    let found = bytes.get(*at..*at + size)?;
    *at += size;
    Some(Some(usize_of(found)))
}

/// The rows that an OK counts, and the server's status.
fn ok(packet: &[u8]) -> Option<(usize, u16)> {
    let mut at = 1;
    let rows = length(packet, &mut at)??;
    length(packet, &mut at)?;
    let status = packet.get(at..at + 2)?;
    Some((rows, u16::from_le_bytes(status.try_into().ok()?)))
}

/// The values of a row.
fn row(packet: &[u8]) -> Option<Vec<Option<String>>> {
    let mut at = 0;
    let mut values = Vec::new();
    while at < packet.len() {
        let value = match length(packet, &mut at)? {
            None => None,
            Some(size) => {
                let bytes = packet.get(at..at.checked_add(size)?)?;
                at += size;
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
        };
        values.push(value);
    }
    Some(values)
}

/// The number and the message of an error packet.
fn error(packet: &[u8]) -> ServiceError {
    let code = packet.get(1..3).map(usize_of).unwrap_or_default().to_string();
    let rest = packet.get(3..).unwrap_or_default();
    // The SQLSTATE stands before the message, but not in the errors before the greeting.
    let message = if rest.first() == Some(&b'#') { rest.get(6..).unwrap_or_default() } else { rest };
    ServiceError::Server { product: Product::Mariadb, code, message: String::from_utf8_lossy(message).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what the server sends never brings the client down. Method: rows whole, cut, and lying about lengths.
    #[test]
    fn rows_are_read_or_refused() {
        let whole = [1, b'x', 0xfb, 2, b'y', b'z'];
        assert_eq!(row(&whole), Some(vec![Some("x".to_owned()), None, Some("yz".to_owned())]));
        for cut in [1, 4, 5] {
            assert_eq!(row(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(row(&[0xfe, 255, 255, 255, 255, 255, 255, 255, 255, b'x']), None);
        assert_eq!(row(&[0xfd, 1]), None);
    }

    /// Goal: number and message are found, with an SQLSTATE and without.
    #[test]
    fn an_error_keeps_its_number() {
        let found = error(b"\xff\x7a\x04#42S02no such table");
        assert_eq!(found.to_string(), "MariaDB says 1146: no such table");
        assert_eq!(found.code(), Some("1146"));
        assert_eq!(error(b"\xff\x10\x04Too many connections").to_string(), "MariaDB says 1040: Too many connections");
        assert_eq!(error(b"\xff").code(), Some("0"));
    }

    /// Goal: counts and status of an OK are read. Method: small and large counts, cut ones.
    #[test]
    fn an_ok_tells_its_count() {
        assert_eq!(ok(&[0, 3, 0, 2, 0, 0, 0]), Some((3, 2)));
        assert_eq!(ok(&[0, 0xfc, 1, 1, 0, 10, 0]), Some((257, 10)));
        assert_eq!(ok(&[0, 0xfc, 1]), None);
        assert_eq!(greeted(b"\x0a10.11\0\x05\0\0\0"), Some(("10.11".to_owned(), 5)));
        assert_eq!(greeted(b"\x0a10.11\0\x05"), None);
    }
}
