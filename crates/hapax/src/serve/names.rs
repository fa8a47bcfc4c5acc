//! The names of all metrics, with what they mean. `docs/reference/metrics.md` is written from here, and a test holds the
//! two together. Names are a promise: dashboards and alarms are built on them.

use prometheus_client::metrics::MetricType;

/// One metric.
pub(crate) struct Name {
    /// As it is scraped; histograms add `_bucket`, `_sum` and `_count`.
    pub(crate) name: &'static str,
    pub(crate) kind: MetricType,
    /// Labels besides those of the delivery.
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// Labels of everything that belongs to a delivery.
pub(crate) const DELIVERY: [&str; 3] = ["workflow", "sink", "lane"];

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Name {
    Name { name, kind: MetricType::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Name {
    Name { name, kind: MetricType::Gauge, labels, help }
}

const fn histogram(name: &'static str, help: &'static str) -> Name {
    Name { name, kind: MetricType::Histogram, labels: &[], help }
}

macro_rules! names {
    ($list:ident: $($constant:ident = $value:expr;)*) => {
        $(pub(crate) const $constant: Name = $value;)*
        /// All of them, in the order of the page.
        pub(crate) const $list: &[Name] = &[$($constant),*];
    };
}

names! { OF_DELIVERIES:
    STATE = gauge("hapax_delivery_state", &["state"],
        "1 for the state that the delivery is in: starting, standby, running, waiting, paused, finished, drained, stopped");
    STATE_SINCE = gauge("hapax_delivery_state_since_timestamp_seconds", &[],
        "Since when the delivery is in that state, in seconds since 1970; of a pattern whose files are looked through, the lane is the pattern");
    OLDEST = gauge("hapax_oldest_undelivered_seconds", &[],
        "Age of the oldest input that was read and is not committed; 0 if there is none. The alarm to have");
    ADDS_UP = gauge("hapax_ledger_adds_up", &[], "1 if read = delivered + filtered + dead + in flight, 0 if not: a bug, or a changed target");
    READ = counter("hapax_inputs_read_total", &[], "Inputs read and committed, since the delivery's first claim");
    DELIVERED = counter("hapax_inputs_delivered_total", &[], "Inputs all of whose outputs are in the target, since the first claim");
    FILTERED = counter("hapax_inputs_filtered_total", &[], "Inputs that had no output, since the first claim");
    DEAD = counter("hapax_inputs_dead_total", &[], "Inputs that became dead letters, since the first claim");
    IN_FLIGHT = gauge("hapax_inputs_in_flight", &[], "Inputs read and not yet committed");
    ROWS = counter("hapax_rows_total", &[], "Rows delivered, since the first claim");
    BYTES = counter("hapax_bytes_read_total", &[], "Bytes of inputs read");
    EPOCH = gauge("hapax_epoch", &[], "The last committed epoch");
    POSITION = gauge("hapax_position", &[], "Where the next epoch begins in its source: a line, a byte or an event, as the source counts");
    EXTENT = gauge("hapax_source_extent", &[], "Where the source ended when the worker claimed, if the source can tell; counted as the position is");
    LAST_COMMIT = gauge("hapax_last_commit_timestamp_seconds", &[], "When the last epoch committed, in seconds since 1970");
    EPOCHS = counter("hapax_epochs_total", &["result"], "Epochs by result: committed, aborted (rolled back or refused, and tried again unless the delivery stopped), in_doubt (no answer came; found out afterwards)");
    EMPTY = counter("hapax_epochs_empty_total", &[], "Committed epochs that only moved the position");
    CLOSED_EARLY = counter("hapax_epochs_closed_early_total", &["bound"], "Epochs that a bound closed before their time: events (maxEvents), bytes (maxBytes), memory");
    UPSERTS = counter("hapax_upserts_total", &["result"], "Rows sent to the target, after reduction, by what became of them: insert, update, delete, unchanged, unknown (the target does not tell)");
    FAILURES = counter("hapax_row_failures_total", &[], "Rows that the target refused");
    LETTERS = counter("hapax_dead_letters_total", &["code", "stage"], "Dead letters by cause: the error's code, and the stage at which the input died");
    RETRIES = counter("hapax_retries_total", &[], "Tries of source, target or state store that had to be repeated");
    REPEATS = counter("hapax_repeats_stopped_total", &["layer"], "Events kept from being written twice, by layer: ignore (key already there), newer (version not newer), landed (epoch found committed after doubt), fence (epoch refused, another worker has it)");
    FENCED = counter("hapax_fenced_total", &[], "How often another worker took the delivery away from this one");
    TAKEOVERS = counter("hapax_takeovers_total", &["how"], "How often this worker took the delivery over: standby (waited for the lease), forced (--take-over), reclaim (from itself, after doubt)");
    UNKNOWN = counter("hapax_unknown_fields_total", &[], "Fields of events that no column takes; starts again when the table changes");
    COMMIT_LATENCY = histogram("hapax_commit_latency_seconds", "How long commits took, retries and finding out after doubt included");
    COMMIT_MAX = gauge("hapax_commit_latency_max_seconds", &[], "The longest commit since the worker started");
    DELIVERY_LATENCY = histogram("hapax_delivery_latency_seconds", "From reading an input to its commit; the inputs of an epoch count as read evenly between its first and its last");
    DELIVERY_MAX = gauge("hapax_delivery_latency_max_seconds", &[], "The longest time from reading to commit since the worker started");
    DELIVERY_RECENT = gauge("hapax_delivery_latency_recent_seconds", &["quantile"], "From reading to commit, over the last 128 epochs: 0.5, 0.95, 0.99");
}

names! { OF_PROCESS:
    BUILD = gauge("hapax_build_info", &["version"], "1; the version is in the label");
    STARTED = gauge("hapax_start_timestamp_seconds", &[], "When the process started, in seconds since 1970");
    MEMORY_TOTAL = gauge("hapax_memory_budget_bytes", &[], "The budget of all buffers: memory in the configuration");
    MEMORY_USED = gauge("hapax_memory_used_bytes", &[], "How much of it is lent");
    ALERTS = counter("hapax_alerts_total", &["result"], "Alerts by result: sent, failed (given up after retries), dropped (the queue was full)");
    SNAPSHOT = gauge("hapax_oldest_snapshot_seconds", &["target"], "Age of the oldest transaction with a view of a PostgreSQL target: until it ends, every epoch makes the next a little slower. Look above 600");
    DESCRIPTORS_OPEN = gauge("hapax_descriptors_open", &[], "Files and connections that the process has open, counted once a second");
    DESCRIPTORS_LIMIT = gauge("hapax_descriptors_limit", &[], "How many it may have open (ulimit -n); the soft limit is raised to the hard one at the start");
    DESCRIPTORS_EXHAUSTED = counter("hapax_descriptors_exhausted_total", &[], "How often there were none left, when a connection came or at a count");
    PAGES_CLOSED = counter("hapax_http_connections_closed_total", &[], "Connections to these pages closed because there were too many, half requests first");
    RELOADS = counter("hapax_reloads_total", &["result"], "Configurations read again on SIGHUP: done, refused (something was wrong; the old one stays)");
}

/// Those of the process that a broker has, too.
#[cfg(feature = "broker")]
pub(crate) const OF_ANY_PROCESS: [&Name; 6] =
    [&BUILD, &STARTED, &DESCRIPTORS_OPEN, &DESCRIPTORS_LIMIT, &DESCRIPTORS_EXHAUSTED, &PAGES_CLOSED];

// The page of all metrics is the same in every edition.
#[cfg(any(feature = "broker", test))]
names! { OF_BROKER:
    BROKER_LEADS = gauge("hapax_broker_leads", &[], "1 if this broker leads, 0 if it stands by");
    BROKERS = gauge("hapax_broker_brokers", &[], "Brokers that live on the store, this one included");
    TOPICS = gauge("hapax_broker_topics", &[], "Topics");
    PARTITIONS = gauge("hapax_broker_partitions", &[], "Partitions of all topics");
    CONNECTIONS = gauge("hapax_broker_connections", &[], "Connections of clients that are open");
    CONNECTIONS_TAKEN = counter("hapax_broker_connections_taken_total", &[], "Connections that were opened");
    CONNECTIONS_REFUSED = counter("hapax_broker_connections_refused_total", &[], "Connections closed at once because there were too many, in all or of one address");
    REQUESTS = counter("hapax_broker_requests_total", &["api"], "Requests by API");
    ERRORS = counter("hapax_broker_errors_total", &["api", "error"], "Answers with an error, by API and Kafka's number of the first error that the answer carries");
    RECEIVED = counter("hapax_broker_received_bytes_total", &[], "Bytes of requests");
    SENT = counter("hapax_broker_sent_bytes_total", &[], "Bytes of answers");
    PRODUCED_RECORDS = counter("hapax_broker_produced_records_total", &[], "Records appended; repetitions are not counted");
    PRODUCED_BYTES = counter("hapax_broker_produced_bytes_total", &[], "Bytes appended, as they came");
    FETCHED_RECORDS = counter("hapax_broker_fetched_records_total", &[], "Records sent to readers");
    FETCHED_BYTES = counter("hapax_broker_fetched_bytes_total", &[], "Bytes of records sent to readers");
    BROKER_COMMITS = histogram("hapax_broker_commit_latency_seconds", "How long the store took for a group of appends");
    BROKER_COMMIT_MAX = gauge("hapax_broker_commit_latency_max_seconds", &[], "The longest commit since the broker started");
    BROKER_COMMITS_FAILED = counter("hapax_broker_commits_failed_total", &[], "Groups of appends that the store did not take, or of which it never answered");
    DUPLICATES = counter("hapax_broker_duplicates_total", &[], "Batches recognised as repetitions, and answered with their first offset");
    OUT_OF_ORDER = counter("hapax_broker_out_of_order_total", &[], "Batches refused because one before them is missing");
    PRODUCERS_FENCED = counter("hapax_broker_fenced_total", &[], "Batches and calls refused because a newer producer has the id");
    GROUPS = gauge("hapax_broker_groups", &[], "Consumer groups in memory: with members, or with offsets that did not expire yet");
    REBALANCES = counter("hapax_broker_rebalances_total", &[], "Generations of consumer groups that were begun");
    REMOVED = counter("hapax_broker_removed_bytes_total", &["why"], "Bytes removed: retention (and DeleteRecords), compaction");
    BROKER_TAKEOVERS = counter("hapax_broker_takeovers_total", &[], "How often this broker took the lead");
    LOST = counter("hapax_broker_lost_records_total", &[], "Records that this broker acknowledged and the database no longer has, after a failover of the database. The alarm to have");
    BROKER_SNAPSHOT = gauge("hapax_broker_oldest_snapshot_seconds", &[], "Age of the oldest transaction with a view of the store's PostgreSQL database: until it ends, dead rows stay. Look above 600");
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn table(names: &[Name], with: &[&str]) -> String {
        let mut page = String::from("| name | kind | labels | meaning |\n|---|---|---|---|\n");
        for Name { name, kind, labels, help } in names {
            let labels: Vec<String> = with.iter().chain(*labels).map(|label| format!("`{label}`")).collect();
            writeln!(page, "| `{name}` | {} | {} | {help} |", kind.as_str(), labels.join(", "))
                .expect("a string takes all");
        }
        page
    }

    /// Goal: every metric is documented as it is, and nothing else is. Method: write the page again and compare.
    #[test]
    fn the_metrics_page_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        let written = std::fs::read_to_string(path).expect("docs/reference/metrics.md");
        let head = written.split("## Deliveries\n").next().expect("a head");
        let page = format!(
            "{head}## Deliveries\n\nEach with the labels `workflow`, `sink` and `lane`.\n\n{}\n## Process\n\n{}\n## Broker\n\n\
             Of `hapax broker`, beside `hapax_build_info`, `hapax_start_timestamp_seconds` and those of descriptors and of these pages.\n\n{}",
            table(OF_DELIVERIES, &[]),
            table(OF_PROCESS, &[]),
            table(OF_BROKER, &[])
        );
        if std::env::var_os("HAPAX_BLESS").is_some() {
            std::fs::write(path, &page).expect("the page can be written");
        }
        assert!(written == page, "the page is out of date: HAPAX_BLESS=1 cargo test -p hapax metrics_page");
    }

    /// Goal: names are as Prometheus wants them. Method: prefix, characters, suffix by kind, no doubles.
    #[test]
    fn names_are_well_formed() {
        let all: Vec<&Name> = OF_DELIVERIES.iter().chain(OF_PROCESS).chain(OF_BROKER).collect();
        for (at, Name { name, kind, help, .. }) in all.iter().enumerate() {
            assert!(name.starts_with("hapax_") && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert_eq!(name.ends_with("_total"), matches!(kind, MetricType::Counter), "{name}");
            assert!(!help.is_empty() && !help.contains(['\n', '|', '\\']), "{name}");
            assert!(all[..at].iter().all(|other| other.name != *name), "{name} twice");
        }
    }
}
