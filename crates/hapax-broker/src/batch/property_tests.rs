//! Batches under random records and random bytes.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

type Pairs = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn record() -> impl Strategy<Value = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Pairs)> {
    let bytes = || vec(any::<u8>(), 0..200);
    (-5_000..5_000_i64, option::of(bytes()), option::of(bytes()), vec((bytes(), option::of(bytes())), 0..4))
}

proptest! {
    /// Goal: records come back as they were put in. Method: random records under each compression.
    #[test]
    fn records_survive_every_compression(records in vec(record(), 1..40), which in 0..5_usize) {
        let mut builder = BatchBuilder::new().compression(Compression::ALL[which]);
        for (timestamp, key, value, headers) in &records {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_slice(), value.as_deref())).collect();
            builder.push(*timestamp, key.as_deref(), value.as_deref(), &headers);
        }
        let batch = builder.build().unwrap();
        let checked = check(&batch, Keys::Optional, Limits::default()).unwrap();
        prop_assert_eq!(checked.corrected_timestamp, None);
        let plain = uncompressed(&checked.header, &batch, Limits::default()).unwrap();
        prop_assert_eq!(walk(&checked.header, &plain, Keys::Optional).unwrap(), checked.header.max_timestamp);
        let mut raw = Vec::new();
        for (index, (found, (timestamp, key, value, headers))) in Records::new(&plain).zip(&records).enumerate() {
            let found = found.unwrap();
            prop_assert_eq!(found.offset_delta, index as i32);
            prop_assert_eq!(checked.header.timestamp(found.timestamp_delta), *timestamp);
            prop_assert_eq!(found.key, key.as_deref());
            prop_assert_eq!(found.value, value.as_deref());
            let pairs: Pairs = found.headers.map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec))).collect();
            prop_assert_eq!(&pairs, headers);
            raw.extend_from_slice(found.raw);
        }
        prop_assert_eq!(raw.as_slice(), &plain[..]);
    }

    /// Goal: no bytes make us panic. Method: noise behind a sound header, its checksum made to fit.
    #[test]
    fn noise_is_refused_or_walked_but_never_panics(noise in vec(any::<u8>(), 0..400), count in 1..6_i32, attributes in 0..5_i16) {
        let sound = BatchBuilder::new().record(0, None, None).build().unwrap();
        let mut header = Header::read(&sound).unwrap();
        header.count = count;
        header.last_offset_delta = count - 1;
        header.attributes = 0;
        let mut batch = assemble(&header, Compression::None, &noise).unwrap().to_vec();
        drop(check(&batch, Keys::Required, Limits::default()));
        batch[22] = attributes as u8;
        set_max_timestamp(&mut batch, 0);
        drop(check(&batch, Keys::Required, Limits::default()));
        drop(check(&noise, Keys::Required, Limits::default()));
        drop(slice(&noise, 0, 10, 1_000, FirstBatch::Always));
    }

    /// Goal: a reader gets whole batches from the one that holds its offset. Method: random rows and limits, against a list.
    #[test]
    fn a_row_is_cut_at_its_batches(counts in vec(1..5_i32, 1..12), from in 0..60_i64, below in 0..60_i64, max in 0..1_200_usize) {
        let mut row = Vec::new();
        let mut batches = Vec::new();
        let mut next = 0_i64;
        for count in counts {
            let builder = (0..count).fold(BatchBuilder::new(), |builder, _| builder.record(0, None, Some(b"value")));
            let mut batch = builder.build().unwrap().to_vec();
            stamp(&mut batch, next, 3);
            batches.push((next, next + i64::from(count) - 1, row.len()..row.len() + batch.len()));
            row.extend_from_slice(&batch);
            next += i64::from(count);
        }
        for first in [FirstBatch::Always, FirstBatch::IfItFits] {
            let cut = slice(&row, from, below, max, first).unwrap();
            let mut expected = Vec::new();
            for (base, last, range) in &batches {
                if *last < from { continue }
                if *base >= below { break }
                let bytes: usize = expected.iter().map(std::ops::Range::<usize>::len).sum();
                if bytes + range.len() > max && !(expected.is_empty() && first == FirstBatch::Always) { break }
                expected.push(range.clone());
            }
            let bytes: usize = expected.iter().map(std::ops::Range::len).sum();
            prop_assert_eq!(cut.range.len(), bytes);
            if let Some(range) = expected.first() {
                prop_assert_eq!(cut.range.start, range.start);
            }
        }
    }
}
