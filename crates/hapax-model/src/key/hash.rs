//! A finished key: 16 bytes, and the 29 characters that spell them.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use super::strategy::ENCODING;

/// How many characters a key's text form has: `h1_` and 26 of base32.
pub const KEY_TEXT_LENGTH: usize = 29;
/// How many characters a key with a readable prefix has at most.
pub const PREFIXED_KEY_LENGTH_MAX: usize = 100;

/// The first 16 bytes of the SHA-256 of a key's canonical encoding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHash(pub [u8; 16]);

impl KeyHash {
    /// The text form: `h1_` and lowercase base32 without padding. Allocates nothing.
    #[must_use]
    pub fn text(&self) -> KeyText {
        let [a0, a1, a2, a3, a4, b0, b1, b2, b3, b4, c0, c1, c2, c3, c4, last] = self.0;
        let mut text = [b'_'; KEY_TEXT_LENGTH];
        text[..2].copy_from_slice(ENCODING.as_bytes());
        text[3..11].copy_from_slice(&eight_letters([a0, a1, a2, a3, a4]));
        text[11..19].copy_from_slice(&eight_letters([b0, b1, b2, b3, b4]));
        text[19..27].copy_from_slice(&eight_letters([c0, c1, c2, c3, c4]));
        text[27..].copy_from_slice(&eight_letters([last, 0, 0, 0, 0])[..2]);
        KeyText(text)
    }

    /// The text form behind a readable `{database}-{table}-`, for people who look at the target.
    ///
    /// Only ASCII letters, digits, `_` and `.` of the names stay, all else becomes `_`. The prefix is cut so that the
    /// whole has at most [`PREFIXED_KEY_LENGTH_MAX`] characters; the key itself is never cut.
    #[must_use]
    pub fn prefixed_text(&self, database: &str, table: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '.' { c } else { '_' };
        let prefix = database.chars().map(plain).chain(['-']).chain(table.chars().map(plain));
        let mut text: String = prefix.take(PREFIXED_KEY_LENGTH_MAX - KEY_TEXT_LENGTH - 1).collect();
        text.push('-');
        text.push_str(&self.text());
        text
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyHash({self})")
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

/// A key's text form, without an allocation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyText([u8; KEY_TEXT_LENGTH]);

impl KeyText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("base32 is ASCII")
    }
}

impl Deref for KeyText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for KeyText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A text that is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no key: it ends in h1_ and 26 characters of a-z and 2-7")]
pub struct NoKey(pub String);

impl FromStr for KeyHash {
    type Err = NoKey;

    /// Reads the text form, with or without a readable prefix.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key = text.rsplit_once('-').map_or(text, |(_, key)| key);
        let letters = key.strip_prefix(ENCODING).and_then(|rest| rest.strip_prefix('_'));
        letters.and_then(read_base32).map(Self).ok_or_else(|| NoKey(text.to_owned()))
    }
}

/// Base32 of five bytes, all eight letters at once: a key's text is made for every row that is sent.
#[inline]
const fn eight_letters([a, b, c, d, e]: [u8; 5]) -> [u8; 8] {
    // 40 bits, spread in halves until each byte holds five of them.
    let bits = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
    let bits = (bits & 0xff_fff0_0000) << 12 | bits & 0xf_ffff;
    let bits = (bits & 0x000f_fc00_000f_fc00) << 6 | bits & 0x0000_03ff_0000_03ff;
    let bits = (bits & 0x03e0_03e0_03e0_03e0) << 3 | bits & 0x001f_001f_001f_001f;
    // `a` to `z` are 0 to 25; `2` to `7` are 26 to 31, and `2` is 73 below the character that would follow `z`.
    let beyond_z = (bits + EACH * (128 - 26)) >> 7 & EACH;
    (bits + EACH * b'a' as u64 - beyond_z * 73).to_be_bytes()
}

/// 1 in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;

/// 26 letters are 130 bits: 16 bytes and two bits that must be 0, so that a key has one spelling.
fn read_base32(letters: &str) -> Option<[u8; 16]> {
    let (last, most) = letters.as_bytes().split_last()?;
    if most.len() != 25 {
        return None;
    }
    let five = |letter: &u8| match letter {
        b'a'..=b'z' => Some(u128::from(letter - b'a')),
        b'2'..=b'7' => Some(u128::from(letter - b'2' + 26)),
        _ => None,
    };
    let bits = most.iter().try_fold(0_u128, |bits, letter| Some(bits << 5 | five(letter)?))?;
    let end = five(last)?;
    (end & 3 == 0).then(|| (bits << 3 | end >> 2).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Goal: a key survives its text, and the text is what every base32 library makes. Method: any bytes.
        #[test]
        fn a_key_survives_its_text(bytes: [u8; 16]) {
            let text = KeyHash(bytes).text();
            prop_assert_eq!(text.len(), KEY_TEXT_LENGTH);
            let library = data_encoding::BASE32_NOPAD.encode(&bytes).to_lowercase();
            prop_assert_eq!(text.as_str(), format!("h1_{library}"));
            prop_assert_eq!(text.parse(), Ok(KeyHash(bytes)));
            prop_assert_eq!(KeyHash(bytes).prefixed_text("a-b", "c").parse(), Ok(KeyHash(bytes)));
        }
    }

    /// Goal: a key has one spelling. Method: texts that are nearly one.
    #[test]
    fn a_text_that_is_nearly_a_key_is_none() {
        let good = KeyHash([0xff; 16]).text().to_string();
        assert_eq!(good, format!("h1_{}4", "7".repeat(25)));
        let upper = good.to_uppercase();
        let loose_bits = format!("{}5", &good[..28]);
        for text in ["", "h1_", "h1_é", &good[1..], &good[..28], &upper, &loose_bits, &format!("{good}a")] {
            assert_eq!(text.parse::<KeyHash>(), Err(NoKey(text.to_owned())));
        }
    }

    /// Goal: the readable part is safe anywhere and gives way first. Method: odd names, long names.
    #[test]
    fn a_prefix_is_sanitised_and_cut_first() {
        let key = KeyHash([7; 16]);
        assert_eq!(key.prefixed_text("sales_production", "orders"), format!("sales_production-orders-{key}"));
        assert_eq!(key.prefixed_text("a b", "ö'-x"), format!("a_b-___x-{key}"));
        let long = key.prefixed_text(&"d".repeat(80), "t");
        assert_eq!(long, format!("{}-{key}", "d".repeat(70)));
        assert_eq!(long.len(), PREFIXED_KEY_LENGTH_MAX);
    }
}
