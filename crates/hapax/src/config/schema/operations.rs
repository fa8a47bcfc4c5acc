//! How a running process is watched: its own HTTP pages, and whom it calls.

use super::rules_of_text::{LISTEN, TOKEN, WEBHOOK};
use super::{Field, Kind, Table};

pub(super) static HTTP: Table = Table {
    name: "http",
    doc: "`/metrics`, `/healthz` and `/readyz` of a process that runs workflows or the broker; see \
          [running](../operations/running.md) and [metrics](metrics.md).",
    fields: &[
        Field::new(
            "listen",
            Kind::Text(&LISTEN),
            "Address and port. One that other machines can reach needs a `token`. Port 0 takes a free one and logs it.",
        )
        .or("127.0.0.1:8077"),
        Field::new(
            "token",
            Kind::Text(&TOKEN),
            "With it every page but `/healthz` needs the header `Authorization: Bearer TOKEN`.",
        ),
    ],
    exactly_one_of: &[],
};

pub(super) static ALERTS: Table = Table {
    name: "alerts",
    doc: "Calls for a person: a new cause of dead letters, a ledger that does not add up, a delivery that stopped; see \
          [alerts](alerts.md).",
    fields: &[Field::new(
        "webhook",
        Kind::Text(&WEBHOOK),
        "A URL that takes a POST of JSON. It is a secret: nothing prints more of it than its host.",
    )
    .required()],
    exactly_one_of: &[],
};
