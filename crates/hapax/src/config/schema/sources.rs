//! Where events come from.

use super::rules_of_text::{COLUMN_NAME, DELIMITER, NULL_TEXT, PATH, QUOTE};
use super::{Choice, Field, Kind, Table};

pub(super) static SOURCE: Table = Table {
    name: "source",
    doc: "Exactly one kind of source.",
    fields: &[
        Field::new("file", Kind::Object(&FILE), "Files of JSON lines or CSV, followed as they grow and rotate."),
        Field::new("generate", Kind::Object(&GENERATE), "Made-up orders, the same for the same seed."),
        Field::planned("kafka", "Topics of a Kafka cluster."),
        Field::planned("outbox", "An outbox table that applications write."),
        Field::planned("postgres", "Changes of PostgreSQL tables."),
        Field::planned("mysql", "Changes of MySQL tables."),
    ],
    exactly_one_of: &["file", "generate", "kafka", "outbox", "postgres", "mysql"],
};

static START: [Choice; 2] = [
    Choice { name: "earliest", doc: "at the first event that the source still holds" },
    Choice { name: "latest", doc: "after the last event that is there at the first start; resolved once, ever" },
];

static FORMAT: [Choice; 2] = [
    Choice { name: "jsonl", doc: "one JSON object per line" },
    Choice { name: "csv", doc: "CSV records; their fields are texts that each column reads by its own type" },
];

static ROTATION: [Choice; 4] = [
    Choice {
        name: "suffixes",
        doc: "`app.log.1`, `app.log-20261117` and the like were `app.log` before: one lane, oldest first",
    },
    Choice {
        name: "beforeExtension",
        doc: "the same with numbers and dates before the extension: `app.1.log`, `app-20261117.log`, also without an `app.log`",
    },
    Choice { name: "none", doc: "every file is a lane of its own, as in a folder where complete files are dropped" },
    Choice { name: "replaced", doc: "the path is written anew and renamed over: the next file there follows" },
];

static ORDER: [Choice; 1] = [Choice {
    name: "name",
    doc: "all files of the pattern are one lane, in the order of their names, byte by byte; times of modification say nothing. \
          The wildcards stand in the file's name, and `rotation` is left out",
}];

static CSV: Table = Table {
    name: "source.file.csv",
    doc: "How CSV is written.",
    fields: &[
        Field::new(
            "header",
            Kind::List { of: &Kind::Text(&COLUMN_NAME), fewest: 1, most: 10_000 },
            "The names of the fields, for files without a header; else the first record of each file names them.",
        ),
        Field::new(
            "delimiter",
            Kind::Text(&DELIMITER),
            "What stands between two fields; without it a comma, or a tab for a path that ends in .tsv.",
        ),
        Field::new(
            "quote",
            Kind::Text(&QUOTE),
            "What opens and closes a field that holds delimiters or line ends; without it a double quote.",
        ),
        Field::new(
            "null",
            Kind::Text(&NULL_TEXT),
            "A field without quotes that has this text is NULL; without it the empty text.",
        ),
    ],
    exactly_one_of: &[],
};

static FILE: Table = Table {
    name: "source.file",
    doc: "A file, or all files of a pattern, with an event per line or record; gzip and zstd are unpacked. Each file is a lane, together with what rotations make of it.",
    fields: &[
        Field::new(
            "path",
            Kind::Text(&PATH),
            "The file, or a pattern with `*`, `?`, `[a-z]` or `**`. A relative path begins at the configuration's own folder.",
        )
        .required(),
        Field::new(
            "format",
            Kind::Choice(&FORMAT),
            "What the file holds; without it told by the path: csv for .csv and .tsv (also before .gz and .zst), else jsonl.",
        ),
        Field::new("csv", Kind::Object(&CSV), "How CSV is written."),
        Field::new("rotation", Kind::Choice(&ROTATION), "What files with rotated names mean. Part of the contract.")
            .or("suffixes"),
        Field::new("order", Kind::Choice(&ORDER), "In which order the files of a pattern follow each other. Part of the contract."),
        Field::new("start", Kind::Choice(&START), "Where a delivery without progress begins.").or("earliest"),
        Field::new(
            "maxLine",
            Kind::Size { least: 64, most: 256 << 20 },
            "A longer line or record becomes a dead letter with its position, length and hash. At most `memory`.",
        )
        .or("16MiB"),
    ],
    exactly_one_of: &[],
};

static GENERATE: Table = Table {
    name: "source.generate",
    doc: "Made-up orders for trying things out. The shares of updates, deletes and poison together are at most 100%.",
    fields: &[
        Field::new("seed", Kind::Integer { least: 0, most: u64::MAX }, "The same seed gives the same events.").or("0"),
        Field::new(
            "count",
            Kind::Integer { least: 0, most: 1_000_000_000_000 },
            "How many events there are in all; without it they never end.",
        ),
        Field::new(
            "rate",
            Kind::Rate,
            "How many events come per second (`500/s`, or a bare number); without it as fast as they can.",
        ),
        Field::new(
            "keys",
            Kind::Integer { least: 1, most: 1_000_000_000 },
            "How many customers there are, and how many events back updates and deletes may reach.",
        )
        .or("1000"),
        Field::new("updates", Kind::Share, "How many of the events change an order that exists.").or("0%"),
        Field::new("deletes", Kind::Share, "How many of the events delete an order.").or("0%"),
        Field::new("poison", Kind::Share, "How many of the events cannot be delivered.").or("0%"),
        Field::new(
            "lanes",
            Kind::Integer { least: 1, most: 64 },
            "In how many lanes the stream is delivered side by side. All events of one order are in one lane; each \
             lane is a delivery of its own.",
        )
        .or("1"),
    ],
    exactly_one_of: &[],
};
