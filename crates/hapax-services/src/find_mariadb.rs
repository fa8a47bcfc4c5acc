//! Where MariaDB's server is: the PATH first, then the directories that distributions use.

use std::path::{Path, PathBuf};

use crate::error::ServiceError;
use crate::find::{find_or_install, once_each, search_path, versions};
use crate::product::Product;

/// The server and the files that a new data directory is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MariadbPrograms {
    server: PathBuf,
    share: PathBuf,
}

impl MariadbPrograms {
    /// The server, `mariadbd`.
    #[must_use]
    pub fn server(&self) -> &Path {
        &self.server
    }

    /// The directory of `mysql_system_tables.sql` and its kin.
    #[must_use]
    pub fn share(&self) -> &Path {
        &self.share
    }
}

/// Finds MariaDB; as root it is installed with the package manager if there is none.
///
/// # Errors
/// If there is none: what was looked at, and what to install.
pub fn find_mariadb() -> Result<MariadbPrograms, ServiceError> {
    find_or_install(Product::Mariadb, candidates, programs_in)
}

/// The server of a directory, if its other files are where its package puts them: `../share` or a folder of it.
fn programs_in(directory: &Path) -> Option<MariadbPrograms> {
    let server = directory.join("mariadbd");
    if !server.is_file() {
        return None;
    }
    let real = server.canonicalize().ok()?;
    let homes = [real.parent()?.parent()?, directory.parent()?];
    let shares = homes.into_iter().flat_map(|home| ["mysql", "mariadb", ""].map(|part| home.join("share").join(part)));
    let share = shares.into_iter().find(|share| share.join("mysql_system_tables.sql").is_file())?;
    Some(MariadbPrograms { server, share })
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
