//! The canonical encoding: a tuple as bytes, such that no two tuples share them.
//!
//! Each element is a tag, the length of its bytes (unsigned LEB128) and the bytes; the first is the tuple's kind.
//! Invariant: the bytes can be read back in one way only.

use sha2::{Digest as _, Sha256};

use super::hash::KeyHash;
use super::number::{Extreme, canonical};
use crate::fault::{self, Bug};

const KIND: u8 = b'k';
const TEXT: u8 = b't';
const NUMBER: u8 = b'n';
const BOOL: u8 = b'b';
const BYTES: u8 = b'x';
const VERSION: u8 = b'v';

/// Tuples up to this size cost no allocation; a key of a few fields has 50 to 120 bytes.
const STACK: usize = 224;

/// A tuple while it is written.
pub(super) struct Tuple {
    stack: [u8; STACK],
    length: usize,
    /// Holds everything once the stack was too small; empty until then.
    heap: Vec<u8>,
}

impl Tuple {
    /// An empty tuple.
    pub(super) const fn new() -> Self {
        Self { stack: [0; STACK], length: 0, heap: Vec::new() }
    }

    /// What the tuple is: its first element.
    pub(super) fn kind(&mut self, kind: &str) {
        self.element(KIND, kind.as_bytes());
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.element(TEXT, text.as_bytes());
    }

    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.element(BYTES, bytes);
    }

    #[inline]
    pub(super) fn boolean(&mut self, value: bool) {
        self.element(BOOL, &[u8::from(value)]);
    }

    #[inline]
    pub(super) fn number(&mut self, text: &str) -> Result<(), Extreme> {
        self.element(NUMBER, canonical(text)?.as_bytes());
        Ok(())
    }

    /// A count of ours: a number like any other.
    #[inline]
    pub(super) fn count(&mut self, mut count: u64) {
        let mut digits = [b'0'; 20];
        let mut start = digits.len() - 1;
        loop {
            digits[start] = b'0' + (count % 10) as u8;
            count /= 10;
            if count == 0 {
                break;
            }
            start -= 1;
        }
        self.element(NUMBER, &digits[start..]);
    }

    /// What follows is the version; `word` says which sort of version.
    pub(super) fn version(&mut self, word: &str) {
        self.element(VERSION, word.as_bytes());
    }

    /// Elements that are encoded already.
    pub(super) fn append(&mut self, encoded: &[u8]) {
        self.push(encoded);
    }

    #[inline]
    fn element(&mut self, tag: u8, bytes: &[u8]) {
        if fault::planted(Bug::KeyOfJoinedFields) {
            self.push(b":");
        } else {
            self.header(tag, bytes.len());
        }
        self.push(bytes);
    }

    #[inline]
    fn header(&mut self, tag: u8, length: usize) {
        let start = self.length;
        if length < 0x80 && self.heap.is_empty() && start + 2 <= STACK {
            // The common case, without the calls that copying two bytes would cost.
            self.stack[start] = tag;
            self.stack[start + 1] = length as u8;
            self.length = start + 2;
        } else {
            self.long_header(tag, length);
        }
    }

    #[cold]
    fn long_header(&mut self, tag: u8, length: usize) {
        self.push(&[tag]);
        let mut rest = length;
        while rest >= 0x80 {
            self.push(&[(rest & 0x7f) as u8 | 0x80]);
            rest >>= 7;
        }
        self.push(&[rest as u8]);
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if self.heap.is_empty() && end <= STACK {
            self.stack[self.length..end].copy_from_slice(bytes);
        } else {
            self.spill(bytes);
        }
        self.length = end;
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.heap.is_empty() {
            self.heap.extend_from_slice(&self.stack[..self.length]);
        }
        self.heap.extend_from_slice(bytes);
    }

    /// The canonical bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        if self.heap.is_empty() { &self.stack[..self.length] } else { &self.heap }
    }

    /// The key: the first half of the SHA-256 of the canonical bytes.
    pub(super) fn hash(&self) -> KeyHash {
        let digest = Sha256::digest(self.as_bytes());
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        KeyHash(half)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Element {
        Text(String),
        Bytes(Vec<u8>),
        Boolean(bool),
        Count(u64),
        Version(String),
    }

    fn encode(kind: &str, elements: &[Element]) -> Vec<u8> {
        let mut tuple = Tuple::new();
        tuple.kind(kind);
        for element in elements {
            match element {
                Element::Text(text) => tuple.text(text),
                Element::Bytes(bytes) => tuple.bytes(bytes),
                Element::Boolean(value) => tuple.boolean(*value),
                Element::Count(count) => tuple.count(*count),
                Element::Version(word) => tuple.version(word),
            }
        }
        tuple.as_bytes().to_vec()
    }

    /// Reads canonical bytes back: an encoding that reads back cannot give two tuples the same bytes.
    fn decode(mut bytes: &[u8]) -> Vec<Element> {
        let mut elements = Vec::new();
        while let Some((tag, rest)) = bytes.split_first() {
            let (mut length, mut shift, mut at) = (0_usize, 0, 0);
            loop {
                length |= usize::from(rest[at] & 0x7f) << shift;
                shift += 7;
                at += 1;
                if rest[at - 1] < 0x80 {
                    break;
                }
            }
            let payload = &rest[at..at + length];
            let text = || String::from_utf8(payload.to_vec()).unwrap();
            elements.push(match *tag {
                KIND | TEXT => Element::Text(text()),
                NUMBER => Element::Count(text().parse().unwrap()),
                BOOL => Element::Boolean(payload == [1]),
                BYTES => Element::Bytes(payload.to_vec()),
                VERSION => Element::Version(text()),
                other => panic!("no such tag {other}"),
            });
            bytes = &rest[at + length..];
        }
        elements
    }

    fn any_element() -> impl Strategy<Value = Element> {
        prop_oneof![
            // Few letters, tags and separators among them, so that near misses are frequent.
            "[a:tnxv\\x00-\\x03]{0,6}".prop_map(Element::Text),
            "(?s).{0,300}".prop_map(Element::Text),
            prop::collection::vec(any::<u8>(), 0..6).prop_map(Element::Bytes),
            any::<bool>().prop_map(Element::Boolean),
            prop_oneof![0..20_u64, any::<u64>()].prop_map(Element::Count),
            "[a-c]{0,2}".prop_map(Element::Version),
        ]
    }

    proptest! {
        /// Goal: distinct tuples never share canonical bytes. Method: every tuple reads back from its bytes.
        #[test]
        fn canonical_bytes_read_back_as_the_tuple(elements in prop::collection::vec(any_element(), 0..6)) {
            let mut all = vec![Element::Text("kind".to_owned())];
            all.extend_from_slice(&elements);
            prop_assert_eq!(decode(&encode("kind", &elements)), all);
        }

        /// Goal: the same, without trust in the reader. Method: two tuples of short texts from few letters.
        #[test]
        fn distinct_tuples_have_distinct_bytes(
            left in prop::collection::vec("[a:]{0,3}", 0..4), right in prop::collection::vec("[a:]{0,3}", 0..4),
        ) {
            let texts = |of: &[String]| of.iter().cloned().map(Element::Text).collect::<Vec<_>>();
            prop_assert_eq!(left == right, encode("k", &texts(&left)) == encode("k", &texts(&right)));
        }
    }

    /// Goal: a tuple is the same bytes on the stack and beyond it. Method: lengths around both limits.
    #[test]
    fn a_long_tuple_spills_and_stays_the_same() {
        for length in [0, 127, 128, STACK - 8, STACK - 4, STACK, 16_383, 16_384, 70_000] {
            let elements = [Element::Text("x".repeat(length)), Element::Count(7)];
            assert_eq!(decode(&encode("k", &elements))[1..], elements, "{length}");
        }
    }
}
