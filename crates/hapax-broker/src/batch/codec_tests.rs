use super::*;
use crate::batch::{BatchBuilder, Header, Keys, check, rewrite};

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|index| b"the quick brown fox "[index * 7 % 20] ^ (index / 911) as u8).collect()
}

/// Goal: every compression gives back what went in. Method: sizes around the block sizes.
#[test]
fn each_compression_gives_back_what_went_in() {
    for compression in Compression::ALL {
        for length in [0, 1, 100, XERIAL_BLOCK - 1, XERIAL_BLOCK, XERIAL_BLOCK + 1, 300_000] {
            let plain = text(length);
            let packed = compress(compression, &plain).unwrap();
            let back = decompress(compression, &packed, Limits::default()).unwrap();
            assert!(back == plain, "{compression:?}, {length} bytes");
        }
    }
}

/// Goal: snappy without Java's frame is read, too. Method: one bare block, as librdkafka and Go send it.
#[test]
fn bare_snappy_is_read() {
    let plain = text(100_000);
    let packed = snap::raw::Encoder::new().compress_vec(&plain).unwrap();
    assert!(decompress(Compression::Snappy, &packed, Limits::default()).unwrap() == plain);
}

/// Goal: Java's snappy frame is what Java writes. Method: its sixteen bytes.
#[test]
fn our_snappy_begins_as_java_does() {
    let packed = compress(Compression::Snappy, b"x").unwrap();
    assert_eq!(&packed[..16], b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
}

/// Goal: several gzip members and zstd frames are one stream. Method: two of each, end to end.
#[test]
fn streams_of_several_parts_are_read() {
    for compression in [Compression::Gzip, Compression::Zstd] {
        let packed = [compress(compression, b"one ").unwrap(), compress(compression, b"two").unwrap()].concat();
        assert_eq!(decompress(compression, &packed, Limits::default()).unwrap(), b"one two", "{compression:?}");
    }
}

/// Goal: a bomb is refused before it is held. Method: 65 MiB of zeros, and a low limit by ratio.
#[test]
fn bombs_are_refused() {
    let zeros = vec![0; 65 << 20];
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let packed = compress(compression, &zeros).unwrap();
        let error = decompress(compression, &packed, Limits::default()).unwrap_err();
        assert!(matches!(error, BatchError::Bomb { .. }), "{compression:?}: {error}");
        let small = compress(compression, &zeros[..1 << 20]).unwrap();
        let strict = Limits { bytes: 64 << 20, free: 1_000, ratio: 2 };
        let error = decompress(compression, &small, strict).unwrap_err();
        assert!(matches!(error, BatchError::Bomb { .. }), "{compression:?}: {error}");
        assert_eq!(decompress(compression, &small, Limits::default()).unwrap().len(), 1 << 20);
    }
}

/// Goal: a snappy length of four gigabytes allocates nothing. Method: a block whose first bytes say so.
#[test]
fn a_lying_snappy_length_is_refused() {
    let block = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0];
    assert!(matches!(decompress(Compression::Snappy, &block, Limits::default()), Err(BatchError::Bomb { .. })));
}

/// Goal: bytes that are no stream are refused and never panic. Method: cut streams, and noise.
#[test]
fn broken_streams_are_refused() {
    let plain = text(50_000);
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let packed = compress(compression, &plain).unwrap();
        for length in [1, 7, 17, packed.len() / 2, packed.len() - 6] {
            let back = decompress(compression, &packed[..length], Limits::default());
            assert!(back.is_err() || back.unwrap() != plain, "{compression:?} cut at {length}");
        }
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let mut noise = packed.clone();
            for _ in 0..20 {
                let at = random.usize(..noise.len());
                noise[at] = random.u8(..);
            }
            drop(decompress(compression, &noise, Limits::default()));
        }
    }
}

/// Goal: a batch changes its compression and nothing else. Method: every pair of compressions.
#[test]
fn a_batch_is_rewritten_from_every_compression_to_every_other() {
    let builder = (0..500).fold(BatchBuilder::new().producer(9, 2, 40), |builder, index| {
        builder.record(1_000 + index, Some(b"key"), Some(&text(80)))
    });
    let plain = builder.build().unwrap();
    for from in Compression::ALL {
        let batch = builder.clone().compression(from).build().unwrap();
        for to in Compression::ALL {
            let other = rewrite(&batch, to, Limits::default()).unwrap();
            let header = check(&other, Keys::Required, Limits::default()).unwrap().header;
            assert_eq!(header.compression(), Ok(to));
            assert_eq!((header.count, header.producer_id, header.base_sequence), (500, 9, 40));
            assert!(rewrite(&other, Compression::None, Limits::default()).unwrap() == plain, "{from:?} to {to:?}");
            assert_eq!(header.max_timestamp, Header::read(&plain).unwrap().max_timestamp);
        }
    }
}

/// Goal: names and numbers are Kafka's. Method: the list.
#[test]
fn names_and_numbers_are_those_of_kafka() {
    let all = Compression::ALL.map(|compression| (compression.id(), compression.name()));
    assert_eq!(all, [(0, "uncompressed"), (1, "gzip"), (2, "snappy"), (3, "lz4"), (4, "zstd")]);
    for compression in Compression::ALL {
        assert_eq!(Compression::named(compression.name()), Some(compression));
    }
    assert_eq!(Compression::named("producer"), None);
}

/// Goal: a level counts where the codec has one, and whatever it is the bytes come back. Method: the edges and the default.
#[test]
fn levels_count_where_there_are_any() {
    let plain = text(200_000);
    for (compression, levels) in [(Compression::Gzip, [1, 9]), (Compression::Zstd, [-7, 19])] {
        let sizes = levels.map(|level| {
            let packed = compress_at(compression, Some(level), &plain).unwrap();
            assert!(decompress(compression, &packed, Limits::default()).unwrap() == plain);
            packed.len()
        });
        assert!(sizes[1] < sizes[0], "{compression:?}: {sizes:?}");
    }
    let default = compress(Compression::Gzip, &plain).unwrap();
    assert_eq!(compress_at(Compression::Gzip, Some(-1), &plain).unwrap(), default);
    assert_eq!(compress_at(Compression::Snappy, Some(5), &plain), compress(Compression::Snappy, &plain));
}
