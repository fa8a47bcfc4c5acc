//! A list as the text of a PostgreSQL array, `[1, null, "a\"b"]` as `{1,NULL,"a\"b"}`, each element checked as a column
//! of its type would be: the server's cast to `varchar(3)[]` or `numeric(5,2)[]` cuts and rounds without a word.
//!
//! Pure. Reads a JSON list, or the server's own spelling in a string.

use std::borrow::Cow;

use hapax_engine::batch::FieldBytes;
use serde_json::value::RawValue;

use super::column::Kind;
use super::convert::{scalar, show};
use crate::table::column::Why;

/// How deep PostgreSQL's arrays may be.
const DEPTH: usize = 6;
const TOO_DEEP: Why = Why::Because("cannot hold a list of more than six dimensions");
const UNEVEN: Why = Why::Because("takes lists whose inner lists are all of one length, none of them empty");
const NO_JSON: Why = Why::Because("takes lists of JSON, a string with its quotes");
const NO_LIST: Why = Why::Because("takes lists, or a text like {1,2,NULL}");

/// A list of lists, or a value.
enum Node<'a> {
    List(Vec<Self>),
    Null,
    Bool(bool),
    Number(&'a str),
    Text(String),
    Json(Cow<'a, str>),
}

/// The array that a JSON list is.
pub(super) fn of_json(json: &str, element: Kind) -> Result<String, Why> {
    // A list within a list of json is one json, not a dimension.
    let deepest = if matches!(element, Kind::Json | Kind::Jsonb) { 1 } else { usize::MAX };
    render(&read_json(json, deepest, 1)?, element)
}

/// The array that a text spells as the server does: `{1,NULL,"a b"}`.
pub(super) fn of_text(text: &str, element: Kind) -> Result<String, Why> {
    let mut rest = text.strip_prefix('{').ok_or(NO_LIST)?;
    let mut node = read_text(&mut rest, 1)?;
    if matches!(element, Kind::Json | Kind::Jsonb) {
        read_items_as_json(&mut node)?;
    }
    if rest.is_empty() { render(&node, element) } else { Err(NO_LIST) }
}

fn read_json(json: &str, deepest: usize, depth: usize) -> Result<Node<'_>, Why> {
    if depth > DEPTH {
        return Err(TOO_DEEP);
    }
    let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| NO_LIST)?;
    let mut nodes = Vec::with_capacity(elements.len());
    for element in elements {
        let text = element.get();
        nodes.push(match text.as_bytes().first() {
            Some(b'[') if depth < deepest => read_json(text, deepest, depth + 1)?,
            Some(b'[' | b'{') => Node::Json(Cow::Borrowed(text)),
            Some(b'n') => Node::Null,
            Some(b't') => Node::Bool(true),
            Some(b'f') => Node::Bool(false),
            Some(b'"') => Node::Text(serde_json::from_str(text).map_err(|_| NO_LIST)?),
            Some(_) | None => Node::Number(text),
        });
    }
    Ok(Node::List(nodes))
}

/// The server reads each item of a list of json as JSON: `{12}` holds a number, not the text 12.
fn read_items_as_json(node: &mut Node<'_>) -> Result<(), Why> {
    match node {
        Node::List(nodes) => nodes.iter_mut().try_for_each(read_items_as_json)?,
        Node::Text(text) => {
            serde_json::from_str::<&RawValue>(text).map_err(|_| NO_JSON)?;
            *node = Node::Json(Cow::Owned(std::mem::take(text)));
        }
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::Json(_) => {}
    }
    Ok(())
}

/// Reads to the brace that closes a list whose opening brace was read.
fn read_text<'a>(rest: &mut &'a str, depth: usize) -> Result<Node<'a>, Why> {
    if depth > DEPTH {
        return Err(TOO_DEEP);
    }
    let mut nodes = Vec::new();
    if let Some(after) = rest.strip_prefix('}') {
        *rest = after;
        return Ok(Node::List(nodes));
    }
    loop {
        if let Some(after) = rest.strip_prefix('{') {
            *rest = after;
            nodes.push(read_text(rest, depth + 1)?);
        } else {
            nodes.push(read_item(rest)?);
        }
        let mut characters = rest.chars();
        let next = characters.next();
        *rest = characters.as_str();
        match next {
            Some(',') => {}
            Some('}') => return Ok(Node::List(nodes)),
            Some(_) | None => return Err(NO_LIST),
        }
    }
}

fn read_item<'a>(rest: &mut &'a str) -> Result<Node<'a>, Why> {
    let quoted = rest.starts_with('"');
    let mut text = String::new();
    let mut characters = if quoted { rest[1..].char_indices() } else { rest.char_indices() };
    let start = usize::from(quoted);
    while let Some((at, character)) = characters.next() {
        match (character, quoted) {
            ('"', true) => {
                *rest = &rest[start + at + 1..];
                return Ok(Node::Text(text));
            }
            ('\\', true) => text.push(characters.next().ok_or(NO_LIST)?.1),
            (',' | '}', false) => {
                *rest = &rest[at..];
                // The server drops spaces around an item; whether they were meant is not ours to guess.
                if text.is_empty() || text.starts_with(' ') || text.ends_with(' ') {
                    return Err(NO_LIST);
                }
                return Ok(if text.eq_ignore_ascii_case("null") { Node::Null } else { Node::Text(text) });
            }
            ('{' | '"' | '\\', false) => return Err(NO_LIST),
            (other, _) => text.push(other),
        }
    }
    Err(NO_LIST)
}

fn render(node: &Node<'_>, element: Kind) -> Result<String, Why> {
    check_shape(node)?;
    let mut out = String::new();
    append(node, element, &mut out)?;
    Ok(out)
}

/// All lists of one depth are of one length, and hold either lists or values.
fn check_shape(node: &Node<'_>) -> Result<Vec<usize>, Why> {
    let Node::List(nodes) = node else { return Ok(Vec::new()) };
    let mut shapes = nodes.iter().map(check_shape);
    let first = shapes.next().transpose()?.unwrap_or_default();
    for shape in shapes {
        if shape? != first {
            return Err(UNEVEN);
        }
    }
    if first.contains(&0) {
        return Err(UNEVEN);
    }
    let mut shape = vec![nodes.len()];
    shape.extend(first);
    Ok(shape)
}

fn append(node: &Node<'_>, element: Kind, out: &mut String) -> Result<(), Why> {
    let value = match node {
        Node::List(nodes) => {
            out.push('{');
            for (at, node) in nodes.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                append(node, element, out)?;
            }
            out.push('}');
            return Ok(());
        }
        Node::Null => {
            out.push_str("NULL");
            return Ok(());
        }
        Node::Bool(value) => FieldBytes::Bool(*value),
        Node::Number(text) => FieldBytes::Number(text.as_bytes()),
        Node::Text(text) => FieldBytes::Text(text.as_bytes()),
        Node::Json(text) => FieldBytes::Json(text.as_bytes()),
    };
    append_item(&show(&scalar(element, value)?, element), out);
    Ok(())
}

fn append_item(text: &str, out: &mut String) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-' | b'_' | b':');
    if !text.is_empty() && text.bytes().all(plain) && !text.eq_ignore_ascii_case("null") {
        out.push_str(text);
        return;
    }
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: Kind = Kind::Text { most: None };

    fn json(text: &str, element: Kind) -> Option<String> {
        of_json(text, element).ok()
    }

    /// Goal: every element arrives as itself. Method: one of each kind, and what needs quoting.
    #[test]
    fn a_json_list_becomes_an_array() {
        let numeric = Kind::Numeric { limits: None };
        for (element, text, array) in [
            (numeric, "[1, 2.50, null]", "{1,2.50,NULL}"),
            (Kind::Bool, "[true,false,null,1]", "{true,false,NULL,true}"),
            (TEXT, r#"["a", "NULL", "", "x\"y\\z", "ä,{}"]"#, r#"{a,"NULL","","x\"y\\z","ä,{}"}"#),
            (Kind::Int4, "[[1,2],[3,null]]", "{{1,2},{3,NULL}}"),
            (Kind::Jsonb, r#"[{"a":1},[2],"x"]"#, r#"{"{\"a\":1}","[2]","\"x\""}"#),
            (Kind::Timestamp { digits: 6 }, r#"["2026-11-16T03:25:42+01:00"]"#, r#"{"2026-11-16 02:25:42.000000+00"}"#),
            (Kind::Bytea, r#"["a"]"#, r#"{"\\x61"}"#),
            (Kind::Int4, "[]", "{}"),
        ] {
            assert_eq!(json(text, element).as_deref(), Some(array), "{text}");
        }
    }

    /// Goal: an element that its type cannot keep is refused, and so is a list that is none. Method: one of each.
    #[test]
    fn what_the_server_would_change_is_refused() {
        for (element, text) in [
            (Kind::Text { most: Some(3) }, r#"["abcd"]"#),
            (Kind::Numeric { limits: Some((5, 2)) }, "[1.005]"),
            (Kind::Int4, "[1.5]"),
            (Kind::Int4, "[1,[2]]"),
            (Kind::Int4, "[[1,2],[3]]"),
            (Kind::Int4, "[[]]"),
            (Kind::Int4, r#"{"a":1}"#),
            (Kind::Int4, "[[[[[[[1]]]]]]]"),
            (Kind::Date, r#"["today"]"#),
        ] {
            assert_eq!(json(text, element), None, "{text}");
        }
    }

    /// Goal: the server's own spelling is read as the server does. Method: quotes, escapes, NULL, dimensions, damage.
    #[test]
    fn the_servers_own_spelling_is_read() {
        for (element, text, array) in [
            (Kind::Int4, "{1,NULL,3}", "{1,NULL,3}"),
            (Kind::Int4, "{}", "{}"),
            (Kind::Int4, "{{1},{2}}", "{{1},{2}}"),
            (TEXT, r#"{a,"b c","NULL","x\"y\\z"}"#, r#"{a,"b c","NULL","x\"y\\z"}"#),
            (Kind::Jsonb, r#"{12,true,NULL,"\"a\"","{\"b\":1}"}"#, r#"{12,true,NULL,"\"a\"","{\"b\":1}"}"#),
        ] {
            assert_eq!(of_text(text, element).ok().as_deref(), Some(array), "{text}");
        }
        for text in ["", "1", "{", "{1", "{1,}", "{1}}", "{ 1}", "{1.5}", "[1]", "{\"1}", "{{1},2}"] {
            assert!(of_text(text, Kind::Int4).is_err(), "{text}");
        }
        for text in ["{abc}", r#"{"{\"a\":"}"#, "{007}"] {
            assert!(of_text(text, Kind::Jsonb).is_err(), "{text} is no list of JSON");
        }
    }
}
