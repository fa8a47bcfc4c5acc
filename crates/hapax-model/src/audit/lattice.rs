//! The lattice: source × key × sink × guarantee → refusals and conditions.
//!
//! Reads: the facts and one guarantee. Writes: nothing. Invariant: every rule can only add a refusal or a condition,
//! so the verdict is that of the weakest part. Not here: words for people (`explain`), mechanisms (`mechanism`).

use super::conditions::Condition;
use super::facts::*;
use super::refusal::Refusal;
use crate::delivery::{Deduplication, Guarantee};
use crate::mode::{ConflictMode, ProgressPlace};

/// What stands in the way of one guarantee.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) refusals: Vec<Refusal>,
    pub(super) conditions: Vec<Condition>,
}

impl Findings {
    fn refuse(&mut self, refusal: Option<Refusal>) {
        self.refusals.extend(refusal);
    }

    fn require(&mut self, condition: Option<Condition>) {
        self.conditions.extend(condition);
    }
}

/// Judges `guarantee` with everything but the mechanism.
pub(super) fn judge(facts: &AuditFacts<'_>, guarantee: Guarantee) -> Findings {
    let mut findings = Findings::default();
    source(facts, guarantee, &mut findings);
    key(facts, guarantee, &mut findings);
    match &facts.sink {
        SinkFacts::Sql(sql) => table(sql, &facts.delivery.deduplication, guarantee, &mut findings),
        SinkFacts::Kafka { progress } => topic(*progress, guarantee, &mut findings),
        SinkFacts::Http { method, addressees } => http(*method, *addressees, guarantee, &mut findings),
    }
    findings
}

fn source(facts: &AuditFacts<'_>, guarantee: Guarantee, findings: &mut Findings) {
    let keeps_copies = match &facts.sink {
        SinkFacts::Sql(sql) => sql.mode == ConflictMode::Append,
        SinkFacts::Kafka { .. } | SinkFacts::Http { .. } => true,
    };
    match facts.source.replay {
        Replay::FromAnyPosition => {}
        Replay::Never => findings.refuse((guarantee > Guarantee::AtMostOnce).then_some(Refusal::SourceCannotReplay)),
        Replay::SnapshotRestarts => {
            findings.refuse((keeps_copies && guarantee != Guarantee::AtLeastOnce).then_some(Refusal::SnapshotRestarts));
        }
    }
    // Which of two events of a key came last decides what the target ends up with, except where every event is a row.
    let order_matters = facts.sink.uses_key() && guarantee >= Guarantee::IdempotentKeys;
    let left_to_writer = facts.source.key_order == KeyOrder::LeftToWriter;
    findings.require((left_to_writer && order_matters).then_some(Condition::WriterSerialisesKeys));
}

fn key(facts: &AuditFacts<'_>, guarantee: Guarantee, findings: &mut Findings) {
    let key = &facts.key;
    findings.refuse((key.contains_epoch() && guarantee != Guarantee::ExactlyOnce).then_some(Refusal::KeyContainsEpoch));
    let fields_missing = key.needs_key_fields() && facts.delivery.deduplication.key_fields.is_empty();
    findings.refuse(fields_missing.then_some(Refusal::KeyFieldsMissing));
    let changes_missing = *key == KeyKind::ChangeKey && facts.source.change_fields == ChangeFields::Absent;
    findings.refuse(changes_missing.then_some(Refusal::ChangeFieldsMissing));
    let custom = matches!(key, KeyKind::Custom(_)) && facts.sink.uses_key();
    findings.require((custom && guarantee >= Guarantee::IdempotentKeys).then_some(Condition::CustomKeyDeterministic));
}

fn table(sql: &SqlFacts, deduplication: &Deduplication, guarantee: Guarantee, findings: &mut Findings) {
    use Guarantee::{AtLeastOnce, AtMostOnce, ExactlyOnce, IdempotentKeys};
    let append = sql.mode == ConflictMode::Append;
    let in_state = sql.progress == ProgressPlace::State;
    let keyed = match sql.index {
        KeyIndex::Only | KeyIndex::WithOthers => true,
        // Nothing says that a table which was not read has an index that `append` does not ask for.
        KeyIndex::Unread => !append,
        KeyIndex::Missing => false,
    };
    match sql.table {
        TableKind::PostgresUnlogged | TableKind::PostgresForeign | TableKind::PostgresTemporary => {
            findings.refuse((guarantee > AtMostOnce).then_some(Refusal::TableLosesRows(sql.table)));
        }
        TableKind::MyIsam | TableKind::Memory => {
            findings.refuse((guarantee == ExactlyOnce).then_some(Refusal::NoTransactions(sql.table)));
            findings.require((guarantee > AtMostOnce).then_some(Condition::EngineSurvivesCrash));
        }
        TableKind::PostgresLogged | TableKind::InnoDb | TableKind::Sqlite => {}
    }
    findings.refuse((!append && !keyed).then_some(Refusal::NoUniqueIndex(sql.mode)));
    let second = sql.table.is_mysql() && sql.index == KeyIndex::WithOthers;
    findings
        .refuse((second && (!append || guarantee == IdempotentKeys)).then_some(Refusal::SecondUniqueIndex(sql.mode)));
    // Where rows and position are one commit nothing is repeated, and an index keeps keys apart even in `append`.
    let two_commits = in_state || !sql.table.is_transactional();
    let nameless = append && (two_commits || !keyed);
    findings.refuse((nameless && guarantee == IdempotentKeys).then_some(Refusal::AppendHasNoKey));
    findings.refuse((in_state && guarantee == ExactlyOnce).then_some(Refusal::TwoCommits));
    let overwrites = sql.mode == ConflictMode::Update;
    findings.require((in_state && overwrites && guarantee == IdempotentKeys).then_some(Condition::OneWorker));
    // An index over the fields themselves lets `ignore` drop every later event of the same thing.
    let drops_later = sql.mode == ConflictMode::Ignore && sql.arbiter == Arbiter::KeyFields && !deduplication.unique;
    findings.require((drops_later && guarantee >= AtLeastOnce).then_some(Condition::KeyFieldsNameTheEvent));
}

fn topic(progress: ProgressPlace, guarantee: Guarantee, findings: &mut Findings) {
    let exactly_once = guarantee == Guarantee::ExactlyOnce;
    match progress {
        ProgressPlace::Sink => findings.require(exactly_once.then_some(Condition::ReadersReadCommitted)),
        ProgressPlace::State => findings.refuse(exactly_once.then_some(Refusal::TwoCommits)),
    }
}

fn http(method: HttpMethod, addressees: Addressees, guarantee: Guarantee, findings: &mut Findings) {
    let to_endpoints = addressees == Addressees::Endpoints;
    findings.refuse((to_endpoints && guarantee == Guarantee::AtMostOnce).then_some(Refusal::EndpointsRepeat));
    let condition = match method {
        HttpMethod::Post => Condition::ReceiverRemembersKeys,
        HttpMethod::PutTemplated => Condition::ReceiverRefusesOlder,
    };
    findings.require((guarantee == Guarantee::ExactlyOnce).then_some(condition));
}

/// What a guarantee that holds means at this target.
pub(super) fn sense(sink: &SinkFacts, guarantee: Guarantee) -> super::Sense {
    match (guarantee, sink) {
        (Guarantee::IdempotentKeys, SinkFacts::Kafka { .. } | SinkFacts::Http { .. }) => super::Sense::TheKey,
        (Guarantee::IdempotentKeys, SinkFacts::Sql(_)) if !sink.is_atomic() => super::Sense::FinalState,
        (
            Guarantee::AtMostOnce | Guarantee::AtLeastOnce | Guarantee::IdempotentKeys | Guarantee::ExactlyOnce,
            SinkFacts::Sql(_) | SinkFacts::Kafka { .. } | SinkFacts::Http { .. },
        ) => super::Sense::EveryEvent,
    }
}
