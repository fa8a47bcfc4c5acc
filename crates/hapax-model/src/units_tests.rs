use proptest::prelude::*;

use super::*;

/// Goal: durations mean what they say and print as they are written. Method: each unit, and its text again.
#[test]
fn a_duration_reads_and_prints_in_every_unit() {
    let cases = [("200ms", 200), ("5s", 5000), ("10m", 600_000), ("1h", 3_600_000), ("30d", 2_592_000_000), ("0ms", 0)];
    for (text, millis) in cases {
        assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        assert_eq!(print_duration(Duration::from_millis(millis)), text);
    }
    assert_eq!(parse_duration(" 90 s "), Ok(Duration::from_secs(90)), "space around and before the unit is harmless");
    assert_eq!(print_duration(Duration::from_secs(90)), "90s");
    assert_eq!(print_duration(Duration::from_micros(1500)), "1.5ms");
}

/// Goal: a wrong duration is refused with its reason and the right form. Method: one text per mistake.
#[test]
fn a_wrong_duration_says_what_is_wrong() {
    let cases = [
        ("", "it is empty"),
        ("soon", "it does not begin with a digit"),
        ("-5s", "it does not begin with a digit"),
        ("30", "the unit is missing"),
        ("30 days", "the unit \"days\" is unknown"),
        ("5S", "the unit \"S\" is unknown"),
        ("1h30m", "the unit \"h30m\" is unknown"),
        ("1.5s", "the number is not whole"),
        ("99999999999999999999s", "the number is too large"),
        ("18446744073709551615d", "the number is too large"),
    ];
    for (text, why) in cases {
        let error = parse_duration(text).expect_err(text);
        assert_eq!(error.why, why, "{text}");
        assert!(error.to_string().ends_with("such as 200ms or 30d"), "{error}");
    }
}

/// Goal: sizes in both families of units, and bare bytes. Method: a table, and each text again.
#[test]
fn a_size_reads_binary_and_decimal_units() {
    let cases =
        [("64MiB", 64 << 20), ("16KiB", 16 << 10), ("1GB", 1_000_000_000), ("513", 513), ("0", 0), ("3TiB", 3 << 40)];
    for (text, bytes) in cases {
        assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        assert_eq!(ByteSize(bytes).to_string(), text);
    }
    assert_eq!("512B".parse(), Ok(ByteSize(512)));
    for text in ["64M", "64mib", "1.5GiB", "MiB", "99999999TiB", "-1"] {
        let error = text.parse::<ByteSize>().expect_err(text);
        assert!(error.to_string().contains("such as 64MiB"), "{error}");
    }
}

/// Goal: shares are exact to a part per thousand and never above the whole. Method: a table.
#[test]
fn a_share_is_at_most_the_whole() {
    for (text, parts) in [("10%", 100), ("0.5%", 5), ("100%", 1000), ("0%", 0), ("12.3%", 123)] {
        assert_eq!(text.parse::<Share>().map(Share::per_mille), Ok(parts), "{text}");
        assert_eq!(Share::of_mille(parts).to_string(), text);
    }
    assert_eq!("5‰".parse::<Share>().map(Share::per_mille), Ok(5));
    for text in ["10", "101%", "1001‰", "0.05%", "0.5‰", "ten%", "4294967296%", "1.%"] {
        assert!(text.parse::<Share>().is_err(), "{text}");
    }
}

/// Goal: a rate counts what is due without drift. Method: gaps and dues at round moments.
#[test]
fn a_rate_says_how_many_are_due() {
    for text in ["500/s", "30/m", "7/h"] {
        assert_eq!(text.parse::<Rate>().map(|rate| rate.to_string()), Ok(text.to_owned()));
    }
    let rate: Rate = "500/s".parse().expect("a rate");
    assert_eq!(rate.gap(), Duration::from_millis(2));
    assert_eq!(rate.due(Duration::from_millis(1999)), 999);
    assert_eq!("30/m".parse::<Rate>().expect("a rate").due(Duration::from_secs(61)), 30);
    for text in ["0/s", "500", "500/d", "5.5/s", "/s"] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
    }
}

proptest! {
    /// Goal: nothing is lost between value and text, and no text panics. Method: any value, any text.
    #[test]
    fn a_quantity_survives_its_text(number in any::<u64>(), parts in 0u32..=1000, text in ".{0,12}") {
        let duration = Duration::from_millis(number);
        prop_assert_eq!(parse_duration(&print_duration(duration)), Ok(duration));
        prop_assert_eq!(ByteSize(number).to_string().parse(), Ok(ByteSize(number)));
        prop_assert_eq!(Share::of_mille(parts).to_string().parse(), Ok(Share::of_mille(parts)));
        let read = (parse_duration(&text).is_ok(), text.parse::<ByteSize>().is_ok(), text.parse::<Share>().is_ok());
        prop_assert!(text.starts_with(|c: char| c.is_ascii_digit() || c.is_whitespace()) || read == (false, false, false));
    }
}
