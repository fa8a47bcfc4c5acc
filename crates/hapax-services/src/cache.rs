//! What is fetched once and kept: one directory for all, entries that are whole or not there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::account;

/// The directory; one that a server's account can read, too.
pub(crate) fn home() -> Result<PathBuf, String> {
    let home = if account::are_root() {
        PathBuf::from("/var/cache")
    } else {
        let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let usual = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        named.or_else(usual).ok_or("There is no directory to keep it in.")?
    };
    Ok(home.join("hapax-services"))
}

/// The entry `name`, made first by `make` if it is not there: in a directory of its own, which is moved when it is whole.
pub(crate) fn keep(name: &str, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    // Threads of one process wait for each other; of two processes the slower one throws its own away.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let home = home()?;
    let place = home.join(name);
    if place.exists() {
        return Ok(place);
    }
    let work = home.join(format!("{name}-{}", std::process::id()));
    let made = std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()));
    let outcome = made.and_then(|()| make(&work)).and_then(|()| match std::fs::rename(&work, &place) {
        Err(error) if !place.exists() => Err(format!("{}: {error}", place.display())),
        _ => Ok(place),
    });
    if work.exists() {
        drop(std::fs::remove_dir_all(&work));
    }
    outcome
}

/// Runs a program to its end; what it printed, or the last line of its complaint.
pub(crate) fn said(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).into_owned());
    let last = |text: &String| text.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned);
    let why = complaint.iter().find_map(last).unwrap_or_else(|| "it said nothing".to_owned());
    Err(format!("{program} failed: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what failed is not kept, what was made is made once. Method: a failure, a success, a maker that must not run.
    #[test]
    fn an_entry_is_whole_or_not_there() {
        let name = format!("test-entry-{}", std::process::id());
        let failed = keep(&name, |work| {
            std::fs::write(work.join("half"), "").expect("a file");
            Err("no more".to_owned())
        });
        assert_eq!(failed, Err("no more".to_owned()));
        let place = keep(&name, |work| std::fs::write(work.join("file"), "whole").map_err(|error| error.to_string()));
        let place = place.expect("it is made");
        assert_eq!(keep(&name, |_| panic!("it is there")), Ok(place.clone()));
        assert!(place.join("file").exists() && !place.join("half").exists());
        std::fs::remove_dir_all(place).expect("it can be removed");
    }

    /// Goal: a failure names the program and its reason. Method: a missing one, a silent one, one that complains.
    #[test]
    fn a_failed_program_is_quoted() {
        assert!(
            said(&mut Command::new("hapax-no-such-program"))
                .expect_err("missing")
                .starts_with("hapax-no-such-program: ")
        );
        assert_eq!(said(&mut Command::new("false")), Err("false failed: it said nothing".to_owned()));
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo first >&2; echo the reason >&2; echo >&2; exit 3"]);
        assert_eq!(said(&mut shell), Err("sh failed: the reason".to_owned()));
    }
}
