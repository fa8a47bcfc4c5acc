//! What progress keeps of the files of a lane, beside the incarnation: how to recognise the place in the current one, and
//! which others were read.
//!
//! Pure. Invariant: what was written reads back; a text that does not is damage with a name, never a guess.

use serde_json::{Value, json};

use super::chain::Member;
use super::incarnation::without_end;

/// How many read files of one lane are remembered one by one.
pub(super) const READ_MAX: usize = 1_000;

/// The facts about a bookmark of a file lane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Facts {
    /// The device of the file's folder when it was read.
    pub(super) device: Option<u64>,
    /// What lies just before a place that was read up to; none at the beginning, and inside an archive. The place may be
    /// further than the position: a part of an epoch may commit by itself.
    pub(super) tail: Option<TailHash>,
    /// What an archive that was read to its end ended with, in its own bytes.
    pub(super) archive: Option<TailHash>,
    /// The compressed copy that is read in place of a file that is gone.
    pub(super) copy: Option<String>,
    /// What the file is called in its chain, as it was last seen; none from a version that did not say.
    pub(super) name: Option<String>,
    /// Whether a person has accepted that the file is gone: the next one that nobody has read follows it.
    pub(super) gone: bool,
    /// Files of the chain that were read, or passed when the delivery began, and lie there still.
    pub(super) read: Vec<ReadMember>,
}

/// The bytes before an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TailHash {
    pub(super) offset: u64,
    pub(super) hash: String,
}

/// A file that will not be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadMember {
    /// Inode and time of creation.
    pub(super) identity: String,
    /// How long it was; what comes to it later was never read.
    pub(super) length: u64,
    /// What it began with, as its description has it; empty if it held nothing.
    pub(super) first: String,
    /// Hash of its last bytes; none if it was passed, or is an archive.
    pub(super) tail: Option<String>,
    /// What it was called then, for people.
    pub(super) name: String,
}

impl Facts {
    pub(super) fn to_text(&self) -> String {
        let read: Vec<Value> =
            self.read.iter().map(|m| json!([m.identity, m.length, m.first, m.tail, m.name])).collect();
        let mut facts = json!({ "read": read });
        if let Value::Object(map) = &mut facts {
            map.extend(self.device.map(|device| ("device".to_owned(), json!(device))));
            map.extend(self.tail.as_ref().map(|tail| ("tail".to_owned(), json!([tail.offset, tail.hash]))));
            map.extend(self.archive.as_ref().map(|end| ("archive".to_owned(), json!([end.offset, end.hash]))));
            map.extend(self.copy.as_ref().map(|copy| ("copy".to_owned(), json!(copy))));
            map.extend(self.name.as_ref().map(|name| ("name".to_owned(), json!(name))));
            map.extend(self.gone.then(|| ("gone".to_owned(), json!(true))));
        }
        facts.to_string()
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    pub(super) fn from_text(text: &str) -> Result<Self, String> {
        let broken = || format!("what progress keeps of its files is damaged: {text}");
        let Ok(Value::Object(map)) = serde_json::from_str(text) else { return Err(broken()) };
        let words = |name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
        let read = map.get("read").and_then(Value::as_array).ok_or_else(broken)?;
        let read: Option<Vec<ReadMember>> = read.iter().map(ReadMember::from_value).collect();
        let hash = |name: &str| map.get(name).map(|hash| TailHash::from_value(hash).ok_or_else(broken)).transpose();
        Ok(Self {
            device: map.get("device").and_then(Value::as_u64),
            tail: hash("tail")?,
            archive: hash("archive")?,
            copy: words("copy"),
            name: words("name"),
            gone: map.get("gone").and_then(Value::as_bool).unwrap_or(false),
            read: read.ok_or_else(broken)?,
        })
    }

    /// The entry of a file that was read or passed, known by its identity.
    pub(super) fn entry(&self, member: &Member) -> Option<&ReadMember> {
        self.read.iter().find(|read| read.identity == member.identity)
    }

    /// Whether a person gave this file up, or it was passed, though it held something.
    pub(super) fn has_given_up(&self, member: &Member) -> bool {
        self.entry(member).is_some_and(|entry| entry.is_passed() && entry.length > 0)
    }

    /// Whether there may be read files that are not remembered any more.
    pub(super) fn is_full(&self) -> bool {
        self.read.len() >= READ_MAX
    }

    /// Remembers one more, and forgets those that lie there no longer. The new one is kept though it is not seen at this moment: it may
    /// just be compressed.
    pub(super) fn remember(&mut self, read: impl IntoIterator<Item = ReadMember>, listing: &[Member]) {
        self.read.retain(|known| listing.iter().any(|member| member.identity == known.identity));
        for one in read {
            self.read.retain(|known| known.identity != one.identity);
            self.read.push(one);
        }
        let surplus = self.read.len().saturating_sub(READ_MAX);
        self.read.drain(..surplus);
    }
}

impl TailHash {
    fn from_value(value: &Value) -> Option<Self> {
        let [offset, hash] = value.as_array()?.as_slice() else { return None };
        Some(Self { offset: offset.as_u64()?, hash: hash.as_str()?.to_owned() })
    }
}

impl ReadMember {
    fn from_value(value: &Value) -> Option<Self> {
        let [identity, length, first, tail, name] = value.as_array()?.as_slice() else { return None };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(Self {
            identity: text(identity)?,
            length: length.as_u64()?,
            first: text(first)?,
            tail: text(tail),
            name: text(name)?,
        })
    }

    /// Whether it was passed without being read, or was found empty.
    pub(super) fn is_passed(&self) -> bool {
        self.first.is_empty() && self.tail.is_none()
    }

    /// One that was passed without being read, or was found empty.
    pub(super) fn passed(member: &Member) -> Self {
        Self {
            identity: member.identity.clone(),
            length: member.length,
            first: String::new(),
            tail: None,
            name: member.name.clone(),
        }
    }
}

/// The part of a description that says what the file begins with; empty if it says nothing.
pub(super) fn first_in(text: &str) -> &str {
    let text = without_end(text);
    text.find(", first ").map_or("", |at| &text[at + 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the file that was just left is remembered though the folder does not show it at this moment; older ones that are gone are
    /// not. Method: both, with an empty listing.
    #[test]
    fn the_file_that_was_just_left_is_remembered() {
        let entry = |identity: &str| ReadMember {
            identity: identity.into(),
            length: 1,
            first: String::new(),
            tail: None,
            name: String::new(),
        };
        let mut facts = Facts { read: vec![entry("inode 1")], ..Facts::default() };
        facts.remember([entry("inode 2")], &[]);
        assert_eq!(facts.read, [entry("inode 2")]);
    }

    /// Goal: facts survive their text, and damage is named. Method: all of them, none of them, and texts that are none.
    #[test]
    fn facts_survive_their_text() {
        let read = ReadMember {
            identity: "inode 7".into(),
            length: 9,
            first: "first 3 bytes ab".into(),
            tail: Some("0a".into()),
            name: "a.1".into(),
        };
        let facts = Facts {
            device: Some(3),
            tail: Some(TailHash { offset: 7, hash: "00ff".into() }),
            archive: Some(TailHash { offset: 9, hash: "ff00".into() }),
            copy: Some("inode 8".into()),
            name: Some("a".into()),
            gone: true,
            read: vec![read],
        };
        for facts in [facts, Facts::default()] {
            assert_eq!(Facts::from_text(&facts.to_text()).as_ref(), Ok(&facts));
        }
        for text in ["", "[]", "{}", "{\"read\":[[1]]}"] {
            assert!(Facts::from_text(text).is_err_and(|why| why.contains("damaged")), "{text}");
        }
        assert_eq!(first_in("inode 7, created 1.2, first 9 bytes ab, read to its end"), "first 9 bytes ab");
        assert_eq!(first_in("inode 7, no record yet"), "");
    }
}
