//! A JSON array as the text of a PostgreSQL array: `[1, null, "a\"b"]` is `{1,NULL,"a\"b"}`.
//!
//! Numbers keep their digits; objects become their own text, for arrays of json.

use serde_json::value::RawValue;

/// How deep PostgreSQL's arrays may be.
const DEPTH: usize = 6;

/// The text of the array, or why there is none.
pub(super) fn literal(json: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(json.len() + 2);
    append(json, 1, &mut out)?;
    Ok(out)
}

fn append(json: &str, depth: usize, out: &mut String) -> Result<(), &'static str> {
    if depth > DEPTH {
        return Err("cannot hold an array of more than six dimensions");
    }
    let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| "takes arrays")?;
    out.push('{');
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let text = element.get().trim();
        match text.as_bytes().first() {
            Some(b'[') => append(text, depth + 1, out)?,
            Some(b'n') => out.push_str("NULL"),
            Some(b'"') => {
                let string: String = serde_json::from_str(text).map_err(|_| "takes arrays of readable strings")?;
                append_quoted(&string, out);
            }
            Some(b'{') => append_quoted(text, out),
            _ => out.push_str(text),
        }
    }
    out.push('}');
    Ok(())
}

fn append_quoted(text: &str, out: &mut String) {
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

    /// Goal: every element arrives as itself. Method: one of each kind, and what needs quoting.
    #[test]
    fn a_json_array_becomes_an_array_literal() {
        assert_eq!(literal("[1, 2.50, null, true]").unwrap(), "{1,2.50,NULL,true}");
        assert_eq!(literal(r#"["a", "NULL", "", "x\"y\\z", "ä,{}"]"#).unwrap(), r#"{"a","NULL","","x\"y\\z","ä,{}"}"#);
        assert_eq!(literal("[[1,2],[3,4]]").unwrap(), "{{1,2},{3,4}}");
        assert_eq!(literal(r#"[{"a":1}]"#).unwrap(), r#"{"{\"a\":1}"}"#);
        assert_eq!(literal("[]").unwrap(), "{}");
    }

    /// Goal: what is no array is refused, as is one that is too deep. Method: an object, seven brackets.
    #[test]
    fn what_is_no_array_is_refused() {
        assert!(literal(r#"{"a":1}"#).is_err());
        assert!(literal("[[[[[[[1]]]]]]]").is_err());
    }
}
