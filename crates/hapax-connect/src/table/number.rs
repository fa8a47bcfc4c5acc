//! JSON numbers as databases hold them: exactly, or not at all.
//!
//! Pure. Not here: which column takes which kind of number (each dialect's `convert`).

/// A whole number of at most eighteen digits, which cannot overflow.
#[must_use]
pub fn short_integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = bytes.strip_prefix(b"-").map_or((false, bytes), |rest| (true, rest));
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// The whole number that a JSON number is: `1`, `1.0`, `1e3`.
#[must_use]
pub fn integer(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| integral_decimal(text))
}

fn integral_decimal(text: &str) -> Option<i64> {
    let number = Decimal::parse(text)?;
    if number.digits.is_empty() {
        return Some(0);
    }
    let zeros = usize::try_from(number.exponent).ok().filter(|zeros| number.digits.len() + zeros <= 19)?;
    format!("{}{}{}", number.sign, number.digits, "0".repeat(zeros)).parse().ok()
}

/// The double that a JSON number is: a whole number must be that double exactly, any other number must be what the
/// double shows when it is printed with as many digits. So 0.1 and 0.30000000000000004 are doubles, and
/// 3.14159265358979323846, 1e400 and 1e-400 are none.
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    shows(text, value, if value.is_normal() { 15 } else { 0 }).then_some(value)
}

/// The same for a float of 32 bits, which must show the number by itself: 123456.789 would come back as 123456.79.
#[must_use]
pub fn single(text: &str) -> Option<f32> {
    let value: f32 = text.parse().ok().filter(|value: &f32| value.is_finite())?;
    let shortest = || Decimal::parse(&format!("{value:e}")) == Decimal::parse(text);
    (shows(text, value.into(), if value.is_normal() { 6 } else { 0 }) && shortest()).then_some(value)
}

/// Whether the value shows the digits of the number as it was written; `sure` many always survive.
fn shows(text: &str, value: f64, sure: usize) -> bool {
    let is_whole_as_written = !text.contains(['.', 'e', 'E']);
    if text.len() <= sure && !text.contains(['e', 'E']) {
        return true;
    }
    let Some(written) = Decimal::parse(text) else { return false };
    let digits = written.digits.len();
    let shown = match digits {
        0 => return true,
        _ if is_whole_as_written => format!("{value:.0}"),
        _ if digits <= sure => return true,
        _ => format!("{value:.*e}", digits - 1),
    };
    Decimal::parse(&shown) == Some(written)
}

/// The text, if it is spelled as a JSON number.
#[must_use]
pub fn spelled_number(bytes: &[u8]) -> Option<&str> {
    fn digits(bytes: &[u8]) -> Option<&[u8]> {
        let end = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (end > 0).then(|| &bytes[end..])
    }
    let rest = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let mut rest = match rest.strip_prefix(b"0") {
        Some(rest) => rest,
        None => digits(rest)?,
    };
    if let Some(behind) = rest.strip_prefix(b".") {
        rest = digits(behind)?;
    }
    if let [b'e' | b'E', behind @ ..] = rest {
        rest = digits(behind.strip_prefix(b"-").or_else(|| behind.strip_prefix(b"+")).unwrap_or(behind))?;
    }
    rest.is_empty().then(|| std::str::from_utf8(bytes).ok()).flatten()
}

/// A text that is just what its number reads back as: `1000` and `1.5`, and neither `1e3`, `1.50` nor `1.0`.
#[must_use]
pub fn plain_number(bytes: &[u8]) -> Option<&str> {
    let text = spelled_number(bytes)?;
    let is_integer = || text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    let is_double = || text.contains('.') && text.parse::<f64>().is_ok_and(|number| number.to_string() == text);
    (is_integer() || is_double()).then_some(text)
}

/// Whether a text is a number as people write it, with a minus sign, zeros at its beginning, a point at its beginning or end. All that
/// reads a number here reads these.
#[must_use]
pub fn is_written_number(bytes: &[u8]) -> bool {
    fn digits(bytes: &[u8]) -> (usize, &[u8]) {
        let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count, &bytes[count..])
    }
    let (before, rest) = digits(bytes.strip_prefix(b"-").unwrap_or(bytes));
    let (behind, rest) = rest.strip_prefix(b".").map_or((0, rest), digits);
    let exponent = match rest {
        [b'e' | b'E', b'-' | b'+', exponent @ ..] | [b'e' | b'E', exponent @ ..] => Some(exponent),
        _ => None,
    };
    let is_whole = |exponent: &[u8]| !exponent.is_empty() && digits(exponent).1.is_empty();
    before + behind > 0 && exponent.map_or(rest.is_empty(), is_whole)
}

/// The boolean that a text spells: `true`, `t`, `1` or `false`, `f`, `0`, in upper or lower case.
#[must_use]
pub fn spelled_boolean(text: &[u8]) -> Option<bool> {
    let is = |word: &[u8]| text.eq_ignore_ascii_case(word);
    match text {
        _ if is(b"true") || is(b"t") || text == b"1" => Some(true),
        _ if is(b"false") || is(b"f") || text == b"0" => Some(false),
        _ => None,
    }
}

/// Whether a double still has all digits of the number as it was written.
#[must_use]
pub fn keeps_digits(text: &str, value: f64) -> bool {
    let written = Decimal::parse(text);
    // Fifteen digits always survive.
    written.as_ref().is_some_and(|written| written.digits.len() <= 15 && value.is_normal())
        || written == Decimal::parse(&format!("{value:e}"))
}

/// A decimal number as sign, digits without zeros at either end, and the power of ten of the last digit.
#[derive(Debug, PartialEq, Eq)]
pub struct Decimal {
    /// `-` or nothing.
    pub sign: &'static str,
    /// No zeros at either end; empty for zero.
    pub digits: String,
    /// The power of ten of the last digit.
    pub exponent: i64,
}

impl Decimal {
    /// Reads a JSON number; none if its exponent is beyond all reason.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{before}{after}");
        let digits = all.trim_end_matches('0');
        let dropped = i64::try_from(all.len() - digits.len()).ok()?;
        let behind_point = i64::try_from(after.len()).ok()?;
        let exponent = exponent.parse::<i64>().ok()?.checked_sub(behind_point)?.checked_add(dropped)?;
        let digits = digits.trim_start_matches('0').to_owned();
        match digits.is_empty() {
            true => Some(Self { sign: "", digits, exponent: 0 }),
            false => Some(Self { sign, digits, exponent }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a float takes what it can show again, and refuses what it would round. Method: both sides of each limit.
    #[test]
    fn a_float_takes_what_it_can_show_again() {
        for text in [
            "0",
            "-0",
            "0.0",
            "0.1",
            "-12.50",
            "0.30000000000000004",
            "0.10000000000000001",
            "1e22",
            "1.7976931348623157e308",
            "5e-324",
            "9007199254740992",
            "100000000000000000000",
            "123456789012345",
        ] {
            assert_eq!(double(text), Some(text.parse().unwrap()), "{text}");
        }
        for text in [
            "1e400",
            "-1e400",
            "1e-400",
            "3e-324",
            "9007199254740993",
            "3.14159265358979323846",
            "0.1000000000000000055",
            "100000000000000000000000",
            "36028797018963970",
        ] {
            assert_eq!(double(text), None, "{text}");
        }
        for text in ["0.1", "16777216", "3.4028235e38", "1e-45", "0.333333"] {
            assert_eq!(single(text), Some(text.parse().unwrap()), "{text}");
        }
        for text in ["16777217", "3.5e38", "1.23456789", "123456.789", "0.30000000000000004", "1e-46", "33554433"] {
            assert_eq!(single(text), None, "{text}");
        }
    }

    /// Goal: numbers as people write them are told from what is none, and read alike by all. Method: both kinds; each number by its
    /// digits, as a double, and as a whole number.
    #[test]
    fn a_written_number_is_read_alike_by_all() {
        for (text, value) in [
            (".5", 0.5),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("-05.", -5.0),
            ("007.50", 7.5),
            (".5e1", 5.0),
            ("5.e-1", 0.5),
            ("1E+2", 100.0),
        ] {
            assert!(is_written_number(text.as_bytes()), "{text}");
            let plain = format!("{value:?}");
            assert_eq!((Decimal::parse(text), double(text)), (Decimal::parse(&plain), Some(value)), "{text}");
            assert_eq!(integer(text), integer(&plain), "{text}");
        }
        for text in ["", "-", ".", "-.", "+1", ".e1", "1e", "1e+", "1.2.3", " 1", "1 ", "0x10", "NaN", "--1", "1-", "١"]
        {
            assert!(!is_written_number(text.as_bytes()), "{text}");
        }
    }

    /// Goal: no two plain texts are one number, and none reads back as another text. Method: texts of both kinds.
    #[test]
    fn a_plain_number_reads_back_as_its_text() {
        for text in ["0", "10", "-7", "9223372036854775807", "1.5", "-0.25", "20261118"] {
            assert_eq!(plain_number(text.as_bytes()), Some(text));
        }
        for text in ["1e3", "10e2", "1.50", "1.0", "007", "-0", "+5", "0e0", "", "9223372036854775808", "1.", ".5", "x"]
        {
            assert_eq!(plain_number(text.as_bytes()), None, "{text}");
        }
    }

    /// Goal: text counts as a number only if JSON would spell it so. Method: both kinds.
    #[test]
    fn a_text_is_a_number_if_json_spells_it_so() {
        for text in ["0", "-0", "12", "1.50", "-1e3", "1E+05", "0.1e-7", "12345678901234567890", "1e400"] {
            assert_eq!(spelled_number(text.as_bytes()), Some(text));
        }
        for text in ["", "-", "007", "+1", ".5", "5.", "1e", "1e+", " 1", "1 ", "0x10", "1_0", "NaN", "1,5", "١"] {
            assert_eq!(spelled_number(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            (spelled_boolean(b"TRUE"), spelled_boolean(b"f"), spelled_boolean(b"yes")),
            (Some(true), Some(false), None)
        );
    }
}
