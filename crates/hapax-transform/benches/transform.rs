//! What a program costs: the way from JSON to the slots of a batch with a VRL program, beside the same mapping written by
//! hand on `serde_json` (parse, filter, map five fields, write), and beside the plain way without any program.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hapax_engine::batch::Batch;
use hapax_engine::decode::UnknownFields;
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_model::epoch::Epoch;
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::position::{Incarnation, Position};
use hapax_transform::Program;
use serde_json::{Map, Value, json};

/// So many events at once, as the engine reads them.
const EVENTS: usize = 1024;
/// The slots of the target.
const FIELDS: [&str; 5] = ["order_id", "customer", "amount", "total", "priority"];

/// Filter, and map five fields: one kept, one renamed and changed, two calculated, one decided.
const PROGRAM: &str = r#"
if .status == "cancelled" { abort }
. = {
  "order_id": .order_id,
  "customer": upcase!(.customer_name),
  "amount": int!(.amount_cents) / 100,
  "total": int!(.amount_cents) * int!(.quantity),
  "priority": .country == "DE",
}
"#;

/// The same by changing the event instead of replacing it.
const IN_PLACE: &str = r#"
if .status == "cancelled" { abort }
.customer = upcase!(.customer_name)
.amount = int!(.amount_cents) / 100
.total = int!(.amount_cents) * int!(.quantity)
.priority = .country == "DE"
"#;

/// An event of 192 bytes; one in ten is left out.
fn event(n: usize) -> String {
    let status = if n.is_multiple_of(10) { "cancelled" } else { "confirmed" };
    let mut text = format!(
        r#"{{"order_id":{},"customer_name":"Customer {:05}","amount_cents":{},"quantity":{},"country":"{}","status":"{status}","created_at":"2026-11-16T07:30:00Z","note":""#,
        1_000_000 + n,
        n % 1000,
        100 + n * 7 % 90_000,
        1 + n % 9,
        if n.is_multiple_of(3) { "DE" } else { "FR" },
    );
    let missing = 192_usize.saturating_sub(text.len() + 2);
    text.push_str(&"x".repeat(missing));
    text.push_str("\"}");
    text
}

fn pipeline(program: Option<&str>, fields: &[&str]) -> Pipeline {
    let fields: Vec<FieldPath> = fields.iter().map(|field| FieldPath::of_name(field)).collect();
    let strategy = DedupStrategy::content_fields(vec![FieldPath::of_name("order_id")]);
    let keyer = Keyer::new(strategy, Uniqueness::WithVersion, KeyNeed::Fields);
    let origin = Origin { source: "bench".into(), lane: "0".into() };
    let pipeline = Pipeline::new(&fields, keyer, None, UnknownFields::Counted, origin);
    match program {
        Some(program) => {
            let program = Program::compile(program, &[]).unwrap_or_else(|faults| panic!("{faults:?}")).shared();
            pipeline.with_transform(program.as_ref(), Arc::default())
        }
        None => pipeline,
    }
}

fn process(pipeline: &mut Pipeline, batch: &mut Batch, events: &[String], incarnation: &Incarnation) -> usize {
    batch.clear();
    for (n, event) in events.iter().enumerate() {
        batch.inputs.push(Position::at(n as u64), event.as_bytes());
    }
    pipeline.process(batch, 0, Epoch(1), incarnation);
    batch.len()
}

/// By hand: a tree, looked at and mapped to another, written as JSON.
fn by_hand(events: &[String], out: &mut Vec<u8>) -> usize {
    out.clear();
    let mut count = 0;
    for event in events {
        let event: Value = serde_json::from_str(event).expect("JSON");
        if event["status"] == "cancelled" {
            continue;
        }
        let cents = event["amount_cents"].as_i64().expect("a number");
        let quantity = event["quantity"].as_i64().expect("a number");
        let mut mapped = Map::new();
        mapped.insert("order_id".into(), event["order_id"].clone());
        mapped.insert("customer".into(), json!(event["customer_name"].as_str().expect("a text").to_uppercase()));
        mapped.insert("amount".into(), json!(cents as f64 / 100.0));
        mapped.insert("total".into(), json!(cents * quantity));
        mapped.insert("priority".into(), json!(event["country"] == "DE"));
        serde_json::to_writer(&mut *out, &mapped).expect("written");
        out.push(b'\n');
        count += 1;
    }
    count
}

fn bench_transform(criterion: &mut Criterion) {
    let events: Vec<String> = (0..EVENTS).map(event).collect();
    let average = events.iter().map(String::len).sum::<usize>() / EVENTS;
    assert!((190..=194).contains(&average), "{average} bytes");
    let incarnation = Incarnation::new(1, "only");
    let mut group = criterion.benchmark_group("transform");
    group.throughput(Throughput::Elements(EVENTS as u64)).measurement_time(Duration::from_secs(5));
    let mut out = Vec::new();
    let kept = by_hand(&events, &mut out);
    group.bench_function("by hand on serde_json", |bencher| bencher.iter(|| black_box(by_hand(&events, &mut out))));
    for (name, program) in [("vrl, replacing the event", PROGRAM), ("vrl, changing the event", IN_PLACE)] {
        let mut pipeline = pipeline(Some(program), &FIELDS);
        let mut batch = pipeline.batch();
        assert_eq!(process(&mut pipeline, &mut batch, &events, &incarnation), kept);
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(process(&mut pipeline, &mut batch, &events, &incarnation)));
        });
    }
    let mut plain = pipeline(None, &["order_id", "customer_name", "amount_cents", "quantity", "country"]);
    let mut batch = plain.batch();
    group.bench_function("plain mapping, no program", |bencher| {
        bencher.iter(|| black_box(process(&mut plain, &mut batch, &events, &incarnation)));
    });
    group.finish();
}

criterion_group!(benches, bench_transform);
criterion_main!(benches);
