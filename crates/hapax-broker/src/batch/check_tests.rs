use bytes::{Bytes, BytesMut};
use kafka_protocol::error::ResponseError;

use super::*;
use crate::batch::header::{at, bit};
use crate::batch::stamp::put;
use crate::batch::{BatchBuilder, set_append_time, set_max_timestamp, stamp};

fn sound() -> BytesMut {
    let batch = BatchBuilder::new()
        .producer(7, 0, 0)
        .record(1_000, Some(b"a"), Some(b"one"))
        .record_with(1_005, Some(b"b"), None, &[(b"h", Some(b"x")), (b"h", None)])
        .record(1_002, Some(b"c"), Some(b""))
        .build()
        .unwrap();
    BytesMut::from(&batch[..])
}

fn seal(batch: &mut [u8]) {
    let crc = crc_of(batch);
    put(batch, at::CRC, &crc.to_be_bytes());
}

fn refused(batch: &[u8]) -> ResponseError {
    check(batch, Keys::Optional, Limits::default()).unwrap_err().response()
}

/// Goal: a sound batch is read as it was written. Method: every field of the header, and the greatest timestamp.
#[test]
fn a_sound_batch_passes() {
    let batch = sound();
    let checked = check(&batch, Keys::Required, Limits::default()).unwrap();
    assert_eq!(checked.corrected_timestamp, None);
    let header = checked.header;
    assert_eq!((header.count, header.last_offset_delta, header.size), (3, 2, batch.len()));
    assert_eq!((header.base_timestamp, header.max_timestamp), (1_000, 1_005));
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (7, 0, 0));
}

/// Goal: producer id, epoch and sequence are where Kafka has them. Method: write bytes at 43, 51 and 53 by hand.
#[test]
fn the_producer_lies_at_bytes_43_51_and_53() {
    let mut batch = sound();
    batch[43..51].copy_from_slice(&0x0102_0304_0506_0708_i64.to_be_bytes());
    batch[51..53].copy_from_slice(&0x0910_i16.to_be_bytes());
    batch[53..57].copy_from_slice(&0x1112_1314_i32.to_be_bytes());
    let header = Header::read(&batch).unwrap();
    assert_eq!(header.producer_id, 0x0102_0304_0506_0708);
    assert_eq!((header.producer_epoch, header.base_sequence), (0x0910, 0x1112_1314));
}

/// Goal: each thing that can be wrong with a header is told apart. Method: one byte or field changed, checksum made to fit.
#[test]
fn a_wrong_field_is_refused_with_its_code() {
    let cases: [(&str, usize, &[u8], ResponseError); 11] = [
        ("old format", at::MAGIC, &[1], ResponseError::InvalidRecord),
        ("base offset", at::BASE_OFFSET, &5_i64.to_be_bytes(), ResponseError::InvalidRecord),
        ("no records", at::COUNT, &0_i32.to_be_bytes(), ResponseError::InvalidRecord),
        ("negative count", at::COUNT, &(-3_i32).to_be_bytes(), ResponseError::InvalidRecord),
        ("count beyond the delta", at::COUNT, &4_i32.to_be_bytes(), ResponseError::InvalidRecord),
        ("huge delta", at::LAST_OFFSET_DELTA, &i32::MAX.to_be_bytes(), ResponseError::InvalidRecord),
        ("control", at::ATTRIBUTES, &bit::CONTROL.to_be_bytes(), ResponseError::InvalidRecord),
        ("no sequence", at::BASE_SEQUENCE, &(-1_i32).to_be_bytes(), ResponseError::InvalidRecord),
        ("no epoch", at::PRODUCER_EPOCH, &(-1_i16).to_be_bytes(), ResponseError::InvalidRecord),
        ("unknown compression", at::ATTRIBUTES, &5_i16.to_be_bytes(), ResponseError::UnsupportedCompressionType),
        ("negative length", at::LENGTH, &(-1_i32).to_be_bytes(), ResponseError::InvalidRecord),
    ];
    for (name, at, bytes, code) in cases {
        let mut batch = sound();
        put(&mut batch, at, bytes);
        seal(&mut batch);
        assert_eq!(refused(&batch), code, "{name}");
    }
}

/// Goal: a flipped bit is found wherever it is. Method: flip each byte after the checksum.
#[test]
fn a_flipped_bit_fails_the_checksum() {
    for index in at::ATTRIBUTES..sound().len() {
        let mut batch = sound();
        batch[index] ^= 1;
        assert_eq!(refused(&batch), ResponseError::CorruptMessage, "byte {index}");
    }
}

/// Goal: nothing is read beyond the bytes. Method: every prefix of a batch, and a batch with more behind it.
#[test]
fn a_batch_that_is_cut_or_followed_is_refused() {
    let batch = sound();
    for length in 0..batch.len() {
        assert_eq!(refused(&batch[..length]), ResponseError::InvalidRecord, "{length} bytes");
    }
    let twice = [&batch[..], &batch[..]].concat();
    assert_eq!(check(&twice, Keys::Optional, Limits::default()), Err(BatchError::Several { extra: batch.len() }));
}

/// Goal: records that cannot be walked are refused. Method: bytes after the header changed, checksum made to fit.
#[test]
fn records_that_cannot_be_walked_are_refused() {
    let cases: [(&str, &[u8]); 7] = [
        ("negative length", &[0x01]),
        ("longer than the batch", &[0xfe, 0x7f]),
        ("length without end", &[0xff, 0xff, 0xff, 0xff, 0xff]),
        ("empty record", &[0x00]),
        ("offset does not follow", &[0x10, 0, 0, 4]),
        ("negative key length", &[0x10, 0, 0, 0, 3]),
        ("huge key length", &[0x10, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f]),
    ];
    for (name, bytes) in cases {
        let mut batch = sound();
        put(&mut batch, HEADER, bytes);
        seal(&mut batch);
        let error = check(&batch, Keys::Optional, Limits::default()).unwrap_err();
        assert!(matches!(error, BatchError::Record { .. }), "{name}: {error}");
        assert_eq!(error.response(), ResponseError::InvalidRecord, "{name}");
    }
}

/// Goal: the header's count is the truth. Method: a header that says one record less, and one more, than there are.
#[test]
fn a_count_that_is_not_the_records_is_refused() {
    for count in [2_i32, 4] {
        let mut batch = sound();
        put(&mut batch, at::COUNT, &count.to_be_bytes());
        put(&mut batch, at::LAST_OFFSET_DELTA, &(count - 1).to_be_bytes());
        seal(&mut batch);
        assert_eq!(refused(&batch), ResponseError::InvalidRecord, "{count}");
    }
}

/// Goal: a compacted topic refuses records without a key, compressed or not. Method: all compressions.
#[test]
fn a_null_key_is_refused_where_keys_are_required() {
    for compression in Compression::ALL {
        let builder = BatchBuilder::new().compression(compression).record(0, Some(b"k"), None).record(0, None, None);
        let batch = builder.build().unwrap();
        assert!(check(&batch, Keys::Optional, Limits::default()).is_ok());
        let error = check(&batch, Keys::Required, Limits::default()).unwrap_err();
        assert_eq!(error, BatchError::NullKey { index: 1 }, "{compression:?}");
    }
}

/// Goal: a greatest timestamp that is not the records' is corrected. Method: write another into the header.
#[test]
fn a_wrong_greatest_timestamp_is_corrected() {
    let mut batch = sound();
    set_max_timestamp(&mut batch, 9_999_999);
    let checked = check(&batch, Keys::Optional, Limits::default()).unwrap();
    assert_eq!(checked.corrected_timestamp, Some(1_005));
}

/// Goal: what the leader writes keeps the checksum right. Method: stamp, append time, check the bytes.
#[test]
fn stamps_keep_the_checksum() {
    let mut batch = sound();
    let before = Header::read(&batch).unwrap();
    stamp(&mut batch, 77, 5);
    let stamped = Header::read(&batch).unwrap();
    assert_eq!((stamped.base_offset, stamped.leader_epoch, stamped.crc), (77, 5, before.crc));
    assert_eq!(stamped.last_offset(), 79);
    set_append_time(&mut batch, 123_456);
    let timed = Header::read(&batch).unwrap();
    assert!(timed.is_append_time());
    assert_eq!((timed.max_timestamp, timed.timestamp(5)), (123_456, 123_456));
    assert_eq!(timed.crc, crc_of(&batch));
}

/// Goal: the codec that clients use reads what we build. Method: decode by `kafka-protocol`.
#[test]
fn another_decoder_reads_our_batches() {
    let batch = BatchBuilder::new()
        .producer(3, 1, 9)
        .record(10, None, Some(b"v"))
        .record_with(11, Some(b"k"), None, &[(b"n", Some(b"w"))])
        .build()
        .unwrap();
    let mut bytes = Bytes::clone(&batch);
    let set = kafka_protocol::records::RecordBatchDecoder::decode(&mut bytes).unwrap();
    assert_eq!(set.records.len(), 2);
    assert_eq!(set.records[1].sequence, 10);
    assert_eq!(set.records[1].key.as_deref(), Some(&b"k"[..]));
    assert_eq!(set.records[1].headers.len(), 1);
    assert_eq!(set.records[0].value.as_deref(), Some(&b"v"[..]));
}
