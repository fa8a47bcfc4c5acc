//! Finds and reads the files of a configuration, and puts them together.
//!
//! Reads: files, through [`Surroundings`]. Writes: one tree.
//! Invariant: no more is read than the limits allow.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::check;
use super::node::{Data, Entry, Node};
use super::problem::{Place, Problem, Problems, code};
use super::schema::ROOT;
use super::substitute::Surroundings;
use super::yaml;

/// The most files of a folder.
const MOST_FILES: usize = 1000;

/// The process's own environment and file system.
pub(crate) struct System;

impl Surroundings for System {
    fn variable(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn read(&self, path: &Path, at_most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let limit = u64::try_from(at_most).unwrap_or(u64::MAX).saturating_add(1);
        std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        if !std::fs::metadata(path)?.is_dir() {
            return Ok(None);
        }
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let path = entry?.path();
            if path.is_file() {
                files.push(path);
            }
        }
        Ok(Some(files))
    }
}

/// The tree of the file or folder at `path`, and the folder where its relative paths begin.
pub(crate) fn read_tree(
    path: &Path,
    surroundings: &dyn Surroundings,
    problems: &mut Problems,
) -> Result<(Node, PathBuf), Problem> {
    let whole = Place::whole(&path.display().to_string());
    let (files, folder) = match surroundings.list(path).map_err(|error| unreadable(&whole, &error))? {
        None => (vec![path.to_owned()], path.parent().unwrap_or(Path::new("")).to_owned()),
        Some(files) => (configuration_files(files, &whole)?, path.to_owned()),
    };
    let mut entries: Vec<Entry> = Vec::new();
    let mut found = false;
    for file in &files {
        if let Some(node) = read_file(file, surroundings, problems) {
            found |= !matches!(node.data, Data::Null);
            join(&mut entries, node, problems);
        }
    }
    if !found && problems.is_empty() {
        let cure = "write at least one workflow: workflows: [{ id: my-workflow }]";
        return Err(Problem::new(&whole, code::NO_VALUE, "there is no configuration in it", cure));
    }
    Ok((Node::new(whole, Data::Map(entries)), folder))
}

fn unreadable(whole: &Place, error: &io::Error) -> Problem {
    let (message, cure) = if error.kind() == io::ErrorKind::NotFound {
        ("there is no such file or folder".to_owned(), "create it, or name another with --config")
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        ("we may not read it".to_owned(), "give the user that runs hapax the right to read it")
    } else {
        (format!("it cannot be read: {error}"), "look at the disk and the path")
    };
    Problem::new(whole, code::UNREADABLE, message, cure)
}

/// The `*.yaml` and `*.yml` files among `files`, sorted; hidden ones are left out.
fn configuration_files(files: Vec<PathBuf>, whole: &Place) -> Result<Vec<PathBuf>, Problem> {
    let named = |path: &PathBuf| {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        !hidden && path.extension().is_some_and(|end| end == "yaml" || end == "yml")
    };
    let mut files: Vec<_> = files.into_iter().filter(named).collect();
    files.sort();
    match files.len() {
        0 => {
            let cure = "put a file such as hapax.yaml into it, or name another with --config";
            Err(Problem::new(whole, code::UNREADABLE, "the folder holds no *.yaml or *.yml file", cure))
        }
        1..=MOST_FILES => Ok(files),
        count => {
            let message = format!("the folder holds {count} files; at most {MOST_FILES} are read");
            Err(Problem::new(whole, code::TOO_LARGE, message, "put several workflows into one file"))
        }
    }
}

fn read_file(path: &Path, surroundings: &dyn Surroundings, problems: &mut Problems) -> Option<Node> {
    let name: Arc<str> = path.display().to_string().into();
    let whole = Place::whole(&name);
    let bytes = match surroundings.read(path, yaml::LARGEST_FILE) {
        Ok(bytes) => bytes,
        Err(error) => {
            problems.add(unreadable(&whole, &error));
            return None;
        }
    };
    if bytes.len() > yaml::LARGEST_FILE {
        problems.add(yaml::too_large(&whole));
        return None;
    }
    match String::from_utf8(bytes) {
        Ok(text) => yaml::parse(&name, &text, problems),
        Err(error) => {
            problems.add(not_utf8(&name, &error));
            None
        }
    }
}

fn not_utf8(name: &Arc<str>, error: &std::string::FromUtf8Error) -> Problem {
    let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let text = String::from_utf8_lossy(valid);
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    let place = Place { file: Arc::clone(name), line, column };
    Problem::new(&place, code::NOT_UTF8, "this is not UTF-8", "save the file as UTF-8")
}

/// Fields that each file of a folder may have.
const JOINED: [&str; 2] = ["workflows", "tests"];

/// Adds the fields of one file to those of the files before it: workflows and tests are put together, the rest must be
/// new.
fn join(entries: &mut Vec<Entry>, node: Node, problems: &mut Problems) {
    let fields = match node.data {
        Data::Map(fields) => fields,
        Data::Null | Data::Lost => return,
        Data::Bool(_) | Data::Number(_) | Data::Text(_) | Data::List(_) => {
            let message = format!("the file holds {}, and no fields", node.described());
            let cure = "begin with fields such as workflows: and, below it, a list of workflows";
            problems.add(Problem::new(&node.place, code::UNUSED_YAML, message, cure));
            return;
        }
    };
    let mut at: HashMap<String, usize> = entries.iter().enumerate().map(|(at, it)| (it.key.clone(), at)).collect();
    for field in fields {
        let Some(first) = at.get(&field.key).and_then(|at| entries.get_mut(*at)) else {
            at.insert(field.key.clone(), entries.len());
            entries.push(field);
            continue;
        };
        match (&mut first.node.data, field.node.data) {
            (Data::List(all), Data::List(more)) if JOINED.contains(&field.key.as_str()) => all.extend(more),
            (_, data) if JOINED.contains(&field.key.as_str()) => {
                // One of the two is no list: the schema says what it should be.
                let kind = ROOT.field(&field.key).map(|it| it.kind);
                kind.and_then(|kind| check(&Node { data, ..field.node }, &kind, &field.key, problems));
            }
            (_, _) => {
                let message = format!("\"{}\" is already set at {}", field.key, first.place);
                let cure = "only workflows and tests may stand in several files of a folder; keep one of the two";
                problems.add(Problem::new(&field.place, code::SET_TWICE, message, cure));
            }
        }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
