//! Rules of the tree that no compiler checks. `cargo test -p xtask` and `cargo xtask check` run them.
//!
//! Reads: tracked text files. Writes: nothing, unless `--write` asks for it.
//! Invariant: a rule is a pure function of the tree. A rule that cannot fail is tested to fail.

mod code;
mod edges;
mod errors;
mod leftovers;
mod links;
mod manifest;
mod names;
mod papers;
mod promises;
mod size;

use std::fmt;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::tree::Tree;
use crate::{Usage, child};

/// One breach of a rule: where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) place: String,
    pub(crate) text: String,
}

impl Finding {
    fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// What a rule is called, and the rule.
type Rule = (&'static str, fn(&Tree) -> Vec<Finding>);

/// Every rule, in the order of CONTRIBUTING.md.
pub(crate) const RULES: [Rule; 15] = [
    ("edges between crates", edges::edges),
    ("workspace lints and documented libraries", manifest::lints),
    ("fault points are never a default", manifest::fault_is_never_default),
    ("file size", size::files),
    ("function size", size::functions),
    ("banned names", names::banned),
    ("a page for every error code", errors::pages),
    ("the index of error pages", errors::index),
    ("a test for every error code", errors::tested),
    ("nothing unfinished, no prints in libraries", leftovers::unfinished),
    ("no unwrap outside tests", leftovers::unwraps),
    ("the project speaks only of itself", leftovers::foreign_words),
    ("the changelog has an unreleased entry", papers::changelog),
    ("links between documents", links::links),
    ("numbers that documents promise", promises::shown),
];

/// `cargo xtask tidy [--write]`.
pub(crate) fn command(words: &[&str]) -> Result<ExitCode> {
    match words {
        [] => {}
        ["--write"] => write()?,
        [other, ..] => bail!(Usage(format!("tidy takes --write or nothing, not \"{other}\""))),
    }
    let failed = inspect()?;
    println!("{} rules, {failed} broken", RULES.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints every breach; returns how many rules are broken.
pub(crate) fn inspect() -> Result<usize> {
    let tree = Tree::load()?;
    let mut broken = 0;
    for (name, rule) in RULES {
        let findings = rule(&tree);
        broken += usize::from(!findings.is_empty());
        for finding in findings {
            println!("{name}: {finding}");
        }
    }
    Ok(broken)
}

fn write() -> Result<()> {
    let tree = Tree::load()?;
    for (path, text) in [(size::RATCHET, size::tightened(&tree)), (errors::INDEX, errors::indexed(&tree))] {
        if tree.text(path) != Some(text.as_str()) {
            std::fs::write(child::root().join(path), text).with_context(|| format!("could not write {path}"))?;
            println!("wrote {path}");
        }
    }
    Ok(())
}

/// `crates/hapax-model/src/x.rs` → `hapax-model`; `xtask/src/x.rs` → `xtask`.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    match parts.next() {
        Some("crates") => parts.next(),
        Some("xtask") => Some("xtask"),
        Some(_) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: this tree keeps its own rules. Method: all of them, on the files as they are.
    #[test]
    fn the_tree_is_tidy() {
        let tree = Tree::load().expect("the tree can be read");
        let findings: Vec<String> = RULES
            .iter()
            .flat_map(|(name, rule)| rule(&tree).into_iter().map(move |finding| format!("{name}: {finding}")))
            .collect();
        assert!(findings.is_empty(), "\n{}\n`cargo xtask tidy` shows the same.", findings.join("\n"));
    }

    /// Goal: a rule that finds nothing because it looks at nothing is noticed. Method: the tree has what they look at.
    #[test]
    fn the_rules_look_at_a_real_tree() {
        let tree = Tree::load().expect("the tree can be read");
        assert!(tree.rust().count() > 20);
        assert!(tree.text("Cargo.toml").is_some());
        assert_eq!(crate_of("crates/hapax-model/src/lib.rs"), Some("hapax-model"));
        assert_eq!(crate_of("docs/README.md"), None);
    }
}
