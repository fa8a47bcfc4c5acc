use bytes::{BufMut, Bytes, BytesMut};
use fastrand::Rng;
use kafka_protocol::messages::ApiKey;
use proptest::prelude::*;

use super::*;
use crate::api::{ROUTES, empty_request, recode};
use crate::wire::author::Author;
use crate::wire::shape::shape;

/// Every served API in every version.
fn served() -> impl Iterator<Item = (ApiKey, i16, &'static Shape)> {
    ROUTES.iter().flat_map(|route| {
        let shape = shape(route.key).unwrap_or_else(|| panic!("{} has no shape", route.name));
        (route.min..=route.max).map(move |version| (route.key, version, shape))
    })
}

/// Goal: no honest request is refused. Method: what the codec writes of empty requests, every API in every version.
#[test]
fn requests_that_say_nothing_pass_and_end_where_the_frame_ends() {
    for (key, version, shape) in served() {
        let body = empty_request(key, version).unwrap_or_else(|error| panic!("{key:?} {version}: {error}"));
        assert_eq!(check(shape, version, &body), Ok(0), "{key:?} version {version}");
    }
}

/// Goal: shapes and codec read the same bytes. Method: random requests written by shape, read and written again by the codec.
#[test]
fn filled_requests_are_read_by_guard_and_codec_to_the_same_end() {
    for (key, version, shape) in served() {
        for seed in 0..100 {
            let body = Author::write(shape, version, seed, None).out.freeze();
            assert_eq!(check(shape, version, &body), Ok(0), "{key:?} version {version} seed {seed}");
            let mut rest = body.clone();
            let again = recode(key, version, &mut rest)
                .unwrap_or_else(|error| panic!("{key:?} version {version} seed {seed}: {error}"));
            assert!(rest.is_empty(), "{key:?} version {version} seed {seed}: {} bytes left", rest.len());
            assert_eq!(check(shape, version, &again), Ok(0), "{key:?} version {version} seed {seed}");
        }
    }
}

/// Goal: a count that the bytes cannot hold is refused before the codec makes room for it. Method: lie at every count of
/// every API in every version.
#[test]
fn a_count_beyond_the_bytes_is_refused() {
    for (key, version, shape) in served() {
        let honest = Author::write(shape, version, 7, None);
        for at in 0..honest.counts {
            for lie in [i64::from(i32::MAX), i64::from(i32::MAX) - 1, 1 << 30, 1 << 20, honest.out.len() as i64 + 1] {
                let body = Author::write(shape, version, 7, Some((at, lie))).out;
                assert!(check(shape, version, &body).is_err(), "{key:?} version {version}, count {at} says {lie}");
            }
            if !honest.compact {
                for lie in [-2, i64::from(i32::MIN)] {
                    let body = Author::write(shape, version, 7, Some((at, lie))).out;
                    assert!(check(shape, version, &body).is_err(), "{key:?} version {version}, count {at} says {lie}");
                }
            } else {
                let body = Author::write(shape, version, 7, Some((at, i64::from(u32::MAX) - 1))).out;
                assert!(check(shape, version, &body).is_err(), "{key:?} version {version}, count {at} of 32 bits");
            }
        }
    }
}

/// Goal: bytes of strangers neither panic nor abort, in guard or codec. Method: noise, cut and bent requests, every API.
#[test]
fn noise_and_damage_never_break_the_decoders() {
    let mut rng = Rng::with_seed(11);
    for (key, version, shape) in served() {
        for seed in 0..150 {
            let mut body = Author::write(shape, version, seed, None).out;
            match seed % 3 {
                0 => body.truncate(rng.usize(0..=body.len())),
                1 => {
                    for _ in 0..rng.usize(1..4) {
                        if let Some(at) = body.len().checked_sub(1).map(|last| rng.usize(0..=last)) {
                            body[at] = rng.u8(..);
                        }
                    }
                }
                _ => body = (0..rng.usize(0..300)).map(|_| rng.u8(..)).collect(),
            }
            if check(shape, version, &body).is_ok() {
                // Whether the codec takes it (a text may not be UTF-8, a null not allowed) is its business: it must return.
                drop(recode(key, version, &mut body.freeze()));
            }
        }
    }
}

/// Goal: a million tagged fields are refused. Method: at the end of a request that has them, and in a header.
#[test]
fn tagged_fields_by_the_million_are_refused() {
    let mut body = BytesMut::new();
    body.put_slice(&[1, 1]); // two empty names
    body.put_slice(&[0xc0, 0x84, 0x3d]); // 1,000,000
    for _ in 0..1_000_000 {
        body.put_slice(&[100, 0]);
    }
    let shape = shape(ApiKey::ApiVersions).expect("served");
    assert_eq!(check(shape, 3, &body), Err(WireError::Tags(MAX_TAGS)));
}

/// Goal: the codec reads known tagged fields by type, so their announced size must be the real one. Method: DescribeCluster has
/// none known, so a made-up shape with one.
#[test]
fn a_tagged_field_of_another_size_than_announced_is_refused() {
    const TAGGED: &[Field] = &[Field { first: 1, last: 9, kind: Kind::Fixed(8), tag: Some(0) }];
    let shape = Shape { flexible: 0, fields: TAGGED };
    let right: &[u8] = &[1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(check(&shape, 1, right), Ok(0));
    assert_eq!(check(&shape, 0, right), Err(WireError::Tag(0)), "not in this version");
    let wrong: &[u8] = &[1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(check(&shape, 1, wrong), Err(WireError::Tag(0)));
}

/// Goal: what is small on the wire is not large in memory. Method: one element more than is allowed.
#[test]
fn elements_of_all_lists_together_are_bounded() {
    const LISTS: &[Field] = &[Field { first: 0, last: 9, kind: Kind::ListOf(&Kind::Fixed(1)), tag: None }];
    let shape = Shape { flexible: 9, fields: LISTS };
    let list = |count: usize| {
        let mut body = BytesMut::new();
        body.put_i32(count as i32);
        body.put_bytes(0, count);
        body
    };
    assert_eq!(check(&shape, 0, &list(MAX_ELEMENTS)), Ok(0));
    assert_eq!(check(&shape, 0, &list(MAX_ELEMENTS + 1)), Err(WireError::Elements(MAX_ELEMENTS)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Goal: any bytes are either a request or refused. Method: noise to every API's newest version.
    #[test]
    fn any_bytes_are_read_or_refused(route in 0..ROUTES.len(), noise in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (key, version) = (ROUTES[route].key, ROUTES[route].max);
        let shape = shape(key).expect("every route has a shape");
        if check(shape, version, &noise).is_ok() {
            drop(recode(key, version, &mut Bytes::from(noise)));
        }
    }
}
