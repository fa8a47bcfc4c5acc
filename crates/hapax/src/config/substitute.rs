//! `${NAME}`, `${NAME:-default}`, `${NAME:?why}`, `${file:path}` and the escape `$${`, in texts, after parsing.
//!
//! Reads: variables and small files, through [`Surroundings`]. Writes: the tree, in place.
//! Invariant: what was replaced is marked as a secret, and is not looked at again; keys, `transform` and `tests` are never touched.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::node::{Data, Node, Origin};
use super::problem::{Place, Problem, Problems, code};

/// The largest file that `${file:…}` reads.
const LARGEST_SECRET: usize = 64 << 10;

/// What the configuration may ask of the world.
pub(crate) trait Surroundings {
    /// The variable of that name, if it is set.
    fn variable(&self, name: &str) -> Option<OsString>;
    /// The content of a file; `at_most` bytes and one more, so that the caller sees that there are more.
    fn read(&self, path: &Path, at_most: usize) -> io::Result<Vec<u8>>;
    /// The files of a folder, or nothing if the path is no folder.
    fn list(&self, path: &Path) -> io::Result<Option<Vec<PathBuf>>>;
}

/// Replaces every `${…}` in the texts of `node`. Relative paths are relative to `folder`.
pub(crate) fn substitute(node: &mut Node, folder: &Path, surroundings: &dyn Surroundings, problems: &mut Problems) {
    let replaced = match &mut node.data {
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Lost => None,
        Data::List(items) => {
            items.iter_mut().for_each(|item| substitute(item, folder, surroundings, problems));
            None
        }
        Data::Map(entries) => {
            // A transform is a program, and an event of a test is what it is: ${…} in them is their own.
            let own = ["transform", "tests"];
            for entry in entries.iter_mut().filter(|entry| !own.contains(&entry.key.as_str())) {
                substitute(&mut entry.node, folder, surroundings, problems);
            }
            None
        }
        Data::Text(text) if text.contains("${") => Some(replace(text, &node.place, folder, surroundings)),
        Data::Text(_) => None,
    };
    match replaced {
        None => {}
        Some(Ok((text, origin))) => {
            node.data = Data::Text(text);
            node.origin = origin;
        }
        Some(Err(problem)) => {
            problems.add(problem);
            node.data = Data::Lost;
        }
    }
}

/// The text with everything replaced, and whether anything was.
fn replace(
    text: &str,
    place: &Place,
    folder: &Path,
    surroundings: &dyn Surroundings,
) -> Result<(String, Origin), Problem> {
    let mut out = String::new();
    let mut origin = Origin::File;
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at - 1]);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some(end) = inside.find('}') else {
            let cure = "close it with }, or write $${ for a plain ${";
            return Err(Problem::new(place, code::MALFORMED_VARIABLE, "a ${ is not closed", cure));
        };
        out.push_str(&value_of(&inside[..end], place, folder, surroundings)?);
        origin = Origin::Variable;
        rest = &inside[end + 1..];
    }
    out.push_str(rest);
    Ok((out, origin))
}

fn value_of(reference: &str, place: &Place, folder: &Path, surroundings: &dyn Surroundings) -> Result<String, Problem> {
    if let Some(path) = reference.strip_prefix("file:") {
        return secret_file(path, place, folder, surroundings);
    }
    let end = reference.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(reference.len());
    let (name, rest) = reference.split_at(end);
    let well_formed = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    let value = match surroundings.variable(name).map(OsString::into_string) {
        Some(Ok(value)) => Some(value),
        Some(Err(_)) => {
            let message = format!("the variable {name} is not UTF-8");
            return Err(Problem::new(place, code::MALFORMED_VARIABLE, message, "set it to text in UTF-8"));
        }
        None => None,
    };
    // As in a shell: with a colon, an empty variable counts as missing.
    let filled = value.clone().filter(|value| !value.is_empty());
    match (well_formed, rest.split_at_checked(2)) {
        (true, Some((":-", default))) => Ok(filled.unwrap_or_else(|| default.to_owned())),
        (true, Some((":?", why))) => filled.ok_or_else(|| missing(name, Some(why), place)),
        (true, None) if rest.is_empty() => value.ok_or_else(|| missing(name, None, place)),
        (_, _) => {
            // It may be a part of a password that has these signs in it, so it is not repeated.
            let message = "what stands in ${…} here is no variable";
            let cure = "write ${NAME}, ${NAME:-default}, ${NAME:?why} or ${file:path}; $${ stands for a plain ${";
            Err(Problem::new(place, code::MALFORMED_VARIABLE, message, cure))
        }
    }
}

fn missing(name: &str, why: Option<&str>, place: &Place) -> Problem {
    let message = match why {
        Some(why) if !why.is_empty() => format!("the variable {name} is not set: {why}"),
        Some(_) | None => format!("the variable {name} is not set"),
    };
    let cure = format!("set it (export {name}=…), or give a default: ${{{name}:-default}}");
    Problem::new(place, code::MISSING_VARIABLE, message, cure)
}

/// The file's text without the newline at its end, which editors and `echo` leave there.
fn secret_file(path: &str, place: &Place, folder: &Path, surroundings: &dyn Surroundings) -> Result<String, Problem> {
    let path = folder.join(path);
    let refuse = |why: String| {
        let message = format!("${{file:…}} cannot read {}: {why}", path.display());
        let cure = "name a readable file; a relative path begins at the configuration's own folder";
        Problem::new(place, code::UNREADABLE_SECRET, message, cure)
    };
    let bytes = surroundings.read(&path, LARGEST_SECRET).map_err(|error| refuse(error.to_string()))?;
    if bytes.len() > LARGEST_SECRET {
        return Err(refuse(format!("it has more than {LARGEST_SECRET} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8".into()))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

#[cfg(test)]
#[path = "substitute_tests.rs"]
mod tests;
