//! Words that must not stay behind. The words themselves are written in two parts here, so that no rule finds itself.

use super::code::{Keep, blank, line_of, production, production_files};
use super::edges::ALLOWED;
use super::{Finding, crate_of};
use crate::tree::Tree;

const UNFINISHED: [&str; 2] = [concat!("FIX", "ME"), concat!("TO", "DO")];
const UNFINISHED_CALLS: [&str; 3] = ["dbg!", "todo!", "unimplemented!"];
const PRINTS: [&str; 4] = ["println!", "print!", "eprintln!", "eprint!"];
const FOREIGN: [&str; 3] = [concat!("/wo", "rk/"), concat!("../sha", "red"), concat!("Co-Auth", "ored")];

/// Rule: nothing unfinished anywhere; libraries print nothing.
pub(super) fn unfinished(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust() {
        for word in UNFINISHED {
            findings.extend(places(path, text, text, word, "finish it, or write it down where it will be read"));
        }
        let code = blank(text, Keep::Code);
        for call in UNFINISHED_CALLS {
            findings.extend(places(path, text, &code, call, "finish it"));
        }
    }
    let in_library = |path: &str| ALLOWED.iter().any(|place| Some(place.name) == crate_of(path) && place.is_library());
    for (path, text) in production_files(tree).filter(|(path, _)| in_library(path)) {
        let code = production(text, Keep::Code);
        for print in PRINTS {
            findings.extend(places(path, text, &code, print, "a library prints nothing: return it, or trace it"));
        }
    }
    findings
}

/// Rule: `unwrap` only in tests.
pub(super) fn unwraps(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in production_files(tree) {
        let code = production(text, Keep::Code);
        findings.extend(places(path, text, &code, ".unwrap()", "handle it, or `expect` the invariant by name"));
    }
    findings
}

/// Rule: no path of one machine, no signature of a tool.
pub(super) fn foreign_words(tree: &Tree) -> Vec<Finding> {
    let texts = tree.texts().filter(|(path, _)| *path != "Cargo.lock");
    texts
        .flat_map(|(path, text)| {
            FOREIGN
                .into_iter()
                .flat_map(move |word| places(path, text, text, word, "the project speaks only of itself"))
        })
        .collect()
}

/// Where `word` stands as a word of its own in `code`, which has the lines of `text`.
fn places(path: &str, text: &str, code: &str, word: &str, cure: &str) -> Vec<Finding> {
    let word_before = |at: usize| {
        word.starts_with(char::is_alphanumeric) && code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
    };
    let word_after = |at: usize| {
        word.ends_with(char::is_alphanumeric) && code[at + word.len()..].starts_with(|c: char| c.is_alphanumeric())
    };
    code.match_indices(word)
        .filter(|(at, _)| !word_before(*at) && !word_after(*at))
        .map(|(at, _)| Finding::new(format!("{path}:{}", line_of(text, at)), format!("\"{word}\": {cure}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rule: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
        rule(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.place).collect()
    }

    /// Goal: unfinished work is found in comments and code, and only there. Method: each word, and near misses.
    #[test]
    fn unfinished_work_is_found() {
        let path = "crates/hapax/src/x.rs";
        for word in UNFINISHED {
            assert_eq!(found(unfinished, path, &format!("\n// {word}: later")), ["crates/hapax/src/x.rs:2"]);
            assert!(found(unfinished, path, &format!("// AU{word}X")).is_empty());
        }
        for call in UNFINISHED_CALLS {
            assert_eq!(found(unfinished, path, &format!("fn a() {{ {call}() }}")).len(), 1);
            assert!(found(unfinished, path, &format!("// {call}")).is_empty());
        }
    }

    /// Goal: libraries are silent, programs and tests may speak. Method: one print in each.
    #[test]
    fn a_library_that_prints_is_found() {
        let print = "fn a() { println!() }";
        assert_eq!(found(unfinished, "crates/hapax-engine/src/x.rs", print).len(), 1);
        assert!(found(unfinished, "crates/hapax-engine/src/x_tests.rs", print).is_empty());
        assert!(found(unfinished, "crates/hapax/src/x.rs", print).is_empty());
    }

    /// Goal: an `unwrap` in production is found, one in a test or a comment is not.
    #[test]
    fn an_unwrap_outside_tests_is_found() {
        let text = "/// `.unwrap()`\nfn a() { b().unwrap() }\n#[cfg(test)]\nmod tests { fn c() { b().unwrap() } }\n";
        assert_eq!(found(unwraps, "crates/a/src/x.rs", text), ["crates/a/src/x.rs:2"]);
        assert!(found(unwraps, "crates/a/tests/main.rs", text).is_empty());
    }

    /// Goal: foreign words are found in any text file. Method: each of them in a document.
    #[test]
    fn foreign_words_are_found() {
        for word in FOREIGN {
            assert_eq!(found(foreign_words, "docs/x.md", &format!("see {word} there")), ["docs/x.md:1"]);
        }
        assert!(found(foreign_words, "docs/x.md", "we work and share").is_empty());
    }
}
