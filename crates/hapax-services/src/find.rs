//! Where PostgreSQL's programs are: the PATH first, then the directories that distributions use, newest first.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::ServiceError;
use crate::install::install;
use crate::product::Product;

/// The directory that holds `postgres`, `initdb` and their kin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    directory: PathBuf,
}

impl Programs {
    /// A program's path.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Finds PostgreSQL; as root it is installed with the package manager if there is none.
///
/// # Errors
/// If there is none: what was looked at, and what to install.
pub fn find_postgres() -> Result<Programs, ServiceError> {
    find_or_install(Product::Postgres, candidates, programs_in)
}

/// Looks in the candidates; once more after the package manager was asked, for it makes new directories.
pub(crate) fn find_or_install<T>(
    product: Product,
    candidates: impl Fn() -> Vec<PathBuf>,
    whole: impl Fn(&Path) -> Option<T>,
) -> Result<T, ServiceError> {
    /// Two that install at once would refuse each other.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let look = |looked: &[PathBuf]| looked.iter().find_map(|directory| whole(directory));
    if let Some(found) = look(&candidates()) {
        return Ok(found);
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = look(&candidates()) {
        return Ok(found);
    }
    let installing = install(product);
    let looked = candidates();
    look(&looked).ok_or(ServiceError::NotFound { product, looked, installing })
}

/// A link in the PATH may point to `postgres` alone: its kin are where it really lies.
fn programs_in(directory: &Path) -> Option<Programs> {
    let real = directory.join("postgres").canonicalize().ok()?;
    let homes = [real.parent()?, directory];
    let whole = homes.into_iter().find(|home| home.join("initdb").is_file() && home.join("postgres").is_file())?;
    Some(Programs { directory: whole.to_owned() })
}

fn candidates() -> Vec<PathBuf> {
    let mut found = search_path();
    // Debian, Fedora and its kin, Homebrew on both kinds of Mac.
    found.extend(versions("/usr/lib/postgresql", "").into_iter().map(|version| version.join("bin")));
    found.extend(versions("/usr", "pgsql-").into_iter().map(|version| version.join("bin")));
    for home in ["/opt/homebrew/opt", "/usr/local/opt", "/home/linuxbrew/.linuxbrew/opt"] {
        found.extend(versions(home, "postgresql").into_iter().map(|version| version.join("bin")));
    }
    found.push(PathBuf::from("/usr/local/pgsql/bin"));
    once_each(found)
}

/// The directories of the PATH.
pub(crate) fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// Each directory where it comes first.
pub(crate) fn once_each(mut found: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|directory| seen.insert(directory.clone()));
    found
}

/// Folders of `home` called `prefix` and a version, the newest first; `home` itself in their place if there are none,
/// so that the list of what was looked at names it.
pub(crate) fn versions(home: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((version(entry.file_name().to_str()?, prefix)?, entry.path()))).collect();
    found.sort_by(|one, other| other.cmp(one));
    if found.is_empty() {
        return vec![PathBuf::from(format!("{home}/{prefix}*"))];
    }
    found.into_iter().map(|(_, path)| path).collect()
}

/// `postgresql@16`, `pgsql-15`, `15`, `9.6` → the number that counts; a name without one counts as the newest.
fn version(name: &str, prefix: &str) -> Option<u32> {
    let rest = name.strip_prefix(prefix)?.trim_start_matches('@');
    if rest.is_empty() {
        return (!prefix.is_empty()).then_some(u32::MAX);
    }
    rest.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: versions are ordered as numbers, not as text. Method: names as each distribution writes them.
    #[test]
    fn the_newest_version_is_told_by_its_number() {
        assert_eq!(version("15", ""), Some(15));
        assert_eq!(version("9.6", ""), Some(9));
        assert_eq!(version("pgsql-17", "pgsql-"), Some(17));
        assert_eq!(version("postgresql@16", "postgresql"), Some(16));
        assert_eq!(version("postgresql", "postgresql"), Some(u32::MAX));
        assert_eq!(version("bin", ""), None);
        assert_eq!(version("lib", "pgsql-"), None);
    }

    /// Goal: the message names what was looked at. Method: the list holds the usual places though they do not exist.
    #[test]
    fn what_was_looked_at_is_named() {
        let looked = candidates();
        assert!(looked.iter().any(|path| path.starts_with("/usr/lib/postgresql")), "{looked:?}");
        assert!(looked.iter().any(|path| path.starts_with("/opt/homebrew/opt")), "{looked:?}");
        let text =
            ServiceError::NotFound { product: Product::Postgres, looked, installing: "no".to_owned() }.to_string();
        assert!(text.contains("apt-get install postgresql") && text.contains("/usr/lib/postgresql"), "{text}");
    }

    /// Goal: a link to the server leads to its kin. Method: a link in one folder, the programs in another.
    #[test]
    fn a_link_leads_to_the_whole_installation() {
        let root = std::env::temp_dir().join(format!("hapax-find-{}", std::process::id()));
        let (home, links) = (root.join("home"), root.join("links"));
        for folder in [&home, &links] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        std::os::unix::fs::symlink(home.join("postgres"), links.join("postgres")).expect("a link");
        assert_eq!(programs_in(&links), None);
        std::fs::write(home.join("postgres"), "").expect("a file");
        assert_eq!(programs_in(&links), None);
        std::fs::write(home.join("initdb"), "").expect("a file");
        let real = home.canonicalize().expect("it is there");
        assert_eq!(programs_in(&links), Some(Programs { directory: real }));
        std::fs::remove_dir_all(root).expect("it can be removed");
    }
}
