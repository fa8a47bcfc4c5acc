use super::*;

fn decoder(paths: &[&str]) -> Decoder {
    let paths: Vec<FieldPath> = paths.iter().map(|p| p.parse().expect("a path")).collect();
    Decoder::new(&paths, UnknownFields::Counted)
}

fn decode(decoder: &mut Decoder, bytes: &[u8]) -> Result<Vec<(usize, FieldSpan)>, Cause> {
    let mut found = Vec::new();
    decoder.decode(bytes, &mut found).map(|()| found)
}

/// Goal: each kind of value is found with its exact text. Method: one object with all of them, out of order.
#[test]
fn wanted_fields_are_found_whatever_their_order() {
    let mut decoder = decoder(&["a", ".b.c", "d", "e", "f", "g", "b"]);
    let text = r#"{"x":[1,{"a":2}], "g":null,"f":true,"e":"q\"\u00e9","d":"plain","b":{"z":1,"c":-1.50e3},"a":12345678901234567890}"#;
    let found: std::collections::BTreeMap<usize, FieldSpan> =
        decode(&mut decoder, text.as_bytes()).expect("decodes").into_iter().collect();
    let spelled = |slot: usize| match &found[&slot] {
        FieldSpan::Number(r) | FieldSpan::Text(r) | FieldSpan::Json(r) => text[r.clone()].to_owned(),
        other @ (FieldSpan::Null | FieldSpan::Bool(_) | FieldSpan::Unescaped(_)) => format!("{other:?}"),
    };
    assert_eq!(spelled(0), "12345678901234567890");
    assert_eq!(spelled(1), "-1.50e3");
    assert_eq!(spelled(2), "plain");
    assert_eq!(spelled(3), "Unescaped(\"q\\\"é\")");
    assert_eq!(spelled(4), "Bool(true)");
    assert_eq!(spelled(5), "Null");
    assert_eq!(spelled(6), r#"{"z":1,"c":-1.50e3}"#);
    assert_eq!(decoder.unknown(), [("x".to_owned(), 1)]);
}

/// Goal: a path leads into lists by place. Method: elements that are there, lists in lists, places beyond the end,
/// what is no list.
#[test]
fn an_element_of_a_list_is_found_by_its_place() {
    let mut decoder = decoder(&[".items[0].sku", ".items[1].sku", ".grid[1][0]", ".items[9]", ".no[0]"]);
    let text = r#"{"items":[{"sku":"a"},{"n":1}],"grid":[[1,2],[3,4]],"no":{"x":[5]}}"#;
    let found = decode(&mut decoder, text.as_bytes()).expect("decodes");
    let spelled: Vec<(usize, &str)> = found
        .iter()
        .map(|(slot, span)| match span {
            FieldSpan::Number(r) | FieldSpan::Text(r) => (*slot, &text[r.clone()]),
            other @ (FieldSpan::Json(_) | FieldSpan::Null | FieldSpan::Bool(_) | FieldSpan::Unescaped(_)) => {
                panic!("{other:?}")
            }
        })
        .collect();
    assert_eq!(spelled, [(0, "a"), (2, "3")]);
}

/// Goal: bytes that are no event are told apart, and none panics. Method: each kind of damage.
#[test]
fn what_is_no_event_says_why() {
    let mut decoder = decoder(&["a"]);
    let cases: [(&[u8], &str); 9] = [
        (b"", "HX2001"),
        (b"{\"a\":1", "HX2001"),
        (b"{\"a\":1} x", "HX2001"),
        (b"{\"a\":01}", "HX2001"),
        (b"{\"a\":\"\\ud800\"}", "HX2001"),
        (b"[1]", "HX2005"),
        (b"7", "HX2005"),
        (b"{\"a\":\"\xff\"}", "HX2002"),
        (b"nul", "HX2001"),
    ];
    for (bytes, code) in cases {
        let cause = decode(&mut decoder, bytes).expect_err("no event");
        assert_eq!(cause.code, code, "{}: {}", String::from_utf8_lossy(bytes), cause.message);
    }
}

/// Goal: the quick reader and the careful one agree, on soundness, fields and counts. Method: objects of all kinds of
/// values, spaced and damaged in all kinds of ways, read by both.
#[test]
fn the_quick_reader_reads_what_the_careful_one_does() {
    let values = [
        "1",
        "-0",
        "0",
        "01",
        "-",
        "1.",
        "1.50",
        "1e5",
        "1E-7",
        "1e",
        ".5",
        "true",
        "tru",
        "null",
        "nullx",
        "\"\"",
        "\"x\"",
        "\"é\"",
        "\"a\\n\"",
        "\"\u{1}\"",
        "\"open",
        "[1]",
        "{\"c\":2}",
        "{",
        "",
        "NaN",
        "+1",
        "1 2",
    ];
    let frames = [
        "{\"a\":V,\"z\":V}",
        " { \"a\" : V , \"b\" : V } ",
        "{\"a\":V,}",
        "{\"a\" V}",
        "{\"a\":V",
        "{\"a\":V} x",
        "{}",
        "{\"\\u0061\":V}",
        "{V}",
        "[V]",
        "{\"z\":V,\"z\":V,\"a\":V,\"a\":1}",
        "\u{feff}{\"a\":V}",
        "{\"b\":{\"c\":V},\"y\":V}",
        "{\"b\":V}",
        "{\"b\":{\"d\":V,\"c\":1}}",
    ];
    // With all of `b` wanted, and with a part of it.
    for wanted in [&["a", ".b.c", "b"][..], &["a", ".b.c", ".a[0]"]] {
        // One that reads each text first, and one that has read all texts before it.
        let mut seasoned = decoder(wanted);
        for text in frames.iter().flat_map(|frame| values.map(|value| frame.replace('V', value))) {
            let (mut fresh, mut careful) = (decoder(wanted), decoder(wanted));
            let mut found = Vec::new();
            let slow = careful.read_carefully(text.as_bytes(), &mut found).map(|()| found);
            careful.unknown.count();
            assert_eq!(decode(&mut fresh, text.as_bytes()), slow, "{text}");
            assert_eq!(decode(&mut fresh, text.as_bytes()), slow, "{text}, again");
            assert_eq!(decode(&mut seasoned, text.as_bytes()), slow, "{text}, after others");
            if slow.is_ok() {
                let twice: Vec<_> = careful.unknown().iter().map(|(name, count)| (name.clone(), count * 2)).collect();
                assert_eq!(fresh.unknown(), twice, "{text}");
            }
        }
    }
}

/// Goal: an input that is not UTF-8 is refused wherever the damage is, however familiar the rest of it looks.
/// Method: a good event, then the same one with each of its bytes replaced.
#[test]
fn a_byte_that_fits_no_character_is_found_anywhere() {
    let good = r#"{"a":"abcdefghijklmnopq","ü":12,"b":"é and more","c":"x"}"#.as_bytes();
    let mut decoder = decoder(&["a", "c"]);
    for at in 0..good.len() {
        decode(&mut decoder, good).expect("decodes");
        let mut bad = good.to_vec();
        bad[at] = 0xff;
        let cause = decode(&mut decoder, &bad).expect_err("not UTF-8");
        assert_eq!(cause.code, "HX2002", "byte {at}");
    }
}

/// Goal: fields that move, vanish and come back are found all the same. Method: events of several shapes in turn,
/// each read as by a decoder that has seen no other.
#[test]
fn events_of_several_shapes_take_turns() {
    let shapes = [
        r#"{"a":1,"x":2,"b":"three"}"#,
        r#"{"x":2,"a":1,"b":"three"}"#,
        r#"{"a":1,"b":"three"}"#,
        r#"{ "a" : 1, "x" : 2, "b" : "three" }"#,
        r#"{"a":1,"x":2,"b":"three","a":4}"#,
        r#"{"a":1,"x":2}"#,
        "{}",
    ];
    let mut seasoned = decoder(&["a", "b"]);
    for text in (0..40).map(|n| shapes[n * n % shapes.len()]) {
        let alone = decode(&mut decoder(&["a", "b"]), text.as_bytes()).expect("decodes");
        assert_eq!(decode(&mut seasoned, text.as_bytes()).expect("decodes"), alone, "{text}");
    }
}

/// Goal: the last of two fields with one name counts, as every JSON reader has it.
#[test]
fn a_repeated_field_takes_its_last_value() {
    let mut decoder = decoder(&["a"]);
    let found = decode(&mut decoder, br#"{"a":1,"a":22}"#).expect("decodes");
    assert_eq!(found.last(), Some(&(0, FieldSpan::Number(11..13))));
}

/// Goal: of two objects under one name the last counts, with all that is in it and nothing of the first. Method: paths into both, one
/// level deeper, and a last value that is no object.
#[test]
fn of_a_repeated_object_only_the_last_is_read() {
    let mut decoder = decoder(&[".o.id", ".o.a", ".o.in.x", "n"]);
    let mut slots = |text: &str| -> Vec<usize> {
        decode(&mut decoder, text.as_bytes()).expect("decodes").into_iter().map(|(slot, _)| slot).collect()
    };
    assert_eq!(slots(r#"{"o":{"id":1,"a":2,"in":{"x":1}},"n":1,"o":{"a":3}}"#), [3, 1]);
    assert_eq!(slots(r#"{"o":{"id":1,"in":{"x":1}},"o":null}"#), [0; 0]);
    assert_eq!(slots(r#"{"o":{"id":1,"in":{"x":1},"in":{}}}"#), [0]);
}

/// Goal: `columns: strict` rejects what has no column.
#[test]
fn strict_rejects_an_unknown_field() {
    let mut strict = Decoder::new(&[FieldPath::of_name("a")], UnknownFields::Rejected);
    assert!(decode(&mut strict, br#"{"a":1}"#).is_ok());
    let cause = decode(&mut strict, br#"{"a":1,"b":2}"#).expect_err("strict");
    assert_eq!(cause.code, "HX2004");
    assert!(cause.message.contains("\"b\""));
}

/// Goal: inside an object of which a part is wanted, what nothing takes is counted by its path, unless the whole is taken.
/// Method: objects in objects, lists, values in the place of objects, null.
#[test]
fn what_nothing_takes_inside_an_object_is_counted() {
    let left_out = |paths: &[&str], text: &str| {
        let mut decoder = decoder(paths);
        decode(&mut decoder, text.as_bytes()).expect("an event");
        decoder.unknown().iter().map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
    };
    for (text, names) in [
        (r#"{"t":{"a":1}}"#, ""),
        (r#"{"t":{"a":1,"b":2,"c":{"deep":1}},"top":1}"#, ".t.b=1 .t.c=1 top=1"),
        (r#"{"t":{"in":{"x":1,"y":2,"odd name":3}}}"#, r#".t.in.y=1 .t.in."odd name"=1"#),
        (r#"{"t":{"in":7}}"#, ".t.in=1"),
        (r#"{"t":7}"#, "t=1"),
        (r#"{"t":[7]}"#, "t=1"),
        (r#"{"t":null}"#, ""),
        (r#"{"t":[]}"#, ""),
        (r#"{"t":{"list":[1,2,3]}}"#, ".t.list[1]=1"),
        (r#"{"t":{"list":[1]}}"#, ""),
    ] {
        assert_eq!(left_out(&[".t.a", ".t.in.x", ".t.list[0]"], text), names, "{text}");
        assert_eq!(left_out(&[".t.a", "t", "top", ".t.in.x"], text), "", "the whole of {text}");
    }
    let mut strict = Decoder::new(&[".t.a".parse().expect("a path")], UnknownFields::Rejected);
    decode(&mut strict, br#"{"t":{"a":1}}"#).expect("an event");
    let cause = decode(&mut strict, br#"{"t":{"a":1,"b":2}}"#).expect_err("a field without a column");
    assert_eq!(cause.code, "HX2004");
    assert!(cause.message.contains("\".t.b\""), "{}", cause.message);
}

/// Goal: strict stays strict, and counting stays right, however many names there are. Method: three times as many as are
/// remembered, each alone and in the quick reader's memory, one that only the careful reader reads, and as CSV.
#[test]
fn names_beyond_those_remembered_are_judged_and_counted_too() {
    let mut strict = Decoder::new(&[FieldPath::of_name("a")], UnknownFields::Rejected);
    let mut counting = decoder(&["a"]);
    for number in 0..300 {
        let event = format!("{{\"a\":1,\"field{number}\":2}}");
        for _ in 0..2 {
            let cause = decode(&mut strict, event.as_bytes()).expect_err("strict");
            assert_eq!(cause.code, "HX2004");
            assert_eq!(cause.message.contains(&format!("\"field{number}\"")), number < 100, "{}", cause.message);
            assert!(decode(&mut counting, event.as_bytes()).is_ok());
        }
    }
    let cause = decode(&mut strict, br#"{"a":1,"nested":{"b":[2]}}"#).expect_err("strict");
    assert!(cause.message.contains("more than 100 such names"), "{}", cause.message);
    assert_eq!(cause.fingerprint, "no column for further fields");
    assert!(decode(&mut strict, br#"{"a":1}"#).is_ok());
    let seen = counting.unknown();
    assert_eq!((seen.len(), &seen[99], &seen[100]), (101, &("field99".into(), 2), &("(further names)".into(), 400)));
    let names = std::iter::once("a".to_owned()).chain((0..5).map(|number| format!("column{number}"))).collect();
    let format =
        csv::CsvFormat { dialect: csv::Dialect::default(), null: String::new(), header: csv::Header::Names(names) };
    strict.use_format(&Format::Csv(std::sync::Arc::new(format)));
    let cause = decode(&mut strict, b"1,2,3,4,5,6").expect_err("strict");
    assert_eq!(cause.fingerprint, "no column for further fields");
}
