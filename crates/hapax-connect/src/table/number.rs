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

/// The double that a JSON number is. A whole number must be that double exactly; a fraction becomes the nearest.
#[must_use]
pub fn double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
    let is_whole_as_written = !text.contains(['.', 'e', 'E']);
    match is_whole_as_written {
        true if Decimal::parse(text)?.digits.len() > 15 => keeps_digits(text, value).then_some(value),
        true | false => Some(value),
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
