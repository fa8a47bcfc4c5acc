//! Just enough Rust to tell code from text and production from tests. No parser: a lexer that blanks.

use std::collections::BTreeSet;

use crate::tree::Tree;

const TEST_MARK: &str = "#[cfg(test)]";

/// What [`blank`] leaves in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Only code: comments and the insides of strings become spaces.
    Code,
    /// Code and strings: only comments become spaces.
    CodeAndStrings,
}

/// The source with everything else turned into spaces; lines and columns (in bytes) stay where they are.
pub(super) fn blank(source: &str, keep: Keep) -> String {
    let bytes = source.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    while out.len() < bytes.len() {
        let at = out.len();
        let (end, is_text) = next_token(bytes, at);
        let visible = match is_text {
            Token::Code => true,
            Token::Text => keep == Keep::CodeAndStrings,
            Token::Comment => false,
        };
        let shown = |byte: &u8| if visible || *byte == b'\n' { *byte } else { b' ' };
        out.extend(bytes[at..end.max(at + 1)].iter().map(shown));
    }
    String::from_utf8(out).expect("whole tokens are kept or turned into spaces")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Code,
    Text,
    Comment,
}

fn next_token(bytes: &[u8], at: usize) -> (usize, Token) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return (at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()), Token::Comment);
    }
    if rest.starts_with(b"/*") {
        return (at + block_comment(rest), Token::Comment);
    }
    if rest[0] == b'"' {
        return (at + string(rest), Token::Text);
    }
    if rest[0] == b'\'' {
        let length = character(rest);
        return (at + length.max(1), if length > 0 { Token::Text } else { Token::Code });
    }
    if is_word(rest[0]) {
        let word = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
        if matches!(&rest[..word], b"r" | b"br" | b"cr")
            && let Some(length) = raw_string(&rest[word..])
        {
            return (at + word + length, Token::Text);
        }
        return (at + word, Token::Code);
    }
    (at + 1, Token::Code)
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a character literal, 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|b| *b == b'\'');
        return close.map_or(0, |n| n + 4);
    }
    // One character of up to four bytes, then the closing quote.
    let width = match rest.get(1) {
        None | Some(b'\'') => return 0,
        Some(byte) if *byte < 0x80 => 1,
        Some(byte) if *byte < 0xe0 => 2,
        Some(byte) if *byte < 0xf0 => 3,
        Some(_) => 4,
    };
    if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
}

/// The length of `#"…"#` with any number of `#`, if that is what follows.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest.iter().take_while(|b| **b == b'#').count();
    if rest.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let found = rest[hashes + 1..].windows(close.len()).position(|window| window == close);
    Some(found.map_or(rest.len(), |n| hashes + 1 + n + close.len()))
}

/// The blanked source (see [`blank`]) with everything under `#[cfg(test)]` blanked as well.
pub(super) fn production(source: &str, keep: Keep) -> String {
    let code = blank(source, Keep::Code);
    let mut out = blank(source, keep);
    let mut from = 0;
    while let Some(found) = code[from..].find(TEST_MARK) {
        let start = from + found;
        let end = item_end(&code, start + TEST_MARK.len());
        let empty: String = out[start..end].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect();
        out.replace_range(start..end, &empty);
        from = end;
    }
    out
}

/// Where the item that begins at `from` ends: its closing brace, or its semicolon. `code` has no strings in it.
fn item_end(code: &str, from: usize) -> usize {
    let (mut depth, mut brackets) = (0_usize, 0_usize);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && brackets == 0 {
                    return at + 1;
                }
            }
            b';' if depth == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// A function: its name, its first line (from 1) and how many lines it has, signature included.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) lines: usize,
}

/// Every function with a body in blanked source.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let starts_a_word = at == 0 || !is_word(code.as_bytes()[at - 1]);
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !starts_a_word || name.is_empty() {
            continue;
        }
        let end = item_end(code, at);
        if code[..end].ends_with('}') {
            let line = code[..at].matches('\n').count() + 1;
            found.push(Function { name, line, lines: code[at..end].matches('\n').count() + 1 });
        }
    }
    found
}

/// Rust files that are production code: not under `tests` or `benches`, and not declared under `#[cfg(test)]`.
pub(super) fn production_files(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let for_tests: BTreeSet<String> = tree.rust().flat_map(|(path, text)| test_modules(path, text)).collect();
    let is_for_tests = move |path: &str| {
        let module = path.trim_end_matches(".rs");
        // The module itself, or one above it.
        let mut above = module.match_indices('/').map(|(at, _)| &module[..at]);
        for_tests.contains(module) || above.any(|folder| for_tests.contains(folder))
    };
    let in_folder = |path: &str, name: &str| path.split('/').any(|part| part == name);
    tree.rust().filter(move |(path, _)| {
        !(path.ends_with("_tests.rs") || in_folder(path, "tests") || in_folder(path, "benches") || is_for_tests(path))
    })
}

/// The modules that `path` declares with `#[cfg(test)] mod x;`: a file without its ending, or a folder.
fn test_modules(path: &str, text: &str) -> Vec<String> {
    let (parent, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let folder = if matches!(stem, "mod" | "lib" | "main") { parent.to_owned() } else { format!("{parent}/{stem}") };
    let code = blank(text, Keep::Code);
    let mut found = Vec::new();
    for (at, _) in code.match_indices(TEST_MARK) {
        let item = &code[at + TEST_MARK.len()..item_end(&code, at + TEST_MARK.len())];
        let declared = item.trim_end().strip_suffix(';').and_then(|item| item.rsplit_once("mod "));
        if let Some((_, name)) = declared {
            found.push(format!("{folder}/{name}"));
        }
    }
    found
}

/// The line (from 1) of a byte.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only code is left, where it was. Method: every kind of text that could hide a brace.
    #[test]
    fn text_and_comments_are_blanked() {
        let source = r##"let a = "{ \" }"; // {
let b = r#"{ " }"#; /* { /* } */ */ let c = '{'; let d: &'static str = b"{"; let e = '\u{7b}'; let f = '"';
let g = 'é';"##;
        let code = blank(source, Keep::Code);
        assert_eq!(code.len(), source.len());
        assert!(!code.contains(['{', '}', '"']), "{code}");
        for word in ["let a", "let b", "let c", "&'static str", "let f", "let g"] {
            assert!(code.contains(word), "{word} is missing in {code}");
        }
        assert!(blank(source, Keep::CodeAndStrings).contains(r#""{ \" }""#));
        assert!(!blank(source, Keep::CodeAndStrings).contains("/*"));
    }

    /// Goal: tests are told from production. Method: a module, a function and a `use` under the mark, and code after.
    #[test]
    fn items_for_tests_are_left_out() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n#[cfg(test)] use x;\n#[cfg(test)]\n#[path = \"\"]\nmod t;\nfn c() {}\n";
        let names: Vec<String> = functions(&production(code, Keep::Code)).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["a", "c"]);
    }

    /// Goal: a whole file of test code is known by its declaration. Method: both places of a module, and one of production.
    #[test]
    fn modules_declared_for_tests_are_test_code() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "#[cfg(test)]\nmod sample;\nmod real;\n"),
            ("crates/a/src/sample.rs", ""),
            ("crates/a/src/real.rs", "#[cfg(test)]\n#[allow(x)]\nmod made;\n#[cfg(test)]\nmod tests { mod b; }\n"),
            ("crates/a/src/real/made/mod.rs", "mod deep;\n"),
            ("crates/a/src/real/made/deep.rs", ""),
            ("crates/a/src/real_tests.rs", ""),
            ("crates/a/benches/x.rs", ""),
        ]);
        let files: Vec<&str> = production_files(&tree).map(|(path, _)| path).collect();
        assert_eq!(files, ["crates/a/src/lib.rs", "crates/a/src/real.rs"]);
    }

    /// Goal: a function's size is what a reader scrolls. Method: a signature over lines, a nested one, one without body.
    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let code =
            "trait T {\n    fn none(a: [u8; 3]);\n}\nfn long(\n  a: u8,\n) -> u8 {\n    fn inner() {}\n    a\n}\n";
        let expected = [
            Function { name: "long".to_owned(), line: 4, lines: 6 },
            Function { name: "inner".to_owned(), line: 7, lines: 1 },
        ];
        assert_eq!(functions(code), expected);
    }
}
