//! The whole configuration as data: which fields there are, what they hold, their defaults and what they mean.
//!
//! From this one table come the checks (`check`), the defaults (`merge`), the JSON Schema (`json_schema`) and
//! `docs/reference/configuration.md` (`reference`). A new field is a new line here, and one in `build`.
//! Not here: rules that look at several fields (`rules`).

mod broker;
mod delivery;
mod operations;
mod root;
mod rules_of_text;
mod sinks;
mod sources;
mod tests_block;

use std::borrow::Cow;
use std::time::Duration;

#[cfg(feature = "broker")]
pub(crate) use broker::BROKER;
#[cfg(test)]
pub(crate) use delivery::DELIVERY;
pub(crate) use root::ROOT;

/// A block of fields.
pub(crate) struct Table {
    /// What it is called in the reference and in the JSON Schema; unique.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) doc: &'static str,
    pub(crate) fields: &'static [Field],
    /// Of these fields exactly one must be there; empty if there is no such rule.
    pub(crate) exactly_one_of: &'static [&'static str],
}

impl Table {
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// One field.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) preset: Preset,
    pub(crate) doc: &'static str,
    /// The first version that has it.
    pub(crate) since: &'static str,
}

impl Field {
    /// A field that may be left out and then has no value.
    const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, preset: Preset::Absent, doc, since: "0.1" }
    }

    /// The same field with a default, as YAML.
    const fn or(self, default: &'static str) -> Self {
        Self { preset: Preset::Yaml(default), ..self }
    }

    /// The same field with a default that a library has: it stands there, and only there.
    const fn or_seconds(self, default: Duration) -> Self {
        Self { preset: Preset::Seconds(default), ..self }
    }

    /// The same field, which must be there.
    const fn required(self) -> Self {
        Self { preset: Preset::Required, ..self }
    }

    /// A name that a later version will know.
    const fn planned(name: &'static str, doc: &'static str) -> Self {
        Self { name, kind: Kind::Planned, preset: Preset::Absent, doc, since: "planned" }
    }
}

/// What a field has when it is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preset {
    /// It must be written.
    Required,
    /// Nothing.
    Absent,
    /// This YAML.
    Yaml(&'static str),
    /// So many whole seconds.
    Seconds(Duration),
}

impl Preset {
    /// The default as the file would have it.
    pub(crate) fn yaml(self) -> Option<Cow<'static, str>> {
        match self {
            Self::Required | Self::Absent => None,
            Self::Yaml(yaml) => Some(Cow::Borrowed(yaml)),
            Self::Seconds(default) => Some(Cow::Owned(format!("{}s", default.as_secs()))),
        }
    }
}

/// What a field holds.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A text of a certain form.
    Text(&'static TextRule),
    /// A whole number.
    Integer {
        least: u64,
        most: u64,
    },
    /// `200ms`, `30d`; the bounds are in milliseconds.
    Duration {
        least: u64,
        most: u64,
    },
    /// `64MiB`, or a number of bytes.
    Size {
        least: u64,
        most: u64,
    },
    /// `10%`.
    Share,
    /// `500/s`, or a number per second.
    Rate,
    /// `true` or `false`.
    Boolean,
    /// One of these names.
    Choice(&'static [Choice]),
    List {
        of: &'static Kind,
        fewest: usize,
        most: usize,
    },
    /// Free names with values of one kind; or one of the words in its place.
    Map {
        of: &'static Kind,
        or: &'static [Choice],
    },
    Object(&'static Table),
    /// An event of a test: any fields.
    Event(EventForm),
    /// Known by name, refused by this version.
    Planned,
}

/// How an event of a test may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventForm {
    /// As a block of fields.
    Fields,
    /// As a block of fields, or as the text that the source would read.
    FieldsOrText,
}

/// A name that a field may have as its value, and what it means.
pub(crate) struct Choice {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
}

/// The form of a text.
pub(crate) struct TextRule {
    /// What it is, with its article: "a path".
    pub(crate) what: &'static str,
    pub(crate) example: &'static str,
    /// Says what is wrong with a text, if something is.
    pub(crate) check: fn(&str) -> Result<(), String>,
    /// A pattern for the JSON Schema; empty if there is none.
    pub(crate) pattern: &'static str,
}

impl Kind {
    /// What is expected, with an example, for people.
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Text(rule) => format!("{}, such as {}", rule.what, rule.example),
            Self::Integer { least, .. } => format!("a whole number, such as {}", least.max(&1)),
            Self::Duration { .. } => "a duration with its unit (ms, s, m, h, d), such as 200ms or 30d".into(),
            Self::Size { .. } => "a size, such as 64MiB".into(),
            Self::Share => "a share, such as 10%".into(),
            Self::Rate => "a rate, such as 500/s".into(),
            Self::Boolean => "true or false".into(),
            Self::Choice(choices) => format!("one of {}", names(choices)),
            Self::List { of, .. } => format!("a list, such as [{}]", of.example()),
            Self::Map { of, or } => {
                let words: String = or.iter().map(|choice| format!(", or the word {}", choice.name)).collect();
                format!("a block of names and values, such as {{ name: {} }}{words}", of.example())
            }
            Self::Object(table) => {
                let names: Vec<_> = table.fields.iter().map(|field| field.name).collect();
                format!("a block of fields ({})", names.join(", "))
            }
            Self::Event(EventForm::Fields) => format!("the fields of an event, such as {}", self.example()),
            Self::Event(EventForm::FieldsOrText) => {
                format!("the fields of an event, such as {}, or a text, as the source would read it", self.example())
            }
            Self::Planned => "nothing in this version".into(),
        }
    }

    /// A value that would do.
    pub(crate) fn example(&self) -> String {
        match self {
            Self::Text(rule) => rule.example.into(),
            Self::Integer { least, .. } => least.max(&1).to_string(),
            Self::Duration { .. } => "200ms".into(),
            Self::Size { .. } => "64MiB".into(),
            Self::Share => "10%".into(),
            Self::Rate => "500/s".into(),
            Self::Boolean => "true".into(),
            Self::Choice(choices) => choices.first().map_or("", |choice| choice.name).into(),
            Self::List { of, .. } => format!("[{}]", of.example()),
            Self::Map { of, .. } => format!("{{ name: {} }}", of.example()),
            Self::Event(_) => "{ id: 7, amount: 12.5 }".into(),
            Self::Object(_) | Self::Planned => "{ … }".into(),
        }
    }
}

/// The names of a list of choices, for people.
pub(crate) fn names(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.name).collect::<Vec<_>>().join(", ")
}

/// Every table that can be reached from `table`, itself first, each once.
pub(crate) fn tables(table: &'static Table) -> Vec<&'static Table> {
    let mut found: Vec<&'static Table> = Vec::new();
    let mut waiting = vec![table];
    while let Some(next) = waiting.pop() {
        if found.iter().any(|known| known.name == next.name) {
            continue;
        }
        found.push(next);
        waiting.extend(next.fields.iter().rev().filter_map(|field| field.kind.table()));
    }
    found
}

impl Kind {
    /// The block of fields that this kind holds, if it holds one.
    pub(crate) fn table(&self) -> Option<&'static Table> {
        match self {
            Self::Object(table) => Some(table),
            Self::List { of, .. } | Self::Map { of, .. } => of.table(),
            Self::Text(_)
            | Self::Integer { .. }
            | Self::Duration { .. }
            | Self::Size { .. }
            | Self::Share
            | Self::Rate
            | Self::Boolean
            | Self::Choice(_)
            | Self::Event(_)
            | Self::Planned => None,
        }
    }
}

#[cfg(test)]
#[path = "../schema_tests.rs"]
mod tests;
