//! Rows rewritten: what goes, and that everything else stays as it was.

use super::*;
use crate::batch::{BatchBuilder, Compression, stamp};

/// A batch at an offset: pairs of key and value.
fn batch(base_offset: Offset, compression: Compression, records: &[(&str, Option<&str>)]) -> Bytes {
    let mut builder = BatchBuilder::new().producer(7, 1, 40).compression(compression);
    for (index, (key, value)) in records.iter().enumerate() {
        let key = Some(key.as_bytes()).filter(|key| !key.is_empty());
        builder = builder.record(1000 + index as i64, key, value.map(str::as_bytes));
    }
    let mut bytes = builder.build().unwrap().to_vec();
    stamp(&mut bytes, base_offset, 3);
    bytes.into()
}

fn offsets(row: &[u8]) -> Vec<(Offset, Vec<u8>)> {
    let mut found = Vec::new();
    for batch in Batches::new(row) {
        let (range, header) = batch.unwrap();
        for record in Records::new(&uncompressed(&header, &row[range], Limits::default()).unwrap()) {
            let record = record.unwrap();
            found.push((header.base_offset + i64::from(record.offset_delta), record.key.unwrap().to_vec()));
        }
    }
    found
}

fn mapped(rows: &[&Bytes]) -> Arc<LastOffsets> {
    let mut last = LastOffsets::default();
    rows.iter().for_each(|row| map(row, &mut last).unwrap());
    Arc::new(last)
}

/// What becomes of a row in which everything can be read.
fn rewritten(row: &Bytes, last: &Arc<LastOffsets>, tombstones_below: Offset) -> Rewritten {
    let (rewritten, unreadable) = rewrite(row, &mut Rules { last: Arc::clone(last), tombstones_below }).unwrap();
    assert_eq!(unreadable, []);
    rewritten
}

/// Goal: of each key the last record stays, at its offset, with its time, in a batch that clients accept, whatever the
/// compression. Method: two batches in a row, keys repeated inside one and across both.
#[test]
fn the_last_record_of_each_key_stays_where_it_was() {
    for compression in Compression::ALL {
        let first = batch(10, compression, &[("a", Some("1")), ("b", Some("1")), ("a", Some("2")), ("c", Some("1"))]);
        let second = batch(14, compression, &[("b", Some("2")), ("d", Some("1"))]);
        let row = Bytes::from([&first[..], &second[..]].concat());
        let last = mapped(&[&row]);
        let Rewritten::Less(less) = rewritten(&row, &last, 0) else { panic!("{compression:?}: something was to go") };
        let expected = [(12, b"a".to_vec()), (13, b"c".to_vec()), (14, b"b".to_vec()), (15, b"d".to_vec())];
        assert_eq!(offsets(&less), expected, "{compression:?}");
        let headers: Vec<_> = Batches::new(&less).map(|batch| batch.unwrap()).collect();
        let (range, header) = &headers[0];
        assert_eq!((header.base_offset, header.last_offset(), header.count, header.leader_epoch), (10, 13, 2, 3));
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (7, 1, 40));
        assert_eq!((header.base_timestamp, header.max_timestamp), (1000, 1003));
        assert_eq!(header.compression().unwrap(), compression);
        assert_eq!(crate::batch::crc_of(&less[range.clone()]), header.crc);
        // The second batch lost nothing, so not a byte of it changed.
        assert_eq!(less[headers[1].0.clone()], second);
    }
}

/// Goal: a row of which all is superseded goes whole, one of which nothing is stays as it is.
/// Method: two rows, the second with all keys of the first.
#[test]
fn a_row_goes_whole_or_stays_as_it_is() {
    let old = batch(0, Compression::None, &[("a", Some("1")), ("b", Some("1"))]);
    let new = batch(2, Compression::None, &[("b", Some("2")), ("a", Some("2"))]);
    let last = mapped(&[&old, &new]);
    assert_eq!(rewritten(&old, &last, 0), Rewritten::Nothing);
    assert_eq!(rewritten(&new, &last, 0), Rewritten::Same);
}

/// Goal: tombstones stay until their time has come, then go; records without a key go at once.
/// Method: one of each, with the bound on both sides.
#[test]
fn tombstones_go_when_they_were_seen_long_enough() {
    let row = batch(5, Compression::None, &[("a", None), ("", Some("x")), ("b", None)]);
    let last = mapped(&[&row]);
    let left = |tombstones_below| match rewritten(&row, &last, tombstones_below) {
        Rewritten::Less(less) => offsets(&less).into_iter().map(|(offset, _)| offset).collect::<Vec<_>>(),
        Rewritten::Same => vec![5, 6, 7],
        Rewritten::Nothing => vec![],
    };
    assert_eq!(left(0), [5, 7]);
    assert_eq!(left(5), [5, 7]);
    assert_eq!(left(6), [7]);
    assert_eq!(left(8), Vec::<Offset>::new());
}

/// Goal: bytes that are no batches are an error, never a row that vanishes. Method: cut a row anywhere.
#[test]
fn a_cut_row_is_an_error() {
    let row = batch(0, Compression::None, &[("a", Some("1")), ("a", Some("2"))]);
    let last = mapped(&[&row]);
    for end in 1..row.len() {
        let cut = row.slice(..end);
        let mut rules = Rules { last: Arc::clone(&last), tombstones_below: 0 };
        assert!(rewrite(&cut, &mut rules).is_err(), "cut at {end}");
        assert!(map(&cut, &mut LastOffsets::default()).is_err(), "cut at {end}");
    }
}

/// Goal: what cannot be read supersedes nothing, stays, and keeps the tombstones after it. Method: a batch that says that it
/// has more records than it has, between two of the same key, and a tombstone on either side of it.
#[test]
fn a_batch_that_cannot_be_read_stays_and_supersedes_nothing() {
    let first = batch(0, Compression::None, &[("a", Some("1")), ("t", None)]);
    let sound = batch(2, Compression::Gzip, &[("a", Some("2")), ("b", Some("1"))]);
    let header = Header::read(&sound).unwrap();
    let plain = uncompressed(&header, &sound, Limits::default()).unwrap();
    let odd = assemble(&Header { count: 3, ..header }, Compression::Gzip, &plain).unwrap();
    let after = batch(4, Compression::None, &[("u", None), ("c", Some("1"))]);
    let row = Bytes::from([&first[..], &odd[..], &after[..]].concat());
    let mut rules = Rules { last: mapped(&[&row]), tombstones_below: 10 };
    let (Rewritten::Less(less), unreadable) = rewrite(&row, &mut rules).unwrap() else { panic!("something was to go") };
    assert_eq!(unreadable.iter().map(|batch| batch.offset).collect::<Vec<_>>(), [2]);
    assert_eq!(rules.tombstones_below, 2, "also in the rows after this one");
    let left: Vec<_> = Batches::new(&less).map(|batch| batch.unwrap()).collect();
    assert_eq!(left.len(), 3);
    assert_eq!(
        offsets(&less[left[0].0.clone()]),
        [(0, b"a".to_vec())],
        "the tombstone before it is gone, the value stays"
    );
    assert_eq!(less[left[1].0.clone()], odd);
    assert_eq!(less[left[2].0.clone()], after, "the tombstone after it stays");
}
