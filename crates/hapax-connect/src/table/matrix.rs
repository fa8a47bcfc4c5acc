//! Every value into every type of column: the list of values that all databases are asked about, and the page that
//! tells what came of it.
//!
//! A database's test writes one event per cell through its sink, reads the table back, and owns one part of
//! `docs/reference/types.md`: it fails when that part is out of date, and writes it with `HAPAX_BLESS=1`.

use std::collections::BTreeMap;
use std::sync::Mutex;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/types.md");

/// Tests of several databases may write the page at once.
static WRITING: Mutex<()> = Mutex::new(());

/// The values, as JSON, in groups of which each is a table; an empty one is a field that is absent.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Whole numbers", &["0", "-0", "12", "40000", "3000000000", "9223372036854775807", "9223372036854775808", "-1"]),
    (
        "Other numbers",
        &["1.0", "1e3", "1.50", "0.1", "1.23456789", "123456.789", "12345678901234567.89", "1e400", "1e-400"],
    ),
    (
        "Text",
        &[
            r#""""#,
            r#""abc""#,
            r#""abcd""#,
            r#""12""#,
            r#""1e3""#,
            r#""1.50""#,
            r#""007""#,
            r#""true""#,
            r#""NaN""#,
            r#""101""#,
            r#""😀""#,
            r#""a\u0000b""#,
            r#""a  ""#,
        ],
    ),
    (
        "Dates and times",
        &[
            r#""2026-11-16""#,
            r#""2026-02-30""#,
            r#""0000-00-00""#,
            r#""+10000-01-01""#,
            r#""03:25:42""#,
            r#""24:00:00""#,
            r#""03:25:42.1234567""#,
            r#""2026-11-16T03:25:42.5+01:00""#,
            r#""2026-12-31T23:59:60Z""#,
            r#""now""#,
            r#""P1DT2H30M""#,
        ],
    ),
    (
        "Other values",
        &[
            "",
            "null",
            "true",
            r#""6F9619FF-8B86-D011-B42D-00C04FC964FF""#,
            "[1,2,null]",
            r#"["a","b c"]"#,
            r#"{"a":1.50,"a":2}"#,
            r#"{"a":"\ud800"}"#,
            r#""10.0.0.1""#,
            r#""[1,5)""#,
        ],
    ),
];

/// What became of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    /// The column holds this, as SQL shows it.
    Holds(String),
    /// It holds NULL.
    Null,
    /// The event is a dead letter.
    Refused {
        /// The code.
        code: String,
        /// What the letter says.
        message: String,
        /// What letters of one cause share.
        fingerprint: String,
    },
}

/// All values of all groups.
pub(crate) fn values() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, values)| values.iter().copied())
}

/// One event per cell, for a table with the key `id` and the columns `c0`, `c1` …: type by type, value by value.
pub(crate) fn events(types: usize) -> Vec<String> {
    let mut events = Vec::new();
    for column in 0..types {
        for value in values() {
            let id = events.len();
            events.push(match value {
                "" => format!("{{\"id\":{id}}}"),
                value => format!("{{\"id\":{id},\"c{column}\":{value}}}"),
            });
        }
    }
    events
}

/// Compares the database's part of the page with what was seen; `cells` are in the order of [`events`].
pub(crate) fn check(database: &str, types: &[&str], cells: &[Cell]) {
    assert_eq!(cells.len(), types.len() * values().count());
    let part = render(types, cells);
    let (begin, end) = (format!("<!-- {database}: made by a test -->\n"), format!("<!-- end of {database} -->"));
    let guard = WRITING.lock().unwrap();
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let (before, rest) = page.split_once(&begin).expect("the page has a part for this database");
    let (written, after) = rest.split_once(&end).expect("the part has an end");
    if std::env::var_os("HAPAX_BLESS").is_some() {
        std::fs::write(PAGE, format!("{before}{begin}{part}{end}{after}")).expect("the page can be written");
        return;
    }
    drop(guard);
    assert!(
        written == part,
        "docs/reference/types.md is out of date: HAPAX_BLESS=1 cargo test -p hapax-connect matrix"
    );
}

fn render(types: &[&str], cells: &[Cell]) -> String {
    let count = values().count();
    let mut reasons = Reasons::default();
    let mut out = String::new();
    let mut first = 0;
    for (title, group) in GROUPS {
        out.push_str(&format!("\n### {title}\n\n| |"));
        for value in group {
            out.push_str(&format!(" {} |", if value.is_empty() { "no such field".to_owned() } else { code(value) }));
        }
        out.push_str(&format!("\n|---|{}\n", "---|".repeat(group.len())));
        for (column, declared) in types.iter().enumerate() {
            out.push_str(&format!("| {} |", if declared.is_empty() { "no type".to_owned() } else { code(declared) }));
            for value in 0..group.len() {
                out.push_str(&format!(" {} |", reasons.shown(&cells[column * count + first + value])));
            }
            out.push('\n');
        }
        first += group.len();
    }
    out.push_str("\n### Why not\n\n| | code | for example |\n|---|---|---|\n");
    for (number, (code, message)) in (1..).zip(&reasons.examples) {
        out.push_str(&format!("| ✗{number} | [{code}](../errors/{code}.md) | {} |\n", escaped(message)));
    }
    out.push('\n');
    out
}

/// The reasons for which values are refused, numbered as they come.
#[derive(Default)]
struct Reasons {
    known: BTreeMap<String, usize>,
    examples: Vec<(String, String)>,
}

impl Reasons {
    fn shown(&mut self, cell: &Cell) -> String {
        match cell {
            Cell::Null => "NULL".to_owned(),
            Cell::Holds(text) => code(text),
            Cell::Refused { code, message, fingerprint } => {
                let words = behind_column(fingerprint);
                let next = self.examples.len() + 1;
                let number = *self.known.entry(format!("{code} {words}")).or_insert(next);
                if number == next {
                    self.examples.push((code.clone(), message.clone()));
                }
                format!("✗{number}")
            }
        }
    }
}

/// The words behind `column "c0" (declared) `; a type may have brackets of its own.
fn behind_column(fingerprint: &str) -> &str {
    let Some(start) = fingerprint.strip_prefix("column ").and_then(|rest| rest.split_once(" (")) else {
        return fingerprint;
    };
    let mut depth = 1;
    let end = start.1.find(|character| {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    end.map_or(fingerprint, |end| &start.1[end + 1..])
}

/// How much of a value a cell shows.
const SHOWN: usize = 48;

fn code(text: &str) -> String {
    match text {
        "" => "an empty text".to_owned(),
        _ if text.chars().count() > SHOWN => {
            let shown: String = text.chars().take(SHOWN).collect();
            format!("`{}…` ({} characters)", escaped(&shown), text.chars().count())
        }
        _ => format!("`{}`", escaped(text)),
    }
}

/// On one line, and without what would end a cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ").replace('\0', "␀")
}
