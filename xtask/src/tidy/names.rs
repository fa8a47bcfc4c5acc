//! Names that say nothing are not used for files, folders or modules.

use super::code::{Keep, blank, line_of};
use super::{Finding, crate_of};
use crate::tree::Tree;

const BANNED: [&str; 12] =
    ["util", "utils", "common", "helpers", "misc", "core", "base", "both", "manager", "types", "impl", "v2"];

/// Rule: no banned name.
pub(super) fn banned(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| crate_of(path).is_some()) {
        for part in path.trim_end_matches(".rs").split('/').filter(|part| BANNED.contains(part)) {
            findings.push(Finding::new(path, format!("\"{part}\" says nothing: name it for what it holds")));
        }
        let code = blank(text, Keep::Code);
        for (at, _) in code.match_indices("mod ") {
            let name: String = code[at + 4..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let inline = code[at + 4 + name.len()..].trim_start().starts_with('{');
            if inline && BANNED.contains(&name.as_str()) {
                let place = format!("{path}:{}", line_of(text, at));
                findings
                    .push(Finding::new(place, format!("module \"{name}\" says nothing: name it for what it holds")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: files, folders and modules are looked at. Method: one of each, and names that only contain one.
    #[test]
    fn a_banned_name_is_found_wherever_it_stands() {
        for (path, text) in [
            ("crates/a/src/utils.rs", ""),
            ("crates/a/src/common/x.rs", ""),
            ("crates/a/src/x.rs", "pub mod core {\n}"),
        ] {
            assert_eq!(banned(&Tree::of(&[(path, text)])).len(), 1, "{path}");
        }
        let fine = [("crates/a/src/database.rs", "mod baseline { }"), ("crates/a/src/x.rs", "// mod core {")];
        assert!(banned(&Tree::of(&fine)).is_empty());
    }
}
