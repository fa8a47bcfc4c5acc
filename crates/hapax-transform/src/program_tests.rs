use super::*;

fn faults(text: &str) -> Vec<Fault> {
    Program::compile(text, &[FieldPath::of_name("id")]).err().unwrap_or_default()
}

fn first(text: &str) -> (&'static str, usize, usize) {
    let fault = faults(text).into_iter().next().unwrap_or_else(|| panic!("{text} compiles"));
    (fault.code, fault.line, fault.column)
}

/// Goal: an impure function is refused by name and place, with the reason and a cure. Method: every refused one.
#[test]
fn every_refused_function_is_named_with_its_place() {
    for (name, reason) in crate::functions::REFUSED {
        let found = faults(&format!(".a = 1\n  .b = {name}!(.c)"));
        assert_eq!((found[0].code, found[0].line, found[0].column), ("HX1402", 2, 8), "{name}");
        assert!(found[0].message.contains(reason.what()) && found[0].message.contains(name), "{}", found[0].message);
        assert_eq!(found.len(), 1, "{name} is told once: {found:?}");
    }
}

/// Goal: the excerpt points at what is meant. Method: a line with characters of several bytes before it.
#[test]
fn the_excerpt_points_at_the_place() {
    let found = faults(".\"ä\" = 1\n.\"bö\" = now()\n");
    assert_eq!(found[0].excerpt, ".\"bö\" = now()\n        ^^^");
    assert_eq!(
        found[0].message,
        "the function now reads the clock; a transform must give the same result after a crash"
    );
}

/// Goal: errors of the compiler come with line, column and a way out. Method: one of each common kind.
#[test]
fn errors_of_the_compiler_have_a_place() {
    assert_eq!(first(".a = to_int(.b)"), ("HX1401", 1, 6));
    assert_eq!(first(".a = 1\n.b = nosuch(.c)"), ("HX1401", 2, 6));
    assert_eq!(first(".a = "), ("HX1401", 1, 5));
    assert_eq!((first(".a = 1\n.b = (2").0, first(".a = 1\n.b = (2").1), ("HX1401", 2));
    assert_eq!(first("\u{0}"), ("HX1401", 1, 1));
    let found = faults(".a = to_int(.b)");
    assert!(found[0].message.contains("unhandled fallible assignment"), "{}", found[0].message);
    assert!(!found[0].cure.is_empty());
}

/// Goal: all problems at once, in the order of the text, each once.
#[test]
fn all_problems_are_told_at_once() {
    let found = faults("del(.id)\n.a = now()\n.b = %meta\n.c = to_int(.d)\n.e = random_int(1, 2)\n");
    let codes: Vec<_> = found.iter().map(|fault| (fault.code, fault.line)).collect();
    assert_eq!(codes, [("HX1405", 1), ("HX1402", 2), ("HX1404", 3), ("HX1401", 4), ("HX1402", 5)]);
}

/// Goal: the zone of a time is in the program. Method: by name, by place, missing, local, from a field.
#[test]
fn a_time_zone_is_written_out() {
    for program in [
        r#".a = format_timestamp!(.t, "%F", timezone: "Europe/Berlin")"#,
        r#".a = format_timestamp!(.t, "%F", "Europe/Berlin")"#,
        r#".a = parse_timestamp!(.t, "%F %T")"#,
    ] {
        assert_eq!(faults(program), [], "{program}");
    }
    for zone in ["\"local\"", "timezone: \"local\"", "timezone: \"\"", "timezone: string!(.z)", "timezone: \"{{ z }}\""]
    {
        let found = first(&format!(r#"z = "x"; .a = parse_timestamp!(.t, "%F", {zone})"#));
        assert_eq!(found.0, "HX1403", "{zone}");
    }
}

/// Goal: neither a huge nor a deep program takes the process with it.
#[test]
fn a_program_is_bounded() {
    assert_eq!(first(&".a = 1\n".repeat(10_000)).0, "HX1406");
    assert_eq!(first(&format!(".a = {}1{}", "(".repeat(5_000), ")".repeat(5_000))).0, "HX1406");
    let deep = format!(".a = {}1{}", "(".repeat(DEEPEST_BRACKETS), ")".repeat(DEEPEST_BRACKETS));
    assert_eq!(faults(&deep), []);
}

/// Goal: what a program looks at is known. Method: by field, as a whole, and by its last word.
#[test]
fn what_a_program_reads_is_known() {
    let program = |text: &str| Program::compile(text, &[]).expect("the program compiles");
    let read = program(".a = .b.c\ndel(.d)\n.e = del(.f)\nif exists(.g) { abort }");
    assert_eq!(read.names, ["b", "d", "f", "g", "a", "e"]);
    assert_eq!(read.dropped, ["b", "d", "g", "a", "e"]);
    assert!(!read.reads_all);
    assert!(!program(".a = 1\n.").reads_all, "the last . reads nothing");
    for text in ["x = .\n.a = x.b", ". = merge(., {\"a\": 1})", ". |= {\"a\": 1}", ". = unnest!(.a)", ".a = keys(.)"] {
        assert!(program(text).reads_all, "{text}");
    }
    assert!(!program(". = {\"a\": .b}").reads_all);
    assert_eq!(program(".a = 1").fingerprint().len(), 16);
    assert_ne!(program(".a = 1").fingerprint(), program(".a = 2").fingerprint());
}
