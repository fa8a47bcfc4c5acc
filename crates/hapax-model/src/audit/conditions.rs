//! Conditions: what somebody else must do for a guarantee to hold, and the line that states it.

use std::time::Duration;

use serde::Serialize;

use crate::delivery::{ConditionName, Delivery, Isolation};
use crate::units::print_duration;

/// What somebody else must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// The receiver remembers keys for longer than we may try.
    ReceiverRemembersKeys,
    /// The receiver refuses a version older than the one it has.
    ReceiverRefusesOlder,
    /// Readers of the topic see committed records only.
    ReadersReadCommitted,
    /// The application writes the events of one key one after the other.
    WriterSerialisesKeys,
    /// There is never more than one live worker.
    OneWorker,
    /// The storage engine keeps what it acknowledged.
    EngineSurvivesCrash,
    /// The custom key function always gives the same key for the same event.
    CustomKeyDeterministic,
    /// The key fields alone name an event.
    KeyFieldsNameTheEvent,
}

/// The least that a receiver must remember keys beyond the last attempt.
const MARGIN: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// A condition, as the audit reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConditionReport {
    /// Which one.
    #[serde(skip)]
    pub condition: Condition,
    /// The code of the page that explains it.
    pub code: &'static str,
    /// What must be true, as a clause: "the receiver remembers …".
    pub requires: String,
    /// Whether the workflow states it.
    pub stated: bool,
    /// Where the line belongs: `delivery`, or a block below it.
    pub under: &'static str,
    /// The line of YAML that states it.
    pub line: String,
}

impl Condition {
    /// The code of the page that explains it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::ReceiverRemembersKeys => "HX1130",
            Self::ReceiverRefusesOlder => "HX1131",
            Self::ReadersReadCommitted => "HX1132",
            Self::WriterSerialisesKeys => "HX1133",
            Self::OneWorker => "HX1134",
            Self::EngineSurvivesCrash => "HX1135",
            Self::CustomKeyDeterministic => "HX1136",
            Self::KeyFieldsNameTheEvent => "HX1137",
        }
    }

    /// Whether `delivery` states it.
    #[must_use]
    pub fn is_stated(self, delivery: &Delivery) -> bool {
        let receiver = &delivery.receiver;
        match self {
            Self::ReceiverRemembersKeys => {
                receiver.deduplicates && receiver.key_ttl.is_some_and(|ttl| ttl > least_key_ttl(delivery))
            }
            Self::ReceiverRefusesOlder => receiver.refuses_older,
            Self::ReadersReadCommitted => delivery.readers.isolation == Some(Isolation::ReadCommitted),
            Self::WriterSerialisesKeys => delivery.writer.serialises_keys,
            Self::KeyFieldsNameTheEvent => delivery.deduplication.unique,
            Self::OneWorker | Self::EngineSurvivesCrash | Self::CustomKeyDeterministic => {
                self.name().is_some_and(|name| delivery.states(name))
            }
        }
    }

    /// The condition with its text, its line, and whether it is stated.
    #[must_use]
    pub fn report(self, delivery: &Delivery) -> ConditionReport {
        let under = match self {
            Self::KeyFieldsNameTheEvent => "delivery.deduplication",
            Self::ReceiverRemembersKeys
            | Self::ReceiverRefusesOlder
            | Self::ReadersReadCommitted
            | Self::WriterSerialisesKeys
            | Self::OneWorker
            | Self::EngineSurvivesCrash
            | Self::CustomKeyDeterministic => "delivery",
        };
        ConditionReport {
            condition: self,
            code: self.code(),
            requires: self.requires(delivery),
            stated: self.is_stated(delivery),
            under,
            line: self.line(delivery),
        }
    }

    /// The name under `conditions:`, where it has one.
    const fn name(self) -> Option<ConditionName> {
        match self {
            Self::OneWorker => Some(ConditionName::OneWorker),
            Self::EngineSurvivesCrash => Some(ConditionName::EngineSurvivesCrash),
            Self::CustomKeyDeterministic => Some(ConditionName::CustomKeyDeterministic),
            Self::ReceiverRemembersKeys
            | Self::ReceiverRefusesOlder
            | Self::ReadersReadCommitted
            | Self::WriterSerialisesKeys
            | Self::KeyFieldsNameTheEvent => None,
        }
    }

    fn requires(self, delivery: &Delivery) -> String {
        match self {
            Self::ReceiverRemembersKeys => {
                let least = print_duration(least_key_ttl(delivery));
                format!(
                    "the receiver remembers our keys for more than {least} (giveUpAfter and one hour) and does nothing twice"
                )
            }
            Self::ReceiverRefusesOlder => "the receiver refuses a version older than the one it has".into(),
            Self::ReadersReadCommitted => "everyone who reads the topic uses isolation read_committed".into(),
            Self::WriterSerialisesKeys => "the application writes the events of one key one after the other".into(),
            Self::OneWorker => "there is never more than one live worker for this workflow".into(),
            Self::EngineSurvivesCrash => {
                "the target's storage engine keeps every acknowledged row when its server crashes".into()
            }
            Self::CustomKeyDeterministic => {
                "the custom key function gives the same key for the same event, always".into()
            }
            Self::KeyFieldsNameTheEvent => {
                "keyFields alone name an event, so that a second event with the same fields is a repetition".into()
            }
        }
    }

    fn line(self, delivery: &Delivery) -> String {
        if let Some(name) = self.name() {
            return conditions_line(delivery, &[name]);
        }
        match self {
            Self::ReceiverRemembersKeys => {
                let older = if delivery.receiver.refuses_older { ", refusesOlder: true" } else { "" };
                format!("receiver: {{ deduplicates: true, keyTtl: {}{older} }}", print_duration(good_key_ttl(delivery)))
            }
            Self::ReceiverRefusesOlder => "receiver: { refusesOlder: true }".into(),
            Self::ReadersReadCommitted => "readers: { isolation: read_committed }".into(),
            Self::WriterSerialisesKeys => "writer: { serialisesKeys: true }".into(),
            Self::KeyFieldsNameTheEvent => "unique: true".into(),
            Self::OneWorker | Self::EngineSurvivesCrash | Self::CustomKeyDeterministic => String::new(),
        }
    }
}

/// The lines that state what is missing in `reports`, each with the block it belongs under; names of `conditions:`
/// share one line, which keeps what the workflow states already.
pub(super) fn missing_lines(reports: &[ConditionReport], delivery: &Delivery) -> Vec<(&'static str, String)> {
    let missing = || reports.iter().filter(|report| !report.stated);
    let names: Vec<ConditionName> = missing().filter_map(|report| report.condition.name()).collect();
    let mut lines: Vec<_> = missing()
        .filter(|report| report.condition.name().is_none())
        .map(|report| (report.under, report.line.clone()))
        .collect();
    if !names.is_empty() {
        lines.push(("delivery", conditions_line(delivery, &names)));
    }
    lines
}

fn conditions_line(delivery: &Delivery, more: &[ConditionName]) -> String {
    let mut names = delivery.conditions.clone();
    names.extend(more.iter().filter(|name| !delivery.states(**name)));
    let names: Vec<_> = names.iter().map(|name| name.name()).collect();
    format!("conditions: [{}]", names.join(", "))
}

fn least_key_ttl(delivery: &Delivery) -> Duration {
    delivery.retries.give_up_after.saturating_add(MARGIN)
}

/// Thirty days, or whole days that are enough.
fn good_key_ttl(delivery: &Delivery) -> Duration {
    let days = least_key_ttl(delivery).as_secs() / DAY.as_secs() + 1;
    let days = u32::try_from(days).unwrap_or(u32::MAX).max(30);
    DAY.saturating_mul(days)
}
