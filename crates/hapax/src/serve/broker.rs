//! The pages of a broker: what it counts as Prometheus reads it, whether it is well, whether it leads.

use std::fmt;
use std::sync::Arc;

use hapax_broker::broker::Broker;
use hapax_broker::metrics::{BOUNDS_US, Latencies, Metrics};
use hapax_broker::server::Traffic;
use hapax_broker::store::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::registry::Registry;
use serde_json::json;

use super::Pages;
use super::health::Verdict;
use super::metrics::{Labels, Number, describe, encode_number, of_descriptors, seconds};
use super::names::{self, Name};
use crate::descriptors::Descriptors;
use crate::roster::now_ms;

/// A broker as one look sees it.
#[derive(Debug)]
struct Seen {
    leads: bool,
    leader: Option<i32>,
    brokers: usize,
    topics: usize,
    partitions: usize,
    lost_records: u64,
    groups: usize,
}

/// What the pages are made from.
#[derive(Clone)]
pub(crate) struct BrokerPages {
    look: Arc<dyn Fn() -> Seen + Send + Sync>,
    metrics: Arc<Metrics>,
    traffic: Arc<Traffic>,
    descriptors: Arc<Descriptors>,
    started_at_ms: u64,
}

impl fmt::Debug for BrokerPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerPages").finish_non_exhaustive()
    }
}

impl BrokerPages {
    /// The pages of this broker.
    pub(crate) fn new<S: Store>(broker: Arc<Broker<S>>, traffic: Arc<Traffic>, descriptors: Arc<Descriptors>) -> Self {
        let metrics = Arc::clone(&broker.config.metrics);
        let look = move || {
            let topics = broker.catalog.all();
            Seen {
                leads: broker.lead.leads(),
                leader: broker.lead.leader().map(|leader| leader.id.0),
                brokers: broker.lead.brokers().len(),
                topics: topics.len(),
                partitions: topics.iter().map(|topic| topic.partitions.len()).sum(),
                lost_records: broker.lead.lost_records(),
                groups: broker.groups.known(),
            }
        };
        Self { look: Arc::new(look), metrics, traffic, descriptors, started_at_ms: now_ms() }
    }
}

impl Pages for BrokerPages {
    fn metrics(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }

    /// A broker that answers this is well: whatever it cannot go on after ends the process.
    fn health(&self) -> Verdict {
        Verdict { good: true, body: json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}) }
    }

    /// Ready is who leads: a standby takes no records, and clients are sent to the leader.
    fn ready(&self) -> Verdict {
        let Seen { leads, leader, brokers, .. } = (self.look)();
        let word = if leads { "ready" } else { "standby" };
        Verdict { good: leads, body: json!({"status": word, "leader": leader, "brokers": brokers}) }
    }

    fn descriptors(&self) -> &Arc<Descriptors> {
        &self.descriptors
    }
}

impl Collector for BrokerPages {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let seen = (self.look)();
        for name in names::OF_ANY_PROCESS.into_iter().chain(names::OF_BROKER) {
            let mut metric = describe(&mut encoder, name)?;
            if name.name == names::BROKER_COMMITS.name {
                let read = self.metrics.commits.read();
                let buckets = buckets(&read);
                metric.encode_histogram::<NoLabelSet>(seconds(read.sum_us), read.count(), &buckets, None)?;
                continue;
            }
            for (labels, value) in self.values(name, &seen) {
                encode_number(&mut metric, name, labels, value)?;
            }
        }
        Ok(())
    }
}

fn buckets(read: &Latencies) -> Vec<(f64, u64)> {
    let bounds = BOUNDS_US.iter().map(|us| seconds(*us)).chain([f64::INFINITY]);
    bounds.zip(read.buckets).collect()
}

fn plain(value: u64) -> Vec<(Labels, Number)> {
    vec![(Vec::new(), Number::Whole(value))]
}

impl BrokerPages {
    /// What there is to say under a name.
    fn values(&self, name: &Name, seen: &Seen) -> Vec<(Labels, Number)> {
        let labelled =
            |label: &'static str, value: &str, number| (vec![(label, value.to_owned())], Number::Whole(number));
        let metrics = &self.metrics;
        match name.name {
            n if n == names::BUILD.name => vec![labelled("version", env!("CARGO_PKG_VERSION"), 1)],
            n if n == names::STARTED.name => {
                vec![(Vec::new(), Number::Real(seconds(self.started_at_ms.saturating_mul(1000))))]
            }
            n if n == names::REQUESTS.name => {
                self.traffic.requests().map(|(api, count)| labelled("api", api, count)).collect()
            }
            n if n == names::ERRORS.name => self.errors(),
            n if n == names::REMOVED.name => vec![
                labelled("why", "retention", metrics.removed_bytes.get()),
                labelled("why", "compaction", metrics.compacted_bytes.get()),
            ],
            n if n == names::BROKER_COMMIT_MAX.name => {
                vec![(Vec::new(), Number::Real(seconds(metrics.commits.read().max_us)))]
            }
            n if n == names::BROKER_SNAPSHOT.name => {
                let age = metrics.snapshot_age().into_iter();
                age.map(|age| (Vec::new(), Number::Real(age.as_secs_f64()))).collect()
            }
            other => match of_descriptors(other, &self.descriptors) {
                Some(value) => vec![(Vec::new(), value)],
                None => self.of_place(other, seen).or_else(|| self.of_traffic(other)).map_or_else(Vec::new, plain),
            },
        }
    }

    fn errors(&self) -> Vec<(Labels, Number)> {
        let errors = self.metrics.requests().into_iter().filter(|((_, error), _)| *error != 0);
        errors
            .map(|((api, error), count)| {
                let api = hapax_broker::api::Route::find(api).map_or_else(|| api.to_string(), |it| it.name.to_owned());
                (vec![("api", api), ("error", error.to_string())], Number::Whole(count))
            })
            .collect()
    }

    fn of_place(&self, name: &str, seen: &Seen) -> Option<u64> {
        Some(match name {
            n if n == names::BROKER_LEADS.name => u64::from(seen.leads),
            n if n == names::BROKERS.name => seen.brokers as u64,
            n if n == names::TOPICS.name => seen.topics as u64,
            n if n == names::PARTITIONS.name => seen.partitions as u64,
            n if n == names::LOST.name => seen.lost_records,
            n if n == names::GROUPS.name => seen.groups as u64,
            n if n == names::CONNECTIONS.name => self.traffic.connections(),
            n if n == names::CONNECTIONS_TAKEN.name => self.traffic.connections_taken(),
            n if n == names::CONNECTIONS_REFUSED.name => self.traffic.connections_refused(),
            n if n == names::RECEIVED.name => self.traffic.bytes_in(),
            n if n == names::SENT.name => self.traffic.bytes_out(),
            _ => return None,
        })
    }

    fn of_traffic(&self, name: &str) -> Option<u64> {
        let metrics = &self.metrics;
        let count = match name {
            n if n == names::PRODUCED_RECORDS.name => &metrics.produced_records,
            n if n == names::PRODUCED_BYTES.name => &metrics.produced_bytes,
            n if n == names::FETCHED_RECORDS.name => &metrics.fetched_records,
            n if n == names::FETCHED_BYTES.name => &metrics.fetched_bytes,
            n if n == names::BROKER_COMMITS_FAILED.name => &metrics.commits_failed,
            n if n == names::DUPLICATES.name => &metrics.duplicates,
            n if n == names::OUT_OF_ORDER.name => &metrics.out_of_order,
            n if n == names::PRODUCERS_FENCED.name => &metrics.fenced,
            n if n == names::REBALANCES.name => &metrics.rebalances,
            n if n == names::BROKER_TAKEOVERS.name => &metrics.takeovers,
            _ => return None,
        };
        Some(count.get())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn pages(leads: bool) -> BrokerPages {
        let look =
            move || Seen { leads, leader: Some(1), brokers: 2, topics: 3, partitions: 7, lost_records: 0, groups: 0 };
        BrokerPages {
            look: Arc::new(look),
            metrics: Arc::default(),
            traffic: Arc::default(),
            descriptors: Descriptors::new(),
            started_at_ms: 1000,
        }
    }

    /// Goal: every name is on the page with what was counted. Method: some counts, and a look at every name.
    #[test]
    fn every_name_is_on_the_page() {
        let pages = pages(true);
        pages.metrics.commits.add(Duration::from_millis(3));
        pages.metrics.request(0, 45);
        pages.metrics.request(0, 0);
        pages.metrics.set_snapshot_age(Some(Duration::from_secs(7)));
        let text = pages.metrics().expect("a page");
        for name in names::OF_BROKER {
            let stem = name.name.strip_suffix("_total").unwrap_or(name.name);
            assert!(text.contains(&format!("# TYPE {stem} ")), "{}", name.name);
        }
        for line in [
            "hapax_broker_leads{} 1.0",
            "hapax_broker_partitions{} 7.0",
            "hapax_broker_commit_latency_seconds_bucket{le=\"0.005\"} 1",
            "hapax_broker_commit_latency_max_seconds{} 0.003",
            "error=\"45\"} 1",
            "hapax_broker_oldest_snapshot_seconds{} 7.0",
            "hapax_broker_removed_bytes_total{why=\"retention\"} 0",
        ] {
            assert!(text.contains(line), "no {line} in\n{text}");
        }
        assert!(!text.contains("error=\"0\""), "an answer without an error is no error");
    }

    /// Goal: only who leads is ready; a standby is well all the same.
    #[test]
    fn a_standby_is_well_and_not_ready() {
        assert!(pages(true).ready().good && pages(false).health().good);
        let standby = pages(false).ready();
        assert_eq!((standby.good, &standby.body["leader"]), (false, &json!(1)));
    }
}
