//! The package manager, asked quietly and only as root, when nothing is installed.

use std::process::{Command, Stdio};

use crate::account;
use crate::product::Product;

/// Tries to install a server; returns in one sentence what came of it.
pub(crate) fn install(product: Product) -> String {
    if !account::are_root() {
        return "Nothing was installed: that needs root.".to_owned();
    }
    let managers = product.packages();
    let Some((manager, arguments)) = managers.iter().find(|(name, _)| quiet(name, &["--version"]).is_ok()) else {
        return "Nothing was installed: neither apt-get, dnf nor apk is here.".to_owned();
    };
    let mut outcome = quiet(manager, arguments);
    if outcome.is_err() && *manager == "apt-get" {
        // The lists of packages may be missing, as in most container images, or name versions that are gone.
        outcome = quiet(manager, &["update", "-q"]).and_then(|()| quiet(manager, arguments));
    }
    match outcome {
        Ok(()) => format!("{manager} says that it has installed {}.", product.name()),
        Err(said) => format!("`{manager} {}` failed: {said}", arguments.join(" ")),
    }
}

fn quiet(program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().last().unwrap_or("it said nothing").to_owned())
}
