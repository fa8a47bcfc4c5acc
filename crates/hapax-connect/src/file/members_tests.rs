//! The contract of sources over lanes that are chains of several files.

use std::fs;

use hapax_engine::contract::source::{
    a_step_that_was_not_committed_is_taken_again, every_clause, every_clause_across_members, read_all,
};
use hapax_engine::decode::csv::Dialect;
use tempfile::TempDir;

use super::config::{Crowd, CsvOptions, FileFormat, FileSourceConfig, HeaderFrom};
use super::{FileSource, FirstSeen, RotationRule};

/// A folder with a chain, and the configuration that reads it.
struct Chain {
    _folder: TempDir,
    config: FileSourceConfig,
}

impl Chain {
    /// `members` in the order in which they are read; `lane` is the file that grows, or the pattern.
    fn new(rotation: RotationRule, lane: &str, members: &[(&str, Vec<u8>)]) -> Self {
        Self::of(FileFormat::JsonLines, rotation, lane, members)
    }

    fn of(format: FileFormat, rotation: RotationRule, lane: &str, members: &[(&str, Vec<u8>)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (at, (name, content)) in (0..).zip(members) {
            let path = folder.path().join(name);
            fs::write(&path, content).expect("written");
            // As rotations leave them: the older file was written before.
            let then = std::time::SystemTime::now() - std::time::Duration::from_secs(3600 - 60 * at);
            fs::File::options().write(true).open(&path).expect("open").set_modified(then).expect("a time");
        }
        let config = FileSourceConfig { format, rotation, ..FileSourceConfig::new(folder.path().join(lane)) };
        let (first, _) = &members[0];
        let first_seen = FirstSeen::at(&folder.path().join(first), first, &config.format);
        // Only a pattern has an order by name, and it has many lanes.
        let crowd = (rotation == RotationRule::ByName).then(Crowd::default);
        let config = FileSourceConfig { first_seen, crowd, ..config };
        Self { _folder: folder, config }
    }

    fn source(&self) -> FileSource {
        FileSource::new(self.config.clone())
    }

    /// Every clause; and what is read is this, each once.
    async fn keeps_the_contract(&self, expected: &[String]) {
        every_clause_across_members(|| self.source()).await;
        assert_eq!(self.texts().await, expected);
    }

    /// All that is read.
    async fn texts(&self) -> Vec<String> {
        let read = read_all(&|| self.source()).await;
        read.iter().map(|read| String::from_utf8_lossy(&read.bytes).into_owned()).collect()
    }
}

/// The lines of these numbers.
fn lines(numbers: std::ops::RangeInclusive<u32>) -> Vec<u8> {
    numbers.flat_map(|n| format!("{{\"n\":{n}}}\n").into_bytes()).collect()
}

fn texts(numbers: std::ops::RangeInclusive<u32>) -> Vec<String> {
    numbers.map(|n| format!("{{\"n\":{n}}}")).collect()
}

/// Goal: a chain of plain files is one source. Method: every clause over names by number, by date, before the extension, and
/// in the order of names; with a member that is empty, one of a single line, and one that is longer than the others.
#[tokio::test]
async fn a_chain_of_files_keeps_the_contract_of_sources() {
    for (rotation, lane, names) in [
        (RotationRule::Suffixes, "a.log", ["a.log.3", "a.log.2", "a.log.1", "a.log"]),
        (RotationRule::Suffixes, "a.log", ["a.log-20261115", "a.log-20261116", "a.log-20261117", "a.log"]),
        (RotationRule::BeforeExtension, "a.log", ["a.3.log", "a.2.log", "a.1.log", "a.log"]),
        (RotationRule::ByName, "a-*.log", ["a-1.log", "a-2.log", "a-3.log", "a-4.log"]),
    ] {
        let contents = [lines(1..=3), lines(4..=4), lines(5..=45), lines(46..=50)];
        let members: Vec<_> = names.into_iter().zip(contents).collect();
        Chain::new(rotation, lane, &members).keeps_the_contract(&texts(1..=50)).await;
        let contents = [lines(1..=3), Vec::new(), lines(4..=4), lines(5..=9)];
        let members: Vec<_> = names.into_iter().zip(contents).collect();
        Chain::new(rotation, lane, &members).keeps_the_contract(&texts(1..=9)).await;
    }
}

/// Goal: a lane that begins with its live file passes the older ones, and keeps the contract among them. Method: every clause,
/// `latest` too.
#[tokio::test]
async fn older_members_that_were_passed_change_nothing() {
    let members = [("a.log.2", lines(1..=3)), ("a.log.1", lines(4..=9)), ("a.log", lines(10..=14))];
    let mut chain = Chain::new(RotationRule::Suffixes, "a.log", &members);
    chain.config.first_seen = None;
    every_clause(|| chain.source()).await;
    assert_eq!(chain.texts().await, texts(10..=14));
}

/// Goal: the last line of a member that does not end in a newline is one of its own, and the step behind it comes again.
/// Method: the clause of steps alone, since such an end is waited for, and what is read.
#[tokio::test]
async fn last_lines_of_members_are_whole() {
    let mut cut = lines(1..=3);
    cut.pop();
    let members = [("a.log.2", cut), ("a.log.1", lines(4..=4)), ("a.log", lines(5..=9))];
    let chain = Chain::new(RotationRule::Suffixes, "a.log", &members);
    a_step_that_was_not_committed_is_taken_again(&|| chain.source()).await;
    assert_eq!(chain.texts().await, texts(1..=9));
}

/// Goal: CSV files with a header each are one source, whose headers are none of its records. Method: every clause.
#[tokio::test]
async fn a_chain_of_csv_files_keeps_the_contract_of_sources() {
    let content = |rows: &str| format!("id,note\n{rows}").into_bytes();
    let members = [
        ("a.csv.2", content("1,a\n2,\"two\nlines\"\n")),
        ("a.csv.1", content("3,c\n")),
        ("a.csv", content("4,d\n\n5,\"e\"\n")),
    ];
    let options = CsvOptions { dialect: Dialect::default(), null: String::new(), header: HeaderFrom::File };
    let chain = Chain::of(FileFormat::Csv(options), RotationRule::Suffixes, "a.csv", &members);
    chain.keeps_the_contract(&["1,a", "2,\"two\nlines\"", "3,c", "4,d", "5,\"e\""].map(String::from)).await;
}

/// Goal: archives among the files change nothing of it. Method: every clause, with the oldest, one in the middle, the
/// youngest, and all but the live file packed, by gzip and by zstd.
#[cfg(feature = "compression")]
#[tokio::test]
async fn archives_in_a_chain_keep_the_contract_of_sources() {
    use std::io::Write as _;
    let gzip = |content: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).expect("packs");
        encoder.finish().expect("packs")
    };
    let zstd = |content: &[u8]| zstd::stream::encode_all(content, 1).expect("packs");
    let every_one: &[&[usize]] = &[&[0, 1, 2]];
    let some: &[&[usize]] = &[&[0], &[1], &[2], &[0, 1, 2]];
    for (ending, choices) in [(".gz", some), (".zst", every_one)] {
        let pack = |content: &[u8]| if ending == ".gz" { gzip(content) } else { zstd(content) };
        for (rotation, lane, names) in [
            (RotationRule::Suffixes, "a.log", ["a.log.3", "a.log.2", "a.log.1", "a.log"]),
            (RotationRule::BeforeExtension, "a.log", ["a.3.log", "a.2.log", "a.1.log", "a.log"]),
            (RotationRule::ByName, "a-*.log", ["a-1.log", "a-2.log", "a-3.log", "a-4.log"]),
        ] {
            for packed in choices {
                let contents = [lines(1..=3), lines(4..=40), lines(41..=41), lines(42..=50)];
                let names = names.iter().enumerate().map(|(at, name)| match packed.contains(&at) {
                    true => format!("{name}{ending}"),
                    false => (*name).to_owned(),
                });
                let names: Vec<String> = names.collect();
                let contents = contents.iter().enumerate().map(|(at, content)| match packed.contains(&at) {
                    true => pack(content),
                    false => content.clone(),
                });
                let members: Vec<_> = names.iter().map(String::as_str).zip(contents).collect();
                Chain::new(rotation, lane, &members).keeps_the_contract(&texts(1..=50)).await;
            }
        }
    }
}
