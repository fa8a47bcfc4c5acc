//! Links from one document to another lead somewhere, headings included.

use super::Finding;
use crate::tree::Tree;

/// Rule: every relative link in a Markdown file resolves.
pub(super) fn links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Markdown inside a crate's source is a part of a document that stands elsewhere.
    let is_document = |path: &str| path.ends_with(".md") && !path.contains("/src/");
    for (path, text) in tree.texts().filter(|(path, _)| is_document(path)) {
        for (line, target) in targets(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            if let Err(problem) = resolve(tree, path, target) {
                findings.push(Finding::new(format!("{path}:{line}"), problem));
            }
        }
    }
    findings
}

fn resolve(tree: &Tree, from: &str, target: &str) -> Result<(), String> {
    let (file, heading) = target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    let path = if file.is_empty() { from.to_owned() } else { joined(from, file) };
    if !tree.holds(&path) {
        return Err(format!("the link to {target} leads nowhere"));
    }
    match (heading, tree.text(&path)) {
        (Some(heading), Some(text)) if path.ends_with(".md") && !headings(text).any(|h| h == heading) => {
            Err(format!("{path} has no heading #{heading}"))
        }
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

/// `docs/a/b.md` and `../c.md` → `docs/c.md`.
fn joined(from: &str, file: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Lines of Markdown outside fenced code, with their numbers.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((at + 1, line))
    })
}

/// Targets of `[text](target)`, with their lines; not those in `code`.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, words) in prose(text) {
        for (at, _) in words.match_indices("](") {
            let in_code = words[..at].matches('`').count() % 2 == 1;
            if let (false, Some(length)) = (in_code, words[at + 2..].find(')')) {
                found.push((line, words[at + 2..at + 2 + length].trim()));
            }
        }
    }
    found
}

/// Headings as a link names them: lowercase, spaces as dashes, no punctuation.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a dead link is found, a living one is not. Method: files, folders, headings, code and the web.
    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let tree = |text: &str| {
            let files =
                [("docs/a.md", text), ("README.md", "# What it is, in *short*\n"), ("docs/adr/0001-x.md", "# X\n")];
            links(&Tree::of(&files)).len()
        };
        for good in [
            "[r](../README.md)",
            "[r](../README.md#what-it-is-in-short)",
            "[d](adr)",
            "[x](adr/0001-x.md), [w](https://example.org/a)",
            "```\n[c](nowhere.md)\n```",
            "`[c](nowhere.md)`",
            "# Here\n[h](#here)",
        ] {
            assert_eq!(tree(good), 0, "{good}");
        }
        for bad in ["[r](README.md)", "[r](../README.md#nothing)", "[h](#here)", "a [x](b.md) `c`"] {
            assert_eq!(tree(bad), 1, "{bad}");
        }
    }
}
