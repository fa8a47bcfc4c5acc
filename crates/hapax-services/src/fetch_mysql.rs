//! MySQL's server on a Debian that has none: the packages of the unstable suite, unpacked beside the system and run by
//! their own loader. Nothing is installed.
//!
//! Reads: which archive apt uses. Writes: one cache directory. Not here: other systems; there MySQL is what is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, said};
use crate::find_mariadb::MariadbPrograms;

const PACKAGE: &str = "mysql-server-core";
const SUITE: &str = "sid";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// What the packages ask for and the server does not: scripts' languages and rare character sets.
const NEEDLESS: [&str; 4] = ["perl", "libperl", "libc-gconv", "gcc-"];

/// The server of the cache, fetched first if it is not there; or why there is none.
pub(crate) fn fetch_mysql() -> Result<MariadbPrograms, String> {
    let home = cache::home()?;
    let place = home.join("mysql");
    if let Some(programs) = unpacked(&place) {
        return Ok(programs);
    }
    let work = home.join(format!("mysql-{}", std::process::id()));
    let mut outcome = Err("apt names no archive of Debian's.".to_owned());
    // Others may have suites of the same names: what Debian did not sign is refused.
    for archive in archives()? {
        outcome = fetch(&archive, &work).and_then(|()| match std::fs::rename(work.join("root"), &place) {
            // Another process was faster: its tree is as good.
            Err(error) if !place.exists() => Err(error.to_string()),
            _ => unpacked(&place).ok_or_else(|| "The packages hold no server that could run here.".to_owned()),
        });
        drop(std::fs::remove_dir_all(&work));
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// The server of an unpacked tree, if the tree is whole: it is only moved to its place when it is.
fn unpacked(root: &Path) -> Option<MariadbPrograms> {
    let server = root.join("usr/sbin/mysqld");
    let share = root.join("usr/share/mysql");
    let loader = loader(&root.join("usr/lib"))?;
    (server.is_file() && share.is_dir()).then(|| MariadbPrograms::with_loader(server, share, loader))
}

/// `ld-linux-x86-64.so.2` and its kin, in the folder of the machine's kind or above it.
fn loader(libraries: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(libraries).ok()?.flatten().map(|entry| entry.path());
    let mut files = folders.chain([libraries.to_owned()]).filter_map(|folder| std::fs::read_dir(folder).ok());
    files.find_map(|entries| {
        let mut names = entries.flatten().map(|entry| entry.path());
        names.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux")))
    })
}

/// The archives that apt takes packages of this Debian from.
fn archives() -> Result<Vec<String>, String> {
    let system = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !system.lines().any(|line| line == "ID=debian") || !Path::new(KEYRING).exists() {
        return Err("It is only fetched on Debian, from Debian's own archive.".to_owned());
    }
    let codename = system.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let lists = said(Command::new("apt-get").args(["--print-uris", "update"]))?;
    Ok(archives_of(&lists, codename.unwrap_or(SUITE).trim_matches('"')))
}

/// The addresses before `/dists/SUITE/InRelease`, for suites that are Debian itself and not its updates.
fn archives_of(lists: &str, codename: &str) -> Vec<String> {
    let suites = [codename, "oldstable", "stable", "testing", "unstable", SUITE];
    let archive = |line: &str| {
        let address = line.strip_prefix('\'')?.split('\'').next()?;
        let (archive, suite) = address.strip_suffix("/InRelease")?.split_once("/dists/")?;
        suites.contains(&suite).then(|| archive.to_owned())
    };
    lists.lines().filter_map(archive).collect()
}

/// Downloads the package with all that it depends on, as if nothing were installed, and unpacks it in `work/root`.
fn fetch(archive: &str, work: &Path) -> Result<(), String> {
    let (lists, archives, root) = (work.join("lists/partial"), work.join("cache/archives/partial"), work.join("root"));
    for folder in [&lists, &archives, &root] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let source = format!("deb [signed-by={KEYRING}] {archive} {SUITE} main\n");
    for (name, text) in [("sources.list", source.as_str()), ("status", "")] {
        std::fs::write(work.join(name), text).map_err(|error| format!("{name}: {error}"))?;
    }
    said(apt(work).arg("update"))?;
    said(apt(work).args(["install", "--yes", "--no-install-recommends", "--download-only", PACKAGE]))?;
    let entries = std::fs::read_dir(work.join("cache/archives")).map_err(|error| error.to_string())?;
    for package in entries.flatten().map(|entry| entry.path()) {
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".deb") && !NEEDLESS.iter().any(|needless| name.starts_with(needless)) {
            said(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root))?;
        }
    }
    Ok(())
}

/// apt with lists, a cache and a record of packages of its own, and without patience.
fn apt(work: &Path) -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive").arg("--quiet");
    let settings = [
        format!("Dir::Etc::SourceList={}", work.join("sources.list").display()),
        "Dir::Etc::SourceParts=/dev/null".to_owned(),
        format!("Dir::State::Lists={}", work.join("lists").display()),
        format!("Dir::State::Status={}", work.join("status").display()),
        format!("Dir::Cache={}", work.join("cache").display()),
        "Acquire::Languages=none".to_owned(),
        "Acquire::Retries=0".to_owned(),
        "Acquire::http::Timeout=20".to_owned(),
        "Acquire::https::Timeout=20".to_owned(),
    ];
    for setting in settings {
        apt.arg("-o").arg(setting);
    }
    apt
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the archive is the one that the machine uses. Method: what apt prints, with updates and strangers.
    #[test]
    fn the_archive_is_the_one_that_apt_uses() {
        let lists = "'a:/security/dists/x-security/InRelease' a_InRelease 0 \n'a:/debian/dists/x/InRelease' b 0 \n\
                     'a:/debian/dists/x-updates/InRelease' c 0 \n'a:/node/dists/nodistro/InRelease' d 0 \nwords\n";
        assert_eq!(archives_of(lists, "x"), ["a:/debian"]);
        assert_eq!(archives_of("'a:/debian/dists/stable/InRelease' a 0", "x"), ["a:/debian"]);
        assert_eq!(archives_of("'a:/debian/dists/x/InRelease", "x"), ["a:/debian"]);
        assert_eq!(archives_of("", "x"), Vec::<String>::new());
    }

    /// Goal: half a tree is no server. Method: a tree that fills step by step.
    #[test]
    fn a_tree_must_be_whole() {
        let root = std::env::temp_dir().join(format!("hapax-fetch-{}", std::process::id()));
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        for folder in [&libraries, &root.join("usr/sbin"), &root.join("usr/share/mysql")] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        assert_eq!(unpacked(&root), None);
        std::fs::write(root.join("usr/sbin/mysqld"), "").expect("a file");
        assert_eq!(unpacked(&root), None);
        std::fs::write(libraries.join("ld-linux-x86-64.so.2"), "").expect("a file");
        let found = unpacked(&root).expect("it is whole");
        let line = format!("{:?}", found.command());
        assert!(line.contains("ld-linux-x86-64.so.2") && line.contains("--library-path"), "{line}");
        std::fs::remove_dir_all(root).expect("it can be removed");
    }
}
