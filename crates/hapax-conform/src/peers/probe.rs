//! How fast the disk confirms, now: it changes by the hour, and bounds everybody who waits for it.

use std::io::Write as _;
use std::time::Instant;

use anyhow::Result;

use super::median;

/// The median of an fsync after a small and after a larger write, as a sentence.
///
/// # Errors
/// If there is no room in the directory for temporary files.
pub(super) fn fsync() -> Result<String> {
    let mut said = Vec::new();
    for (size, times) in [(100, 200), (1 << 20, 30)] {
        let mut file = tempfile::NamedTempFile::new()?;
        let block = vec![b'x'; size];
        let mut seen = Vec::new();
        for _ in 0..times {
            file.write_all(&block)?;
            let started = Instant::now();
            file.as_file().sync_data()?;
            seen.push(started.elapsed().as_secs_f64() * 1e3);
        }
        said.push(format!("{:.2} ms after {size} bytes", median(&seen)));
    }
    Ok(format!("fsync {}", said.join(", ")))
}
