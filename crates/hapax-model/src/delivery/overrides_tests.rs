use super::*;

/// A block in which everything is written, and everything differs from the default.
fn everything() -> DeliveryOverride {
    let seconds = |n| Some(Duration::from_secs(n));
    DeliveryOverride {
        guarantee: Some(Guarantee::ExactlyOnce),
        mechanism: Some(Mechanism::Transaction),
        deduplication: DeduplicationOverride {
            key_fields: Some(vec![FieldPath::of_name("order_id")]),
            ttl: seconds(1),
            unique: Some(true),
            strategy: Some(StrategyName::Content),
        },
        idempotency_key: IdempotencyKeyOverride {
            format: Some("{id}".parse().expect("a template")),
            hash_algorithm: Some(HashAlgorithm::Sha256),
            included_in_payload: Some(false),
        },
        retries: RetriesOverride {
            enabled: Some(false),
            max_attempts: Some(9),
            backoff: Some(vec![Duration::from_millis(5)]),
            give_up_after: seconds(2),
        },
        epoch: EpochBoundsOverride {
            interval: seconds(3),
            max_events: Some(4),
            max_bytes: Some(ByteSize(5)),
            commit_timeout: seconds(6),
            abort_timeout: seconds(7),
        },
        on_reject: Some(OnReject::Stop),
        max_rejects: Some(Share::of_mille(8)),
        claim_timeout: seconds(9),
        lease: seconds(10),
        progress_interval: seconds(11),
        receiver: ReceiverOverride { deduplicates: Some(true), key_ttl: seconds(12), refuses_older: Some(true) },
        readers: ReadersOverride { isolation: Some(Isolation::ReadCommitted) },
        writer: WriterOverride { serialises_keys: Some(true) },
        conditions: Some(vec![ConditionName::OneWorker]),
        client_guidance: Some(true),
        documentation: DocumentationOverride {
            deduplication_required: Some(false),
            sdk_available: Some(false),
            example_code: Some("https://example.test".into()),
        },
        auto_fence_on_startup: Some(true),
    }
}

/// Goal: nothing written means the spec's and the design's defaults. Method: the numbers, spelled out.
#[test]
fn nothing_written_is_the_default() {
    let nothing = DeliveryOverride::default();
    let delivery = Delivery::merged(&nothing, &nothing);
    assert_eq!(delivery, Delivery::default());
    assert_eq!((delivery.guarantee, delivery.mechanism), (Guarantee::IdempotentKeys, None));
    let waits: Vec<_> = delivery.retries.backoff.iter().map(Duration::as_millis).collect();
    assert_eq!(
        (delivery.retries.enabled, delivery.retries.max_attempts, waits),
        (true, 5, vec![1000, 2000, 5000, 10_000, 30_000])
    );
    assert_eq!(delivery.retries.give_up_after, Duration::from_secs(3600));
    let bounds = &delivery.epoch;
    assert_eq!((bounds.interval.as_millis(), bounds.max_events, bounds.max_bytes.0), (200, 100_000, 64 << 20));
    assert_eq!((bounds.commit_timeout.as_secs(), bounds.abort_timeout.as_secs()), (30, 10));
    assert_eq!((delivery.on_reject, delivery.max_rejects_per_mille), (OnReject::DeadLetter, 100));
    let times = (delivery.claim_timeout.as_secs(), delivery.lease.as_secs(), delivery.progress_interval.as_secs());
    assert_eq!(times, (10, 5, 1));
}

/// Goal: no field is forgotten by the merge. Method: everything as default of the file, everything as the workflow's.
#[test]
fn every_written_field_arrives_from_either_block() {
    let nothing = DeliveryOverride::default();
    let from_file = Delivery::merged(&everything(), &nothing);
    let from_workflow = Delivery::merged(&nothing, &everything());
    assert_eq!(from_file, from_workflow);
    assert_eq!(everything().over(nothing.clone()), everything());
    assert_eq!(nothing.over(everything()), everything());

    let untouched = Delivery::default();
    assert_ne!(from_file.guarantee, untouched.guarantee);
    assert_ne!(from_file.mechanism, untouched.mechanism);
    assert_eq!(from_file.deduplication.key_fields, [FieldPath::of_name("order_id")]);
    assert!(from_file.deduplication.unique && from_file.deduplication.ttl.is_some());
    assert_eq!(from_file.deduplication.strategy, Some(StrategyName::Content));
    assert_ne!(from_file.idempotency_key.format, untouched.idempotency_key.format);
    assert!(!from_file.idempotency_key.included_in_payload);
    assert_eq!(from_file.retries.max_attempts, 9);
    assert_eq!(from_file.retries.backoff, [Duration::from_millis(5)]);
    assert_eq!((from_file.epoch.max_events, from_file.epoch.max_bytes), (4, ByteSize(5)));
    assert_eq!((from_file.on_reject, from_file.max_rejects_per_mille), (OnReject::Stop, 8));
    let times = (from_file.claim_timeout.as_secs(), from_file.lease.as_secs(), from_file.progress_interval.as_secs());
    assert_eq!(times, (9, 10, 11));
    assert_eq!(from_file.receiver.key_ttl, Some(Duration::from_secs(12)));
    assert!(from_file.receiver.deduplicates && from_file.receiver.refuses_older && from_file.writer.serialises_keys);
    assert_eq!(from_file.readers.isolation, Some(Isolation::ReadCommitted));
    assert!(from_file.states(ConditionName::OneWorker) && from_file.client_guidance);
    assert!(!from_file.documentation.deduplication_required && !from_file.documentation.sdk_available);
    assert_eq!(from_file.auto_fence_on_startup, Some(true));
}

/// Goal: the workflow wins field by field, not block by block. Method: one field of a block that the file wrote whole.
#[test]
fn a_workflow_overrides_single_fields() {
    let own = DeliveryOverride {
        retries: RetriesOverride { max_attempts: Some(2), ..RetriesOverride::default() },
        conditions: Some(vec![]),
        ..DeliveryOverride::default()
    };
    let merged = Delivery::merged(&everything(), &own);
    let file_alone = Delivery::from(everything());
    assert_eq!(merged.retries, Retries { max_attempts: 2, ..file_alone.retries.clone() });
    assert_eq!(merged, Delivery { retries: merged.retries.clone(), conditions: vec![], ..file_alone });
}

/// Goal: the spec's default block (`idempotent-keys`, `generated-keys`) does not make a workflow's `exactly-once` illegal.
#[test]
fn a_mechanism_is_not_inherited_by_another_guarantee() {
    let defaults = DeliveryOverride {
        guarantee: Some(Guarantee::IdempotentKeys),
        mechanism: Some(Mechanism::GeneratedKeys),
        ..DeliveryOverride::default()
    };
    let own = |guarantee| DeliveryOverride { guarantee, ..DeliveryOverride::default() };
    assert_eq!(Delivery::merged(&defaults, &own(None)).mechanism, Some(Mechanism::GeneratedKeys));
    assert_eq!(
        Delivery::merged(&defaults, &own(Some(Guarantee::IdempotentKeys))).mechanism,
        Some(Mechanism::GeneratedKeys)
    );
    assert_eq!(Delivery::merged(&defaults, &own(Some(Guarantee::ExactlyOnce))).mechanism, None);
}
