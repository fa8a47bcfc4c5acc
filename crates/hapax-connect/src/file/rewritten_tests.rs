//! What was read is compared as the reader had it: bytes that were rewritten since are never learned.

use hapax_engine::decode::csv::Dialect;

use super::*;
use crate::file::reading::REST_PATIENCE;
use crate::file::{CsvOptions, FileFormat, HeaderFrom};

/// Writes `bytes` over what lies at `offset`.
fn overwrite(path: &std::path::Path, offset: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt as _;
    let file = OpenOptions::new().write(true).open(path).expect("the file opens");
    file.write_all_at(bytes, offset).expect("it takes bytes");
}

/// Whether a reader notices that what it has read was rewritten: by a comparison at once, and by no bookmark that it makes later.
async fn notices(bed: &Bed, source: &mut FileSource, from: &Bookmark) -> bool {
    let here = source.bookmark();
    let compared = source.hold(&here).await.expect("hold");
    let later = match source.close_epoch(from).await {
        Err(error) => matches!(error, SourceError::Gap { .. }),
        Ok(bookmark) => {
            let live = source.hold(&bookmark).await.expect("hold");
            live != Held::Yes && bed.source().hold(&bookmark).await.expect("hold") != Held::Yes
        }
    };
    matches!(compared, Held::OtherIncarnation { .. }) && later
}

/// Goal: the bytes before a position are those that were read, however soon after that they were rewritten. Method: a rewrite of the
/// same length between reading and the end of the epoch: of a first epoch, of a later one, after a restart; JSON lines and CSV.
#[tokio::test]
async fn a_rewrite_between_reading_and_the_end_of_the_epoch_is_noticed() {
    let csv =
        FileFormat::Csv(CsvOptions { dialect: Dialect::default(), null: String::new(), header: HeaderFrom::File });
    for (format, header) in [(FileFormat::JsonLines, ""), (csv, "n\n")] {
        let bed = Bed::new(&format!("{header}0\n1\n2\n3\n"));
        let source = || {
            let mut config = FileSourceConfig::new(bed.path.clone());
            config.format = format.clone();
            FileSource::new(config)
        };
        let start = source().start(StartAt::Earliest).await.expect("the file is there");
        let mut first = source();
        first.assign(&start, Follow::Yes).await.expect("assign");
        expect_lines(&mut first, &["0", "1", "2", "3"]).await;
        let at = first.bookmark().position.offset;
        overwrite(&bed.path, at - 2, b"9\n");
        assert!(notices(&bed, &mut first, &start).await, "{format:?}: in its first epoch");
        overwrite(&bed.path, at - 2, b"3\n");
        let bookmark = first.close_epoch(&start).await.expect("it is what it was");
        let mut restarted = source();
        restarted.assign(&bookmark, Follow::Yes).await.expect("assign");
        bed.append("4\n");
        for reader in [&mut first, &mut restarted] {
            expect_lines(reader, &["4"]).await;
            overwrite(&bed.path, at, b"8\n");
            assert!(notices(&bed, reader, &bookmark).await, "{format:?}: in a later epoch");
            overwrite(&bed.path, at, b"4\n");
            reader.close_epoch(&bookmark).await.expect("it is what it was");
        }
    }
}

/// Goal: a file that was read is remembered as it was read. Method: rewritten in place behind the last commit, after a rotation and
/// before the step to its successor.
#[tokio::test]
async fn a_rewrite_before_the_step_to_the_next_file_is_noticed() {
    let bed = Bed::new("0\n1\n2\n3\n");
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    expect_lines(&mut source, &["0", "1", "2", "3"]).await;
    let bookmark = source.close_epoch(&start).await.expect("nothing has changed");
    bed.move_to("orders.jsonl.1");
    overwrite(&bed.directory.path().join("orders.jsonl.1"), 6, b"9\n");
    bed.append("4\n");
    expect_turn(&mut source).await;
    let next = source.close_epoch(&bookmark).await.expect("the step");
    for source in [&mut source, &mut bed.source()] {
        let held = source.hold(&next).await.expect("hold");
        assert!(matches!(&held, Held::Gone { missing } if missing.contains("rewritten in place")), "{held:?}");
    }
}

/// Goal: the hash of what was read is that of the file, wherever a reader stands. Method: lines of all lengths around the limits, in
/// small steps, from the beginning and from every place where an epoch ended.
#[tokio::test]
async fn what_was_read_has_the_hash_of_what_the_file_holds() {
    let lengths = [0, 1, 4094, 4095, 4096, 4097, 9, 70_000, 300_000, 600_000, 3, 5000, 0, 2, 1_200_000, 7];
    let content: String = lengths.map(|length| format!("{}\n", "x".repeat(length))).concat();
    let bed = Bed::new(&content);
    let source = || {
        let mut config = FileSourceConfig::new(bed.path.clone());
        config.max_line = 100_000;
        FileSource::new(config)
    };
    let mut from = vec![bed.earliest().await];
    let mut seen = 0;
    while let Some(start) = from.pop() {
        let mut reader = source();
        reader.assign(&start, Follow::Yes).await.expect("assign");
        for _ in 0..40 {
            let room = Room { events: 1, bytes: 1 };
            reader.poll(&mut Inputs::default(), room).await.expect("poll");
            let offset = reader.bookmark().position.offset;
            let end = reader.close_epoch(&start).await.expect("nothing has changed");
            let tail = Facts::from_text(end.facts.as_deref().expect("facts")).expect("facts").tail;
            assert_eq!(tail, reader.reading().opened.tail_hash(offset).expect("the file"), "at {offset}");
            if offset > seen {
                seen = offset;
                from.push(end);
            }
            if offset == content.len() as u64 {
                break;
            }
        }
    }
    assert_eq!(seen, content.len() as u64);
}

#[cfg(feature = "compression")]
mod archives {
    use super::*;

    fn gzip_of(content: &str) -> Vec<u8> {
        packed(content, flate2::Compression::default())
    }

    fn packed(content: &str, level: flate2::Compression) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
        encoder.write_all(content.as_bytes()).expect("packed");
        encoder.finish().expect("packed")
    }

    fn archive(bed: &Bed, content: &str) -> FileSourceConfig {
        let path = bed.directory.path().join("orders.jsonl.gz");
        fs::write(&path, gzip_of(content)).expect("packed");
        FileSourceConfig::new(path)
    }

    /// Goal: a place in an archive is never compared with the archive's own length. Method: an archive that unpacks to much more than it
    /// has, read to its end; a second member comes, and every poll of a restarted reader is the end of an epoch.
    #[tokio::test]
    async fn an_archive_that_got_a_second_member_is_not_taken_for_truncated() {
        let bed = Bed::new("");
        let many: String = (0..500).map(|_| "{\"n\":1}\n").collect();
        let config = archive(&bed, &many);
        let mut source = FileSource::new(config.clone());
        let start = source.start(StartAt::Earliest).await.expect("there");
        source.assign(&start, Follow::Yes).await.expect("assign");
        while source.poll(&mut Inputs::default(), ROOM).await.expect("poll") != Polled::End {}
        let bookmark = source.close_epoch(&start).await.expect("nothing has changed");
        let mut file = OpenOptions::new().append(true).open(&config.path).expect("opens");
        file.write_all(&gzip_of("{\"n\":2}\n")).expect("a member");
        let mut source = FileSource::new(config);
        source.assign(&bookmark, Follow::Yes).await.expect("assign");
        let (mut inputs, mut from) = (Inputs::default(), bookmark);
        loop {
            let polled = source.poll(&mut inputs, ROOM).await.expect("poll");
            from = source.close_epoch(&from).await.expect("it has grown, and nothing else");
            assert_eq!(source.extent(), None, "the length of the archive says nothing of what it holds");
            if polled == Polled::End {
                break;
            }
        }
        assert_eq!(texts(&inputs), ["{\"n\":2}"]);
    }

    /// Goal: an archive that is still written is waited for by a reader that follows, longer than by one that reads once, and one that
    /// stays cut off stops both. Method: the first half of an archive; the rest comes after the shorter patience, or never.
    #[tokio::test]
    async fn an_archive_that_stands_still_is_waited_for() {
        let lines: Vec<String> = (0..3000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string()).collect();
        let whole = gzip_of(&(lines.join("\n") + "\n"));
        let bed = Bed::new("");
        let path = bed.directory.path().join("orders.jsonl.gz");
        fs::write(&path, &whole[..whole.len() / 2]).expect("a half");
        let config = FileSourceConfig::new(path.clone());
        let start = FileSource::new(config.clone()).start(StartAt::Earliest).await.expect("there");
        let read_until_it_stops = async |follow| {
            let mut source = FileSource::new(config.clone());
            source.assign(&start, follow).await.expect("assign");
            let mut last_read = Instant::now();
            loop {
                match source.poll(&mut Inputs::default(), ROOM).await {
                    Ok(Polled::Records) => last_read = Instant::now(),
                    Ok(other) => assert_eq!(other, Polled::Idle),
                    Err(error) => break (last_read.elapsed(), error),
                }
            }
        };
        let (once, error) = read_until_it_stops(Follow::No).await;
        assert!(once >= Duration::from_secs(1), "{once:?}");
        assert!(error.code() == "HX3010" && error.to_string().contains("has not grown for 1 s"), "{error}");
        let (followed, error) = read_until_it_stops(Follow::Yes).await;
        assert!(followed >= REST_PATIENCE, "{followed:?}");
        assert!(error.code() == "HX3010" && error.to_string().contains("has not grown for 3 s"), "{error}");
        let mut source = FileSource::new(config.clone());
        source.assign(&start, Follow::Yes).await.expect("assign");
        let (mut inputs, began, mut is_whole) = (Inputs::default(), Instant::now(), false);
        while source.poll(&mut inputs, ROOM).await.expect("it is waited for") != Polled::End {
            if !is_whole && began.elapsed() > Duration::from_millis(1500) {
                assert!((1..3000).contains(&inputs.len()), "what is there is read: {}", inputs.len());
                fs::write(&path, &whole).expect("the whole");
                is_whole = true;
            }
        }
        assert_eq!(texts(&inputs), lines);
    }

    /// Goal: an archive is remembered by the end that was read of it. Method: one that begins alike and has the same length is written
    /// over it between its last record and the look at its end.
    #[tokio::test]
    async fn an_archive_that_is_rewritten_before_its_end_is_looked_at_is_noticed() {
        let bed = Bed::new("");
        let path = bed.directory.path().join("orders.jsonl.gz");
        let stored = |last: &str| packed(&format!("{}\n{last}\n", "1".repeat(1000)), flate2::Compression::none());
        fs::write(&path, stored("2")).expect("packed");
        let mut source = FileSource::new(FileSourceConfig::new(path.clone()));
        let start = source.start(StartAt::Earliest).await.expect("there");
        source.assign(&start, Follow::Yes).await.expect("assign");
        expect_lines(&mut source, &[&"1".repeat(1000), "2"]).await;
        overwrite(&path, 0, &stored("7"));
        assert_eq!(fs::metadata(&path).expect("there").len(), stored("2").len() as u64);
        let noticed = loop {
            match source.poll(&mut Inputs::default(), ROOM).await {
                Err(error) => break error.to_string().contains("rewritten in place"),
                Ok(Polled::End) => {
                    let end = source.close_epoch(&start).await.expect("the end");
                    break source.hold(&end).await.expect("hold") != Held::Yes;
                }
                Ok(_) => {}
            }
        };
        assert!(noticed);
    }
}
