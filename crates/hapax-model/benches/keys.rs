//! How long a key takes: `cargo bench -p hapax-model`. Most of it is SHA-256, so that is measured beside it.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use hapax_model::epoch::Epoch;
use hapax_model::field::{FieldPath, FieldValue};
use hapax_model::key::{DedupStrategy, KeyFacts, KeyNeed, Keyer, Uniqueness};
use hapax_model::position::{Incarnation, Position};
use sha2::{Digest as _, Sha256};

/// Three fields whose entity key has 52 canonical bytes.
const VALUES: [FieldValue<'static>; 3] =
    [FieldValue::Number("12345678"), FieldValue::Text("sales-europe"), FieldValue::Text("2026-11-16")];

fn keyer(need: KeyNeed) -> Keyer {
    let fields = ["order_id", "region", "day"].map(FieldPath::of_name).to_vec();
    Keyer::new(DedupStrategy::content_fields(fields), Uniqueness::WithVersion, need)
}

fn bench_dedup_key_derivation(criterion: &mut Criterion) {
    let incarnation = Incarnation::new(1, "inode 1311768 first 9f86d081884c7d659a2feaa0c55ad015");
    let facts = KeyFacts {
        source: "file:orders",
        lane: "/var/data/orders.jsonl",
        incarnation: &incarnation,
        position: Position::at(83_718_422),
        emit: 0,
        epoch: Epoch(17),
        sequence: 4,
    };
    criterion.bench_function("sha256_of_52_bytes_alone", |bencher| {
        bencher.iter(|| Sha256::digest(black_box([7_u8; 52])));
    });
    let (entity, event) = (keyer(KeyNeed::Entity), keyer(KeyNeed::Event));
    criterion.bench_function("bench_dedup_key_derivation", |bencher| {
        bencher.iter(|| entity.derive(black_box(&facts), black_box(&VALUES)).expect("the fields are scalars"));
    });
    criterion.bench_function("bench_dedup_key_derivation_with_text", |bencher| {
        bencher.iter(|| {
            let keys = entity.derive(black_box(&facts), black_box(&VALUES)).expect("the fields are scalars");
            keys.entity.map(|key| key.text())
        });
    });
    criterion.bench_function("bench_dedup_event_key_derivation_with_text", |bencher| {
        bencher.iter(|| {
            let keys = event.derive(black_box(&facts), black_box(&VALUES)).expect("the fields are scalars");
            keys.event.map(|key| key.text())
        });
    });
}

criterion_group!(benches, bench_dedup_key_derivation);
criterion_main!(benches);
