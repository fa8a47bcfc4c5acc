//! The repository's text files in memory, so that every rule is a function of a tree and a test can invent one.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::child;

/// Paths from the root, with `/`, and what the files say. Files that are no text are left out of `texts`.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    texts: BTreeMap<String, String>,
    paths: std::collections::BTreeSet<String>,
}

impl Tree {
    /// Everything that git tracks or would track.
    pub(crate) fn load() -> Result<Self> {
        let list =
            child::read(&mut child::command("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]))?;
        let mut tree = Self::default();
        for path in list.split('\0').filter(|path| !path.is_empty()) {
            let Ok(bytes) = std::fs::read(child::root().join(path)) else { continue }; // removed, not yet committed
            tree.paths.insert(path.to_owned());
            if let Ok(text) = String::from_utf8(bytes) {
                tree.texts.insert(path.to_owned(), text);
            }
        }
        Ok(tree)
    }

    /// A tree of the given files, for tests.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let texts: BTreeMap<String, String> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let paths = texts.keys().cloned().collect();
        Self { texts, paths }
    }

    /// All text files.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// One file's text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// All paths, of text or not.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Rust files of the project.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// Whether `path` is a file, or a folder of one.
    pub(crate) fn holds(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty() || self.paths.contains(path) || self.paths.iter().any(|p| p.starts_with(&folder))
    }
}
