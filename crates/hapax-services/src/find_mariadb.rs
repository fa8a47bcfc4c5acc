//! Where the servers of the MySQL family are: the PATH first, then the directories that distributions use.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::ServiceError;
use crate::fetch_mysql::fetch_mysql;
use crate::find::{find_or_install, once_each, search_path, versions};
use crate::product::Product;

/// The server and the files that a new data directory is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MariadbPrograms {
    server: PathBuf,
    share: PathBuf,
    loader: Option<PathBuf>,
}

impl MariadbPrograms {
    /// A server whose libraries are not the system's: they lie beside their loader.
    pub(crate) const fn with_loader(server: PathBuf, share: PathBuf, loader: PathBuf) -> Self {
        Self { server, share, loader: Some(loader) }
    }

    /// The server, `mariadbd` or `mysqld`.
    #[must_use]
    pub fn server(&self) -> &Path {
        &self.server
    }

    /// The directory of the messages, the character sets, and MariaDB's `mysql_system_tables.sql`.
    #[must_use]
    pub fn share(&self) -> &Path {
        &self.share
    }

    /// The words that start the server.
    pub(crate) fn command(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        if let Some((loader, libraries)) = self.loader.as_ref().and_then(|loader| Some((loader, loader.parent()?))) {
            words.extend([loader.into(), "--library-path".into(), libraries.into()]);
        }
        words.push(self.server.clone().into());
        words
    }
}

/// Finds MariaDB; as root it is installed with the package manager if there is none.
///
/// # Errors
/// If there is none: what was looked at, and what to install.
pub fn find_mariadb() -> Result<MariadbPrograms, ServiceError> {
    find_or_install(Product::Mariadb, candidates, programs_in)
}

/// Finds MySQL's own server; on Debian, which has it only in its unstable suite, it is unpacked beside the system.
///
/// # Errors
/// If there is none, which is no fault of the machine: who can do without it goes on without it.
pub fn find_mysql() -> Result<MariadbPrograms, ServiceError> {
    let looked = candidates();
    match looked.iter().find_map(|directory| mysql_in(directory)) {
        Some(found) => Ok(found),
        None => {
            fetch_mysql().map_err(|installing| ServiceError::NotFound { product: Product::Mysql, looked, installing })
        }
    }
}

/// MariaDB has a program of this name, too: it says so.
fn mysql_in(directory: &Path) -> Option<MariadbPrograms> {
    let server = directory.join("mysqld");
    let version = Command::new(&server).args(["--no-defaults", "--version"]).output().ok()?;
    if !version.status.success() || String::from_utf8_lossy(&version.stdout).contains("MariaDB") {
        return None;
    }
    let share = shares(&server)?.find(|share| share.join("charsets").is_dir())?;
    Some(MariadbPrograms { server, share, loader: None })
}

/// Where the files of a server may be: in `../share` or a folder of it, seen from where it lies or really lies.
fn shares(server: &Path) -> Option<impl Iterator<Item = PathBuf>> {
    let real = server.canonicalize().ok()?;
    let homes = [real.parent()?.parent()?.to_owned(), server.parent()?.parent()?.to_owned()];
    Some(homes.into_iter().flat_map(|home| ["mysql", "mariadb", ""].map(|part| home.join("share").join(part))))
}

/// The server of a directory, if its other files are where its package puts them.
fn programs_in(directory: &Path) -> Option<MariadbPrograms> {
    let server = directory.join("mariadbd");
    let share = shares(&server)?.find(|share| share.join("mysql_system_tables.sql").is_file())?;
    Some(MariadbPrograms { server, share, loader: None })
}

fn candidates() -> Vec<PathBuf> {
    let mut found = search_path();
    // Debian; Fedora and its kin; a build of one's own; Homebrew.
    found.extend(["/usr/sbin", "/usr/libexec", "/usr/bin", "/usr/local/sbin"].map(PathBuf::from));
    found.extend(["/usr/local/mysql/bin", "/usr/local/mariadb/bin"].map(PathBuf::from));
    for home in ["/opt/homebrew/opt", "/usr/local/opt", "/home/linuxbrew/.linuxbrew/opt"] {
        found.extend(versions(home, "mariadb").into_iter().map(|version| version.join("bin")));
    }
    once_each(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a server without its files is no server. Method: a scratch directory that fills step by step.
    #[test]
    fn a_server_needs_its_files() {
        let root = std::env::temp_dir().join(format!("hapax-find-mariadb-{}", std::process::id()));
        let (programs, share) = (root.join("sbin"), root.join("share/mysql"));
        for folder in [&programs, &share] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        assert_eq!(programs_in(&programs), None);
        std::fs::write(programs.join("mariadbd"), "").expect("a file");
        assert_eq!(programs_in(&programs), None);
        std::fs::write(share.join("mysql_system_tables.sql"), "").expect("a file");
        let found = programs_in(&programs).expect("it is whole");
        assert_eq!(found.server(), programs.join("mariadbd"));
        assert!(found.share().ends_with("share/mysql"), "{found:?}");
        std::fs::remove_dir_all(root).expect("it can be removed");
    }

    /// Goal: the message names what was looked at and what to install. Method: its text.
    #[test]
    fn what_was_looked_at_is_named() {
        let looked = candidates();
        assert!(looked.iter().any(|path| path == Path::new("/usr/sbin")), "{looked:?}");
        let text =
            ServiceError::NotFound { product: Product::Mariadb, looked, installing: "no".to_owned() }.to_string();
        assert!(text.contains("no MariaDB server was found") && text.contains("mariadb-server-core"), "{text}");
    }
}
