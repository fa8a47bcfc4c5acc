use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use hapax_engine::contract::source::{every_clause, read_all};
use tempfile::TempDir;

use super::super::called::unavailable;
use super::super::reading::BLOCKS_PER_POLL;
use super::*;

const ROOM: Room = Room { events: 1000, bytes: 1024 * 1024 };

/// A directory with the file that is followed.
struct Bed {
    directory: TempDir,
    path: PathBuf,
}

impl Bed {
    fn new(content: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("orders.jsonl");
        let bed = Self { directory, path };
        bed.append(content);
        bed
    }

    fn append(&self, content: &str) {
        self.append_to("orders.jsonl", content);
    }

    fn append_to(&self, name: &str, content: &str) {
        let path = self.directory.path().join(name);
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("the file opens");
        file.write_all(content.as_bytes()).expect("it takes bytes");
    }

    /// Moves the file away; the pause gives the next one another time of creation.
    fn move_to(&self, name: &str) {
        fs::rename(&self.path, self.directory.path().join(name)).expect("the file is moved");
        std::thread::sleep(Duration::from_millis(20));
    }

    fn source(&self) -> FileSource {
        FileSource::new(FileSourceConfig::new(self.path.clone()))
    }

    async fn earliest(&self) -> Bookmark {
        self.source().start(StartAt::Earliest).await.expect("the file is there")
    }

    async fn follow(&self, from: &Bookmark) -> FileSource {
        let mut source = self.source();
        source.assign(from, Follow::Yes).await.expect("assign");
        source
    }

    /// What a run to the end gives, and where it stands then.
    async fn once(&self, from: &Bookmark) -> (Vec<String>, Bookmark) {
        let mut source = self.source();
        source.assign(from, Follow::No).await.expect("assign");
        let mut lines = Vec::new();
        loop {
            let mut inputs = Inputs::default();
            match source.poll(&mut inputs, ROOM).await.expect("poll") {
                Polled::End => return (lines, source.bookmark()),
                Polled::Boundary => source.step().await.expect("a step"),
                Polled::Records | Polled::Idle => {}
            }
            lines.extend(texts(&inputs));
        }
    }
}

fn texts(inputs: &Inputs) -> Vec<String> {
    (0..inputs.len()).map(|index| String::from_utf8_lossy(inputs.bytes(index)).into_owned()).collect()
}

/// Polls until there are lines, a boundary, or nothing for a while.
async fn next(source: &mut FileSource) -> Result<(Polled, Vec<String>), SourceError> {
    let mut inputs = Inputs::default();
    for _ in 0..8 {
        let polled = source.poll(&mut inputs, ROOM).await?;
        if polled != Polled::Idle {
            return Ok((polled, texts(&inputs)));
        }
    }
    Ok((Polled::Idle, texts(&inputs)))
}

async fn expect_lines(source: &mut FileSource, expected: &[&str]) {
    let (polled, lines) = next(source).await.expect("poll");
    assert_eq!((polled, lines), (Polled::Records, expected.iter().map(ToString::to_string).collect()));
}

async fn expect_polled(source: &mut FileSource, expected: Polled) {
    assert_eq!(next(source).await.expect("poll"), (expected, Vec::new()));
}

/// The next file follows: said without a move, then stepped to.
async fn expect_turn(source: &mut FileSource) {
    let before = source.bookmark();
    expect_polled(source, Polled::Boundary).await;
    assert_eq!(source.bookmark(), before, "a boundary moves nothing");
    source.step().await.expect("a step");
    let after = source.bookmark();
    assert_eq!((after.incarnation.number, after.position), (before.incarnation.number + 1, Position::at(0)));
}

async fn expect_gap(source: &mut FileSource, words: &[&str]) {
    let error = next(source).await.expect_err("a gap");
    assert_eq!((error.code(), matches!(error, SourceError::Gap { .. })), ("HX3002", true));
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
}

/// What cannot be placed is waited for first.
async fn expect_gap_in_the_end(source: &mut FileSource, words: &[&str]) {
    for _ in 0..2400 {
        match next(source).await {
            Ok((Polled::Idle, lines)) => assert_eq!(lines, Vec::<String>::new()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert_eq!((error.code(), matches!(error, SourceError::Gap { .. })), ("HX3002", true));
                assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
                return;
            }
        }
    }
    panic!("it waits for ever");
}

async fn held(bed: &Bed, bookmark: &Bookmark) -> Held {
    bed.source().hold(bookmark).await.expect("hold")
}

/// Goal: a file is a source. Method: every clause of the contract over lines of every sort.
#[tokio::test]
async fn a_file_keeps_the_contract_of_sources() {
    let bed = Bed::new("\n{\"n\":1}\r\n\n{\"n\":2}\n{\"n\":3}\n   \n\"a long line\"\n{\"n\":4}\n{bad\n{\"n\":5}");
    let config = FileSourceConfig { max_line: 10, ..FileSourceConfig::new(bed.path.clone()) };
    let make = || FileSource::new(config.clone());
    let oversized: Vec<_> = read_all(&make).await.iter().map(|read| read.oversized).collect();
    assert_eq!(oversized, [None, None, None, Some(13), None, None, None]);
    let terminated = Bed::new("{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n");
    every_clause(|| terminated.source()).await;
    // The latest bookmark of a file lies before a last line without a newline, which the contract's reader then gets.
    fs::write(&bed.path, fs::read_to_string(&bed.path).expect("text") + "\n").expect("write");
    every_clause(make).await;
}

/// Goal: bytes that are no text are the decoder's affair. Method: a line of them.
#[tokio::test]
async fn invalid_utf8_is_passed_on_as_it_is() {
    let bed = Bed::new("");
    fs::write(&bed.path, b"\xff\xfe\n").expect("write");
    let mut source = bed.follow(&bed.earliest().await).await;
    let mut inputs = Inputs::default();
    source.poll(&mut inputs, ROOM).await.expect("poll");
    assert_eq!(inputs.bytes(0), b"\xff\xfe");
}

/// Goal: a line is read once it is complete. Method: write one in three parts.
#[tokio::test]
async fn a_growing_line_is_not_read_before_its_newline() {
    let bed = Bed::new("{}\n{\"a\"");
    let mut source = bed.follow(&bed.earliest().await).await;
    expect_lines(&mut source, &["{}"]).await;
    expect_polled(&mut source, Polled::Idle).await;
    assert_eq!(source.bookmark().position, Position::at(3));
    bed.append(":1}");
    expect_polled(&mut source, Polled::Idle).await;
    bed.append("\n[]\n");
    expect_lines(&mut source, &["{\"a\":1}", "[]"]).await;
    assert_eq!((source.bookmark().position, source.extent()), (Position::at(14), Some(14)));
}

/// Goal: `latest` skips what is there, and nothing that is still being written. Method: a half line at the end.
#[tokio::test]
async fn latest_is_behind_the_last_newline() {
    for (content, expected) in [("", 0), ("{", 0), ("{}\n", 3), ("{}\n[]\n{\"a\"", 6)] {
        let bed = Bed::new(content);
        assert_eq!(bed.source().start(StartAt::Latest).await.expect("start").position, Position::at(expected));
    }
    let bed = Bed::new(&format!("{{}}\n{}", "x".repeat(200_000)));
    assert_eq!(bed.source().start(StartAt::Latest).await.expect("start").position, Position::at(3));
}

/// Goal: a person's position is the beginning of a line. Method: one inside, one behind the end.
#[tokio::test]
async fn a_named_position_inside_a_line_is_refused() {
    let bed = Bed::new("{}\n[]\n");
    assert_eq!(bed.source().start(StartAt::At(Position::at(3))).await.expect("start").position, Position::at(3));
    for (offset, word) in [(1, "inside a line"), (7, "ends at 6")] {
        let error = bed.source().start(StartAt::At(Position::at(offset))).await.expect_err("refused");
        assert!(error.to_string().contains(word), "{error}");
    }
}

/// Goal: a file that was empty when its delivery began is the same file later. Method: a bookmark of each moment, held
/// at every later one.
#[tokio::test]
async fn an_empty_file_stays_itself_while_its_first_line_grows() {
    let bed = Bed::new("");
    let mut bookmarks = vec![bed.earliest().await];
    for part in ["\n", "{\"a\"", ":1", "}", "\n", "{}\n"] {
        bed.append(part);
        let mut source = bed.follow(&bookmarks[0]).await;
        assert_eq!(
            source.bookmark(),
            bookmarks[0],
            "a bookmark that was assigned stays as it is until something is read"
        );
        next(&mut source).await.expect("poll");
        bookmarks.extend([bed.earliest().await, source.bookmark()]);
        for bookmark in &bookmarks {
            assert_eq!(bookmark.incarnation.number, 1);
            assert_eq!(held(&bed, bookmark).await, Held::Yes, "{bookmark} after {part:?}");
        }
    }
    assert_eq!(bed.once(&bookmarks[0]).await.0, ["{\"a\":1}", "{}"]);
    assert!(bookmarks[0].to_string().ends_with("no record yet"), "{}", bookmarks[0]);
    assert!(bookmarks.last().expect("some").to_string().contains("first 9 bytes"));
}

/// Goal: a file that was empty when its delivery began is not confused with the next one. Method: rotate it with
/// lines in it; then take it away altogether.
#[tokio::test]
async fn an_empty_file_that_was_filled_and_rotated_is_read_first() {
    let bed = Bed::new("");
    let start = bed.earliest().await;
    bed.append("1\n");
    bed.move_to("orders.jsonl.1");
    bed.append("2\n");
    assert_eq!(bed.once(&start).await.0, ["1", "2"]);
    fs::remove_file(bed.directory.path().join("orders.jsonl.1")).expect("removed");
    assert!(matches!(held(&bed, &start).await, Held::OtherIncarnation { .. }));
}

/// Goal: a file without a final newline loses nothing in a single run. Method: run, end the line, add one, run again.
#[tokio::test]
async fn a_last_line_without_newline_is_read_once() {
    for line_end in ["\n", "\r\n"] {
        let bed = Bed::new("{}\n{\"a\":1}");
        let (lines, bookmark) = bed.once(&bed.earliest().await).await;
        assert_eq!((lines, bookmark.position), (vec!["{}".into(), "{\"a\":1}".into()], Position::at(10)));
        assert_eq!(bed.once(&bookmark).await, (Vec::new(), bookmark.clone()));
        let mut following = bed.follow(&bookmark).await;
        bed.append(line_end);
        bed.append("[]\n");
        assert_eq!(held(&bed, &bookmark).await, Held::Yes);
        assert_eq!(bed.once(&bookmark).await.0, ["[]"]);
        expect_lines(&mut following, &["[]"]).await;
    }
}

/// Goal: a line that was delivered too early is never torn in silence. Method: it grows; looked at by hold, by assign
/// and by a reader that is already there.
#[tokio::test]
async fn a_last_line_that_grows_after_it_was_read_is_a_gap() {
    let bed = Bed::new("{}\n12");
    let (lines, bookmark) = bed.once(&bed.earliest().await).await;
    assert_eq!(lines, ["{}", "12"]);
    let mut following = bed.follow(&bookmark).await;
    bed.append("34");
    assert!(matches!(held(&bed, &bookmark).await, Held::Gone { missing } if missing.contains("byte 5")));
    let error = bed.source().assign(&bookmark, Follow::Yes).await.expect_err("refused");
    assert!(error.to_string().contains("before it was complete"), "{error}");
    expect_gap(&mut following, &["byte 5", "before it was complete"]).await;
    bed.append("\n{}\n");
    expect_gap(&mut following, &["byte 5"]).await;
}

/// Goal: the same holds for the very first line, which is the incarnation. Method: read it without a newline; end it,
/// or write the file anew at the same length.
#[tokio::test]
async fn a_first_line_without_newline_still_names_its_file() {
    let bed = Bed::new("{\"a\":1}");
    let (lines, bookmark) = bed.once(&bed.earliest().await).await;
    assert_eq!(lines, ["{\"a\":1}"]);
    bed.append("\n[]\n");
    assert_eq!(bed.once(&bookmark).await.0, ["[]"]);
    fs::write(&bed.path, "{\"a\":2}\n[]\n").expect("written anew, in place");
    assert!(matches!(held(&bed, &bookmark).await, Held::OtherIncarnation { .. }));
}

/// Goal: a half-written line is left for the next run. Method: end in the middle of a value, then complete it.
#[tokio::test]
async fn an_unfinished_last_line_waits_for_the_next_run() {
    let bed = Bed::new("{}\n{\"a\":");
    let (lines, bookmark) = bed.once(&bed.earliest().await).await;
    assert_eq!((lines, bookmark.position), (vec!["{}".into()], Position::at(3)));
    bed.append("1}\n");
    assert_eq!(bed.once(&bookmark).await.0, ["{\"a\":1}"]);
}

/// Goal: a line longer than the limit is one input, complete or not. Method: without a newline at the end of a run.
#[tokio::test]
async fn a_long_last_line_is_one_oversized_input() {
    let bed = Bed::new("{}\n");
    bed.append(&"x".repeat(500_000));
    let config = FileSourceConfig { max_line: 1000, ..FileSourceConfig::new(bed.path.clone()) };
    let reads = read_all(&|| FileSource::new(config.clone())).await;
    assert_eq!(
        reads.iter().map(|read| (read.position.offset, read.oversized)).collect::<Vec<_>>(),
        [(0, None), (3, Some(500_000))]
    );
}

/// Goal: a rotation loses nothing and repeats nothing. Method: late lines in the old file, an empty new file, then
/// lines in it.
#[tokio::test]
async fn a_rotation_is_followed_when_the_old_file_was_read_to_its_end() {
    let bed = Bed::new("1\n");
    let mut source = bed.follow(&bed.earliest().await).await;
    expect_lines(&mut source, &["1"]).await;
    bed.move_to("orders.jsonl.1");
    bed.append_to("orders.jsonl.1", "2\n");
    expect_lines(&mut source, &["2"]).await;
    bed.append("");
    expect_polled(&mut source, Polled::Idle).await;
    bed.append_to("orders.jsonl.1", "3\n");
    bed.append("4\n");
    expect_lines(&mut source, &["3"]).await;
    let old = source.bookmark();
    expect_turn(&mut source).await;
    let new = source.bookmark();
    assert_eq!((new.incarnation.number, new.position), (2, Position::at(0)));
    assert_ne!(new.incarnation.text, old.incarnation.text);
    expect_lines(&mut source, &["4"]).await;
    for bookmark in [&old, &new, &source.bookmark()] {
        assert_eq!(held(&bed, bookmark).await, Held::Yes, "{bookmark}");
        assert_eq!(source.hold(bookmark).await.expect("hold"), Held::Yes, "{bookmark}");
    }
    assert_eq!(bed.once(&old).await.0, ["4"], "the same after a restart between the two");
}

/// Goal: lines that a writer puts into the old file after the turn are not lost in silence. Method: one such line.
#[tokio::test]
async fn a_line_that_comes_after_the_turn_is_a_gap() {
    let bed = Bed::new("1\n");
    let mut source = bed.follow(&bed.earliest().await).await;
    expect_lines(&mut source, &["1"]).await;
    bed.move_to("orders.jsonl.1");
    bed.append("2\n");
    expect_turn(&mut source).await;
    expect_lines(&mut source, &["2"]).await;
    expect_polled(&mut source, Polled::Idle).await;
    bed.append_to("orders.jsonl.1", "late\n");
    expect_gap(&mut source, &["rotated file", "byte 2"]).await;
}

/// Goal: a file that lost its name is looked at twice before the next one follows, in case its writer is not done; one that nobody
/// wrote to for two seconds is not waited for. Method: a file by its own time just written, one almost and one surely at rest;
/// the looks in vain before the turn, none of which comes early.
#[tokio::test]
async fn a_file_at_rest_is_left_at_once_and_another_after_two_looks() {
    for (written_ms_ago, looks) in [(0, 2), (1_000, 2), (2_100, 0)] {
        let bed = Bed::new("1\n");
        let mut source = bed.follow(&bed.earliest().await).await;
        expect_lines(&mut source, &["1"]).await;
        bed.move_to("orders.jsonl.1");
        bed.append("2\n");
        let old = fs::File::options().write(true).open(bed.directory.path().join("orders.jsonl.1")).expect("opens");
        let begun = std::time::SystemTime::now();
        old.set_modified(begun - Duration::from_millis(written_ms_ago)).expect("its time is set");
        let (mut inputs, mut in_vain) = (Inputs::default(), 0);
        while source.poll(&mut inputs, ROOM).await.expect("poll") != Polled::Boundary {
            in_vain += 1;
        }
        let rested = Duration::from_millis(written_ms_ago) + begun.elapsed().expect("time goes on");
        // On a machine that stood still for so long the file has come to rest.
        assert!(in_vain == looks || (in_vain < looks && rested > Duration::from_secs(2)), "{in_vain} of {looks}");
        assert!(in_vain < 2 || begun.elapsed().is_ok_and(|spent| spent >= Duration::from_millis(50)), "about 50 ms");
    }
}

/// Goal: the last line of a rotated file counts without its newline, as far as it goes. Method: one that is whole, one
/// that is half and gets a second's patience.
#[tokio::test]
async fn the_tail_of_a_rotated_file_is_delivered() {
    for tail in ["{\"a\":1}", "{\"a\":"] {
        let bed = Bed::new("1\n");
        bed.append(tail);
        let start = bed.earliest().await;
        bed.move_to("orders.jsonl.1");
        bed.append("2\n");
        let began = tokio::time::Instant::now();
        let (lines, bookmark) = bed.once(&start).await;
        assert_eq!(lines, ["1", tail, "2"]);
        assert_eq!(bookmark.incarnation.number, 2);
        assert!(tail.len() == 7 || began.elapsed() > Duration::from_millis(800), "no patience for {tail}");
    }
}

/// Goal: a restart finds the old file under its new name, and every file between. Method: rotate three times while
/// nobody reads, in both styles of names; a copy and a neighbour lie about.
#[tokio::test]
async fn files_that_were_rotated_while_nobody_read_are_read_in_order() {
    for names in [
        ["orders.jsonl.3", "orders.jsonl.2", "orders.jsonl.1"],
        ["orders.jsonl-20261114", "orders.jsonl-20261115", "orders.jsonl-20261116"],
    ] {
        let bed = Bed::new("1\n2\n");
        let mut source = bed.follow(&bed.earliest().await).await;
        source.poll(&mut Inputs::default(), Room { events: 1, bytes: 1 }).await.expect("poll");
        let bookmark = source.bookmark();
        for (number, name) in names.into_iter().enumerate() {
            bed.move_to(name);
            bed.append(&format!("{}\n", number + 3));
        }
        bed.append_to("orders.jsonl.bak", "copy\n");
        bed.append_to("orders_eu.jsonl", "neighbour\n");
        assert_eq!(held(&bed, &bookmark).await, Held::Yes);
        let (lines, end) = bed.once(&bookmark).await;
        assert_eq!(lines, ["2", "3", "4", "5"]);
        assert_eq!(end.incarnation.number, 4);
    }
}

/// Goal: an unread file that vanished stops the delivery. Method: delete it, put another in its place.
#[tokio::test]
async fn a_vanished_file_is_another_incarnation_and_names_both() {
    let bed = Bed::new("{\"same\":1}\n{}\n");
    let (_, bookmark) = bed.once(&bed.earliest().await).await;
    fs::remove_file(&bed.path).expect("removed");
    let missing = bed.source().hold(&bookmark).await.expect_err("nothing is there");
    assert!(matches!(missing, SourceError::Unavailable { .. }), "{missing}");
    std::thread::sleep(Duration::from_millis(20));
    // Begins with the same line, is longer, and on many file systems gets the same inode.
    bed.append("{\"same\":1}\n{}\n{}\n");
    let now = bed.earliest().await.incarnation.text.to_string();
    assert_eq!(held(&bed, &bookmark).await, Held::OtherIncarnation { now: now.clone() });
    let error = bed.source().assign(&bookmark, Follow::Yes).await.expect_err("refused");
    assert!(matches!(error, SourceError::Gap { .. }));
    for word in [&*now, &*bookmark.incarnation.text, "byte 14"] {
        assert!(error.to_string().contains(word), "{error}");
    }
}

/// Goal: truncation in place is noticed by a reader, and at the start. Method: truncate; write anew, longer than before.
#[tokio::test]
async fn a_truncated_file_is_a_gap() {
    let bed = Bed::new("{\"first\":1}\n{}\n");
    let mut source = bed.follow(&bed.earliest().await).await;
    expect_lines(&mut source, &["{\"first\":1}", "{}"]).await;
    let bookmark = source.bookmark();
    fs::write(&bed.path, "{\"first\":1}\n").expect("truncated behind the first line");
    expect_gap(&mut source, &["truncated in place", "byte 15", "ends at 12"]).await;
    assert!(matches!(held(&bed, &bookmark).await, Held::Gone { missing } if missing.contains("bytes 12 to 15")));
    fs::write(&bed.path, "").expect("truncated");
    assert!(matches!(held(&bed, &bookmark).await, Held::Gone { missing } if missing.contains("bytes 0 to 15")));
    fs::write(&bed.path, "{\"other\":1}\n{}\n{}\n").expect("written anew");
    assert!(matches!(held(&bed, &bookmark).await, Held::OtherIncarnation { .. }));
    assert!(matches!(source.hold(&bookmark).await, Ok(Held::OtherIncarnation { .. })), "seen by the reader too");
}

/// Goal: a writer that takes back half a line does no harm. Method: truncate behind the last newline, write it anew.
#[tokio::test]
async fn an_unfinished_line_may_be_written_anew() {
    let bed = Bed::new("{}\n{\"half");
    let mut source = bed.follow(&bed.earliest().await).await;
    expect_lines(&mut source, &["{}"]).await;
    expect_polled(&mut source, Polled::Idle).await;
    OpenOptions::new().write(true).open(&bed.path).and_then(|file| file.set_len(3)).expect("cut");
    expect_polled(&mut source, Polled::Idle).await;
    bed.append("[]\n");
    expect_lines(&mut source, &["[]"]).await;
}

/// Goal: a file that vanishes under its reader is read to its end; where files are written anew the next one follows,
/// elsewhere nobody can say what does. Method: delete, wait, create; then go back behind the turn, as after a commit that
/// failed.
#[tokio::test]
async fn a_deleted_file_is_read_to_its_end_through_the_open_handle() {
    let bed = Bed::new("1\n2\n3\n");
    let start = bed.earliest().await;
    let mut source = bed.follow(&start).await;
    fs::remove_file(&bed.path).expect("removed");
    expect_lines(&mut source, &["1", "2", "3"]).await;
    expect_polled(&mut source, Polled::Idle).await;
    bed.append("4\n");
    expect_gap_in_the_end(&mut source, &["was deleted, or renamed", "byte 6", "orders.jsonl"]).await;

    let bed = Bed::new("1\n2\n3\n");
    let config = FileSourceConfig { rotation: RotationRule::Replaced, ..FileSourceConfig::new(bed.path.clone()) };
    let mut source = FileSource::new(config);
    let start = bed.earliest().await;
    source.assign(&start, Follow::Yes).await.expect("assign");
    source.poll(&mut Inputs::default(), Room { events: 1, bytes: 1 }).await.expect("poll");
    fs::remove_file(&bed.path).expect("removed");
    expect_lines(&mut source, &["2", "3"]).await;
    expect_polled(&mut source, Polled::Idle).await;
    assert_eq!(source.hold(&start).await.expect("hold"), Held::Yes);
    bed.append("4\n");
    expect_turn(&mut source).await;
    source.assign(&start, Follow::Yes).await.expect("the old file is still open");
    expect_lines(&mut source, &["1", "2", "3"]).await;
    expect_turn(&mut source).await;
    expect_lines(&mut source, &["4"]).await;
}

/// Goal: what cannot be read now says how to mend it, and is tried again. Method: no file, a directory, no right.
#[tokio::test]
async fn a_file_that_cannot_be_read_names_the_cure() {
    let bed = Bed::new("");
    fs::remove_file(&bed.path).expect("removed");
    let missing = bed.source().start(StartAt::Earliest).await.expect_err("nothing is there");
    let mut elsewhere = FileSource::new(FileSourceConfig::new(bed.directory.path().to_path_buf()));
    let directory = elsewhere.start(StartAt::Earliest).await.expect_err("a directory is no file");
    let denied = unavailable(&bed.path, io::ErrorKind::PermissionDenied.into());
    for (error, word) in [(missing, "create it"), (directory, "name a file"), (denied, "the right to read it")] {
        assert_eq!(error.code(), "HX3001");
        assert!(error.to_string().contains(word), "{error}");
        assert!(error.to_string().contains(&*bed.directory.path().to_string_lossy()), "{error}");
    }
}

/// Goal: other workflows run while a file has little to give. Method: more blank lines than a poll reads.
#[tokio::test]
async fn a_poll_pauses_in_a_desert_of_blank_lines() {
    let bed = Bed::new(&"\n".repeat(20 * 1024 * 1024));
    bed.append("{}\n");
    let mut source = bed.follow(&bed.earliest().await).await;
    assert_eq!(source.poll(&mut Inputs::default(), ROOM).await.expect("poll"), Polled::Idle);
    assert_eq!(source.bookmark().position, Position::at(BLOCKS_PER_POLL as u64 * 256 * 1024));
    expect_lines(&mut source, &["{}"]).await;
}

#[path = "rotation_tests.rs"]
mod rotation;

#[path = "rewritten_tests.rs"]
mod rewritten;

#[cfg(feature = "compression")]
#[path = "archive_tests.rs"]
mod archive;
