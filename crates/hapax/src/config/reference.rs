//! `docs/reference/configuration.md`, written from the schema and kept in step with it by the test below.

use hapax_model::units::{ByteSize, print_duration};
use std::fmt::Write;
use std::time::Duration;

use super::problem::code;
use super::schema::{Choice, EventForm, Field, Kind, Preset, ROOT, Table, tables};

const HEAD: &str = include_str!("reference_head.md");

/// The page.
fn markdown() -> String {
    let mut page = HEAD.trim_end().to_owned();
    for table in tables(&ROOT) {
        write_table(table, &mut page);
    }
    page.push('\n');
    page
}

fn write_table(table: &Table, page: &mut String) {
    let title = if table.name == ROOT.name { "The file".to_owned() } else { format!("`{}`", table.name) };
    write!(page, "\n\n## {title}\n\n{}\n", table.doc).expect("a string takes all");
    if !table.exactly_one_of.is_empty() {
        let names: Vec<_> = table.exactly_one_of.iter().map(|name| format!("`{name}`")).collect();
        write!(page, "\nExactly one of {} must be there.\n", names.join(", ")).expect("a string takes all");
    }
    page.push_str("\n| field | holds | default | meaning | since |\n|---|---|---|---|---|");
    for field in table.fields {
        let meaning = field.doc.replace('|', "\\|");
        let (holds, default) = (holds(&field.kind).replace('|', "\\|"), default(field));
        write!(
            page,
            "\n| `{}` | {holds} | {default} | {meaning}{} | {} |",
            field.name,
            choices(&field.kind),
            field.since
        )
        .expect("a string takes all");
    }
}

fn default(field: &Field) -> String {
    match field.preset {
        Preset::Required => "required".into(),
        Preset::Absent => "–".into(),
        Preset::Yaml("{}") => "its fields' defaults".into(),
        Preset::Yaml(_) | Preset::Seconds(_) => format!("`{}`", field.preset.yaml().unwrap_or_default()),
    }
}

fn holds(kind: &Kind) -> String {
    let millis = |bound: u64| print_duration(Duration::from_millis(bound));
    match kind {
        Kind::Text(rule) => format!("{}: `{}`", rule.what.split(':').next().unwrap_or(rule.what), rule.example),
        Kind::Integer { least, most } => format!("whole number, {least} to {most}"),
        Kind::Duration { least, most } => format!("duration, {} to {}", millis(*least), millis(*most)),
        Kind::Size { least, most } => format!("size, {} to {}", ByteSize(*least), ByteSize(*most)),
        Kind::Share => "share: `10%`".into(),
        Kind::Rate => "rate: `500/s`".into(),
        Kind::Boolean => "`true` or `false`".into(),
        Kind::Choice(_) => "one name of those listed".into(),
        Kind::List { of, fewest, most } => format!("list, {fewest} to {most} of: {}", holds(of)),
        Kind::Map { of, or } => {
            let words: String = or.iter().map(|choice| format!(", or the word `{}`", choice.name)).collect();
            format!("names, each with {}{words}", holds(of))
        }
        Kind::Object(table) => format!("block, see `{}`", table.name),
        Kind::Event(EventForm::Fields) => format!("fields of an event: `{}`", kind.example()),
        Kind::Event(EventForm::FieldsOrText) => format!("fields of an event: `{}`, or a text", kind.example()),
        Kind::Planned => "refused by this version".into(),
    }
}

fn choices(kind: &Kind) -> String {
    let listed: &[Choice] = match kind {
        Kind::Choice(choices) | Kind::Map { or: choices, .. } => choices,
        Kind::List { of, .. } => return choices(of),
        Kind::Text(_)
        | Kind::Integer { .. }
        | Kind::Duration { .. }
        | Kind::Size { .. }
        | Kind::Share
        | Kind::Rate
        | Kind::Boolean
        | Kind::Object(_)
        | Kind::Event(_)
        | Kind::Planned => &[],
    };
    listed.iter().map(|choice| format!("<br>`{}`: {}", choice.name, choice.doc)).collect()
}

/// Goal: the reference says what the program does. Method: compare the page with the schema; `HAPAX_BLESS=1` writes it.
#[test]
fn the_reference_page_is_the_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");
    let page = markdown();
    if std::env::var_os("HAPAX_BLESS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, page, "the page is out of date: HAPAX_BLESS=1 cargo test -p hapax reference_page");
}

/// Goal: every code of the configuration has a page with the same parts. Method: look for each.
#[test]
fn every_code_has_its_page() {
    let mut codes = code::ALL.to_vec();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), code::ALL.len(), "a code is used twice");
    for code in codes {
        let path = format!("{}/../../docs/errors/{code}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{code} has no page"));
        assert!(page.starts_with(&format!("# {code}: ")), "{code}");
        for part in ["\n## What happened\n", "\n## Why\n", "\n## What to do\n"] {
            assert!(page.contains(part), "{code} lacks {part}");
        }
    }
}
