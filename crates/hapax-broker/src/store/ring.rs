//! The last batches of a producer as bytes, the same in both stores.

use crate::store::{RingEntry, StoreError};

/// Bytes of one entry: two sequences, an offset, a timestamp, all big-endian.
const ENTRY: usize = 4 + 4 + 8 + 8;

/// Entries as bytes, oldest first.
pub(crate) fn encode(ring: &[RingEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ring.len() * ENTRY);
    for entry in ring {
        bytes.extend_from_slice(&entry.first_sequence.to_be_bytes());
        bytes.extend_from_slice(&entry.last_sequence.to_be_bytes());
        bytes.extend_from_slice(&entry.base_offset.to_be_bytes());
        bytes.extend_from_slice(&entry.timestamp.to_be_bytes());
    }
    bytes
}

/// Entries from bytes.
///
/// # Errors
/// If they are not a whole number of entries.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<RingEntry>, StoreError> {
    let (entries, rest) = bytes.as_chunks::<ENTRY>();
    if !rest.is_empty() {
        return Err(StoreError::Damaged(format!("a ring of {} bytes", bytes.len())));
    }
    Ok(entries.iter().map(entry).collect())
}

fn entry(bytes: &[u8; ENTRY]) -> RingEntry {
    let four = |at: usize| i32::from_be_bytes(std::array::from_fn(|index| bytes[at + index]));
    let eight = |at: usize| i64::from_be_bytes(std::array::from_fn(|index| bytes[at + index]));
    RingEntry { first_sequence: four(0), last_sequence: four(4), base_offset: eight(8), timestamp: eight(16) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is written is what is read. Method: extreme values, and a ring that was cut.
    #[test]
    fn a_ring_survives_and_a_cut_one_is_refused() {
        let ring = vec![
            RingEntry { first_sequence: i32::MAX - 1, last_sequence: 3, base_offset: i64::MAX, timestamp: -1 },
            RingEntry { first_sequence: 4, last_sequence: 4, base_offset: 0, timestamp: 1_700_000_000_000 },
        ];
        let bytes = encode(&ring);
        assert_eq!(decode(&bytes), Ok(ring));
        assert!(matches!(decode(&bytes[1..]), Err(StoreError::Damaged(_))));
        assert_eq!(decode(&[]), Ok(vec![]));
    }
}
