//! The engine alone: generated orders, decoded and keyed, into a sink that discards them.

#[path = "parts/discard.rs"]
mod discard;
#[path = "parts/settings.rs"]
mod settings;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_engine::runtime::{Delivery, DeliveryEnd, deliver};

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

criterion_group!(benches, bench_engine_alone);
criterion_main!(benches);
