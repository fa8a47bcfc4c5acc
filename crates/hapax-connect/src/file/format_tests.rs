use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use hapax_engine::batch::Inputs;
use hapax_engine::contract::source::every_clause;
use hapax_engine::decode::csv::{Dialect, Format, Header};
use hapax_engine::source::{Follow, Held, Polled, Room, Source as _, SourceError, StartAt};
use hapax_model::position::{Bookmark, Position};
use tempfile::TempDir;

use super::config::{Crowd, CsvOptions, Expected, FileFormat, FileSourceConfig, HeaderFrom, NeededBy, NeededField};
use super::source::FileSource;

const ROOM: Room = Room { events: 1000, bytes: 1024 * 1024 };

struct Bed {
    _directory: TempDir,
    config: FileSourceConfig,
}

fn csv(header: HeaderFrom) -> FileFormat {
    FileFormat::Csv(CsvOptions { dialect: Dialect::default(), null: String::new(), header })
}

/// What reading came to.
#[derive(Debug)]
struct Read {
    texts: Vec<String>,
    lines: Vec<Option<u64>>,
    end: Result<Bookmark, SourceError>,
}

impl Bed {
    fn new(format: FileFormat, content: &[u8]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("orders.csv");
        fs::write(&path, content).expect("written");
        let config = FileSourceConfig { format, ..FileSourceConfig::new(path) };
        Self { _directory: directory, config }
    }

    fn with_header(content: &[u8]) -> Self {
        Self::new(csv(HeaderFrom::File), content)
    }

    fn source(&self) -> FileSource {
        FileSource::new(self.config.clone())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.config.path.with_file_name(name)
    }

    async fn earliest(&self) -> Bookmark {
        self.source().start(StartAt::Earliest).await.expect("the file is there")
    }

    /// Everything from the beginning to the end, or to what stopped it.
    async fn once(&self) -> Read {
        match self.source().start(StartAt::Earliest).await {
            Ok(from) => read(&mut self.source(), &from, Follow::No).await,
            Err(error) => Read { texts: Vec::new(), lines: Vec::new(), end: Err(error) },
        }
    }
}

async fn read(source: &mut FileSource, from: &Bookmark, follow: Follow) -> Read {
    let (mut texts, mut lines) = (Vec::new(), Vec::new());
    if let Err(error) = source.assign(from, follow).await {
        return Read { texts, lines, end: Err(error) };
    }
    for _ in 0..2000 {
        let mut inputs = Inputs::default();
        let polled = source.poll(&mut inputs, ROOM).await;
        for index in 0..inputs.len() {
            texts.push(String::from_utf8_lossy(inputs.bytes(index)).into_owned());
            lines.push(inputs.line(index));
            if let Format::Csv(csv) = inputs.format() {
                assert!(matches!(&csv.header, Header::Names(names) if !names.is_empty()));
            }
        }
        match polled {
            Ok(Polled::End) => return Read { texts, lines, end: Ok(source.bookmark()) },
            Err(error) => return Read { texts, lines, end: Err(error) },
            Ok(Polled::Boundary) => source.step().await.expect("a step"),
            Ok(Polled::Records | Polled::Idle) => {}
        }
    }
    Read { texts, lines, end: Ok(source.bookmark()) }
}

fn unreadable(read: &Read, code: &str, words: &[&str]) {
    let Err(error) = &read.end else { panic!("{read:?}") };
    assert_eq!(error.code(), code, "{error}");
    assert!(matches!(error, SourceError::Unreadable { .. }));
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
}

const ORDERS: &[u8] = b"id,note\n1,a\n2,\"two\nlines\"\n\n3,\"he said \"\"no\"\"\"\n4,d\n5,e\n";

/// Goal: CSV files are sources. Method: every clause of the contract, with and without a header in the file.
#[tokio::test]
async fn csv_files_keep_the_contract_of_sources() {
    let bed = Bed::with_header(ORDERS);
    every_clause(|| bed.source()).await;
    let named = Bed::new(csv(HeaderFrom::Names(vec!["id".into(), "note".into()])), &ORDERS[8..]);
    every_clause(|| named.source()).await;
    let read = bed.once().await;
    assert_eq!(read.texts, ["1,a", "2,\"two\nlines\"", "3,\"he said \"\"no\"\"\"", "4,d", "5,e"]);
    assert_eq!(read.lines, [2, 3, 6, 7, 8].map(Some));
    assert_eq!(named.once().await.texts, read.texts);
}

/// Goal: archives are sources, in either format. Method: every clause over each combination.
#[cfg(feature = "compression")]
#[tokio::test]
async fn archives_keep_the_contract_of_sources() {
    let json: Vec<u8> = (0..50).flat_map(|n| format!("{{\"n\":{n}}}\n").into_bytes()).collect();
    for (format, content) in [(csv(HeaderFrom::File), ORDERS.to_vec()), (FileFormat::JsonLines, json)] {
        for packed in [gzip(&content), zstd::stream::encode_all(&*content, 1).expect("packs")] {
            let (plain, bed) = (Bed::new(format.clone(), &content), Bed::new(format.clone(), &packed));
            every_clause(|| bed.source()).await;
            let (plain, read) = (plain.once().await, bed.once().await);
            assert_eq!((read.texts, read.lines), (plain.texts, plain.lines));
            let end = read.end.expect("the end");
            assert_eq!(end.position, Position::at(content.len() as u64));
            assert!(end.to_string().ends_with("read to its end"), "{end}");
        }
    }
}

#[cfg(feature = "compression")]
fn gzip(content: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("packs");
    encoder.finish().expect("packs")
}

/// Goal: a cut-off archive delivers what is whole, and stops. Method: a truncated gzip; then the whole one in its place.
#[cfg(feature = "compression")]
#[tokio::test]
async fn a_truncated_archive_is_not_its_end() {
    let content: Vec<u8> = (0..20_000_u64)
        .flat_map(|n| format!("{{\"n\":{n},\"x\":{}}}\n", n.wrapping_mul(0x9e37_79b9)).into_bytes())
        .collect();
    let whole = gzip(&content);
    let bed = Bed::new(FileFormat::JsonLines, &whole[..whole.len() / 2]);
    let read = bed.once().await;
    unreadable(&read, "HX3010", &["orders.csv", "cut off", "behind byte", "are delivered"]);
    assert!(read.texts.len() > 1000 && content.starts_with((read.texts.join("\n") + "\n").as_bytes()));
    let next = bed.source().start(StartAt::At(Position::at(read.texts.join("\n").len() as u64 + 1))).await;
    fs::write(&bed.config.path, &whole).expect("written in place");
    let rest = self::read(&mut bed.source(), &next.expect("a place"), Follow::No).await;
    assert_eq!(read.texts.len() + rest.texts.len(), 20_000);
}

/// Goal: CR, BOM, a missing last newline, NUL and wrong bytes are no trouble of the source. Method: all in one file.
#[tokio::test]
async fn odd_bytes_of_csv_are_passed_on() {
    let bed = Bed::with_header(b"\xef\xbb\xbfid,note\r\n1,a\r\n\r\n2,\x00\r\n3,\xff\r\n4,d");
    let read = bed.once().await;
    assert_eq!(read.texts, ["1,a", "2,\u{0}", "3,\u{fffd}", "4,d"]);
    assert_eq!(read.end.expect("the end").position, Position::at(32));
}

/// Goal: a header that comes late, or not at all, is waited for. Method: an empty file; a header without a newline.
#[tokio::test]
async fn an_awaited_header_is_no_event() {
    let bed = Bed::with_header(b"");
    let from = bed.earliest().await;
    let mut source = bed.source();
    source.assign(&from, Follow::Yes).await.expect("assign");
    let mut inputs = Inputs::default();
    for (content, expected) in [("id,no", 0), ("id,note", 0), ("id,note\n", 0), ("id,note\n1,a\n", 1)] {
        fs::write(&bed.config.path, content).expect("written");
        for _ in 0..4 {
            source.poll(&mut inputs, ROOM).await.expect("poll");
        }
        assert_eq!(inputs.len(), expected, "{content:?}");
    }
    assert!(
        matches!(inputs.format(), Format::Csv(csv) if csv.header == Header::Names(vec!["id".into(), "note".into()]))
    );
    assert_eq!(Bed::with_header(b"id,note").once().await.texts.len(), 0);
}

/// Goal: a header that cannot serve stops before anything is read. Method: each reason.
#[tokio::test]
async fn a_header_that_cannot_serve_is_refused() {
    for (header, words) in [
        ("name,amount", &["no column for .id", "name,amount"][..]),
        ("id,id", &["\"id\" twice"]),
        ("id,", &["column 2 has no name"]),
    ] {
        let mut bed = Bed::with_header(format!("{header}\n1,2\n").as_bytes());
        bed.config.expected.needed = vec![NeededField { path: ".id".parse().expect("a path"), by: NeededBy::Key }];
        let read = bed.once().await;
        assert!(read.texts.is_empty());
        unreadable(&read, "HX3012", words);
    }
    let mut bed = Bed::with_header(b"1,ann\n2,bob\n");
    bed.config.expected = Expected { needed: Vec::new(), taken: vec![".id".parse().expect("a path")] };
    unreadable(&bed.once().await, "HX3012", &["none of its columns", ".id", "header: [id, …]"]);
}

/// Goal: another header after a rotation stops with both. Method: rotate to one with, then without a change.
#[tokio::test]
async fn a_changed_header_after_a_rotation_stops_with_both() {
    for (header, changed) in [("id,note", false), ("id,comment", true), ("note,id", true)] {
        let bed = Bed::with_header(b"id,note\n1,a\n");
        let from = bed.earliest().await;
        fs::rename(&bed.config.path, bed.path("orders.csv.1")).expect("moved");
        std::thread::sleep(Duration::from_millis(20));
        fs::write(&bed.config.path, format!("{header}\n2,b\n")).expect("written");
        let read = read(&mut bed.source(), &from, Follow::No).await;
        if changed {
            unreadable(&read, "HX3011", &["\"id,note\"", &format!("\"{header}\""), "--to next"]);
            assert_eq!(read.texts, ["1,a"], "what was read is handed out, nothing of the next file");
        } else {
            assert_eq!((read.texts.join(" "), read.end.expect("the end").incarnation.number), ("1,a 2,b".into(), 2));
        }
    }
}

/// Goal: a file that was replaced shows both headers. Method: ask whether the old bookmark is held.
#[tokio::test]
async fn a_replaced_file_shows_both_headers() {
    let bed = Bed::with_header(b"id,note\n1,a\n");
    let end = bed.once().await.end.expect("the end");
    assert!(end.to_string().contains("header \"id,note\""), "{end}");
    let next = bed.path("next");
    fs::write(&next, b"id,comment\n1,a\n").expect("written");
    fs::rename(next, &bed.config.path).expect("replaced");
    let Held::OtherIncarnation { now } = bed.source().hold(&end).await.expect("hold") else { panic!("held") };
    assert!(now.contains("header \"id,comment\""), "{now}");
}

/// Goal: a quote that never closes holds nothing back for ever. Method: run to the end; follow up to a rotation.
#[tokio::test]
async fn lines_behind_an_open_quote_are_read_in_the_end() {
    let content = b"id,note\n1,\"a\n2,b\n3,c\n";
    let bed = Bed::with_header(content);
    let begun = std::time::Instant::now();
    let once = bed.once().await;
    assert!(begun.elapsed() >= Duration::from_secs(1), "the quote may still close for a second");
    assert_eq!(once.texts, ["1,\"a", "2,b", "3,c"]);
    assert_eq!(once.lines[0], Some(2));
    let from = bed.earliest().await;
    fs::rename(&bed.config.path, bed.path("orders.csv.1")).expect("moved");
    std::thread::sleep(Duration::from_millis(20));
    fs::write(&bed.config.path, b"id,note\n4,d\n").expect("written");
    assert_eq!(read(&mut bed.source(), &from, Follow::No).await.texts, ["1,\"a", "2,b", "3,c", "4,d"]);
}

/// Goal: a lane of many makes room for others, and says where it stood. Method: others wait; it grows, is replaced, vanishes.
#[tokio::test]
async fn a_lane_of_many_makes_room_and_goes_on() {
    let mut bed = Bed::new(FileFormat::JsonLines, b"{\"n\":1}\n");
    let crowd = Crowd::default();
    bed.config.crowd = Some(crowd.clone());
    let from = bed.earliest().await;
    crowd.set(1);
    let ended = read(&mut bed.source(), &from, Follow::Yes).await;
    let end = ended.end.expect("it made room");
    assert_eq!(ended.texts.len(), 1);
    assert!(end.to_string().ends_with("read to its end"), "{end}");
    crowd.set(0);
    // It grew: the lane goes on where it was, and its description is the plain one again.
    fs::write(&bed.config.path, b"{\"n\":1}\n{\"n\":2}\n").expect("written");
    let mut source = bed.source();
    source.assign(&end, Follow::Yes).await.expect("assign");
    assert_eq!(source.bookmark(), end);
    let mut inputs = Inputs::default();
    source.poll(&mut inputs, ROOM).await.expect("poll");
    assert_eq!((inputs.len(), source.bookmark().to_string().ends_with("read to its end")), (1, false));
    fs::rename(&bed.config.path, bed.path("moved")).expect("moved");
    fs::write(&bed.config.path, b"{\"n\":9}\n").expect("another");
    let moved = read(&mut bed.source(), &end, Follow::Yes).await;
    assert_eq!(moved.texts, ["{\"n\":2}"]);
    assert!(moved.end.is_err_and(|error| error.code() == "HX3002"), "nobody can say that the other file follows");
    fs::remove_file(bed.path("moved")).expect("gone");
    fs::remove_file(&bed.config.path).expect("gone");
    let gone = read(&mut bed.source(), &end, Follow::Yes).await.end.expect_err("gone");
    assert!(gone.code() == "HX3002" && gone.to_string().contains("read to its end then, byte 8"), "{gone}");
}
