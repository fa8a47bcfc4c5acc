//! The last batches of a producer as bytes: 24 each, oldest first.

use crate::store::{RingEntry, StoreError};

const ENTRY: usize = 24;
const MOST: usize = 5;

pub(super) fn to_bytes(ring: &[RingEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ring.len() * ENTRY);
    for entry in ring {
        bytes.extend(entry.first_sequence.to_be_bytes());
        bytes.extend(entry.last_sequence.to_be_bytes());
        bytes.extend(entry.base_offset.to_be_bytes());
        bytes.extend(entry.timestamp.to_be_bytes());
    }
    bytes
}

pub(super) fn from_bytes(bytes: &[u8]) -> Result<Vec<RingEntry>, StoreError> {
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    if !rest.is_empty() || entries.len() > MOST {
        let message = format!("a ring in kafka.producer_sequences has {} bytes", bytes.len());
        return Err(StoreError::Damaged(message));
    }
    Ok(entries.iter().map(entry).collect())
}

fn entry(bytes: &[u8; ENTRY]) -> RingEntry {
    let four = |at: usize| i32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let eight = |at: usize| (i64::from(four(at)) << 32) | i64::from(four(at + 4).cast_unsigned());
    RingEntry { first_sequence: four(0), last_sequence: four(4), base_offset: eight(8), timestamp: eight(16) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a ring comes back, and damaged bytes are told. Method: extreme numbers; lengths that cannot be.
    #[test]
    fn a_ring_comes_back_from_its_bytes() {
        let entry = |number: i32| RingEntry {
            first_sequence: i32::MAX - number,
            last_sequence: number,
            base_offset: i64::MAX - i64::from(number),
            timestamp: -1,
        };
        for count in 0..=5 {
            let ring: Vec<_> = (0..count).map(entry).collect();
            assert_eq!(from_bytes(&to_bytes(&ring)).unwrap(), ring);
        }
        for length in [1, 23, 25, 144] {
            assert!(matches!(from_bytes(&vec![0; length]), Err(StoreError::Damaged(_))), "{length}");
        }
    }
}
