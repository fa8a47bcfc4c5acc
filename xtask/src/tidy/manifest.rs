//! Just enough TOML for our own manifests: sections, keys, lists.

use super::Finding;
use super::edges::ALLOWED;
use crate::tree::Tree;

/// A manifest, line by line: section, key, value. A list over several lines is one value.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    entries: Vec<(String, String, String)>,
}

impl Manifest {
    pub(super) fn read(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut section = String::new();
        let mut open: Option<(String, String)> = None;
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some((key, mut value)) = open.take() {
                value.push_str(line);
                open = manifest.note(&section, key, value);
            } else if let Some(name) = line.strip_prefix('[') {
                name.trim_end_matches(']').trim_matches('[').clone_into(&mut section);
            } else if let Some((key, value)) = line.split_once('=') {
                open = manifest.note(&section, key.trim().to_owned(), value.trim().to_owned());
            }
        }
        manifest
    }

    /// Keeps the entry if its list is closed, else gives it back.
    fn note(&mut self, section: &str, key: String, value: String) -> Option<(String, String)> {
        if value.matches('[').count() > value.matches(']').count() {
            return Some((key, value));
        }
        self.entries.push((section.to_owned(), key, value));
        None
    }

    /// Dependencies of a kind ("dependencies", "dev-dependencies"), for any target: name and value.
    pub(super) fn dependencies(&self, kind: &str) -> impl Iterator<Item = (&str, &str)> {
        let suffix = format!(".{kind}");
        let (plain, kind) = (kind.to_owned(), format!("{kind}."));
        self.entries.iter().filter_map(move |(section, key, value)| {
            // `[dependencies] x = …`, `[target.'…'.dependencies] x = …`, `[dependencies.x] version = …`
            if *section == plain || (section.starts_with("target.") && section.ends_with(&suffix)) {
                Some((key.split('.').next().unwrap_or(key), value.as_str()))
            } else {
                section.strip_prefix(&kind).map(|name| (name, value.as_str()))
            }
        })
    }

    fn value(&self, section: &str, key: &str) -> Option<&str> {
        self.entries.iter().find(|(s, k, _)| s == section && k == key).map(|(_, _, value)| value.as_str())
    }
}

/// The quoted words of a TOML list.
fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split('"').skip(1).step_by(2)
}

/// Manifests of the members: crate's name, path, content.
pub(super) fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, &str, Manifest)> {
    tree.texts().filter(|(path, _)| path.ends_with("/Cargo.toml")).filter_map(|(path, text)| {
        let name = super::crate_of(path)?;
        Some((name, path, Manifest::read(text)))
    })
}

/// Rule: every crate takes the workspace's lints, every library must document what it shows.
pub(super) fn lints(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, path, manifest) in manifests(tree) {
        if manifest.value("lints", "workspace") != Some("true") {
            findings.push(Finding::new(path, "add `[lints] workspace = true`"));
        }
        let root = format!("crates/{name}/src/lib.rs");
        let library = ALLOWED.iter().any(|crate_| crate_.name == name && crate_.is_library());
        if library && !tree.text(&root).is_some_and(|text| text.contains("#![deny(missing_docs)]")) {
            findings.push(Finding::new(root, "a library begins with `#![deny(missing_docs)]`"));
        }
    }
    findings
}

/// Rule: no crate's default features reach `fault`, and no dependency asks for it.
pub(super) fn fault_is_never_default(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, path, manifest) in manifests(tree) {
        let mut seen: Vec<&str> = vec!["default"];
        let mut next = 0;
        while let Some(feature) = seen.get(next).copied() {
            next += 1;
            for word in manifest.value("features", feature).map(words).into_iter().flatten() {
                if !seen.contains(&word) {
                    seen.push(word);
                }
            }
        }
        if let Some(word) = seen.iter().find(|word| **word == "fault" || word.ends_with("/fault")) {
            findings.push(Finding::new(path, format!("\"{word}\" is on by default: fault points never ship")));
        }
        let kinds = ["dependencies", "build-dependencies"];
        for (name, value) in kinds.iter().flat_map(|kind| manifest.dependencies(kind)) {
            if words(value).any(|word| word == "fault") {
                findings.push(Finding::new(path, format!("depends on {name} with fault points: they never ship")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[features]\ndefault = [\n  \"embedded\", # all\n]\nembedded = []\nfault = [\"m/fault\"]\n\
        [dependencies]\nm.workspace = true\n[target.'cfg(unix)'.dependencies]\nn = { version = \"1\" }\n\
        [dependencies.o]\nversion = \"1\"\n[dev-dependencies]\np = \"1\"\n[lints]\nworkspace = true\n";

    /// Goal: every way to write a dependency is seen. Method: one of each.
    #[test]
    fn dependencies_are_found_in_every_form() {
        let manifest = Manifest::read(GOOD);
        assert_eq!(manifest.dependencies("dependencies").map(|(name, _)| name).collect::<Vec<_>>(), ["m", "n", "o"]);
        assert_eq!(manifest.dependencies("dev-dependencies").map(|(name, _)| name).collect::<Vec<_>>(), ["p"]);
    }

    /// Goal: fault points cannot slip into a default. Method: directly, through another feature, through a dependency.
    #[test]
    fn a_default_that_reaches_fault_is_found() {
        let found = |text: &str| fault_is_never_default(&Tree::of(&[("crates/a/Cargo.toml", text)])).len();
        assert_eq!(found(GOOD), 0);
        assert_eq!(found(&GOOD.replace("embedded = []", "embedded = [\"m/fault\"]")), 1);
        assert_eq!(found(&GOOD.replace("\"embedded\",", "\"fault\",")), 1);
        assert_eq!(found(&GOOD.replace("n = { version", "n = { features = [\"fault\"], version")), 1);
    }

    /// Goal: a crate cannot leave the lints. Method: a manifest and a library without them.
    #[test]
    fn a_crate_without_lints_is_found() {
        let tree = |manifest: &str, lib: &str| {
            Tree::of(&[("crates/hapax-model/Cargo.toml", manifest), ("crates/hapax-model/src/lib.rs", lib)])
        };
        assert!(lints(&tree(GOOD, "#![deny(missing_docs)]")).is_empty());
        assert_eq!(lints(&tree("", "")).len(), 2);
    }
}
