//! Compares a tree as written with the schema.
//!
//! Reads: nodes and tables. Writes: checked values, and every problem on the way; it never stops at the first.
//! Invariant: a value is returned only if it is what its kind says; a secret is never quoted in a message.
//! Not here: defaults (`merge`), rules over several fields (`rules`).

use std::fmt::Display;
use std::time::Duration;

use hapax_model::nearest::nearest;
use hapax_model::units::{ByteSize, Rate, Share, parse_duration, print_duration};

use super::node::{Data, Entry, Node, Origin, quoted, quoted_address, shown};
use super::problem::{Problem, Problems, code};
use super::schema::{Choice, EventForm, Field, Kind, Preset, Table, TextRule, names};
use super::show::{is_address_name, is_secret_name};
use super::value::{Held, Value};

/// The checked form of `node`, called `name` in messages; nothing if it is not what `kind` says.
pub(crate) fn check(node: &Node, kind: &Kind, name: &str, problems: &mut Problems) -> Option<Value> {
    if matches!(node.data, Data::Lost) {
        return None;
    }
    match checked(node, kind, name, problems) {
        Ok(held) => held.map(|held| Value { place: node.place.clone(), origin: node.origin, held }),
        Err(problem) => {
            problems.add(problem);
            None
        }
    }
}

/// `Ok(None)`: the problems inside are already told.
fn checked(node: &Node, kind: &Kind, name: &str, problems: &mut Problems) -> Result<Option<Held>, Problem> {
    let subject = Subject { node, kind, name };
    match (kind, &node.data) {
        (Kind::Planned, _) => Err(planned(node, name)),
        (Kind::Event(_), Data::Map(_)) | (Kind::Event(EventForm::FieldsOrText), Data::Text(_)) => {
            Ok(Some(Held::Event(Box::new(node.clone()))))
        }
        (_, Data::Null) => Err(subject.no_value()),
        (Kind::Text(rule), Data::Text(text)) => subject.text(rule, text).map(Some),
        (Kind::Text(_), Data::Number(_) | Data::Bool(_)) => Err(subject.unquoted_text()),
        (Kind::Integer { least, most }, _) => subject.integer(*least, *most).map(Some),
        (Kind::Duration { least, most }, Data::Text(text)) => {
            let bounds = [Duration::from_millis(*least), Duration::from_millis(*most)];
            let duration = subject.read(text, parse_duration)?;
            subject.within(duration, bounds, bounds.map(print_duration), Held::Duration).map(Some)
        }
        (Kind::Size { least, most }, Data::Text(text) | Data::Number(text)) => {
            let bounds = [ByteSize(*least), ByteSize(*most)];
            let size = subject.read(text, str::parse)?;
            subject.within(size, bounds, bounds.map(|bound| bound.to_string()), Held::Size).map(Some)
        }
        (Kind::Share, Data::Text(text)) => subject.read(text, str::parse::<Share>).map(|it| Some(Held::Share(it))),
        (Kind::Rate, Data::Text(text) | Data::Number(text)) => subject.rate(text).map(Some),
        (Kind::Boolean, Data::Bool(value)) => Ok(Some(Held::Boolean(*value))),
        (Kind::Boolean, Data::Text(text)) if node.origin == Origin::Variable && (text == "true" || text == "false") => {
            Ok(Some(Held::Boolean(text == "true")))
        }
        (Kind::Choice(choices) | Kind::Map { or: choices, .. }, Data::Text(text)) if !choices.is_empty() => {
            subject.choice(choices, text).map(Some)
        }
        (Kind::List { of, fewest, most }, Data::List(items)) => {
            subject.count(items.len(), *fewest, *most)?;
            Ok(Some(Held::List(items.iter().filter_map(|item| check(item, of, name, problems)).collect())))
        }
        (Kind::Map { of, .. }, Data::Map(entries)) => Ok(Some(free_names(entries, of, name, problems))),
        (Kind::Object(table), Data::Map(entries)) => Ok(Some(object(node, entries, table, name, problems))),
        (_, _) => Err(subject.wrong_type()),
    }
}

/// A scalar, what it should be, and what messages call it.
struct Subject<'a> {
    node: &'a Node,
    kind: &'a Kind,
    name: &'a str,
}

impl Subject<'_> {
    fn problem(&self, code: &'static str, message: String, cure: String) -> Problem {
        Problem::new(&self.node.place, code, message, cure)
    }

    fn no_value(&self) -> Problem {
        let message = format!("\"{}\" has no value", self.name);
        self.problem(code::NO_VALUE, message, format!("write {}, or remove the line", self.kind.expected()))
    }

    fn wrong_type(&self) -> Problem {
        let message = format!("\"{}\" is {}", self.name, self.described());
        self.problem(code::WRONG_TYPE, message, format!("write {}", self.kind.expected()))
    }

    fn unquoted_text(&self) -> Problem {
        let message = format!("\"{}\" is {}, and must be a text", self.name, self.described());
        let cure = match &self.node.data {
            Data::Number(_) | Data::Bool(_) if self.is_secret() => "put it in quotes".into(),
            Data::Number(written) => format!("put it in quotes: \"{written}\""),
            Data::Bool(value) => format!("put it in quotes: \"{value}\""),
            Data::Null | Data::Text(_) | Data::List(_) | Data::Map(_) | Data::Lost => {
                format!("write {}", self.kind.expected())
            }
        };
        self.problem(code::WRONG_TYPE, message, cure)
    }

    fn is_secret(&self) -> bool {
        is_secret_name(last_name(self.name))
    }

    /// What a message calls the value; a secret that reads as a number or a boolean is not quoted either.
    fn described(&self) -> String {
        match &self.node.data {
            Data::Number(_) if self.is_secret() => "a number".into(),
            Data::Bool(_) if self.is_secret() => "a boolean".into(),
            // Who writes an address where its block belongs has written what a field of the block would hold.
            Data::Text(text) if self.is_secret() || quoted_address(text).is_none() => "a text".into(),
            Data::Null
            | Data::Bool(_)
            | Data::Number(_)
            | Data::Text(_)
            | Data::List(_)
            | Data::Map(_)
            | Data::Lost => self.node.described(),
        }
    }

    fn malformed(&self, why: &str) -> Problem {
        let quoted = match &self.node.data {
            _ if self.is_secret() => None,
            Data::Text(text) if is_address_name(last_name(self.name)) => quoted_address(text),
            Data::Text(text) | Data::Number(text) => Some(quoted(text)),
            Data::Null | Data::Bool(_) | Data::List(_) | Data::Map(_) | Data::Lost => None,
        };
        let message = match (self.node.origin, quoted) {
            // What is wrong may quote a part of the value.
            (Origin::File, Some(text)) => format!("{text} is not right for \"{}\": {}", self.name, shown(why)),
            (Origin::File, None) => format!("the value is not right for \"{}\": {}", self.name, shown(why)),
            (Origin::Variable, _) => {
                format!("the value of a variable is not right for \"{}\"", self.name)
            }
        };
        self.problem(code::MALFORMED, message, format!("write {}", self.kind.expected()))
    }

    fn text(&self, rule: &TextRule, text: &str) -> Result<Held, Problem> {
        match (rule.check)(text) {
            Ok(()) => Ok(Held::Text(text.to_owned())),
            Err(why) => Err(self.malformed(&why)),
        }
    }

    /// A whole number; as text only if it came from a variable, which can hold nothing else.
    fn integer(&self, least: u64, most: u64) -> Result<Held, Problem> {
        let written = match (&self.node.data, self.node.origin) {
            (Data::Number(number), _) => number,
            (Data::Text(text), Origin::Variable) => text,
            (_, _) => return Err(self.wrong_type()),
        };
        let digits = written.strip_prefix('+').unwrap_or(written);
        let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        match digits.parse::<u64>() {
            Ok(number) => self.within(number, [least, most], [least, most], Held::Integer),
            Err(_) if whole || digits.starts_with('-') => Err(self.out_of_bounds(least, most)),
            Err(_) => Err(self.wrong_type()),
        }
    }

    /// What `read` makes of the text. Its own message quotes the text, so it is used only where that is no secret.
    fn read<T>(
        &self,
        text: &str,
        read: impl Fn(&str) -> Result<T, hapax_model::units::NoQuantity>,
    ) -> Result<T, Problem> {
        read(text).map_err(|error| self.malformed(&error.why))
    }

    fn rate(&self, text: &str) -> Result<Held, Problem> {
        let bare = text.bytes().all(|b| b.is_ascii_digit());
        let text = if bare { format!("{text}/s") } else { text.to_owned() };
        let rate = self.read(&text, str::parse::<Rate>)?;
        // What uses a rate counts in whole events per second; rounding here would change what was asked for.
        let count = rate.count / rate.seconds;
        if !(1..=MOST_PER_SECOND).contains(&count) || !rate.count.is_multiple_of(rate.seconds) {
            return Err(self.out_of_bounds("1/s", format!("{MOST_PER_SECOND}/s, whole per second")));
        }
        Ok(Held::Rate(Rate { count, seconds: 1 }))
    }

    fn within<T: PartialOrd>(
        &self,
        value: T,
        [least, most]: [T; 2],
        [least_shown, most_shown]: [impl Display; 2],
        held: impl Fn(T) -> Held,
    ) -> Result<Held, Problem> {
        if value < least || value > most {
            return Err(self.out_of_bounds(least_shown, most_shown));
        }
        Ok(held(value))
    }

    fn out_of_bounds(&self, least: impl Display, most: impl Display) -> Problem {
        let message = match (&self.node.data, self.node.origin) {
            (Data::Number(text) | Data::Text(text), Origin::File) => {
                format!("\"{}\" is {text}, which is out of bounds", self.name)
            }
            (_, _) => format!("\"{}\" is out of bounds", self.name),
        };
        self.problem(code::OUT_OF_BOUNDS, message, format!("write a value from {least} to {most}"))
    }

    fn count(&self, count: usize, fewest: usize, most: usize) -> Result<(), Problem> {
        if (fewest..=most).contains(&count) {
            return Ok(());
        }
        let message = format!("\"{}\" has {count} items, which is out of bounds", self.name);
        Err(self.problem(code::OUT_OF_BOUNDS, message, format!("write from {fewest} to {most} items")))
    }

    fn choice(&self, choices: &'static [Choice], text: &str) -> Result<Held, Problem> {
        if let Some(choice) = choices.iter().find(|choice| choice.name == text) {
            return Ok(Held::Choice(choice.name));
        }
        if let Kind::Map { .. } = self.kind {
            return Err(self.wrong_type());
        }
        let shown = match self.node.origin {
            Origin::File => quoted(text),
            Origin::Variable => "the value of a variable".into(),
        };
        let message = format!("{shown} is no {}", self.name.rsplit('.').next().unwrap_or(self.name));
        let cure = match nearest(text, choices.iter().map(|choice| choice.name)) {
            Some(name) => format!("did you mean {name}? There are {}", names(choices)),
            None => format!("write one of {}", names(choices)),
        };
        Err(self.problem(code::UNKNOWN_NAME, message, cure))
    }
}

/// The field's own name, without those of the blocks around it.
fn last_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}

const MOST_PER_SECOND: u64 = 100_000_000;

fn planned(node: &Node, name: &str) -> Problem {
    let message = format!("\"{name}\" is planned, and not in this version");
    let cure = format!("remove it for now; the reference says what version {} has", env!("CARGO_PKG_VERSION"));
    Problem::new(&node.place, code::NOT_YET, message, cure)
}

fn free_names(entries: &[Entry], of: &Kind, name: &str, problems: &mut Problems) -> Held {
    let checked = entries.iter().filter_map(|entry| {
        let value = check(&entry.node, of, &format!("{name}.{}", shown(&entry.key)), problems)?;
        Some((entry.key.clone(), value))
    });
    Held::Map(checked.collect())
}

/// The fields that are written, in the order of the table.
fn object(node: &Node, entries: &[Entry], table: &'static Table, name: &str, problems: &mut Problems) -> Held {
    for entry in entries.iter().filter(|entry| table.field(&entry.key).is_none()) {
        problems.add(unknown_field(entry, table, name));
    }
    let mut fields = Vec::new();
    for field in table.fields {
        let path = path_of(name, field);
        match entries.iter().find(|entry| entry.key == field.name) {
            Some(entry) if matches!(field.kind, Kind::Planned) => {
                problems.add(planned(&Node::new(entry.place.clone(), Data::Null), &path));
            }
            Some(entry) => {
                if let Some(value) = check(&entry.node, &field.kind, &path, problems) {
                    fields.push((field.name, value));
                }
            }
            None if field.preset == Preset::Required => problems.add(missing_field(node, field, name)),
            None => {}
        }
    }
    if !table.exactly_one_of.is_empty() {
        choose_one(node, entries, table, name, problems);
    }
    Held::Object(fields)
}

fn path_of(name: &str, field: &Field) -> String {
    if name.is_empty() { field.name.to_owned() } else { format!("{name}.{}", field.name) }
}

fn missing_field(node: &Node, field: &Field, name: &str) -> Problem {
    let within = if name.is_empty() { "the file" } else { name };
    let message = format!("\"{}\" is missing in {within}", field.name);
    let cure = format!("add {}: {}", field.name, field.kind.example());
    Problem::new(&node.place, code::MISSING_FIELD, message, cure)
}

fn choose_one(node: &Node, entries: &[Entry], table: &Table, name: &str, problems: &mut Problems) {
    let chosen: Vec<_> = entries.iter().filter(|entry| table.exactly_one_of.contains(&entry.key.as_str())).collect();
    let all = table.exactly_one_of.join(", ");
    match chosen.as_slice() {
        [_] => {}
        // Another name was written, and its problem already offers the right one.
        [] if entries.iter().any(|entry| table.field(&entry.key).is_none()) => {}
        [] => {
            let message = format!("\"{name}\" does not say which kind it is");
            problems.add(Problem::new(&node.place, code::CHOOSE_ONE, message, format!("add one of {all}")));
        }
        [first, second, ..] => {
            let message = format!("\"{name}\" has both {} and {}", first.key, second.key);
            let cure = if name.ends_with("sink") {
                "keep one; several targets go under sinks, each with a name"
            } else {
                "keep one; another source is another workflow"
            };
            problems.add(Problem::new(&second.place, code::CHOOSE_ONE, message, cure));
        }
    }
}

fn unknown_field(entry: &Entry, table: &'static Table, name: &str) -> Problem {
    let within = if name.is_empty() { "the file".to_owned() } else { format!("\"{name}\"") };
    let message = format!("\"{}\" is no field of {within}", shown(&entry.key));
    let known = table.fields.iter().map(|field| field.name);
    let cure = match (nearest(&entry.key, known.clone()), home_of(&entry.key, table)) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, Some(home)) => format!("it belongs under {home}"),
        (None, None) => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    };
    Problem::new(&entry.place, code::UNKNOWN_FIELD, message, cure)
}

/// The path below `table` of the block that has a field `name`, if one has.
fn home_of(name: &str, table: &'static Table) -> Option<String> {
    table.fields.iter().find_map(|field| {
        let inner = field.kind.table()?;
        if inner.field(name).is_some() {
            return Some(field.name.to_owned());
        }
        home_of(name, inner).map(|rest| format!("{}.{rest}", field.name))
    })
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
