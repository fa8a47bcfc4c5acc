//! Our broker beside Apache Kafka on this machine: the same programs, the same minute, rounds in turn.
//!
//! Reads: the release build of `hapax`, the packages of the cache. Writes: scratch directories, and its figures to standard output.
//! Not here: whether answers are right (`matrix`, `wire`).

mod contestant;
mod figures;
mod load;
mod probe;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

pub use contestant::{Running, Who};
pub use figures::{Figures, Unit, median};
pub use load::{Load, Printed};

/// Who takes part, and with how many records.
#[derive(Debug)]
struct Scale {
    who: &'static [Who],
    /// Before the first round; with none there is no warming.
    warming: u64,
    /// Of one run.
    count: u64,
    /// Of one run by Java's defaults at 1 KiB: with small batches and an fsync each, half a million take a minute.
    few: u64,
    /// Of a run that measures times.
    seconds: &'static str,
}

const FULL: Scale = Scale { who: &Who::ALL, warming: 2_000_000, count: 500_000, few: 50_000, seconds: "8" };
const GLANCE: Scale =
    Scale { who: &[Who::Embedded, Who::KafkaSynced], warming: 0, count: 5000, few: 1000, seconds: "1" };
const BIG_BATCHES: &str = "batch.size=262144";

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Records per second, by librdkafka and by Java's producer; memory after it.
    Rates,
    /// From produce to acknowledgement and to a consumer, at 200 records a second.
    Latency,
    /// What idempotence costs.
    Idempotence,
    /// What retention costs while it removes.
    Retention,
    /// What an old snapshot in the database costs.
    Snapshot,
    /// How long a start takes.
    Start,
    /// Memory over ten gigabytes.
    Long,
    /// Rates and latency for a moment, to see that all of this works; its figures mean nothing.
    Glance,
}

impl Part {
    /// All that measure, in order.
    pub const ALL: [Self; 7] =
        [Self::Start, Self::Rates, Self::Latency, Self::Idempotence, Self::Retention, Self::Snapshot, Self::Long];

    /// Its word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rates => "rates",
            Self::Latency => "latency",
            Self::Idempotence => "idempotence",
            Self::Retention => "retention",
            Self::Snapshot => "snapshot",
            Self::Start => "start",
            Self::Long => "long",
            Self::Glance => "glance",
        }
    }
}

/// Measures some parts in a number of rounds, and prints as it goes.
///
/// # Errors
/// If somebody does not start, or a record is not acknowledged.
pub fn run(hapax: &Path, parts: &[Part], rounds: u32) -> Result<()> {
    let load = Load::prepare(hapax)?;
    for part in parts {
        println!("\n## {}\n", part.word());
        match part {
            Part::Rates => beside(hapax, &load, rounds, &FULL, &[rates])?,
            Part::Latency => beside(hapax, &load, rounds, &FULL, &[latency])?,
            Part::Glance => beside(hapax, &load, rounds, &GLANCE, &[rates, latency])?,
            Part::Idempotence => {
                in_turn(hapax, &load, rounds, Who::Embedded, &IDEMPOTENCE)?;
                in_turn(hapax, &load, rounds, Who::KafkaSynced, &IDEMPOTENCE)?;
            }
            Part::Retention => in_turn(hapax, &load, rounds, Who::Embedded, &RETENTION)?,
            Part::Snapshot => snapshot(hapax, &load, rounds)?,
            Part::Start => start(hapax)?,
            Part::Long => long(hapax, &load)?,
        }
    }
    Ok(())
}

/// One round of one contestant.
type Round = fn(&Load, &Running, &Scale, &mut Figures) -> Result<()>;

/// All run side by side, and take turns; who is idle costs next to nothing.
fn beside(hapax: &Path, load: &Load, rounds: u32, scale: &Scale, parts: &[Round]) -> Result<()> {
    let running = scale.who.iter().map(|who| who.start(hapax)).collect::<Result<Vec<_>>>()?;
    let round = |one: &Running, figures: &mut Figures| {
        parts.iter().try_for_each(|part| part(load, one, scale, figures)).with_context(|| one.who.title())
    };
    // A virtual machine is two to four times faster when it is warm.
    for one in running.iter().filter(|_| scale.warming > 0) {
        with_topic(load, one, &[], |topic| produce(load, one, topic, scale.warming, 100, &[]))?;
        round(one, &mut Figures::default())?;
        eprintln!("{} is warm", one.who.title());
    }
    let mut figures = Figures::default();
    for number in 1..=rounds {
        println!("round {number}: {}", probe::fsync()?);
        for one in &running {
            round(one, &mut figures)?;
        }
    }
    for one in &running {
        figures.add("memory afterwards", Unit::Mebibytes, one.who, one.resident()?);
    }
    println!("\n{}", figures.table());
    Ok(())
}

/// In a topic of its own, which goes afterwards.
fn with_topic<T>(load: &Load, at: &Running, settings: &[&str], work: impl FnOnce(&str) -> Result<T>) -> Result<T> {
    let topic = format!("peers-{}", uuid::Uuid::new_v4());
    load.create(&at.address, &topic, settings)?;
    let outcome = work(&topic)?;
    load.delete(&at.address, &topic)?;
    Ok(outcome)
}

fn rates(load: &Load, at: &Running, scale: &Scale, figures: &mut Figures) -> Result<()> {
    let (address, count) = (at.address.as_str(), scale.count);
    for (size, label) in [(100, "100 B"), (1024, "1 KiB")] {
        let (produced, consumed) = with_topic(load, at, &[], |topic| {
            let produced = produce(load, at, topic, count, size, &[])?;
            let consumed = load.librdkafka(&["consume", address, topic, &count.to_string()])?.get("rate")?;
            Ok((produced, consumed))
        })?;
        figures.add(&format!("produce by librdkafka, {label}"), Unit::PerSecond, at.who, produced);
        figures.add(&format!("consume by librdkafka, {label}"), Unit::PerSecond, at.who, consumed);
        let few = if size == 100 { count } else { scale.few };
        let java = with_topic(load, at, &[], |topic| load.java(address, topic, few, size, &[]))?;
        figures.add(&format!("produce by Java's defaults, {label}"), Unit::PerSecond, at.who, java);
        let java = with_topic(load, at, &[], |topic| load.java(address, topic, count, size, &[BIG_BATCHES]))?;
        figures.add(&format!("produce by Java, batches of 256 KiB, {label}"), Unit::PerSecond, at.who, java);
    }
    Ok(())
}

fn latency(load: &Load, at: &Running, scale: &Scale, figures: &mut Figures) -> Result<()> {
    let printed = with_topic(load, at, &[], |topic| {
        load.librdkafka(&["latency", &at.address, topic, "200", scale.seconds, "100"])
    })?;
    for (title, name) in [
        ("until acknowledged, median", "ack_p50"),
        ("until acknowledged, 99 of 100", "ack_p99"),
        ("until consumed, median", "e2e_p50"),
        ("until consumed, 99 of 100", "e2e_p99"),
    ] {
        figures.add(title, Unit::Milliseconds, at.who, printed.get(name)?);
    }
    Ok(())
}

fn produce(load: &Load, at: &Running, topic: &str, count: u64, size: u64, settings: &[&str]) -> Result<f64> {
    let (count, size) = (count.to_string(), size.to_string());
    let words = [&["produce", &at.address, topic, &count, &size], settings].concat();
    load.librdkafka(&words)?.get("rate")
}

/// Two ways to produce 100-byte records, one with something and one without.
struct Pair {
    what: &'static str,
    count: u64,
    /// Settings of the topic and of the client.
    with: (&'static [&'static str], &'static [&'static str]),
    without: (&'static [&'static str], &'static [&'static str]),
}

/// Without idempotence librdkafka sends without limit before it has an answer; five requests, as with it, are the same work.
const IDEMPOTENCE: Pair = Pair {
    what: "idempotence",
    count: 2_000_000,
    with: (&[], &[]),
    without: (&[], &["enable.idempotence=false", "max.in.flight=5"]),
};
/// Looked at every second, so that it removes several times in a run.
const RETENTION: Pair = Pair {
    what: "retention of 16 MiB",
    count: 4_000_000,
    with: (&["retention.bytes=16777216"], &[]),
    without: (&[], &[]),
};

/// Both ways in turn on one broker: the medians of the ratios of their rates, and of the processor time of the broker. Where the
/// client is the bottleneck, the second says what the broker pays.
fn in_turn(hapax: &Path, load: &Load, rounds: u32, who: Who, pair: &Pair) -> Result<()> {
    let at = who.start(hapax)?;
    let once = |(topic_settings, settings): (&[&str], &[&str])| {
        with_topic(load, &at, topic_settings, |topic| {
            let before = at.processor()?;
            let rate = produce(load, &at, topic, pair.count, 100, settings)?;
            Ok((rate, at.processor()? - before))
        })
    };
    once(pair.without)?;
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (with, without) = (once(pair.with)?, once(pair.without)?);
        let say = |(rate, seconds): (f64, f64)| format!("{rate:.0}/s for {seconds:.2} s of its processor time");
        println!("with {}: {}; without: {}", pair.what, say(with), say(without));
        rates.push(with.0 / without.0);
        costs.push(with.1 / without.1);
    }
    let (rate, cost) = (median(&rates), median(&costs));
    println!("with {}, {}: {rate:.2} of the rate and {cost:.2} of the processor time without", pair.what, who.title());
    Ok(())
}

/// A session that looks at the database as it was before the load, as a long report or a forgotten console does.
fn snapshot(hapax: &Path, load: &Load, rounds: u32) -> Result<()> {
    let at = Who::Postgres.start(hapax)?;
    let database = at.database().context("a database")?;
    let once = || with_topic(load, &at, &[], |topic| produce(load, &at, topic, 2_000_000, 100, &[]));
    once()?;
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let without = once()?;
        let mut session = database.connect("postgres")?;
        session.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM kafka.batches")?;
        let with = once()?;
        drop(session);
        println!("{with:.0}/s beside an old snapshot, {without:.0}/s without");
        ratios.push(with / without);
    }
    println!("beside an old snapshot: {:.2} of without", median(&ratios));
    Ok(())
}

fn start(hapax: &Path) -> Result<()> {
    for who in Who::ALL {
        let running = who.start(hapax)?;
        println!(
            "{}: {:.2} s until it listens, {:.0} MiB idle",
            who.title(),
            running.start.as_secs_f64(),
            running.resident()?
        );
    }
    Ok(())
}

/// Ten gigabytes through a topic that keeps one; memory must not follow.
fn long(hapax: &Path, load: &Load) -> Result<()> {
    const STEPS: u64 = 10;
    const RECORDS: u64 = 1_000_000;
    let at = Who::Embedded.start(hapax)?;
    with_topic(load, &at, &["retention.bytes=1073741824"], |topic| {
        for step in 1..=STEPS {
            let rate = produce(load, &at, topic, RECORDS, 1024, &[])?;
            println!("{step} GiB: {:.0} MiB resident, {rate:.0} records/s", at.resident()?);
        }
        Ok(())
    })?;
    ensure!(at.resident()? < 1024.0, "memory follows the log");
    Ok(())
}
