//! Texts that columns of servers read in one way: fixed-length text, and the spelling of a uuid. Pure.

/// Spaces at the end of a `char(n)` mean nothing.
pub(crate) fn without_end_spaces(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Whether UTF-8 has at most so many characters.
#[inline]
pub(crate) fn has_at_most(text: &[u8], characters: u32) -> bool {
    let most = characters as usize;
    // A character has at least one byte: most values need no counting. Bytes that begin a character are counted.
    text.len() <= most || text.iter().filter(|byte| (**byte & 0xc0) != 0x80).count() <= most
}

/// 32 hexadecimal digits, with or without the usual hyphens.
pub(crate) fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut digits = 0;
    for (at, byte) in text.iter().enumerate() {
        if *byte == b'-' && text.len() == 36 && matches!(at, 8 | 13 | 18 | 23) {
            continue;
        }
        let digit = u8::try_from(char::from(*byte).to_digit(16)?).ok()?;
        *bytes.get_mut(digits / 2)? |= if digits % 2 == 0 { digit << 4 } else { digit };
        digits += 1;
    }
    (digits == 32).then_some(bytes)
}
