//! Files and functions stay small. What is over the limit today is listed, and may only shrink.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Finding;
use super::code::{Keep, functions as functions_of, production, production_files};
use crate::tree::Tree;

/// The list of what is over the limit.
pub(super) const RATCHET: &str = "xtask/tidy/ratchet.txt";
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

const HEAD: &str = "\
# What is over the limit: `file PATH LINES` (limit 600) or `function PATH NAME LINES` (limit 70).
# A number may only shrink; `cargo xtask tidy --write` lowers it. A new line here needs a reason in the commit message.
";

/// Rule: no file over the limit.
pub(super) fn files(tree: &Tree) -> Vec<Finding> {
    judge(tree, "file", FILE_LINES_MAX, &file_sizes(tree))
}

/// Rule: no function over the limit, tests aside.
pub(super) fn functions(tree: &Tree) -> Vec<Finding> {
    judge(tree, "function", FUNCTION_LINES_MAX, &function_sizes(tree))
}

fn file_sizes(tree: &Tree) -> BTreeMap<String, usize> {
    tree.rust().map(|(path, text)| (path.to_owned(), text.lines().count())).collect()
}

/// By "PATH NAME"; of two functions of one name in one file the longer counts.
fn function_sizes(tree: &Tree) -> BTreeMap<String, usize> {
    let mut sizes = BTreeMap::new();
    for (path, text) in production_files(tree) {
        for function in functions_of(&production(text, Keep::Code)) {
            let size = sizes.entry(format!("{path} {}", function.name)).or_insert(0);
            *size = function.lines.max(*size);
        }
    }
    sizes
}

fn judge(tree: &Tree, kind: &str, max: usize, sizes: &BTreeMap<String, usize>) -> Vec<Finding> {
    let listed = listed(tree, kind);
    let mut findings = Vec::new();
    for (place, lines) in sizes.iter().filter(|(_, lines)| **lines > max) {
        let text = match listed.get(place) {
            None => format!("{lines} lines, the limit for a {kind} is {max}: split it by meaning"),
            Some(allowed) if lines > allowed => format!("{lines} lines, it may only shrink from {allowed}"),
            Some(_) => continue,
        };
        findings.push(Finding::new(place, text));
    }
    for (place, allowed) in &listed {
        let lines = sizes.get(place).copied().unwrap_or(0);
        if lines < *allowed {
            let text = format!("shrank from {allowed} to {lines} lines: `cargo xtask tidy --write` notes it");
            findings.push(Finding::new(place, text));
        }
    }
    findings
}

fn listed(tree: &Tree, kind: &str) -> BTreeMap<String, usize> {
    let lines = tree.text(RATCHET).unwrap_or_default().lines();
    lines
        .filter_map(|line| {
            let (place, size) = line.strip_prefix(kind)?.trim().rsplit_once(' ')?;
            Some((place.to_owned(), size.parse().ok()?))
        })
        .collect()
}

/// The list lowered to what the tree has now. Never raises a number, never adds a line.
pub(super) fn tightened(tree: &Tree) -> String {
    let mut text = HEAD.to_owned();
    for (kind, max, sizes) in
        [("file", FILE_LINES_MAX, file_sizes(tree)), ("function", FUNCTION_LINES_MAX, function_sizes(tree))]
    {
        for (place, allowed) in listed(tree, kind) {
            let lines = sizes.get(&place).copied().unwrap_or(0).min(allowed);
            if lines > max {
                writeln!(text, "{kind} {place} {lines}").expect("a string takes text");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    a();\n".repeat(lines - 2))
    }

    fn texts(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.text.as_str()).collect()
    }

    /// Goal: the limit itself is allowed, one more is not. Method: both, for files and for functions.
    #[test]
    fn what_is_over_the_limit_is_found() {
        for (lines, found) in [(600, 0), (601, 1)] {
            assert_eq!(files(&Tree::of(&[("crates/a/src/b.rs", &"x\n".repeat(lines))])).len(), found);
        }
        for (lines, found) in [(70, 0), (71, 1)] {
            assert_eq!(functions(&Tree::of(&[("crates/a/src/b.rs", &function(lines))])).len(), found);
            assert_eq!(functions(&Tree::of(&[("crates/a/src/b_tests.rs", &function(lines))])).len(), 0);
        }
    }

    /// Goal: what is listed may stay and may shrink, never grow. Method: one size on each side of the list.
    #[test]
    fn a_listed_size_may_only_shrink() {
        let tree = |lines: usize| {
            let code = function(lines);
            Tree::of(&[("crates/a/src/b.rs", &code), (RATCHET, "# why\nfunction crates/a/src/b.rs long 90\n")])
        };
        assert_eq!(texts(&functions(&tree(90))), Vec::<&str>::new());
        assert!(functions(&tree(91))[0].text.contains("may only shrink from 90"));
        assert!(functions(&tree(80))[0].text.contains("shrank from 90 to 80"));
        assert!(tightened(&tree(80)).ends_with("function crates/a/src/b.rs long 80\n"));
        assert!(tightened(&tree(91)).ends_with("function crates/a/src/b.rs long 90\n"));
        assert_eq!(tightened(&tree(70)), HEAD, "within the limit: no longer listed");
    }
}
