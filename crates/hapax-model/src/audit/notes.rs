//! What the audit says besides its verdict: the key, what it takes for granted, what has no effect, the first run.

use serde::Serialize;

use super::Verdict;
use super::conditions::Condition;
use super::facts::*;
use super::mechanism;
use crate::delivery::{ConditionName, Guarantee, Isolation, KeyTemplate};
use crate::field::FieldPath;
use crate::mode::{ConflictMode, ProgressPlace};
use crate::units::print_duration;

/// Something that must be true of the world. It does not block a start; when it fails, the delivery stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Assumption {
    /// What is taken for granted.
    pub text: &'static str,
    /// How it is noticed when it fails.
    pub watch: &'static str,
}

/// What names a thing (entity key) and what names an event (event key).
pub(super) fn key_description(facts: &AuditFacts<'_>) -> String {
    let fields = field_list(&facts.delivery.deduplication.key_fields);
    match &facts.key {
        KeyKind::ContentUnique => format!("an event is named by {fields} alone (unique: true)"),
        KeyKind::ContentVersioned => match facts.source.change_fields {
            ChangeFields::Supplied => format!("a thing is named by {fields}, an event by these and the change version"),
            ChangeFields::Absent => {
                format!("a thing is named by {fields}, an event by these and the source's position and emit index")
            }
        },
        KeyKind::ContentWithEpoch => format!("{fields} and the epoch"),
        KeyKind::Composite => format!("{fields}, the epoch, the lane and the sequence in it"),
        KeyKind::EpochSequence => "the lane, the epoch and the sequence in it".into(),
        KeyKind::SourceOffset => format!(
            "the source's position and emit index (no keyFields are named, and \"{}\" needs fields of a change source)",
            facts.delivery.idempotency_key.format
        ),
        KeyKind::ChangeKey => {
            "a thing is named by database, schema, table and primary key, an event by these and the change version"
                .into()
        }
        KeyKind::Derived => "the sorted keys of all contributing events, and the window".into(),
        KeyKind::WindowSequence => "the window and the sequence in it".into(),
        KeyKind::Custom(name) => format!("whatever the function \"{name}\" of the embedding program gives"),
    }
}

fn field_list(fields: &[FieldPath]) -> String {
    fields.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What is taken for granted, with how it is watched.
pub(super) fn assumptions(facts: &AuditFacts<'_>) -> Vec<Assumption> {
    let mut assumed = Vec::new();
    if let SinkFacts::Sql(SqlFacts { index: KeyIndex::Unread, .. }) = facts.sink {
        let text = "the table is as the configuration says: it was not read";
        assumed.push(Assumption { text, watch: "hapax check --live reads it now, hapax run at every start" });
    }
    if !matches!(facts.sink, SinkFacts::Http { .. }) {
        let text = "the target is one primary, and what it has committed stays committed";
        let watch = "progress that is behind the witness: read again if the source still has it, else stop with code 5";
        assumed.push(Assumption { text, watch });
    }
    let text = "disks keep what they say they have written (fsync is honest)";
    assumed.push(Assumption { text, watch: "the same comparison, at every start" });
    let (text, watch) = match facts.source.kind {
        SourceKind::File => (
            "the file is only appended to or rotated, and not removed before it was read",
            "the file's identity is compared at the start and every 30 s; a change stops with code 5",
        ),
        SourceKind::Kafka | SourceKind::Changes | SourceKind::Outbox => (
            "the source keeps events for longer than an outage lasts",
            "a position that is gone stops the delivery with code 5 and the missing range",
        ),
        SourceKind::Generate | SourceKind::Live => return assumed,
    };
    assumed.push(Assumption { text, watch });
    assumed
}

/// What was written and has no effect, or another one than it seems.
pub(super) fn warnings(facts: &AuditFacts<'_>, verdict: &Verdict) -> Vec<String> {
    let delivery = facts.delivery;
    let mut warnings = Vec::new();
    if delivery.auto_fence_on_startup.is_some() {
        warnings.push(
            "autoFenceOnStartup has no effect: every start fences older workers, and that cannot be switched off"
                .into(),
        );
    }
    if let Some(written) = delivery.mechanism
        && mechanism::outbox_is_idle(written, facts.source.kind, &facts.sink)
    {
        let used = mechanism::derive(delivery.guarantee, &facts.sink);
        warnings.push(format!(
            "mechanism {written} has nothing to do here, no outbox is read or sent from: {used} is used"
        ));
    }
    let format = &delivery.idempotency_key.format;
    if format.names() != KeyTemplate::change_key().names() {
        warnings.push(format!(
            "idempotencyKey.format \"{format}\" has no effect: deduplication.keyFields and strategy say what a key is made of"
        ));
    }
    if let (Some(ttl), SinkFacts::Sql(_)) = (delivery.deduplication.ttl, &facts.sink) {
        let ttl = print_duration(ttl);
        warnings.push(format!("deduplication.ttl {ttl} has no effect on a table: keys in it are never removed"));
    }
    if delivery.readers.isolation == Some(Isolation::ReadUncommitted) && matches!(facts.sink, SinkFacts::Kafka { .. }) {
        warnings.push("readers with read_uncommitted also see records of epochs that were aborted".into());
    }
    if let SinkFacts::Sql(SqlFacts { table: TableKind::Memory, .. }) = facts.sink {
        warnings.push("a MEMORY table is empty after every restart of its server".into());
    }
    if facts.key == KeyKind::EpochSequence || facts.key == KeyKind::SourceOffset {
        let fields = field_list(&delivery.deduplication.key_fields);
        if !fields.is_empty() {
            warnings.push(format!("keyFields ({fields}) are not part of the event key with this strategy"));
        }
    }
    warnings.extend(unneeded(&delivery.conditions, verdict));
    warnings
}

/// Conditions that the workflow states and nothing asks for.
fn unneeded<'a>(stated: &'a [ConditionName], verdict: &'a Verdict) -> impl Iterator<Item = String> + 'a {
    let needed = move |name: ConditionName| match verdict {
        Verdict::Holds => false,
        Verdict::HoldsIf { conditions } => conditions.iter().any(|report| match report.condition {
            Condition::OneWorker => name == ConditionName::OneWorker,
            Condition::EngineSurvivesCrash => name == ConditionName::EngineSurvivesCrash,
            Condition::CustomKeyDeterministic => name == ConditionName::CustomKeyDeterministic,
            Condition::ReceiverRemembersKeys
            | Condition::ReceiverRefusesOlder
            | Condition::ReadersReadCommitted
            | Condition::WriterSerialisesKeys
            | Condition::KeyFieldsNameTheEvent => false,
        }),
        // What a refused workflow would need is not known yet.
        Verdict::Cannot { .. } => true,
    };
    stated
        .iter()
        .filter(move |name| !needed(**name))
        .map(|name| format!("the condition {name} is stated and not needed"))
}

/// What the first run does to the target.
pub(super) fn first_run(facts: &AuditFacts<'_>) -> String {
    let start = match facts.source.start {
        StartAt::Earliest => "The first run begins with the oldest event the source has.",
        StartAt::Latest => {
            "The first run begins with what comes after it; that place is fixed at the first start and not asked for again."
        }
    };
    let effect = match &facts.sink {
        SinkFacts::Sql(sql) => existing_rows(sql),
        SinkFacts::Kafka { .. } => "Records are added to the topic; what is there stays.",
        SinkFacts::Http { .. } => "Every event is sent, also those that the receiver may know from elsewhere.",
    };
    let progress = match &facts.sink {
        SinkFacts::Sql(SqlFacts { progress: ProgressPlace::Sink, .. }) => {
            "Our tables (progress, epochs, dead letters) are kept beside the data; hapax setup --sql prints them."
        }
        SinkFacts::Kafka { progress: ProgressPlace::Sink } => "A progress topic is kept beside the data.",
        SinkFacts::Sql(_) | SinkFacts::Kafka { .. } | SinkFacts::Http { .. } => {
            "The position is kept in the state store; the target gets no table of ours."
        }
    };
    let at_most_once = match facts.delivery.guarantee {
        Guarantee::AtMostOnce => " A write that got no clear answer is not repeated.",
        Guarantee::AtLeastOnce | Guarantee::IdempotentKeys | Guarantee::ExactlyOnce => "",
    };
    format!("{start} {effect} {progress}{at_most_once}")
}

const fn existing_rows(sql: &SqlFacts) -> &'static str {
    match sql.mode {
        ConflictMode::Append => {
            "Every event becomes a new row; rows that are there stay, also those of the same thing."
        }
        ConflictMode::Ignore => {
            "A row that is there stays as it is, and an event with its key is counted and left out."
        }
        ConflictMode::Update => "A row that is there is overwritten by the first event with its key.",
        ConflictMode::Newer => {
            "A row that is there is overwritten by an event with its key if the event's version is higher; a row without \
             a version counts as older."
        }
    }
}
