use hapax_model::field::FieldValue;
use hapax_model::key::KeyHash;
use hapax_model::mode::ConflictMode;
use proptest::prelude::*;

use super::super::rig::{Rig, keyed};
use super::*;
use crate::table::column::{LiveColumn as _, MISFIT, NULL, StoredValue as _};

fn column(kind: Kind) -> MysqlColumn {
    MysqlColumn {
        name: "c".into(),
        declared: "declared".into(),
        kind,
        members: vec!["sad".into(), "glad".into()],
        collation: None,
        required: false,
        fills_itself: false,
    }
}

fn stored<'a>(kind: Kind, value: FieldValue<'a>) -> Option<Stored<'a>> {
    field(&column(kind), value.into()).ok()
}

fn text(text: &str) -> Stored<'_> {
    Stored::Text(Cow::Borrowed(text.as_bytes()))
}

/// Goal: whole numbers of any spelling fit within the range of their column, and nothing else does. Method: both sides
/// of each limit, of all widths and signs.
#[test]
fn integer_columns_take_what_is_in_their_range() {
    for (bits, sign, least, most, under, over) in [
        (8, Sign::Signed, "-128", "127", "-129", "128"),
        (8, Sign::Unsigned, "0", "255", "-1", "256"),
        (16, Sign::Signed, "-32768", "32767", "-32769", "32768"),
        (24, Sign::Signed, "-8388608", "8388607", "-8388609", "8388608"),
        (24, Sign::Unsigned, "0", "16777215", "-1", "16777216"),
        (32, Sign::Signed, "-2147483648", "2147483647", "-2147483649", "2147483648"),
        (32, Sign::Unsigned, "0", "4294967295", "-1", "4294967296"),
        (
            64,
            Sign::Signed,
            "-9223372036854775808",
            "9223372036854775807",
            "-9223372036854775809",
            "9223372036854775808",
        ),
        (64, Sign::Unsigned, "0", "18446744073709551615", "-1", "18446744073709551616"),
    ] {
        let kind = Kind::Int { bits, sign };
        for good in [least, most, "1e2", "100.0"] {
            assert!(stored(kind, FieldValue::Number(good)).is_some(), "{kind:?} {good}");
        }
        for bad in [under, over, "1.5", "1e30", "-1e30"] {
            assert_eq!(stored(kind, FieldValue::Number(bad)), None, "{kind:?} {bad}");
        }
        assert_eq!(stored(kind, FieldValue::Text("1")), Some(Stored::Integer(1)));
        for text in ["", "x", "007", " 1", "1.5", over] {
            assert_eq!(stored(kind, FieldValue::Text(text)), None, "{text:?}");
        }
        assert_eq!(stored(kind, FieldValue::Bool(true)), Some(Stored::Integer(1)));
    }
    let wide = Kind::Int { bits: 64, sign: Sign::Unsigned };
    assert_eq!(stored(wide, FieldValue::Number("18446744073709551615")), Some(Stored::Unsigned(u64::MAX)));
    assert_eq!(stored(Kind::Bit { bits: 3 }, FieldValue::Number("7")), Some(Stored::Integer(7)));
    assert_eq!(stored(Kind::Bit { bits: 3 }, FieldValue::Number("8")), None);
    assert_eq!(
        stored(Kind::Bit { bits: 64 }, FieldValue::Number("18446744073709551615")),
        Some(Stored::Unsigned(u64::MAX))
    );
    assert_eq!(stored(Kind::Year, FieldValue::Number("2026")), Some(Stored::Integer(2026)));
    assert_eq!(stored(Kind::Year, FieldValue::Number("26")), None);
}

/// Goal: decimals fit exactly or not at all, and travel without an exponent. Method: around precision and scale.
#[test]
fn a_decimal_is_never_rounded() {
    let of = |sign| Kind::Decimal { precision: 5, scale: 2, sign };
    let signed = of(Sign::Signed);
    for (given, sent) in
        [("999.99", "999.99"), ("-0.01", "-0.01"), ("1.500", "1.500"), ("1e2", "100"), ("15e-1", "1.5"), ("0e9", "0")]
    {
        assert_eq!(stored(signed, FieldValue::Number(given)), Some(Stored::Decimal(Cow::Borrowed(sent))), "{given}");
    }
    for bad in ["1000", "0.001", "1e5", "-1000.0", "0.015", "1e-3"] {
        assert_eq!(stored(signed, FieldValue::Number(bad)), None, "{bad}");
    }
    assert_eq!(stored(of(Sign::Unsigned), FieldValue::Number("-1")), None);
    assert_eq!(stored(signed, FieldValue::Text("12.50")), Some(Stored::Decimal("12.50".into())));
    for text in ["NaN", "", " 1", "1 ", "+1", "0x10"] {
        assert_eq!(stored(signed, FieldValue::Text(text)), None, "{text:?}");
    }
    let rounded = Kind::Double { scale: Some(2), sign: Sign::Unsigned };
    assert_eq!(stored(rounded, FieldValue::Number("1.25")), Some(Stored::Double(1.25)));
    assert_eq!(stored(rounded, FieldValue::Number("1.125")), None);
    assert_eq!(stored(rounded, FieldValue::Number("-1")), None);
    let single = Kind::Float { scale: None, sign: Sign::Signed };
    assert_eq!(stored(single, FieldValue::Number("16777217")), None, "a whole number that a float rounds");
}

/// Goal: text is counted in characters or bytes as its type does; bytes are neither cut nor filled up. Method: around
/// the limits.
#[test]
fn text_and_bytes_fit_by_their_length() {
    let three = Kind::Text { most: Longest::Characters(3) };
    assert_eq!(stored(three, FieldValue::Text("äöü")), Some(text("äöü")));
    assert_eq!(stored(three, FieldValue::Text("äöüx")), None);
    assert_eq!(stored(Kind::Text { most: Longest::Bytes(3) }, FieldValue::Text("äö")), None);
    assert_eq!(stored(three, FieldValue::Text("a\0b")), Some(text("a\0b")));
    assert_eq!(stored(Kind::Char { most: 3 }, FieldValue::Text("a    ")), Some(text("a")));
    assert_eq!(stored(Kind::Binary { length: 2 }, FieldValue::Text("ä")), Some(Stored::Bytes("ä".as_bytes())));
    assert_eq!(stored(Kind::Binary { length: 2 }, FieldValue::Text("a")), None);
    assert_eq!(stored(Kind::Bytes { most: 2 }, FieldValue::Text("abc")), None);
    assert_eq!(stored(Kind::Bytes { most: 2 }, FieldValue::Number("1")), None);
}

/// Goal: only declared members are taken, as they are declared. Method: other case, several, an array.
#[test]
fn members_are_taken_as_declared() {
    assert_eq!(stored(Kind::Enum, FieldValue::Text("glad")), Some(text("glad")));
    assert_eq!(stored(Kind::Enum, FieldValue::Text("Glad")), None);
    assert_eq!(stored(Kind::Enum, FieldValue::Number("1")), None, "never by its number");
    assert_eq!(stored(Kind::Set, FieldValue::Text("sad,glad")), Some(text("sad,glad")));
    assert_eq!(stored(Kind::Set, FieldValue::Json(r#"["glad", "sad"]"#)), Some(text("glad,sad")));
    assert_eq!(stored(Kind::Set, FieldValue::Text("")), Some(text("")));
    assert_eq!(stored(Kind::Set, FieldValue::Json(r#"["no"]"#)), None);
    assert_eq!(stored(Kind::Set, FieldValue::Json(r#"{"a":1}"#)), None);
}

/// Goal: a rejection names column, type and value, and its fingerprint leaves the value out. Method: each kind of it.
#[test]
fn a_misfit_is_named_with_its_value() {
    let cause = field(&column(Kind::Date), FieldBytes::Text(b"0000-00-00")).unwrap_err();
    assert_eq!(cause.code, MISFIT);
    assert_eq!(
        cause.message,
        "column \"c\" (declared) takes days of the calendar, and there is no such day: 0000-00-00"
    );
    assert!(!cause.fingerprint.contains("0000"), "{}", cause.fingerprint);
    let required = MysqlColumn { required: true, ..column(Kind::Date) };
    assert_eq!(field(&required, FieldBytes::Null).unwrap_err().code, NULL);
}

proptest! {
    /// Goal: decimals are ordered as numbers, and equal ones are one key. Method: any two against exact arithmetic.
    #[test]
    fn decimals_are_ordered_as_numbers(a in -100_000_i64..100_000, b in -100_000_i64..100_000, p in 0_u32..6, q in 0_u32..6) {
        let kind = Kind::Decimal { precision: 30, scale: 10, sign: Sign::Signed };
        let (x, y) = (format!("{a}e-{p}"), format!("{b}e-{q}"));
        let (one, two) = (stored(kind, FieldValue::Number(&x)).unwrap(), stored(kind, FieldValue::Number(&y)).unwrap());
        let exact = (a * 10_i64.pow(6 - p)).cmp(&(b * 10_i64.pow(6 - q)));
        prop_assert_eq!(one.order(&two), exact, "{} {}", x, y);
        let key = |value: &Stored<'_>| { let mut bytes = Vec::new(); value.append_key(&mut bytes); bytes };
        prop_assert_eq!(key(&one) == key(&two), exact.is_eq(), "{} {}", x, y);
    }
}

/// Goal: what is stored reads back as the same value. Method: a value of every type, in rows of their own and together.
#[tokio::test]
async fn every_type_reads_back_as_it_was_written() {
    let cases = [
        ("boolean", "true", "1"),
        ("tinyint", "-128", "-128"),
        ("tinyint unsigned", "255", "255"),
        ("smallint unsigned", "65535", "65535"),
        ("mediumint", "-8388608", "-8388608"),
        ("int(5) zerofill", "42", "00042"),
        ("bigint", "-9223372036854775808", "-9223372036854775808"),
        ("bigint unsigned", "18446744073709551615", "18446744073709551615"),
        ("decimal(65,30)", "-12345678901234567890.0001", "-12345678901234567890.000100000000000000000000000000"),
        ("decimal(9,3)", "\"12.5\"", "12.500"),
        ("decimal(9,7)", "1e-7", "0.0000001"),
        ("float", "1.5", "1.5"),
        ("double", "1e-300", "1e-300"),
        ("double(6,2)", "1.25", "1.25"),
        ("bit(9)", "257", "\u{1}\u{1}"),
        ("year", "2155", "2155"),
        ("char(3)", "\"a  \"", "a"),
        ("varchar(3)", "\"äöü\"", "äöü"),
        ("varchar(9)", "\"a \\u0000b \"", "a \0b "),
        ("tinytext", "\"𝄞\"", "𝄞"),
        ("longtext", "12.50", "12.50"),
        ("binary(3)", "\"abc\"", "abc"),
        ("varbinary(3)", "\"a\\u0000b\"", "a\0b"),
        ("blob", "[1, 2]", "[1, 2]"),
        ("date", "\"2026-11-16\"", "2026-11-16"),
        ("time", "\"03:25:42\"", "03:25:42"),
        ("time(6)", "\"-838:59:58.000001\"", "-838:59:58.000001"),
        ("datetime", "\"0001-01-01T00:00:00Z\"", "0001-01-01 00:00:00"),
        ("datetime(3)", "\"2026-11-16T03:25:42.5+01:00\"", "2026-11-16 02:25:42.500"),
        ("timestamp(6) NULL", "\"2026-11-16T03:25:42.000001+01:00\"", "2026-11-16 02:25:42.000001"),
        ("enum('sad','it''s')", "\"it's\"", "it's"),
        ("set('a','b','c')", "[\"c\",\"a\"]", "a,c"),
        ("json", "{\"a\": [1, 2.50]}", "{\"a\": [1, 2.50]}"),
        ("json", "\"plain\"", "\"plain\""),
        ("uuid", "\"F0000000-0000-0000-0000-00000000000a\"", "f0000000-0000-0000-0000-00000000000a"),
        ("inet6", "\"::1\"", "::1"),
        ("inet4", "\"10.0.0.1\"", "10.0.0.1"),
    ];
    let mut ddl = "CREATE TABLE t (id int PRIMARY KEY".to_owned();
    for (at, (declared, _, _)) in cases.iter().enumerate() {
        ddl.push_str(&format!(", c{at} {declared}"));
    }
    ddl.push(')');
    let mut rig = Rig::new(&ddl, keyed(ConflictMode::Update)).await;
    let mut inputs: Vec<String> =
        cases.iter().enumerate().map(|(at, (_, json, _))| format!("{{\"id\":{at},\"c{at}\":{json}}}")).collect();
    let all: Vec<String> = cases.iter().enumerate().map(|(at, (_, json, _))| format!("\"c{at}\":{json}")).collect();
    inputs.push(format!("{{\"id\":1000,{}}}", all.join(",")));
    inputs.push(format!("{{\"id\":1001,{}}}", all.join(",")));
    let done = rig.deliver(&inputs.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let letters = "SELECT GROUP_CONCAT(message) FROM hapax_dead_letters";
    assert_eq!(done.dead_inputs, [0; 0], "{:?}", rig.texts(letters).await);
    for (at, (declared, json, expected)) in cases.iter().enumerate() {
        let sql = format!("SELECT c{at} FROM t WHERE c{at} IS NOT NULL");
        assert_eq!(rig.texts(&sql).await, [*expected; 3], "{declared} {json}");
    }
}

/// Goal: what cannot be stored is a dead letter that names its column, whether we or the server found out. Method: one
/// of each kind.
#[tokio::test]
async fn what_does_not_fit_is_refused_with_its_column() {
    let cases = [
        ("tinyint", "128", "HX2020"),
        ("bigint unsigned", "-1", "HX2020"),
        ("decimal(5,2)", "1.005", "HX2020"),
        ("float(5,2)", "1.005", "HX2020"),
        ("varchar(3)", "\"abcd\"", "HX2020"),
        ("binary(3)", "\"ab\"", "HX2020"),
        ("date", "\"2026-02-30\"", "HX2020"),
        ("date", "\"0000-00-00\"", "HX2020"),
        ("datetime(3)", "\"2026-11-16T03:25:42.0001Z\"", "HX2020"),
        ("enum('a')", "\"b\"", "HX2020"),
        ("set('a')", "\"a,b\"", "HX2020"),
        ("year", "99", "HX2020"),
        ("bit(1)", "2", "HX2020"),
        ("uuid", "\"no\"", "HX2020"),
        ("int", "\"1x\"", "HX2020"),
        ("int", "{}", "HX2020"),
        ("varchar(3) CHARACTER SET latin1", "\"жжж\"", "HX2151"),
        ("timestamp NULL", "\"2200-01-01T00:00:00Z\"", "HX2151"),
        ("tinytext CHARACTER SET latin1", "\"LONG\"", "HX2151"),
        ("inet6", "\"no\"", "HX2151"),
        ("point", "\"no\"", "HX2151"),
    ];
    let mut ddl = "CREATE TABLE t (id int PRIMARY KEY".to_owned();
    for (at, (declared, _, _)) in cases.iter().enumerate() {
        ddl.push_str(&format!(", c{at} {declared}"));
    }
    ddl.push(')');
    let mut rig = Rig::new(&ddl, keyed(ConflictMode::Update)).await;
    let long = "x".repeat(256);
    let input = |(at, (_, json, _)): (usize, &(&str, &str, &str))| {
        format!("{{\"id\":{at},\"c{at}\":{}}}", json.replace("LONG", &long))
    };
    let inputs: Vec<String> = cases.iter().enumerate().map(input).collect();
    rig.deliver(&inputs.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let found = rig.texts("SELECT CONCAT(position, ' ', code) FROM hapax_dead_letters ORDER BY id").await;
    let expected: Vec<String> = cases.iter().enumerate().map(|(at, (_, _, code))| format!("{at} {code}")).collect();
    assert_eq!(found, expected, "{:?}", rig.texts("SELECT message FROM hapax_dead_letters ORDER BY id").await);
    // A geometry's error names no column.
    let named = "SELECT position FROM hapax_dead_letters WHERE message NOT LIKE CONCAT('%c', position, '%')";
    assert_eq!(rig.texts(named).await, ["20"]);
    assert_eq!(rig.texts("SELECT count(*) FROM t").await, ["0"]);
}

/// Goal: a hash fits where it fits. Method: columns of each kind.
#[test]
fn a_key_takes_the_form_of_its_column() {
    let hash = KeyHash([7; 16]);
    assert_eq!(column(Kind::Binary { length: 16 }).key(hash), Stored::KeyBytes(hash));
    assert!(matches!(column(Kind::Char { most: 29 }).key(hash), Stored::KeyText(_)));
    for (kind, fits) in [
        (Kind::Binary { length: 16 }, true),
        (Kind::Binary { length: 20 }, false),
        (Kind::Bytes { most: 16 }, true),
        (Kind::Text { most: Longest::Characters(29) }, true),
        (Kind::Text { most: Longest::Characters(28) }, false),
        (Kind::Int { bits: 64, sign: Sign::Signed }, false),
    ] {
        assert_eq!(column(kind).holds_hash(), fits, "{kind:?}");
    }
    assert!(
        column(Kind::Binary { length: 18 }).holds_version() && !column(Kind::Binary { length: 16 }).holds_version()
    );
}
