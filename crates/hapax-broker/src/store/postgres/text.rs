//! Text of clients in a database that cannot keep NUL: written another way, read back the same.

use std::borrow::Cow;

/// Stands before what stands for another character; itself written twice.
const MARK: char = '\u{F8FF}';

/// As it is kept.
pub(super) fn kept(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => kept.extend([MARK, '0']),
            MARK => kept.extend([MARK, MARK]),
            other => kept.push(other),
        }
    }
    Cow::Owned(kept)
}

/// As the client gave it.
pub(super) fn given(kept: String) -> String {
    if !kept.contains(MARK) {
        return kept;
    }
    let mut given = String::with_capacity(kept.len());
    let mut characters = kept.chars();
    while let Some(character) = characters.next() {
        match character {
            MARK => given.push(if characters.next() == Some('0') { '\0' } else { MARK }),
            other => given.push(other),
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every text comes back, and none that is kept has NUL. Method: the odd ones.
    #[test]
    fn text_comes_back_as_it_was_given() {
        for text in ["", "plain", "a\0b", "\0", "\u{F8FF}", "\u{F8FF}0", "\0\u{F8FF}\0\u{F8FF}\u{F8FF}", "ä\0€"] {
            let written = kept(text);
            assert!(!written.contains('\0'), "{written:?}");
            assert_eq!(given(written.into_owned()), text);
        }
    }
}
