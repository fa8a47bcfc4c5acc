//! What people read.

use std::time::Duration;

use super::lattice_tests::{facts, keyed_delivery, sql};
use super::*;
use crate::delivery::{ConditionName, Delivery, Mechanism, StrategyName};
use crate::field::FieldPath;
use crate::mode::{ConflictMode, ProgressPlace};

const POST: SinkFacts = SinkFacts::Http { method: HttpMethod::Post, addressees: Addressees::Url };
const TOPIC: SinkFacts = SinkFacts::Kafka { progress: ProgressPlace::Sink };

fn sqlite(mode: ConflictMode, progress: ProgressPlace) -> SinkFacts {
    sql(TableKind::Sqlite, KeyIndex::Only, mode, progress)
}

fn refusal(sink: SinkFacts, delivery: &Delivery) -> StartRefused {
    audit(&facts(sink, delivery)).may_start().expect_err("refused")
}

/// Goal: the whole explanation reads well. Method: one that holds, word for word.
#[test]
fn an_explanation_reads_from_verdict_to_clients() {
    let delivery = keyed_delivery(Guarantee::ExactlyOnce);
    let source = SourceFacts::of(SourceKind::File, StartAt::Earliest);
    let found = audit(&AuditFacts { source, ..facts(sqlite(ConflictMode::Update, ProgressPlace::Sink), &delivery) });
    let expected = "\
exactly-once holds.
  meaning   no event is lost, and none takes effect twice
  how       transaction (derived): data and position are one transaction of the target
  key       a thing is named by .order_id, an event by these and the source's position and emit index
  assumed   the target is one primary, and what it has committed stays committed (watched: progress that is behind the witness: read again if the source still has it, else stop with code 5)
  assumed   disks keep what they say they have written (fsync is honest) (watched: the same comparison, at every start)
  assumed   the file is only appended to or rotated, and not removed before it was read (watched: the file's identity is compared at the start and every 30 s; a change stops with code 5)
  first run The first run begins with the oldest event the source has. A row that is there is overwritten by the first event with its key. Our tables (progress, epochs, dead letters) are kept beside the data; hapax setup --sql prints them.
  clients   Your workflow delivers exactly once: no event is lost, and none takes effect twice. Events become visible in groups, about every 200ms, each group whole or not at all. You need no deduplication.
";
    assert_eq!(found.explain(), expected);
    assert_eq!(found.may_start(), Ok(()));
}

/// Goal: a missing condition is refused with the exact line to write. Method: each kind of line.
#[test]
fn a_missing_condition_names_its_line() {
    let once = keyed_delivery(Guarantee::ExactlyOnce);
    let refused = refusal(POST, &once);
    assert_eq!((refused.code, refused.exit_code), ("HX1130", 3));
    let expected = "HX1130: exactly-once holds only if the receiver remembers our keys for more than 2h (giveUpAfter and \
                    one hour) and does nothing twice, and nothing states it; if that is true, write \
                    `receiver: { deduplicates: true, keyTtl: 30d }` under delivery";
    assert_eq!(refused.to_string(), expected);

    let put = SinkFacts::Http { method: HttpMethod::PutTemplated, addressees: Addressees::Url };
    assert!(refusal(put, &once).cure.contains("`receiver: { refusesOlder: true }` under delivery"));
    assert!(refusal(TOPIC, &once).cure.contains("`readers: { isolation: read_committed }` under delivery"));
    let arbiter = Arbiter::KeyFields;
    let (index, mode, progress) = (KeyIndex::Only, ConflictMode::Ignore, ProgressPlace::Sink);
    let ignore = SinkFacts::Sql(SqlFacts { table: TableKind::Sqlite, index, arbiter, mode, progress });
    assert!(refusal(ignore, &once).cure.ends_with("`unique: true` under delivery.deduplication"));
}

/// Goal: names under `conditions:` share one line, and what is stated already stays. Method: three names, one stated.
#[test]
fn conditions_share_a_line() {
    let mut delivery = keyed_delivery(Guarantee::IdempotentKeys);
    delivery.conditions = vec![ConditionName::EngineSurvivesCrash];
    let sink = sql(TableKind::MyIsam, KeyIndex::Only, ConflictMode::Update, ProgressPlace::State);
    let found = audit(&AuditFacts { key: KeyKind::Custom("invoice".into()), ..facts(sink, &delivery) });
    let lines: Vec<_> = found.missing.iter().map(|missing| missing.line.as_str()).collect();
    assert_eq!(lines, ["conditions: [engine-survives-crash, custom-key-deterministic, one-worker]"]);
}

/// Goal: the `keyTtl` that is proposed is long enough. Method: a `giveUpAfter` of a year.
#[test]
fn the_proposed_key_ttl_is_enough() {
    let mut delivery = keyed_delivery(Guarantee::ExactlyOnce);
    delivery.retries.give_up_after = Duration::from_secs(365 * 86_400);
    assert!(refusal(POST, &delivery).cure.contains("keyTtl: 366d"));
    (delivery.receiver.deduplicates, delivery.receiver.key_ttl) = (true, Some(Duration::from_secs(366 * 86_400)));
    let found = audit(&facts(POST, &delivery));
    assert_eq!(found.may_start(), Ok(()));
    assert!(found.headline().ends_with("(stated)"), "{}", found.headline());
}

/// Goal: a refusal names reason, cure and the strongest that holds. Method: the three shapes of it.
#[test]
fn a_refusal_names_what_would_hold() {
    let mut delivery = keyed_delivery(Guarantee::ExactlyOnce);
    let refused = refusal(sqlite(ConflictMode::Newer, ProgressPlace::State), &delivery);
    assert_eq!(refused.code, "HX1121");
    assert!(refused.cure.ends_with("the strongest that holds as it stands is idempotent-keys"), "{refused}");

    delivery.mechanism = Some(Mechanism::GeneratedKeys);
    let refused = refusal(sqlite(ConflictMode::Newer, ProgressPlace::Sink), &delivery);
    let expected = "HX1110: exactly-once cannot hold: the mechanism generated-keys cannot keep exactly-once; leave mechanism \
                    out: it is derived";
    assert_eq!(refused.to_string(), expected);

    delivery.guarantee = Guarantee::IdempotentKeys;
    let bare = sql(TableKind::Sqlite, KeyIndex::Missing, ConflictMode::Append, ProgressPlace::Sink);
    let refused = refusal(bare, &delivery);
    assert!(refused.cure.ends_with("the strongest that holds as it stands, without a mechanism, is exactly-once"));
}

/// Goal: each guarantee has its text for clients, and exactly-once names its condition. Method: phrase by phrase.
#[test]
fn clients_are_told_what_to_expect() {
    let text = |sink, delivery: &Delivery| audit(&facts(sink, delivery)).client_text;
    assert!(text(POST, &keyed_delivery(Guarantee::AtMostOnce)).contains("may be lost"));
    let told = text(POST, &keyed_delivery(Guarantee::AtLeastOnce));
    for phrase in ["No event is lost", "may arrive more than once", "Make your processing idempotent"] {
        assert!(told.contains(phrase), "{phrase}: {told}");
    }
    let mut keys = keyed_delivery(Guarantee::IdempotentKeys);
    keys.documentation.example_code = Some("https://docs.example.test/dedup".into());
    let told = text(POST, &keys);
    for phrase in [
        "the field idempotencyKey",
        "before you process",
        "store it together with the effect",
        "hapax-inbox",
        "https://docs.example.test/dedup",
    ] {
        assert!(told.contains(phrase), "{phrase}: {told}");
    }
    keys.idempotency_key.included_in_payload = false;
    keys.documentation.deduplication_required = false;
    keys.documentation.sdk_available = false;
    let told = text(POST, &keys);
    assert!(!told.contains("idempotencyKey") && !told.contains("hapax-inbox") && !told.contains("before you process"));
    let once = keyed_delivery(Guarantee::ExactlyOnce);
    assert!(text(POST, &once).contains("provided that the receiver remembers our keys for more than 2h"));
    assert!(text(TOPIC, &once).contains("provided that everyone who reads the topic uses isolation read_committed"));
    let told = text(sqlite(ConflictMode::Update, ProgressPlace::Sink), &once);
    for phrase in ["no event is lost, and none takes effect twice", "about every 200ms", "You need no deduplication"] {
        assert!(told.contains(phrase), "{phrase}: {told}");
    }
    let told = text(POST, &once);
    assert!(told.contains("expect some milliseconds more") && !told.contains("need no deduplication"), "{told}");
    let held = text(sqlite(ConflictMode::Append, ProgressPlace::State), &once);
    assert_eq!(held, "Nothing can be promised yet: exactly-once cannot hold for this workflow.");
}

/// Goal: what has no effect is said. Method: one workflow that writes many such things.
#[test]
fn what_has_no_effect_is_noted() {
    let mut delivery = keyed_delivery(Guarantee::ExactlyOnce);
    delivery.auto_fence_on_startup = Some(false);
    delivery.mechanism = Some(Mechanism::TransactionalOutbox);
    delivery.idempotency_key.format = "{table}/{id}".parse().expect("a format");
    delivery.deduplication.ttl = Some(Duration::from_secs(30 * 86_400));
    delivery.deduplication.strategy = Some(StrategyName::SourceOffset);
    delivery.conditions = vec![ConditionName::OneWorker];
    let found = audit(&facts(sqlite(ConflictMode::Update, ProgressPlace::Sink), &delivery));
    let expected = [
        "autoFenceOnStartup has no effect: every start fences older workers, and that cannot be switched off",
        "mechanism transactional-outbox has nothing to do here, no outbox is read or sent from: transaction is used",
        "idempotencyKey.format \"{table}/{id}\" has no effect: deduplication.keyFields and strategy say what a key is made of",
        "deduplication.ttl 30d has no effect on a table: keys in it are never removed",
        "keyFields (.order_id) are not part of the event key with this strategy",
        "the condition one-worker is stated and not needed",
    ];
    assert_eq!(found.warnings, expected);
    assert_eq!((found.verdict, found.mechanism), (Verdict::Holds, Mechanism::Transaction));
    assert_eq!(audit(&facts(TOPIC, &keyed_delivery(Guarantee::AtLeastOnce))).warnings, [] as [&str; 0]);
}

/// Goal: a program reads the same facts. Method: the JSON of a verdict of each kind.
#[test]
fn the_audit_is_read_by_programs_too() {
    let json = |sink, guarantee| {
        let delivery = keyed_delivery(guarantee);
        serde_json::to_value(audit(&facts(sink, &delivery))).expect("an audit is JSON")
    };
    let holds = json(sqlite(ConflictMode::Update, ProgressPlace::Sink), Guarantee::ExactlyOnce);
    assert_eq!(
        (&holds["verdict"], &holds["mechanism"], &holds["guarantee"]),
        (&"holds".into(), &"transaction".into(), &"exactly-once".into())
    );
    let holds_if = json(TOPIC, Guarantee::ExactlyOnce);
    assert_eq!((&holds_if["verdict"], &holds_if["conditions"][0]["stated"]), (&"holds-if".into(), &false.into()));
    assert_eq!(holds_if["missing"][0]["line"], "readers: { isolation: read_committed }");
    let cannot = json(sqlite(ConflictMode::Append, ProgressPlace::State), Guarantee::ExactlyOnce);
    assert_eq!((&cannot["verdict"], &cannot["strongest"]), (&"cannot-hold".into(), &"at-least-once".into()));
    assert_eq!(cannot["refusals"][0]["code"], "HX1121");
}

/// Goal: the strategy that a block means is found from it and the source. Method: each way to write it.
#[test]
fn a_key_is_chosen_from_fields_and_source() {
    use ChangeFields::{Absent, Supplied};
    let mut block = Delivery::default().deduplication;
    assert_eq!(KeyKind::of(&block, Absent), KeyKind::SourceOffset);
    assert_eq!(KeyKind::of(&block, Supplied), KeyKind::ChangeKey);
    block.key_fields = vec![FieldPath::of_name("id")];
    assert_eq!(KeyKind::of(&block, Supplied), KeyKind::ContentVersioned);
    block.unique = true;
    assert_eq!(KeyKind::of(&block, Absent), KeyKind::ContentUnique);
    for (strategy, kind) in [
        (StrategyName::Content, KeyKind::ContentUnique),
        (StrategyName::ContentWithEpoch, KeyKind::ContentWithEpoch),
        (StrategyName::Composite, KeyKind::Composite),
        (StrategyName::EpochSequence, KeyKind::EpochSequence),
        (StrategyName::SourceOffset, KeyKind::SourceOffset),
        (StrategyName::ChangeKey, KeyKind::ChangeKey),
        (StrategyName::Derived, KeyKind::Derived),
        (StrategyName::WindowSequence, KeyKind::WindowSequence),
        (StrategyName::Custom { name: "f".into() }, KeyKind::Custom("f".into())),
    ] {
        block.strategy = Some(strategy);
        assert_eq!(KeyKind::of(&block, Absent), kind);
    }
}
