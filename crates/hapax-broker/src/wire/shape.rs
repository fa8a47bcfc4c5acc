//! The shapes of requests: where counts, lengths and tagged fields are, per API and version.
//!
//! Invariant: a shape reads exactly what the codec reads; tests encode every served API in every version and compare. An API
//! without a shape is not served.

use kafka_protocol::messages::ApiKey;

use Kind::{Data, Fixed, List, ListOf, Maybe, One, Text};

/// How a value lies in the bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// So many bytes: numbers, booleans, uuids, also several in a row.
    Fixed(usize),
    /// A length of 16 bits, or a varint, and text.
    Text,
    /// A length of 32 bits, or a varint, and bytes.
    Data,
    /// A count and structures.
    List(&'static [Field]),
    /// A count and values.
    ListOf(&'static Kind),
    /// A structure.
    One(&'static [Field]),
    /// A byte that says whether a structure follows.
    Maybe(&'static [Field]),
}

/// A value with the versions that have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) first: i16,
    pub(crate) last: i16,
    pub(crate) kind: Kind,
    /// Its number among the tagged fields, if it is one of them.
    pub(crate) tag: Option<u32>,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// From this version on lengths are varints, and structures end with tagged fields.
    pub(crate) flexible: i16,
    pub(crate) fields: &'static [Field],
}

const fn between(first: i16, last: i16, kind: Kind) -> Field {
    Field { first, last, kind, tag: None }
}

const fn all(kind: Kind) -> Field {
    between(0, i16::MAX, kind)
}

const fn since(first: i16, kind: Kind) -> Field {
    between(first, i16::MAX, kind)
}

const fn until(last: i16, kind: Kind) -> Field {
    between(0, last, kind)
}

const fn tag(number: u32, first: i16, kind: Kind) -> Field {
    Field { first, last: i16::MAX, kind, tag: Some(number) }
}

/// The shape of an API's requests.
pub(crate) fn shape(key: ApiKey) -> Option<&'static Shape> {
    SHAPES.iter().find(|(api, _)| *api == key).map(|(_, shape)| shape)
}

const SHAPES: &[(ApiKey, Shape)] = &[
    (
        ApiKey::Produce,
        Shape {
            flexible: 9,
            fields: &[
                all(Text),
                all(Fixed(6)),
                all(List(&[until(12, Text), since(13, Fixed(16)), all(List(&[all(Fixed(4)), all(Data)]))])),
            ],
        },
    ),
    (
        ApiKey::Fetch,
        Shape {
            flexible: 12,
            fields: &[
                until(14, Fixed(4)),
                all(Fixed(13)),
                since(7, Fixed(8)),
                all(List(&[
                    until(12, Text),
                    since(13, Fixed(16)),
                    all(List(&[
                        all(Fixed(4)),
                        since(9, Fixed(4)),
                        all(Fixed(8)),
                        since(12, Fixed(4)),
                        since(5, Fixed(8)),
                        all(Fixed(4)),
                        tag(0, 17, Fixed(16)),
                        tag(1, 18, Fixed(8)),
                    ])),
                ])),
                since(7, List(&[between(7, 12, Text), since(13, Fixed(16)), since(7, ListOf(&Fixed(4)))])),
                since(11, Text),
                tag(0, 12, Text),
                tag(1, 15, One(&[since(15, Fixed(12))])),
            ],
        },
    ),
    (
        ApiKey::ListOffsets,
        Shape {
            flexible: 6,
            fields: &[
                all(Fixed(4)),
                since(2, Fixed(1)),
                all(List(&[all(Text), all(List(&[all(Fixed(4)), since(4, Fixed(4)), all(Fixed(8))]))])),
                since(10, Fixed(4)),
            ],
        },
    ),
    (
        ApiKey::Metadata,
        Shape {
            flexible: 9,
            fields: &[
                all(List(&[since(10, Fixed(16)), all(Text)])),
                since(4, Fixed(1)),
                between(8, 10, Fixed(1)),
                since(8, Fixed(1)),
            ],
        },
    ),
    (
        ApiKey::OffsetCommit,
        Shape {
            flexible: 8,
            fields: &[
                all(Text),
                all(Fixed(4)),
                all(Text),
                since(7, Text),
                until(4, Fixed(8)),
                all(List(&[all(Text), all(List(&[all(Fixed(12)), since(6, Fixed(4)), all(Text)]))])),
            ],
        },
    ),
    (
        ApiKey::OffsetFetch,
        Shape {
            flexible: 6,
            fields: &[
                until(7, Text),
                until(7, List(&[until(7, Text), until(7, ListOf(&Fixed(4)))])),
                since(
                    8,
                    List(&[
                        since(8, Text),
                        since(9, Text),
                        since(9, Fixed(4)),
                        since(8, List(&[since(8, Text), since(8, ListOf(&Fixed(4)))])),
                    ]),
                ),
                since(7, Fixed(1)),
            ],
        },
    ),
    (
        ApiKey::FindCoordinator,
        Shape { flexible: 3, fields: &[until(3, Text), since(1, Fixed(1)), since(4, ListOf(&Text))] },
    ),
    (
        ApiKey::JoinGroup,
        Shape {
            flexible: 6,
            fields: &[
                all(Text),
                all(Fixed(4)),
                since(1, Fixed(4)),
                all(Text),
                since(5, Text),
                all(Text),
                all(List(&[all(Text), all(Data)])),
                since(8, Text),
            ],
        },
    ),
    (ApiKey::Heartbeat, Shape { flexible: 4, fields: &[all(Text), all(Fixed(4)), all(Text), since(3, Text)] }),
    (
        ApiKey::LeaveGroup,
        Shape {
            flexible: 4,
            fields: &[all(Text), until(2, Text), since(3, List(&[since(3, Text), since(3, Text), since(5, Text)]))],
        },
    ),
    (
        ApiKey::SyncGroup,
        Shape {
            flexible: 4,
            fields: &[
                all(Text),
                all(Fixed(4)),
                all(Text),
                since(3, Text),
                since(5, Text),
                since(5, Text),
                all(List(&[all(Text), all(Data)])),
            ],
        },
    ),
    (ApiKey::DescribeGroups, Shape { flexible: 5, fields: &[all(ListOf(&Text)), since(3, Fixed(1))] }),
    (ApiKey::ListGroups, Shape { flexible: 3, fields: &[since(4, ListOf(&Text)), since(5, ListOf(&Text))] }),
    (ApiKey::ApiVersions, Shape { flexible: 3, fields: &[since(3, Text), since(3, Text)] }),
    (
        ApiKey::CreateTopics,
        Shape {
            flexible: 5,
            fields: &[
                all(List(&[
                    all(Text),
                    all(Fixed(6)),
                    all(List(&[all(Fixed(4)), all(ListOf(&Fixed(4)))])),
                    all(List(&[all(Text), all(Text)])),
                ])),
                all(Fixed(5)),
            ],
        },
    ),
    (
        ApiKey::DeleteTopics,
        Shape {
            flexible: 4,
            fields: &[since(6, List(&[since(6, Text), since(6, Fixed(16))])), until(5, ListOf(&Text)), all(Fixed(4))],
        },
    ),
    (
        ApiKey::DeleteRecords,
        Shape { flexible: 2, fields: &[all(List(&[all(Text), all(List(&[all(Fixed(12))]))])), all(Fixed(4))] },
    ),
    (ApiKey::InitProducerId, Shape { flexible: 2, fields: &[all(Text), all(Fixed(4)), since(3, Fixed(10))] }),
    (
        ApiKey::OffsetForLeaderEpoch,
        Shape { flexible: 4, fields: &[since(3, Fixed(4)), all(List(&[all(Text), all(List(&[all(Fixed(12))]))]))] },
    ),
    (
        ApiKey::DescribeAcls,
        Shape { flexible: 2, fields: &[all(Fixed(1)), all(Text), all(Fixed(1)), all(Text), all(Text), all(Fixed(2))] },
    ),
    (
        ApiKey::CreateAcls,
        Shape {
            flexible: 2,
            fields: &[all(List(&[all(Fixed(1)), all(Text), all(Fixed(1)), all(Text), all(Text), all(Fixed(2))]))],
        },
    ),
    (
        ApiKey::DeleteAcls,
        Shape {
            flexible: 2,
            fields: &[all(List(&[all(Fixed(1)), all(Text), all(Fixed(1)), all(Text), all(Text), all(Fixed(2))]))],
        },
    ),
    (
        ApiKey::DescribeConfigs,
        Shape {
            flexible: 4,
            fields: &[all(List(&[all(Fixed(1)), all(Text), all(ListOf(&Text))])), all(Fixed(1)), since(3, Fixed(1))],
        },
    ),
    (
        ApiKey::AlterConfigs,
        Shape {
            flexible: 2,
            fields: &[all(List(&[all(Fixed(1)), all(Text), all(List(&[all(Text), all(Text)]))])), all(Fixed(1))],
        },
    ),
    (ApiKey::DescribeLogDirs, Shape { flexible: 2, fields: &[all(List(&[all(Text), all(ListOf(&Fixed(4)))]))] }),
    (
        ApiKey::CreatePartitions,
        Shape {
            flexible: 2,
            fields: &[all(List(&[all(Text), all(Fixed(4)), all(List(&[all(ListOf(&Fixed(4)))]))])), all(Fixed(5))],
        },
    ),
    (ApiKey::DeleteGroups, Shape { flexible: 2, fields: &[all(ListOf(&Text))] }),
    (
        ApiKey::ElectLeaders,
        Shape {
            flexible: 2,
            fields: &[since(1, Fixed(1)), all(List(&[all(Text), all(ListOf(&Fixed(4)))])), all(Fixed(4))],
        },
    ),
    (
        ApiKey::IncrementalAlterConfigs,
        Shape {
            flexible: 1,
            fields: &[
                all(List(&[all(Fixed(1)), all(Text), all(List(&[all(Text), all(Fixed(1)), all(Text)]))])),
                all(Fixed(1)),
            ],
        },
    ),
    (
        ApiKey::ListPartitionReassignments,
        Shape { flexible: 0, fields: &[all(Fixed(4)), all(List(&[all(Text), all(ListOf(&Fixed(4)))]))] },
    ),
    (
        ApiKey::OffsetDelete,
        Shape { flexible: NEVER, fields: &[all(Text), all(List(&[all(Text), all(List(&[all(Fixed(4))]))]))] },
    ),
    (
        ApiKey::DescribeClientQuotas,
        Shape { flexible: 1, fields: &[all(List(&[all(Text), all(Fixed(1)), all(Text)])), all(Fixed(1))] },
    ),
    (ApiKey::DescribeCluster, Shape { flexible: 0, fields: &[all(Fixed(1)), since(1, Fixed(1)), since(2, Fixed(1))] }),
    (ApiKey::ListConfigResources, Shape { flexible: 0, fields: &[since(1, ListOf(&Fixed(1)))] }),
    (
        ApiKey::DescribeTopicPartitions,
        Shape {
            flexible: 0,
            fields: &[all(List(&[all(Text)])), all(Fixed(4)), all(Maybe(&[all(Text), all(Fixed(4))]))],
        },
    ),
];

/// No version of an API is flexible.
const NEVER: i16 = i16::MAX;
