//! Where a file of ours is to be: folders that survive power loss, and a file that only its owner may read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Makes a folder and those above it that are missing. Each new name is on the disk before this returns.
///
/// # Errors
/// If one cannot be made or synced.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    for missing in missing(folder) {
        match DirBuilder::new().create(&missing) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && missing.is_dir() => {}
            made => made?,
        }
        sync_folder(parent(&missing))?;
    }
    Ok(())
}

/// Makes an empty file that only its owner may read and write, unless there is one. Its name is on the disk before this returns.
///
/// What SQLite makes beside it has the same mode. A file that is there keeps the mode that it has.
///
/// # Errors
/// If it cannot be made or synced.
pub fn make_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => sync_folder(parent(path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// The folders that are not there, the outermost first.
fn missing(folder: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = folder
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    missing
}

/// The folder that something is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Goal: every new folder is known, from the outside in, so that each one's parent is synced after it was made.
    /// Method: three levels that are not there, then one that is, then a name without a folder.
    #[test]
    fn every_missing_folder_is_made_from_the_outside_in() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("a/b/c");
        let expected = ["a", "a/b", "a/b/c"].map(|name| home.path().join(name));
        assert_eq!(missing(&deep), expected);
        make_folder(&deep).unwrap();
        assert!(deep.is_dir());
        assert_eq!(missing(&deep), Vec::<PathBuf>::new());
        make_folder(&deep).unwrap();
        assert_eq!((parent(Path::new("file")), parent(Path::new("a/file"))), (Path::new("."), Path::new("a")));
        let file = home.path().join("file");
        std::fs::write(&file, b"").unwrap();
        assert!(make_folder(&file.join("inside")).is_err(), "a file is no folder");
    }

    /// Goal: a new file is its owner's alone, and one that is there is left as it is. Method: both, with their modes.
    #[test]
    fn a_new_file_is_its_owners_alone() {
        let home = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let new = home.path().join("new");
        make_private(&new).unwrap();
        assert_eq!(mode(&new), 0o600);
        let old = home.path().join("old");
        std::fs::write(&old, b"kept").unwrap();
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o640)).unwrap();
        make_private(&old).unwrap();
        assert_eq!((mode(&old), std::fs::read(&old).unwrap()), (0o640, b"kept".to_vec()));
    }
}
