//! A PostgreSQL client that can do one thing: send text and read text, over loopback, without a password.
//!
//! Why our own: administration and judging need nothing more, and whoever judges a driver must not use it.
//! Not here: TLS, passwords, parameters, COPY.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::error::{Doing, ServiceError};
use crate::product::Product;

const VERSION: i32 = 196_608; // 3.0
const MESSAGE_MAX: i32 = 1 << 30;

/// What a statement answered: its rows as text, and the last command's tag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The rows of all statements, in order; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// The tag of the last command, like `INSERT 0 3`; of MariaDB the number of rows that it touched.
    pub tag: String,
}

impl Answer {
    /// The first value, if there is one and it is not NULL.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.rows.first()?.first()?.as_deref()
    }
}

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
    pid: i32,
}

impl Client {
    /// Connects to a server on loopback as `postgres`.
    ///
    /// # Errors
    /// If the server is not there, or refuses.
    pub fn connect(port: u16, database: &str) -> Result<Self, ServiceError> {
        let address = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&address).doing(|| format!("connect to {address}"))?;
        stream.set_nodelay(true).doing(|| "set up the connection".to_owned())?;
        let mut client = Self { stream: BufReader::new(stream), pid: 0 };
        let mut body = VERSION.to_be_bytes().to_vec();
        for word in ["user", "postgres", "database", database, "application_name", "hapax-services", ""] {
            body.extend_from_slice(word.as_bytes());
            body.push(0);
        }
        client.send(None, &body)?;
        client.greet()?;
        Ok(client)
    }

    /// The server's process that serves this connection.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// How long an answer may take; without a limit it may take for ever.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn limit(&self, limit: Duration) -> Result<(), ServiceError> {
        self.stream.get_ref().set_read_timeout(Some(limit)).doing(|| "limit the waiting".to_owned())
    }

    /// Sends one or more statements, and reads what they answer.
    ///
    /// # Errors
    /// What the server says, or a connection that broke.
    pub fn query(&mut self, sql: &str) -> Result<Answer, ServiceError> {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.send(Some(b'Q'), &body)?;
        let mut answer = Answer::default();
        let mut failed = None;
        loop {
            let (kind, body) = match self.receive() {
                Ok(message) => message,
                // A server that ends the connection says why before.
                Err(broken) => return Err(failed.unwrap_or(broken)),
            };
            match kind {
                b'D' => answer.rows.push(row(&body).ok_or_else(|| unexpected(kind))?),
                b'C' => answer.tag = String::from_utf8_lossy(&body).trim_end_matches('\0').to_owned(),
                b'E' => failed = Some(error(&body)),
                b'Z' => return failed.map_or(Ok(answer), Err),
                // Descriptions of rows, notices, parameters, an empty statement: nothing to do.
                b'T' | b'N' | b'S' | b'A' | b'I' => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    fn greet(&mut self) -> Result<(), ServiceError> {
        loop {
            let (kind, body) = self.receive()?;
            match kind {
                b'R' if number(&body, 0) == Some(0) => {}
                b'R' => return Err(ServiceError::Protocol("a question for a password".to_owned())),
                b'K' => self.pid = number(&body, 0).unwrap_or_default(),
                b'E' => return Err(error(&body)),
                b'Z' => return Ok(()),
                b'S' | b'N' => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> Result<(), ServiceError> {
        let length = i32::try_from(body.len() + 4).map_err(|_| ServiceError::Protocol("too long a text".to_owned()))?;
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(body);
        self.stream.get_mut().write_all(&message).doing(|| "send to PostgreSQL".to_owned())
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>), ServiceError> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).doing(|| "read from PostgreSQL".to_owned())?;
        let length = number(&head, 1).filter(|length| (4..MESSAGE_MAX).contains(length));
        let length = length.and_then(|length| usize::try_from(length - 4).ok()).ok_or_else(|| unexpected(head[0]))?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).doing(|| "read from PostgreSQL".to_owned())?;
        Ok((head[0], body))
    }
}

fn unexpected(kind: u8) -> ServiceError {
    ServiceError::Protocol(format!("a message '{}'", kind.escape_ascii()))
}

fn number(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The values of a DataRow.
fn row(body: &[u8]) -> Option<Vec<Option<String>>> {
    let count = u16::from_be_bytes(body.get(..2)?.try_into().ok()?);
    let mut at = 2;
    let mut values = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let length = number(body, at)?;
        at += 4;
        if let Ok(length) = usize::try_from(length) {
            values.push(Some(String::from_utf8_lossy(body.get(at..at + length)?).into_owned()));
            at += length;
        } else {
            values.push(None);
        }
    }
    Some(values)
}

/// The SQLSTATE and the message of an ErrorResponse.
fn error(body: &[u8]) -> ServiceError {
    let field = |wanted: u8| {
        let found = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&wanted));
        found.map(|field| String::from_utf8_lossy(&field[1..]).into_owned()).unwrap_or_default()
    };
    ServiceError::Server { product: Product::Postgres, code: field(b'C'), message: field(b'M') }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what the server sends never brings the client down. Method: rows whole, cut, and lying about lengths.
    #[test]
    fn rows_are_read_or_refused() {
        let whole = [0, 2, 0, 0, 0, 1, b'x', 255, 255, 255, 255];
        assert_eq!(row(&whole), Some(vec![Some("x".to_owned()), None]));
        for cut in 0..whole.len() {
            assert_eq!(row(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(row(&[0, 1, 127, 255, 255, 255, b'x']), None);
    }

    /// Goal: code and message are found wherever they stand.
    #[test]
    fn an_error_keeps_its_code() {
        let found = error(b"SERROR\0C57P03\0Mstarting up\0\0");
        assert_eq!(found.to_string(), "PostgreSQL says 57P03: starting up");
        assert_eq!(found.code(), Some("57P03"));
        assert_eq!(error(b"").code(), Some(""));
    }
}
