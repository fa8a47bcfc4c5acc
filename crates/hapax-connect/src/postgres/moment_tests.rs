use proptest::prelude::*;

use super::*;
use crate::table::moment::{LEAP, NO_DATE, NO_MOMENT, NO_SUCH_DAY, NO_SUCH_TIME, TOO_FINE};

/// Goal: dates are counted as PostgreSQL counts them. Method: around its epoch, leap years and the ends.
#[test]
fn days_are_counted_from_the_year_2000() {
    for (text, days) in [
        ("2000-01-01", 0),
        ("1999-12-31", -1),
        ("2000-02-29", 59),
        ("2000-03-01", 60),
        ("1970-01-01", -10_957),
        ("2026-11-16", 9_816),
        ("9999-12-31", 2_921_939),
        ("+10000-01-01", 2_921_940),
        ("+5874897-12-31", 2_145_031_948),
        ("0001-01-01", -730_119),
        ("+0000-12-31", -730_120),
        ("-4713-11-24", -2_451_545),
        ("infinity", i32::MAX),
    ] {
        assert_eq!(date(text.as_bytes()), Ok(days), "{text}");
    }
    for (text, flaw) in [
        ("1900-02-29", NO_SUCH_DAY),
        ("2026-13-01", NO_SUCH_DAY),
        ("2026-00-01", NO_SUCH_DAY),
        ("2026-04-31", NO_SUCH_DAY),
        ("0000-01-01", NO_SUCH_DAY),
        ("0000-00-00", NO_SUCH_DAY),
        ("2026-1-1", NO_DATE),
        ("10000-01-01", NO_DATE),
        ("2026-11-16T00:00", NO_DATE),
        ("today", NO_DATE),
        ("", NO_DATE),
        ("-4713-11-23", OUT_OF_RANGE),
        ("+5874898-01-01", OUT_OF_RANGE),
    ] {
        assert_eq!(date(text.as_bytes()), Err(flaw), "{text}");
    }
}

/// Goal: one moment is one number however it is spelled. Method: offsets, separators, fractions.
#[test]
fn a_moment_is_one_number_however_it_is_spelled() {
    let one = timestamp(b"2026-11-16T03:25:42.5Z", 6);
    assert_eq!(one, Ok(9_816 * DAY + 12_342_500_000));
    for text in [
        "2026-11-16 03:25:42.500000",
        "2026-11-16t04:25:42.5+01",
        "2026-11-16T04:55:42.5+01:30",
        "2026-11-16T02:25:42.500000000-0100",
        "2026-11-16T03:25:42,5z",
    ] {
        assert_eq!(timestamp(text.as_bytes(), 6), one, "{text}");
    }
    assert_eq!(timestamp(b"2000-01-01", 6), Ok(0));
    assert_eq!((time(b"00:00", 6), time(b"24:00:00", 6)), (Ok(0), Ok(DAY)));
    assert_eq!(zoned_time(b"03:25:42+01:00", 6), Ok((12_342_000_000, -3600)));
    for (text, flaw) in [
        ("2026-11-16T24:00:00", NO_SUCH_TIME),
        ("2026-11-16T25:00:00", NO_SUCH_TIME),
        ("2026-12-31T23:59:60", LEAP),
        ("2026-02-30T03:25:42", NO_SUCH_DAY),
        ("2026-11-16T03:25:42+16:00", NO_SUCH_OFFSET),
        ("2026-11-16T03:25:42 Europe/Berlin", NO_SUCH_OFFSET),
        ("2026-11-16T3:25", NO_MOMENT),
        ("2026-11-16X03:25", NO_MOMENT),
        ("now", NO_MOMENT),
        ("5", NO_MOMENT),
        ("+294277-01-01", OUT_OF_RANGE),
        ("+9999999-01-01", OUT_OF_RANGE),
    ] {
        assert_eq!(timestamp(text.as_bytes(), 6), Err(flaw), "{text}");
    }
}

/// Goal: nothing is rounded away. Method: more digits than the column keeps.
#[test]
fn digits_that_would_be_lost_are_refused() {
    assert_eq!(time(b"00:00:00.1234567", 6), Err(TOO_FINE));
    assert_eq!(time(b"00:00:00.123456", 3), Err(TOO_FINE));
    assert_eq!(time(b"00:00:00.123000", 3), Ok(123_000));
    assert_eq!(time(b"00:00:00.", 3), Err(NO_TIME));
    assert_eq!(time(b"24:00:00.1", 3), Err(NO_SUCH_TIME));
}

proptest! {
    /// Goal: what is shown is what was read. Method: any moment that PostgreSQL knows, there and back.
    #[test]
    fn a_moment_reads_back_as_it_is_shown(micros in -63_082_281_600_000_000_i64..252_455_616_000_000_000) {
        prop_assert_eq!(timestamp(show_timestamp(micros).as_bytes(), 6), Ok(micros));
        let days = micros.div_euclid(DAY);
        prop_assert_eq!(date(show_date(days).as_bytes()).map(i64::from), Ok(days));
    }
}
