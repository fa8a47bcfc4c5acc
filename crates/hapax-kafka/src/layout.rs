//! How answers lie in their bytes: walked before the codec reads them.
//!
//! The codec makes room for as many elements as a count claims, so a lying server could have gigabytes with a few bytes. Here
//! nothing is allocated on a server's word. Invariant: what passes makes the codec allocate a bounded multiple of the frame.

use kafka_protocol::messages::ApiKey;

/// Elements of all lists of one answer together: more than the metadata of the largest clusters has.
const MAX_ELEMENTS: usize = 4_000_000;
/// Tagged fields of one answer; Kafka itself defines fewer than ten anywhere.
const MAX_TAGS: usize = 10_000;
/// No version is flexible.
const NEVER: i16 = i16::MAX;

/// Every answer that this client reads: the API, its first version with varints and tagged fields, and what comes in which
/// order. A number is so many bytes, `s` a text, `b` bytes, `[]` a list, `{}` a structure, `?{}` one that may be missing,
/// `3+:` and `3-7:` the versions that have it, `#0` its tag.
#[rustfmt::skip]
const LAYOUTS: &[(ApiKey, i16, &str)] = &[
    (ApiKey::Produce, 9, "{[{3-12:s 13+:16 [{22 5+:8 8+:[{4 s}] 8+:s #0 10+:{8}}]}] 4 #0 10+:[{4 s 4 s}]}"),
    (ApiKey::Fetch, 12, "{4 7+:6 [{4-12:s 13+:16 [{22 5+:8 [{16}] 11+:4 b #0 12+:{12} #1 12+:{8} #2 12+:{12}}]}] #0 16+:[{4 s 4 s}]}"),
    (ApiKey::ListOffsets, 6, "{2+:4 [{s [{22 4+:4}]}]}"),
    (ApiKey::Metadata, 9, "{3+:4 [{4 s 4 1+:s}] 2+:s 1+:4 [{2 s 10+:16 1+:1 [{10 7+:4 [4] [4] 5+:[4]}] 8+:4}] 8-10:4 13+:2}"),
    (ApiKey::OffsetCommit, 8, "{3+:4 [{2-9:s 10+:16 [{6}]}]}"),
    (ApiKey::OffsetFetch, 6, "{3+:4 1-7:[{s [{12 5+:4 s 2}]}] 2-7:2 8+:[{s [{8-9:s 10+:16 [{16 s 2}]}] 2}]}"),
    (ApiKey::FindCoordinator, 3, "{1+:4 0-3:2 1-3:s 0-3:4 0-3:s 0-3:4 4+:[{s 4 s 6 s}]}"),
    (ApiKey::JoinGroup, 6, "{2+:4 6 7+:s s s 9+:1 s [{s 5+:s b}]}"),
    (ApiKey::Heartbeat, 4, "{1+:4 2}"),
    (ApiKey::LeaveGroup, 4, "{1+:4 2 3+:[{s s 2}]}"),
    (ApiKey::SyncGroup, 4, "{1+:4 2 5+:s 5+:s b}"),
    (ApiKey::DescribeGroups, 5, "{1+:4 [{2 6+:s s s s s [{s 4+:s s s b b}] 3+:4}]}"),
    (ApiKey::ListGroups, 3, "{1+:4 2 [{s s 4+:s 5+:s}]}"),
    (ApiKey::ApiVersions, 3, "{2 [{6}] 1+:4 #0 3+:[{s 4}] #1 3+:8 #2 3+:[{s 4}] #3 3+:1}"),
    (ApiKey::CreateTopics, 5, "{4 [{s 7+:16 2 s 5+:6 5+:[{s s 3}] #0 5+:2}]}"),
    (ApiKey::DeleteTopics, 4, "{4 [{s 6+:16 2 5+:s}]}"),
    (ApiKey::DeleteRecords, 2, "{4 [{s [{14}]}]}"),
    (ApiKey::InitProducerId, 2, "{16 6+:10}"),
    (ApiKey::OffsetForLeaderEpoch, 4, "{4 [{s [{18}]}]}"),
    (ApiKey::DescribeAcls, 2, "{6 s [{1 s 1 [{s s 2}]}]}"),
    (ApiKey::CreateAcls, 2, "{4 [{2 s}]}"),
    (ApiKey::DeleteAcls, 2, "{4 [{2 s [{2 s 1 s 1 s s 2}]}]}"),
    (ApiKey::DescribeConfigs, 4, "{4 [{2 s 1 s [{s s 3 [{s s 1}] 3+:1 3+:s}]}]}"),
    (ApiKey::AlterConfigs, 2, "{4 [{2 s 1 s}]}"),
    (ApiKey::DescribeLogDirs, 2, "{4 3+:2 [{2 s [{s [{21}]}] 4+:16}]}"),
    (ApiKey::CreatePartitions, 2, "{4 [{s 2 s}]}"),
    (ApiKey::DeleteGroups, 2, "{4 [{s 2}]}"),
    (ApiKey::ElectLeaders, 2, "{4 1+:2 [{s [{6 s}]}]}"),
    (ApiKey::IncrementalAlterConfigs, 1, "{4 [{2 s 1 s}]}"),
    (ApiKey::ListPartitionReassignments, 0, "{6 s [{s [{4 [4] [4] [4]}]}]}"),
    (ApiKey::OffsetDelete, NEVER, "{6 [{s [{6}]}]}"),
    (ApiKey::DescribeClientQuotas, 1, "{6 s [{[{s s}] [{s 8}]}]}"),
    (ApiKey::DescribeCluster, 0, "{6 s 1+:1 s 4 [{4 s 4 s 2+:1}] 4}"),
    (ApiKey::ListConfigResources, 0, "{6 [{s 1+:1}]}"),
    (ApiKey::DescribeTopicPartitions, 0, "{4 [{2 s 17 [{14 [4] [4] [4] [4] [4]}] 4}] ?{s 4}}"),
];

/// A value as it lies in the bytes.
#[derive(Debug)]
enum Kind {
    Fixed(usize),
    Text,
    Bytes,
    List(Box<Kind>),
    Structure(Vec<Field>),
    Maybe(Vec<Field>),
}

#[derive(Debug)]
struct Field {
    tag: Option<u32>,
    first: i16,
    last: i16,
    kind: Kind,
}

/// Whether answers of an API can be read at all.
pub(super) fn is_known(api: i16) -> bool {
    LAYOUTS.iter().any(|(key, ..)| *key as i16 == api)
}

/// Walks the body of an answer; what is wrong with it, if it claims more than it has.
pub(super) fn check(api: i16, version: i16, body: &[u8]) -> Result<(), String> {
    let found = LAYOUTS.iter().find(|(key, ..)| *key as i16 == api);
    let (_, flexible, text) = found.ok_or_else(|| format!("the layout of API {api} is not known"))?;
    let compact = version >= *flexible;
    Walk { rest: body, version, compact, elements_left: MAX_ELEMENTS, tags_left: MAX_TAGS }.value(&read(text))
}

/// Reads a line of the table.
fn read(text: &str) -> Kind {
    Reader { text: text.as_bytes() }.kind()
}

struct Reader<'a> {
    text: &'a [u8],
}

impl Reader<'_> {
    /// Takes the next character, if it is this one.
    fn skip(&mut self, character: u8) -> bool {
        let is_next = self.text.first() == Some(&character);
        self.text = &self.text[usize::from(is_next)..];
        is_next
    }

    fn number(&mut self) -> u32 {
        let mut value = 0;
        while let Some(digit) = self.text.first().filter(|digit| digit.is_ascii_digit()) {
            value = value * 10 + u32::from(digit - b'0');
            self.text = &self.text[1..];
        }
        value
    }

    fn version(&mut self) -> i16 {
        i16::try_from(self.number()).expect("versions are small")
    }

    fn kind(&mut self) -> Kind {
        if self.skip(b's') {
            Kind::Text
        } else if self.skip(b'b') {
            Kind::Bytes
        } else if self.skip(b'[') {
            let kind = self.kind();
            assert!(self.skip(b']'), "a list ends");
            Kind::List(Box::new(kind))
        } else if self.skip(b'{') {
            Kind::Structure(self.fields())
        } else if self.skip(b'?') {
            assert!(self.skip(b'{'), "only structures are missing");
            Kind::Maybe(self.fields())
        } else {
            Kind::Fixed(self.number() as usize)
        }
    }

    fn fields(&mut self) -> Vec<Field> {
        let mut fields = Vec::new();
        while !self.skip(b'}') {
            assert!(!self.text.is_empty(), "a structure ends");
            self.skip(b' ');
            let tag = self.skip(b'#').then(|| self.number());
            self.skip(b' ');
            let before = self.text;
            let first = self.version();
            let last = if self.skip(b'+') {
                i16::MAX
            } else if self.skip(b'-') {
                self.version()
            } else {
                -1
            };
            if self.skip(b':') {
                fields.push(Field { tag, first, last, kind: self.kind() });
            } else {
                self.text = before;
                fields.push(Field { tag, first: 0, last: i16::MAX, kind: self.kind() });
            }
        }
        fields
    }
}

impl Field {
    fn is_in(&self, version: i16) -> bool {
        (self.first..=self.last).contains(&version)
    }
}

/// A walk over an answer, without allocating.
struct Walk<'a> {
    rest: &'a [u8],
    version: i16,
    compact: bool,
    elements_left: usize,
    tags_left: usize,
}

impl<'a> Walk<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let cut = self.rest.split_at_checked(count);
        let (head, tail) = cut.ok_or_else(|| format!("{count} bytes are claimed, {} are there", self.rest.len()))?;
        self.rest = tail;
        Ok(head)
    }

    /// A number of so many bytes, with its sign.
    fn number(&mut self, size: usize) -> Result<i64, String> {
        let bytes = self.take(size)?;
        let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { -1 } else { 0 };
        Ok(bytes.iter().fold(sign, |value, byte| (value << 8) | i64::from(*byte)))
    }

    fn varint(&mut self) -> Result<u32, String> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| "a number is longer than 32 bits".to_owned());
            }
        }
        Err("a number is longer than 32 bits".to_owned())
    }

    /// A length or count; none for null. Varints are one more than what they say.
    fn length(&mut self, size: usize) -> Result<Option<usize>, String> {
        let length = if self.compact { i64::from(self.varint()?) - 1 } else { self.number(size)? };
        match length {
            -1 => Ok(None),
            _ => usize::try_from(length).map(Some).map_err(|_| format!("a length of {length} is impossible")),
        }
    }

    fn value(&mut self, kind: &Kind) -> Result<(), String> {
        match kind {
            Kind::Fixed(size) => self.take(*size).map(drop),
            Kind::Text => self.length(2)?.map_or(Ok(()), |length| self.take(length).map(drop)),
            Kind::Bytes => self.length(4)?.map_or(Ok(()), |length| self.take(length).map(drop)),
            Kind::List(kind) => {
                let count = self.length(4)?.unwrap_or(0);
                if count.saturating_mul(self.smallest(kind).max(1)) > self.rest.len() {
                    return Err(format!("{count} elements cannot be in the {} bytes that are left", self.rest.len()));
                }
                let left = self.elements_left.checked_sub(count);
                self.elements_left = left.ok_or_else(|| format!("it has more than {MAX_ELEMENTS} elements"))?;
                (0..count).try_for_each(|_| self.value(kind))
            }
            Kind::Structure(fields) => self.structure(fields),
            Kind::Maybe(fields) => {
                if self.number(1)? < 0 {
                    Ok(())
                } else {
                    self.structure(fields)
                }
            }
        }
    }

    fn structure(&mut self, fields: &[Field]) -> Result<(), String> {
        let version = self.version;
        for field in fields.iter().filter(|field| field.tag.is_none() && field.is_in(version)) {
            self.value(&field.kind)?;
        }
        if self.compact { self.tags(fields) } else { Ok(()) }
    }

    /// The codec reads the tagged fields that it knows by their kind, whatever size is said, so the two must agree.
    fn tags(&mut self, fields: &[Field]) -> Result<(), String> {
        let count = self.varint()? as usize;
        let left = self.tags_left.checked_sub(count);
        self.tags_left = left.ok_or_else(|| format!("it has more than {MAX_TAGS} tagged fields"))?;
        for _ in 0..count {
            let (tag, size) = (self.varint()?, self.varint()? as usize);
            let known = fields.iter().find(|field| field.tag == Some(tag) && field.is_in(self.version));
            let Some(field) = known else {
                self.take(size)?;
                continue;
            };
            let before = self.rest.len();
            self.value(&field.kind)?;
            if before - self.rest.len() != size {
                return Err(format!("tagged field {tag} has another size than it says"));
            }
        }
        Ok(())
    }

    /// The fewest bytes that a value takes.
    fn smallest(&self, kind: &Kind) -> usize {
        match kind {
            Kind::Fixed(size) => *size,
            Kind::Text if !self.compact => 2,
            Kind::Bytes | Kind::List(_) if !self.compact => 4,
            Kind::Text | Kind::Bytes | Kind::List(_) | Kind::Maybe(_) => 1,
            Kind::Structure(fields) => {
                let plain = fields.iter().filter(|field| field.tag.is_none() && field.is_in(self.version));
                plain.map(|field| self.smallest(&field.kind)).sum::<usize>() + usize::from(self.compact)
            }
        }
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
