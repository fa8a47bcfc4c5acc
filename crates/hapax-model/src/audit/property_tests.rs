//! What must be true of every verdict, whatever the facts.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;

use super::lattice_tests::keyed_delivery;
use super::*;
use crate::delivery::{ConditionName, Delivery, Isolation};
use crate::mode::{ConflictMode, ProgressPlace};

type State = fn(&mut Delivery);

/// Everything a workflow can state.
const STATEMENTS: [State; 8] = [
    |d| (d.receiver.deduplicates, d.receiver.key_ttl) = (true, Some(Duration::from_secs(30 * 86_400))),
    |d| d.receiver.refuses_older = true,
    |d| d.readers.isolation = Some(Isolation::ReadCommitted),
    |d| d.writer.serialises_keys = true,
    |d| d.conditions.push(ConditionName::OneWorker),
    |d| d.conditions.push(ConditionName::EngineSurvivesCrash),
    |d| d.conditions.push(ConditionName::CustomKeyDeterministic),
    |d| d.deduplication.unique = true,
];

const PLACES: [ProgressPlace; 2] = [ProgressPlace::Sink, ProgressPlace::State];

fn sinks() -> impl Strategy<Value = SinkFacts> {
    use TableKind::*;
    let tables = [PostgresLogged, PostgresUnlogged, PostgresForeign, PostgresTemporary, InnoDb, MyIsam, Memory, Sqlite];
    let indexes = [KeyIndex::Missing, KeyIndex::Only, KeyIndex::WithOthers, KeyIndex::Unread];
    let modes = [ConflictMode::Append, ConflictMode::Ignore, ConflictMode::Update, ConflictMode::Newer];
    let sql = (
        select(tables.to_vec()),
        select(indexes.to_vec()),
        select(vec![Arbiter::KeyColumn, Arbiter::KeyFields]),
        select(modes.to_vec()),
        select(PLACES.to_vec()),
    );
    let sql = sql.prop_map(|(table, index, arbiter, mode, progress)| {
        SinkFacts::Sql(SqlFacts { table, index, arbiter, mode, progress })
    });
    let kafka = select(PLACES.to_vec()).prop_map(|progress| SinkFacts::Kafka { progress });
    let methods = select(vec![HttpMethod::Post, HttpMethod::PutTemplated]);
    let addressees = select(vec![Addressees::Url, Addressees::Endpoints]);
    let http = (methods, addressees).prop_map(|(method, addressees)| SinkFacts::Http { method, addressees });
    prop_oneof![6 => sql, 1 => kafka, 1 => http]
}

fn sources() -> impl Strategy<Value = SourceFacts> {
    use SourceKind::*;
    let kinds = select(vec![File, Generate, Kafka, Outbox, Changes, Live]);
    let replays =
        select(vec![Replay::FromAnyPosition, Replay::FromAnyPosition, Replay::SnapshotRestarts, Replay::Never]);
    let orders = select(vec![KeyOrder::Kept, KeyOrder::LeftToWriter]);
    let starts = select(vec![StartAt::Earliest, StartAt::Latest]);
    (kinds, replays, orders, starts).prop_map(|(kind, replay, key_order, start)| SourceFacts {
        replay,
        key_order,
        ..SourceFacts::of(kind, start)
    })
}

fn keys() -> impl Strategy<Value = KeyKind> {
    select(vec![
        KeyKind::ContentUnique,
        KeyKind::ContentVersioned,
        KeyKind::ContentWithEpoch,
        KeyKind::Composite,
        KeyKind::EpochSequence,
        KeyKind::SourceOffset,
        KeyKind::ChangeKey,
        KeyKind::Derived,
        KeyKind::WindowSequence,
        KeyKind::Custom("invoice".into()),
    ])
}

fn deliveries() -> impl Strategy<Value = Delivery> {
    let mechanisms = prop::option::of(select(Mechanism::ALL.to_vec()));
    (select(Guarantee::ALL.to_vec()), mechanisms, any::<[bool; STATEMENTS.len()]>()).prop_map(
        |(guarantee, mechanism, stated)| {
            let mut delivery = Delivery { mechanism, ..keyed_delivery(guarantee) };
            STATEMENTS.iter().zip(stated).filter(|(_, so)| *so).for_each(|(state, _)| state(&mut delivery));
            delivery
        },
    )
}

/// Facts without the delivery, which they borrow.
type Parts = (SourceFacts, SinkFacts, KeyKind);

fn parts() -> impl Strategy<Value = Parts> {
    (sources(), sinks(), keys())
}

fn judge(parts: &Parts, delivery: &Delivery) -> Audit {
    let (source, sink, key) = parts.clone();
    audit(&AuditFacts { source, sink, key, delivery })
}

/// 0 cannot, 1 holds if and something is not stated, 2 holds if and all is stated, 3 holds.
fn rank(found: &Audit) -> u8 {
    match &found.verdict {
        Verdict::Cannot { .. } => 0,
        Verdict::HoldsIf { conditions } => 1 + u8::from(conditions.iter().all(|c| c.stated)),
        Verdict::Holds => 3,
    }
}

/// The same parts with one of them made stronger.
fn stronger((source, sink, key): &Parts) -> Vec<Parts> {
    let mut all = vec![
        (SourceFacts { replay: Replay::FromAnyPosition, ..*source }, *sink, key.clone()),
        (SourceFacts { key_order: KeyOrder::Kept, ..*source }, *sink, key.clone()),
    ];
    let sinks = match *sink {
        SinkFacts::Sql(sql) => {
            let table = if sql.table.is_mysql() { TableKind::InnoDb } else { TableKind::PostgresLogged };
            vec![
                SinkFacts::Sql(SqlFacts { table, ..sql }),
                SinkFacts::Sql(SqlFacts { index: KeyIndex::Only, ..sql }),
                SinkFacts::Sql(SqlFacts { arbiter: Arbiter::KeyColumn, ..sql }),
                SinkFacts::Sql(SqlFacts { progress: ProgressPlace::Sink, ..sql }),
            ]
        }
        SinkFacts::Kafka { .. } => vec![SinkFacts::Kafka { progress: ProgressPlace::Sink }],
        SinkFacts::Http { method, .. } => vec![SinkFacts::Http { method, addressees: Addressees::Url }],
    };
    all.extend(sinks.into_iter().map(|sink| (*source, sink, key.clone())));
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Goal: saying more never costs anything. Method: any facts, each further statement.
    #[test]
    fn a_stated_condition_never_weakens(parts in parts(), delivery in deliveries()) {
        let before = rank(&judge(&parts, &delivery));
        for state in STATEMENTS {
            let mut more = delivery.clone();
            state(&mut more);
            prop_assert!(rank(&judge(&parts, &more)) >= before);
        }
    }

    /// Goal: the alternative that is offered is real, and nothing stronger is. Method: ask for each one.
    #[test]
    fn the_strongest_that_is_named_does_hold(parts in parts(), delivery in deliveries()) {
        if let Verdict::Cannot { refusals, strongest } = judge(&parts, &delivery).verdict {
            prop_assert!(!refusals.is_empty());
            for guarantee in Guarantee::ALL {
                let asked = judge(&parts, &Delivery { guarantee, mechanism: None, ..delivery.clone() });
                let refused = rank(&asked) == 0;
                prop_assert!(Some(guarantee) <= strongest || refused);
                prop_assert!(Some(guarantee) != strongest || !refused);
            }
        }
    }

    /// Goal: a stronger part never makes a weaker whole. Method: strengthen each part, the mechanism derived.
    #[test]
    fn strength_is_monotone(parts in parts(), delivery in deliveries()) {
        let delivery = Delivery { mechanism: None, ..delivery };
        let before = rank(&judge(&parts, &delivery));
        for parts in stronger(&parts) {
            prop_assert!(rank(&judge(&parts, &delivery)) >= before, "{:?}", parts);
        }
    }

    /// Goal: a start is refused exactly where the verdict says so, with code, exit code and a cure, and writing the
    /// lines that are asked for is enough. Method: any facts.
    #[test]
    fn a_refused_start_says_how_to_start(parts in parts(), delivery in deliveries()) {
        let found = judge(&parts, &delivery);
        match found.may_start() {
            Ok(()) => prop_assert!(rank(&found) >= 2 && found.missing.is_empty()),
            Err(refused) => {
                prop_assert!(rank(&found) <= 1);
                prop_assert_eq!(refused.exit_code, 3);
                prop_assert!(refused.code.starts_with("HX11") && !refused.cure.is_empty());
                prop_assert_eq!(found.missing.is_empty(), rank(&found) == 0);
            }
        }
        for missing in &found.missing {
            prop_assert!(found.explain().contains(&missing.line));
        }
        prop_assert!(!found.explain().contains("prove"));
    }
}
