//! Numbers of time that documents promise ("every 30 seconds") have a row that names the constant and the test.
//!
//! Reads: documents, the table, the constants. Invariant: a row names words that stand on its page, a constant of that value,
//! and a test that exists. Not here: limits of the configuration, which its reference is written from.

use super::Finding;
use crate::tree::Tree;

/// The table.
const PAGE: &str = "docs/PROMISED-NUMBERS.md";
/// Documents that report what was measured or decided, and promise nothing.
const REPORTS: [&str; 6] =
    ["CHANGELOG.md", "docs/BENCHMARKS.md", "docs/PROOF.md", "docs/QUALITY.md", "docs/SPEC-COVERAGE.md", "docs/adr/"];
/// A promise begins with one of these.
const BEGINNINGS: [&str; 4] = ["every", "within", "after", "for"];
/// Words that may stand between the beginning and the number.
const BETWEEN: [&str; 4] = ["about", "at", "most", "the"];
const UNITS: [(&str, f64); 10] = [
    ("ms", 1.0),
    ("s", 1e3),
    ("second", 1e3),
    ("seconds", 1e3),
    ("min", 60e3),
    ("minute", 60e3),
    ("minutes", 60e3),
    ("h", 3600e3),
    ("hour", 3600e3),
    ("hours", 3600e3),
];

/// A row of the table.
struct Row<'a> {
    line: usize,
    page: &'a str,
    words: &'a str,
    constant: &'a str,
    shown_by: &'a str,
}

/// Rule: every promised number has a row, and every row is true.
pub(super) fn shown(tree: &Tree) -> Vec<Finding> {
    let rows = rows(tree.text(PAGE).unwrap_or_default());
    let mut findings: Vec<Finding> = rows.iter().flat_map(|row| problems(tree, row)).collect();
    let is_report = |path: &str| path == PAGE || REPORTS.iter().any(|report| path.starts_with(report));
    let is_document = |path: &str| path.ends_with(".md") && !path.contains("/src/") && !is_report(path);
    for (path, text) in tree.texts().filter(|(path, _)| is_document(path)) {
        for (line, words, _) in promises(text) {
            if !rows.iter().any(|row| row.page == path && row.words == words) {
                let problem =
                    format!("\"{words}\" is promised, and {PAGE} has no row that names its constant and its test");
                findings.push(Finding::new(format!("{path}:{line}"), problem));
            }
        }
    }
    findings
}

/// What is wrong with a row.
fn problems(tree: &Tree, row: &Row<'_>) -> Vec<Finding> {
    let mut problems = Vec::new();
    let found = promises(tree.text(row.page).unwrap_or_default()).into_iter().find(|(_, words, _)| words == row.words);
    match found {
        None => problems.push(format!("{} does not say \"{}\" (any more)", row.page, row.words)),
        Some((_, _, promised_ms)) if !is_reason(row.constant) => match value_of(tree, row.constant) {
            None => problems.push(format!("there is no constant {} with a time", row.constant)),
            Some(value) if (value - promised_ms).abs() > f64::EPSILON => {
                problems.push(format!("\"{}\" is promised, {} is {value} ms", row.words, row.constant));
            }
            Some(_) => {}
        },
        Some(_) => {}
    }
    if !is_reason(row.shown_by) && !is_test(tree, row.shown_by) {
        problems.push(format!("there is no test {}", row.shown_by));
    }
    problems.into_iter().map(|problem| Finding::new(format!("{PAGE}:{}", row.line), problem)).collect()
}

/// `none: why not`.
fn is_reason(cell: &str) -> bool {
    cell.strip_prefix("none: ").is_some_and(|reason| reason.len() > 10)
}

fn rows(table: &str) -> Vec<Row<'_>> {
    let cells = table.lines().enumerate().filter_map(|(at, line)| {
        let cells: Vec<&str> =
            line.trim().trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [page, words, constant, shown_by] = cells[..] else { return None };
        page.ends_with(".md").then_some(Row { line: at + 1, page, words, constant, shown_by })
    });
    cells.collect()
}

/// Line, words in lower case, and milliseconds of every promise outside code.
fn promises(text: &str) -> Vec<(usize, String, f64)> {
    let mut found = Vec::new();
    for (line, prose) in super::links::prose(text) {
        let words: Vec<String> = prose.split_whitespace().map(bare).collect();
        for at in (0..words.len()).filter(|at| BEGINNINGS.contains(&words[*at].as_str())) {
            let number_at = (at + 1..words.len()).find(|next| !BETWEEN.contains(&words[*next].as_str()));
            let Some((number_at, number)) = number_at.map(|next| (next, words[next].as_str())) else { continue };
            let (digits, glued) =
                number.split_at(number.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(number.len()));
            let unit = if glued.is_empty() { words.get(number_at + 1).map_or("", String::as_str) } else { glued };
            let unit_ms = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ms)| *ms);
            let (Ok(count), Some(unit_ms)) = (digits.replace(',', "").parse::<f64>(), unit_ms) else { continue };
            let last = if glued.is_empty() { number_at + 1 } else { number_at };
            found.push((line, words[at..=last].join(" "), count * unit_ms));
        }
    }
    found
}

/// A word without what stands around it.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase()
}

/// The milliseconds of `path/of/file.rs NAME`.
fn value_of(tree: &Tree, constant: &str) -> Option<f64> {
    let (path, name) = constant.split_once(' ')?;
    let declared = format!("const {name}: Duration = Duration::from_");
    let value = tree.text(path)?.lines().find_map(|line| line.split_once(&declared))?.1;
    let (unit, rest) = value.split_once('(')?;
    let number: f64 = rest.split_once(')')?.0.replace('_', "").parse().ok()?;
    match unit {
        "millis" => Some(number),
        "secs" => Some(number * 1e3),
        _ => None,
    }
}

fn is_test(tree: &Tree, name: &str) -> bool {
    let declared = format!("fn {name}(");
    tree.rust().any(|(_, text)| {
        let at = text.find(&declared);
        at.is_some_and(|at| text[..at].rfind("test").is_some_and(|attribute| at - attribute < 200))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "const LOOK: Duration = Duration::from_secs(30);\n#[test]\nfn a_change_is_noticed() {}\n";

    fn findings(document: &str, row: &str) -> Vec<String> {
        let tree = Tree::of(&[("docs/a.md", document), ("src/a.rs", CODE), (PAGE, row)]);
        shown(&tree).iter().map(ToString::to_string).collect()
    }

    /// Goal: a promise with a true row passes, and each way of being wrong is found. Method: one of each.
    #[test]
    fn a_promised_number_needs_its_constant_and_its_test() {
        let good = "| docs/a.md | every 30 seconds | src/a.rs LOOK | `a_change_is_noticed` |\n";
        assert_eq!(findings("It is compared Every 30 seconds.", good), [""; 0]);
        assert_eq!(findings("Written in code:\n```\nevery 5 s\n```\n", ""), [""; 0]);
        for (document, row, problem) in [
            ("It is compared every 30 seconds.", "", "has no row"),
            ("It is compared every 31 seconds.", &good.replace("30", "31"), "is 30000 ms"),
            ("It is compared now and then.", good, "any more"),
            ("It is compared every 30 seconds.", &good.replace("LOOK", "PEEK"), "no constant"),
            ("It is compared every 30 seconds.", &good.replace("a_change_is_noticed", "nothing"), "no test nothing"),
            ("It is compared every 30 seconds.", &good.replace("src/a.rs LOOK", "none: why"), "no constant none: why"),
        ] {
            let found = findings(document, row);
            assert!(found.iter().any(|finding| finding.contains(problem)), "{document} {row}: {found:?}");
        }
        let reasoned = good.replace("src/a.rs LOOK", "none: the server's own number");
        assert_eq!(findings("It is compared every 30 seconds.", &reasoned), [""; 0]);
    }

    /// Goal: promises are found however they are written. Method: units, glued units, words between, and what is none.
    #[test]
    fn promises_are_found_in_prose() {
        let found = |text: &str| promises(text).into_iter().map(|(_, words, ms)| (words, ms)).collect::<Vec<_>>();
        assert_eq!(
            found("(within about 11 s), for at most 1,500 ms"),
            [("within about 11 s".to_owned(), 11e3), ("for at most 1500 ms".replace("1500", "1,500"), 1500.0)]
        );
        assert_eq!(found("| after 0.3s |"), [("after 0.3s".to_owned(), 300.0)]);
        assert_eq!(found("for 7 workflows, every event, after 8"), []);
    }
}
