//! A range as the text that PostgreSQL reads, `[2026-11-16,2026-11-17)`, each bound checked as a column of its type would
//! be: the server would drop the offset of a moment in a `tsrange`, and take `today` for a day.
//!
//! Pure. Reads the server's own spelling in a string.

use hapax_engine::batch::FieldBytes;

use super::column::Kind;
use super::convert::{scalar, show};
use crate::table::column::Why;

const NO_RANGE: Why = Why::Because("takes ranges like [1,5), (,2026-11-16] or empty");

/// The range that a text spells.
pub(super) fn of_text(text: &str, bound: Kind) -> Result<String, Why> {
    if text == "empty" {
        return Ok(text.to_owned());
    }
    let mut rest = text.chars();
    let open = rest.next().filter(|open| matches!(open, '[' | '(')).ok_or(NO_RANGE)?;
    let close = rest.next_back().filter(|close| matches!(close, ']' | ')')).ok_or(NO_RANGE)?;
    let mut rest = rest.as_str();
    let lower = read_bound(&mut rest)?;
    rest = rest.strip_prefix(',').ok_or(NO_RANGE)?;
    let upper = read_bound(&mut rest)?;
    if !rest.is_empty() {
        return Err(NO_RANGE);
    }
    let mut out = String::from(open);
    append(lower.as_deref(), bound, &mut out)?;
    out.push(',');
    append(upper.as_deref(), bound, &mut out)?;
    out.push(close);
    Ok(out)
}

/// Up to the comma or the end; none if there is no bound.
fn read_bound(rest: &mut &str) -> Result<Option<String>, Why> {
    if let Some(quoted) = rest.strip_prefix('"') {
        let mut text = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    *rest = &quoted[at + 1..];
                    return Ok(Some(text));
                }
                '\\' => text.push(characters.next().ok_or(NO_RANGE)?.1),
                other => text.push(other),
            }
        }
        return Err(NO_RANGE);
    }
    let end = rest.find(',').unwrap_or(rest.len());
    let (text, after) = rest.split_at(end);
    *rest = after;
    // Quotes in the middle mean something to the server; nobody writes them.
    if text.contains(['"', '\\', '(', ')', '[', ']']) {
        return Err(NO_RANGE);
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn append(bound: Option<&str>, kind: Kind, out: &mut String) -> Result<(), Why> {
    let Some(text) = bound else { return Ok(()) };
    let shown = scalar(kind, FieldBytes::Text(text.as_bytes()))?;
    out.push('"');
    for character in show(&shown, kind).chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: both bounds arrive as what they say. Method: each kind of bound, quotes, no bound, none at all.
    #[test]
    fn a_range_is_read_bound_by_bound() {
        let moment = Kind::Timestamp { digits: 6 };
        for (kind, text, range) in [
            (Kind::Int4, "[1,5)", r#"["1","5")"#),
            (Kind::Int4, "(,5]", r#"(,"5"]"#),
            (Kind::Int4, "(,)", "(,)"),
            (Kind::Int4, "empty", "empty"),
            (Kind::Numeric { limits: None }, "[1.50,2]", r#"["1.50","2"]"#),
            (Kind::Date, "[2026-11-16,)", r#"["2026-11-16",)"#),
            (moment, r#"["2026-11-16 03:25:42+01:00",)"#, r#"["2026-11-16 02:25:42.000000+00",)"#),
            (moment, "[2026-11-16 03:25:42+01:00,)", r#"["2026-11-16 02:25:42.000000+00",)"#),
        ] {
            assert_eq!(of_text(text, kind).ok().as_deref(), Some(range), "{text}");
        }
        for text in ["", "[", "1,5", "[1,5", "[1;5)", "[1,5,6)", "[a,b)", "[1.5,2)", "[\"1,2)", "[1,5) "] {
            assert!(of_text(text, Kind::Int4).is_err(), "{text}");
        }
        assert!(of_text("[today,)", Kind::Date).is_err());
    }
}
