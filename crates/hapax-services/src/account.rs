//! Who runs the server: we ourselves, or as root an account without rights, since servers refuse root.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::error::{Doing, ServiceError};
use crate::product::Product;

/// An account to change to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    user: u32,
    group: u32,
}

impl Account {
    /// The account for a server: none unless we are root.
    pub(crate) fn of(product: Product) -> Result<Option<Self>, ServiceError> {
        if !are_root() {
            return Ok(None);
        }
        let found = product.accounts().iter().find_map(|name| {
            let (user, group) = (id("-u", Some(name))?, id("-g", Some(name))?);
            (user != 0).then_some(Self { user, group })
        });
        found.map(Some).ok_or(ServiceError::NoAccount { product })
    }

    /// Makes `command` run as this account, without any further group.
    pub(crate) fn run(&self, command: &mut Command) {
        command.uid(self.user).gid(self.group);
    }

    /// Gives a file or folder to this account.
    pub(crate) fn own(&self, path: &Path) -> Result<(), ServiceError> {
        let given = std::os::unix::fs::chown(path, Some(self.user), Some(self.group));
        given.doing(|| format!("give {} to the server's account", path.display()))
    }
}

/// Whether this process is root's.
pub(crate) fn are_root() -> bool {
    id("-u", None) == Some(0)
}

fn id(option: &str, name: Option<&str>) -> Option<u32> {
    let output = Command::new("id").arg(option).args(name).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
