//! What must hold of every server's end, for the tests of each.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use super::*;

const HOLD: &str = "HAPAX_SERVICES_TEST_HOLD";

/// Whether the server on `port` and its directory are gone, or go soon.
pub(crate) fn gone(port: u16, directory: &Path) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(120) {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_err() && !directory.exists() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// The body of the test with this whole name: another process runs it again, holds a server there, with its port and its
/// directory, and is killed without a chance to act.
pub(crate) fn goes_when_its_holder_is_killed<S>(
    name: &str,
    start: impl FnOnce() -> (S, u16, PathBuf),
    version: impl FnOnce(u16) -> Result<(), ServiceError>,
) {
    if std::env::var_os(HOLD).is_some() {
        let (_server, port, directory) = start();
        println!("holding {port} {}", directory.display());
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let itself = std::env::current_exe().expect("a test program has a path");
    let mut holder = Command::new(itself);
    holder.args(["--exact", name, "--nocapture"]);
    let mut holder = holder.env(HOLD, "1").stdout(Stdio::piped()).spawn().expect("it starts");
    let output = BufReader::new(holder.stdout.take().expect("its output is piped"));
    let line =
        output.lines().map_while(Result::ok).find(|line| line.contains("holding ")).expect("it says what it holds");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| word.ends_with("holding")).expect("it was found");
    let (port, directory) = (words[at + 1].parse().expect("a port"), PathBuf::from(words[at + 2]));
    version(port).expect("it answers");
    holder.kill().expect("it can be killed");
    holder.wait().expect("it ends");
    assert!(gone(port, &directory), "the server on port {port} outlived its holder");
}
