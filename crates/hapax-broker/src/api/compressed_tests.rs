//! Compressed batches are judged by what is in them, whatever becomes of them.

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use std::net::{Ipv4Addr, SocketAddr};

use super::log_rig::{Rig, fetch, fetched, for_version, produce, produced, send};
use crate::api::Call;
use crate::batch::{BatchBuilder, Compression, Header, assemble, set_max_timestamp};
use crate::config::SETTINGS;

const CODECS: [Compression; 4] = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
/// As a producer sends it: kept as it comes, and two other ways.
const KINDS: [&str; 3] = ["producer", "uncompressed", "gzip"];

fn three(compression: Compression, time: i64) -> Bytes {
    let batch = BatchBuilder::new().compression(compression);
    let batch = batch.record(time, Some(b"a"), Some(b"one")).record(time, Some(b"b"), None);
    batch.record(time, Some(b"c"), Some(b"three")).build().unwrap()
}

/// A batch whose header says that it has another number of records.
fn claiming(batch: &Bytes, count: i32) -> Bytes {
    let header = Header::read(batch).unwrap();
    let compression = header.compression().unwrap();
    let records = crate::batch::uncompressed(&header, batch, crate::batch::Limits::default()).unwrap();
    assemble(&Header { count, last_offset_delta: count - 1, ..header }, compression, &records).unwrap()
}

/// A batch whose records are no stream of its compression.
fn garbage(compression: Compression) -> Bytes {
    let plain = BatchBuilder::new().record(0, None, Some(b"not what it says")).build().unwrap();
    let header = Header::read(&plain).unwrap();
    let attributes = header.attributes | compression.id();
    let mut bytes = BytesMut::from(&assemble(&header, Compression::None, &[0xa5; 64]).unwrap()[..]);
    bytes[21..23].copy_from_slice(&attributes.to_be_bytes());
    let crc = crate::batch::crc_of(&bytes);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes.freeze()
}

/// Goal: a compressed batch is refused as an uncompressed one is, whatever the topic does with compression.
/// Method: every codec, three kinds of topics, everything that can be wrong inside; then a good one.
#[tokio::test]
async fn what_is_wrong_inside_a_compressed_batch_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let now = crate::log::now();
    for kind in KINDS {
        let topic = rig.topic(&format!("c-{kind}"), 1, &[("compression.type", kind)]).await;
        for (offset, codec) in (0..).zip(CODECS) {
            let good = three(codec, now);
            let cases = [
                ("no stream", garbage(codec), -1),
                ("fewer records than it says", claiming(&good, 4), 87),
                ("more records than it says", claiming(&good, 2), 87),
                ("in the future", three(codec, now + 7_200_000), 32),
            ];
            for (what, batch, code) in cases {
                let answer = send(&mut connection, &topic, batch).await;
                assert_eq!(answer, (code, -1), "{kind}, {codec:?}: {what}");
            }
            // A header that lies about the time only is put right, as without compression.
            let mut lying = BytesMut::from(&good[..]);
            set_max_timestamp(&mut lying, i64::MAX);
            assert_eq!(send(&mut connection, &topic, lying.freeze()).await, (0, offset * 3), "{kind}, {codec:?}");
            let response = connection.call_at(12, &fetch(&topic, offset * 3, 12)).await.unwrap();
            let records = fetched(&response).records.clone().unwrap();
            assert_eq!(Header::read(&records).unwrap().max_timestamp, now, "{kind}, {codec:?}");
        }
    }
}

/// Goal: `max.message.bytes` bounds what is stored, also where the broker undoes the compression.
/// Method: a megabyte and more of zeros in a few hundred bytes; below and above the limit, kept and undone.
#[tokio::test]
async fn the_largest_batch_is_measured_after_decompression() {
    let place = tempfile::tempdir().unwrap();
    let rig = Rig::new(place.path()).await;
    let mut connection = rig.connect().await;
    let default = SETTINGS.iter().find(|setting| setting.name == "max.message.bytes").unwrap().default;
    let most: usize = default.parse().unwrap();
    let zeros = |size: usize, codec| {
        BatchBuilder::new().compression(codec).record(0, None, Some(&vec![0; size])).build().unwrap()
    };
    for codec in CODECS {
        let kept = rig.topic(&format!("kept-{}", codec.name()), 1, &[]).await;
        let undone = format!("undone-{}", codec.name());
        let undone = rig.topic(&undone, 1, &[("compression.type", "uncompressed")]).await;
        for (size, stored) in [(most - 200, 0), (most, 10), (12 * most, 10)] {
            let batch = zeros(size, codec);
            if batch.len() > most {
                continue; // snappy cannot make it that small
            }
            assert_eq!(
                send(&mut connection, &undone, batch.clone()).await.0,
                stored,
                "{codec:?}, {size} bytes, undone"
            );
            assert_eq!(send(&mut connection, &kept, batch).await.0, 0, "{codec:?}, {size} bytes, kept");
        }
        let size: usize = rig.broker.logs.partition(undone.partitions[0]).unwrap().end().try_into().unwrap();
        assert_eq!(size, 1, "only the first is there");
    }
}

/// Goal: undoing a compression does not hold up the connections that the same thread serves.
/// Method: the only thread for such work is kept busy; a request must give its own thread back, and is served afterwards.
#[test]
fn compressed_batches_are_looked_at_on_another_thread() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().max_blocking_threads(1).build().unwrap().block_on(async {
        let place = tempfile::tempdir().unwrap();
        let rig = Rig::new(place.path()).await;
        let topic = rig.topic("t", 1, &[]).await;
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let call = Call { version: 9, client_id: None, peer };
        for (codec, at_once) in [(Compression::None, true), (Compression::Zstd, false)] {
            let request = for_version(produce(&topic, &[(0, three(codec, 1_000))], -1), 9);
            let (release, released) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || released.recv());
            let mut begun = Box::pin(super::produce::begin(&rig.broker, &call, request));
            let first = (&mut begun).now_or_never();
            assert_eq!(first.is_some(), at_once, "{codec:?}");
            drop(release);
            assert!(busy.await.unwrap().is_err(), "nothing was sent, only let go");
            let answer = match first {
                Some(answer) => answer,
                None => begun.await,
            };
            let response = answer.unwrap().await.unwrap().unwrap();
            assert_eq!(produced(&response)[0].error_code, 0, "{codec:?}");
        }
    });
}
