//! The audit: whether a workflow's guarantee holds, holds if somebody else does something, or cannot hold.
//!
//! Reads: [`AuditFacts`]. Writes: nothing; it is a pure function. Invariant: it never says yes where a crash could
//! make it a lie, and it never says "proved": that word is earned by breaking the real program, not by reasoning.
//! Not here: reading configuration or live tables.

mod clients;
mod conditions;
mod explain;
mod facts;
mod lattice;
mod mechanism;
mod notes;
mod refusal;

use std::fmt;

use serde::Serialize;

pub use conditions::{Condition, ConditionReport};
pub use facts::{
    Addressees, Arbiter, AuditFacts, ChangeFields, HttpMethod, KeyIndex, KeyKind, KeyOrder, Replay, SinkFacts,
    SourceFacts, SourceKind, SqlFacts, StartAt, TableKind,
};
pub use mechanism::{derive as derive_mechanism, is_legal as is_legal_mechanism};
pub use notes::Assumption;
pub use refusal::Refusal;

use crate::delivery::{Guarantee, Mechanism};

/// The exit code of a start that the audit refuses.
pub const EXIT_REFUSED: u8 = 3;

/// Whether a guarantee holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It holds if somebody else does something; a workflow that does not state so does not start.
    HoldsIf {
        /// What, and whether the workflow states it; never empty.
        conditions: Vec<ConditionReport>,
    },
    /// It cannot hold.
    #[serde(rename = "cannot-hold")]
    Cannot {
        /// Why; never empty.
        refusals: Vec<Refusal>,
        /// The strongest guarantee that does hold, or holds if, with everything else as it is and no mechanism written.
        strongest: Option<Guarantee>,
    },
}

/// What a guarantee that holds means at this target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sense {
    /// What its name says, of every event.
    EveryEvent,
    /// Rows may be written again on the way; what stays in the end is right.
    FinalState,
    /// An event may be seen again, and then carries the same key.
    TheKey,
}

/// Where a mechanism comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MechanismOrigin {
    /// The workflow names it, and it was checked.
    Written,
    /// The audit chose it.
    Derived,
}

/// What the audit found. Serialises for programs; [`Audit::explain`] is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// What the workflow promises.
    pub guarantee: Guarantee,
    /// Whether it holds.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What it means here.
    pub sense: Sense,
    /// How it is kept; the one that would keep it, where it cannot hold.
    pub mechanism: Mechanism,
    /// Where the mechanism comes from.
    pub mechanism_origin: MechanismOrigin,
    /// What names a thing and what names an event.
    pub key: String,
    /// What must be true of the world besides; watched, and the delivery stops when it fails.
    pub assumptions: Vec<Assumption>,
    /// What was written and has no effect, or another one than it seems.
    pub warnings: Vec<String>,
    /// What the first run does.
    pub first_run: String,
    /// What the workflow's clients should be told.
    pub client_text: String,
    /// Lines that would state what is missing, with the block each belongs under.
    pub missing: Vec<MissingLine>,
}

/// A line of YAML that would state a missing condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingLine {
    /// The block it belongs under, such as `delivery`.
    pub under: &'static str,
    /// The line.
    pub line: String,
}

/// A start that the audit refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StartRefused {
    /// The code of the page that explains it.
    pub code: &'static str,
    /// What the process ends with.
    pub exit_code: u8,
    /// Why.
    pub reason: String,
    /// What to do; where a condition is missing, the exact line that states it.
    pub cure: String,
}

impl fmt::Display for StartRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.code, self.reason, self.cure)
    }
}

impl std::error::Error for StartRefused {}

/// Judges a workflow's guarantee.
#[must_use]
pub fn audit(facts: &AuditFacts<'_>) -> Audit {
    let delivery = facts.delivery;
    let guarantee = delivery.guarantee;
    let mut findings = lattice::judge(facts, guarantee);
    findings.refusals.extend(delivery.mechanism.and_then(|m| mechanism::refuse(m, guarantee, &facts.sink)));
    let verdict = if !findings.refusals.is_empty() {
        Verdict::Cannot { refusals: findings.refusals, strongest: strongest(facts) }
    } else if findings.conditions.is_empty() {
        Verdict::Holds
    } else {
        Verdict::HoldsIf { conditions: findings.conditions.iter().map(|c| c.report(delivery)).collect() }
    };
    let derived = mechanism::derive(guarantee, &facts.sink);
    let written = delivery.mechanism.filter(|m| !mechanism::outbox_is_idle(*m, facts.source.kind, &facts.sink));
    let missing = match &verdict {
        Verdict::HoldsIf { conditions } => conditions::missing_lines(conditions, delivery),
        Verdict::Holds | Verdict::Cannot { .. } => Vec::new(),
    };
    Audit {
        guarantee,
        sense: lattice::sense(&facts.sink, guarantee),
        mechanism: written.unwrap_or(derived),
        mechanism_origin: written.map_or(MechanismOrigin::Derived, |_| MechanismOrigin::Written),
        key: notes::key_description(facts),
        assumptions: notes::assumptions(facts),
        warnings: notes::warnings(facts, &verdict),
        first_run: notes::first_run(facts),
        client_text: clients::text(facts, &verdict),
        missing: missing.into_iter().map(|(under, line)| MissingLine { under, line }).collect(),
        verdict,
    }
}

/// The strongest guarantee that is not refused, with everything as it is but the mechanism, which is derived.
fn strongest(facts: &AuditFacts<'_>) -> Option<Guarantee> {
    Guarantee::ALL.into_iter().rev().find(|guarantee| lattice::judge(facts, *guarantee).refusals.is_empty())
}

impl Audit {
    /// Whether the workflow may start: it holds, or holds if and the workflow states every condition.
    ///
    /// # Errors
    /// [`StartRefused`] with the first reason, its code and the cure.
    pub fn may_start(&self) -> Result<(), StartRefused> {
        let guarantee = self.guarantee;
        let refused = |code, reason, cure| Err(StartRefused { code, exit_code: EXIT_REFUSED, reason, cure });
        match &self.verdict {
            Verdict::Holds => Ok(()),
            Verdict::HoldsIf { conditions } => match conditions.iter().find(|condition| !condition.stated) {
                None => Ok(()),
                Some(condition) => {
                    let reason = format!("{guarantee} holds only if {}, and nothing states it", condition.requires);
                    refused(condition.code, reason, explain::missing_cure(&self.missing))
                }
            },
            Verdict::Cannot { refusals, strongest } => {
                let reason = format!("{guarantee} cannot hold: {}", explain::joined(refusals));
                let code = refusals.first().expect("a verdict that refuses has a reason").code();
                refused(code, reason, self.cure(refusals, *strongest))
            }
        }
    }
}

#[cfg(test)]
#[path = "lattice_tests.rs"]
mod lattice_tests;
#[cfg(test)]
#[path = "property_tests.rs"]
mod property_tests;
#[cfg(test)]
#[path = "words_tests.rs"]
mod words_tests;
