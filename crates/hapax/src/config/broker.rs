//! `broker`: the rules over its fields, and its typed form.
//!
//! Reads: the effective configuration. Writes: problems, or [`Broker`]. Not here: what a broker does with it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hapax_broker::config::{BrokerConfig, TopicConfig};
use hapax_model::units::ByteSize;
#[cfg(feature = "postgres")]
use hapax_sql::postgres::PostgresUrl;

use super::merge::fill;
use super::node::{Origin, shown};
use super::problem::{Place, Problem, Problems, code};
use super::schema::BROKER;
use super::value::{Held, Value};

/// `broker`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broker {
    pub(crate) listen: String,
    pub(crate) store: BrokerStore,
    pub(crate) id: i32,
    auto_create_topics: bool,
    partitions: i32,
    topic_defaults: TopicConfig,
    max_request: ByteSize,
    max_connections: usize,
    max_connections_per_address: usize,
    idle_timeout: Duration,
    rebalance_delay: Duration,
    offsets_retention: Duration,
    producer_expiry: Duration,
    retention_interval: Duration,
}

/// Where records are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BrokerStore {
    /// One file in this folder.
    Embedded(PathBuf),
    /// A PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresUrl>),
}

impl Broker {
    /// A broker of which nobody said anything; its folder lies in `folder`.
    pub(crate) fn unsaid(folder: &Path) -> Self {
        let nothing = Value { place: Place::whole(""), origin: Origin::File, held: Held::Object(Vec::new()) };
        build(&fill(nothing, &BROKER), folder).expect("every field of the broker has a default")
    }

    /// The same as the broker itself takes it.
    pub(crate) fn told(&self) -> BrokerConfig {
        BrokerConfig {
            max_frame: self.max_request.as_usize(),
            max_connections: self.max_connections,
            max_connections_per_address: self.max_connections_per_address,
            idle: self.idle_timeout,
            auto_create_topics: self.auto_create_topics,
            default_partitions: self.partitions,
            initial_rebalance_delay: self.rebalance_delay,
            offsets_retention: self.offsets_retention,
            producer_id_expiration: self.producer_expiry,
            retention_interval: self.retention_interval,
            topic_defaults: self.topic_defaults.clone(),
            ..BrokerConfig::default()
        }
    }
}

/// What several fields say together, or only the broker can judge.
pub(super) fn check(effective: &Value, problems: &mut Problems, warnings: &mut Problems) {
    let Some(broker) = effective.get("broker") else { return };
    check_listen(broker, problems);
    check_store(broker, problems, warnings);
    for (name, value) in topic_defaults(broker) {
        if let Err(error) = TopicConfig::checked([(name.to_owned(), value.text().unwrap_or_default().to_owned())]) {
            let cure = "write a setting of topics by Kafka's name, such as retention.ms: \"604800000\"";
            problems.add(Problem::new(&value.place, code::BROKER_TOPIC_SETTING, shown(&error.to_string()), cure));
        }
    }
}

/// An address that is written as one is judged here, at its place; a name is looked up when the broker starts.
fn check_listen(broker: &Value, problems: &mut Problems) {
    let Some(listen) = broker.get("listen") else { return };
    let address = listen.text().and_then(|text| text.parse::<std::net::SocketAddr>().ok());
    if let Some(address) = address.filter(|address| !address.ip().to_canonical().is_loopback()) {
        let message = format!("other machines can reach {address}, and the broker lets everybody do everything");
        let cure = "listen on 127.0.0.1 or [::1]";
        problems.add(Problem::new(&listen.place, code::BROKER_OPEN, message, cure));
    }
}

fn check_store(broker: &Value, problems: &mut Problems, warnings: &mut Problems) {
    let Some(store) = broker.get("store").filter(|store| store.text() != Some("embedded")) else { return };
    super::rules::check_postgres_url(store, "broker.store", problems);
    if let Some(data) = broker.get("data").filter(|data| data.place.line > 0) {
        let message = "\"broker.data\" has no effect: the store is a database";
        warnings.add(Problem::new(&data.place, code::NO_EFFECT, message, "remove it"));
    }
}

fn topic_defaults(broker: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = match broker.get("topicDefaults").map(|defaults| &defaults.held) {
        Some(Held::Map(entries)) => entries.as_slice(),
        Some(_) | None => &[],
    };
    entries.iter().map(|(name, value)| (name.as_str(), value))
}

/// The typed form; relative paths begin at `folder`.
pub(super) fn build(broker: &Value, folder: &Path) -> Option<Broker> {
    let text = |name: &str| broker.get(name)?.text();
    let duration = |name: &str| broker.get(name)?.duration();
    let count = |name: &str| broker.get(name)?.integer()?.try_into().ok();
    let said = topic_defaults(broker).map(|(name, value)| Some((name.to_owned(), value.text()?.to_owned())));
    Some(Broker {
        listen: text("listen")?.to_owned(),
        store: build_store(text("store")?, &folder.join(text("data")?))?,
        id: broker.get("id")?.integer()?.try_into().ok()?,
        auto_create_topics: broker.get("autoCreateTopics")?.boolean()?,
        partitions: broker.get("partitions")?.integer()?.try_into().ok()?,
        topic_defaults: TopicConfig::checked(said.collect::<Option<Vec<_>>>()?).ok()?,
        max_request: broker.get("maxRequest")?.size()?,
        max_connections: count("maxConnections")?,
        max_connections_per_address: count("maxConnectionsPerAddress")?,
        idle_timeout: duration("idleTimeout")?,
        rebalance_delay: duration("rebalanceDelay")?,
        offsets_retention: duration("offsetsRetention")?,
        producer_expiry: duration("producerExpiry")?,
        retention_interval: duration("retentionInterval")?,
    })
}

/// `embedded`, or a URL that was read once already.
fn build_store(store: &str, data: &Path) -> Option<BrokerStore> {
    if store == "embedded" {
        return Some(BrokerStore::Embedded(data.to_owned()));
    }
    #[cfg(feature = "postgres")]
    return store.parse().ok().map(|url| BrokerStore::Postgres(Box::new(url)));
    #[cfg(not(feature = "postgres"))]
    None
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{assert_problem, loaded};

    use super::*;

    /// Goal: what is said reaches the broker, and what is not said is Kafka's default. Method: nothing, and a whole block.
    #[test]
    fn the_block_becomes_what_the_broker_is_told() {
        let unsaid = Broker::unsaid(Path::new("etc"));
        assert_eq!(unsaid.store, BrokerStore::Embedded("etc/hapax-data/broker".into()));
        let (told, default) = (unsaid.told(), BrokerConfig::default());
        assert_eq!((told.max_frame, told.idle, told.max_connections), (default.max_frame, default.idle, 10_000));
        assert_eq!(told.producer_id_expiration, default.producer_id_expiration);
        let text = "broker:\n  data: log\n  listen: '[::1]:0'\n  partitions: 3\n  rebalanceDelay: 0ms\n  \
                    topicDefaults: { retention.ms: \"1000\" }\n";
        let said = loaded(text).config.broker.expect("a broker");
        assert_eq!((said.store, said.listen.as_str()), (BrokerStore::Embedded("etc/log".into()), "[::1]:0"));
        let told = loaded(text).config.broker.expect("a broker").told();
        assert_eq!((told.default_partitions, told.initial_rebalance_delay), (3, Duration::ZERO));
        assert_eq!(told.topic_defaults.0.get("retention.ms").map(String::as_str), Some("1000"));
    }

    /// Goal: each mistake is told at its place with a cure. Method: one of each.
    #[test]
    fn mistakes_are_told_at_their_place() {
        assert_problem("broker:\n  listen: 0.0.0.0:9092\n", 2, "HX1500", &["other machines", "127.0.0.1"]);
        assert_problem("broker:\n  listen: '[::ffff:10.0.0.1]:9092'\n", 2, "HX1500", &["other machines"]);
        let unknown = "broker:\n  topicDefaults:\n    retention.day: \"7\"\n";
        assert_problem(unknown, 3, "HX1501", &["retention.day", "retention.ms"]);
        let value = "broker:\n  topicDefaults:\n    cleanup.policy: \"shred\"\n";
        assert_problem(value, 3, "HX1501", &["shred"]);
        assert_problem("broker:\n  store: mysql://h/d\n", 2, "HX1016", &["no store of the broker"]);
        assert_problem("broker:\n  listen: localhost\n", 2, "HX1016", &["the port is missing"]);
    }
}
