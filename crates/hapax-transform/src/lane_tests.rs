use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::decode::UnknownFields;
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_model::epoch::Epoch;
use hapax_model::field::{FieldPath, FieldValue};
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::position::{Incarnation, Position};

use crate::Program;

/// A target with these fields, keyed by the first, and a program before it.
fn pipeline(program: &str, fields: &[&str]) -> Pipeline {
    let fields: Vec<FieldPath> = fields.iter().map(|field| field.parse().expect("a path")).collect();
    let strategy = DedupStrategy::content_fields(vec![fields[0].clone()]);
    let keyer = Keyer::new(strategy, Uniqueness::WithVersion, KeyNeed::Fields);
    let origin = Origin { source: "lines".into(), lane: "0".into() };
    let compiled = Program::compile(program, &[]).unwrap_or_else(|faults| panic!("{program}: {faults:?}")).shared();
    Pipeline::new(&fields, keyer, None, UnknownFields::Counted, origin)
        .with_transform(compiled.as_ref(), Arc::default())
}

fn run(program: &str, fields: &[&str], lines: &[&str]) -> Batch {
    let mut pipeline = pipeline(program, fields);
    let mut batch = pipeline.batch();
    for (n, line) in lines.iter().enumerate() {
        batch.inputs.push(Position::at(n as u64), line.as_bytes());
    }
    pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
    batch
}

fn shown(value: FieldValue<'_>) -> String {
    match value {
        FieldValue::Absent => "-".into(),
        FieldValue::Null => "null".into(),
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::Number(text) | FieldValue::Json(text) => text.into(),
        FieldValue::Text(text) => format!("'{text}'"),
    }
}

/// Every event of one line as its fields, joined; a letter as its code and fingerprint.
fn one(program: &str, fields: &[&str], line: &str) -> Vec<String> {
    let batch = run(program, fields, &[line]);
    let width = fields.len();
    let event = |n: usize| (0..width).map(|slot| shown(batch.event(n).field(slot))).collect::<Vec<_>>().join(" ");
    let events = (0..batch.len()).map(event);
    let letters =
        batch.letters().iter().map(|(_, letter)| format!("{}: {}", letter.cause.code, letter.cause.fingerprint));
    events.chain(letters).collect()
}

/// Goal: the words of a transform mean what the page says. Method: a program and an event for each.
#[test]
fn programs_map_filter_and_emit() {
    let fields = ["id", "a", "b"];
    let line = r#"{"id":7,"a":"x","b":[1,{"c":2}],"n":5}"#;
    for (program, expected) in [
        ("", vec!["7 'x' [1,{\"c\":2}]"]),
        (".", vec!["7 'x' [1,{\"c\":2}]"]),
        (".a = upcase!(.a)", vec!["7 'X' [1,{\"c\":2}]"]),
        (".a = int!(.n) / 2", vec!["7 2.5 [1,{\"c\":2}]"]),
        ("del(.a)", vec!["7 - [1,{\"c\":2}]"]),
        (".a = null", vec!["7 null [1,{\"c\":2}]"]),
        (".b[1].c = true", vec!["7 'x' [1,{\"c\":true}]"]),
        (".a.inner = 1", vec!["7 {\"inner\":1} [1,{\"c\":2}]"]),
        ("del(.b[0])", vec!["7 'x' [{\"c\":2}]"]),
        ("del(.b[1].c, compact: true)", vec!["7 'x' [1]"]),
        ("abort", vec![]),
        ("if .n == 5 { abort }\n.a = 1", vec![]),
        ("if .n == 4 { abort }", vec!["7 'x' [1,{\"c\":2}]"]),
        (". = {\"id\": .id, \"b\": .a}", vec!["7 - 'x'"]),
        (". = [{\"id\": .id, \"a\": 1}, {\"id\": .id, \"a\": 2}]", vec!["7 1 -", "7 2 -"]),
        (". = []", vec![]),
        (". = unnest!(.b)", vec!["7 'x' 1", "7 'x' {\"c\":2}"]),
        (". |= {\"a\": true}", vec!["7 true [1,{\"c\":2}]"]),
        (".a = t'2026-01-02T03:04:05.5Z'", vec!["7 '2026-01-02T03:04:05.500Z' [1,{\"c\":2}]"]),
        (".a = [t'2026-01-02T03:04:05Z']", vec!["7 [\"2026-01-02T03:04:05Z\"] [1,{\"c\":2}]"]),
        (".a = encode_json(.b)", vec!["7 '[1,{\"c\":2}]' [1,{\"c\":2}]"]),
        ("if .n == 5 { return null }\n.a = 1", vec!["7 'x' [1,{\"c\":2}]"]),
        ("x = del(.a)\n.b = x", vec!["7 - 'x'"]),
    ] {
        assert_eq!(one(program, &fields, line), expected, "{program}");
    }
}

/// Goal: nothing is written in another's place: errors are letters with line, and a fingerprint without values.
#[test]
fn failures_are_letters_with_their_line() {
    let fields = ["id", "a"];
    for (program, expected) in [
        (".b = 1\n.a = to_int!(.a)", "HX2100: transform line 2: to_int!(.a)"),
        (
            "assert!(.a == \"y\", message: string!(.a))",
            "HX2100: transform line 1: assert!(.a == \"y\", message: string!(.a))",
        ),
        (". = 5", "HX2101: the transform made a number of the event"),
        (". = [{\"id\": .id}, 5]", "HX2101: the transform made an array with a number in it of the event"),
        (".a = r'x'", "HX2102: the transform put into .a a regular expression, which is a tool and no value"),
        (
            ".a = to_float!(\"1e308\") * 10.0",
            "HX2102: the transform put into .a a number that is infinite: a calculation overflowed",
        ),
        (
            ".a = decode_base64!(\"//4=\")",
            "HX2102: the transform put into .a bytes that are not UTF-8; encode_base64 or encode_base16 makes text of them",
        ),
        (". = merge(., {\"id\": 8})", "HX2105: the transform overwrites the key field .id"),
        (". = remove!(., [\"id\"])", "HX2105: the transform drops the key field .id"),
    ] {
        assert_eq!(one(program, &fields, r#"{"id":7,"a":"x"}"#), [expected], "{program}");
    }
    let message =
        run(".b = 1\n.a = to_int!(.a)", &fields, &[r#"{"id":7,"a":"x"}"#]).letters()[0].1.cause.message.clone();
    assert!(message.starts_with("the transform failed at line 2, to_int!(.a): "), "{message}");
    let deep = format!(r#"{{"id":7,"a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(one(".x = .a", &fields, &deep), ["HX2106: nested too deeply"]);
}

/// Goal: numbers come through with every digit, or the input dies. Method: numbers beyond i64 and f64, left alone, read,
/// carried in an object, changed beside, removed.
#[test]
fn no_digit_is_lost() {
    let fields = ["id", "a", "o"];
    let line = r#"{"id":18446744073709551616,"a":0.12345678901234567890,"o":{"big":18446744073709551616,"n":1},"n":1}"#;
    let kept = r#"18446744073709551616 0.12345678901234567890 {"big":18446744073709551616,"n":1}"#;
    for program in ["", ".n = 2", "if .n == 2 { abort }", "x = .o.n", ".x = .o.n", "del(.n)\n."] {
        assert_eq!(one(program, &fields, line), [kept], "{program}");
    }
    assert_eq!(one("del(.a)", &fields, line), [kept.replace("0.12345678901234567890", "-")]);
    assert_eq!(one(".a = 1", &fields, line), [kept.replace("0.12345678901234567890", "1")]);
    assert_eq!(one(".o.big = 1", &fields, line), [kept.replace("{\"big\":18446744073709551616", "{\"big\":1")]);
    for (program, what) in [
        ("if .a == 1 { abort }", "the field \"a\""),
        (".b = .a", "the field \"a\""),
        (".b = del(.a)", "the field \"a\""),
        (".o.n = 2", "the field \"o\""),
        (".b = .o", "the field \"o\""),
        (". = merge(., {\"n\": 2})", "the field \"n\""),
    ] {
        let letter = one(program, &fields, line);
        let expected = format!("HX2103: {what} holds a number with too many digits");
        if what.contains("\"n\"") {
            assert!(letter[0].starts_with("HX2103"), "{program}: {letter:?}");
        } else {
            assert_eq!(letter, [expected], "{program}");
        }
    }
    // Spelling stays where the value does.
    assert_eq!(one("if .a == 1 { abort }", &["id", "a"], r#"{"id":1.50,"a":12.50}"#), ["1.50 12.50"]);
}

/// Goal: a field that the input lacks may be made, also for the key; paths lead into what was made or left.
#[test]
fn nested_fields_and_made_keys() {
    let fields = [".o.id", ".o.t", "a"];
    let line = r#"{"o":{"id":1,"t":"x"},"a":2}"#;
    assert_eq!(one(".a = 3", &fields, line), ["1 'x' 3"]);
    assert_eq!(one(".o.t = \"y\"", &fields, line), ["1 'y' 2"]);
    assert_eq!(one(". = {\"o\": {\"id\": .o.id}}", &fields, line), ["1 - -"]);
    assert_eq!(one(".o = {\"id\": 5}", &fields, line), ["HX2105: the transform overwrites the key field .o.id"]);
    assert_eq!(one(". = {\"id\": .number}", &["id"], r#"{"number":9}"#), ["9"]);
    let wrapped = r#"{"message":"{\"id\":3,\"a\":\"z\"}"}"#;
    assert_eq!(one(". = object!(parse_json!(string!(.message)))", &["id", "a"], wrapped), ["3 'z'"]);
    assert_eq!(one(". = {\"id\": float!(.id) * 1.0}", &["id"], r#"{"id":3.0}"#), ["3.0"]);
}

/// Goal: fields that no column takes are told, whoever made or left them. Method: each kind.
#[test]
fn fields_that_nothing_takes_are_told() {
    let unknown = |program: &str| {
        let mut pipeline = pipeline(program, &["id"]);
        let mut batch = pipeline.batch();
        batch.inputs.push(Position::at(0), br#"{"id":1,"a":2,"b":3}"#);
        pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
        let mut names: Vec<_> =
            pipeline.unknown().iter().filter(|(_, n)| *n > 0).map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names.join(" ")
    };
    assert_eq!(unknown(".c = .a"), "a b c");
    assert_eq!(unknown("del(.a)"), "b");
    assert_eq!(unknown(". = {\"id\": .id, \"z\": 1}"), "z");
    assert_eq!(unknown(". |= {\"z\": 1}"), "a b z");
    assert_eq!(unknown("x = keys(.)\n.n = length(x)"), "a b n");
    assert_eq!(unknown("abort"), "");
}

/// Goal: the same is told inside of objects of which a part is mapped. Method: such an object left alone, changed, made anew, and a
/// program that reads the whole event.
#[test]
fn fields_inside_of_objects_that_nothing_takes_are_told() {
    let unknown = |program: &str| {
        let mut pipeline = pipeline(program, &["id", ".t.a"]);
        let mut batch = pipeline.batch();
        batch.inputs.push(Position::at(0), br#"{"id":1,"t":{"a":2,"b":3}}"#);
        pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
        assert!(batch.letters().is_empty(), "{program}: {:?}", batch.letters());
        let told = pipeline.unknown().iter().filter(|(_, n)| *n > 0);
        told.map(|(name, _)| name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(unknown(".id = .id"), ".t.b");
    assert_eq!(unknown(".t.c = 4"), ".t.b .t.c");
    assert_eq!(unknown("del(.t.b)"), "");
    assert_eq!(unknown("del(.t)"), "");
    assert_eq!(unknown(".t = 5"), "t");
    assert_eq!(unknown(". = {\"id\": .id, \"t\": {\"a\": 1, \"z\": {\"y\": 1}}}"), ".t.z");
    assert_eq!(unknown("x = keys(.)\n.t.n = length(x)"), ".t.b .t.n");
}

/// Goal: an input's events do not depend on those before it. Method: variables and fields left over from another one.
#[test]
fn nothing_is_kept_from_one_input_to_the_next() {
    let program = "if .first == true { seen = \"leak\"\n.a = seen }";
    let batch = run(program, &["id", "a"], &[r#"{"id":1,"first":true}"#, r#"{"id":2}"#, r#"{"id":3,"a":"own"}"#]);
    let shown: Vec<_> = batch.events().map(|event| shown(event.field(1))).collect();
    assert_eq!(shown, ["'leak'", "-", "'own'"]);
}
