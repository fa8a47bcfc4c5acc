//! The configuration as written: a tree of values that know their place. Says nothing about what is allowed.

use super::problem::Place;

/// A value as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) origin: Origin,
    pub(crate) data: Data,
}

/// Who wrote a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The file.
    File,
    /// A variable or another file had a part in it: it is a secret and never printed.
    Variable,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Data {
    /// Nothing was written.
    Null,
    Bool(bool),
    /// A number, as written, so that no digit is lost.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// A problem was already told about this value; nobody looks at it again.
    Lost,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn new(place: Place, data: Data) -> Self {
        Self { place, origin: Origin::File, data }
    }

    /// What an error message calls this value; a secret is never quoted.
    pub(crate) fn described(&self) -> String {
        match (&self.data, self.origin) {
            (Data::Null | Data::Lost, _) => "nothing".into(),
            (Data::List(_), _) => "a list".into(),
            (Data::Map(_), _) => "a block of fields".into(),
            (_, Origin::Variable) => "the value of a variable".into(),
            (Data::Bool(value), _) => format!("the boolean {value}"),
            (Data::Number(number), _) => format!("the number {number}"),
            (Data::Text(text), _) => format!("the text {}", quoted(text)),
        }
    }

    /// How many values this is, itself included.
    pub(crate) fn size(&self) -> usize {
        1 + match &self.data {
            Data::List(items) => items.iter().map(Self::size).sum(),
            Data::Map(entries) => entries.iter().map(|entry| entry.node.size()).sum(),
            Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) | Data::Lost => 0,
        }
    }

    /// How deeply it is nested; 1 for a scalar.
    pub(crate) fn depth(&self) -> usize {
        1 + match &self.data {
            Data::List(items) => items.iter().map(Self::depth).max().unwrap_or(0),
            Data::Map(entries) => entries.iter().map(|entry| entry.node.depth()).max().unwrap_or(0),
            Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) | Data::Lost => 0,
        }
    }
}

/// What a scalar without quotes means, by the core schema of YAML 1.2.
pub(crate) fn resolve_plain(text: &str) -> Data {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Bool(true),
        "false" | "False" | "FALSE" => Data::Bool(false),
        _ if is_number(text) => Data::Number(text.to_owned()),
        _ => Data::Text(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && digits.parse::<f64>().is_ok()
}

/// A text in quotes, cut if it is long, without what may be a secret.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let masked = shown(text);
    if masked.chars().count() <= LONGEST {
        return format!("{masked:?}");
    }
    let head: String = masked.chars().take(LONGEST).collect();
    format!("{head:?} …")
}

/// A text that somebody wrote, as messages may repeat it: it may be an address, mistyped or in the wrong place, and
/// then whatever stands before its last @, or behind the word password, may be a password.
pub(crate) fn shown(text: &str) -> String {
    let place = match text.rsplit_once('@') {
        Some((login, place)) => format!("{}***@{place}", scheme_of(login)),
        None => text.to_owned(),
    };
    match place.to_ascii_lowercase().find("password") {
        Some(at) if place[at + "password".len()..].trim_start().starts_with(['=', ':']) => {
            format!("{}***", &place[..at + "password=".len()])
        }
        Some(_) | None => place,
    }
}

/// The scheme of an address with its `://`; nothing if it does not begin with one.
fn scheme_of(text: &str) -> &str {
    match text.find("://") {
        Some(at) if is_scheme(&text[..at]) => &text[..at + 3],
        Some(_) | None => "",
    }
}

/// Whether this can be the scheme of an address, and nothing else.
pub(crate) fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// The text of a field that holds an address, in quotes; nothing if it may hold a password all the same: who forgets
/// the @, or writes another sign for it, has the password in the middle.
pub(crate) fn quoted_address(text: &str) -> Option<String> {
    let rest = text.strip_prefix(scheme_of(text)).unwrap_or(text);
    let plain = text.contains('@') || !rest.contains([':', ' ', '=']);
    plain.then(|| quoted(text))
}

/// The text with `***` in place of the password of each URL in it: `postgres://me:***@host/db`.
pub(crate) fn without_password(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        // A password may hold any character, also @, / and blanks: all before the last @ may belong to it.
        let url = &after[..next_scheme(after)];
        match url.rsplit_once('@').and_then(|(login, place)| Some((login.split_once(':')?.0, place))) {
            Some((user, place)) => {
                out.push_str(user);
                out.push_str(":***@");
                out.push_str(place);
            }
            None => out.push_str(url),
        }
        rest = &after[url.len()..];
    }
    out.push_str(rest);
    without_parameter(&out)
}

/// Where the next URL of a text begins; its end if there is none.
fn next_scheme(text: &str) -> usize {
    let Some(at) = text.find("://") else { return text.len() };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    text[..at].rfind(|c: char| !is_scheme(c)).map_or(0, |before| before + 1)
}

/// The text with `***` in place of the value of each `password=` of a URL's query.
fn without_parameter(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("password=") {
        let (before, after) = rest.split_at(at + "password=".len());
        out.push_str(before);
        let asked = matches!(out[..out.len() - "password=".len()].chars().last(), Some('?' | '&'));
        let end = if asked { after.find(['&', '#', ' ', '"']).unwrap_or(after.len()) } else { 0 };
        out.push_str(if asked { "***" } else { "" });
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: passwords of URLs never print. Method: URLs with and without one, with odd characters, two in one text.
    #[test]
    fn the_password_of_a_url_is_masked() {
        for (text, shown) in [
            ("postgres://me:pw@host/db", "postgres://me:***@host/db"),
            ("postgres://me:p@w@host/db", "postgres://me:***@host/db"),
            ("postgres://me:p@w/x@host/db", "postgres://me:***@host/db"),
            ("postgres://me:p@w?x=1@host/db", "postgres://me:***@host/db"),
            ("postgres://me:p#w@host/db", "postgres://me:***@host/db"),
            ("postgres://me:p w\"x@host/db", "postgres://me:***@host/db"),
            ("postgres://me@host/db", "postgres://me@host/db"),
            (
                "postgres://h/db?user=me&password=p%20w&sslmode=require",
                "postgres://h/db?user=me&password=***&sslmode=require",
            ),
            ("nopassword=7", "nopassword=7"),
            ("sqlite://a/b@c.db", "sqlite://a/b@c.db"),
            ("http://a:b@c http://d:e@f", "http://a:***@c http://d:***@f"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_password(text), shown);
        }
    }

    /// Goal: what may be a password is not repeated, whatever an address looks like. Method: addresses with typos; texts
    /// that are none stay as they are.
    #[test]
    fn a_mistyped_address_shows_no_more_than_its_place() {
        for (text, seen) in [
            ("postgres://me:pw@host/db", "postgres://***@host/db"),
            ("postgres:/me:pw@host/db", "***@host/db"),
            ("postgres:me:p@w@host/db", "***@host/db"),
            ("me:pw@x://host/db", "***@x://host/db"),
            ("https://token@host/x", "https://***@host/x"),
            ("host=h password=pw dbname=d", "host=h password=***"),
            ("h?Password = pw", "h?Password ***"),
            ("password", "password"),
            ("5 weeks", "5 weeks"),
            ("redis://x", "redis://x"),
        ] {
            assert_eq!(shown(text), seen);
        }
        for (text, seen) in [
            ("postgres:/me:pw/h", None),
            ("postgres://me:pw#h", None),
            ("host=h user=me", None),
            ("sqllite://a.db", Some("\"sqllite://a.db\"")),
            ("me:pw@h", Some("\"***@h\"")),
        ] {
            assert_eq!(quoted_address(text).as_deref(), seen, "{text}");
        }
    }

    /// Goal: plain scalars mean what YAML 1.2 says. Method: each kind, and the words that only look like one.
    #[test]
    fn plain_scalars_follow_the_core_schema() {
        assert_eq!(resolve_plain("~"), Data::Null);
        assert_eq!(resolve_plain("True"), Data::Bool(true));
        for number in ["0", "-12", "+3", "1.5", ".5", "1e9"] {
            assert_eq!(resolve_plain(number), Data::Number(number.into()));
        }
        for text in ["yes", "no", "30d", "inf", "nan", ".", "-", "0x1F", "1_000", "10%"] {
            assert_eq!(resolve_plain(text), Data::Text(text.into()));
        }
    }
}
