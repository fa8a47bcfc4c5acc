//! What the clients of a workflow should be told, in words that can be sent to them.

use super::Verdict;
use super::facts::{AuditFacts, SinkFacts, SqlFacts};
use crate::delivery::Guarantee;
use crate::mode::ProgressPlace;
use crate::units::print_duration;

/// The text for clients; for a guarantee that cannot hold, that there is nothing to promise.
pub(super) fn text(facts: &AuditFacts<'_>, verdict: &Verdict) -> String {
    let guarantee = facts.delivery.guarantee;
    if let Verdict::Cannot { .. } = verdict {
        return format!("Nothing can be promised yet: {guarantee} cannot hold for this workflow.");
    }
    let promise = match guarantee {
        Guarantee::AtMostOnce => {
            "Your workflow delivers at most once. No event arrives twice; an event may be lost when something fails. \
             Use it where the next event makes up for the last."
                .to_owned()
        }
        Guarantee::AtLeastOnce => {
            "Your workflow delivers at least once. No event is lost; an event may arrive more than once after a failure. \
             Make your processing idempotent, for example with an upsert instead of an insert."
                .to_owned()
        }
        Guarantee::IdempotentKeys => keys(facts),
        Guarantee::ExactlyOnce => exactly_once(facts, verdict),
    };
    format!("{promise}{}", guidance(facts))
}

fn keys(facts: &AuditFacts<'_>) -> String {
    let place = key_place(facts);
    let promise = "Your workflow delivers with idempotent keys. No event is lost, and an event that comes again carries the same key";
    match &facts.sink {
        SinkFacts::Sql(_) => {
            format!("{promise}, so it finds its row ({place}). You need no deduplication when you read the table.")
        }
        SinkFacts::Kafka { .. } | SinkFacts::Http { .. } if facts.delivery.documentation.deduplication_required => {
            format!(
                "{promise} ({place}). For an effect that happens once, look the key up before you process the event, and \
             store it together with the effect, in one transaction."
            )
        }
        SinkFacts::Kafka { .. } | SinkFacts::Http { .. } => format!("{promise} ({place})."),
    }
}

fn key_place(facts: &AuditFacts<'_>) -> &'static str {
    match (&facts.sink, facts.delivery.idempotency_key.included_in_payload) {
        (SinkFacts::Sql(_), _) => "by the table's unique index",
        (SinkFacts::Kafka { .. }, _) => "in the record's header hapax-key",
        (SinkFacts::Http { .. }, true) => "in the header Idempotency-Key and in the field idempotencyKey",
        (SinkFacts::Http { .. }, false) => "in the header Idempotency-Key",
    }
}

fn exactly_once(facts: &AuditFacts<'_>, verdict: &Verdict) -> String {
    let interval = print_duration(facts.delivery.epoch.interval);
    let latency = match &facts.sink {
        SinkFacts::Sql(SqlFacts { progress: ProgressPlace::Sink | ProgressPlace::State, .. })
        | SinkFacts::Kafka { .. } => {
            format!("Events become visible in groups, about every {interval}, each group whole or not at all.")
        }
        SinkFacts::Http { .. } => {
            "Events are stored first and sent from there, so expect some milliseconds more.".into()
        }
    };
    let promise = "Your workflow delivers exactly once: no event is lost, and none takes effect twice";
    match verdict {
        Verdict::HoldsIf { conditions } => {
            let conditions: Vec<_> = conditions.iter().map(|condition| condition.requires.as_str()).collect();
            format!("{promise}, provided that {}. {latency}", conditions.join(", and "))
        }
        Verdict::Holds | Verdict::Cannot { .. } => format!("{promise}. {latency} You need no deduplication."),
    }
}

/// Where a client finds help, as far as the workflow's `documentation:` says so.
fn guidance(facts: &AuditFacts<'_>) -> String {
    let documentation = &facts.delivery.documentation;
    let keyed = matches!(facts.sink, SinkFacts::Kafka { .. } | SinkFacts::Http { .. })
        && facts.delivery.guarantee >= Guarantee::IdempotentKeys;
    let mut text = String::new();
    if keyed && documentation.sdk_available {
        text.push_str(" The library hapax-inbox does this for you.");
    }
    if let Some(address) = &documentation.example_code {
        text.push_str(&format!(" Examples: {address}"));
    }
    text
}
