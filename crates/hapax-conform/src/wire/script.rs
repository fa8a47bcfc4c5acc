//! One broker's part of the comparison: what it was asked, what it said, with its own ids given common names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::{Decodable, Encodable, Request};

use super::agreed::Agreed;
use super::connection::{Connection, Ended};
use super::tree::{Leaf, leaves};

/// An answer.
#[derive(Debug, Clone)]
pub struct Entry {
    /// `Fetch 12: from the start`.
    pub label: String,
    leaves: Vec<Leaf>,
}

/// A value that each broker chooses itself, and what it is called in the comparison.
#[derive(Debug)]
struct Name {
    path_end: &'static str,
    value: String,
    name: String,
}

/// A conversation with one broker.
#[derive(Debug)]
pub struct Script {
    address: SocketAddr,
    connection: Connection,
    entries: Vec<Entry>,
    names: Vec<Name>,
    /// API and version of everything that was asked and noted.
    pub asked: BTreeSet<(i16, i16)>,
    /// What the broker says it serves: API → oldest and newest version.
    pub advertised: BTreeMap<i16, (i16, i16)>,
}

impl Script {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens.
    pub async fn open(address: SocketAddr) -> Result<Self> {
        let connection = Connection::open(address).await?;
        let (entries, names) = (Vec::new(), Vec::new());
        Ok(Self { address, connection, entries, names, asked: BTreeSet::new(), advertised: BTreeMap::new() })
    }

    /// Goes on with the same broker after a restart, wherever it listens now.
    ///
    /// # Errors
    /// If nobody listens there.
    pub async fn reach(&mut self, address: SocketAddr) -> Result<()> {
        self.connection = Connection::open(address).await?;
        self.address = address;
        Ok(())
    }

    /// Asks, and notes the answer as it is.
    ///
    /// # Errors
    /// If there is no answer, or one that cannot be decoded.
    pub(crate) async fn say<R: Request>(&mut self, version: i16, what: &str, request: &R) -> Result<Option<R::Response>>
    where
        R::Response: Debug,
    {
        self.say_but(version, what, request, |_| {}).await
    }

    /// Asks, and notes the answer after `tidy` took out what cannot be equal.
    ///
    /// # Errors
    /// If there is no answer, or one that cannot be decoded.
    pub(crate) async fn say_but<R: Request>(
        &mut self,
        version: i16,
        what: &str,
        request: &R,
        tidy: impl FnOnce(&mut R::Response),
    ) -> Result<Option<R::Response>>
    where
        R::Response: Debug,
    {
        let label = format!("{:?} {version}: {what}", ApiKey::try_from(R::KEY).ok().context("a known API")?);
        self.asked.insert((R::KEY, version));
        let answer = self.connection.ask(version, request).await.with_context(|| label.clone())?;
        let Ok(mut response) = answer else {
            self.note_end(label).await?;
            return Ok(None);
        };
        let again = copy(version, &response)?;
        tidy(&mut response);
        let leaves = leaves(&format!("{response:#?}")).into_iter().map(|leaf| self.named(leaf)).collect();
        self.entries.push(Entry { label, leaves });
        Ok(Some(again))
    }

    /// Asks again until the broker is ready to answer, without noting anything.
    ///
    /// # Errors
    /// If it never is.
    pub(crate) async fn patient<R: Request>(
        &mut self,
        version: i16,
        request: &R,
        ready: impl Fn(&R::Response) -> bool,
    ) -> Result<()> {
        for _ in 0..4_800 {
            if ready(&self.ask(version, request).await?) {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        anyhow::bail!("API {} version {version} was not ready for four minutes", R::KEY)
    }

    /// Asks without noting anything.
    ///
    /// # Errors
    /// If there is no answer, or one that cannot be decoded.
    pub(crate) async fn ask<R: Request>(&mut self, version: i16, request: &R) -> Result<R::Response> {
        self.connection.call(version, request).await
    }

    /// Sends bytes that are no request, and notes whether an answer came; its bytes are returned.
    ///
    /// # Errors
    /// If the broker neither answers nor ends the connection.
    pub(crate) async fn raw(&mut self, key: i16, version: i16, header: i16, what: &str) -> Result<Option<Bytes>> {
        let label = format!("API {key} version {version}: {what}");
        match self.connection.exchange(key, version, header, &[]).await? {
            Ok(answer) => Ok(Some(answer)),
            Err(Ended) => {
                self.note_end(label).await?;
                Ok(None)
            }
        }
    }

    /// Notes something that was computed from an answer.
    pub(crate) fn note(&mut self, label: &str, text: &str) {
        self.entries.push(Entry { label: label.to_owned(), leaves: leaves(text) });
    }

    async fn note_end(&mut self, label: String) -> Result<()> {
        let leaves = vec![Leaf { path: "connection".to_owned(), value: "closed".to_owned() }];
        self.entries.push(Entry { label, leaves });
        self.connection = Connection::open(self.address).await?;
        Ok(())
    }

    /// From now on this value, where a path ends so, is called `name`.
    pub(crate) fn name(&mut self, path_end: &'static str, value: impl ToString, name: impl Into<String>) {
        self.names.push(Name { path_end, value: value.to_string(), name: name.into() });
    }

    fn named(&self, mut leaf: Leaf) -> Leaf {
        for name in &self.names {
            if leaf.path.ends_with(name.path_end) && leaf.value.contains(&name.value) {
                let whole = leaf.value == name.value;
                // Numbers only as a whole: 1 is not part of 10.
                if whole || name.value.parse::<i64>().is_err() {
                    leaf.value = leaf.value.replace(&name.value, &name.name);
                }
            }
        }
        leaf
    }

    /// What was noted.
    #[must_use]
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}

/// Answers cannot be cloned in general; they can be written and read again.
fn copy<A: Encodable + Decodable>(version: i16, response: &A) -> Result<A> {
    let mut bytes = BytesMut::new();
    response.encode(&mut bytes, version)?;
    A::decode(&mut bytes.freeze(), version)
}

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The question.
    pub label: String,
    /// The field.
    pub path: String,
    /// What Apache Kafka has there.
    pub kafka: Option<String>,
    /// What ours has there.
    pub ours: Option<String>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        write!(formatter, "{}: {}: kafka {}, ours {}", self.label, self.path, show(&self.kafka), show(&self.ours))
    }
}

/// Everything that differs and is not agreed on; and which agreements were needed.
#[must_use]
pub fn compare(kafka: &[Entry], ours: &[Entry], agreed: &[Agreed]) -> (Vec<Difference>, BTreeSet<usize>) {
    let (mut differences, mut used) = (Vec::new(), BTreeSet::new());
    for at in 0..kafka.len().max(ours.len()) {
        let pair = (kafka.get(at), ours.get(at));
        let (Some(left), Some(right)) = pair else {
            let label = pair.0.or(pair.1).map_or(String::new(), |entry| entry.label.clone());
            let here = |side: Option<&Entry>| side.map(|_| "an answer".to_owned());
            differences.push(Difference { label, path: String::new(), kafka: here(pair.0), ours: here(pair.1) });
            continue;
        };
        for difference in fields(left, right) {
            let known = agreed.iter().position(|rule| rule.covers(&difference));
            match known {
                Some(rule) => drop(used.insert(rule)),
                None => differences.push(difference),
            }
        }
    }
    (differences, used)
}

fn fields(left: &Entry, right: &Entry) -> Vec<Difference> {
    let value =
        |entry: &Entry, path: &str| entry.leaves.iter().find(|leaf| leaf.path == path).map(|leaf| leaf.value.clone());
    let mut paths: Vec<&str> = left.leaves.iter().map(|leaf| leaf.path.as_str()).collect();
    paths.extend(right.leaves.iter().map(|leaf| leaf.path.as_str()).filter(|path| value(left, path).is_none()));
    let difference = |path: &str| Difference {
        label: if left.label == right.label { left.label.clone() } else { format!("{} / {}", left.label, right.label) },
        path: path.to_owned(),
        kafka: value(left, path),
        ours: value(right, path),
    };
    paths.into_iter().map(difference).filter(|found| found.kafka != found.ours).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Asked, Value};

    fn entry(text: &str) -> Entry {
        Entry { label: "Fetch 4: x".to_owned(), leaves: leaves(text) }
    }

    const HOST: Agreed = Agreed {
        api: "Fetch",
        versions: (4, 6),
        asked: Asked::These(&["x"]),
        path: "nodes[*].host",
        kafka: Value::Is("\"a\""),
        ours: Value::Text,
        page: "",
    };

    /// Goal: a difference is found, an agreed one is counted. Method: two answers with three differing fields.
    #[test]
    fn differences_are_found_and_agreed_ones_counted() {
        let text = |code: &str, host: &str| {
            format!(
                "A {{\n    same: 1,\n    code: {code},\n    nodes: [\n        N {{\n            host: \"{host}\",\n        }},\n    ],\n}}"
            )
        };
        let kafka = [entry(&text("3", "a"))];
        let ours = [entry(&text("4", "b"))];
        let (found, used) = compare(&kafka, &ours, &[HOST]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["Fetch 4: x: code: kafka 3, ours 4"]);
        assert_eq!(used, BTreeSet::from([0]));
        assert_eq!(compare(&kafka, &[], &[HOST]).0.len(), 1);
    }

    /// Goal: a rule covers its own case and no other. Method: change each thing that it names, one at a time.
    #[test]
    fn a_rule_is_as_narrow_as_it_says() {
        let difference = Difference {
            label: "Fetch 4: x".to_owned(),
            path: "nodes[3].host".to_owned(),
            kafka: Some("\"a\"".to_owned()),
            ours: Some("\"b\"".to_owned()),
        };
        assert!(HOST.covers(&difference));
        for other in ["Fetch 7: x", "Fetch 4: y", "Produce 4: x", "Fetch"] {
            assert!(!HOST.covers(&Difference { label: other.to_owned(), ..difference.clone() }), "{other}");
        }
        for other in ["nodes[3].hosts", "host", "nodes[3]"] {
            assert!(!HOST.covers(&Difference { path: other.to_owned(), ..difference.clone() }), "{other}");
        }
        assert!(!HOST.covers(&Difference { kafka: Some("\"c\"".to_owned()), ..difference.clone() }));
        for other in [None, Some("\"\""), Some("7")] {
            assert!(!HOST.covers(&Difference { ours: other.map(str::to_owned), ..difference.clone() }), "{other:?}");
        }
        let number = Agreed { ours: Value::Number, ..HOST };
        assert!(number.covers(&Difference { ours: Some("7".to_owned()), ..difference.clone() }));
        assert!(!number.covers(&Difference { ours: Some("-1".to_owned()), ..difference.clone() }));
        let gone = Agreed { ours: Value::Nothing, asked: Asked::Anything, path: "nodes[3].host", ..HOST };
        assert!(gone.covers(&Difference { ours: None, ..difference }));
    }
}
