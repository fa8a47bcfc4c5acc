//! Where a file of ours is to be: folders that survive power loss, and a file that only its owner may read.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, FsWord};

/// File systems in which nobody can make a file, whatever the rights say: /proc, /sys and control groups.
const KERNELS_OWN: [FsWord; 4] = [0x9fa0, 0x6265_6572, 0x6367_7270, 0x0027_e0eb];

/// Makes a folder and those above it that are missing. Each new name is on the disk before this returns.
///
/// # Errors
/// If one cannot be made or synced.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    make_and_sync(folder, sync_folder)
}

fn make_and_sync(folder: &Path, mut sync: impl FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for missing in missing(folder) {
        match DirBuilder::new().create(&missing) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && missing.is_dir() => {}
            made => made?,
        }
        sync(parent(&missing))?;
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

/// Why a file, with the folders above it that are missing, could not be made at `path`, as far as a look can tell; makes
/// nothing. The folder that must be written, and what is wrong with it.
#[must_use]
pub fn why_not_made(path: &Path) -> Option<(PathBuf, String)> {
    let folder =
        path.ancestors().skip(1).find(|folder| folder.as_os_str().is_empty() || folder.symlink_metadata().is_ok())?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let refused = |why: String| Some((folder.to_owned(), why));
    if !folder.is_dir() {
        return refused("it is no folder".to_owned());
    }
    if let Err(error) = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        return refused(io::Error::from(error).to_string());
    }
    match rustix::fs::statfs(folder) {
        Ok(found) if KERNELS_OWN.contains(&found.f_type) => {
            refused("the kernel's own file system takes no files".to_owned())
        }
        Ok(_) | Err(_) => None,
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

    /// Goal: the name of each new folder is on the disk before the next one is made in it, and a folder whose name is not is no
    /// success. Method: four levels of which one is there; what is there when each folder is synced; a sync that fails.
    #[test]
    fn the_parent_of_each_new_folder_is_synced() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        std::fs::create_dir(at("a")).unwrap();
        let mut synced = Vec::new();
        let note = |folder: &Path| {
            synced.push((folder.to_owned(), missing(&at("a/b/c/d"))));
            sync_folder(folder)
        };
        make_and_sync(&at("a/b/c/d"), note).unwrap();
        let expected =
            [(at("a"), vec![at("a/b/c"), at("a/b/c/d")]), (at("a/b"), vec![at("a/b/c/d")]), (at("a/b/c"), Vec::new())];
        assert_eq!(synced, expected);
        let mut tried = Vec::new();
        let fail = |folder: &Path| {
            tried.push(folder.to_owned());
            Err(io::Error::other("no room"))
        };
        assert_eq!(make_and_sync(&at("x/y"), fail).unwrap_err().to_string(), "no room");
        assert_eq!((tried, at("x/y").is_dir()), (vec![home.path().to_owned()], false));
    }

    /// Goal: what cannot be made is known without trying. Method: below a file, below the kernel's own files, and where it can.
    #[test]
    fn what_cannot_be_made_is_known_by_a_look() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(why_not_made(&home.path().join("a/b/c.db")), None);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing is made");
        let file = home.path().join("file");
        std::fs::write(&file, b"").unwrap();
        assert_eq!(why_not_made(&file.join("a/c.db")), Some((file, "it is no folder".to_owned())));
        let (folder, why) = why_not_made(Path::new("/proc/nowhere/c.db")).unwrap();
        assert_eq!(folder, Path::new("/proc"), "{why}");
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
