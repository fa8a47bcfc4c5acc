//! Kafka's zigzag numbers of variable length, read from untrusted bytes.

/// Takes a 32-bit number off the front; `None` if it is cut short or too long.
#[inline]
pub(crate) fn take_i32(bytes: &mut &[u8]) -> Option<i32> {
    let number = take_unsigned(bytes, 5)?;
    let number = u32::try_from(number).ok()?;
    Some((number >> 1) as i32 ^ -((number & 1) as i32))
}

/// Takes a 64-bit number off the front; `None` if it is cut short or too long.
#[inline]
pub(crate) fn take_i64(bytes: &mut &[u8]) -> Option<i64> {
    take_unsigned(bytes, 10).map(zigzag)
}

/// The signed number that an unsigned one stands for.
#[inline]
pub(crate) fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[inline]
fn take_unsigned(bytes: &mut &[u8], longest: usize) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    let mut number = u64::from(first & 0x7f);
    for (index, &byte) in rest.iter().take(longest - 1).enumerate() {
        let shift = 7 * (index as u32 + 1);
        // The tenth byte has room for one bit only.
        if shift == 63 && byte > 1 {
            return None;
        }
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            *bytes = &rest[index + 1..];
            return Some(number);
        }
    }
    None
}

/// Appends a 32-bit number.
pub(crate) fn put_i32(out: &mut Vec<u8>, number: i32) {
    put_unsigned(out, u64::from(((number << 1) ^ (number >> 31)) as u32));
}

/// Appends a 64-bit number.
pub(crate) fn put_i64(out: &mut Vec<u8>, number: i64) {
    put_unsigned(out, ((number << 1) ^ (number >> 63)) as u64);
}

fn put_unsigned(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: both widths come back. Method: the edges of every length.
    #[test]
    fn numbers_survive_writing_and_reading() {
        for shift in 0..63 {
            for number in [1_i64 << shift, (1 << shift) - 1, -(1 << shift), i64::MIN, i64::MAX] {
                let mut out = Vec::new();
                put_i64(&mut out, number);
                let mut rest = out.as_slice();
                assert_eq!(take_i64(&mut rest), Some(number));
                assert!(rest.is_empty());
                if let Ok(small) = i32::try_from(number) {
                    let mut out = Vec::new();
                    put_i32(&mut out, small);
                    assert_eq!(take_i32(&mut out.as_slice()), Some(small));
                }
            }
        }
    }

    /// Goal: bad numbers are refused. Method: empty, cut short, too long, too wide.
    #[test]
    fn numbers_that_are_cut_or_too_long_are_refused() {
        for bytes in
            [&[][..], &[0x80], &[0xff; 5], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01], &[0xff, 0xff, 0xff, 0xff, 0x1f]]
        {
            assert_eq!(take_i32(&mut { bytes }), None, "{bytes:?}");
        }
        for bytes in [&[0x80; 10][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]] {
            assert_eq!(take_i64(&mut { bytes }), None, "{bytes:?}");
        }
    }
}
