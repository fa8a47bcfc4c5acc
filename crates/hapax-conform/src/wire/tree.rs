//! An answer as a list of paths and values, from what `{:#?}` prints.

/// One field: `responses[0].partitions[1].error_code` and `3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) path: String,
    pub(crate) value: String,
}

/// One open bracket.
struct Scope {
    /// What it adds to the path.
    name: String,
    /// How many elements it has had, if it is a list.
    next: Option<usize>,
}

/// Flattens pretty debug output. Names of types are left out, so are unknown tagged fields, of which there are none.
pub(crate) fn leaves(text: &str) -> Vec<Leaf> {
    let mut scopes: Vec<Scope> = Vec::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim().trim_end_matches(',');
        if line.starts_with("unknown_tagged_fields") || line.is_empty() {
            continue;
        }
        if matches!(line, "}" | "]" | ")") {
            scopes.pop();
            continue;
        }
        let (name, value) = match line.split_once(": ") {
            Some((name, value)) if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => (name, value),
            _ => ("", line),
        };
        let mut step = name.to_owned();
        if let Some(next) = scopes.last_mut().and_then(|scope| scope.next.as_mut()) {
            step = format!("[{next}]{name}");
            *next += 1;
        }
        let opens = value.ends_with(['{', '[', '(']) && !value.starts_with(['"', 'b']);
        if opens {
            let next = value.ends_with('[').then_some(0);
            scopes.push(Scope { name: step, next });
        } else {
            found.push(Leaf { path: path(&scopes, &step), value: value.to_owned() });
        }
    }
    found
}

fn path(scopes: &[Scope], step: &str) -> String {
    let mut path = String::new();
    for name in scopes.iter().map(|scope| scope.name.as_str()).chain([step]) {
        if !path.is_empty() && !name.is_empty() && !name.starts_with('[') {
            path.push('.');
        }
        path.push_str(name);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    #[expect(dead_code, reason = "only printed")]
    struct Inner {
        code: i16,
        name: Option<Wrapped>,
    }

    #[derive(Debug)]
    #[expect(dead_code, reason = "only printed")]
    struct Wrapped(&'static str);

    #[derive(Debug)]
    #[expect(dead_code, reason = "only printed")]
    struct Outer {
        list: Vec<Inner>,
        empty: Vec<i32>,
        numbers: Vec<i32>,
        text: &'static str,
    }

    /// Goal: every field has one path. Method: lists, options, wrappers, text that looks like brackets.
    #[test]
    fn every_field_has_one_path() {
        let inner = |code, name: Option<&'static str>| Inner { code, name: name.map(Wrapped) };
        let list = vec![inner(1, None), inner(2, Some("a: {"))];
        let outer = Outer { list, empty: vec![], numbers: vec![7, 8], text: "x [" };
        let lines: Vec<String> =
            leaves(&format!("{outer:#?}")).into_iter().map(|leaf| format!("{}={}", leaf.path, leaf.value)).collect();
        let expected = [
            "list[0].code=1",
            "list[0].name=None",
            "list[1].code=2",
            "list[1].name=\"a: {\"",
            "empty=[]",
            "numbers[0]=7",
            "numbers[1]=8",
            "text=\"x [\"",
        ];
        assert_eq!(lines, expected);
    }
}
