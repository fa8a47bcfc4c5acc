//! Papers that every change touches.

use super::Finding;
use crate::tree::Tree;

const CHANGELOG: &str = "CHANGELOG.md";

/// Rule: the changelog has a section for what is not released yet, with an entry.
pub(super) fn changelog(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(CHANGELOG).unwrap_or_default();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("## [Unreleased]")).skip(1);
    let entry = lines.by_ref().take_while(|line| !line.starts_with("## ")).any(|line| line.starts_with("- "));
    if entry { Vec::new() } else { vec![Finding::new(CHANGELOG, "needs an entry under `## [Unreleased]`")] }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an entry of an old release does not count. Method: with, without, and only in an old one.
    #[test]
    fn the_changelog_needs_an_unreleased_entry() {
        let found = |text: &str| changelog(&Tree::of(&[(CHANGELOG, text)])).len();
        assert_eq!(found("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- a thing\n"), 0);
        assert_eq!(found("# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n\n- an old thing\n"), 1);
        assert_eq!(found("# Changelog\n"), 1);
    }
}
