use super::*;
use vrl::value;

fn float(value: f64) -> Value {
    Value::Float(NotNan::new(value).expect("a number"))
}

fn read(json: &str) -> Result<Read, TooDeep> {
    read_field(json.as_bytes(), &FieldSpan::Json(0..json.len()))
}

/// Goal: every kind of value arrives, with blanks, escapes and repeated names. Method: one text with all of them.
#[test]
fn json_becomes_the_value_that_it_says() {
    let json =
        r#" { "a" : [ 1 , -2.5, "x\n\u00e9", true ], "b":{"c":null,"d":{}}, "n\"": [ ], "twice":1, "twice":2 } "#;
    let read = read(json).expect("not deep");
    let expected = value!({ a: [1, (float(-2.5)), "x\né", true], b: { c: null, d: {} }, "n\"": [], twice: 2 });
    assert_eq!((read.value, read.odd), (expected, vec![]));
}

/// Goal: no number changes unseen. Method: the neighbourhood of what i64 and f64 hold exactly.
#[test]
fn a_number_is_exact_or_told() {
    for (text, value) in [
        ("0", Value::Integer(0)),
        ("-9223372036854775808", Value::Integer(i64::MIN)),
        ("9223372036854775807", Value::Integer(i64::MAX)),
        ("0.1", float(0.1)),
        ("12.50", float(12.5)),
        ("0.0", float(0.0)),
        ("1e3", float(1000.0)),
        ("1.7976931348623157e308", float(f64::MAX)),
        ("0.30000000000000004", float(0.300_000_000_000_000_04)),
        ("9007199254740993.0e0", Value::Null),
    ] {
        assert_eq!(exact(text).unwrap_or(Value::Null), value, "{text}");
    }
    for text in ["9223372036854775808", "18446744073709551616", "0.12345678901234567890", "1e400", "1e-400", "5e-325"] {
        assert_eq!(exact(text), None, "{text}");
    }
    let odd = read(r#"{"a":{"b":[1,0.12345678901234567890]},"c":18446744073709551616}"#).expect("not deep").odd;
    let odd: Vec<String> = odd.iter().map(ToString::to_string).collect();
    assert_eq!(odd, ["a.b[1]", "c"]);
}

/// Goal: deep nesting ends in an answer, not in an overflow. Method: a million brackets.
#[test]
fn deep_nesting_is_refused() {
    assert!(read(&"[".repeat(DEEPEST)).is_ok());
    assert_eq!(read(&"[".repeat(1_000_000)).map(|r| r.value), Err(TooDeep));
}
