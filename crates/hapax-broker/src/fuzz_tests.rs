//! The fuzz targets for a few seconds: sound seeds of everything that is served, bent by a mutator that repeats itself.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use fastrand::Rng;
use kafka_protocol::messages::{ApiKey, RequestHeader};
use kafka_protocol::protocol::{Encodable, StrBytes};

use super::*;
use crate::api::{ROUTES, empty_request};
use crate::batch::BatchBuilder;
use crate::wire::author::Author;

/// A target's name, what it calls, its seeds.
type Target = (&'static str, fn(&[u8]), Vec<Vec<u8>>);

/// Bent inputs per seed.
const BENT: u32 = 250;
/// One input; far more than any needs, since the machine may be busy.
const SLOWEST: Duration = Duration::from_secs(60);
/// Kilobytes of addresses that the process may have. A count that is believed asks for more.
const ROOM: u32 = 1 << 20;
/// A folder for the seeds, `CORPUS/TARGET/NUMBER`, to begin a real fuzzer with.
const CORPUS: &str = "HAPAX_FUZZ_CORPUS";

/// Without its length.
fn framed(key: ApiKey, version: i16, body: &[u8]) -> Vec<u8> {
    let head = RequestHeader::default()
        .with_request_api_key(key as i16)
        .with_request_api_version(version)
        .with_correlation_id(7)
        .with_client_id(Some(StrBytes::from_static_str("fuzz")));
    let mut out = BytesMut::new();
    head.encode(&mut out, key.request_header_version(version)).expect("encodes");
    out.put_slice(body);
    out.to_vec()
}

/// Every served API in every version: empty, and filled in two ways.
fn requests() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for route in ROUTES {
        let shape = shape::shape(route.key).expect("every route has a shape");
        for version in route.min..=route.max {
            let body = empty_request(route.key, version).expect("encodes");
            seeds.push(framed(route.key, version, &body));
            for seed in [1, 2] {
                seeds.push(framed(route.key, version, &Author::write(shape, version, seed, None).out));
            }
        }
    }
    seeds
}

fn streams(requests: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let framed = |request: &Vec<u8>| {
        let length = u32::try_from(request.len()).expect("a short request");
        [&length.to_be_bytes()[..], request].concat()
    };
    requests.chunks(3).map(|some| some.iter().flat_map(framed).collect()).collect()
}

fn batches() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for compression in Compression::ALL {
        for count in [1, 5, 60] {
            let mut builder = BatchBuilder::new().compression(compression);
            for at in 0..count {
                let headers: &[(&[u8], Option<&[u8]>)] = &[(b"name", Some(b"value")), (b"none", None)];
                builder.push(1_000 + at, Some(b"key"), Some(b"value value value"), headers);
            }
            seeds.push(builder.build().expect("builds").to_vec());
        }
    }
    seeds.push(seeds.concat());
    seeds
}

fn targets() -> [Target; 4] {
    let requests = requests();
    [
        ("frame", frame, streams(&requests)),
        ("header", header, requests.iter().step_by(3).cloned().collect()),
        ("request", request, requests),
        ("batch", batch, batches()),
    ]
}

/// Bends one seed, with a second at hand.
fn bend(rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(0..=bytes.len());
        match rng.u8(0..7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.u8(0..8),
            1 if at < bytes.len() => bytes[at] = rng.u8(..),
            2 => bytes.truncate(at),
            3 => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[rng.usize(0..=other.len())..]);
            }
            // A count or length of 32 bits, and one as a varint.
            4 if at + 4 <= bytes.len() => {
                let lie = rng.choice([i32::MAX, i32::MIN, -1, -2, 1 << 24, 1 << 30]).expect("there are some");
                bytes[at..at + 4].copy_from_slice(&lie.to_be_bytes());
            }
            5 => drop(bytes.splice(at..at, [0xff, 0xff, 0xff, 0xff, rng.u8(0..16)])),
            _ => bytes.extend((0..rng.usize(0..64)).map(|_| rng.u8(..))),
        }
    }
    bytes
}

fn write_corpus(folder: &Path, (name, _, seeds): &Target) {
    let folder = folder.join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    for (at, seed) in seeds.iter().enumerate() {
        std::fs::write(folder.join(format!("{at:04}")), seed).expect("a seed is written");
    }
}

/// Not a test of its own: what the one below lets run in little room.
#[test]
#[ignore = "the other process of the test below"]
fn bent_seeds_are_taken() {
    let mut rng = Rng::with_seed(2_026);
    for (name, call, seeds) in targets() {
        for (at, seed) in seeds.iter().enumerate() {
            call(seed);
            for turn in 0..BENT {
                let other = &seeds[rng.usize(0..seeds.len())];
                let bent = bend(&mut rng, seed, other);
                let started = Instant::now();
                let outcome = std::panic::catch_unwind(|| call(&bent));
                assert!(outcome.is_ok(), "{name}, seed {at}, turn {turn}: {bent:?}");
                assert!(started.elapsed() < SLOWEST, "{name}, seed {at}, turn {turn} takes too long: {bent:?}");
            }
        }
    }
}

/// Goal: no bytes break frames, heads, decoders or batches, nor buy much memory. Method: the functions of the fuzz targets over
/// bent seeds of every API and version, in a process with little room.
#[test]
fn the_fuzz_targets_take_bent_seeds_in_little_room() {
    if let Some(folder) = std::env::var_os(CORPUS) {
        targets().iter().for_each(|target| write_corpus(Path::new(&folder), target));
    }
    let script =
        format!("ulimit -v {ROOM} && exec \"$0\" --ignored --exact --test-threads=1 fuzz::tests::bent_seeds_are_taken");
    let program = std::env::current_exe().expect("this program");
    let output = Command::new("sh").arg("-c").arg(script).arg(program).output().expect("a shell");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

/// Goal: the room is little enough to see a count that is believed. Method: one such, without the guard.
#[test]
#[ignore = "the other process of the test below"]
fn a_count_is_believed() {
    let lie = [&[0x7f, 0xff, 0xff, 0xff][..], &[0; 8]].concat();
    drop(recode(ApiKey::Metadata, 0, &mut Bytes::from(lie)));
}

/// Goal: the trial above would see a count that is believed. Method: the codec without the guard, in the same room.
#[test]
fn without_the_guard_a_lie_breaks_the_process() {
    let script =
        format!("ulimit -v {ROOM} && exec \"$0\" --ignored --exact --test-threads=1 fuzz::tests::a_count_is_believed");
    let program = std::env::current_exe().expect("this program");
    let output = Command::new("sh").arg("-c").arg(script).arg(program).output().expect("a shell");
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stderr).contains("memory allocation"), "{output:?}");
}
