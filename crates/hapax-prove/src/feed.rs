//! Writes the input while workers read it: in pieces, and not always at the end of a line.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};

/// How fast a feeder writes.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Lines per piece.
    pub lines: usize,
    /// Time between pieces.
    pub pause: Duration,
}

/// A thread that appends lines to a file until they are all written.
#[derive(Debug)]
pub struct Feeder {
    thread: Option<JoinHandle<std::io::Result<()>>>,
    hurry: Arc<AtomicBool>,
}

impl Feeder {
    /// Starts to append `lines` to `path`.
    #[must_use]
    pub fn start(path: &Path, lines: Vec<String>, pace: Pace) -> Self {
        let hurry = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&hurry);
        let path: PathBuf = path.to_owned();
        let thread = std::thread::spawn(move || {
            let mut file = File::options().create(true).append(true).open(path)?;
            for piece in lines.chunks(pace.lines.max(1)) {
                let mut text = piece.join("\n");
                text.push('\n');
                // A reader must not take half a line for a whole one.
                let half = text.len() - text.len().min(9);
                file.write_all(&text.as_bytes()[..half])?;
                file.write_all(&text.as_bytes()[half..])?;
                if !told.load(Ordering::SeqCst) {
                    std::thread::sleep(pace.pause);
                }
            }
            Ok(())
        });
        Self { thread: Some(thread), hurry }
    }

    /// Whether every line is written.
    #[must_use]
    pub fn done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Writes what is left without pausing, and waits for the end.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.hurry.store(true, Ordering::SeqCst);
        let thread = self.thread.take().context("a feeder is finished once")?;
        thread.join().map_err(|_| anyhow!("the feeder panicked"))?.context("the feeder could not write")
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.hurry.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Appends `lines` to `path` at once.
///
/// # Errors
/// If the file cannot be written.
pub fn append<'a>(path: &Path, lines: impl IntoIterator<Item = &'a str>) -> anyhow::Result<()> {
    let text: String = lines.into_iter().flat_map(|line| [line, "\n"]).collect();
    let mut file = File::options().create(true).append(true).open(path)?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every line arrives once and whole. Method: feed with pauses, finish in a hurry, read back.
    #[test]
    fn every_line_is_written_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("in.jsonl");
        let lines: Vec<String> = (0..50).map(|n| format!("{{\"n\":{n}}}")).collect();
        append(&path, ["first"]).expect("it is written");
        let pace = Pace { lines: 7, pause: Duration::from_millis(20) };
        let feeder = Feeder::start(&path, lines.clone(), pace);
        feeder.finish().expect("it is written");
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), lines);
    }
}
