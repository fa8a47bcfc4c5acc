//! `/metrics`, `/healthz`, `/readyz` of a real process.

use crate::web::{address, get, get_json, get_with, metric, until_metric};
use crate::world::{KEYED, World, order, orders, until};

/// [`World::shop`] with pages on a free port.
pub(crate) fn watched(sink: &str, delivery: &str, http: &str) -> World {
    let world = World::shop(sink, delivery);
    world.write("hapax.yaml", format!("http: {{ listen: \"127.0.0.1:0\" {http} }}\n{}", world.read("hapax.yaml")));
    world
}

/// Goal: the pages show what the delivery did: rows by kind, dead letters by cause, epochs, latencies, the ledger.
/// Method: new keys, an overwritten one, a line that is no JSON; then compare with what was put in.
#[test]
fn metrics_show_what_was_delivered() {
    let world = watched("", KEYED, "");
    world.write("orders.jsonl", orders(1..=5));
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    until("the rows are there", || world.rows() == 5);
    world.append("orders.jsonl", format!("{}no json\n", order(3, 7)));
    let delivery = ["workflow=\"orders\"", "sink=\"sqlite\""];
    until_metric(&address, "hapax_inputs_read_total", &delivery, 7.0);
    let (status, page) = get(&address, "/metrics");
    assert_eq!(status, 200);
    let value = |name: &str, label: &str| metric(&page, name, &["workflow=\"orders\"", label]);
    for (name, label, expected) in [
        ("hapax_inputs_delivered_total", "", 6.0),
        ("hapax_inputs_dead_total", "", 1.0),
        ("hapax_inputs_in_flight", "", 0.0),
        ("hapax_oldest_undelivered_seconds", "", 0.0),
        ("hapax_ledger_adds_up", "", 1.0),
        ("hapax_rows_total", "", 6.0),
        ("hapax_upserts_total", "result=\"insert\"", 5.0),
        ("hapax_upserts_total", "result=\"update\"", 1.0),
        ("hapax_dead_letters_total", "code=\"HX2001\"", 1.0),
        ("hapax_delivery_state", "state=\"running\"", 1.0),
        ("hapax_delivery_state", "state=\"stopped\"", 0.0),
        ("hapax_delivery_latency_seconds_count", "", 7.0),
        ("hapax_fenced_total", "", 0.0),
    ] {
        assert_eq!(value(name, label), Some(expected), "{name} {label}\n{page}");
    }
    let bytes = world.read("orders.jsonl").lines().map(str::len).sum::<usize>();
    assert_eq!(value("hapax_bytes_read_total", ""), Some(bytes as f64), "{page}");
    let commits = value("hapax_epochs_total", "result=\"committed\"").expect("epochs");
    assert!(commits >= 2.0 && value("hapax_commit_latency_seconds_count", "") == Some(commits), "{page}");
    assert!(value("hapax_commit_latency_max_seconds", "").is_some_and(|max| max > 0.0), "{page}");
    assert!(value("hapax_delivery_latency_recent_seconds", "quantile=\"0.99\"").is_some(), "{page}");
    assert_eq!(get_json(&address, "/healthz").0, 200);
    let (status, ready) = get_json(&address, "/readyz");
    assert_eq!((status, &ready["deliveries"][0]["state"]), (200, &serde_json::json!("running")), "{ready:#}");
    assert_eq!(get(&address, "/other").0, 404);
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: repeats that the table stopped are counted. Method: `ignore`, the same lines again under other numbers.
#[test]
fn stopped_repeats_are_counted() {
    let unique = "guarantee: exactly-once, deduplication: { keyFields: [id], unique: true }";
    let world = watched("onConflict: ignore", unique, "");
    world.write("orders.jsonl", orders(1..=4));
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    until("the rows are there", || world.rows() == 4);
    world.append("orders.jsonl", orders(2..=4) + &order(9, 9) + &order(9, 9));
    until_metric(&address, "hapax_inputs_read_total", &[], 9.0);
    until_metric(&address, "hapax_repeats_stopped_total", &["layer=\"ignore\""], 4.0);
    assert_eq!(world.rows(), 5);
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: tries that had to be repeated are counted, and the latency has its three quantiles. Method: a worker whose file
/// comes late.
#[test]
fn repeated_tries_are_counted() {
    let world = watched("", KEYED, "");
    world.write("hapax.yaml", world.read("hapax.yaml").replace("giveUpAfter: 300ms", "giveUpAfter: 1h"));
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    let of_orders = ["workflow=\"orders\""];
    until("it was tried again twice", || {
        metric(&get(&address, "/metrics").1, "hapax_retries_total", &of_orders).is_some_and(|count| count >= 2.0)
    });
    world.write("orders.jsonl", orders(1..=3));
    until_metric(&address, "hapax_inputs_delivered_total", &of_orders, 3.0);
    let (_, page) = get(&address, "/metrics");
    let quantiles = ["0.5", "0.95", "0.99"].map(|share| {
        let label = format!("quantile=\"{share}\"");
        metric(&page, "hapax_delivery_latency_recent_seconds", &[of_orders[0], &label])
            .unwrap_or_else(|| panic!("no {label}: {page}"))
    });
    assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{quantiles:?}\n{page}");
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: with a token only `/healthz` is open. Method: ask with none, a wrong one and the right one.
#[test]
fn a_token_guards_all_pages_but_healthz() {
    let world = watched("", KEYED, ", token: \"${PAGE_TOKEN}\"");
    world.write("orders.jsonl", orders(1..=2));
    world.hapax(&["check"]).exits(2).says(&["PAGE_TOKEN"]);
    world.write("token", "0123456789abcdefXYZ");
    world.write("hapax.yaml", world.read("hapax.yaml").replace("${PAGE_TOKEN}", "${file:token}"));
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    assert_eq!(get(&address, "/healthz").0, 200);
    for path in ["/metrics", "/readyz", "/other"] {
        assert_eq!(get(&address, path).0, 401, "{path}");
        assert_eq!(get_with(&address, path, "Authorization: Bearer 0123456789abcdefXYz").0, 401, "{path}");
    }
    assert_eq!(get_with(&address, "/metrics", "Authorization: Bearer 0123456789abcdefXYZ").0, 200);
    worker.terminate();
    worker.ends().exits(0).keeps_silent_about(&["0123456789abcdefXYZ"]);
}

/// Goal: nobody opens the pages to other machines by mistake. Method: `check` on another address without a token.
#[test]
fn another_address_without_a_token_is_refused() {
    let world = World::shop("", KEYED);
    world.write("hapax.yaml", format!("http: {{ listen: \"0.0.0.0:8077\" }}\n{}", world.read("hapax.yaml")));
    world.hapax(&["check"]).exits(2).says(&["HX1350", "hapax.yaml:1", "token"]);
    world.hapax(&["run", "--once"]).exits(2).says(&["HX1350"]);
}

/// Goal: a taken port stops the start, and nothing is delivered unwatched. Method: listen there first.
#[test]
fn a_taken_port_stops_the_start() {
    let world = World::shop("", KEYED);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    world.write("hapax.yaml", format!("http: {{ listen: \"127.0.0.1:{port}\" }}\n{}", world.read("hapax.yaml")));
    world.write("orders.jsonl", orders(1..=2));
    world.hapax(&["run", "--once"]).exits(1).says(&["HX5060", &format!("127.0.0.1:{port}"), "http.listen"]);
    assert_eq!(world.rows(), 0);
}

/// Goal: a workflow that stopped makes the process not ready, with the reason, while the other one runs. Method: two
/// workflows, one without its table.
#[test]
fn readyz_says_what_stopped() {
    let world = watched("", KEYED, "");
    let second = "  - id: broken
    source: { file: { path: orders.jsonl } }
    sink: { sqlite: { path: shop.db, table: missing } }
";
    world.append("hapax.yaml", second);
    world.write("orders.jsonl", orders(1..=2));
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    until("the good one delivers", || world.rows() == 2);
    until("the broken one has stopped", || {
        let (status, ready) = get_json(&address, "/readyz");
        status == 503 && ready["reasons"][0]["workflow"] == "broken" && ready["reasons"][0]["state"] == "stopped"
    });
    let (_, ready) = get_json(&address, "/readyz");
    assert!(ready["reasons"][0]["code"].as_str().is_some_and(|code| code.starts_with("HX4")), "{ready:#}");
    assert!(ready["reasons"][0]["message"].as_str().is_some_and(|text| text.contains("missing")), "{ready:#}");
    assert_eq!(get(&address, "/healthz").0, 200, "starting it again would not help");
    worker.terminate();
    worker.ends();
}

/// Goal: of a delivery that stopped, `/readyz` says how its last epochs ended. Method: a good epoch, then a row that stops it,
/// beside a delivery that runs.
#[test]
fn readyz_says_how_the_last_epochs_ended() {
    let world = watched("", KEYED, "");
    let second = "  - id: strict
    source: { file: { path: strict.jsonl } }
    sink: { sqlite: { path: shop.db, table: strict } }
    delivery: { onReject: stop, deduplication: { keyFields: [id] } }
";
    world.append("hapax.yaml", second);
    world.sql("CREATE TABLE strict (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)");
    world.write("orders.jsonl", "");
    world.write("strict.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    until("the good rows are there", || world.ask::<i64>("SELECT count(*) FROM strict") == 3);
    world.append("strict.jsonl", format!("{}no json\n", order(4, 40)));
    until("it has stopped", || get_json(&address, "/readyz").1["reasons"][0]["state"] == "stopped");
    let (_, ready) = get_json(&address, "/readyz");
    let epochs = ready["reasons"][0]["epochs"].as_array().expect("epochs");
    let told: Vec<_> = epochs.iter().map(|one| (&one["state"], one["endedAtMs"].is_u64())).collect();
    let (good, last) = told.split_at(told.len() - 1);
    assert!(!good.is_empty() && good.iter().all(|one| *one == (&"committed".into(), true)), "{ready:#}");
    assert_eq!(last, [(&"aborted".into(), true)], "{ready:#}");
    assert_eq!(epochs[0]["events"], 3, "{ready:#}");
    until_metric(&address, "hapax_epochs_total", &["workflow=\"strict\"", "result=\"aborted\""], 1.0);
    worker.terminate();
    worker.ends();
}

/// Goal: a second worker stands by, is ready, and takes over within its lease after a kill; its metrics say so. Method:
/// two workers with pages, SIGKILL for the first.
#[test]
fn a_standby_is_ready_and_takes_over_after_a_kill() {
    let world = watched("", KEYED, "");
    world.write("orders.jsonl", orders(1..=3));
    let first = world.start("first.log", &["run"]);
    until("the first rows are there", || world.rows() == 3);
    let second = world.start("second.log", &["run"]);
    let address = address(&second);
    second.until_it_says("standing by");
    let (status, ready) = get_json(&address, "/readyz");
    assert_eq!((status, &ready["deliveries"][0]["state"]), (200, &serde_json::json!("standby")), "{ready:#}");
    until_metric(&address, "hapax_delivery_state", &["state=\"standby\""], 1.0);
    until_metric(&address, "hapax_takeovers_total", &["how=\"standby\""], 0.0);
    drop(first);
    until_metric(&address, "hapax_delivery_state", &["state=\"running\""], 1.0);
    until_metric(&address, "hapax_takeovers_total", &["how=\"standby\""], 1.0);
    world.append("orders.jsonl", orders(4..=6));
    until("the second goes on", || world.rows() == 6);
    second.terminate();
    second.ends().exits(0);
    world.accounts_for(6, 0);
}
