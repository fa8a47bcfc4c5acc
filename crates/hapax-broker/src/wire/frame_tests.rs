use std::net::SocketAddr;

use bytes::{BufMut, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader};
use kafka_protocol::protocol::{Encodable, StrBytes};
use proptest::prelude::*;

use super::*;
use crate::wire::{Request, WireError};

const LIMITS: Limits = Limits { produce: 1_000, other: 100 };

fn peer() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 40_000))
}

fn frame(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(body.len() as i32);
    out.put_slice(body);
    out
}

async fn whole(reader: &mut FrameReader<&[u8]>) -> Result<Bytes, FrameError> {
    let length = reader.length().await?;
    reader.body(length).await
}

fn ready<F: Future>(future: F) -> F::Output {
    use futures_util::FutureExt;
    future.now_or_never().expect("bytes in memory are always ready")
}

/// Goal: frames come out as they went in, however they lie in the stream. Method: three frames in one stream, then its end.
#[test]
fn frames_come_one_after_the_other() {
    let bodies: [&[u8]; 3] = [&[0, 3, 0, 0, 0, 0, 0, 1], &[7; 100], &[0; 1_000]];
    let stream: Vec<u8> = bodies.iter().flat_map(|body| frame(body)).collect();
    let mut reader = FrameReader::new(stream.as_slice(), LIMITS);
    for body in bodies {
        assert!(ready(reader.begun()).expect("bytes"));
        assert_eq!(ready(whole(&mut reader)).expect("whole"), body);
    }
    assert!(!ready(reader.begun()).expect("no error"), "the stream has ended");
}

/// Goal: lengths that are refused. Method: negative, short, above the cap, above the cap of small requests, and a cut frame.
#[test]
fn a_frame_of_impossible_length_is_refused() {
    let lengths = [-1, i32::MIN, 0, 7, 1_001, i32::MAX];
    for length in lengths {
        let mut stream = length.to_be_bytes().to_vec();
        stream.extend_from_slice(&[0; 20]);
        let mut reader = FrameReader::new(stream.as_slice(), LIMITS);
        let refused = ready(whole(&mut reader));
        let expected = WireError::FrameLength { length, max: 1_000 };
        assert!(matches!(refused, Err(FrameError::Wire(error)) if error == expected), "{length}");
    }
    let fetch = frame(&[&[0, 1][..], &[0; 99]].concat());
    let refused = ready(whole(&mut FrameReader::new(fetch.as_slice(), LIMITS)));
    assert!(matches!(refused, Err(FrameError::Wire(WireError::FrameLength { length: 101, max: 100 }))));
    let cut = &frame(&[0; 50])[..30];
    assert!(matches!(ready(whole(&mut FrameReader::new(cut, LIMITS))), Err(FrameError::Wire(WireError::FrameCut))));
}

/// Goal: a large frame's room goes with it. Method: one large frame, then the room of the waiting reader.
#[test]
fn a_waiting_connection_holds_little() {
    let limits = Limits { produce: 10 << 20, other: 100 };
    let stream = frame(&vec![0; 9 << 20]);
    let mut reader = FrameReader::new(stream.as_slice(), limits);
    assert!(ready(reader.begun()).expect("bytes"));
    assert_eq!(ready(whole(&mut reader)).expect("whole").len(), 9 << 20);
    assert!(!ready(reader.begun()).expect("no error"));
    assert!(reader.buffer.capacity() <= 2 * IDLE_ROOM, "{}", reader.buffer.capacity());
}

/// Goal: what is not served is refused by name. Method: an unknown API, a version too old and one too new.
#[test]
fn an_unknown_api_or_version_is_refused() {
    let head = |key: i16, version: i16| {
        let mut out = BytesMut::new();
        out.put_i16(key);
        out.put_i16(version);
        out.put_slice(&[0, 0, 0, 9, 0xff, 0xff, 0]);
        out.freeze()
    };
    let refused = |key, version| Request::read(head(key, version), peer()).map(drop);
    assert_eq!(refused(999, 0), Err(WireError::UnknownApi { key: 999, version: 0 }));
    assert_eq!(refused(-1, 0), Err(WireError::UnknownApi { key: -1, version: 0 }));
    let unknown = |version| WireError::UnknownVersion { api: "Metadata", min: 0, max: 13, version };
    assert_eq!(refused(3, 14), Err(unknown(14)));
    assert_eq!(refused(3, -1), Err(unknown(-1)));
    let asked = Request::read(head(18, 99), peer()).expect("ApiVersions answers every version");
    assert_eq!((asked.correlation_id, asked.call.version, asked.body.len()), (9, 99, 0));
}

/// Goal: every header of the codec is read. Method: each served API in each version, with and without a client id.
#[test]
fn headers_of_every_version_are_read() {
    for route in crate::api::ROUTES {
        for version in route.min..=route.max {
            for client in [None, Some(""), Some("client-1")] {
                let header = RequestHeader::default()
                    .with_request_api_key(route.key as i16)
                    .with_request_api_version(version)
                    .with_correlation_id(-5)
                    .with_client_id(client.map(StrBytes::from_static_str));
                let mut out = BytesMut::new();
                header.encode(&mut out, route.key.request_header_version(version)).expect("encodes");
                out.put_slice(b"body");
                let request = Request::read(out.freeze(), peer()).expect("reads");
                assert_eq!(request.correlation_id, -5);
                assert_eq!(request.call.client_id.as_deref(), client);
                assert_eq!(&request.body[..], b"body", "{} {version}", route.name);
            }
        }
    }
}

/// Goal: a header with a million tagged fields is refused. Method: Metadata version 9, whose header has them.
#[test]
fn a_header_full_of_tagged_fields_is_refused() {
    let mut out = BytesMut::new();
    out.put_i16(ApiKey::Metadata as i16);
    out.put_slice(&[0, 9, 0, 0, 0, 1, 0xff, 0xff, 0xc0, 0x84, 0x3d]);
    out.put_bytes(0, 2_000_000);
    assert!(matches!(Request::read(out.freeze(), peer()), Err(WireError::Tags(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// Goal: any stream gives frames or an error, any frame a request or an error. Method: noise.
    #[test]
    fn any_stream_is_read_or_refused(noise in proptest::collection::vec(any::<u8>(), 0..300), small in any::<bool>()) {
        let stream = if small { frame(&noise) } else { noise };
        let mut reader = FrameReader::new(stream.as_slice(), LIMITS);
        while let Ok(true) = ready(reader.begun()) {
            let Ok(frame) = ready(whole(&mut reader)) else { break };
            prop_assert!(frame.len() >= SHORTEST);
            drop(Request::read(frame, peer()));
        }
    }
}
