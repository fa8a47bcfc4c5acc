//! Whether the process is well, and whether it does its work: two questions, asked by two kinds of machine.

use hapax_engine::runtime::Meter;
use serde_json::{Value, json};

use crate::roster::{Roster, now_ms};

/// So many epochs of a delivery that is not ready are shown.
const EPOCHS_SHOWN: usize = 5;

/// An answer.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) good: bool,
    pub(crate) body: Value,
}

/// `/healthz`: the process lives and its loops turn. Starting it again would help where this says no, and only there: a
/// target that is away is no reason.
pub(crate) fn health(roster: &Roster) -> Verdict {
    let now = now_ms();
    let members = roster.members();
    let stuck = members.iter().filter(|member| member.is_stuck(&member.meter.read(), now));
    let stuck: Vec<String> = stuck.map(|member| member.id.to_string()).collect();
    let good = stuck.is_empty();
    let word = if good { "ok" } else { "stuck" };
    Verdict { good, body: json!({"status": word, "stuck": stuck, "version": env!("CARGO_PKG_VERSION")}) }
}

/// `/readyz`: every delivery runs, stands by, rests because a person said so, or is done.
pub(crate) fn ready(roster: &Roster) -> Verdict {
    let mut reasons = Vec::new();
    let mut deliveries = Vec::new();
    for member in roster.members() {
        let reading = member.meter.read();
        let id = &member.id;
        deliveries.push(json!({
            "workflow": id.workflow, "sink": id.sink, "lane": id.lane, "state": reading.state.name(),
        }));
        if !reading.state.is_ready() {
            let trouble = reading.trouble.as_ref();
            reasons.push(json!({
                "workflow": id.workflow, "sink": id.sink, "lane": id.lane, "state": reading.state.name(),
                "code": trouble.map(|trouble| trouble.code), "message": trouble.map(|trouble| &trouble.message),
                "sinceMs": trouble.map_or(reading.state_since_ms, |trouble| trouble.since_ms), "epochs": last_epochs(&member.meter),
            }));
        }
    }
    let good = reasons.is_empty();
    let word = if good { "ready" } else { "not ready" };
    Verdict { good, body: json!({"status": word, "reasons": reasons, "deliveries": deliveries}) }
}

/// The last epochs and how each ended, oldest first.
fn last_epochs(meter: &Meter) -> Vec<Value> {
    let epochs = meter.epochs();
    let last = epochs.iter().skip(epochs.len().saturating_sub(EPOCHS_SHOWN));
    let one = last.map(|record| {
        json!({
            "epoch": record.epoch.0, "state": record.state.name(), "events": record.events_written,
            "openedAtMs": record.opened_at_ms, "endedAtMs": record.completed_at_ms,
        })
    });
    one.collect()
}
