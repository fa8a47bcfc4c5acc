use hapax_model::field::FieldPath;
use proptest::prelude::*;

use super::*;
use crate::decode::{Decoder, UnknownFields};

fn format(names: &[&str]) -> Format {
    let header = Header::Names(names.iter().map(ToString::to_string).collect());
    Format::Csv(Arc::new(CsvFormat { dialect: Dialect::default(), null: String::new(), header }))
}

fn decoder(paths: &[&str], unknown: UnknownFields, format: &Format) -> Decoder {
    let paths: Vec<FieldPath> = paths.iter().map(|path| path.parse().expect("a path")).collect();
    let mut decoder = Decoder::new(&paths, unknown);
    decoder.use_format(format);
    decoder
}

/// What `record` gives for `a`, `b` and `c`, `-` where there is nothing, `NULL` for NULL.
fn read(record: &[u8]) -> Result<Vec<String>, Cause> {
    let mut fields = Vec::new();
    decoder(&[".a", ".b", ".c"], UnknownFields::Counted, &format(&["a", "b", "c"])).decode(record, &mut fields)?;
    let mut texts = vec!["-".to_owned(); 3];
    for (slot, field) in fields {
        texts[slot] = match field {
            FieldSpan::Null => "NULL".into(),
            FieldSpan::Text(range) => String::from_utf8(record[range].to_vec()).expect("text"),
            FieldSpan::Unescaped(text) => text,
            other @ (FieldSpan::Bool(_) | FieldSpan::Number(_) | FieldSpan::Json(_)) => panic!("{other:?}"),
        };
    }
    Ok(texts)
}

/// Goal: fields are read as every reader of CSV reads them. Method: each way of writing one.
#[test]
fn fields_are_read_with_and_without_quotes() {
    for (record, expected) in [
        ("1,2,3", ["1", "2", "3"]),
        ("1,,\"\"", ["1", "NULL", ""]),
        (",,", ["NULL", "NULL", "NULL"]),
        ("\"a,b\",\"two\nlines\",\"he said \"\"no\"\"\"", ["a,b", "two\nlines", "he said \"no\""]),
        ("5' 6\",it's, spaced ", ["5' 6\"", "it's", " spaced "]),
        ("\"\"\"\",\"\"\"\"\"\",x", ["\"", "\"\"", "x"]),
        ("ä,\u{0},ö", ["ä", "\u{0}", "ö"]),
    ] {
        assert_eq!(read(record.as_bytes()).expect("a record"), expected, "{record}");
    }
}

/// Goal: a record that is not what its header says is refused with the reason. Method: each flaw.
#[test]
fn flaws_of_a_record_are_named() {
    for (record, code, word) in [
        (&b"1,2"[..], "HX2080", "has 2 fields, and the header names 3: a, b, c"),
        (b"1,2,3,4", "HX2080", "has 4 fields"),
        (b"1", "HX2080", "has 1 field,"),
        (b"1,\"2,3", "HX2081", "opens at byte 2"),
        (b"1,\"2\"x,3", "HX2081", "at byte 5"),
        (b"1,\xff,3", "HX2002", "not UTF-8"),
    ] {
        let cause = read(record).expect_err("refused");
        assert_eq!(cause.code, code);
        assert!(cause.message.contains(word), "{}", cause.message);
    }
}

/// Goal: other delimiters, no quotes, another NULL. Method: a dialect of each.
#[test]
fn dialects_differ_in_delimiter_quote_and_null() {
    let text = |format: &CsvFormat, record: &str| {
        let mut found = Vec::new();
        let take = |name: &str, field: Option<Cow<'_, str>>| {
            found.push(format!("{name}={}", field.as_deref().unwrap_or("NULL")))
        };
        read_record(format, record.as_bytes(), take).expect("a record");
        found.join(" ")
    };
    let header = Header::Names(vec!["a".into(), "b".into()]);
    let tabs =
        CsvFormat { dialect: Dialect { delimiter: b'\t', quote: None }, null: "\\N".into(), header: header.clone() };
    assert_eq!(text(&tabs, "\"x\"\t\\N"), "a=\"x\" b=NULL");
    assert_eq!(text(&tabs, "\tz"), "a= b=z");
    let semicolons =
        CsvFormat { dialect: Dialect { delimiter: b';', quote: Some(b'\'') }, null: "NULL".into(), header };
    assert_eq!(text(&semicolons, "'it''s;';NULL"), "a=it's; b=NULL");
    assert_eq!(text(&semicolons, "'NULL';\"x\""), "a=NULL b=\"x\"");
}

/// Goal: a record that stands alone brings its header. Method: kept with one header, read beside others.
#[test]
fn a_record_with_its_own_header_is_read_by_it() {
    let Format::Csv(csv) = format(&["b", "odd, \"name\"", "a"]) else { panic!("csv") };
    let kept = [csv.header_record(), b"2,x,1".to_vec()].concat();
    assert_eq!(kept, b"b,\"odd, \"\"name\"\"\",a\n2,x,1");
    let mut decoder = decoder(&[".a", ".b"], UnknownFields::Counted, &Format::Csv(Arc::new(csv.standing_alone())));
    for (input, expected) in [(&kept[..], [24, 20]), (b"a,b\n3,4", [4, 6]), (b"a,b\n5,6", [4, 6])] {
        let mut fields = Vec::new();
        decoder.decode(input, &mut fields).expect("a record");
        fields.sort_by_key(|(slot, _)| *slot);
        let expected = expected.map(|start| FieldSpan::Text(start..start + 1));
        assert_eq!(fields.into_iter().map(|(_, field)| field).collect::<Vec<_>>(), expected, "{input:?}");
    }
    assert_eq!(decoder.decode(b"a,a\n1,2", &mut Vec::new()).expect_err("twice").code, "HX2082");
    assert_eq!(decoder.decode(b"a,b\n1,2,3", &mut Vec::new()).expect_err("count").code, "HX2080");
}

/// Goal: columns that nothing takes are counted once per record, or reject it. Method: both rules.
#[test]
fn columns_that_nothing_takes_are_counted_or_rejected() {
    let format = format(&["a", "more", "order.id"]);
    let mut counting = decoder(&[".a", ".order.id"], UnknownFields::Counted, &format);
    let mut fields = Vec::new();
    for _ in 0..3 {
        fields.clear();
        counting.decode(b"1,2,3", &mut fields).expect("a record");
    }
    assert_eq!(counting.unknown(), [("more".to_owned(), 3)]);
    assert_eq!(fields, [(0, FieldSpan::Text(0..1)), (1, FieldSpan::Text(4..5))], "a name with points is a path");
    let cause =
        decoder(&[".a"], UnknownFields::Rejected, &format).decode(b"1,2,3", &mut Vec::new()).expect_err("strict");
    assert_eq!(cause.code, "HX2004");
}

/// Goal: a header that cannot name fields is refused. Method: each flaw.
#[test]
fn a_header_names_each_column_once() {
    let names = |record: &[u8]| Dialect::default().names(record);
    assert_eq!(names(b" id ,\"first name\"").expect("names"), ["id", "first name"]);
    for (record, word) in [
        (&b"a,,b"[..], "column 2 has no name"),
        (b"a,b,a", "\"a\" twice"),
        (b"\"a", "quotes"),
        (b"\xff", "UTF-8"),
        (b"", "column 1"),
    ] {
        assert!(names(record).expect_err("refused").contains(word));
    }
}

proptest! {
    /// Goal: what is written by the rules is read back. Method: any texts as one record, in any dialect.
    #[test]
    fn what_is_written_is_read_back(texts in prop::collection::vec("[a\",;\n\r ä]{0,6}", 1..5), odd in any::<bool>()) {
        let dialect = if odd { Dialect { delimiter: b';', quote: Some(b'\'') } } else { Dialect::default() };
        let names: Vec<String> = (0..texts.len()).map(|n| format!("c{n}")).collect();
        let format = CsvFormat { dialect, null: String::new(), header: Header::Names(names) };
        let mut record = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            if at > 0 { record.push(dialect.delimiter); }
            dialect.write_field(text, &mut record);
        }
        let mut found = Vec::new();
        read_record(&format, &record, |_, field| found.push(field.map(Cow::into_owned))).expect("a record");
        prop_assert_eq!(found, texts.into_iter().map(Some).collect::<Vec<_>>());
        prop_assert_eq!(dialect.record_end(&[&record[..], b"\nmore"].concat()), record.len());
    }

    /// Goal: bytes from outside never panic. Method: any bytes, both ways of reading.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        read(&bytes).ok();
        let Format::Csv(csv) = format(&["a"]) else { unreachable!() };
        read_record(&csv.standing_alone(), &bytes, |_, _| {}).ok();
    }
}
