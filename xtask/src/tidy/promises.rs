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
const BEGINNINGS: [&[&str]; 7] =
    [&["every"], &["within"], &["after"], &["for"], &["about"], &["at", "most"], &["up", "to"]];
/// Words that may stand between the beginning and the number.
const BETWEEN: [&str; 7] = ["about", "at", "least", "most", "the", "up", "to"];
/// Numbers that are written as words.
const NUMBERS: [(&str, f64); 18] = [
    ("a", 1.0),
    ("an", 1.0),
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("twelve", 12.0),
    ("fifteen", 15.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("sixty", 60.0),
    ("hundred", 100.0),
];
const UNITS: [(&str, f64); 13] = [
    ("ms", 1.0),
    ("millisecond", 1.0),
    ("milliseconds", 1.0),
    ("s", 1e3),
    ("second", 1e3),
    ("seconds", 1e3),
    ("min", 60e3),
    ("minute", 60e3),
    ("minutes", 60e3),
    ("h", 3600e3),
    ("hour", 3600e3),
    ("hours", 3600e3),
    ("day", 86_400e3),
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
    for words in paragraphs(text) {
        let mut at = 0;
        while at < words.len() {
            let Some((next, ms)) = promise_at(&words, at) else {
                at += 1;
                continue;
            };
            let said: Vec<&str> = words[at..next].iter().map(|(_, word)| word.as_str()).collect();
            found.push((words[at].0, said.join(" "), ms));
            at = next;
        }
    }
    found
}

/// Bare words with their lines, of each paragraph, point of a list, or row of a table.
fn paragraphs(text: &str) -> Vec<Vec<(usize, String)>> {
    let mut paragraphs: Vec<Vec<(usize, String)>> = Vec::new();
    let mut goes_on_at = 0;
    for (line, prose) in super::links::prose(text) {
        let prose = prose.trim();
        if line != goes_on_at || prose.starts_with(['|', '#', '-', '*', '>']) {
            paragraphs.push(Vec::new());
        }
        if let Some(words) = paragraphs.last_mut() {
            words.extend(prose.split_whitespace().map(|word| (line, bare(word))));
        }
        goes_on_at = if prose.is_empty() || prose.starts_with(['|', '#']) { 0 } else { line + 1 };
    }
    paragraphs
}

/// Where the promise that begins at `at` ends, and its milliseconds.
fn promise_at(words: &[(usize, String)], at: usize) -> Option<(usize, f64)> {
    let word = |at: usize| words.get(at).map_or("", |(_, word)| word.as_str());
    let begins = |beginning: &&&[&str]| beginning.iter().enumerate().all(|(n, part)| word(at + n) == *part);
    let beginning = BEGINNINGS.iter().find(begins)?;
    let number_at = (at + beginning.len()..words.len()).find(|next| !BETWEEN.contains(&word(*next)))?;
    let number = word(number_at);
    if let Some((_, count)) = NUMBERS.iter().find(|(name, _)| *name == number) {
        return Some((number_at + 2, count * unit_ms(word(number_at + 1))?));
    }
    let (digits, glued) = number.split_at(number.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(number.len()));
    let (next, unit) = if glued.is_empty() { (number_at + 2, word(number_at + 1)) } else { (number_at + 1, glued) };
    Some((next, digits.replace(',', "").parse::<f64>().ok()? * unit_ms(unit)?))
}

fn unit_ms(unit: &str) -> Option<f64> {
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ms)| *ms)
}

/// A word without what stands around it.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase()
}

/// The milliseconds of `path/of/file.rs NAME`, or of `path/of/file.rs NAME * path/of/another.rs COUNT`.
fn value_of(tree: &Tree, constant: &str) -> Option<f64> {
    let (time, count) = constant.split_once(" * ").map_or((constant, None), |(time, count)| (time, Some(count)));
    let value = declared(tree, time, "Duration")?;
    // Tests may wait for less.
    let value = value.split_once("} else {").map_or(value, |(_, otherwise)| otherwise.trim());
    let (unit, rest) = value.strip_prefix("Duration::from_")?.split_once('(')?;
    let number = product(rest.split_once(')')?.0)?;
    let times = count.map_or(Some(1.0), |count| product(declared(tree, count, "u32")?))?;
    match unit {
        "millis" => Some(number * times),
        "secs" => Some(number * times * 1e3),
        _ => None,
    }
}

/// What stands behind the equals sign of `path/of/file.rs NAME`.
fn declared<'a>(tree: &'a Tree, constant: &str, kind: &str) -> Option<&'a str> {
    let (path, name) = constant.split_once(' ')?;
    let declared = format!("const {name}: {kind} = ");
    let (_, value) = tree.text(path)?.lines().find_map(|line| line.split_once(&declared))?;
    Some(value.trim_end_matches(';'))
}

/// `5_000`, `24 * 3600`.
fn product(text: &str) -> Option<f64> {
    text.split('*').map(|factor| factor.trim().replace('_', "").parse::<f64>().ok()).product()
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

    /// Goal: the value of a constant is found however it is declared. Method: a product, one that tests shorten, and a number of
    /// times.
    #[test]
    fn a_constant_is_read_as_it_is_declared() {
        let code = "const DAY: Duration = Duration::from_secs(24 * 3_600);\npub(super) const LASTS: Duration = if cfg!(test) { \
                    Duration::from_millis(5) } else { Duration::from_secs(5) };\nconst LOOKS: u32 = 2;\n";
        let tree = Tree::of(&[("a.rs", code)]);
        for (constant, value) in [
            ("a.rs DAY", Some(86_400e3)),
            ("a.rs LASTS", Some(5e3)),
            ("a.rs LASTS * a.rs LOOKS", Some(10e3)),
            ("a.rs LASTS * a.rs DAY", None),
            ("a.rs LOOKS", None),
        ] {
            assert_eq!(value_of(&tree, constant), value, "{constant}");
        }
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
        let minute = [("for up to a minute".to_owned(), 60e3)];
        assert_eq!(found("it waits for up to\na minute."), minute, "also over the end of a line");
        let two = [("for two seconds".to_owned(), 2e3), ("every five seconds".to_owned(), 5e3)];
        assert_eq!(found("rests for two seconds, and says so every five seconds"), two);
        let three = [("about 50 ms", 50.0), ("at most 20 min", 1200e3), ("up to 3 hours", 10_800e3)];
        assert_eq!(
            found("(about 50 ms), at most 20 min, up to 3 hours"),
            three.map(|(words, ms)| (words.to_owned(), ms))
        );
        assert_eq!(found("for 7 workflows, every event, after 8, about a file, at most eight, up to five files"), []);
        assert_eq!(found("| it is looked at every |\n| 5 s |\n- for\n- two seconds"), []);
    }
}
