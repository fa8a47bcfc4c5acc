//! The three tables of the lattice, cell by cell.

use std::time::Duration;

use super::*;
use crate::delivery::{ConditionName, Delivery, Guarantee, Isolation, Mechanism};
use crate::field::FieldPath;
use crate::mode::{ConflictMode, ProgressPlace};

use Cell::{Cannot, Final, Holds, If, Key};
use ConflictMode::{Append, Ignore, Newer, Update};
use Guarantee::{AtLeastOnce, AtMostOnce, ExactlyOnce, IdempotentKeys};
use ProgressPlace::{Sink, State};

/// What a cell of the tables says.
#[derive(Debug, PartialEq)]
pub(super) enum Cell {
    /// holds
    Holds,
    /// holds (final state)
    Final,
    /// holds (the key)
    Key,
    /// if …
    If(&'static [Condition]),
    /// cannot, by which code → the strongest that does
    Cannot(&'static str, Option<Guarantee>),
}

pub(super) fn keyed_delivery(guarantee: Guarantee) -> Delivery {
    let mut delivery = Delivery { guarantee, ..Delivery::default() };
    delivery.deduplication.key_fields = vec![FieldPath::of_name("order_id")];
    delivery
}

/// Facts without a weakness of their own, so that the sink decides.
pub(super) fn facts(sink: SinkFacts, delivery: &Delivery) -> AuditFacts<'_> {
    let source = SourceFacts::of(SourceKind::Kafka, StartAt::Earliest);
    let key = KeyKind::of(&delivery.deduplication, source.change_fields);
    AuditFacts { source, sink, key, delivery }
}

pub(super) fn sql(table: TableKind, index: KeyIndex, mode: ConflictMode, progress: ProgressPlace) -> SinkFacts {
    SinkFacts::Sql(SqlFacts { table, index, arbiter: Arbiter::KeyColumn, mode, progress })
}

/// Code and strongest of a refusal.
type Refused = (&'static str, Option<Guarantee>);

fn cell(facts: &AuditFacts<'_>) -> (Option<Vec<Condition>>, Sense, Option<Refused>) {
    let found = audit(facts);
    match found.verdict {
        Verdict::Holds => (None, found.sense, None),
        Verdict::HoldsIf { conditions } => (Some(conditions.iter().map(|c| c.condition).collect()), found.sense, None),
        Verdict::Cannot { refusals, strongest } => (None, found.sense, Some((refusals[0].code(), strongest))),
    }
}

#[track_caller]
pub(super) fn expect(facts: &AuditFacts<'_>, expected: &Cell, place: &str) {
    let (conditions, sense, refusal) = cell(facts);
    match expected {
        Holds => assert_eq!((conditions, refusal), (None, None), "{place}"),
        Final => assert_eq!((conditions, sense, refusal), (None, Sense::FinalState, None), "{place}"),
        Key => assert_eq!((conditions, sense, refusal), (None, Sense::TheKey, None), "{place}"),
        If(wanted) => assert_eq!((conditions.as_deref(), refusal), (Some(*wanted), None), "{place}"),
        Cannot(code, strongest) => assert_eq!(refusal, Some((*code, *strongest)), "{place}"),
    }
}

fn row(sink: SinkFacts, cells: [Cell; 4]) {
    for (guarantee, expected) in Guarantee::ALL.into_iter().zip(&cells) {
        let delivery = keyed_delivery(guarantee);
        expect(&facts(sink, &delivery), expected, &format!("{sink:?} {guarantee}"));
    }
}

const CRASH: &[Condition] = &[Condition::EngineSurvivesCrash];

/// Goal: row 1, tables that hold our progress. Method: every such table, every mode that has a unique index.
#[test]
fn a_table_with_our_progress_keeps_every_guarantee() {
    for table in [TableKind::PostgresLogged, TableKind::Sqlite, TableKind::InnoDb] {
        for mode in [Append, Ignore, Update, Newer] {
            row(sql(table, KeyIndex::Only, mode, Sink), [Holds, Holds, Holds, Holds]);
        }
    }
    for mode in [Append, Ignore, Update, Newer] {
        row(sql(TableKind::PostgresLogged, KeyIndex::WithOthers, mode, Sink), [Holds, Holds, Holds, Holds]);
        row(sql(TableKind::Sqlite, KeyIndex::WithOthers, mode, Sink), [Holds, Holds, Holds, Holds]);
    }
}

/// Goal: row 2, `append` without a unique index. Method: every such table, read and unread.
#[test]
fn append_without_an_index_has_no_keys_but_is_exactly_once() {
    for table in [TableKind::PostgresLogged, TableKind::Sqlite, TableKind::InnoDb] {
        for index in [KeyIndex::Missing, KeyIndex::Unread] {
            let cannot = Cannot("HX1120", Some(ExactlyOnce));
            row(sql(table, index, Append, Sink), [Holds, Holds, cannot, Holds]);
        }
    }
}

/// Goal: rows 3 to 5, progress in the state store. Method: every mode.
#[test]
fn progress_in_the_state_store_is_at_best_idempotent() {
    for table in [TableKind::PostgresLogged, TableKind::Sqlite, TableKind::InnoDb] {
        for index in [KeyIndex::Missing, KeyIndex::Only] {
            let keys = Cannot("HX1120", Some(AtLeastOnce));
            row(sql(table, index, Append, State), [Holds, Holds, keys, Cannot("HX1121", Some(AtLeastOnce))]);
        }
        for mode in [Newer, Ignore] {
            let once = Cannot("HX1121", Some(IdempotentKeys));
            row(sql(table, KeyIndex::Only, mode, State), [Holds, Holds, Final, once]);
        }
        let once = Cannot("HX1121", Some(IdempotentKeys));
        row(sql(table, KeyIndex::Only, Update, State), [Holds, Holds, If(&[Condition::OneWorker]), once]);
    }
}

/// Goal: row 6, tables that lose rows. Method: unlogged, foreign and temporary, in both places of progress.
#[test]
fn a_table_that_loses_rows_is_at_most_once() {
    for table in [TableKind::PostgresUnlogged, TableKind::PostgresForeign, TableKind::PostgresTemporary] {
        for (mode, progress) in [(Append, Sink), (Update, Sink), (Ignore, State), (Newer, State)] {
            let no = || Cannot("HX1122", Some(AtMostOnce));
            row(sql(table, KeyIndex::Only, mode, progress), [Holds, no(), no(), no()]);
        }
    }
}

/// Goal: row 7, MySQL with a second unique index. Method: `append` and all others.
#[test]
fn a_second_unique_index_leaves_append_on_mysql() {
    let keys = Cannot("HX1123", Some(ExactlyOnce));
    row(sql(TableKind::InnoDb, KeyIndex::WithOthers, Append, Sink), [Holds, Holds, keys, Holds]);
    let (keys, once) = (Cannot("HX1123", Some(AtLeastOnce)), Cannot("HX1121", Some(AtLeastOnce)));
    row(sql(TableKind::InnoDb, KeyIndex::WithOthers, Append, State), [Holds, Holds, keys, once]);
    for mode in [Ignore, Update, Newer] {
        let no = || Cannot("HX1123", None);
        row(sql(TableKind::InnoDb, KeyIndex::WithOthers, mode, Sink), [no(), no(), no(), no()]);
    }
}

/// Goal: row 8, engines without transactions. Method: keyed and not keyed.
#[test]
fn an_engine_without_transactions_is_at_best_idempotent() {
    for table in [TableKind::MyIsam, TableKind::Memory] {
        for mode in [Ignore, Update, Newer] {
            let once = Cannot("HX1124", Some(IdempotentKeys));
            row(sql(table, KeyIndex::Only, mode, Sink), [Holds, If(CRASH), If(CRASH), once]);
        }
        let (keys, once) = (Cannot("HX1120", Some(AtLeastOnce)), Cannot("HX1124", Some(AtLeastOnce)));
        row(sql(table, KeyIndex::Missing, Append, Sink), [Holds, If(CRASH), keys, once]);
        let two: &[_] = &[Condition::EngineSurvivesCrash, Condition::OneWorker];
        let once = Cannot("HX1124", Some(IdempotentKeys));
        row(sql(table, KeyIndex::Only, Update, State), [Holds, If(CRASH), If(two), once]);
    }
}

/// Goal: row 9, Kafka. Method: progress in the topic's cluster, and apart from it.
#[test]
fn kafka_is_exactly_once_for_committed_readers() {
    let once = If(&[Condition::ReadersReadCommitted]);
    row(SinkFacts::Kafka { progress: Sink }, [Holds, Holds, Key, once]);
    row(SinkFacts::Kafka { progress: State }, [Holds, Holds, Key, Cannot("HX1121", Some(IdempotentKeys))]);
}

/// Goal: rows 10 and 11, HTTP. Method: both methods, one address and several.
#[test]
fn http_is_exactly_once_if_the_receiver_helps() {
    for (method, condition) in [
        (HttpMethod::Post, &[Condition::ReceiverRemembersKeys]),
        (HttpMethod::PutTemplated, &[Condition::ReceiverRefusesOlder]),
    ] {
        let to = |addressees| SinkFacts::Http { method, addressees };
        row(to(Addressees::Url), [Holds, Holds, Key, If(condition)]);
        let most = Cannot("HX1112", Some(ExactlyOnce));
        row(to(Addressees::Endpoints), [most, Holds, Key, If(condition)]);
    }
}

/// Goal: the mode of a table without a unique index is refused for every guarantee.
#[test]
fn an_upsert_needs_a_unique_index() {
    for mode in [Ignore, Update, Newer] {
        let no = || Cannot("HX1125", None);
        row(sql(TableKind::Sqlite, KeyIndex::Missing, mode, Sink), [no(), no(), no(), no()]);
        row(sql(TableKind::Sqlite, KeyIndex::Unread, mode, Sink), [Holds, Holds, Holds, Holds]);
    }
}

/// Goal: the second table, all sixteen pairs, where progress is in the target, apart from it, and at an HTTP receiver.
#[test]
fn every_pair_of_guarantee_and_mechanism_is_judged() {
    let inside = sql(TableKind::Sqlite, KeyIndex::Only, Newer, Sink);
    let apart = sql(TableKind::Sqlite, KeyIndex::Only, Newer, State);
    let http = SinkFacts::Http { method: HttpMethod::Post, addressees: Addressees::Url };
    // Columns: at-most-once, at-least-once, idempotent-keys, exactly-once. "" is accepted, else the mechanism's refusal.
    let table: [(Mechanism, [[&str; 4]; 3]); 4] = [
        (Mechanism::Transaction, [[""; 4], ["HX1111"; 4], ["HX1111"; 4]]),
        (
            Mechanism::KafkaOffsets,
            [["HX1111", "HX1111", "HX1110", "HX1110"], ["", "", "HX1110", "HX1110"], ["", "", "HX1110", "HX1110"]],
        ),
        (Mechanism::GeneratedKeys, [["HX1110", "HX1110", "", "HX1110"]; 3]),
        (Mechanism::TransactionalOutbox, [["HX1110", "", "", ""]; 3]),
    ];
    let mut pairs = 0;
    for (mechanism, places) in table {
        for (sink, codes) in [inside, apart, http].into_iter().zip(places) {
            for (guarantee, code) in Guarantee::ALL.into_iter().zip(codes) {
                let delivery = Delivery { mechanism: Some(mechanism), ..keyed_delivery(guarantee) };
                let found = audit(&facts(sink, &delivery));
                let codes = match &found.verdict {
                    Verdict::Cannot { refusals, .. } => refusals.iter().map(Refusal::code).collect(),
                    Verdict::Holds | Verdict::HoldsIf { .. } => vec![],
                };
                let refused: Vec<_> = codes.into_iter().filter(|code| code.starts_with("HX111")).collect();
                let expected: Vec<_> = Some(code).filter(|code| !code.is_empty()).into_iter().collect();
                assert_eq!(refused, expected, "{mechanism} {guarantee} {sink:?}");
                pairs += 1;
            }
        }
    }
    assert_eq!(pairs, 3 * 16);
}

/// Goal: a mechanism that is not written is derived, and the derived one is legal. Method: every sink and guarantee.
#[test]
fn a_derived_mechanism_is_one_that_could_have_been_written() {
    let inside = sql(TableKind::Sqlite, KeyIndex::Only, Update, Sink);
    let apart = sql(TableKind::Sqlite, KeyIndex::Only, Update, State);
    let http = |addressees| SinkFacts::Http { method: HttpMethod::Post, addressees };
    let (transaction, offsets) = (Mechanism::Transaction, Mechanism::KafkaOffsets);
    let (keys, outbox) = (Mechanism::GeneratedKeys, Mechanism::TransactionalOutbox);
    for (sink, derived) in [
        (inside, [transaction, transaction, keys, transaction]),
        (SinkFacts::Kafka { progress: Sink }, [transaction, transaction, keys, transaction]),
        (apart, [offsets, offsets, keys, transaction]),
        (http(Addressees::Url), [offsets, offsets, keys, outbox]),
        (http(Addressees::Endpoints), [offsets, outbox, outbox, outbox]),
    ] {
        for (guarantee, mechanism) in Guarantee::ALL.into_iter().zip(derived) {
            let delivery = keyed_delivery(guarantee);
            let found = audit(&facts(sink, &delivery));
            assert_eq!((found.mechanism, found.mechanism_origin), (mechanism, MechanismOrigin::Derived), "{sink:?}");
            if !matches!(found.verdict, Verdict::Cannot { .. }) {
                let written = Delivery { mechanism: Some(mechanism), ..delivery };
                let again = audit(&facts(sink, &written));
                assert_eq!((again.verdict, again.mechanism), (found.verdict, mechanism), "{sink:?} {guarantee}");
            }
        }
    }
}

/// Goal: the third table, key strategies. Method: upserts and drops, for all guarantees.
#[test]
fn every_key_strategy_is_judged() {
    let upserts = [Update, Newer].map(|mode| sql(TableKind::Sqlite, KeyIndex::Only, mode, Sink));
    let drops = [
        sql(TableKind::Sqlite, KeyIndex::Only, Ignore, Sink),
        SinkFacts::Http { method: HttpMethod::Post, addressees: Addressees::Url },
    ];
    let custom: &[_] = &[Condition::CustomKeyDeterministic];
    for sink in upserts.into_iter().chain(drops) {
        for guarantee in [AtMostOnce, AtLeastOnce, IdempotentKeys, ExactlyOnce] {
            let mut delivery = keyed_delivery(guarantee);
            delivery.receiver.deduplicates = true;
            delivery.receiver.key_ttl = Some(Duration::from_secs(86_400));
            let plain = [KeyKind::ContentVersioned, KeyKind::SourceOffset, KeyKind::Derived, KeyKind::WindowSequence];
            let http_once = matches!(sink, SinkFacts::Http { .. }) && guarantee == ExactlyOnce;
            let holds = if http_once { If(&[Condition::ReceiverRemembersKeys]) } else { Holds };
            let place = format!("{sink:?} {guarantee}");
            for key in plain {
                expect(&AuditFacts { key, ..facts(sink, &delivery) }, &holds, &place);
            }
            let changes = SourceFacts::of(SourceKind::Changes, StartAt::Earliest);
            let change_key = AuditFacts { source: changes, key: KeyKind::ChangeKey, ..facts(sink, &delivery) };
            expect(&change_key, &holds, &place);
            for key in [KeyKind::ContentWithEpoch, KeyKind::Composite, KeyKind::EpochSequence] {
                let refused = Cannot("HX1104", Some(ExactlyOnce));
                let expected = if guarantee == ExactlyOnce { &holds } else { &refused };
                expect(&AuditFacts { key, ..facts(sink, &delivery) }, expected, &place);
            }
            let expected = match (guarantee, http_once) {
                (AtMostOnce | AtLeastOnce, _) => Holds,
                (IdempotentKeys | ExactlyOnce, false) => If(custom),
                (IdempotentKeys | ExactlyOnce, true) => {
                    If(&[Condition::CustomKeyDeterministic, Condition::ReceiverRemembersKeys])
                }
            };
            expect(&AuditFacts { key: KeyKind::Custom("f".into()), ..facts(sink, &delivery) }, &expected, &place);
            delivery.deduplication.unique = true;
            expect(&AuditFacts { key: KeyKind::ContentUnique, ..facts(sink, &delivery) }, &holds, &place);
        }
    }
}

/// Goal: `ignore` over the fields themselves drops later events of a thing, unless the fields name the event.
#[test]
fn ignore_over_key_fields_needs_unique() {
    let by_fields = |mode| {
        let arbiter = Arbiter::KeyFields;
        SinkFacts::Sql(SqlFacts { table: TableKind::Sqlite, index: KeyIndex::Only, arbiter, mode, progress: Sink })
    };
    let unless = || If(&[Condition::KeyFieldsNameTheEvent]);
    row(by_fields(Ignore), [Holds, unless(), unless(), unless()]);
    row(by_fields(Update), [Holds, Holds, Holds, Holds]);
    let mut delivery = keyed_delivery(ExactlyOnce);
    delivery.deduplication.unique = true;
    expect(&facts(by_fields(Ignore), &delivery), &Holds, "unique: true states it");
}

/// Goal: the verdict is the weaker of source and sink. Method: weak sources into the strongest sink.
#[test]
fn a_weak_source_weakens_the_verdict() {
    let judge = |source: SourceFacts, sink, guarantee, expected: Cell| {
        let delivery = keyed_delivery(guarantee);
        expect(&AuditFacts { source, ..facts(sink, &delivery) }, &expected, &format!("{source:?} {guarantee}"));
    };
    let update = sql(TableKind::Sqlite, KeyIndex::Only, Update, Sink);
    let append = sql(TableKind::Sqlite, KeyIndex::Missing, Append, Sink);
    let live = SourceFacts::of(SourceKind::Live, StartAt::Latest);
    judge(live, update, AtMostOnce, Holds);
    for guarantee in [AtLeastOnce, IdempotentKeys, ExactlyOnce] {
        judge(live, update, guarantee, Cannot("HX1101", Some(AtMostOnce)));
    }
    let changes = SourceFacts::of(SourceKind::Changes, StartAt::Earliest);
    let restarting = SourceFacts { replay: Replay::SnapshotRestarts, ..changes };
    judge(restarting, update, ExactlyOnce, Holds);
    judge(restarting, append, AtLeastOnce, Holds);
    for guarantee in [AtMostOnce, IdempotentKeys, ExactlyOnce] {
        judge(restarting, append, guarantee, Cannot("HX1107", Some(AtLeastOnce)));
        judge(restarting, SinkFacts::Kafka { progress: Sink }, guarantee, Cannot("HX1107", Some(AtLeastOnce)));
    }
    let outbox = SourceFacts::of(SourceKind::Outbox, StartAt::Earliest);
    let unordered = SourceFacts { key_order: KeyOrder::LeftToWriter, ..outbox };
    for guarantee in [IdempotentKeys, ExactlyOnce] {
        judge(unordered, update, guarantee, If(&[Condition::WriterSerialisesKeys]));
    }
    judge(unordered, update, AtLeastOnce, Holds);
    judge(unordered, append, ExactlyOnce, Holds);
}

/// Goal: a key strategy that the event cannot feed is refused.
#[test]
fn a_key_needs_its_parts() {
    let sink = sql(TableKind::Sqlite, KeyIndex::Only, Update, Sink);
    let delivery = Delivery::default();
    for key in [KeyKind::ContentUnique, KeyKind::ContentVersioned] {
        expect(&AuditFacts { key, ..facts(sink, &delivery) }, &Cannot("HX1105", None), "no key fields");
    }
    expect(
        &AuditFacts { key: KeyKind::ChangeKey, ..facts(sink, &delivery) },
        &Cannot("HX1106", None),
        "no change fields",
    );
}

/// Goal: a stated condition lets the workflow start, an unstated or insufficient one does not. Method: each condition.
#[test]
fn each_condition_is_stated_in_its_own_way() {
    type State = fn(&mut Delivery);
    let hour = 3600;
    let cases: [(Condition, State, State); 8] = [
        (
            Condition::ReceiverRemembersKeys,
            // Exactly giveUpAfter and an hour is not longer than that.
            |d| (d.receiver.deduplicates, d.receiver.key_ttl) = (true, Some(Duration::from_secs(2 * 3600))),
            |d| (d.receiver.deduplicates, d.receiver.key_ttl) = (true, Some(Duration::from_secs(2 * 3600 + 1))),
        ),
        (Condition::ReceiverRefusesOlder, |d| d.receiver.deduplicates = true, |d| d.receiver.refuses_older = true),
        (
            Condition::ReadersReadCommitted,
            |d| d.readers.isolation = Some(Isolation::ReadUncommitted),
            |d| d.readers.isolation = Some(Isolation::ReadCommitted),
        ),
        (Condition::WriterSerialisesKeys, |_| {}, |d| d.writer.serialises_keys = true),
        (
            Condition::OneWorker,
            |d| d.conditions = vec![ConditionName::EngineSurvivesCrash],
            |d| d.conditions = vec![ConditionName::OneWorker],
        ),
        (Condition::EngineSurvivesCrash, |_| {}, |d| d.conditions = vec![ConditionName::EngineSurvivesCrash]),
        (Condition::CustomKeyDeterministic, |_| {}, |d| d.conditions = vec![ConditionName::CustomKeyDeterministic]),
        (Condition::KeyFieldsNameTheEvent, |_| {}, |d| d.deduplication.unique = true),
    ];
    for (condition, insufficient, sufficient) in cases {
        let mut delivery = keyed_delivery(ExactlyOnce);
        assert_eq!(delivery.retries.give_up_after, Duration::from_secs(hour));
        insufficient(&mut delivery);
        assert!(!condition.is_stated(&delivery), "{condition:?}");
        sufficient(&mut delivery);
        assert!(condition.is_stated(&delivery), "{condition:?}");
    }
}

/// Goal: a condition that nobody states leads to its own page. Method: for each, facts that need it and no other.
#[test]
fn each_condition_has_its_page() {
    let codes = |facts: AuditFacts<'_>| match audit(&facts).verdict {
        Verdict::HoldsIf { conditions } => conditions.iter().map(|condition| condition.code).collect::<Vec<_>>(),
        verdict @ (Verdict::Holds | Verdict::Cannot { .. }) => panic!("no condition: {verdict:?}"),
    };
    let (once, keys, least) =
        (keyed_delivery(ExactlyOnce), keyed_delivery(IdempotentKeys), keyed_delivery(AtLeastOnce));
    let http = |method| SinkFacts::Http { method, addressees: Addressees::Url };
    let update = sql(TableKind::Sqlite, KeyIndex::Only, Update, Sink);
    let over_fields = SqlFacts {
        table: TableKind::Sqlite,
        index: KeyIndex::Only,
        arbiter: Arbiter::KeyFields,
        mode: Ignore,
        progress: Sink,
    };
    let outbox = SourceFacts::of(SourceKind::Outbox, StartAt::Earliest);
    let unordered = SourceFacts { key_order: KeyOrder::LeftToWriter, ..outbox };
    assert_eq!(codes(facts(http(HttpMethod::Post), &once)), ["HX1130"]);
    assert_eq!(codes(facts(http(HttpMethod::PutTemplated), &once)), ["HX1131"]);
    assert_eq!(codes(facts(SinkFacts::Kafka { progress: Sink }, &once)), ["HX1132"]);
    assert_eq!(codes(AuditFacts { source: unordered, ..facts(update, &once) }), ["HX1133"]);
    assert_eq!(codes(facts(sql(TableKind::Sqlite, KeyIndex::Only, Update, State), &keys)), ["HX1134"]);
    assert_eq!(codes(facts(sql(TableKind::MyIsam, KeyIndex::Only, Update, Sink), &least)), ["HX1135"]);
    assert_eq!(codes(AuditFacts { key: KeyKind::Custom("f".into()), ..facts(update, &keys) }), ["HX1136"]);
    assert_eq!(codes(facts(SinkFacts::Sql(over_fields), &once)), ["HX1137"]);
}
