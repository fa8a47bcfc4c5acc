//! YAML text into nodes.
//!
//! Reads: one file's text. Writes: the tree, and what is wrong with it.
//! Invariant: work and memory are bounded by the constants below, whatever the text says; nothing here panics.
//! Not here: variables (`substitute`), which fields exist (`schema`).

use std::collections::HashMap;
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};

use super::node::{Data, Entry, Node, resolve_plain, shown};
use super::problem::{Place, Problem, Problems, code};

/// The largest file.
pub(crate) const LARGEST_FILE: usize = 1 << 20;
/// The deepest nesting.
const DEEPEST: usize = 32;
/// How many values the aliases of a file may add.
const MOST_ALIASED: usize = 20_000;

/// The tree of `text`, or nothing if it has none. What is wrong goes to `problems`; the tree is then for looking on,
/// so that all problems are told at once.
pub(crate) fn parse(file: &Arc<str>, text: &str, problems: &mut Problems) -> Option<Node> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > LARGEST_FILE {
        problems.add(too_large(&Place::whole(file)));
        return None;
    }
    let mut builder = Builder::new(file, text, problems);
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let taken = match next {
            Ok((event, span)) => builder.take(event, span),
            Err(error) => Err(syntax_problem(file, text, &error)),
        };
        if let Err(problem) = taken {
            problems.add(problem);
            return None;
        }
    }
    builder.root
}

/// The file has more bytes than are read.
pub(crate) fn too_large(whole: &Place) -> Problem {
    let message = format!("the file has more than {LARGEST_FILE} bytes, which is all that is read");
    Problem::new(whole, code::TOO_LARGE, message, "split it: a folder of files is read as one configuration")
}

/// A list or mapping that is not closed yet.
struct Open {
    node: Node,
    anchor: usize,
    /// In a mapping: the key whose value comes next.
    key: Option<(String, Place)>,
    /// In a mapping: where each key stands.
    seen: HashMap<String, Place>,
}

struct Builder<'a> {
    file: Arc<str>,
    text: &'a str,
    problems: &'a mut Problems,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    aliased: usize,
    documents: usize,
    root: Option<Node>,
}

impl<'a> Builder<'a> {
    fn new(file: &Arc<str>, text: &'a str, problems: &'a mut Problems) -> Self {
        let file = Arc::clone(file);
        Self { file, text, problems, open: Vec::new(), anchors: HashMap::new(), aliased: 0, documents: 0, root: None }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        let place = place_of(&self.file, &span.start);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => self.start_document(&place),
            Event::Alias(anchor) => self.alias(anchor, &place),
            Event::Scalar(text, style, anchor, tag) => {
                let data = match (style, &tag) {
                    // A key is a name, also the one that YAML has for nothing: `csv: { null: NA }`.
                    (ScalarStyle::Plain, None) if text == "null" && self.awaits_key() => Data::Text(text.into_owned()),
                    (ScalarStyle::Plain, None) => resolve_plain(&text),
                    _ => Data::Text(text.into_owned()),
                };
                self.refuse_tag(tag.as_deref(), &place)?;
                let block = if style == ScalarStyle::Literal { text_of(&data) } else { None };
                let place = match block {
                    Some(_) if anchor > 0 || tag.is_some() => self.place_below(place),
                    Some(text) => self.block_place(place, text),
                    None => place,
                };
                self.finish(Node::new(place, data), anchor)
            }
            Event::SequenceStart(anchor, tag) => self.start(Data::List(Vec::new()), place, anchor, tag.as_deref()),
            Event::MappingStart(anchor, tag) => self.start(Data::Map(Vec::new()), place, anchor, tag.as_deref()),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.finish(open.node, open.anchor),
                None => Ok(()),
            },
        }
    }

    /// The same where an anchor or a tag comes before the `|`: the parser tells where that stands.
    fn place_below(&self, place: Place) -> Place {
        let lines = || self.text.lines().enumerate().skip(place.line - 1);
        let code = |line: &'a str| line.split(" #").next().unwrap_or_default().trim_end();
        let opens = |line: &'a str| {
            code(line).trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')).ends_with('|')
        };
        let Some((opened, _)) = lines().find(|(_, line)| opens(line)) else { return place };
        let first = lines().find(|(at, line)| *at > opened && !line.trim().is_empty());
        let column = first.map_or(place.column, |(_, line)| line.len() - line.trim_start().len() + 1);
        Place { line: opened + 2, column, ..place }
    }

    /// Where the text of a `|` block begins, which is what an error in the text counts from. The parser tells where its
    /// first line that is not empty stands.
    fn block_place(&self, place: Place, content: &str) -> Place {
        let empty = content.len() - content.trim_start_matches('\n').len();
        let indent = |line: &str| line.len() - line.trim_start().len();
        let column = self.text.lines().nth(place.line - 1).map_or(place.column, |line| indent(line) + 1);
        Place { line: place.line.saturating_sub(empty).max(1), column, ..place }
    }

    fn start_document(&mut self, place: &Place) -> Result<(), Problem> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        let cure = "keep one document per file; a folder of files is read as one configuration";
        Err(Problem::new(place, code::UNUSED_YAML, "the file holds a second document after ---", cure))
    }

    fn start(&mut self, data: Data, place: Place, anchor: usize, tag: Option<&Tag>) -> Result<(), Problem> {
        self.refuse_tag(tag, &place)?;
        if self.open.len() >= DEEPEST {
            return Err(too_deep(&place));
        }
        self.refuse_as_key(&place)?;
        self.open.push(Open { node: Node::new(place, data), anchor, key: None, seen: HashMap::new() });
        Ok(())
    }

    /// The tag `!!str` alone has a use: it makes a text of anything, as quotes do.
    fn refuse_tag(&self, tag: Option<&Tag>, place: &Place) -> Result<(), Problem> {
        match tag {
            None => Ok(()),
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Ok(()),
            Some(tag) => {
                let message = format!("the tag {} has no meaning here", shown(&tag.to_string()));
                Err(Problem::new(place, code::UNUSED_YAML, message, "remove the tag; quotes make a text"))
            }
        }
    }

    /// In a mapping that waits for a key, a list or mapping is none.
    fn refuse_as_key(&self, place: &Place) -> Result<(), Problem> {
        match self.open.last() {
            Some(Open { node: Node { data: Data::Map(_), .. }, key: None, .. }) => {
                let cure = "a key is a plain name followed by a colon; text with { or [ in it needs quotes";
                Err(Problem::new(place, code::UNUSED_YAML, "a list or mapping stands where a key is expected", cure))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn awaits_key(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.node.data, Data::Map(_)) && open.key.is_none())
    }

    fn alias(&mut self, anchor: usize, place: &Place) -> Result<(), Problem> {
        let Some(node) = self.anchors.get(&anchor) else {
            let cure = "an alias may only repeat what was written completely before it";
            return Err(Problem::new(place, code::SYNTAX, "the alias repeats a value that it is part of", cure));
        };
        self.aliased += node.size();
        if self.aliased > MOST_ALIASED {
            let message = format!("the aliases of this file repeat more than {MOST_ALIASED} values");
            return Err(Problem::new(place, code::TOO_LARGE, message, "write fewer aliases, or smaller anchors"));
        }
        if self.open.len() + node.depth() > DEEPEST {
            return Err(too_deep(place));
        }
        let node = node.clone();
        if !matches!(node.data, Data::Text(_) | Data::Number(_) | Data::Bool(_)) {
            self.refuse_as_key(place)?;
        }
        self.finish(node, 0)
    }

    /// A value is complete: it goes into what is open, or is the tree.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.data {
            Data::Map(entries) => match open.key.take() {
                None => open.key = Some((key_text(&node)?, node.place)),
                Some((key, place)) => match open.seen.get(&key) {
                    Some(first) => self.problems.add(duplicate_key(&key, &place, first)),
                    None => {
                        open.seen.insert(key.clone(), place.clone());
                        entries.push(Entry { key, place, node });
                    }
                },
            },
            Data::List(items) => items.push(node),
            Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) | Data::Lost => {}
        }
        Ok(())
    }
}

fn key_text(node: &Node) -> Result<String, Problem> {
    match &node.data {
        Data::Text(text) | Data::Number(text) => Ok(text.clone()),
        Data::Bool(value) => Ok(value.to_string()),
        Data::Null | Data::List(_) | Data::Map(_) | Data::Lost => {
            let cure = "write a name before the colon";
            Err(Problem::new(&node.place, code::UNUSED_YAML, "a key is empty", cure))
        }
    }
}

fn duplicate_key(key: &str, place: &Place, first: &Place) -> Problem {
    let message = format!("\"{}\" is already set on line {}", shown(key), first.line);
    Problem::new(place, code::DUPLICATE_KEY, message, "keep one of the two")
}

fn too_deep(place: &Place) -> Problem {
    let message = format!("values are nested more than {DEEPEST} deep");
    Problem::new(place, code::TOO_LARGE, message, "no field needs such depth; look for a bracket too many")
}

fn text_of(data: &Data) -> Option<&str> {
    if let Data::Text(text) = data { Some(text) } else { None }
}

fn place_of(file: &Arc<str>, marker: &Marker) -> Place {
    Place { file: Arc::clone(file), line: marker.line().max(1), column: marker.col() + 1 }
}

fn syntax_problem(file: &Arc<str>, text: &str, error: &ScanError) -> Problem {
    let place = place_of(file, error.marker());
    if let Some(variable) = unquoted_variable(text, place.line, error.info()) {
        let place = Place { file: Arc::clone(file), ..variable };
        let message = "${…} stands without quotes inside { } or [ ], where YAML reads its braces as its own";
        return Problem::new(&place, code::UNQUOTED_VARIABLE, message, "put it in quotes: { url: \"${NAME}\" }");
    }
    let message = format!("this is no YAML: {}", error.info());
    Problem::new(&place, code::SYNTAX, message, syntax_cure(error.info()))
}

/// Whether YAML is inside brackets, where braces are its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Block,
    Brackets,
}

/// The first `${` without quotes, on the line of the error or the one before, that stands inside brackets.
fn unquoted_variable(text: &str, line: usize, info: &str) -> Option<Place> {
    let in_brackets = info.contains("flow") || info.contains('}') || info.contains(']');
    let context = if in_brackets { Context::Brackets } else { Context::Block };
    let lines = text.lines().enumerate().skip(line.saturating_sub(2)).take(2);
    let found = lines.filter_map(|(at, content)| Some((at, bare_variable(content, context)?))).last();
    found.map(|(at, column)| Place { file: "".into(), line: at + 1, column })
}

/// The column of a `${` outside quotes and comments, if the line is inside brackets or opens one before it.
fn bare_variable(line: &str, mut context: Context) -> Option<usize> {
    let mut quote = None;
    let mut before = ' ';
    let mut chars = line.chars().enumerate().peekable();
    while let Some((at, c)) = chars.next() {
        let opens_variable = c == '$' && chars.peek().is_some_and(|(_, next)| *next == '{');
        match (quote, c) {
            (Some(open), _) if c == open && before != '\\' => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some(c),
            (None, '#') if before.is_whitespace() => return None,
            (None, _) if opens_variable && context == Context::Brackets => return Some(at + 1),
            (None, '{' | '[') if before != '$' => context = Context::Brackets,
            (None, _) => {}
        }
        before = c;
    }
    None
}

/// What usually helps, by what the parser says.
fn syntax_cure(info: &str) -> &'static str {
    const BRACE: &str =
        "close the { with a }, put commas between its fields, and quote text that holds { } [ ] , : or #";
    const BRACKET: &str =
        "close the [ with a ], put commas between its items, and quote text that holds { } [ ] , : or #";
    const EITHER: &str = "close each { with a } and each [ with a ], and quote text that holds { } [ ] , : or #";
    const CURES: [(&str, &str); 13] = [
        ("tab", "indent with spaces; YAML does not allow tabs there"),
        ("flow mapping", BRACE),
        ("flow sequence", BRACKET),
        ("',' or '}'", BRACE),
        ("',' or ']'", BRACKET),
        ("flow construct", EITHER),
        ("misplaced bracket", EITHER),
        ("placement of ':'", EITHER),
        ("quoted scalar", "close the quote that was opened, and write \\\\ for a backslash inside double quotes"),
        ("mapping values are not allowed", "look at the indentation, and quote text that holds a colon and a space"),
        ("simple key", "a name needs a colon and a space after it; look at the indentation here and on the line above"),
        ("anchor", "write &name before the value that *name repeats; text that begins with * or & needs quotes"),
        ("unexpected character", "text that begins with @ or ` needs quotes"),
    ];
    let known = CURES.iter().find(|(part, _)| info.contains(part));
    known.map_or("look at the indentation and the quotes here and on the line above", |(_, cure)| cure)
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
