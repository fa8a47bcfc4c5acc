//! A directory of a server's own, that its account can reach, removed with it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::account::Account;
use crate::error::{Doing, ServiceError};
use crate::product::Product;

/// A Unix socket's path has at most 107 bytes, its name here about 20.
const PATH_MAX: usize = 80;

/// The directory; dropping it removes it.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn create(product: Product, account: Option<&Account>) -> Result<Self, ServiceError> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let path = home().join(format!("hapax-{}-{}-{number}", product.word(), std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => {
                    let scratch = Self { path };
                    let mode = std::fs::Permissions::from_mode(0o755);
                    std::fs::set_permissions(&scratch.path, mode).doing(|| "open the scratch directory".to_owned())?;
                    if let Some(account) = account {
                        account.own(&scratch.path)?;
                    }
                    return Ok(scratch);
                }
                // Of a process that had our id before and was killed.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).doing(|| format!("create {}", path.display())),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody could do anything about it; the system empties its temporary directory.
        drop(std::fs::remove_dir_all(&self.path));
    }
}

/// The first temporary directory that everybody may enter and whose name leaves room for a socket.
fn home() -> PathBuf {
    let fits = |path: &PathBuf| {
        path.as_os_str().len() <= PATH_MAX
            && path.ancestors().all(|part| part.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 != 0))
    };
    let homes = [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    homes.iter().find(|path| fits(path)).unwrap_or(&homes[0]).clone()
}
