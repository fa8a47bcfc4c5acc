//! The engine alone: generated orders, decoded and keyed, into a sink that discards them.

#[path = "parts/discard.rs"]
mod discard;
#[path = "parts/settings.rs"]
mod settings;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_engine::batch::FieldSpan;
use hapax_engine::decode::csv::{CsvFormat, Dialect, Format, Header};
use hapax_engine::decode::{Decoder, UnknownFields};
use hapax_engine::runtime::{Delivery, DeliveryEnd, deliver};
use hapax_model::field::FieldPath;

const EVENTS: u64 = 500_000;

fn bench_engine_alone(criterion: &mut Criterion) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let mut group = criterion.benchmark_group("engine");
    group.throughput(Throughput::Elements(EVENTS)).sample_size(10).measurement_time(Duration::from_secs(10));
    group.bench_function("bench_engine_alone", |bencher| {
        bencher.iter_custom(|rounds| {
            let mut spent = Duration::ZERO;
            for _ in 0..rounds {
                let source = GenerateSource::new(GenerateConfig { count: Some(EVENTS), ..GenerateConfig::default() });
                let sink = discard::Discard::new(&["order_id", "customer", "amount_cents", "status"]);
                let delivery = Delivery {
                    settings: settings::keyed_by("order_id"),
                    source,
                    sink,
                    state: None::<discard::NoState>,
                };
                let started = Instant::now();
                let end = runtime.block_on(async { tokio::spawn(deliver(delivery, settings::control())).await });
                spent += started.elapsed();
                assert_eq!(black_box(end).expect("no panic"), DeliveryEnd::Finished);
            }
            spent
        });
    });
}

/// The same thousand orders as JSON lines and as CSV records, cut into the fields that a table takes.
fn bench_decode(criterion: &mut Criterion) {
    const INPUTS: u64 = 1000;
    let names = ["order_id", "customer", "amount_cents", "status"];
    let paths: Vec<FieldPath> = names.iter().map(|name| FieldPath::of_name(name)).collect();
    let json = |n: u64| {
        format!(
            "{{\"order_id\":{n},\"customer\":\"customer-{}\",\"amount_cents\":{},\"status\":\"paid\"}}",
            n % 97,
            n * 31
        )
    };
    let csv = |n: u64| format!("{n},customer-{},{},paid", n % 97, n * 31);
    let quoted = |n: u64| format!("{n},\"customer, \"\"{}\"\"\",{},\"paid\"", n % 97, n * 31);
    let header = Header::Names(names.map(str::to_owned).to_vec());
    let format = Format::Csv(Arc::new(CsvFormat { dialect: Dialect::default(), null: String::new(), header }));
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(INPUTS)).measurement_time(Duration::from_secs(5));
    let cases: [(&str, Format, Vec<String>); 3] = [
        ("bench_decode_json", Format::Json, (0..INPUTS).map(json).collect()),
        ("bench_decode_csv", format.clone(), (0..INPUTS).map(csv).collect()),
        ("bench_decode_csv_in_quotes", format, (0..INPUTS).map(quoted).collect()),
    ];
    for (name, format, inputs) in cases {
        let mut decoder = Decoder::new(&paths, UnknownFields::Counted);
        decoder.use_format(&format);
        let mut fields: Vec<(usize, FieldSpan)> = Vec::new();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for input in &inputs {
                    fields.clear();
                    decoder.decode(black_box(input.as_bytes()), &mut fields).expect("an event");
                }
                black_box(fields.len())
            });
        });
    }
}

criterion_group!(benches, bench_engine_alone, bench_decode);
criterion_main!(benches);
