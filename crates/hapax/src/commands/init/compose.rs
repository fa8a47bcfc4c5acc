//! The configuration as text, with a word on each choice. Pure.

use std::fmt::Write as _;
use std::path::Path;

use hapax_connect::table::config::{Columns, TableConfig};
use hapax_connect::table::described::{Described, SampledField};
use hapax_model::field::FieldPath;
use hapax_model::mode::ConflictMode;

use super::fit::Fit;
use super::sample::{FileForm, Following, From};
#[cfg(any(feature = "mysql", feature = "postgres"))]
use super::target::hidden;
use super::target::{To, VARIABLE};
use crate::sample::shown;

/// Everything that was given, asked and seen.
pub(super) struct Draft {
    pub(super) id: Option<String>,
    pub(super) from: From,
    pub(super) to: To,
    pub(super) table: String,
    pub(super) form: FileForm,
    pub(super) fit: Fit,
    pub(super) keys: Vec<String>,
    pub(super) guarantee: Option<String>,
}

impl Draft {
    /// The file.
    pub(super) fn yaml(&self) -> String {
        let mut text = String::from(
            "# Written by `hapax init`. `hapax config show` prints it with every default; the reference explains each field.\n\n",
        );
        text.push_str("# What belongs to no target is kept here: leases, and the last position seen. Or a postgres:// URL, or none.\n");
        text.push_str("state: \"sqlite://hapax-data/state.db\"\n\nworkflows:\n");
        let id = self.id.clone().unwrap_or_else(|| self.from.name());
        line(&mut text, 2, &format!("- id: {}", scalar(&id)));
        self.source(&mut text);
        self.sink(&mut text);
        self.delivery(&mut text);
        text
    }

    fn source(&self, text: &mut String) {
        line(text, 4, "source:");
        match &self.from {
            From::Generate => {
                line(text, 6, "generate:");
                line(text, 8, "count: 1000               # without it, events never end");
                line(text, 8, "# rate: 500/s             # as fast as they can unless you say so");
            }
            From::File(path) => {
                line(text, 6, "file:");
                let holds =
                    if self.form.is_csv { "CSV; its first record names the fields" } else { "a JSON object per line" };
                line(text, 8, &format!("path: {}   # {holds}", scalar(path)));
                if let Some(delimiter) = self.form.delimiter {
                    let shown = if delimiter == b'\t' { "tab".to_owned() } else { char::from(delimiter).to_string() };
                    line(text, 8, &format!("csv: {{ delimiter: {} }}", scalar(&shown)));
                }
                self.follow(text);
                // A pattern reads every file from its beginning.
                if !self.from.is_pattern() {
                    line(text, 8, "# start: latest           # to skip what is there at the first start");
                }
            }
        }
    }

    /// How files of a pattern follow each other. Where every event is a row of its own it does not matter.
    fn follow(&self, text: &mut String) {
        match &self.form.follow {
            Following::Rotated => line(
                text,
                8,
                "rotation: beforeExtension # one lane in the order of the names; `none`: a lane for each file",
            ),
            Following::ByName { .. } if !self.keys.is_empty() => {
                line(
                    text,
                    8,
                    "order: name               # one lane in the order of the names: a key's last value stays",
                );
                self.order_notes().iter().for_each(|note| line(text, 8, &format!("# {note}")));
            }
            Following::OutOfOrder { .. } if !self.keys.is_empty() => {
                self.order_notes().iter().for_each(|note| line(text, 8, &format!("# {note}")));
            }
            Following::Nothing | Following::ByName { .. } | Following::OutOfOrder { .. } => {}
        }
    }

    /// What a person should know of the order of files.
    fn order_notes(&self) -> Vec<String> {
        match &self.form.follow {
            Following::ByName { grows: true } => vec![
                "Names are compared byte by byte: a 10 would come before a 2. Write zeros before the numbers, 02, before they grow."
                    .to_owned(),
            ],
            Following::OutOfOrder { first, second } => vec![
                "The files are numbered, but read side by side: of a key in two of them, chance says which value stays."
                    .to_owned(),
                format!(
                    "`order: name` would read them in the order of bytes, in which {} comes before {}:",
                    as_text(first),
                    as_text(second)
                ),
                "name them so that this is right (02 and 10, 2026-11-17), then write it here.".to_owned(),
            ],
            Following::Nothing | Following::Rotated | Following::ByName { grows: false } => Vec::new(),
        }
    }

    /// What is told of the choices that were made.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if !self.keys.is_empty() {
            if matches!(self.form.follow, Following::ByName { .. }) {
                remarks.push(
                    "The files are numbered: `order: name` makes one lane of them, in the order of their names.".into(),
                );
            }
            remarks.extend(self.order_notes());
        }
        remarks
    }

    fn sink(&self, text: &mut String) {
        line(text, 4, "sink:");
        line(text, 6, &format!("{}:", self.to.kind()));
        match (&self.to, self.to.variable()) {
            (To::Sqlite(path), _) => line(text, 8, &format!("path: {}", scalar(path))),
            #[cfg(any(feature = "mysql", feature = "postgres"))]
            (_, Some((_, url))) => {
                line(text, 8, "# The password is not in this file. Set the variable before you run:");
                line(text, 8, &format!("#   export {VARIABLE}='{}'", hidden(&url)));
                line(text, 8, &format!("url: \"${{{VARIABLE}}}\""));
            }
            #[cfg(any(feature = "mysql", feature = "postgres"))]
            (to, None) => line(text, 8, &format!("url: {}", scalar(to.url().unwrap_or_default()))),
        }
        line(text, 8, &format!("table: {}", scalar(&self.table)));
        self.columns(text);
        let why = if self.keys.is_empty() {
            "append               # every event is a new row: no fields name one"
        } else {
            "update               # a later event with the same key overwrites the columns it brings; also: ignore, newer, append"
        };
        line(text, 8, &format!("onConflict: {why}"));
    }

    fn columns(&self, text: &mut String) {
        let comment = |text: &mut String, words: &str| line(text, 8, &format!("# {words}"));
        let Described::Table(_) = &self.fit.found else {
            comment(text, "The table is not there yet. From the first events, it could be:");
            self.create_table().lines().for_each(|words| comment(text, &format!("  {words}")));
            let mapped = self.new_columns();
            if !mapped.is_empty() {
                line(text, 8, "columns:                  # these from fields inside objects");
                for (column, path) in mapped {
                    line(text, 10, &format!("{}: {}", scalar(&column), scalar(&path.to_string())));
                }
            }
            return;
        };
        let named: Vec<String> = self
            .fit
            .fed
            .iter()
            .filter(|(column, path)| by_name(&column.name, path))
            .map(|(column, _)| column.name.clone())
            .collect();
        let mapped: Vec<_> = self.fit.fed.iter().filter(|(column, path)| !by_name(&column.name, path)).collect();
        if !named.is_empty() {
            comment(text, &format!("Filled from the fields of the same name: {}", named.join(", ")));
        }
        if !mapped.is_empty() {
            line(text, 8, "columns:                  # these from fields that are called otherwise");
            for (column, path) in mapped {
                line(text, 10, &format!("{}: {}", scalar(&column.name), scalar(&path.to_string())));
            }
        }
        for column in &self.fit.unfed {
            let what = match (column.fills_itself, column.required) {
                (true, _) => "left to the database",
                (false, false) => "stays NULL",
                (false, true) => {
                    "MUST have a value, and no field gives it one: map a field to it, or give it a default"
                }
            };
            comment(text, &format!("Column {} has no field: {what}", column.name));
        }
        if !self.fit.spare.is_empty() {
            let spare: Vec<String> = self.fit.spare.iter().map(shown).collect();
            comment(text, &format!("Fields without a column, counted and left out: {}", spare.join(", ")));
        }
    }

    fn delivery(&self, text: &mut String) {
        line(text, 4, "delivery:");
        let guarantee = self.guarantee.as_deref().unwrap_or("exactly-once");
        line(
            text,
            6,
            &format!(
                "guarantee: {guarantee}   # rows and position are one transaction; `hapax check --explain` says why it holds"
            ),
        );
        if !self.keys.is_empty() {
            let why = match self.fit.table() {
                Some(table) if !table.primary_key.is_empty() => "the table's key",
                Some(_) | None => "what names a row",
            };
            let keys: Vec<String> = self.keys.iter().map(|key| scalar(key)).collect();
            line(text, 6, "deduplication:");
            line(text, 8, &format!("keyFields: [{}]   # {why}", keys.join(", ")));
        }
        line(text, 6, "# onReject: stop            # what does not fit becomes a dead letter unless you say so");
    }

    /// The columns of a new table that are called otherwise than the fields which feed them: those inside objects.
    fn new_columns(&self) -> Vec<(String, FieldPath)> {
        let mut taken: Vec<String> = self
            .fit
            .fields()
            .iter()
            .filter(|field| field.path.names().len() == 1)
            .map(|field| field.path.names()[0].clone())
            .collect();
        let mut mapped = Vec::new();
        for field in self.fit.fields().iter().filter(|field| field.path.names().len() > 1) {
            let plain = field.path.names().join("_");
            let free = |name: &String| taken.iter().all(|known| !known.eq_ignore_ascii_case(name));
            let numbered = (2..).map(|n| format!("{plain}_{n}"));
            let name = std::iter::once(plain.clone()).chain(numbered).find(free).unwrap_or(plain);
            taken.push(name.clone());
            mapped.push((name, field.path.clone()));
        }
        mapped
    }

    /// A table for the events that were seen: the one that every other command proposes for this file too.
    fn create_table(&self) -> String {
        let key_fields: Vec<FieldPath> = self.keys.iter().filter_map(|key| key.parse().ok()).collect();
        let mode = if key_fields.is_empty() { ConflictMode::Append } else { ConflictMode::Update };
        let sampled = self.fit.fields().iter();
        self.to.suggested_ddl(&TableConfig {
            mode: Some(mode),
            key_fields,
            columns: Columns { map: self.new_columns(), ..Columns::default() },
            sampled: sampled.map(|field| SampledField { path: field.path.clone(), sort: field.sort }).collect(),
            ..TableConfig::new(&self.table)
        })
    }

    /// What to type next.
    pub(super) fn next_steps(&self, output: &Path) -> Vec<String> {
        let config = if output == Path::new(crate::config::DEFAULT_FILE) {
            String::new()
        } else {
            format!(" --config {}", output.display())
        };
        let mut steps = Vec::new();
        if self.to.variable().is_some() {
            steps.push(format!("export {VARIABLE}=…            the URL with its password, as you gave it"));
        }
        if matches!(self.fit.found, Described::Nothing) {
            steps.push("make the table               the statement is in the file".to_owned());
        }
        if self.to.url().is_some() {
            steps.push(format!("hapax setup{config}            makes the tables that Hapax keeps beside yours"));
        }
        steps.push(format!("hapax check --live{config}     does it hold, and does the table fit?"));
        steps.push(format!("hapax run --once{config}       delivers what is there now"));
        steps
    }
}

fn by_name(column: &str, path: &FieldPath) -> bool {
    matches!(path.names(), [name] if name == column)
}

fn line(text: &mut String, indent: usize, words: &str) {
    writeln!(text, "{:indent$}{words}", "").expect("a text takes text");
}

/// A name from outside, in one line of a comment.
fn as_text(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A text as YAML has it: plain where that is safe, else in quotes.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    let begins = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '/'));
    let word =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    if begins && text.chars().all(plain) && !word && !text.starts_with("..") {
        return text.to_owned();
    }
    serde_json::to_string(&text.replace("${", "$${")).unwrap_or_default()
}
