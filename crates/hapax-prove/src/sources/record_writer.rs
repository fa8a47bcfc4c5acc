//! The writer: appends numbered records to the files of all stems, alone or in a thread of its own.
//!
//! Invariant: the records of a stem are remembered in the order in which they were written, which is the order of its lane.
//! Like any daemon it holds its files open, and writes on into a renamed one until it is told to open its path again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;

use super::case::RecordFormat;
use crate::shape::{Row, Shape};
use crate::workload::{Fate, Input, line};

/// Keys per stem: few, so that every key is written often, and in every member of a chain.
const KEYS: i64 = 12;
/// Each stem has keys of its own: there is no order between stems.
const KEYS_APART: i64 = 1000;
/// Numbers from here on are those of records that must never be delivered.
pub const DECOYS: i64 = 9_000_000;
/// So many records come densely.
const DENSE_RECORDS: i64 = 1500;

/// What each file of CSV begins with.
pub const CSV_HEADER: &str = "n,order_id,region,reference,account,amount,op,slot,version";

/// One stem: the name under which its live file is written, and everything that was written.
#[derive(Debug)]
pub struct WrittenStem {
    /// The live file's name.
    pub name: String,
    /// Its records, in the order of the lane.
    pub records: Vec<Input>,
    /// The stem whose file has the same content, and came before.
    pub twin_of: Option<usize>,
    path: PathBuf,
    file: Option<File>,
    known: std::collections::BTreeSet<i64>,
}

/// All stems, and what the next record is made of.
#[derive(Debug)]
pub struct WrittenStems {
    /// The stems.
    pub stems: Vec<WrittenStem>,
    shape: Shape,
    format: RecordFormat,
    next: i64,
    next_decoy: i64,
    random: fastrand::Rng,
}

impl WrittenStems {
    fn record(&mut self, stem: usize) -> Input {
        self.next += 1;
        let n = self.next;
        let order_id = stem as i64 * KEYS_APART + self.random.i64(1..=KEYS);
        let again = !self.stems[stem].known.insert(order_id);
        let deletes = matches!(self.shape, Shape::Update | Shape::Newer | Shape::NewerDeclared);
        let op = match (again, self.random.u8(0..100)) {
            (false, _) => "c",
            (true, 0..=11) if deletes => "d",
            (true, _) => "u",
        };
        let row = made_row(n, order_id, op, self.random.i64(1..=500));
        let whole = self.spelled(&row);
        // Never the first of a stem: a file is known by its first record.
        if self.random.u8(0..100) < 2 && !self.stems[stem].records.is_empty() {
            let broken = match self.format {
                RecordFormat::Jsonl => whole[..whole.len() / 2].to_owned(),
                RecordFormat::Csv => whole + ",one too many",
            };
            return Input { line: broken, fate: Fate::Dead };
        }
        Input { line: whole, fate: Fate::Row(row) }
    }

    fn spelled(&mut self, row: &Row) -> String {
        if self.format == RecordFormat::Jsonl {
            return line(row);
        }
        let Row { n, order_id, region, reference, account, amount, op, version, .. } = row;
        let quote = if self.random.bool() { "\"" } else { "" };
        format!("{n},{order_id},{quote}{region}{quote},{reference},{account},{amount},{quote}{op}{quote},,{version}")
    }

    /// What a file begins with.
    #[must_use]
    pub fn header(&self) -> String {
        match self.format {
            RecordFormat::Jsonl => String::new(),
            RecordFormat::Csv => format!("{CSV_HEADER}\n"),
        }
    }

    /// Writes what a file begins with into the live one, which is empty.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_header(&mut self, stem: usize) -> anyhow::Result<()> {
        let header = self.header();
        let file = self.stems[stem].file.as_mut().context("the live file is open")?;
        Ok(file.write_all(header.as_bytes())?)
    }

    /// Appends `count` records to a stem; now and then a line is written in two parts.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, stem: usize, count: usize) -> anyhow::Result<()> {
        for _ in 0..count {
            let record = self.record(stem);
            let halves = self.random.u8(0..40) == 0;
            let mut text = format!("{}\n", record.line);
            let header = self.header();
            let target = &mut self.stems[stem];
            if target.file.is_none() {
                target.open()?;
            }
            let file = target.file.as_mut().context("it was opened just now")?;
            if !header.is_empty() && file.metadata()?.len() == 0 {
                text = header + &text;
            }
            let middle = if halves { text.len() / 3 } else { 0 };
            file.write_all(&text.as_bytes()[..middle])?;
            if halves {
                std::thread::sleep(Duration::from_millis(3));
            }
            file.write_all(&text.as_bytes()[middle..])?;
            target.records.push(record);
        }
        Ok(())
    }

    /// A whole file of records for a stem, written by the caller.
    pub fn compose(&mut self, stem: usize, count: usize) -> String {
        self.header() + &self.compose_more(stem, count)
    }

    /// Records for a stem that are written elsewhere, by the caller.
    pub fn compose_more(&mut self, stem: usize, count: usize) -> String {
        let mut text = String::new();
        for _ in 0..count {
            let record = self.record(stem);
            text.push_str(&record.line);
            text.push('\n');
            self.stems[stem].records.push(record);
        }
        text
    }

    /// A whole file that no worker may ever deliver.
    pub fn decoy_file(&mut self, stem: usize, bytes: usize) -> String {
        self.header() + &self.decoys(stem, bytes)
    }

    /// Lines that no worker may ever deliver, for keys of a stem: together at least `bytes` long.
    pub fn decoys(&mut self, stem: usize, bytes: usize) -> String {
        let mut text = String::new();
        while text.len() < bytes {
            self.next_decoy += 1;
            let order_id = stem as i64 * KEYS_APART + self.random.i64(1..=KEYS);
            let row = made_row(self.next_decoy, order_id, "u", 7);
            text.push_str(&self.spelled(&row));
            text.push('\n');
        }
        text
    }

    /// Adds a stem without a file.
    pub fn add_stem(&mut self, path: &Path) -> usize {
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let known = std::collections::BTreeSet::new();
        let path = path.to_owned();
        self.stems.push(WrittenStem { name, records: Vec::new(), twin_of: None, path, file: None, known });
        self.stems.len() - 1
    }

    /// How many records were written in all.
    #[must_use]
    pub fn written(&self) -> usize {
        self.stems.iter().map(|stem| stem.records.len()).sum()
    }

    /// Which stem a row belongs to, by its key.
    #[must_use]
    pub fn stem_of(row: &Row) -> usize {
        usize::try_from(row.order_id / KEYS_APART).unwrap_or(usize::MAX)
    }
}

fn made_row(n: i64, order_id: i64, op: &str, amount: i64) -> Row {
    Row {
        n,
        order_id,
        region: "eu".into(),
        reference: format!("r{order_id}"),
        account: format!("a{}", order_id % 8),
        amount,
        op: op.into(),
        slot: None,
        version: n,
    }
}

impl WrittenStem {
    /// Opens the live file under its name, new if there is none.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(&mut self) -> anyhow::Result<()> {
        let file = File::options().create(true).append(true).open(&self.path);
        self.file = Some(file.with_context(|| format!("cannot open {}", self.path.display()))?);
        Ok(())
    }

    /// Goes on in a file of another name: that is the live one now.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn begin(&mut self, path: &Path) -> anyhow::Result<()> {
        self.name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        self.move_to(path);
        self.open()
    }

    /// Closes the live file; the next record opens whatever has its name then.
    pub fn close(&mut self) {
        self.file = None;
    }

    /// Writes under another path from the next record on.
    pub fn move_to(&mut self, path: &Path) {
        self.path = path.to_owned();
        self.file = None;
    }

    /// The live file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The writer, shared with its thread.
#[derive(Debug, Clone)]
pub struct RecordWriter {
    shared: Arc<Mutex<WrittenStems>>,
}

impl RecordWriter {
    /// A writer without stems.
    #[must_use]
    pub fn new(shape: Shape, format: RecordFormat, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        let stems = WrittenStems { stems: Vec::new(), shape, format, next: 0, next_decoy: DECOYS, random };
        Self { shared: Arc::new(Mutex::new(stems)) }
    }

    /// The stems; nobody writes while the guard is held.
    pub fn stems(&self) -> MutexGuard<'_, WrittenStems> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends `count` records to every stem.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn append_all(&self, count: usize) -> anyhow::Result<()> {
        let mut stems = self.stems();
        (0..stems.stems.len()).try_for_each(|stem| stems.append(stem, count))
    }

    /// How many records were written in all.
    #[must_use]
    pub fn written(&self) -> usize {
        self.stems().written()
    }

    /// Starts to write without a pause.
    #[must_use]
    pub fn start_traffic(&self) -> Traffic {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (told, counted, writer) = (Arc::clone(&stop), Arc::clone(&written), self.clone());
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::SeqCst) {
                let mut stems = writer.stems();
                let count = stems.stems.len();
                // Dense at first; then so that records flow for a minute and more.
                let dense = stems.next < DENSE_RECORDS;
                let bursts = if dense { count.min(4) } else { 1 };
                for _ in 0..bursts {
                    let (stem, burst) = (stems.random.usize(..count), stems.random.usize(1..if dense { 8 } else { 3 }));
                    stems.append(stem, burst)?;
                    counted.fetch_add(burst as u64, Ordering::SeqCst);
                }
                drop(stems);
                std::thread::sleep(Duration::from_millis(if dense { 8 } else { 15 }));
            }
            Ok(())
        });
        Traffic { thread: Some(thread), stop, written }
    }
}

/// The writer's thread; dropping it ends it.
#[derive(Debug)]
pub struct Traffic {
    thread: Option<JoinHandle<anyhow::Result<()>>>,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
}

impl Traffic {
    /// How many records it has written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it could not write.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::SeqCst);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => anyhow::bail!("the writer's thread panicked"),
            None => Ok(()),
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            // Its error was for whoever called `finish`.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(dir: &Path, format: RecordFormat) -> RecordWriter {
        let writer = RecordWriter::new(Shape::Update, format, 3);
        writer.stems().add_stem(&dir.join("a.log"));
        writer.stems().add_stem(&dir.join("b.log"));
        writer
    }

    /// Goal: what is remembered is what the file holds, through a rename that the writer hears of late.
    #[test]
    fn records_are_remembered_in_the_order_of_the_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let writer = writer(dir.path(), RecordFormat::Jsonl);
        writer.append_all(20).expect("written");
        std::fs::rename(dir.path().join("a.log"), dir.path().join("a.log.1")).expect("renamed");
        writer.append_all(5).expect("written into the renamed file");
        writer.stems().stems[0].open().expect("opened again");
        writer.append_all(7).expect("written");
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("a file");
        let files = format!("{}{}", read("a.log.1"), read("a.log"));
        let stems = writer.stems();
        let remembered: Vec<&str> = stems.stems[0].records.iter().map(|record| record.line.as_str()).collect();
        assert_eq!(files.lines().collect::<Vec<_>>(), remembered);
        assert_eq!((read("a.log.1").lines().count(), read("a.log").lines().count()), (25, 7));
        assert_eq!(stems.written(), 64);
    }

    /// Goal: every file of CSV begins with the header, and what is remembered are the records. Method: a rotation; a header alone.
    #[test]
    fn every_file_of_csv_begins_with_its_header() {
        let dir = tempfile::tempdir().expect("a directory");
        let writer = writer(dir.path(), RecordFormat::Csv);
        writer.append_all(20).expect("written");
        std::fs::rename(dir.path().join("a.log"), dir.path().join("a.log.1")).expect("renamed");
        writer.stems().stems[0].open().expect("opened again");
        writer.stems().write_header(0).expect("a header");
        writer.append_all(7).expect("written");
        let mut stems = writer.stems();
        let remembered: Vec<&str> = stems.stems[0].records.iter().map(|record| record.line.as_str()).collect();
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("a file");
        let expected = |records: &[&str]| format!("{CSV_HEADER}\n{}\n", records.join("\n"));
        assert_eq!((read("a.log.1"), read("a.log")), (expected(&remembered[..20]), expected(&remembered[20..])));
        assert!(stems.decoy_file(0, 500).starts_with(CSV_HEADER) && stems.compose(1, 3).starts_with(CSV_HEADER));
    }

    /// Goal: rows tell their stem, decoys are told from records. Method: look at some of each.
    #[test]
    fn a_row_tells_its_stem() {
        let dir = tempfile::tempdir().expect("a directory");
        let writer = writer(dir.path(), RecordFormat::Jsonl);
        writer.append_all(30).expect("written");
        let mut stems = writer.stems();
        for (number, stem) in stems.stems.iter().enumerate() {
            for row in stem.records.iter().flat_map(Input::rows) {
                assert!(WrittenStems::stem_of(row) == number && row.n < DECOYS);
            }
        }
        assert!(stems.decoys(1, 500).len() >= 500);
    }

    /// Goal: traffic ends when it is told to, and counts what it wrote.
    #[test]
    fn traffic_writes_until_it_is_ended() {
        let dir = tempfile::tempdir().expect("a directory");
        let writer = writer(dir.path(), RecordFormat::Jsonl);
        let traffic = writer.start_traffic();
        while traffic.written() < 30 {
            std::thread::sleep(Duration::from_millis(2));
        }
        traffic.finish().expect("it wrote");
        let written = writer.written();
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(writer.written(), written);
    }
}
