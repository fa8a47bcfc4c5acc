//! The embedded edition, which `cargo demo` compiles: it stays small, and it compiles.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::child;

const CRATES_MAX: usize = 200;

/// What selects it among the workspace's crates and features.
pub(crate) const SELECTED: [&str; 5] = ["--package", "hapax", "--no-default-features", "--features", "embedded"];

/// Counts its crates, and compiles it without making a program: the tests build only the edition with everything.
pub(crate) fn check() -> Result<()> {
    count()?;
    child::run(child::cargo(["check", "--locked"]).args(SELECTED))
}

/// Counts its crates, those that only help to build it included.
fn count() -> Result<()> {
    let mut command = child::cargo(["tree", "--locked"]);
    command.args(SELECTED).args(["--edges", "normal,build", "--prefix", "none"]);
    println!("$ {}", child::line(&command));
    let count = crates(&child::read(&mut command)?);
    println!("{count} crates in the embedded edition, at most {CRATES_MAX} allowed");
    if count > CRATES_MAX {
        bail!("the embedded edition has {count} crates: leave some out, or put them behind another feature");
    }
    Ok(())
}

fn crates(tree: &str) -> usize {
    let names = tree.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?))
    });
    names.collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a crate counts once, two versions count twice. Method: a tree as cargo prints it.
    #[test]
    fn each_crate_counts_once() {
        let tree = "hapax v0.1.0 (/x)\nserde v1.0.1\nserde v1.0.1 (*)\nserde v2.0.0\nderive v1.0.0 (proc-macro)\n";
        assert_eq!(crates(tree), 4);
    }
}
