//! `/metrics`: the meters as Prometheus reads them, encoded when somebody asks.
//!
//! Reads: the roster. Invariant: a scrape takes each meter's lock once, for a copy; deliveries never wait for it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use hapax_engine::runtime::{BOUNDS_US, Histogram, Meter, Reading};
use hapax_model::delivery_state::WorkerState;
use hapax_model::position::DeliveryId;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::names::{self, Name};
use crate::descriptors::Descriptors;
use crate::roster::{Roster, now_ms};

/// What the text is.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const QUANTILES: [(&str, f64); 3] = [("0.5", 0.5), ("0.95", 0.95), ("0.99", 0.99)];

/// The page.
pub(crate) fn page(roster: &Roster) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Page(roster.clone())));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Page(Roster);

/// A delivery as one scrape sees it.
struct Seen {
    id: DeliveryId,
    reading: Reading,
    recent: [Option<f64>; QUANTILES.len()],
    now_ms: u64,
}

pub(super) type Labels = Vec<(&'static str, String)>;

/// A value of either kind.
pub(super) enum Number {
    Whole(u64),
    Real(f64),
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let seen: Vec<Seen> = self.0.members().into_iter().map(|member| see(member.id, &member.meter)).collect();
        for name in names::OF_DELIVERIES {
            let mut metric = describe(&mut encoder, name)?;
            for delivery in &seen {
                match histogram_of(name, &delivery.reading) {
                    Some(histogram) => encode_histogram(&mut metric, delivery, histogram)?,
                    None => encode_values(&mut metric, name, delivery)?,
                }
            }
        }
        for name in names::OF_PROCESS {
            let mut metric = describe(&mut encoder, name)?;
            for (labels, value) in self.of_process(name.name) {
                encode_number(&mut metric, name, labels, value)?;
            }
        }
        Ok(())
    }
}

fn see(id: DeliveryId, meter: &Meter) -> Seen {
    let recent = QUANTILES.map(|(_, share)| meter.recent_latency(share).map(|took| took.as_secs_f64()));
    Seen { id, reading: meter.read(), recent, now_ms: now_ms() }
}

pub(super) fn describe<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'static Name,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    // The encoder adds the ending of a counter by itself.
    let stem = name.name.strip_suffix("_total").unwrap_or(name.name);
    encoder.encode_descriptor(stem, name.help, None, name.kind)
}

fn encode_values(metric: &mut MetricEncoder<'_>, name: &'static Name, delivery: &Seen) -> fmt::Result {
    for (label, value) in values(name.name, delivery) {
        let mut labels = of_delivery(&delivery.id);
        match (name.labels, label) {
            ([code, stage], Label::Two(first, second)) => labels.extend([(*code, first), (*stage, second)]),
            ([only], Label::One(value)) => labels.push((*only, value)),
            (_, Label::None | Label::One(_) | Label::Two(..)) => {}
        }
        encode_number(metric, name, labels, value)?;
    }
    Ok(())
}

fn of_delivery(id: &DeliveryId) -> Labels {
    let values = [&id.workflow, &id.sink, &id.lane];
    names::DELIVERY.into_iter().zip(values.map(ToOwned::to_owned)).collect()
}

pub(super) fn encode_number(metric: &mut MetricEncoder<'_>, name: &Name, labels: Labels, value: Number) -> fmt::Result {
    let mut one = metric.encode_family(&labels)?;
    match (name.kind, value) {
        (MetricType::Counter, Number::Whole(value)) => one.encode_counter::<NoLabelSet, _, f64>(&value, None),
        (MetricType::Counter, Number::Real(value)) => one.encode_counter::<NoLabelSet, _, f64>(&value, None),
        #[allow(clippy::cast_precision_loss)] // gauges are floating point in Prometheus
        (_, Number::Whole(value)) => one.encode_gauge(&(value as f64)),
        (_, Number::Real(value)) => one.encode_gauge(&value),
    }
}

fn encode_histogram(metric: &mut MetricEncoder<'_>, delivery: &Seen, histogram: &Histogram) -> fmt::Result {
    let bounds = BOUNDS_US.iter().map(|us| seconds(*us)).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(histogram.buckets).collect();
    let labels = of_delivery(&delivery.id);
    let mut one = metric.encode_family(&labels)?;
    one.encode_histogram::<NoLabelSet>(seconds(histogram.sum_us), histogram.count, &buckets, None)
}

fn histogram_of<'a>(name: &Name, reading: &'a Reading) -> Option<&'a Histogram> {
    match name.name {
        n if n == names::COMMIT_LATENCY.name => Some(&reading.commit_latency),
        n if n == names::DELIVERY_LATENCY.name => Some(&reading.delivery_latency),
        _ => None,
    }
}

enum Label {
    None,
    One(String),
    Two(String, String),
}

fn plain(value: u64) -> Vec<(Label, Number)> {
    vec![(Label::None, Number::Whole(value))]
}

fn real(value: f64) -> Vec<(Label, Number)> {
    vec![(Label::None, Number::Real(value))]
}

fn split<const N: usize>(parts: [(&str, u64); N]) -> Vec<(Label, Number)> {
    parts.into_iter().map(|(label, value)| (Label::One(label.to_owned()), Number::Whole(value))).collect()
}

/// What one delivery has to say under a name.
fn values(name: &str, delivery: &Seen) -> Vec<(Label, Number)> {
    let said = of_ledger(name, delivery).or_else(|| of_epochs(name, delivery)).or_else(|| of_rows(name, delivery));
    said.or_else(|| of_owner(name, delivery)).unwrap_or_default()
}

fn of_ledger(name: &str, delivery: &Seen) -> Option<Vec<(Label, Number)>> {
    let Seen { reading, now_ms, .. } = delivery;
    let totals = reading.ledger.totals;
    Some(match name {
        n if n == names::OLDEST.name => {
            let age = reading.oldest_in_flight_ms.map_or(0, |at| now_ms.saturating_sub(at));
            real(seconds(age.saturating_mul(1000)))
        }
        n if n == names::ADDS_UP.name => plain(u64::from(reading.ledger.adds_up())),
        n if n == names::READ.name => plain(totals.read),
        n if n == names::DELIVERED.name => plain(totals.delivered),
        n if n == names::FILTERED.name => plain(totals.filtered),
        n if n == names::DEAD.name => plain(totals.dead),
        n if n == names::IN_FLIGHT.name => plain(reading.ledger.in_flight),
        n if n == names::ROWS.name => plain(totals.rows),
        n if n == names::BYTES.name => plain(reading.bytes_read),
        n if n == names::POSITION.name => reading.bookmark.iter().flat_map(|b| plain(b.position.offset)).collect(),
        n if n == names::EXTENT.name => reading.extent.into_iter().flat_map(plain).collect(),
        n if n == names::UNKNOWN.name => plain(reading.unknown_fields.iter().map(|(_, count)| count).sum()),
        _ => return None,
    })
}

fn of_epochs(name: &str, delivery: &Seen) -> Option<Vec<(Label, Number)>> {
    let Seen { reading, recent, .. } = delivery;
    Some(match name {
        n if n == names::EPOCH.name => plain(reading.epoch),
        n if n == names::LAST_COMMIT.name => {
            reading.committed_at_ms.into_iter().flat_map(|at| real(seconds(at.saturating_mul(1000)))).collect()
        }
        n if n == names::EPOCHS.name => {
            split([("committed", reading.commits), ("aborted", reading.aborts), ("in_doubt", reading.in_doubt)])
        }
        n if n == names::EMPTY.name => plain(reading.empty_commits),
        n if n == names::CLOSED_EARLY.name => {
            let closed = reading.closed_early;
            split([("events", closed.events), ("bytes", closed.bytes), ("memory", closed.memory)])
        }
        n if n == names::COMMIT_MAX.name => real(seconds(reading.commit_latency.max_us)),
        n if n == names::DELIVERY_MAX.name => real(seconds(reading.delivery_latency.max_us)),
        n if n == names::DELIVERY_RECENT.name => {
            let known = QUANTILES.iter().zip(recent).filter_map(|((quantile, _), value)| Some((quantile, (*value)?)));
            known.map(|(quantile, value)| (Label::One((*quantile).to_owned()), Number::Real(value))).collect()
        }
        _ => return None,
    })
}

fn of_rows(name: &str, delivery: &Seen) -> Option<Vec<(Label, Number)>> {
    let (written, repeats) = (delivery.reading.written, delivery.reading.repeats);
    Some(match name {
        n if n == names::UPSERTS.name => {
            let known = written.inserts + written.updates + written.deletes + written.unchanged;
            split([
                ("insert", written.inserts),
                ("update", written.updates),
                ("delete", written.deletes),
                ("unchanged", written.unchanged),
                ("unknown", written.upserts.saturating_sub(known)),
            ])
        }
        n if n == names::FAILURES.name => plain(written.failures),
        n if n == names::LETTERS.name => by_cause(&delivery.reading),
        n if n == names::REPEATS.name => split([
            ("ignore", repeats.ignore),
            ("newer", repeats.newer),
            ("landed", repeats.landed),
            ("fence", repeats.fence),
        ]),
        _ => return None,
    })
}

fn of_owner(name: &str, delivery: &Seen) -> Option<Vec<(Label, Number)>> {
    let reading = &delivery.reading;
    Some(match name {
        n if n == names::STATE.name => {
            split(WorkerState::ALL.map(|state| (state.name(), u64::from(reading.state == state))))
        }
        n if n == names::STATE_SINCE.name => real(seconds(reading.state_since_ms.saturating_mul(1000))),
        n if n == names::RETRIES.name => plain(reading.retries),
        n if n == names::FENCED.name => plain(reading.fenced),
        n if n == names::TAKEOVERS.name => {
            let takeovers = reading.takeovers;
            split([("standby", takeovers.standby), ("forced", takeovers.forced), ("reclaim", takeovers.reclaim)])
        }
        _ => return None,
    })
}

/// Letters by code and stage; several causes may share both.
fn by_cause(reading: &Reading) -> Vec<(Label, Number)> {
    let mut sums = std::collections::BTreeMap::new();
    for cause in &reading.causes {
        *sums.entry((cause.code, cause.stage.name())).or_insert(0) += cause.count;
    }
    let label = |(code, stage): (&str, &str)| Label::Two(code.to_owned(), stage.to_owned());
    sums.into_iter().map(|(key, count)| (label(key), Number::Whole(count))).collect()
}

impl Page {
    fn of_process(&self, name: &str) -> Vec<(Labels, Number)> {
        let process = &self.0.process;
        let load = |counter: &AtomicU64| Number::Whole(counter.load(Ordering::Relaxed));
        let labelled = |label: &'static str, value: &str, number| (vec![(label, value.to_owned())], number);
        match name {
            n if n == names::BUILD.name => vec![labelled("version", env!("CARGO_PKG_VERSION"), Number::Whole(1))],
            n if n == names::STARTED.name => {
                vec![(Vec::new(), Number::Real(seconds(process.started_at_ms.saturating_mul(1000))))]
            }
            n if n == names::MEMORY_TOTAL.name => vec![(Vec::new(), Number::Whole(process.memory_total))],
            n if n == names::MEMORY_USED.name => vec![(Vec::new(), Number::Whole(process.memory.used() as u64))],
            n if n == names::ALERTS.name => vec![
                labelled("result", "sent", load(&process.alerts_sent)),
                labelled("result", "failed", load(&process.alerts_failed)),
                labelled("result", "dropped", load(&process.alerts_dropped)),
            ],
            n if n == names::SNAPSHOT.name => {
                let ages = process.snapshot_ages().into_iter();
                ages.map(|(target, age)| labelled("target", &target, Number::Real(age.as_secs_f64()))).collect()
            }
            n if n == names::RELOADS.name => vec![
                labelled("result", "done", load(&process.reloads_done)),
                labelled("result", "refused", load(&process.reloads_refused)),
            ],
            other => {
                of_descriptors(other, &process.descriptors).map_or_else(Vec::new, |value| vec![(Vec::new(), value)])
            }
        }
    }
}

/// What a process says about its descriptors, and about the connections to its pages.
pub(super) fn of_descriptors(name: &str, descriptors: &Descriptors) -> Option<Number> {
    Some(Number::Whole(match name {
        n if n == names::DESCRIPTORS_OPEN.name => descriptors.open(),
        n if n == names::DESCRIPTORS_LIMIT.name => descriptors.limit(),
        n if n == names::DESCRIPTORS_EXHAUSTED.name => descriptors.exhausted(),
        n if n == names::PAGES_CLOSED.name => descriptors.pages_closed(),
        _ => return None,
    }))
}

pub(super) fn seconds(us: u64) -> f64 {
    std::time::Duration::from_micros(us).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hapax_engine::memory::MemoryBudget;

    use super::*;
    use crate::roster::Member;

    /// Goal: every name is on the page, with a value wherever a fresh delivery has one, and odd labels are escaped.
    /// Method: one delivery that never ran, with a quote in its lane.
    #[test]
    fn every_name_is_on_the_page() {
        let roster = Roster::new(&MemoryBudget::new(1 << 20), 1 << 20);
        let id = DeliveryId { workflow: "orders".into(), sink: "sqlite".into(), lane: "a \"b\".jsonl".into() };
        roster.add(Member { id, meter: Arc::default(), commit_timeout: Duration::from_secs(30) });
        roster.set_snapshot_age("postgres://shop", Some(Duration::from_millis(1500)));
        let page = page(&roster).expect("a page");
        assert!(page.contains("hapax_oldest_snapshot_seconds{target=\"postgres://shop\"} 1.5"), "{page}");
        for Name { name, help, .. } in names::OF_DELIVERIES.iter().chain(names::OF_PROCESS) {
            let stem = name.strip_suffix("_total").unwrap_or(name);
            assert!(page.contains(&format!("# HELP {stem} {help}\n")), "{name} is missing:\n{page}");
        }
        // A delivery that never ran has no position, commit, letter or latency yet.
        let nothing_yet = [
            "hapax_position",
            "hapax_source_extent",
            "hapax_last_commit_timestamp_seconds",
            "hapax_dead_letters_total",
            "hapax_delivery_latency_recent_seconds",
        ];
        for Name { name, .. } in names::OF_DELIVERIES.iter().filter(|name| !nothing_yet.contains(&name.name)) {
            let lines = page.lines().filter(|line| line.starts_with(name) && line.contains("workflow=\"orders\""));
            assert!(lines.count() > 0, "{name} has no value:\n{page}");
        }
        assert!(page.contains("lane=\"a \\\"b\\\".jsonl\""), "{page}");
        assert!(page.contains("state=\"starting\"} 1"), "{page}");
        assert!(page.ends_with("# EOF\n"));
    }

    /// Goal: epochs are told by how they ended. Method: another number of each.
    #[test]
    fn epochs_are_told_by_their_end() {
        let id = DeliveryId { workflow: "orders".into(), sink: "sqlite".into(), lane: "0".into() };
        let reading = Reading { commits: 3, aborts: 2, in_doubt: 1, ..Reading::default() };
        let seen = Seen { id, reading, recent: [None; QUANTILES.len()], now_ms: 0 };
        let told = values(names::EPOCHS.name, &seen).into_iter().map(|said| {
            let (Label::One(end), Number::Whole(count)) = said else { panic!("one label and a count") };
            (end, count)
        });
        let expected = [("committed", 3), ("aborted", 2), ("in_doubt", 1)].map(|(end, count)| (end.to_owned(), count));
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}
