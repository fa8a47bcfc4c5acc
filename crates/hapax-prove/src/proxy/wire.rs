//! Frames of PostgreSQL's protocol, and the statements that a client's messages carry.

use std::collections::HashMap;
use std::io::{self, Read};

use super::fault::normal;

const SSL: i32 = 80_877_103;
const GSS: i32 = 80_877_104;
const CANCEL: i32 = 80_877_102;
const FRAME_MAX: usize = 1 << 30;

/// One message: its kind (0 for the first of a connection, which has none) and all its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) bytes: Vec<u8>,
}

impl Frame {
    /// A message of its own making.
    pub(super) fn query(sql: &str) -> Self {
        let length = u32::try_from(sql.len() + 5).unwrap_or(u32::MAX);
        let mut bytes = vec![b'Q'];
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(sql.as_bytes());
        bytes.push(0);
        Self { kind: b'Q', bytes }
    }

    pub(super) fn body(&self) -> &[u8] {
        self.bytes.get(5..).unwrap_or_default()
    }
}

/// What a connection begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    /// A question for encryption, which is answered with no.
    Encryption,
    /// A request to cancel what another connection does; nothing follows.
    Cancel(Vec<u8>),
    /// The real beginning.
    Startup(Vec<u8>),
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn sized(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(head) as usize;
    if (4..FRAME_MAX).contains(&length) { Ok(length) } else { Err(invalid("a length that no message has")) }
}

/// Reads a message without a kind.
pub(super) fn greeting(from: &mut impl Read) -> io::Result<Greeting> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let mut bytes = head.to_vec();
    bytes.resize(sized(head)?, 0);
    from.read_exact(&mut bytes[4..])?;
    let code = bytes.get(4..8).and_then(|code| code.try_into().ok()).map(i32::from_be_bytes);
    match code {
        Some(SSL | GSS) => Ok(Greeting::Encryption),
        Some(CANCEL) => Ok(Greeting::Cancel(bytes)),
        Some(_) => Ok(Greeting::Startup(bytes)),
        None => Err(invalid("a greeting without a version")),
    }
}

/// Reads a message with a kind.
pub(super) fn frame(from: &mut impl Read) -> io::Result<Frame> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let length = sized([head[1], head[2], head[3], head[4]])?;
    let mut bytes = head.to_vec();
    bytes.resize(length + 1, 0);
    from.read_exact(&mut bytes[5..])?;
    Ok(Frame { kind: head[0], bytes })
}

/// Text up to the first NUL, and what follows it.
fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((String::from_utf8_lossy(&bytes[..end]).into_owned(), &bytes[end + 1..]))
}

/// The statements that a client has prepared and bound.
#[derive(Debug, Default)]
pub(super) struct Statements {
    prepared: HashMap<String, String>,
    bound: HashMap<String, String>,
}

impl Statements {
    /// The statement that the server runs on this message, normal; none if it runs nothing.
    pub(super) fn run_by(&mut self, frame: &Frame) -> Option<String> {
        let (first, rest) = text(frame.body())?;
        match frame.kind {
            b'Q' => Some(normal(&first)),
            b'P' => {
                self.prepared.insert(first, normal(&text(rest)?.0));
                None
            }
            b'B' => {
                let statement = self.prepared.get(&text(rest)?.0).cloned().unwrap_or_default();
                self.bound.insert(first, statement);
                None
            }
            b'E' => self.bound.get(&first).cloned(),
            _ => None,
        }
    }
}

/// The tag of a CommandComplete.
pub(super) fn tag(frame: &Frame) -> Option<String> {
    (frame.kind == b'C').then(|| text(frame.body()).map(|(tag, _)| tag)).flatten()
}

/// Whether it is an ErrorResponse with this SQLSTATE.
pub(super) fn is_error(frame: &Frame, code: &str) -> bool {
    let field = |field: &[u8]| field.first() == Some(&b'C') && field.get(1..) == Some(code.as_bytes());
    frame.kind == b'E' && frame.body().split(|byte| *byte == 0).any(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Frame {
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        Frame { kind, bytes }
    }

    /// Goal: a statement is known when the server runs it, not before. Method: parse, bind, execute, and simple text.
    #[test]
    fn a_prepared_statement_is_known_when_it_runs() {
        let mut statements = Statements::default();
        assert_eq!(statements.run_by(&message(b'P', b"s1\0SELECT  \"A\"\0\0\0")), None);
        assert_eq!(statements.run_by(&message(b'B', b"p1\0s1\0\0\0\0\0\0\0")), None);
        assert_eq!(statements.run_by(&message(b'E', b"p1\0\0\0\0\0")), Some("select a".to_owned()));
        assert_eq!(statements.run_by(&message(b'Q', b"COMMIT\0")), Some("commit".to_owned()));
        assert_eq!(statements.run_by(&message(b'E', b"none\0\0\0\0\0")), None);
        assert_eq!(statements.run_by(&message(b'S', b"")), None);
    }

    /// Goal: frames pass unchanged and lies about lengths do not bring the proxy down. Method: whole, cut, too long.
    #[test]
    fn frames_are_read_or_refused() {
        let whole = Frame::query("COMMIT");
        assert_eq!(frame(&mut whole.bytes.as_slice()).expect("it is whole"), whole);
        assert_eq!(whole, message(b'Q', b"COMMIT\0"));
        for cut in 0..whole.bytes.len() {
            assert!(frame(&mut &whole.bytes[..cut]).is_err());
        }
        assert!(frame(&mut [b'Q', 255, 255, 255, 255].as_slice()).is_err());
        assert!(greeting(&mut [0, 0, 0, 4].as_slice()).is_err());
        let ssl = [0, 0, 0, 8, 4, 210, 22, 47];
        assert_eq!(greeting(&mut ssl.as_slice()).expect("it is whole"), Greeting::Encryption);
        assert_eq!(tag(&message(b'C', b"COMMIT\0")), Some("COMMIT".to_owned()));
    }
}
