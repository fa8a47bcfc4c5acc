use std::path::Path;

use super::super::{Loaded, System, load};
use super::*;

fn loaded(text: &str) -> Result<Loaded, Problems> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hapax.yaml");
    std::fs::write(&path, text).expect("a file");
    load(Path::new(&path), &System)
}

fn told(text: &str) -> Vec<(usize, usize, &'static str)> {
    let problems = loaded(text).expect_err("something is wrong");
    problems.iter().map(|problem| (problem.place.line, problem.place.column, problem.code)).collect()
}

const HEAD: &str = "state: none
workflows:
  - id: w
    delivery: { deduplication: { keyFields: [id] } }
    transform:";

/// Goal: line and column are those of the file. Method: a program as a block, indented, with empty lines, on one line.
#[test]
fn a_fault_is_told_where_it_stands_in_the_file() {
    assert_eq!(
        told(&format!("{HEAD} |\n      .a = 1\n\n      .b = now()\n      .c = random_int(1, 2)\n")),
        [(8, 12, "HX1402"), (9, 12, "HX1402")]
    );
    assert_eq!(told(&format!("{HEAD} |\n\n\n      .b = now()\n")), [(8, 12, "HX1402")]);
    assert_eq!(
        told(&format!("{HEAD} |-\n          if true {{\n            del(.id)\n          }}\n")),
        [(7, 13, "HX1405")]
    );
    assert_eq!(told(&format!("{HEAD} .b = now()\n")), [(5, 21, "HX1402")]);
    for before in ["&prog |", "!!str |-", "&prog\n      !!str |2-  # a program", "&prog |+"] {
        let line = 6 + before.matches('\n').count();
        for empty in [0, 2] {
            let text = format!("{HEAD} {before}\n{}      .a = 1\n      .b = now()\n", "\n".repeat(empty));
            assert_eq!(told(&text), [(line + empty + 1, 12, "HX1402")], "{text}");
        }
    }
}

/// Goal: the message shows the program's line with a caret, and the cure. Method: the whole text.
#[test]
fn a_fault_shows_the_line_of_the_program() {
    let problems = loaded(&format!("{HEAD} |\n      .a = to_int(.b)\n")).expect_err("fallible").to_string();
    let (_, message) = problems.split_once("HX1401 ").expect("its code");
    let lines: Vec<&str> = message.lines().collect();
    assert!(lines[0].starts_with("the transform does not compile: unhandled fallible assignment"), "{problems}");
    assert_eq!(lines[1..3], ["      .a = to_int(.b)", "           ^^^^^^^^^^"]);
    assert!(lines[3].starts_with("    ") && lines[3].trim().len() > 10, "{problems}");
}

/// Goal: `${…}` in a program is the program's own, and a program that compiles is in the configuration.
#[test]
fn a_program_that_compiles_is_taken_as_it_is_written() {
    let text = format!("{HEAD} |\n      .a = \"${{HOME}}\"\n    transformTimeout: 2s\n");
    let config = loaded(&text).unwrap_or_else(|problems| panic!("{problems}")).config;
    let transform = config.workflows[0].transform.clone().expect("a program");
    assert_eq!(transform.text, ".a = \"${HOME}\"\n");
    assert_eq!(transform.limit.as_secs(), 2);
}
