//! The small pieces of reading an address: its parts, percent-encoding, host and port, the most similar parameter; and
//! how an address shows itself without its password.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::tls::{ClientFiles, FileNames, TlsSettings};

/// What stands behind the scheme, cut at `/` and `?`; what is not there is empty.
pub(crate) struct Cut<'a> {
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    query: &'a str,
}

impl<'a> Cut<'a> {
    /// None if an @ comes too late: most likely the password has a `/` or `?` that was not percent-encoded, and what was
    /// taken for the host is a part of it. So nothing is ever shown that stands before an address's last @.
    pub(crate) fn of(rest: &'a str) -> Option<Self> {
        let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = before_query.split_once('/').unwrap_or((before_query, ""));
        let late = path.contains('@') || (query.contains('@') && authority.contains([':', '@']));
        (!late).then_some(Self { authority, path, query })
    }

    /// Name and value of each parameter, as they are written.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
        pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
    }

    /// A parameter's name as messages may show it. Behind a password, or without a `=`, it may be a part of a password that has
    /// a `&` or `?` in it.
    pub(crate) fn shown_name(&self, name: &str) -> String {
        let mut plain = self.query.split('&').take_while(|pair| !pair.starts_with("password="));
        let is_told = |pair: &str| pair.split_once('=').is_some_and(|(own, _)| decode(own).as_deref() == Some(name));
        if plain.any(is_told) { name.to_owned() } else { "…".to_owned() }
    }
}

/// `user:password`.
pub(crate) fn user_and_password(login: &str) -> (&str, Option<&str>) {
    login.split_once(':').map_or((login, None), |(user, password)| (user, Some(password)))
}

/// A certificate and its key; the error is the parameter that stands alone.
pub(crate) fn client_files(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    names: &FileNames,
) -> Result<Option<ClientFiles>, &'static str> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(ClientFiles { certificate, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(names.certificate),
        (None, Some(_)) => Err(names.key),
    }
}

/// What a parameter of [`seconds`] takes.
pub(crate) const TAKES_SECONDS: &str = "a number of seconds, 0 for our default";

/// A limit; the inner none is our default, the outer one is no number.
pub(crate) fn seconds(value: &str) -> Option<Option<Duration>> {
    let seconds: i64 = value.parse().ok()?;
    Some(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

/// An address for programmers: no secret in it.
pub(crate) fn debug(
    formatter: &mut fmt::Formatter<'_>,
    name: &str,
    target: &str,
    password: Option<&String>,
    tls: &TlsSettings,
) -> fmt::Result {
    let password = password.map(|_| "***");
    let mut shown = formatter.debug_struct(name);
    shown.field("target", &target).field("password", &password).field("tls", tls).finish_non_exhaustive()
}

/// Undoes percent-encoding. `+` stays `+`, as the databases' own clients have it.
/// None if it is broken, or not UTF-8.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
            // `from_str_radix` would also take a sign.
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Cuts `host:port`, `[::1]:port`, `host`; an absent port is empty.
pub(crate) fn host_and_port(entry: &str) -> (&str, &str) {
    if let Some((address, after)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (address, after.strip_prefix(':').unwrap_or(after));
    }
    entry.rsplit_once(':').unwrap_or((entry, ""))
}

/// The known name that needs the fewest changes.
pub(crate) fn nearest(name: &str, known: &[&'static str]) -> &'static str {
    known.iter().min_by_key(|candidate| distance(name, candidate)).copied().unwrap_or_default()
}

fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in right.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
