//! The file as a whole, and a workflow.

use super::broker::BROKER;
use super::delivery::DELIVERY;
use super::operations::{ALERTS, HTTP};
use super::rules_of_text::{ID, PROGRAM, STATE};
use super::sinks::{NAMED_SINK, SINK};
use super::sources::SOURCE;
use super::tests_block::TEST;
use super::{Field, Kind, Table};
use crate::config::{MOST_TESTS, MOST_WORKFLOWS};

pub(crate) static ROOT: Table = Table {
    name: "configuration",
    doc: "The file, or all files of a folder together.",
    fields: &[
        Field::new(
            "state",
            Kind::Text(&STATE),
            "Where the process keeps what belongs to no target: the witness, leases, dead letters and progress of \
             `progress: state`. `sqlite://` and a path, the URL of a PostgreSQL database, or `none`.",
        )
        .or("sqlite://hapax-data/state.db"),
        Field::new(
            "memory",
            Kind::Size { least: 16 << 20, most: 1 << 40 },
            "One budget for all buffers of the process. Each delivery keeps 1 MiB that no other can take, and borrows beyond it.",
        )
        .or("256MiB"),
        Field::new(
            "delivery",
            Kind::Object(&DELIVERY),
            "The default of all workflows, field by field. A mechanism is inherited only together with its guarantee.",
        ),
        Field::new("workflows", WORKFLOWS, "What is delivered from where to where.").or("[]"),
        Field::new(
            "http",
            Kind::Object(&HTTP),
            "Metrics and health over HTTP, while `run` or `broker` runs. Off if it is absent.",
        ),
        Field::new("alerts", Kind::Object(&ALERTS), "Where to call when something needs a person."),
        Field::new("broker", Kind::Object(&BROKER), "The log for Kafka clients, run by `hapax broker`."),
        Field::new(
            "tests",
            Kind::List { of: &ONE_TEST, fewest: 0, most: MOST_TESTS },
            "Inputs and what must become of them, run by `hapax test`; see [testing](../concepts/testing.md). Nothing else \
             looks at them. In a folder each file may have some.",
        ),
    ],
    exactly_one_of: &[],
};

const WORKFLOWS: Kind = Kind::List { of: &ONE_WORKFLOW, fewest: 0, most: MOST_WORKFLOWS };
static ONE_WORKFLOW: Kind = Kind::Object(&WORKFLOW);

static WORKFLOW: Table = Table {
    name: "workflow",
    doc: "One delivery from a source to one or more sinks. Without a source or without a sink it is incomplete: its \
          text is checked, but it does not run.",
    fields: &[
        Field::new(
            "id",
            Kind::Text(&ID),
            "Its name, unique, and part of the progress key: renaming a workflow starts a new one.",
        )
        .required(),
        Field::new("source", Kind::Object(&SOURCE), "Where events come from."),
        Field::new(
            "transform",
            Kind::Text(&PROGRAM),
            "A VRL program that changes, filters or splits events; plain mapping needs none. `.` is the event; `abort` \
             filters it out; an array of objects as `.` is several events. `${…}` is not replaced in it. See \
             `docs/concepts/transforms.md`.",
        ),
        Field::new(
            "transformTimeout",
            Kind::Duration { least: 100, most: 600_000 },
            "How long the program may take for one event. One that takes longer is set aside as a dead letter; the \
             process starts itself again for that.",
        )
        .or("10s"),
        Field::new("sink", Kind::Object(&SINK), "Where events go, if there is one target. It is named after its kind."),
        Field::new(
            "sinks",
            Kind::List { of: &ONE_SINK, fewest: 1, most: 100 },
            "Where events go, if there are several targets. Each is a delivery of its own.",
        ),
        Field::new("delivery", Kind::Object(&DELIVERY), "What is promised, and how it is kept."),
    ],
    exactly_one_of: &[],
};

static ONE_TEST: Kind = Kind::Object(&TEST);
static ONE_SINK: Kind = Kind::Object(&NAMED_SINK);
