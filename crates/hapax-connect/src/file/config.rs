//! What a file source is told.

use std::path::PathBuf;

use hapax_engine::source::StartAt;

/// The longest line that is an event, unless the configuration says otherwise.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// Which file is read, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSourceConfig {
    /// The file's absolute path: the lane's name, and where its successor appears after a rotation.
    pub path: PathBuf,
    /// Where a delivery without progress begins.
    pub start: StartAt,
    /// The longest line that is an event, in bytes without its newline; a longer one becomes a dead letter.
    pub max_line: usize,
}

impl FileSourceConfig {
    /// Reads the file at `path` from its beginning, with lines up to 16 MiB.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path, start: StartAt::Earliest, max_line: MAX_LINE }
    }
}
