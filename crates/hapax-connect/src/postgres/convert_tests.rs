use hapax_model::field::FieldValue;
use proptest::prelude::*;

use super::super::rig::{Rig, keyed};
use super::*;
use crate::table::column::{LiveColumn as _, MISFIT, NULL};
use hapax_model::mode::ConflictMode;

fn column(kind: Kind) -> PostgresColumn {
    let (name, declared) = ("c".into(), "declared".into());
    PostgresColumn { name, declared, kind, element: kind, required: false, fills_itself: false }
}

fn stored<'a>(kind: Kind, value: FieldValue<'a>) -> Option<Stored<'a>> {
    field(&column(kind), value.into()).ok()
}

fn text(text: &str) -> Stored<'_> {
    Stored::Text(Cow::Borrowed(text.as_bytes()))
}

/// Goal: whole numbers of any spelling fit within the range of their column, and nothing else does. Method: both sides
/// of each limit.
#[test]
fn integer_columns_take_what_is_in_their_range() {
    for (kind, most, over) in [
        (Kind::Int2, "32767", "32768"),
        (Kind::Int4, "2147483647", "2147483648"),
        (Kind::Int8, "9223372036854775807", "9223372036854775808"),
    ] {
        let value: i64 = most.parse().unwrap();
        assert_eq!(stored(kind, FieldValue::Number(most)), Some(Stored::Integer(value)));
        assert_eq!(stored(kind, FieldValue::Number(over)), None);
        assert_eq!(stored(kind, FieldValue::Number("1e3")), Some(Stored::Integer(1000)));
        assert_eq!(stored(kind, FieldValue::Number("1.5")), None);
        assert_eq!(stored(kind, FieldValue::Text("-1")), Some(Stored::Integer(-1)));
        for text in ["", "x", "1.5", "007", " 1", "+1", over] {
            assert_eq!(stored(kind, FieldValue::Text(text)), None, "{text:?}");
        }
        assert_eq!(stored(kind, FieldValue::Bool(true)), Some(Stored::Integer(1)));
    }
}

/// Goal: decimals fit exactly or not at all. Method: around precision and scale, positive and negative.
#[test]
fn a_numeric_is_never_rounded() {
    let take = |limits, text| stored(Kind::Numeric { limits }, FieldValue::Number(text)).is_some();
    for (limits, good, bad) in [
        (Some((5, 2)), ["999.99", "-0.01", "1.500", "1e2", "0e9"], ["1000", "0.001", "1e5", "-1000.0", "0.015"]),
        (Some((3, -2)), ["99900", "100", "0", "-100", "1e4"], ["100000", "150", "1", "1e5", "0.5"]),
        (
            None,
            ["1e131071", "0.1", "-5", "12345678901234567890.5", "1e-16383"],
            ["1e131072", "1e-16384", "1e999999", "-1e200000", "1e-99999"],
        ),
    ] {
        for text in good {
            assert!(take(limits, text), "{limits:?} {text}");
        }
        for text in bad {
            assert!(!take(limits, text), "{limits:?} {text}");
        }
    }
    let kind = Kind::Numeric { limits: None };
    assert_eq!(stored(kind, FieldValue::Text("12.50")), Some(Stored::Numeric("12.50")));
    assert_eq!(stored(kind, FieldValue::Text("-Infinity")), Some(Stored::Numeric("-Infinity")));
    let limited = Kind::Numeric { limits: Some((5, 2)) };
    assert_eq!(stored(limited, FieldValue::Text("NaN")), Some(Stored::Numeric("NaN")));
    assert_eq!(stored(limited, FieldValue::Text("Infinity")), None);
    for text in ["nan", "", " 1", "1 ", "+1", "0x10", "1_0"] {
        assert_eq!(stored(kind, FieldValue::Text(text)), None, "{text:?}");
    }
}

/// Goal: text is counted in characters, without NUL; char(n) without its padding. Method: around the limit.
#[test]
fn text_fits_by_its_characters() {
    let kind = Kind::Text { most: Some(3) };
    assert_eq!(stored(kind, FieldValue::Text("äöü")), Some(text("äöü")));
    assert_eq!(stored(kind, FieldValue::Text("äöüx")), None);
    assert_eq!(stored(kind, FieldValue::Number("1.50")), None);
    assert_eq!(stored(Kind::Text { most: None }, FieldValue::Number("1.50")), Some(text("1.50")));
    assert_eq!(stored(Kind::Text { most: None }, FieldValue::Text("a\0b")), None);
    assert_eq!(stored(Kind::Char { most: Some(3) }, FieldValue::Text("a    ")), Some(text("a")));
    assert_eq!(stored(Kind::Bytea, FieldValue::Text("a\0b")), Some(Stored::Bytes(b"a\0b")));
    assert_eq!(stored(Kind::Bytea, FieldValue::Number("1")), None);
}

/// Goal: text of files without types becomes what its column is. Method: booleans, bits, durations, what is none.
#[test]
fn text_becomes_what_its_column_is() {
    for (text, value) in [("t", true), ("TRUE", true), ("1", true), ("f", false), ("False", false), ("0", false)] {
        assert_eq!(stored(Kind::Bool, FieldValue::Text(text)), Some(Stored::Bool(value)), "{text}");
    }
    for text in ["", "yes", "2", "true "] {
        assert_eq!(stored(Kind::Bool, FieldValue::Text(text)), None, "{text}");
    }
    assert_eq!(stored(Kind::Float8, FieldValue::Text("1.5")), Some(Stored::Double(1.5)));
    assert_eq!(stored(Kind::Bits { count: 3 }, FieldValue::Text("101")), Some(self::text("101")));
    for text in ["10", "1010", "12", ""] {
        assert_eq!(stored(Kind::Bits { count: 3 }, FieldValue::Text(text)), None, "{text}");
    }
    assert_eq!(stored(Kind::VarBits { most: Some(3) }, FieldValue::Text("1010")), None);
    assert_eq!(stored(Kind::Refused { why: "x" }, FieldValue::Text("1")), None);
    assert_eq!(stored(Kind::Refused { why: "x" }, FieldValue::Null), Some(Stored::Null));
}

/// Goal: a rejection names column, type and value, and its fingerprint leaves the value out. Method: each kind of it.
#[test]
fn a_misfit_is_named_with_its_value() {
    let cause = field(&column(Kind::Date), FieldBytes::Text(b"2026-02-30")).unwrap_err();
    assert_eq!(cause.code, MISFIT);
    assert_eq!(
        cause.message,
        "column \"c\" (declared) takes days of the calendar, and there is no such day: 2026-02-30"
    );
    assert!(!cause.fingerprint.contains("30"), "{}", cause.fingerprint);
    let required = PostgresColumn { required: true, ..column(Kind::Date) };
    assert_eq!(field(&required, FieldBytes::Null).unwrap_err().code, NULL);
}

/// Goal: keys of one column are one exactly if the server says so. Method: spellings of one value.
#[test]
fn equal_values_have_equal_keys() {
    let key = |value: &Stored<'_>| {
        let mut bytes = Vec::new();
        value.append_key(&mut bytes);
        bytes
    };
    for same in [
        ["1", "1.0"],
        ["100", "1e2"],
        ["0.50", "5e-1"],
        ["-0", "0.00"],
        ["123456789012345678901", "123456789012345678901.0"],
    ] {
        let [one, two] =
            same.map(|text| key(&stored(Kind::Numeric { limits: None }, FieldValue::Number(text)).unwrap()));
        assert_eq!(one, two, "{same:?}");
    }
    assert_eq!(key(&Stored::Double(0.0)), key(&Stored::Double(-0.0)));
    assert_eq!(key(&Stored::Double(f64::NAN)), key(&Stored::Double(-f64::NAN)));
    assert_ne!(key(&Stored::Numeric("NaN")), key(&Stored::Numeric("Infinity")));
    let ascending = ["-Infinity", "-1e100", "0", "1e100", "Infinity", "NaN"];
    assert!(ascending.is_sorted_by(|a, b| order_numeric(a, b) == Ordering::Less));
    assert_ne!(key(&Stored::Numeric("1.5")), key(&Stored::Numeric("-1.5")));
    assert_ne!(key(&Stored::Numeric("1.5")), key(&Stored::Numeric("15.5")));
}

proptest! {
    /// Goal: numerics are ordered as numbers. Method: any two decimals against exact arithmetic.
    #[test]
    fn numerics_are_ordered_as_numbers(a in -100_000_i64..100_000, b in -100_000_i64..100_000, p in 0_u32..6, q in 0_u32..6) {
        let spell = |value: i64, places: u32| format!("{value}e-{places}");
        let (x, y) = (spell(a, p), spell(b, q));
        let exact = (a * 10_i64.pow(6 - p)).cmp(&(b * 10_i64.pow(6 - q)));
        prop_assert_eq!(order_numeric(&x, &y), exact, "{} {}", x, y);
    }
}

/// Goal: what is stored reads back as the same value, by UNNEST and by COPY. Method: a value of every type, both ways.
#[tokio::test]
async fn every_type_reads_back_as_it_was_written() {
    let cases = [
        ("bool", "true", "true"),
        ("smallint", "-32768", "-32768"),
        ("bigint", "9223372036854775807", "9223372036854775807"),
        ("real", "1.5", "1.5"),
        ("float8", "1e-300", "1e-300"),
        ("numeric", "-12345678901234567890.0001", "-12345678901234567890.0001"),
        ("numeric(9,3)", "12.5", "12.500"),
        ("numeric", "\"100000000\"", "100000000"),
        ("numeric", "1e-7", "0.0000001"),
        ("numeric", "0", "0"),
        ("text", "\"ä\\\"b\"", "ä\"b"),
        ("varchar(3)", "\"abc\"", "abc"),
        ("char(3)", "\"a\"", "a"),
        ("bytea", "\"a\\u0000b\"", "\\x610062"),
        ("date", "\"2026-11-16\"", "2026-11-16"),
        ("date", "\"infinity\"", "infinity"),
        ("time", "\"03:25:42.5\"", "03:25:42.5"),
        ("timestamp", "\"2026-11-16T03:25:42.5+01:00\"", "2026-11-16 02:25:42.5"),
        ("timestamptz", "\"0001-01-01T00:00:00Z\"", "0001-01-01 00:00:00+00"),
        ("uuid", "\"F0000000-0000-0000-0000-00000000000a\"", "f0000000-0000-0000-0000-00000000000a"),
        ("json", "{\"a\": [1, 2.50]}", "{\"a\": [1, 2.50]}"),
        ("jsonb", "\"plain\"", "\"plain\""),
        ("jsonb", "[1,{\"b\":null}]", "[1, {\"b\": null}]"),
        ("int[]", "[1,null,[2]]", ""),
        ("int[]", "[[1,2],[3,4]]", "{{1,2},{3,4}}"),
        ("text[]", "[\"a,b\",null,\"\"]", "{\"a,b\",NULL,\"\"}"),
        ("mood", "\"glad\"", "glad"),
        ("interval", "\"P1DT2H\"", "1 day 02:00:00"),
        ("inet", "\"10.0.0.1/8\"", "10.0.0.1/8"),
        ("money_like", "12.25", "12.25"),
    ];
    let setup = "CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE DOMAIN money_like AS numeric(10,2) CHECK (VALUE > 0)";
    let mut ddl = format!("{setup}; CREATE TABLE t (id int PRIMARY KEY");
    for (at, (declared, _, _)) in cases.iter().enumerate() {
        ddl.push_str(&format!(", c{at} {declared}"));
    }
    ddl.push(')');
    // The two that COPY cannot carry keep the keyed mode company; append goes without them.
    for mode in [ConflictMode::Update, ConflictMode::Append] {
        let mut rig = Rig::new(&ddl, keyed(mode)).await;
        let (mut inputs, mut expected) = (Vec::new(), Vec::new());
        for (at, (_, json, shown)) in cases.iter().enumerate() {
            inputs.push(format!("{{\"id\":{at},\"c{at}\":{json}}}"));
            expected.push((*shown).to_owned());
        }
        // Enough rows of one shape for a COPY.
        inputs.extend(
            (1000..1100)
                .map(|id| format!("{{\"id\":{id},\"c0\":false,\"c5\":{id}.25,\"c20\":{{\"a\":1}},\"c22\":[1]}}")),
        );
        let done = rig.deliver(&inputs.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!(done.dead_inputs, [23], "only the array that is none");
        let whens: Vec<String> = (0..cases.len()).map(|at| format!("WHEN {at} THEN c{at}::text")).collect();
        let sql = format!("SELECT CASE id {} END FROM t WHERE id < 1000 ORDER BY id", whens.join(" "));
        let sql = format!("SET IntervalStyle = postgres; {sql}");
        let mut found = rig.texts(&sql).await;
        found.insert(23, String::new());
        assert_eq!(found, expected, "{mode:?}");
        let many =
            "SELECT count(*) || ' ' || sum(c5) || ' ' || min(c20::text) || min(c22::text) FROM t WHERE id >= 1000";
        assert_eq!(rig.texts(many).await, ["100 104975.00 {\"a\":1}[1]"]);
    }
}

/// Goal: a hash fits where it fits. Method: columns of each kind.
#[test]
fn a_key_takes_the_form_of_its_column() {
    let hash = KeyHash([7; 16]);
    assert_eq!(column(Kind::Bytea).key(hash), Stored::KeyBytes(hash));
    assert!(matches!(column(Kind::Text { most: None }).key(hash), Stored::KeyText(_)));
    assert!(column(Kind::Text { most: Some(29) }).holds_hash() && !column(Kind::Text { most: Some(28) }).holds_hash());
    assert!(!column(Kind::Int8).holds_hash());
}
