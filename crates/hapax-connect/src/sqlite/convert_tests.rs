use hapax_model::field::FieldValue;
use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::table::column::{MISFIT, NULL};
use crate::table::number::Decimal;
use hapax_model::letter::Stage;

fn column(declared: &str, affinity: Affinity) -> SqliteColumn {
    SqliteColumn { name: "c".into(), declared: declared.into(), affinity, required: false, fills_itself: false }
}

fn stored<'a>(declared: &str, affinity: Affinity, value: FieldValue<'a>) -> Option<Stored<'a>> {
    field(&column(declared, affinity), value.into()).ok()
}

/// Goal: whole numbers of any spelling fit INTEGER exactly, and nothing else does. Method: both sides of each limit.
#[test]
fn an_integer_column_takes_whole_numbers_and_booleans() {
    let take = |value| stored("INTEGER", Affinity::Integer, value);
    for (text, value) in [
        ("1", 1),
        ("-0", 0),
        ("1.0", 1),
        ("1e3", 1000),
        ("12.50e1", 125),
        ("-9223372036854775808", i64::MIN),
        ("9223372036854775807.0", i64::MAX),
        ("0e99999", 0),
        ("100e-2", 1),
    ] {
        assert_eq!(take(FieldValue::Number(text)), Some(Stored::Integer(value)), "{text}");
    }
    for text in ["1.5", "9223372036854775808", "1e19", "1e-1", "1e99999999999999999999", "-9223372036854775809"] {
        assert_eq!(take(FieldValue::Number(text)), None, "{text}");
    }
    assert_eq!(take(FieldValue::Bool(true)), Some(Stored::Integer(1)));
    assert_eq!(take(FieldValue::Text("-12")), Some(Stored::Integer(-12)));
    for text in ["", "x", "007", " 1", "1.5", "true"] {
        assert_eq!(take(FieldValue::Text(text)), None, "{text:?}");
    }
    assert_eq!(take(FieldValue::Json("[1]")), None);
    assert_eq!(take(FieldValue::Null), Some(Stored::Null));
}

/// Goal: a double keeps a whole number exactly or refuses it. Method: around 2^53 and the largest double.
#[test]
fn a_real_column_takes_numbers() {
    let take = |text| stored("REAL", Affinity::Real, FieldValue::Number(text));
    assert_eq!(take("0.1"), Some(Stored::Real(0.1)));
    assert_eq!(take("9007199254740992"), Some(Stored::Real(9_007_199_254_740_992.0)));
    assert_eq!(take("9007199254740993"), None);
    assert_eq!(take("1e400"), None);
    assert_eq!(take("0.10000000000000001"), Some(Stored::Real(0.1)));
    assert_eq!(take("0.1000000000000000055"), None);
    assert_eq!(take("1e-400"), None);
    assert_eq!(stored("REAL", Affinity::Real, FieldValue::Bool(true)), None);
    assert_eq!(stored("REAL", Affinity::Real, FieldValue::Text("1")), Some(Stored::Real(1.0)));
    assert_eq!(stored("REAL", Affinity::Real, FieldValue::Text("x")), None);
}

/// Goal: text keeps what was written; bytes take only text. Method: each kind of value.
#[test]
fn text_and_blob_columns_take_what_was_written() {
    let text = |value| stored("TEXT", Affinity::Text, value);
    assert_eq!(text(FieldValue::Number("1.50")), Some(Stored::Text("1.50".as_bytes())));
    assert_eq!(text(FieldValue::Bool(false)), Some(Stored::Text("false".as_bytes())));
    assert_eq!(text(FieldValue::Json("{\"a\":1}")), Some(Stored::Text("{\"a\":1}".as_bytes())));
    let blob = |value| stored("BLOB", Affinity::Blob, value);
    assert_eq!(blob(FieldValue::Text("ä")), Some(Stored::Blob("ä".as_bytes())));
    assert_eq!(blob(FieldValue::Number("1")), None);
    assert_eq!(blob(FieldValue::Bool(true)), None);
}

/// Goal: types that SQLite does not know keep their values, and text that SQLite would change is refused.
#[test]
fn numeric_columns_take_dates_and_decimals() {
    let take = |declared, value| stored(declared, Affinity::Numeric, value);
    assert_eq!(take("DATE", FieldValue::Text("2026-11-16")), Some(Stored::Text("2026-11-16".as_bytes())));
    assert_eq!(take("DATETIME", FieldValue::Text("20261116")), Some(Stored::Integer(20_261_116)));
    assert_eq!(take("UUID", FieldValue::Text("007")), None);
    assert_eq!(take("UUID", FieldValue::Text(" 7")), None);
    assert_eq!(take("DECIMAL(10,2)", FieldValue::Text("7.25")), Some(Stored::Real(7.25)));
    assert_eq!(take("DECIMAL(10,2)", FieldValue::Text("007")), None);
    assert_eq!(take("BOOLEAN", FieldValue::Text("t")), Some(Stored::Integer(1)));
    assert_eq!(take("BOOLEAN", FieldValue::Text("yes")), None);
    assert_eq!(take("JSON", FieldValue::Bool(true)), Some(Stored::Text(b"true")));
    assert_eq!(take("JSON", FieldValue::Text("12")), Some(Stored::Quoted("\"12\"".to_owned())));
    assert_eq!(take("DECIMAL(10,2)", FieldValue::Number("12.50")), Some(Stored::Real(12.5)));
    assert_eq!(take("DECIMAL(10,2)", FieldValue::Number("12.00")), Some(Stored::Integer(12)));
    assert_eq!(take("DECIMAL(30,2)", FieldValue::Number("12345678901234567.89")), None);
    assert_eq!(take("BOOLEAN", FieldValue::Bool(true)), Some(Stored::Integer(1)));
    assert_eq!(take("JSON", FieldValue::Json("[1]")), Some(Stored::Text("[1]".as_bytes())));
}

/// Goal: a rejection names column, type and value, and its fingerprint leaves the value out. Method: a long value.
#[test]
fn a_misfit_is_named_with_a_cut_value() {
    let long = "x".repeat(100);
    let cause = field(&column("INTEGER", Affinity::Integer), FieldBytes::Text(long.as_bytes())).unwrap_err();
    assert_eq!((cause.stage, cause.code), (Stage::Map, MISFIT));
    assert_eq!(
        cause.message,
        format!("column \"c\" (INTEGER) takes numbers, also as text like 12: {}…", "x".repeat(60))
    );
    assert_eq!(cause.fingerprint, "column \"c\" (INTEGER) takes numbers, also as text like 12");
    let required = SqliteColumn { required: true, ..column("", Affinity::Any) };
    let cause = field(&required, FieldBytes::Null).unwrap_err();
    assert_eq!((cause.code, cause.message.contains("says null")), (NULL, true));
    let cause = field(&required, FieldBytes::Absent).unwrap_err();
    assert_eq!((cause.code, cause.message.contains("no such field")), (NULL, true));
}

/// Goal: a key is 16 bytes or 29 characters, as the live column wants. Method: both.
#[test]
fn a_key_takes_the_form_of_its_column() {
    let hash = KeyHash([7; 16]);
    assert_eq!(key(&column("BLOB", Affinity::Blob), hash), Stored::KeyBytes(hash));
    let Stored::KeyText(text) = key(&column("TEXT", Affinity::Text), hash) else { panic!("no text") };
    assert_eq!(text.len(), 29);
}

fn value() -> impl Strategy<Value = Stored<'static>> {
    const TEXTS: [&str; 5] = ["", "a", "a\0", "ab", "b"];
    const BLOBS: [&[u8]; 5] = [b"", b"a", b"a\0", b"a\0\0", b"b"];
    prop_oneof![
        (-3_i64..3).prop_map(Stored::Integer),
        prop::sample::select(vec![i64::MIN, i64::MAX, 1 << 53, (1 << 53) + 1]).prop_map(Stored::Integer),
        (-6_i32..6).prop_map(|n| Stored::Real(f64::from(n) / 2.0)),
        prop::sample::select(vec![9.3e18, -9.3e18, 9_007_199_254_740_992.0]).prop_map(Stored::Real),
        prop::sample::select(TEXTS.to_vec()).prop_map(|text| Stored::Text(text.as_bytes())),
        prop::sample::select(BLOBS.to_vec()).prop_map(Stored::Blob),
    ]
}

proptest! {
    /// Goal: keys and versions are compared as SQLite compares them. Method: ask SQLite about any two values.
    #[test]
    fn values_compare_as_sqlite_compares_them(a in value(), b in value()) {
        let connection = Connection::open_in_memory().unwrap();
        let sql = "SELECT CASE WHEN ?1 < ?2 THEN -1 WHEN ?1 = ?2 THEN 0 ELSE 1 END";
        let answer: i64 = connection.query_row(sql, [&a, &b], |row| row.get(0)).unwrap();
        prop_assert_eq!(answer.cmp(&0), a.order(&b), "{:?} {:?}", a, b);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        a.append_key(&mut left);
        b.append_key(&mut right);
        prop_assert_eq!(left == right, answer == 0, "{:?} {:?}", a, b);
    }

    /// Goal: no two pairs share a key's bytes. Method: any two pairs.
    #[test]
    fn keys_of_two_columns_do_not_run_together(a in value(), b in value(), c in value(), d in value()) {
        let bytes = |first: &Stored<'_>, second: &Stored<'_>| {
            let mut bytes = Vec::new();
            first.append_key(&mut bytes);
            second.append_key(&mut bytes);
            bytes
        };
        let same = a.order(&c) == Ordering::Equal && b.order(&d) == Ordering::Equal;
        prop_assert_eq!(bytes(&a, &b) == bytes(&c, &d), same);
    }

    /// Goal: any JSON number is stored as itself or refused. Method: any decimal text, into INTEGER, REAL and NUMERIC.
    #[test]
    fn a_number_is_exact_or_refused(text in "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,6})?([eE][+-]?[0-9]{1,3})?") {
        let exact: f64 = text.parse().unwrap();
        match stored("INTEGER", Affinity::Integer, FieldValue::Number(&text)) {
            Some(Stored::Integer(value)) => prop_assert_eq!(Decimal::parse(&text), Decimal::parse(&value.to_string())),
            other => prop_assert_eq!(other, None),
        }
        if let Some(Stored::Real(value)) = stored("NUMERIC", Affinity::Numeric, FieldValue::Number(&text)) {
            prop_assert_eq!(value, exact);
        }
    }
}
