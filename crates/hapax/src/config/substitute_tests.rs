use std::collections::HashMap;

use super::*;

/// A world made of maps.
struct World(HashMap<&'static str, &'static [u8]>);

impl Surroundings for World {
    fn variable(&self, name: &str) -> Option<OsString> {
        use std::os::unix::ffi::OsStringExt;
        self.0.get(name).map(|value| OsString::from_vec(value.to_vec()))
    }

    fn read(&self, path: &Path, _: usize) -> io::Result<Vec<u8>> {
        let content = path.to_str().and_then(|path| self.0.get(path));
        content.map(|content| content.to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, _: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        Ok(None)
    }
}

fn replaced(text: &str) -> Result<(String, Origin), Problem> {
    let world = World(HashMap::from([
        ("NAME", b"erp".as_slice()),
        ("EMPTY", b""),
        ("NESTED", b"${NAME}"),
        ("BYTES", b"\xff"),
        ("etc/pw", b"s3cret\r\n"),
        ("etc/bytes", b"\xff"),
        ("/abs", b"x\n\n"),
    ]));
    let place = Place { file: "hapax.yaml".into(), line: 3, column: 7 };
    let mut problems = Problems::default();
    let mut node = Node::new(place, Data::Text(text.into()));
    substitute(&mut node, Path::new("etc"), &world, &mut problems);
    match (node.data, problems.iter().next()) {
        (Data::Text(text), None) => Ok((text, node.origin)),
        (_, problem) => Err(problem.cloned().expect("a problem for a lost value")),
    }
}

/// Goal: each form gives its value, and what came from outside is marked. Method: all forms, alone and in a text.
#[test]
fn variables_and_files_are_replaced() {
    for (text, value) in [
        ("${NAME}", "erp"),
        ("a-${NAME}-${NAME}", "a-erp-erp"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${MISSING:-}", ""),
        ("${MISSING:-a:-b}", "a:-b"),
        ("${NAME:?why}", "erp"),
        ("${NESTED}", "${NAME}"),
        ("${file:pw}", "s3cret"),
        ("${file:/abs}", "x\n"),
    ] {
        assert_eq!(replaced(text), Ok((value.to_owned(), Origin::Variable)), "{text}");
    }
    for (text, value) in [("$${NAME}", "${NAME}"), ("$NAME", "$NAME"), ("a$$b", "a$$b"), ("$${a}$${b}", "${a}${b}")] {
        assert_eq!(replaced(text), Ok((value.to_owned(), Origin::File)), "{text}");
    }
}

/// Goal: what is missing or malformed is told with place, variable and cure. Method: each way to get it wrong.
#[test]
fn a_missing_variable_is_named_with_its_place() {
    for (text, code, parts) in [
        ("${MISSING}", "HX1020", ["the variable MISSING is not set", "${MISSING:-default}"]),
        ("${MISSING:?ask the ERP team}", "HX1020", ["ask the ERP team", "export MISSING"]),
        ("${EMPTY:?why}", "HX1020", ["the variable EMPTY is not set: why", "export EMPTY"]),
        ("${NAME", "HX1021", ["not closed", "$${"]),
        ("${}", "HX1021", ["is no variable", "${NAME}"]),
        ("${1A}", "HX1021", ["is no variable", "${NAME}"]),
        ("${NAME:x}", "HX1021", ["is no variable", "${NAME:-default}"]),
        ("${a b}", "HX1021", ["is no variable", "${NAME}"]),
        ("${BYTES}", "HX1021", ["BYTES is not UTF-8", "UTF-8"]),
        ("${file:nowhere}", "HX1022", ["etc/nowhere", "configuration's own folder"]),
        ("${file:bytes}", "HX1022", ["not UTF-8", "readable file"]),
    ] {
        let problem = replaced(text).expect_err(text);
        assert_eq!((problem.code, problem.place.line, problem.place.column), (code, 3, 7), "{text}");
        for part in parts {
            assert!(problem.to_string().contains(part), "{text}: {problem}");
        }
    }
}

/// Goal: a transform is left alone. Method: the same text under `transform` and beside it.
#[test]
fn nothing_is_replaced_inside_transform() {
    let mut problems = Problems::default();
    let mut node = crate::config::yaml::parse(
        &"hapax.yaml".into(),
        "transform: |\n  .x = \"${MISSING}\"\nother: [\"${MISSING:-d}\"]\n",
        &mut problems,
    )
    .expect("a tree");
    substitute(&mut node, Path::new(""), &World(HashMap::new()), &mut problems);
    assert!(problems.is_empty(), "{problems}");
    let Data::Map(entries) = node.data else { panic!("a mapping") };
    assert_eq!(entries[0].node.data, Data::Text(".x = \"${MISSING}\"\n".into()));
    let Data::List(items) = &entries[1].node.data else { panic!("a list") };
    assert_eq!((&items[0].data, items[0].origin), (&Data::Text("d".into()), Origin::Variable));
}
