//! Every error code has one page that tells cause and cure, and every page a code.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::code::{Keep, blank, line_of, production, production_files};
use crate::tree::Tree;

/// The index of the pages.
pub(super) const INDEX: &str = "docs/errors/README.md";

/// What every page says.
const PARTS: [&str; 3] = ["What happened", "Why", "What to do"];

const HEAD: &str = "\
# Error codes

Every message that an operator may meet carries a code. Its page says what happened, why, and what to do.
`HX1` configuration and audit · `HX2` events · `HX3` sources · `HX4` sinks and state · `HX5` command line.
Codes are never reused. This index is written by `cargo xtask tidy --write`.

";

/// Rule: a page for every code in the crates, none without.
pub(super) fn pages(tree: &Tree) -> Vec<Finding> {
    let used = codes(tree);
    let pages = page_titles(tree);
    let mut findings = Vec::new();
    for (code, place) in used.iter().filter(|(code, _)| !pages.contains_key(*code)) {
        findings.push(Finding::new(place, format!("{code} has no page: write docs/errors/{code}.md")));
    }
    for (code, title) in &pages {
        let place = format!("docs/errors/{code}.md");
        if !used.contains_key(code) {
            findings.push(Finding::new(&place, format!("no code in the crates says {code}")));
        }
        if title.is_empty() {
            findings.push(Finding::new(&place, format!("begins with `# {code}: what happened, in a few words`")));
        }
        for part in PARTS {
            if !tree.text(&place).is_some_and(|text| text.contains(&format!("\n## {part}\n"))) {
                findings.push(Finding::new(&place, format!("has no part `## {part}`")));
            }
        }
    }
    findings
}

/// Rule: the index lists the pages as they are.
pub(super) fn index(tree: &Tree) -> Vec<Finding> {
    if tree.text(INDEX) == Some(indexed(tree).as_str()) {
        return Vec::new();
    }
    vec![Finding::new(INDEX, "does not list the pages as they are: `cargo xtask tidy --write` renews it")]
}

/// The index as it should be.
pub(super) fn indexed(tree: &Tree) -> String {
    let rows = page_titles(tree).into_iter().map(|(code, title)| format!("| [{code}]({code}.md) | {title} |\n"));
    let rows: String = rows.collect();
    if rows.is_empty() { HEAD.to_owned() } else { format!("{HEAD}| code | what happened |\n|---|---|\n{rows}") }
}

/// Code → title (empty if the page does not begin as it should).
fn page_titles(tree: &Tree) -> BTreeMap<String, String> {
    let pages = tree.texts().filter_map(|(path, text)| {
        let code = path.strip_prefix("docs/errors/")?.strip_suffix(".md")?;
        code.starts_with("HX").then_some((code, text))
    });
    pages
        .map(|(code, text)| {
            let title = text.lines().next().and_then(|line| line.strip_prefix(&format!("# {code}: ")));
            (code.to_owned(), title.unwrap_or_default().trim().to_owned())
        })
        .collect()
}

/// Rule: every code in the crates is named in a test, so that no error is first seen by an operator.
pub(super) fn tested(tree: &Tree) -> Vec<Finding> {
    let named = codes_in_tests(tree);
    let untested = codes(tree).into_iter().filter(|(code, _)| !named.contains(code));
    untested
        .map(|(code, place)| Finding::new(place, format!("no test names {code}: write one that reaches it")))
        .collect()
}

/// Codes in the code and strings of tests: whole files of them, and what is under `#[cfg(test)]` beside production code.
fn codes_in_tests(tree: &Tree) -> BTreeSet<String> {
    let mixed: BTreeMap<&str, &str> = production_files(tree).collect();
    let mut found = BTreeSet::new();
    for (path, text) in tree.rust().filter(|(path, _)| path.starts_with("crates/")) {
        let everything = blank(text, Keep::CodeAndStrings);
        let shown = mixed.get(path).map(|text| production(text, Keep::CodeAndStrings)).unwrap_or_default();
        let in_production = |at: usize| shown.get(at..at + 2) == Some("HX");
        let of_tests = codes_in(&everything).filter(|(at, _)| !in_production(*at));
        found.extend(of_tests.map(|(_, code)| code.to_owned()));
    }
    found
}

/// Code → the first place where production code says it.
fn codes(tree: &Tree) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let in_source = |path: &str| path.starts_with("crates/") && path.contains("/src/");
    for (path, text) in production_files(tree).filter(|(path, _)| in_source(path)) {
        for (at, code) in codes_in(&production(text, Keep::CodeAndStrings)) {
            found.entry(code.to_owned()).or_insert_with(|| format!("{path}:{}", line_of(text, at)));
        }
    }
    found
}

fn codes_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("HX").filter_map(move |(at, _)| {
        let code = text.get(at..at + 6)?;
        let digits = code[2..].bytes().all(|b| b.is_ascii_digit());
        let ends = !text[at + 6..].starts_with(|c: char| c.is_alphanumeric());
        let begins = !text[..at].ends_with(|c: char| c.is_alphanumeric());
        (digits && ends && begins).then_some((at, code))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "// HX9001 is only talked about\nfn code() -> &'static str {\n    \"HX4001\"\n}\n\
        #[cfg(test)]\nmod tests {\n    const A: &str = \"HX9002\";\n}\n";

    /// Goal: pages and codes are the same set. Method: a code without page, a page without code, a bad title.
    #[test]
    fn pages_and_codes_are_the_same_set() {
        let tree = |page: &str, title: &str| Tree::of(&[("crates/a/src/b.rs", CODE), (page, title)]);
        let parts = "\n## What happened\n\n## Why\n\n## What to do\n";
        assert!(pages(&tree("docs/errors/HX4001.md", &format!("# HX4001: it broke\n{parts}"))).is_empty());
        assert_eq!(pages(&tree("docs/errors/HX4002.md", &format!("# HX4002: it broke\n{parts}"))).len(), 2);
        assert_eq!(pages(&tree("docs/errors/HX4001.md", &format!("# It broke\n{parts}"))).len(), 1);
        assert_eq!(pages(&tree("docs/errors/HX4001.md", "# HX4001: it broke\n")).len(), 3);
    }

    /// Goal: a code counts as tested where a test says it, and nowhere else. Method: a comment, a string of production, a
    /// module of tests, and files of tests.
    #[test]
    fn a_code_is_named_in_a_test() {
        let product = ("crates/a/src/b.rs", "fn code() -> [&str; 2] {\n    [\"HX4001\", \"HX4002\"]\n}\n");
        let found = |path: &str, text: &str| {
            let findings = tested(&Tree::of(&[product, (path, text)]));
            findings.into_iter().map(|finding| finding.text[14..20].to_owned()).collect::<Vec<_>>()
        };
        let both = "const A: [&str; 2] = [\"HX4001\", \"HX4002\"];\n";
        assert_eq!(found("crates/a/src/c.rs", both), ["HX4001", "HX4002"]);
        assert_eq!(found("crates/a/tests/c.rs", "// HX4001\n/// HX4002\nfn a() {}\n"), ["HX4001", "HX4002"]);
        assert_eq!(found("crates/a/src/c.rs", &format!("#[cfg(test)]\nmod tests {{\n    {both}}}\n")), [] as [&str; 0]);
        assert_eq!(found("crates/a/tests/c.rs", "const A: &str = \"HX4001: it broke\";\n"), ["HX4002"]);
        assert_eq!(found("crates/a/src/b_tests.rs", "const A: &str = \"HX4002\";\n"), ["HX4001"]);
    }

    /// Goal: the index cannot rot. Method: as it should be, and with a page more.
    #[test]
    fn the_index_lists_every_page() {
        let page = ("docs/errors/HX4001.md", "# HX4001: it broke\n");
        let text = indexed(&Tree::of(&[page]));
        assert!(text.ends_with("| [HX4001](HX4001.md) | it broke |\n"));
        assert!(index(&Tree::of(&[page, (INDEX, &text)])).is_empty());
        let more = ("docs/errors/HX4002.md", "# HX4002: it broke again\n");
        assert_eq!(index(&Tree::of(&[page, more, (INDEX, &text)])).len(), 1);
    }
}
