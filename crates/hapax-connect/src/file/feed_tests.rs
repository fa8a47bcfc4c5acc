use super::*;

/// Goal: content tells how a file is packed, and too little content tells nothing. Method: beginnings of each sort.
#[test]
fn the_first_bytes_tell_how_a_file_is_packed() {
    for (head, expected) in [
        (&b""[..], None),
        (b"{", Some(Packing::None)),
        (b"\x1f", None),
        (b"\x1f\x8b", Some(Packing::Gzip)),
        (b"\x28\xb5", None),
        (b"\x28\xb5\x2f\xfd", Some(Packing::Zstd)),
        (b"\x50\x2a\x4d\x18", Some(Packing::Zstd)),
        (b"(1)\n", Some(Packing::None)),
    ] {
        assert_eq!(Packing::of(head), expected, "{head:x?}");
    }
}

#[cfg(feature = "compression")]
mod packed {
    use std::io::Write as _;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).expect("packs");
        encoder.finish().expect("packs")
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(content, 1).expect("packs")
    }

    fn feed_of(bytes: &[u8]) -> (File, Feed) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("it takes bytes");
        (file.try_clone().expect("a handle"), Feed::new(file))
    }

    /// All from `offset` on, and the error that ended it.
    fn rest(feed: &mut Feed, offset: u64) -> (Vec<u8>, Option<io::Error>) {
        let (mut all, mut block) = (Vec::new(), vec![0; 70_000]);
        loop {
            match feed.read_at(&mut block, offset + all.len() as u64) {
                Ok(Fed::Bytes(read)) => all.extend_from_slice(&block[..read]),
                Ok(Fed::NotYet) => {}
                Ok(Fed::Later) => std::thread::sleep(std::time::Duration::from_millis(50)),
                Ok(Fed::End) => return (all, None),
                Err(error) => return (all, Some(error)),
            }
        }
    }

    /// Goal: several members or frames are one stream, from any offset. Method: both formats, offsets in any order.
    #[test]
    fn members_and_frames_are_one_stream_from_any_offset() {
        let content: Vec<u8> = (0..400_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let (first, second) = content.split_at(1_000_000);
        for pack in [gzip, zstd] {
            let (_file, mut feed) = feed_of(&[pack(first), pack(b""), pack(second)].concat());
            for offset in [0, 1_500_000, 999_999, 1_000_000, content.len(), 7] {
                let (found, error) = rest(&mut feed, offset as u64);
                assert!(found == content[offset..] && error.is_none(), "from {offset}: {error:?}");
            }
        }
    }

    /// Goal: the end of a broken archive is never taken for the end. Method: cut off anywhere, damaged in the middle.
    #[test]
    fn a_broken_archive_gives_what_is_whole_and_then_an_error() {
        let content: Vec<u8> = (0..40_000_u32).flat_map(|n| format!("{n:x}{}\n", n * 7919).into_bytes()).collect();
        for pack in [gzip, zstd] {
            let whole = pack(&content);
            for cut in [whole.len() - 1, whole.len() / 2] {
                let (_file, mut feed) = feed_of(&whole[..cut]);
                let (found, error) = rest(&mut feed, 0);
                let error = error.expect("an error").to_string();
                assert!(content.starts_with(&found) && error.contains("cut off"), "{error}");
                assert!(error.contains(&format!("behind byte {}", found.len())), "{error}");
            }
        }
        // zstd has a checksum only where its writer asked for one; gzip always.
        let mut damaged = gzip(&content);
        let middle = damaged.len() / 2;
        damaged[middle..middle + 20].fill(0);
        let (_, error) = rest(&mut feed_of(&damaged).1, 0);
        assert!(error.is_some_and(|error| error.get_ref().is_some_and(|inner| inner.is::<Unreadable>())));
    }

    /// Goal: an archive that is still written is waited for. Method: the second half comes while it is read.
    #[test]
    fn an_archive_that_grows_is_read_on() {
        let content = b"line\n".repeat(50_000);
        let whole = gzip(&content);
        let (mut file, mut feed) = feed_of(&whole[..whole.len() / 2]);
        let tail = whole[whole.len() / 2..].to_vec();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            file.write_all(&tail).expect("it takes bytes");
        });
        let (found, error) = rest(&mut feed, 0);
        writer.join().expect("written");
        assert!(found == content && error.is_none(), "{error:?}");
    }
}

/// Goal: an edition that cannot unpack says so, and takes packed bytes for no lines. Method: the first bytes of either.
#[cfg(not(feature = "compression"))]
#[test]
fn an_edition_that_cannot_unpack_says_so() {
    use std::io::Write as _;

    for head in [&b"\x1f\x8b\x08\x00"[..], b"\x28\xb5\x2f\xfd"] {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(head).expect("it takes bytes");
        let error = Feed::new(file).read_at(&mut [0; 16], 0).expect_err("it is packed");
        let unreadable = error.get_ref().and_then(|inner| inner.downcast_ref::<Unreadable>()).expect("our own words");
        assert_eq!(unreadable.code, "HX3013", "{error}");
    }
}
