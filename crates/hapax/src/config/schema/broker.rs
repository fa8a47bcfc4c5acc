//! `broker`: the log that Kafka clients take for Kafka.

use super::rules_of_text::{ANY_TEXT, BROKER_LISTEN, BROKER_STORE, PATH};
use super::{Field, Kind, Table};

const DAY: u64 = 24 * 3600 * 1000;

pub(crate) static BROKER: Table = Table {
    name: "broker",
    doc: "The broker that `hapax broker` runs; see [the broker](../kafka/README.md). Flags of that command go before what \
          stands here.",
    fields: &[
        Field::new(
            "listen",
            Kind::Text(&BROKER_LISTEN),
            "Address and port for Kafka clients. Only addresses of this machine: whoever connects may do everything. \
             Port 0 takes a free one and says which.",
        )
        .or("127.0.0.1:9092"),
        Field::new(
            "store",
            Kind::Text(&BROKER_STORE),
            "Where records are kept: `embedded` (one file under `data`), or the URL of a PostgreSQL database, whose schema \
             `kafka` several brokers may share: one leads, the others stand by.",
        )
        .or("embedded"),
        Field::new("data", Kind::Text(&PATH), "The folder of the embedded store. One process at a time uses it.")
            .or("hapax-data/broker"),
        Field::new(
            "id",
            Kind::Integer { least: 1, most: 1_000_000 },
            "The number by which clients know this broker. Brokers on one database need different ones; the lowest that \
             lives leads.",
        )
        .or("1"),
        Field::new(
            "autoCreateTopics",
            Kind::Boolean,
            "Make a topic when a client asks for one that is not there, as Kafka does.",
        )
        .or("true"),
        Field::new(
            "partitions",
            Kind::Integer { least: 1, most: 10_000 },
            "Partitions of a topic of which nobody said how many.",
        )
        .or("1"),
        Field::new(
            "topicDefaults",
            Kind::Map { of: &Kind::Text(&ANY_TEXT), or: &[] },
            "Settings of topics that say nothing themselves, by Kafka's names, in quotes: `{ retention.ms: \"3600000\" }`. \
             `hapax topic describe` shows them all.",
        ),
        Field::new(
            "maxRequest",
            Kind::Size { least: 1 << 20, most: 1 << 30 },
            "The largest request that is read; more closes the connection.",
        )
        .or("100MiB"),
        Field::new("maxConnections", Kind::Integer { least: 1, most: 1_000_000 }, "Connections in all.").or("10000"),
        Field::new(
            "maxConnectionsPerAddress",
            Kind::Integer { least: 1, most: 1_000_000 },
            "Connections of one address.",
        )
        .or("10000"),
        Field::new(
            "idleTimeout",
            Kind::Duration { least: 1000, most: DAY },
            "A connection that says nothing for so long is closed.",
        )
        .or("10m"),
        Field::new(
            "rebalanceDelay",
            Kind::Duration { least: 0, most: 300_000 },
            "How long the first join of an empty group waits for others (Kafka's `group.initial.rebalance.delay.ms`).",
        )
        .or("3s"),
        Field::new(
            "offsetsRetention",
            Kind::Duration { least: 60_000, most: 3650 * DAY },
            "So long the offsets of a group are kept after its last member left.",
        )
        .or("7d"),
        Field::new(
            "producerExpiry",
            Kind::Duration { least: 60_000, most: 3650 * DAY },
            "A producer that wrote nothing for so long is forgotten, and its repetitions are not recognised any more.",
        )
        .or("1d"),
        Field::new(
            "retentionInterval",
            Kind::Duration { least: 100, most: DAY },
            "How often the broker looks for what `retention.ms` and `retention.bytes` let it remove.",
        )
        .or("30s"),
    ],
    exactly_one_of: &[],
};
