use super::*;
use proptest::prelude::*;

fn read(text: &str) -> (Option<Node>, Vec<Problem>) {
    let mut problems = Problems::default();
    let node = parse(&"hapax.yaml".into(), text, &mut problems);
    (node, problems.iter().cloned().collect())
}

/// The only problem of `text`: line, column, code, and the whole message with its cure.
fn only_problem(text: &str) -> (usize, usize, &'static str, String) {
    let (_, problems) = read(text);
    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    (problems[0].place.line, problems[0].place.column, problems[0].code, problems[0].to_string())
}

/// Goal: values know their place. Method: a small tree, looked up by hand.
#[test]
fn nodes_know_line_and_column() {
    let (node, problems) = read("# a comment\nstate: none\nworkflows:\n  - id: \"7\"\n");
    assert_eq!(problems, []);
    let Some(Node { data: Data::Map(entries), .. }) = node else { panic!("a mapping") };
    assert_eq!((entries[0].key.as_str(), entries[0].place.line, entries[0].place.column), ("state", 2, 1));
    assert_eq!((entries[0].node.place.line, entries[0].node.place.column), (2, 8));
    let Data::List(items) = &entries[1].node.data else { panic!("a list") };
    let Data::Map(workflow) = &items[0].data else { panic!("a mapping") };
    assert_eq!(workflow[0].node.data, Data::Text("7".into()));
    assert_eq!((workflow[0].node.place.line, workflow[0].node.place.column), (4, 9));
}

/// Goal: `{ url: ${X} }` is explained. Method: the form of the issue and its relatives, each at its place.
#[test]
fn a_variable_without_quotes_in_braces_is_explained() {
    for (text, line, column) in [
        ("sink: { url: ${X} }", 1, 14),
        ("a: 1\nsink: { url: ${X:-y}, table: t }\nb: 2", 2, 14),
        ("sink: [ ${X} ]", 1, 9),
        ("sink: { url: postgres://${X}/db }", 1, 25),
        ("sink: {\n  url: ${X},\n  table: t }", 2, 8),
        ("sink: { a: \"${A}\", url: ${X} }", 1, 25),
    ] {
        let (found_line, found_column, code, message) = only_problem(text);
        assert_eq!((found_line, found_column, code), (line, column, "HX1004"), "{text}: {message}");
        assert!(message.contains("put it in quotes: { url: \"${NAME}\" }"), "{message}");
    }
    for right in ["sink: { url: \"${X}\" }", "url: ${X}", "sink: { url: '${X}' }"] {
        assert_eq!(read(right).1, [], "{right}");
    }
}

/// Goal: a key that stands twice is an error that names the first. Method: two pairs in one file, both told.
#[test]
fn every_duplicate_key_is_told() {
    let (_, problems) = read("state: none\nstate: none\nmemory: 1\nworkflows:\n  - id: a\n    id: b\n");
    let told: Vec<_> = problems.iter().map(|it| (it.place.line, it.code, it.message.as_str())).collect();
    assert_eq!(
        told,
        [(2, "HX1005", "\"state\" is already set on line 1"), (6, "HX1005", "\"id\" is already set on line 5")]
    );
    assert!(problems[0].cure.contains("keep one"));
}

/// Goal: broken YAML has a place and a cure. Method: usual slips.
#[test]
fn a_syntax_error_has_place_and_cure() {
    for (text, line, cure) in [
        ("a: [1, 2\nb: 3\n", 2, "each [ with a ]"),
        ("a: { b: 1\nc: 2\n", 2, "{ with a }"),
        ("a: @b\n", 1, "needs quotes"),
        ("a: { b: 1 ]\n", 1, "{ with a }"),
        ("a: \"open\nb: 1\n", 1, "close the quote"),
        ("a: b: c\n", 1, "indentation"),
        ("a:\n\t- b\n", 2, "tabs"),
        ("a: *nowhere\n", 1, "&name"),
    ] {
        let (found, _, code, message) = only_problem(text);
        assert_eq!((found, code), (line, "HX1003"), "{text:?}: {message}");
        assert!(message.contains(cure), "{text:?}: {message}");
    }
}

/// Goal: YAML that a configuration has no use for is refused by name. Method: each such thing.
#[test]
fn unused_yaml_is_refused() {
    for (text, line, part) in [
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: !secret x\n", 1, "tag"),
        ("? [a, b]\n: c\n", 1, "where a key is expected"),
        ("{ [a]: 1 }\n", 1, "where a key is expected"),
        (": c\n", 1, "a key is empty"),
    ] {
        let (found, _, code, message) = only_problem(text);
        assert_eq!((found, code), (line, "HX1006"), "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
    assert_eq!(read("a: !!str 1\n").1, []);
}

/// Goal: no text makes more work than it is worth. Method: laughs by the billion, depth, size.
#[test]
fn aliases_depth_and_size_are_bounded() {
    let mut laughs = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let before = format!("*a{},", level - 1).repeat(10);
        laughs.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    assert_eq!(only_problem(&laughs).2, "HX1002");
    assert_eq!(only_problem(&"[".repeat(200)).2, "HX1002");
    assert_eq!(only_problem(&"- ".repeat(100_000)).2, "HX1002");
    assert_eq!(only_problem(&format!("a: {}", "x".repeat(LARGEST_FILE))).2, "HX1002");
    assert_eq!(read("a: &x [1]\nb: *x\n").1, []);
    assert_eq!(only_problem("a: &x [*x]\n").2, "HX1003");
}

proptest! {
    /// Goal: no text panics the reader. Method: texts made of the pieces that YAML cares about.
    #[test]
    fn no_text_panics(pieces in prop::collection::vec(prop_oneof![
        Just("- ".to_owned()), Just(": ".to_owned()), Just("\n".to_owned()), Just("  ".to_owned()), Just("{".to_owned()),
        Just("}".to_owned()), Just("[".to_owned()), Just("]".to_owned()), Just(", ".to_owned()), Just("\"".to_owned()),
        Just("'".to_owned()), Just("${".to_owned()), Just("#".to_owned()), Just("&a ".to_owned()), Just("*a".to_owned()),
        Just("|\n".to_owned()), Just("? ".to_owned()), Just("---\n".to_owned()), Just("\t".to_owned()), Just("!x ".to_owned()),
        "[a-z]{1,4}", any::<char>().prop_map(String::from),
    ], 0..40)) {
        let (node, problems) = read(&pieces.concat());
        prop_assert!(problems.iter().all(|problem| !problem.cure.is_empty()));
        prop_assert!(node.is_none_or(|node| node.depth() <= DEEPEST + 1));
    }
}
