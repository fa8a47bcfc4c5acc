use bytes::{BufMut, Bytes, BytesMut};
use fastrand::Rng;
use kafka_protocol::messages;
use kafka_protocol::protocol::{Decodable, Message, VersionRange};

use super::*;

/// Writes answers by their layout, filled at random, with a lie in place of one count if asked.
struct Author {
    rng: Rng,
    version: i16,
    compact: bool,
    out: BytesMut,
    counts: usize,
    lie: Option<(usize, u32)>,
}

impl Author {
    fn write((_, flexible, text): &(ApiKey, i16, &str), version: i16, seed: u64, lie: Option<(usize, u32)>) -> Self {
        let (rng, compact) = (Rng::with_seed(seed), version >= *flexible);
        let mut author = Self { rng, version, compact, out: BytesMut::new(), counts: 0, lie };
        author.value(&read(text));
        author
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.out.put_u8(value as u8);
    }

    fn length(&mut self, length: u32, size: usize) {
        match (self.compact, size) {
            (true, _) => self.varint(length.wrapping_add(1)),
            (false, 2) => self.out.put_u16(length as u16),
            (false, _) => self.out.put_u32(length),
        }
    }

    fn value(&mut self, kind: &Kind) {
        match kind {
            Kind::Fixed(size) => self.out.put_bytes(b'x', *size),
            Kind::Text | Kind::Bytes => {
                let length = self.rng.u32(0..20);
                self.length(length, if matches!(kind, Kind::Text) { 2 } else { 4 });
                self.out.put_bytes(b'x', length as usize);
            }
            Kind::List(kind) => {
                let count = self.rng.u32(0..=2);
                let claimed = self.lie.filter(|(at, _)| *at == self.counts).map_or(count, |(_, lie)| lie);
                self.counts += 1;
                self.length(claimed, 4);
                (0..count).for_each(|_| self.value(kind));
            }
            Kind::Structure(fields) => self.structure(fields),
            Kind::Maybe(fields) => {
                let there = self.rng.bool();
                self.out.put_i8(if there { 1 } else { -1 });
                if there {
                    self.structure(fields);
                }
            }
        }
    }

    fn structure(&mut self, fields: &[Field]) {
        let there: Vec<&Field> = fields.iter().filter(|field| field.is_in(self.version)).collect();
        there.iter().filter(|field| field.tag.is_none()).for_each(|field| self.value(&field.kind));
        if !self.compact {
            return;
        }
        let tagged: Vec<_> = there.into_iter().filter(|field| field.tag.is_some()).collect();
        self.varint(tagged.len() as u32 + 1);
        for field in tagged {
            let before = std::mem::take(&mut self.out);
            self.value(&field.kind);
            let value = std::mem::replace(&mut self.out, before);
            self.varint(field.tag.expect("only tagged ones"));
            self.varint(value.len() as u32);
            self.out.put_slice(&value);
        }
        self.varint(1_000);
        self.varint(3);
        self.out.put_slice(b"new");
    }
}

type Decode = fn(&mut Bytes, i16) -> Result<(), String>;

fn decode<A: Decodable>(bytes: &mut Bytes, version: i16) -> Result<(), String> {
    A::decode(bytes, version).map(drop).map_err(|error| error.to_string())
}

macro_rules! answers {
    ($($api:ident $answer:ident),* $(,)?) => {
        /// The versions and the decoder of an API's answers.
        fn answers(key: ApiKey) -> Option<(VersionRange, Decode)> {
            $(if key == ApiKey::$api {
                return Some((messages::$answer::VERSIONS, decode::<messages::$answer>));
            })*
            None
        }
    };
}

answers! {
    Produce ProduceResponse, Fetch FetchResponse, ListOffsets ListOffsetsResponse, Metadata MetadataResponse, OffsetCommit OffsetCommitResponse, OffsetFetch OffsetFetchResponse, FindCoordinator FindCoordinatorResponse, JoinGroup JoinGroupResponse, Heartbeat HeartbeatResponse, LeaveGroup LeaveGroupResponse, SyncGroup SyncGroupResponse, DescribeGroups DescribeGroupsResponse, ListGroups ListGroupsResponse, ApiVersions ApiVersionsResponse, CreateTopics CreateTopicsResponse, DeleteTopics DeleteTopicsResponse, DeleteRecords DeleteRecordsResponse, InitProducerId InitProducerIdResponse, OffsetForLeaderEpoch OffsetForLeaderEpochResponse, DescribeAcls DescribeAclsResponse, CreateAcls CreateAclsResponse, DeleteAcls DeleteAclsResponse, DescribeConfigs DescribeConfigsResponse, AlterConfigs AlterConfigsResponse, DescribeLogDirs DescribeLogDirsResponse, CreatePartitions CreatePartitionsResponse, DeleteGroups DeleteGroupsResponse, ElectLeaders ElectLeadersResponse, IncrementalAlterConfigs IncrementalAlterConfigsResponse, ListPartitionReassignments ListPartitionReassignmentsResponse, OffsetDelete OffsetDeleteResponse, DescribeClientQuotas DescribeClientQuotasResponse, DescribeCluster DescribeClusterResponse, ListConfigResources ListConfigResourcesResponse, DescribeTopicPartitions DescribeTopicPartitionsResponse,
}

fn all() -> impl Iterator<Item = (&'static (ApiKey, i16, &'static str), i16, Decode)> {
    LAYOUTS.iter().flat_map(|layout| {
        let (versions, decode) = answers(layout.0).expect("every layout has a decoder");
        (versions.min..=versions.max).map(move |version| (layout, version, decode))
    })
}

/// Goal: the layouts are the codec's. Method: answers written by layout, every API and version, read by codec and walk to the end.
#[test]
fn layout_and_codec_read_the_same_bytes() {
    for (layout, version, decode) in all() {
        for seed in 0..50 {
            let body = Author::write(layout, version, seed, None).out.freeze();
            let (key, mut rest) = (layout.0, body.clone());
            decode(&mut rest, version).unwrap_or_else(|error| panic!("{key:?} {version} seed {seed}: {error}"));
            assert!(rest.is_empty(), "{key:?} {version} seed {seed}: {} bytes are left", rest.len());
            assert_eq!(check(key as i16, version, &body), Ok(()), "{key:?} {version} seed {seed}");
        }
    }
}

/// Goal: no count beyond the bytes reaches the codec. Method: lie at every count of every answer in every version.
#[test]
fn a_count_beyond_the_bytes_is_refused() {
    for (layout, version, _) in all() {
        let honest = Author::write(layout, version, 7, None);
        for at in 0..honest.counts {
            for lie in [i32::MAX as u32, 1 << 30, 1 << 20, honest.out.len() as u32 + 1, u32::MAX - 1] {
                let body = Author::write(layout, version, 7, Some((at, lie))).out;
                assert!(check(layout.0 as i16, version, &body).is_err(), "{:?} {version}, count {at}: {lie}", layout.0);
            }
        }
    }
}

/// Goal: cut and bent answers are errors or answers, never a panic. Method: every cut, and random bytes changed.
#[test]
fn damaged_answers_never_panic() {
    let mut rng = Rng::with_seed(3);
    for (layout, version, decode) in all() {
        let body = Author::write(layout, version, 5, None).out;
        for cut in 0..body.len() {
            assert!(check(layout.0 as i16, version, &body[..cut]).is_err(), "{:?} {version} cut at {cut}", layout.0);
        }
        for _ in 0..100 {
            let mut bent = body.clone();
            (0..rng.usize(1..4)).for_each(|_| {
                let at = rng.usize(0..bent.len());
                bent[at] = rng.u8(..);
            });
            if check(layout.0 as i16, version, &bent).is_ok() {
                drop(decode(&mut bent.freeze(), version));
            }
        }
    }
}

/// Goal: an answer of many small things is bounded, too. Method: one element and one tagged field more than is allowed.
#[test]
fn elements_and_tagged_fields_are_bounded() {
    let mut body = BytesMut::new();
    body.put_i16(0);
    body.put_u32(MAX_ELEMENTS as u32 + 1);
    body.put_bytes(0, (MAX_ELEMENTS + 1) * 6);
    assert!(check(ApiKey::ApiVersions as i16, 0, &body).is_err_and(|error| error.contains("elements")));
    let mut body = BytesMut::from(&[0, 0, 0, 0, 0, 0, 0x91, 0x4e][..]); // 10,001
    (0..=MAX_TAGS).for_each(|_| body.put_slice(&[100, 0]));
    assert!(check(ApiKey::Heartbeat as i16, 4, &body).is_err_and(|error| error.contains("tagged")));
    assert!(!is_known(999) && check(999, 0, &[]).is_err());
}
