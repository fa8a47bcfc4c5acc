//! One text per number, however it was spelled.
//!
//! Canonical: `-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?`, written out without an exponent; zero has no sign.
//! Invariant: equal numbers give equal texts, different numbers different ones; whether a number is refused depends on
//! its value alone.

use std::borrow::Cow;

/// How many digits a number in a key may have before the point, and how many after it, once written out.
pub const NUMBER_DIGITS_MAX: usize = 4096;

/// A text that is no JSON number, or a number with more than [`NUMBER_DIGITS_MAX`] digits on a side of its point.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Extreme;

/// The canonical text of a JSON number; borrowed if it is a plain integer already.
pub(super) fn canonical(text: &str) -> Result<Cow<'_, str>, Extreme> {
    if is_plain_integer(text) { Ok(Cow::Borrowed(text)) } else { rewrite(text).map(Cow::Owned) }
}

fn is_plain_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let well_begun = digits.first().is_some_and(|first| *first != b'0') || text == "0";
    well_begun && digits.len() <= NUMBER_DIGITS_MAX && digits.iter().all(u8::is_ascii_digit)
}

fn rewrite(text: &str) -> Result<String, Extreme> {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (digits(whole)?, digits(fraction)?),
        None => (digits(mantissa)?, ""),
    };
    let all = [whole, fraction].concat();
    let from_first = all.trim_start_matches('0');
    let significant = from_first.trim_end_matches('0');
    if significant.is_empty() {
        return Ok("0".to_owned());
    }
    // The value is 0.significant × 10^point.
    let leading = all.len() - from_first.len();
    let point = exponent.saturating_add(signed(whole.len())).saturating_sub(signed(leading));
    let before = bounded(point)?;
    let after = bounded(signed(significant.len()).saturating_sub(point))?;
    Ok(if before == 0 {
        format!("{sign}0.{significant:0>after$}")
    } else if after == 0 {
        format!("{sign}{significant:0<before$}")
    } else {
        format!("{sign}{}.{}", &significant[..before], &significant[before..])
    })
}

/// How many digits a side of the point has; a negative count is none.
fn bounded(count: i64) -> Result<usize, Extreme> {
    let count = usize::try_from(count.max(0)).map_err(|_| Extreme)?;
    if count <= NUMBER_DIGITS_MAX { Ok(count) } else { Err(Extreme) }
}

fn digits(text: &str) -> Result<&str, Extreme> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) { Ok(text) } else { Err(Extreme) }
}

fn read_exponent(text: &str) -> Result<i64, Extreme> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    // Beyond 18 digits only zero is small enough for a key, and zero is zero with any exponent.
    let size = digits(unsigned)?.parse().unwrap_or(i64::MAX);
    Ok(if negative { -size } else { size })
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: the rule's corners. Method: one line for each, several spellings of one number in a row.
    #[test]
    fn spellings_of_one_number_have_one_text() {
        let cases: [(&str, &[&str]); 10] = [
            ("1", &["1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "100e-02", "1.000"]),
            ("0", &["0", "-0", "0.0", "-0.00", "0e9", "0e99999999999999999999", "-0e-7"]),
            ("0.1", &["0.1", "0.10", "1e-1", "0.01e1"]),
            ("-12.5", &["-12.5", "-12.50", "-125e-1", "-0.125e2"]),
            ("12300", &["12300", "123e2", "1.23E4", "12300.0"]),
            ("100", &["100", "1e2", "1000e-1"]),
            ("0.000001", &["1e-6", "0.000001", "0.0000010"]),
            ("9007199254740993", &["9007199254740993", "9007199254740993.0", "9.007199254740993e15"]),
            ("123456789012345678901234567890", &["123456789012345678901234567890", "12345678901234567890123456789e1"]),
            ("0.30000000000000004", &["0.30000000000000004", "30000000000000004e-17"]),
        ];
        for (text, spellings) in cases {
            for spelling in spellings {
                assert_eq!(canonical(spelling).as_deref(), Ok(text), "{spelling}");
            }
        }
    }

    /// Goal: refusal depends on the value, not on the spelling. Method: both sides of both bounds, two ways.
    #[test]
    fn the_bound_is_on_the_number_not_on_its_spelling() {
        let zeros = |count| "0".repeat(count);
        assert_eq!(canonical("1e4095"), Ok(format!("1{}", zeros(4095)).into()));
        assert_eq!(canonical("1e-4096"), Ok(format!("0.{}1", zeros(4095)).into()));
        for extreme in ["1e4096", "1e-4097", "-1e999999999999999999999", "1e-9223372036854775808"] {
            assert_eq!(canonical(extreme), Err(Extreme), "{extreme}");
        }
        assert_eq!(canonical(&format!("1{}", zeros(4096))), Err(Extreme));
        assert_eq!(canonical(&format!("1{}e-5000", zeros(5000))), Ok("1".into()));
        assert_eq!(canonical(&format!("0.{}1e5001", zeros(5000))), Ok("1".into()));
    }

    /// Goal: no panic and no key for what is no number. Method: such texts.
    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "-", "+1", ".5", "1.", "1e", "1e+", "e1", "NaN", "Infinity", "0x1", "1 ", "--1", "1e1.5", "١"]
        {
            assert_eq!(canonical(text), Err(Extreme), "{text}");
        }
    }

    /// The same number with the point moved by `shift` digits, zeros at both ends and the exponent to match.
    fn respell(mantissa: i64, exponent: i32, shift: usize, zeros: usize) -> String {
        let sign = if mantissa < 0 { "-" } else { "" };
        let padded = format!("{:0>width$}", mantissa.unsigned_abs(), width = shift + 1);
        let (whole, fraction) = padded.split_at(padded.len() - shift);
        let exponent = exponent + i32::try_from(shift).unwrap();
        format!("{sign}{}{whole}.{fraction}{}E{exponent:+}", "0".repeat(zeros), "0".repeat(zeros + 1))
    }

    proptest! {
        /// Goal: respelling never changes the text. Method: move the point, add zeros.
        #[test]
        fn respelled_numbers_agree(mantissa: i64, exponent in -300..300_i32, shift in 0..40_usize, zeros in 0..5_usize) {
            let plain = format!("{mantissa}e{exponent}");
            let respelled = respell(mantissa, exponent, shift, zeros);
            prop_assert_eq!(canonical(&plain), canonical(&respelled), "{} {}", plain, respelled);
        }

        /// Goal: different numbers have different texts, and a text is its own canonical form. Method: scale both to integers.
        #[test]
        fn different_numbers_differ(a in -1000..1000_i128, b in -1000..1000_i128, x in 0..12_u32, y in 0..12_u32) {
            let (left, right) = (canonical_of(a, x), canonical_of(b, y));
            prop_assert_eq!(left == right, a * 10_i128.pow(x) == b * 10_i128.pow(y));
            prop_assert_eq!(canonical(&left), Ok(left.as_str().into()));
        }
    }

    /// `mantissa` × 10^(`exponent` − 6): on both sides of the point.
    fn canonical_of(mantissa: i128, exponent: u32) -> String {
        canonical(&format!("{mantissa}e{}", i64::from(exponent) - 6)).unwrap().into_owned()
    }
}
