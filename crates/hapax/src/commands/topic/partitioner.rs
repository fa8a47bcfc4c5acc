//! Where a key belongs: the same partition that Kafka's own clients choose.

/// The partition of a key among `partitions`.
pub(super) fn partition_of(key: &[u8], partitions: i32) -> i32 {
    let positive = i32::from_ne_bytes((murmur2(key) & 0x7fff_ffff).to_ne_bytes());
    positive % partitions.max(1)
}

/// Murmur 2 in the form and with the seed of Kafka's default partitioner.
fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut hash = SEED ^ length;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut mixed = u32::from_le_bytes(*word).wrapping_mul(M);
        mixed ^= mixed >> R;
        hash = hash.wrapping_mul(M) ^ mixed.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * at);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: keys go where Kafka's clients put them. Method: the values that Kafka's own test of its hash lists.
    #[test]
    fn keys_go_where_kafka_puts_them() {
        for (key, hash) in [
            ("21", -973_932_308_i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()), u32::from_ne_bytes(hash.to_ne_bytes()), "{key}");
            assert!((0..6).contains(&partition_of(key.as_bytes(), 6)));
        }
    }
}
