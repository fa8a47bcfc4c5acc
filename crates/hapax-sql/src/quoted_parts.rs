//! Names of tables as people write them, in parts: `schema.table`, with quotes where a part needs them.

use crate::QuoteError;

/// A part as a person would write it: in quotes only if it needs them.
pub(crate) fn readable(part: &str, quote: char) -> String {
    let plain = |character: char| character != '.' && character != quote && !character.is_whitespace();
    if part.chars().all(plain) { part.to_owned() } else { in_quotes(part, quote) }
}

/// The name in quotes, with the quotes that it contains doubled.
pub(crate) fn in_quotes(part: &str, quote: char) -> String {
    let mut quoted = String::with_capacity(part.len() + 2);
    quoted.push(quote);
    for character in part.chars() {
        if character == quote {
            quoted.push(quote);
        }
        quoted.push(character);
    }
    quoted.push(quote);
    quoted
}

/// The parts of `table`, `schema.table`, or the same with quotes.
pub(crate) fn split(text: &str, quote: char) -> Result<Vec<String>, QuoteError> {
    if text.is_empty() {
        return Err(QuoteError::Empty);
    }
    let unreadable = || QuoteError::Unreadable(text.to_owned());
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = match rest.strip_prefix(quote) {
            Some(quoted) => quoted_part(quoted, quote).ok_or_else(unreadable)?,
            None => {
                let end = rest.find('.').unwrap_or(rest.len());
                let (part, after) = rest.split_at(end);
                if part.contains(quote) {
                    return Err(unreadable());
                }
                (part.to_owned(), after)
            }
        };
        if part.is_empty() {
            return Err(QuoteError::Empty);
        }
        parts.push(part);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(parts),
            None => return Err(unreadable()),
        }
    }
}

/// What stands before the closing quote, and what follows it; none if it does not end.
fn quoted_part(text: &str, quote: char) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let end = rest.find(quote)?;
        part.push_str(&rest[..end]);
        rest = &rest[end + quote.len_utf8()..];
        match rest.strip_prefix(quote) {
            Some(after) => {
                part.push(quote);
                rest = after;
            }
            None => return Some((part, rest)),
        }
    }
}
