//! A chain under every kind of rotation, rewriting and moving, at the level of one source.

use super::*;
use crate::file::chain::Stem;
use crate::file::first_seen::FirstSeen;
use crate::file::was_read_to_its_end;

/// Commits what was read: the bookmark as progress would keep it.
async fn committed(source: &mut FileSource, from: &Bookmark) -> Bookmark {
    source.close_epoch(from).await.expect("nothing has changed")
}

/// Rotates by number, as logrotate does.
fn rotate(bed: &Bed, last: u32) {
    let name = |n: u32| bed.directory.path().join(format!("orders.jsonl.{n}"));
    for n in (1..last).rev().filter(|n| name(*n).exists()) {
        fs::rename(name(n), name(n + 1)).expect("moved on");
    }
    bed.move_to("orders.jsonl.1");
}

/// Goal: a file between two rotations is not skipped. Method: a reader that is slow over two rotations while the oldest file
/// is deleted, is compressed, or stays; and one that starts again.
#[cfg(feature = "compression")]
#[tokio::test]
async fn a_file_between_two_rotations_is_never_skipped() {
    for (fate, live) in
        [("kept", true), ("compressed", true), ("compressed", false), ("deleted", true), ("deleted", false)]
    {
        let bed = Bed::new("1\n2\n");
        let start = bed.earliest().await;
        let mut source = bed.follow(&start).await;
        expect_lines(&mut source, &["1", "2"]).await;
        let bookmark = committed(&mut source, &start).await;
        rotate(&bed, 5);
        bed.append("3\n");
        rotate(&bed, 5);
        bed.append("4\n");
        let oldest = bed.directory.path().join("orders.jsonl.2");
        if fate == "compressed" {
            let packed = gzip_of(&fs::read(&oldest).expect("read"));
            fs::write(bed.directory.path().join("orders.jsonl.2.gz"), packed).expect("packed");
        }
        if fate != "kept" {
            fs::remove_file(&oldest).expect("gone");
        }
        if !live {
            source = bed.source();
            match source.assign(&bookmark, Follow::Yes).await {
                Ok(()) => {}
                Err(error) => {
                    assert!(fate == "deleted" && matches!(error, SourceError::Gap { .. }), "{error}");
                    continue;
                }
            }
        }
        if fate == "deleted" {
            expect_gap_in_the_end(&mut source, &["deleted", "orders.jsonl.1"]).await;
            continue;
        }
        expect_turn(&mut source).await;
        expect_lines(&mut source, &["3"]).await;
        expect_turn(&mut source).await;
        expect_lines(&mut source, &["4"]).await;
        assert_eq!(source.bookmark().incarnation.number, 3, "{fate} {live}");
    }
}

/// Goal: a file of which nothing was read yet is recognised when it was compressed meanwhile; two that begin alike are not told
/// apart. Method: a bookmark at its beginning, the file compressed and another at its path; then a second archive.
#[cfg(feature = "compression")]
#[tokio::test]
async fn a_file_that_was_compressed_before_it_was_read_is_the_same() {
    let bed = Bed::new("1\n2\n");
    let start = bed.earliest().await;
    let at = |name: &str| bed.directory.path().join(name);
    fs::write(at("orders.jsonl.1.gz"), gzip_of(b"1\n2\n")).expect("packed");
    fs::remove_file(at("orders.jsonl")).expect("gone");
    bed.append("3\n");
    let mut source = bed.source();
    source.assign(&start, Follow::Yes).await.expect("the same file");
    expect_lines(&mut source, &["1", "2"]).await;
    expect_turn(&mut source).await;
    expect_lines(&mut source, &["3"]).await;
    fs::write(at("orders.jsonl.2.gz"), gzip_of(b"1\n9\n")).expect("packed");
    let answer = bed.source().assign(&start, Follow::Yes).await;
    assert!(matches!(answer, Err(SourceError::Gap { .. })), "{answer:?}");
}

/// Goal: a compressed copy that is still written is waited for, and one that never becomes whole stops the lane by its name.
/// Method: the first bytes of an archive in place of a file that was not read to its end; then more of it; then the whole.
#[cfg(feature = "compression")]
#[tokio::test]
async fn a_copy_that_never_becomes_whole_stops_the_lane() {
    let numbers = (0..2000_u64).map(|n| format!("{}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let bed = Bed::new(&numbers.collect::<String>());
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    let (mut inputs, room) = (Inputs::default(), Room { events: 1500, bytes: 1024 * 1024 });
    source.poll(&mut inputs, room).await.expect("lines");
    let bookmark = committed(&mut source, &start).await;
    let packed = gzip_of(&fs::read(bed.directory.path().join("orders.jsonl")).expect("read"));
    fs::remove_file(bed.directory.path().join("orders.jsonl")).expect("gone");
    let copy = bed.directory.path().join("orders.jsonl.1.gz");
    fs::write(&copy, &packed[..packed.len() / 4]).expect("a part");
    let mut source = bed.source();
    let answer = source.assign(&bookmark, Follow::Yes).await;
    assert!(matches!(answer, Err(SourceError::Unavailable { .. })), "{answer:?}");
    tokio::time::sleep(crate::file::recognise::COPY_PATIENCE).await;
    fs::write(&copy, &packed[..packed.len() / 3]).expect("more of it");
    let answer = source.assign(&bookmark, Follow::Yes).await;
    assert!(matches!(answer, Err(SourceError::Unavailable { .. })), "it grows: {answer:?}");
    tokio::time::sleep(crate::file::recognise::COPY_PATIENCE).await;
    match source.assign(&bookmark, Follow::Yes).await {
        Err(SourceError::Gap { what }) => assert!(what.contains("orders.jsonl.1.gz is cut off"), "{what}"),
        other => panic!("{other:?}"),
    }
    fs::write(&copy, &packed).expect("the whole");
    source.assign(&bookmark, Follow::Yes).await.expect("the same file");
}

#[cfg(feature = "compression")]
fn gzip_of(content: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// Goal: a reader goes on in the compressed copy of its file, under the same incarnation. Method: compress half-read.
#[cfg(feature = "compression")]
#[tokio::test]
async fn a_compressed_copy_is_the_same_file() {
    let bed = Bed::new("1\n2\n3\n");
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    source.poll(&mut Inputs::default(), Room { events: 2, bytes: 100 }).await.expect("poll");
    let bookmark = committed(&mut source, &start).await;
    rotate(&bed, 5);
    bed.append("4\n");
    let rotated = bed.directory.path().join("orders.jsonl.1");
    let packed = bed.directory.path().join("orders.jsonl.1.gz");
    fs::write(&packed, gzip_of(b"1\n2\n3\n")).expect("packed");
    fs::remove_file(&rotated).expect("gone");
    let mut source = bed.source();
    assert_eq!(source.hold(&bookmark).await.expect("hold"), Held::Yes);
    source.assign(&bookmark, Follow::Yes).await.expect("assign");
    expect_lines(&mut source, &["3"]).await;
    assert_eq!(source.bookmark().incarnation, bookmark.incarnation, "keys stay what they were");
    let in_copy = committed(&mut source, &bookmark).await;
    fs::rename(&packed, bed.directory.path().join("orders.jsonl.2.gz")).expect("rotated on");
    let mut source = bed.source();
    assert_eq!(source.hold(&in_copy).await.expect("hold"), Held::Yes, "by the copy's own inode");
    fs::rename(bed.directory.path().join("orders.jsonl.2.gz"), &packed).expect("back");
    source.assign(&in_copy, Follow::Yes).await.expect("assign");
    expect_turn(&mut source).await;
    expect_lines(&mut source, &["4"]).await;
    // Something else in its place is not the same file.
    fs::write(&packed, gzip_of(b"1\nx\n3\n")).expect("another");
    assert_ne!(bed.source().hold(&bookmark).await.expect("hold"), Held::Yes);
}

/// Goal: a file that was rewritten in place is noticed, before anything read from it may be committed, and at a start, whatever
/// its length is. Method: shorter, equal and longer, with the same first record; live and after a restart.
#[tokio::test]
async fn a_file_rewritten_in_place_is_noticed() {
    for content in ["0\n9\n", "0\n9\n8\n7\n", "0\n9\n8\n7\n6\n5\n"] {
        let bed = Bed::new("0\n1\n2\n3\n");
        let start = bed.earliest().await;
        let mut source = bed.follow(&start).await;
        expect_lines(&mut source, &["0", "1", "2", "3"]).await;
        let bookmark = committed(&mut source, &start).await;
        let mut restarted = bed.follow(&bookmark).await;
        fs::write(&bed.path, content).expect("rewritten in place");
        assert_ne!(bed.source().hold(&bookmark).await.expect("hold"), Held::Yes, "{content:?} after a restart");
        for reader in [&mut source, &mut restarted] {
            let polled = next(reader).await;
            let noticed =
                polled.is_err() || matches!(reader.close_epoch(&bookmark).await, Err(SourceError::Gap { .. }));
            assert!(noticed, "{content:?}: {polled:?}");
            assert_ne!(reader.hold(&bookmark).await.expect("hold"), Held::Yes, "{content:?}");
        }
    }
}

/// Goal: an incarnation is learned once. Method: a restarted reader of a file that is rewritten with another first record.
#[tokio::test]
async fn an_incarnation_is_not_learned_anew() {
    let bed = Bed::new("{\"a\":1}\n{\"b\":1}\n");
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    expect_lines(&mut source, &["{\"a\":1}", "{\"b\":1}"]).await;
    let bookmark = committed(&mut source, &start).await;
    let mut source = bed.follow(&bookmark).await;
    fs::write(&bed.path, "{\"x\":1}\n{\"b\":1}\n{\"c\":1}\n").expect("rewritten");
    expect_lines(&mut source, &["{\"c\":1}"]).await;
    assert_eq!(source.bookmark().incarnation, bookmark.incarnation);
    assert!(matches!(source.hold(&bookmark).await, Ok(Held::OtherIncarnation { .. })));
}

/// Goal: a rotated file that has gone missing between the one that is read and the live one stops the lane. Method: take the
/// middle one away; names that contradict each other do the same.
#[tokio::test]
async fn what_cannot_be_placed_stops_the_lane() {
    let bed = Bed::new("1\n");
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    expect_lines(&mut source, &["1"]).await;
    rotate(&bed, 5);
    bed.append("2\n");
    rotate(&bed, 5);
    bed.append("3\n");
    fs::remove_file(bed.directory.path().join("orders.jsonl.1")).expect("gone");
    expect_gap_in_the_end(&mut source, &["vanished unread", "orders.jsonl.1"]).await;

    let bed = Bed::new("1\n");
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    expect_lines(&mut source, &["1"]).await;
    rotate(&bed, 5);
    bed.append_to("orders.jsonl-20261117", "2\n");
    bed.append("3\n");
    expect_gap_in_the_end(&mut source, &["orders.jsonl.1", "orders.jsonl-20261117", "two kinds"]).await;
}

/// Goal: a file that was read is never read again and never grows unseen. Method: after two turns let the older one grow; a
/// restarted reader sees it too.
#[tokio::test]
async fn a_read_file_that_grows_is_a_gap_also_after_a_restart() {
    let bed = Bed::new("1\n");
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    expect_lines(&mut source, &["1"]).await;
    rotate(&bed, 5);
    bed.append("2\n");
    expect_turn(&mut source).await;
    expect_lines(&mut source, &["2"]).await;
    rotate(&bed, 5);
    bed.append("3\n");
    expect_turn(&mut source).await;
    let bookmark = source.bookmark();
    let bookmark = committed(&mut source, &bookmark).await;
    assert_eq!(held(&bed, &bookmark).await, Held::Yes);
    bed.append_to("orders.jsonl.2", "late\n");
    assert!(matches!(held(&bed, &bookmark).await, Held::Gone { missing } if missing.contains("orders.jsonl.2")));
    assert!(matches!(source.hold(&bookmark).await, Ok(Held::Gone { .. })));
}

/// Goal: another lane that has read the same file is known, wherever the file lies now. Method: move the folder; copy the
/// file; another file of the same beginning is another one.
#[tokio::test]
async fn a_moved_file_is_known_by_inode_or_by_content() {
    let bed = Bed::new("{\"n\":1}\n{\"n\":2}\n");
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    expect_lines(&mut source, &["{\"n\":1}", "{\"n\":2}"]).await;
    let bookmark = committed(&mut source, &start).await;
    let elsewhere = |name: &str| FileSource::new(FileSourceConfig::new(bed.directory.path().join(name)));
    fs::copy(&bed.path, bed.directory.path().join("copied.jsonl")).expect("copied");
    bed.append_to("other.jsonl", "{\"n\":1}\n{\"n\":3}\n");
    fs::rename(&bed.path, bed.directory.path().join("moved.jsonl")).expect("moved");
    for (name, known) in [("moved.jsonl", true), ("copied.jsonl", true), ("other.jsonl", false), ("none.jsonl", false)]
    {
        assert_eq!(
            elsewhere(name).reads_what(&bed.path.to_string_lossy(), &bookmark).await.expect("told"),
            known,
            "{name}"
        );
    }
}

/// Goal: a delivery that waits for its target begins with the file that it saw, not with the one that has its name by then.
/// Method: resolve the start, rotate, resolve it again.
#[tokio::test]
async fn a_start_waits_with_the_file() {
    let bed = Bed::new("1\n");
    let mut source = bed.source();
    let first = source.start(StartAt::Earliest).await.expect("there");
    rotate(&bed, 5);
    bed.append("2\n");
    assert_eq!(source.start(StartAt::Earliest).await.expect("there"), first);
    assert_eq!(bed.once(&first).await.0, ["1", "2"]);
}

/// Goal: where files are declared to be written anew, the next one follows also after a restart, if the old one was read to its end.
/// Method: read to the end and replace while nobody reads; replace one that was not read to its end.
#[tokio::test]
async fn a_replaced_file_is_followed_after_a_restart() {
    for whole in [true, false] {
        let bed = Bed::new("1\n2\n");
        let config = FileSourceConfig { rotation: RotationRule::Replaced, ..FileSourceConfig::new(bed.path.clone()) };
        let mut source = FileSource::new(config.clone());
        let start = source.start(StartAt::Earliest).await.expect("there");
        source.assign(&start, Follow::No).await.expect("assign");
        let mut inputs = Inputs::default();
        let room = Room { events: if whole { 10 } else { 1 }, bytes: 100 };
        while inputs.len() < if whole { 2 } else { 1 } {
            source.poll(&mut inputs, room).await.expect("poll");
        }
        // It counts as read once it was quiet for about a second.
        let begun = std::time::Instant::now();
        while whole && source.poll(&mut inputs, room).await.expect("poll") != Polled::End {}
        assert!(!whole || begun.elapsed() >= Duration::from_millis(900), "it ended after {:?}", begun.elapsed());
        assert_eq!(inputs.len(), if whole { 2 } else { 1 });
        let bookmark = committed(&mut source, &start).await;
        fs::write(bed.directory.path().join("next"), "3\n").expect("written");
        std::thread::sleep(Duration::from_millis(20));
        fs::rename(bed.directory.path().join("next"), &bed.path).expect("replaced");
        let mut source = FileSource::new(config);
        if !whole {
            assert!(matches!(source.hold(&bookmark).await, Ok(Held::OtherIncarnation { .. })));
            continue;
        }
        assert_eq!(source.hold(&bookmark).await.expect("hold"), Held::Yes);
        source.assign(&bookmark, Follow::Yes).await.expect("assign");
        let at = source.bookmark();
        assert_eq!((at.incarnation.number, at.position), (bookmark.incarnation.number + 1, Position::at(0)));
        expect_lines(&mut source, &["3"]).await;
    }
}

/// Goal: where files are declared to be written anew, a live worker goes on after an archive as a restarted one does. Method: an
/// archive at the path, read to its end and left quiet, or replaced at once; then another archive, a plain file, and an archive
/// again; last, nothing at the path for a while.
#[cfg(feature = "compression")]
#[tokio::test]
async fn a_live_worker_follows_an_archive_that_is_replaced() {
    for quiet in [true, false] {
        let bed = Bed::new("");
        fs::write(&bed.path, gzip_of(b"1\n2\n")).expect("packed");
        let config = FileSourceConfig { rotation: RotationRule::Replaced, ..FileSourceConfig::new(bed.path.clone()) };
        let mut source = FileSource::new(config.clone());
        let start = source.start(StartAt::Earliest).await.expect("there");
        source.assign(&start, Follow::Yes).await.expect("assign");
        expect_lines(&mut source, &["1", "2"]).await;
        for (content, line) in [(gzip_of(b"3\n"), "3"), (b"4\n".to_vec(), "4"), (gzip_of(b"5\n"), "5")] {
            while quiet && !was_read_to_its_end(&source.bookmark().incarnation.text) {
                expect_polled(&mut source, Polled::Idle).await;
            }
            let next = bed.directory.path().join("next");
            std::thread::sleep(Duration::from_millis(20));
            fs::write(&next, content).expect("written");
            fs::rename(&next, &bed.path).expect("replaced");
            expect_turn(&mut source).await;
            expect_lines(&mut source, &[line]).await;
        }
        fs::remove_file(&bed.path).expect("removed");
        expect_polled(&mut source, Polled::Idle).await;
        bed.append("6\n");
        expect_turn(&mut source).await;
        expect_lines(&mut source, &["6"]).await;
    }
}

/// Goal: an archive that is asked for once counts as read where it may be replaced, and what has replaced it meanwhile is read too.
/// Method: runs to the end, before and after it was replaced.
#[cfg(feature = "compression")]
#[tokio::test]
async fn an_archive_that_is_replaced_is_followed_by_who_asks_once() {
    let bed = Bed::new("");
    fs::write(&bed.path, gzip_of(b"1\n")).expect("packed");
    let config = FileSourceConfig { rotation: RotationRule::Replaced, ..FileSourceConfig::new(bed.path.clone()) };
    let start = FileSource::new(config.clone()).start(StartAt::Earliest).await.expect("there");
    let (mut at, mut lines) = (start, Vec::new());
    for line in ["1", "2", "3"] {
        let mut source = FileSource::new(config.clone());
        source.assign(&at, Follow::No).await.expect("assign");
        let mut inputs = Inputs::default();
        while source.poll(&mut inputs, ROOM).await.expect("poll") != Polled::End {}
        lines.extend(texts(&inputs));
        assert_eq!(lines.last().map(String::as_str), Some(line));
        at = committed(&mut source, &at).await;
        assert!(was_read_to_its_end(&at.incarnation.text), "{at:?}");
        std::thread::sleep(Duration::from_millis(20));
        fs::write(bed.directory.path().join("next"), gzip_of(format!("{}\n", lines.len() + 1).as_bytes()))
            .expect("packed");
        fs::rename(bed.directory.path().join("next"), &bed.path).expect("replaced");
    }
    assert_eq!(lines, ["1", "2", "3"]);
}

/// A source of dated files that has read the first two, which are one line each, and has the third before it.
#[cfg(feature = "compression")]
async fn in_the_second_of_three(bed: &Bed, rotation: RotationRule, names: [&str; 3]) -> (FileSourceConfig, FileSource) {
    let config = FileSourceConfig { rotation, ..FileSourceConfig::new(bed.path.clone()) };
    let dated = |name: &str| bed.directory.path().join(name);
    fs::rename(&bed.path, dated(names[0])).expect("dated");
    let first = Stem::of(&bed.path, rotation).and_then(|stem| stem.list(rotation)).expect("a listing");
    let claimed = FileSourceConfig {
        first_seen: FirstSeen::at(&first[0].path, &first[0].name, &config.format),
        ..config.clone()
    };
    let mut source = FileSource::new(claimed);
    let start = source.start(StartAt::Earliest).await.expect("there");
    source.assign(&start, Follow::Yes).await.expect("assign");
    expect_lines(&mut source, &["1"]).await;
    bed.append_to(names[1], "2\n");
    expect_turn(&mut source).await;
    expect_lines(&mut source, &["2"]).await;
    bed.append_to(names[2], "3\n");
    (config, source)
}

/// Goal: a file that was read stays known when it is compressed just while the next one is opened. Method: of two moments in
/// which the folder is read, its original is there in the first and its archive in the second; both ways to name by date.
#[cfg(feature = "compression")]
#[tokio::test]
async fn a_file_that_is_compressed_during_a_turn_stays_read() {
    let before = ["orders-20261114.jsonl", "orders-20261115.jsonl", "orders-20261116.jsonl"];
    let behind = ["orders.jsonl-20261114", "orders.jsonl-20261115", "orders.jsonl-20261116"];
    for (rotation, names) in [(RotationRule::BeforeExtension, before), (RotationRule::Suffixes, behind)] {
        let bed = Bed::new("1\n");
        let (config, mut source) = in_the_second_of_three(&bed, rotation, names).await;
        let start = source.bookmark();
        let stem = Stem::of(&bed.path, rotation).expect("a folder");
        let third = stem.list(rotation).expect("a listing").pop().expect("three files");
        let at = |name: &str| bed.directory.path().join(name);
        fs::write(at(&format!("{}.gz", names[0])), gzip_of(b"1\n")).expect("packed");
        fs::remove_file(at(names[0])).expect("gone");
        source.prepare(&third, Vec::new()).expect("the next one");
        source.step().await.expect("a turn");
        expect_lines(&mut source, &["3"]).await;
        let bookmark = committed(&mut source, &start).await;
        assert_eq!(FileSource::new(config).hold(&bookmark).await.expect("hold"), Held::Yes, "{rotation:?}");
    }
}

/// Goal: an archive of a file that was read is waited for while it is written, and one that was never read stops the lane. Method:
/// no byte, then half of it, then the whole, in place of the original; then an archive of something else.
#[cfg(feature = "compression")]
#[tokio::test]
async fn an_archive_of_a_read_file_is_waited_for_while_it_is_written() {
    let names = ["orders-20261114.jsonl", "orders-20261115.jsonl", "orders-20261116.jsonl"];
    let long =
        format!("{}\n", (0..3000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string()).collect::<String>());
    let bed = Bed::new("");
    bed.append(&long);
    let config =
        FileSourceConfig { rotation: RotationRule::BeforeExtension, ..FileSourceConfig::new(bed.path.clone()) };
    let at = |name: &str| bed.directory.path().join(name);
    let mut source = FileSource::new(config.clone());
    let start = source.start(StartAt::Earliest).await.expect("there");
    source.assign(&start, Follow::Yes).await.expect("assign");
    expect_lines(&mut source, &[long.trim_end()]).await;
    fs::rename(&bed.path, at(names[0])).expect("dated");
    bed.append_to(names[1], "2\n");
    expect_turn(&mut source).await;
    expect_lines(&mut source, &["2"]).await;
    let bookmark = committed(&mut source, &start).await;
    fs::remove_file(at(names[0])).expect("gone");
    let (archive, packed) = (at("orders-20261114.jsonl.gz"), gzip_of(long.as_bytes()));
    let mut source = FileSource::new(config.clone());
    for part in [0, 5, packed.len() / 2] {
        fs::write(&archive, &packed[..part]).expect("a part");
        let answer = source.hold(&bookmark).await;
        assert!(matches!(answer, Err(SourceError::Unavailable { .. })), "{part} bytes: {answer:?}");
    }
    let mut live = FileSource::new(config.clone());
    live.assign(&bookmark, Follow::Yes).await.expect("assign");
    bed.append_to(names[2], "3\n");
    expect_gap_in_the_end(&mut live, &["orders-20261114.jsonl.gz is cut off"]).await;
    fs::write(&archive, &packed).expect("the whole");
    assert_eq!(source.hold(&bookmark).await.expect("hold"), Held::Yes);
    expect_turn(&mut live).await;
    expect_lines(&mut live, &["3"]).await;
    fs::write(&archive, gzip_of(b"something else\n")).expect("another");
    let answer = source.hold(&bookmark).await.expect("hold");
    assert!(matches!(&answer, Held::Gone { missing } if missing.contains("never read")), "{answer:?}");
}

/// Goal: a folder on another device than before is waited with, and what is in it is not judged: something else may be mounted there.
/// Method: another file in the place of the one that was read; a bookmark that names another device, and the bookmark as it was.
#[tokio::test]
async fn a_folder_on_another_device_is_waited_for() {
    let bed = Bed::new("1\n2\n");
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    expect_lines(&mut source, &["1", "2"]).await;
    let here = committed(&mut source, &start).await;
    let mut facts = Facts::from_text(here.facts.as_deref().expect("facts")).expect("whole");
    facts.device = facts.device.map(|device| device + 1);
    let elsewhere = Bookmark { facts: Some(facts.to_text().into()), ..here.clone() };
    // The reader has it open still, so that no other file gets its inode.
    fs::remove_file(bed.directory.path().join("orders.jsonl")).expect("gone");
    bed.append("8\n9\n");
    let waits = bed.source().hold(&elsewhere).await.expect_err("nothing is judged");
    assert_eq!(waits.reaction(), hapax_engine::source::SourceReaction::Retry, "{waits}");
    let cause = std::error::Error::source(&waits).map(ToString::to_string).unwrap_or_default();
    assert!(cause.contains("another device"), "{waits}: {cause}");
    let judged = bed.source().hold(&here).await;
    assert!(matches!(judged, Ok(Held::OtherIncarnation { .. })), "on its own device it is judged: {judged:?}");
    drop(source);
}
