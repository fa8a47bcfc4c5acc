use hapax_engine::contract::source::{drain, every_clause};

use super::super::config::GenerateLane;
use super::*;

fn mixed() -> GenerateConfig {
    GenerateConfig {
        seed: 11,
        count: Some(60),
        updates_per_mille: 200,
        deletes_per_mille: 50,
        poison_per_mille: 50,
        ..GenerateConfig::default()
    }
}

const ROOM: Room = Room { events: 1000, bytes: 1024 * 1024 };

/// Goal: a generator is a source. Method: every clause of the contract.
#[tokio::test]
async fn a_generator_keeps_the_contract_of_sources() {
    every_clause(|| GenerateSource::new(mixed())).await;
}

/// Goal: pacing changes nothing but the time. Method: the contract again, at a rate.
#[tokio::test]
async fn a_paced_generator_keeps_the_contract_of_sources() {
    every_clause(|| GenerateSource::new(GenerateConfig { count: Some(5), rate: Some(2000), ..mixed() })).await;
}

/// Goal: a longer or a faster run is the same stream, another seed is not. Method: hold a bookmark under each.
#[tokio::test]
async fn count_and_rate_are_no_part_of_the_incarnation() {
    let bookmark = GenerateSource::new(mixed()).start(StartAt::At(Position::at(30))).await.expect("start");
    for (config, held) in [
        (GenerateConfig { count: None, rate: Some(5), ..mixed() }, true),
        (GenerateConfig { count: Some(30), ..mixed() }, true),
        (GenerateConfig { seed: 12, ..mixed() }, false),
        (GenerateConfig { keys: 12, ..mixed() }, false),
        (GenerateConfig { updates_per_mille: 0, ..mixed() }, false),
        (GenerateConfig { deletes_per_mille: 0, ..mixed() }, false),
        (GenerateConfig { poison_per_mille: 0, ..mixed() }, false),
    ] {
        let answer = GenerateSource::new(config).hold(&bookmark).await.expect("hold");
        assert_eq!(answer == Held::Yes, held, "{config:?}: {answer:?}");
    }
    let shorter = GenerateSource::new(GenerateConfig { count: Some(29), ..mixed() }).hold(&bookmark).await;
    assert!(matches!(shorter, Ok(Held::Gone { missing }) if missing.contains("event 30") && missing.contains("29")));
}

/// Goal: a rate is kept. Method: 40 events at 100 a second need 400 ms, and no batch waits
/// for the room to fill.
#[tokio::test]
async fn a_rate_is_kept_in_small_batches() {
    let config = GenerateConfig { rate: Some(100), count: Some(40), ..GenerateConfig::default() };
    let mut source = GenerateSource::new(config);
    let start = source.start(StartAt::Earliest).await.expect("start");
    let began = Instant::now();
    source.assign(&start, Follow::Yes).await.expect("assign");
    let mut inputs = Inputs::default();
    let mut batches = 0;
    while source.poll(&mut inputs, ROOM).await.expect("poll") != Polled::End {
        batches += 1;
    }
    assert_eq!(inputs.len(), 40);
    assert!(began.elapsed() >= Duration::from_millis(399), "{:?}", began.elapsed());
    assert!(batches > 1, "all came at once");
}

/// Goal: a pause between two runs is not caught up. Method: resume far behind the beginning and look at the first poll.
#[tokio::test]
async fn pacing_begins_where_the_run_begins() {
    let mut source = GenerateSource::new(GenerateConfig { rate: Some(10), ..GenerateConfig::default() });
    let bookmark = source.start(StartAt::At(Position::at(1_000_000))).await.expect("start");
    source.assign(&bookmark, Follow::Yes).await.expect("assign");
    let mut inputs = Inputs::default();
    source.poll(&mut inputs, ROOM).await.expect("poll");
    assert!(inputs.len() <= 20, "{} events at once", inputs.len());
}

/// Goal: an endless stream has no end and no extent. Method: two full rooms.
#[tokio::test]
async fn without_a_count_there_is_no_end() {
    let mut source = GenerateSource::new(GenerateConfig::default());
    let start = source.start(StartAt::Latest).await.expect("start");
    source.assign(&start, Follow::No).await.expect("assign");
    let mut inputs = Inputs::default();
    for _ in 0..2 {
        assert_eq!(source.poll(&mut inputs, ROOM).await.expect("poll"), Polled::Records);
    }
    assert_eq!((inputs.len(), source.extent()), (2000, None));
    let counted = GenerateConfig { count: Some(7), ..GenerateConfig::default() };
    assert_eq!(drain(&mut GenerateSource::new(counted), &start, ROOM).await.len(), 7);
}

/// Goal: lanes share the stream: every event in exactly one, all events of an order in the same, at the positions of the
/// whole stream. Method: drain the whole stream and its three lanes, compare.
#[tokio::test]
async fn lanes_share_the_stream_by_order() {
    let mut whole: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut shared: Vec<(u64, Vec<u8>)> = Vec::new();
    let config = GenerateConfig { count: Some(500), ..mixed() };
    events_of(config, &mut whole).await;
    for number in 0..3 {
        let lane = GenerateLane { number, of: 3 };
        let before = shared.len();
        events_of(GenerateConfig { lane, ..config }, &mut shared).await;
        assert!(shared.len() - before > 100, "lane {number} has {}", shared.len() - before);
        for (index, _) in &shared[before..] {
            assert!(lane.takes(order_id(&config, *index, kind(&config, *index))));
        }
    }
    shared.sort();
    assert_eq!(shared, whole);
}

async fn events_of(config: GenerateConfig, into: &mut Vec<(u64, Vec<u8>)>) {
    let mut source = GenerateSource::new(config);
    let start = source.start(StartAt::Earliest).await.expect("start");
    source.assign(&start, Follow::No).await.expect("assign");
    let mut inputs = Inputs::default();
    while source.poll(&mut inputs, ROOM).await.expect("poll") != Polled::End {}
    into.extend((0..inputs.len()).map(|at| (inputs.position(at).offset, inputs.bytes(at).to_vec())));
}

/// Goal: one lane of several is a source. Method: every clause of the contract, and its name and identity.
#[tokio::test]
async fn a_lane_keeps_the_contract_of_sources() {
    let lane = GenerateLane { number: 1, of: 4 };
    every_clause(|| GenerateSource::new(GenerateConfig { lane, ..mixed() })).await;
    let source = GenerateSource::new(GenerateConfig { lane, ..mixed() });
    assert_eq!(source.lane(), "1-of-4");
    assert!(source.identity().ends_with(":lane=1-of-4"));
    assert_eq!(GenerateSource::new(mixed()).lane(), "0");
    assert!(!GenerateSource::new(mixed()).identity().contains("lane"));
}
