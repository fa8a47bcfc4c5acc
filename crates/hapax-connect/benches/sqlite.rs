//! Generated orders into SQLite, against the fastest bare rusqlite loop we can write: same rows, same commits.
//!
//! Not a criterion bench: what counts are ratios, so every round runs all contestants once, in turn, and the answer is
//! the median of the rounds' ratios. `cargo bench -p hapax-connect --bench sqlite`.

#[path = "parts/bare.rs"]
mod bare;
#[path = "parts/settings.rs"]
mod settings;

use std::path::Path;
use std::time::{Duration, Instant};

use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_connect::sqlite::config::SqliteSinkConfig;
use hapax_connect::sqlite::state::SqliteState;
use hapax_connect::sqlite::{SqliteIdempotentSink, SqliteSink};
use hapax_engine::runtime::{Delivery, DeliveryEnd, Settings, deliver};
use hapax_engine::sink::TransactionalSink;
use hapax_engine::state_progress::{Order, StateProgress, WatchKeys};
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, KeyNeed, Keyer, Uniqueness};
use hapax_model::mode::ConflictMode;

const EVENTS: u64 = 400_000;
const PER_COMMIT: usize = 20_000;
const ROUNDS: usize = 5;

/// Writes all rows into a new database in this folder, and says how long that took.
type Contestant = fn(&Path) -> Duration;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return; // `cargo test --benches` only wants to know that it builds
    }
    if let Some(only) = std::env::args().skip_while(|argument| argument != "--profile").nth(1) {
        return profile(&only);
    }
    let contestants: [(&str, Contestant); 5] = [
        ("bare append", |folder| bare::append(&folder.join("a.db"), EVENTS, PER_COMMIT)),
        ("hapax append, exactly-once", |folder| by_hapax(folder, ConflictMode::Append, Progress::InSink)),
        ("hapax append, at-least-once", |folder| by_hapax(folder, ConflictMode::Append, Progress::InState)),
        ("bare upsert of new keys", |folder| bare::upsert(&folder.join("u.db"), EVENTS, PER_COMMIT)),
        ("hapax upsert of new keys", |folder| by_hapax(folder, ConflictMode::Update, Progress::InSink)),
    ];
    let mut times = vec![Vec::new(); contestants.len()];
    for round in 0..ROUNDS {
        for (at, (name, contestant)) in contestants.iter().enumerate() {
            let folder = tempfile::tempdir().expect("a folder");
            let spent = contestant(folder.path());
            println!("round {round}: {name}: {:.0} rows/s", EVENTS as f64 / spent.as_secs_f64());
            times[at].push(spent.as_secs_f64());
        }
    }
    println!("exactly-once append against the bare loop:  {:.2}", median_ratio(&times[0], &times[1]));
    println!("exactly-once against at-least-once append:  {:.2}", median_ratio(&times[2], &times[1]));
    println!("upsert of new keys against the bare loop:   {:.2}", median_ratio(&times[3], &times[4]));
}

/// Runs one contestant again and again, for a profiler: `-- --profile append` or `-- --profile update`.
fn profile(mode: &str) {
    let mode = if mode == "update" { ConflictMode::Update } else { ConflictMode::Append };
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir().expect("a folder");
        let spent = by_hapax(folder.path(), mode, Progress::InSink);
        println!("{:.0} rows/s", EVENTS as f64 / spent.as_secs_f64());
    }
}

/// The median over rounds of how fast the second was, compared with the first.
fn median_ratio(first: &[f64], second: &[f64]) -> f64 {
    let mut ratios: Vec<f64> = first.iter().zip(second).map(|(a, b)| a / b).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    InSink,
    InState,
}

fn by_hapax(folder: &Path, mode: ConflictMode, progress: Progress) -> Duration {
    let path = folder.join("target.db");
    bare::make_table(&path, mode);
    let key = vec![FieldPath::of_name("order_id")];
    let key_fields = if mode == ConflictMode::Append { Vec::new() } else { key.clone() };
    let mut config = SqliteSinkConfig::new(&path, "orders");
    (config.table.mode, config.table.key_fields) = (Some(mode), key_fields);
    let need = if mode == ConflictMode::Append { KeyNeed::Nothing } else { KeyNeed::Entity };
    let keyer = Keyer::new(DedupStrategy::content_fields(key), Uniqueness::WithVersion, need);
    let mut settings = Settings { keyer, ..settings::keyed_by("order_id") };
    settings.epoch.max_events = PER_COMMIT as u64;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let state = SqliteState::open(&folder.join("state.db"), Duration::from_secs(5)).await.expect("a state store");
        let started = Instant::now();
        match progress {
            Progress::InSink => run(settings.clone(), SqliteSink::new(config, settings.id.clone()), state).await,
            Progress::InState => {
                let sink = SqliteIdempotentSink::new(config, settings.keyer.strategy().clone());
                let (order, interval) = (Order::RowsFirst, Duration::from_secs(1));
                let sink = StateProgress::new(settings.id.clone(), sink, state.clone(), order, WatchKeys::No, interval);
                run(settings, sink, state).await;
            }
        }
        started.elapsed()
    })
}

async fn run<K: TransactionalSink>(settings: Settings, sink: K, state: SqliteState) {
    let source = GenerateSource::new(GenerateConfig { count: Some(EVENTS), ..GenerateConfig::default() });
    let delivery = Delivery { settings, source, sink, state: Some(state) };
    let end = tokio::spawn(deliver(delivery, settings::control())).await.expect("no panic");
    assert_eq!(end, DeliveryEnd::Finished);
}
