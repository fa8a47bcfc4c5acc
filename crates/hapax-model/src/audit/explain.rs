//! The audit in words for people.

use super::mechanism::is_legal;
use super::refusal::Refusal;
use super::{Audit, MechanismOrigin, MissingLine, Sense, Verdict};
use crate::delivery::{Guarantee, Mechanism};

impl Audit {
    /// The verdict in one sentence, for `hapax check`.
    #[must_use]
    pub fn headline(&self) -> String {
        let guarantee = self.guarantee;
        match &self.verdict {
            Verdict::Holds => format!("{guarantee} holds"),
            Verdict::HoldsIf { conditions } => {
                let stated = if self.missing.is_empty() { " (stated)" } else { "" };
                let requires: Vec<_> = conditions.iter().map(|condition| condition.requires.as_str()).collect();
                format!("{guarantee} holds if {}{stated}", requires.join(", and "))
            }
            Verdict::Cannot { refusals, .. } => format!("{guarantee} cannot hold: {}", joined(refusals)),
        }
    }

    /// Everything the audit has to say, for `hapax check --explain`.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = format!("{}.\n", self.headline());
        let mut row = |name: &str, value: &str| {
            text.push_str(&format!("  {name:<10}{value}\n"));
        };
        match &self.verdict {
            Verdict::Holds => row("meaning", &self.meaning()),
            Verdict::HoldsIf { conditions } => {
                row("meaning", &self.meaning());
                for condition in conditions {
                    let stated = if condition.stated { "stated" } else { "not stated" };
                    row("if", &format!("{} [{stated}, {}]", condition.requires, condition.code));
                }
                for missing in &self.missing {
                    row("to start", &format!("write under {}:  {}", missing.under, missing.line));
                }
            }
            Verdict::Cannot { refusals, strongest } => {
                for refusal in refusals {
                    row("why", &format!("{refusal} [{}]", refusal.code()));
                }
                row("cure", &self.cure(refusals, *strongest));
            }
        }
        if !matches!(self.verdict, Verdict::Cannot { .. }) {
            row("how", &self.how());
        }
        row("key", &self.key);
        for assumption in &self.assumptions {
            row("assumed", &format!("{} (watched: {})", assumption.text, assumption.watch));
        }
        row("first run", &self.first_run);
        row("clients", &self.client_text);
        for warning in &self.warnings {
            row("note", warning);
        }
        text
    }

    /// What to do about refusals, and what would hold instead.
    pub(super) fn cure(&self, refusals: &[Refusal], strongest: Option<Guarantee>) -> String {
        let cures = refusals.iter().map(Refusal::cure).collect::<Vec<_>>().join("; ");
        let in_the_way = self.mechanism_origin == MechanismOrigin::Written;
        match strongest {
            None => format!("{cures}; as it stands no guarantee holds"),
            // Only the written mechanism stood in the way.
            Some(guarantee) if guarantee == self.guarantee => cures,
            Some(guarantee) if in_the_way && !is_legal(self.mechanism, guarantee) => {
                format!("{cures}; the strongest that holds as it stands, without a mechanism, is {guarantee}")
            }
            Some(guarantee) => format!("{cures}; the strongest that holds as it stands is {guarantee}"),
        }
    }

    fn meaning(&self) -> String {
        let plain = match self.guarantee {
            Guarantee::AtMostOnce => "no event arrives twice; one may be lost when something fails",
            Guarantee::AtLeastOnce => "no event is lost; one may arrive twice after a failure",
            Guarantee::IdempotentKeys => "no event is lost, and a repetition carries the same key",
            Guarantee::ExactlyOnce => "no event is lost, and none takes effect twice",
        };
        let here = match self.sense {
            Sense::EveryEvent => "",
            Sense::FinalState => "; rows may be written again on the way, what stays in the end is right",
            Sense::TheKey => "; the promise is the key, not the absence of repetitions",
        };
        format!("{plain}{here}")
    }

    fn how(&self) -> String {
        let means = match self.mechanism {
            Mechanism::KafkaOffsets => "the source's position is saved apart from the data",
            Mechanism::GeneratedKeys => "every event has a key that a repetition has too",
            Mechanism::Transaction => "data and position are one transaction of the target",
            Mechanism::TransactionalOutbox => "events are stored with their position and sent from there",
        };
        let origin = match self.mechanism_origin {
            MechanismOrigin::Written => "",
            MechanismOrigin::Derived => " (derived)",
        };
        format!("{}{origin}: {means}", self.mechanism)
    }
}

/// All reasons as one clause.
pub(super) fn joined(refusals: &[Refusal]) -> String {
    refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; also, ")
}

/// The lines to write, and where.
pub(super) fn missing_cure(missing: &[MissingLine]) -> String {
    let lines: Vec<_> = missing.iter().map(|m| format!("write `{}` under {}", m.line, m.under)).collect();
    format!("if that is true, {}", lines.join(" and "))
}
