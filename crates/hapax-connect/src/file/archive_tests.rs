//! Archives that grow, and archives that are made beside the file that is read.

use hapax_engine::decode::csv::Dialect;

use super::*;
use crate::file::config::{CsvOptions, FileFormat, HeaderFrom};
use crate::file::recognise::COPY_PATIENCE;

type Pack = fn(&str) -> Vec<u8>;

fn gzip_of(content: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn zstd_of(content: &str) -> Vec<u8> {
    zstd::stream::encode_all(content.as_bytes(), 1).expect("packs")
}

/// An archive of one member, and how its lines are read.
struct Archive {
    bed: Bed,
    config: FileSourceConfig,
    pack: Pack,
}

impl Archive {
    fn new(content: &str, pack: Pack, format: FileFormat) -> Self {
        let bed = Bed::new("");
        fs::write(&bed.path, pack(content)).expect("packed");
        let config = FileSourceConfig { format, ..FileSourceConfig::new(bed.path.clone()) };
        Self { bed, config, pack }
    }

    /// One of each format and packing.
    fn of_each_kind(content: &str) -> Vec<Self> {
        let csv = || {
            let header = HeaderFrom::Names(vec!["n".into()]);
            FileFormat::Csv(CsvOptions { dialect: Dialect::default(), null: String::new(), header })
        };
        [gzip_of as Pack, zstd_of]
            .into_iter()
            .flat_map(|pack| [Self::new(content, pack, FileFormat::JsonLines), Self::new(content, pack, csv())])
            .collect()
    }

    fn add(&self, content: &str) {
        let mut file = OpenOptions::new().append(true).open(&self.bed.path).expect("it is there");
        file.write_all(&(self.pack)(content)).expect("a member");
        self.written_just_now();
    }

    /// From now on only polls tell how long nothing came.
    fn written_just_now(&self) {
        let file = OpenOptions::new().append(true).open(&self.bed.path).expect("it is there");
        file.set_modified(std::time::SystemTime::now() + Duration::from_secs(3600)).expect("a time");
    }

    async fn assigned(&self, from: &Bookmark, follow: Follow) -> FileSource {
        let mut source = FileSource::new(self.config.clone());
        source.assign(from, follow).await.expect("assign");
        source
    }

    async fn earliest(&self) -> Bookmark {
        FileSource::new(self.config.clone()).start(StartAt::Earliest).await.expect("there")
    }

    /// Reads to the end, as who asks once does.
    async fn once(&self, from: &Bookmark) -> Result<(Vec<String>, Bookmark), SourceError> {
        let mut source = self.assigned(from, Follow::No).await;
        let mut inputs = Inputs::default();
        while source.poll(&mut inputs, ROOM).await? != Polled::End {}
        let at = source.close_epoch(from).await?;
        Ok((texts(&inputs), at))
    }
}

/// So many polls bring nothing; then what comes.
async fn quiet_polls(source: &mut FileSource, most: u32) -> (u32, Vec<String>) {
    let mut inputs = Inputs::default();
    for polls in 0..most {
        if source.poll(&mut inputs, ROOM).await.expect("poll") == Polled::Records {
            return (polls, texts(&inputs));
        }
    }
    (most, Vec::new())
}

/// Goal: a line of an archive that was delivered without its newline is never torn in silence. Method: a later member goes on with it,
/// or begins with its newline; seen by who has read it, by who asks again, and by who follows; every format and packing.
#[tokio::test]
async fn a_member_that_goes_on_with_a_delivered_line_is_a_gap() {
    for (more, next) in [("34\n5\n", None), ("\n5\n", Some("5")), ("\r\n5\n", Some("5"))] {
        for archive in Archive::of_each_kind("1\n2") {
            let mut reader = archive.assigned(&archive.earliest().await, Follow::No).await;
            expect_lines(&mut reader, &["1"]).await;
            expect_lines(&mut reader, &["2"]).await;
            expect_polled(&mut reader, Polled::End).await;
            let (lines, at) = archive.once(&archive.earliest().await).await.expect("all of it");
            assert_eq!((lines, at.position), (vec!["1".into(), "2".into()], Position::at(3)));
            assert_eq!(archive.once(&at).await.expect("nothing").0, Vec::<String>::new());
            archive.add(more);
            for source in [
                &mut reader,
                &mut archive.assigned(&at, Follow::No).await,
                &mut archive.assigned(&at, Follow::Yes).await,
            ] {
                match next {
                    Some(line) => expect_lines(source, &[line]).await,
                    None => expect_gap(source, &["byte 3", "before it was complete"]).await,
                }
            }
        }
    }
}

/// Goal: who follows an archive waits a second for the end of its last line, and not for ever. Method: a member that comes before that
/// second is over; none; and an archive that nobody has written to for longer.
#[tokio::test]
async fn the_last_line_of_an_archive_is_delivered_after_a_second_of_quiet() {
    for archive in Archive::of_each_kind("1\n2") {
        archive.written_just_now();
        let start = archive.earliest().await;
        let mut grows = archive.assigned(&start, Follow::Yes).await;
        expect_lines(&mut grows, &["1"]).await;
        assert_eq!(quiet_polls(&mut grows, 20).await, (20, Vec::new()));
        archive.add("3");
        assert_eq!(quiet_polls(&mut grows, 30).await, (30, Vec::new()), "it has grown: a second begins anew");
        archive.add("4\n5");
        expect_lines(&mut grows, &["234"]).await;
        let (polls, lines) = quiet_polls(&mut grows, 60).await;
        assert!((30..60).contains(&polls) && lines == ["5"], "{polls} {lines:?}");
        expect_polled(&mut grows, Polled::End).await;
        archive.add("6\n");
        expect_gap(&mut grows, &["before it was complete"]).await;
    }
    for archive in Archive::of_each_kind("1\n2") {
        let file = OpenOptions::new().append(true).open(&archive.bed.path).expect("there");
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(60)).expect("a time");
        let mut source = archive.assigned(&archive.earliest().await, Follow::Yes).await;
        expect_lines(&mut source, &["1"]).await;
        let (polls, lines) = quiet_polls(&mut source, 60).await;
        assert!(polls < 5 && lines == ["2"], "it rests: {polls} {lines:?}");
    }
}

/// Goal: `latest` lies just past the last newline of an archive too, and no position inside one of its lines is taken. Method: a last
/// line without a newline; a byte of it by hand.
#[tokio::test]
async fn a_position_in_an_archive_is_where_a_line_begins() {
    for archive in Archive::of_each_kind("10\n20") {
        let mut source = FileSource::new(archive.config.clone());
        assert_eq!(source.start(StartAt::Latest).await.expect("there").position, Position::at(3));
        assert_eq!(source.start(StartAt::At(Position::at(3))).await.expect("there").position, Position::at(3));
        for (offset, word) in [(2, "inside a line"), (4, "inside a line"), (9, "ends at 5")] {
            let error = source.start(StartAt::At(Position::at(offset))).await.expect_err("refused");
            assert!(error.to_string().contains(word), "{error}");
        }
    }
}

/// Goal: an archive that is being made of the file that is read, before that is removed, is no file that nobody has read; one that
/// holds anything else is. Method: a copy, one of less, of more and of something else, and a part, to a live reader and to a start.
#[tokio::test]
async fn a_copy_of_the_file_that_is_read_is_not_unread() {
    let numbers: String = (0..2000_u64).map(|n| format!("{}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let bed = Bed::new(&numbers);
    let start = bed.earliest().await;
    let mut live = bed.follow(&start).await;
    for _ in 0..4 {
        live.poll(&mut Inputs::default(), ROOM).await.expect("poll");
    }
    let bookmark = live.close_epoch(&start).await.expect("unchanged");
    let copy = bed.directory.path().join("orders.jsonl.1.gz");
    let other = numbers.replace("\n0", "\n1") + "0\n";
    for (content, held) in [(&*numbers, true), (&numbers[..6000], true), (&other, false)] {
        fs::write(&copy, gzip_of(content)).expect("packed");
        for source in [&mut live, &mut bed.source()] {
            let answer = source.hold(&bookmark).await.expect("told");
            match held {
                true => assert_eq!(answer, Held::Yes, "{} bytes", content.len()),
                false => {
                    assert!(matches!(&answer, Held::Gone { missing } if missing.contains("never read")), "{answer:?}")
                }
            }
        }
    }
    let whole = gzip_of(&numbers);
    fs::write(&copy, &whole[..whole.len() / 2]).expect("a part");
    for source in [&mut live, &mut bed.source()] {
        let answer = source.hold(&bookmark).await;
        assert!(matches!(answer, Err(SourceError::Unavailable { .. })), "{answer:?}");
        tokio::time::sleep(COPY_PATIENCE).await;
        let answer = source.hold(&bookmark).await.expect("told");
        assert!(matches!(&answer, Held::Gone { missing } if missing.contains("cut off")), "{answer:?}");
    }
    fs::write(&copy, &whole).expect("the whole");
    assert_eq!(bed.source().hold(&bookmark).await.expect("told"), Held::Yes);
}

/// Goal: a copy that was made beside the file that is read, and stays there, is known through the rotations that follow. Method: two of
/// them, which shift its name; a live reader, and one that starts anew after each.
#[tokio::test]
async fn a_copy_beside_the_file_that_is_read_stays_known_through_rotations() {
    for restarts in [false, true] {
        let bed = Bed::new("1\n2\n");
        let at = |name: &str| bed.directory.path().join(name);
        let mut bookmark = bed.earliest().await;
        let mut source = bed.follow(&bookmark).await;
        expect_lines(&mut source, &["1", "2"]).await;
        fs::write(at("orders.jsonl.1.gz"), gzip_of("1\n2\n")).expect("packed");
        let mut copy = at("orders.jsonl.1.gz");
        for line in 3..5 {
            let (text, number) = (line.to_string(), line - 1);
            let moved = at(&format!("orders.jsonl.{number}.gz"));
            fs::rename(&copy, &moved).expect("moved on");
            copy = moved;
            if line == 4 {
                fs::rename(at("orders.jsonl.1"), at("orders.jsonl.2")).expect("moved on");
            }
            bed.move_to("orders.jsonl.1");
            bed.append(&format!("{text}\n"));
            expect_turn(&mut source).await;
            expect_lines(&mut source, &[&text]).await;
            bookmark = source.close_epoch(&bookmark).await.expect("unchanged");
            assert_eq!(held(&bed, &bookmark).await, Held::Yes, "{line}");
            assert_eq!(source.hold(&bookmark).await.expect("told"), Held::Yes, "{line}");
            if restarts {
                source = bed.follow(&bookmark).await;
            }
        }
    }
}
