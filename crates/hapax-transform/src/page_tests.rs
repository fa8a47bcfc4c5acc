//! The examples of `docs/concepts/transforms.md`, run.

use hapax_engine::decode::UnknownFields;
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_model::epoch::Epoch;
use hapax_model::field::{FieldPath, FieldValue};
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::position::{Incarnation, Position};
use serde_json::{Map, Value};

use crate::Program;

/// The blocks of the page: what they are marked with, and their text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(mark)) => open = Some((mark.to_owned(), String::new())),
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// What comes out of `program` for `input`, as the page writes it.
fn run(program: &str, input: &str, expected: &str) -> String {
    let mut names: Vec<String> = vec!["order_id".into()];
    for line in input.lines().chain(expected.lines().filter(|line| line.starts_with('{'))) {
        let object: Map<String, Value> = serde_json::from_str(line).expect("the page's JSON is right");
        names.extend(object.keys().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    }
    let fields: Vec<FieldPath> = names.iter().map(|name| FieldPath::of_name(name)).collect();
    let compiled = Program::compile(program, &[]).unwrap_or_else(|faults| panic!("{program}: {faults:?}")).shared();
    let strategy = DedupStrategy::content_fields(vec![fields[0].clone()]);
    let keyer = Keyer::new(strategy, Uniqueness::WithVersion, KeyNeed::Fields);
    let origin = Origin { source: "page".into(), lane: "0".into() };
    let mut pipeline = Pipeline::new(&fields, keyer, None, UnknownFields::Counted, origin)
        .with_transform(compiled.as_ref(), std::sync::Arc::default());
    let mut batch = pipeline.batch();
    batch.inputs.push(Position::at(0), input.trim().as_bytes());
    pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
    let letters = batch.letters().iter().map(|(_, letter)| format!("letter {}\n", letter.cause.code));
    let events = batch.events().map(|event| {
        let shown = names.iter().enumerate().filter_map(|(slot, name)| {
            let value = match event.field(slot) {
                FieldValue::Absent => return None,
                FieldValue::Null => "null".to_owned(),
                FieldValue::Bool(value) => value.to_string(),
                FieldValue::Number(text) | FieldValue::Json(text) => text.to_owned(),
                FieldValue::Text(text) => Value::from(text).to_string(),
            };
            Some(format!("\"{name}\": {value}"))
        });
        format!("{{{}}}\n", shown.collect::<Vec<_>>().join(", "))
    });
    letters.chain(events).collect()
}

/// The same fields with the same texts, in any order.
fn sorted(line: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = line.trim_matches(['{', '}']).split(", ").collect();
    parts.sort_unstable();
    parts
}

/// Goal: the page tells the truth. Method: every program on it, with its input, gives its output, to the digit.
#[test]
fn every_example_of_the_page_runs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/concepts/transforms.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let blocks: Vec<_> = blocks(&page).into_iter().filter(|(mark, _)| mark != "yaml").collect();
    let mut examples = 0;
    for example in blocks.chunks(3) {
        let [(vrl, program), (input_mark, input), (output_mark, output)] = example else { panic!("three blocks each") };
        assert_eq!([vrl.as_str(), input_mark, output_mark], ["vrl", "input", "output"], "{program}");
        let (found, expected) = (run(program, input, output), output);
        let lines = |text: &str| text.lines().map(|line| sorted(line).join(", ")).collect::<Vec<_>>();
        assert_eq!(lines(&found), lines(expected), "{program}");
        examples += 1;
    }
    assert!(examples >= 9, "only {examples} examples were found");
}
