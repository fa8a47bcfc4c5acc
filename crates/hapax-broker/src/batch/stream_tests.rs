use super::*;
use crate::batch::{BatchBuilder, Keys, Records, assemble, check, walk};

fn records(count: usize, size: usize) -> BatchBuilder {
    let mut batch = BatchBuilder::new();
    for index in 0..count {
        let (key, value) = (format!("key {index}"), vec![b'v'; (size * (index % 7)) / 3]);
        let headers: [(&[u8], Option<&[u8]>); 2] = [(b"name", Some(b"text")), (b"", None)];
        let key = (index % 5 > 0).then_some(key.as_bytes());
        batch.push(1_000 + (index as i64 * 37) % 500, key, Some(&value), &headers[..index % 3]);
    }
    batch
}

fn passed(batch: &[u8], limits: Limits) -> Result<(Vec<Passed>, Vec<u8>), BatchError> {
    let (header, mut seen, mut copy) = (Header::read(batch)?, Vec::new(), Vec::new());
    pass(&header, batch, limits, Some(&mut copy), |record| {
        seen.push(record);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((seen, copy))
}

/// Goal: what is seen on the way is what lies in memory. Method: every codec, records around the size of a piece.
#[test]
fn a_stream_shows_the_records_that_lie_in_memory() {
    for compression in Compression::ALL {
        for (count, size) in [(1, 10), (50, 30), (300, 5_000), (3, 200_000)] {
            let batch = records(count, size).compression(compression).build().unwrap();
            let (seen, copy) = passed(&batch, Limits::default()).unwrap();
            let expected: Vec<_> = Records::new(&copy).map(Result::unwrap).collect();
            assert_eq!((seen.len(), expected.len()), (count, count), "{compression:?}");
            for (index, (seen, expected)) in (0..).zip(seen.iter().zip(expected)) {
                let Passed { timestamp_delta, offset_delta, has_key, .. } = *seen;
                let expected = (expected.timestamp_delta, expected.offset_delta, expected.key.is_some());
                assert_eq!((seen.index, (timestamp_delta, offset_delta, has_key)), (index, expected));
            }
        }
    }
}

/// Goal: the two ways of walking refuse the same. Method: records bent at random places, walked in memory and as a stream.
#[test]
fn both_ways_of_walking_refuse_the_same() {
    let plain = records(12, 40).build().unwrap();
    let header = Header::read(&plain).unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let (mut refused, mut taken) = (0, 0);
    for round in 0..4_000 {
        let mut bent = plain[HEADER..].to_vec();
        for _ in 0..random.usize(0..3) {
            let at = random.usize(0..bent.len());
            bent[at] = random.u8(..);
        }
        if round % 5 == 0 {
            bent.truncate(random.usize(0..bent.len()));
        }
        let in_memory = walk(&header, &bent, Keys::Optional);
        for compression in Compression::ALL {
            let batch = assemble(&header, compression, &bent).unwrap();
            let streamed = check(&batch, Keys::Optional, Limits::default());
            assert_eq!(
                streamed.is_ok(),
                in_memory.is_ok(),
                "round {round}, {compression:?}: {streamed:?}, {in_memory:?}"
            );
        }
        if in_memory.is_ok() { taken += 1 } else { refused += 1 }
    }
    assert!(taken > 500 && refused > 500, "{taken} taken, {refused} refused");
}

/// Goal: no more comes out than may. Method: a limit just below and at what is in it.
#[test]
fn a_stream_ends_at_its_limit() {
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let batch = records(40, 9_000).compression(compression).build().unwrap();
        let plain = passed(&batch, Limits::default()).unwrap().1.len();
        let limits = |bytes| Limits { bytes, free: bytes, ratio: 1 };
        assert!(passed(&batch, limits(plain)).is_ok(), "{compression:?}");
        let error = passed(&batch, limits(plain - 1)).unwrap_err();
        assert!(matches!(error, BatchError::Bomb { .. }), "{compression:?}: {error}");
    }
}
