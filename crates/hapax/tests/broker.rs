//! `hapax broker` and `hapax topic`: the real program on both ends of a socket.

use serde_json::Value;

use crate::web::{address as page_address, get_json, until_metric};
use crate::world::{Answer, Worker, World, until};

/// A folder, and a broker that runs in it.
pub(crate) struct Running {
    pub(crate) broker: Worker,
    pub(crate) address: String,
}

/// Starts a broker on a free port and waits until clients can connect.
pub(crate) fn start(world: &World, log: &str, arguments: &[&str]) -> Running {
    let broker = world.start(log, &[&["broker", "--listen", "127.0.0.1:0"], arguments].concat());
    broker.until_it_says(" on 127.0.0.1:");
    let said = broker.said();
    let rest = said.split(" on 127.0.0.1:").nth(1).expect("a port");
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Running { broker, address: format!("127.0.0.1:{port}") }
}

impl Running {
    pub(crate) fn topic(&self, world: &World, arguments: &[&str]) -> Answer {
        world.hapax(&[&["topic"], arguments, &["--bootstrap", &self.address]].concat())
    }

    /// Writes lines, each a record.
    pub(crate) fn write(&self, world: &World, topic: &str, more: &[&str], lines: &str) -> Answer {
        let arguments = [&["topic", "write", topic, "--bootstrap", &self.address], more].concat();
        world.hapax_fed(&arguments, lines)
    }

    /// Every record that is there, as an object each.
    pub(crate) fn records(&self, world: &World, topic: &str, more: &[&str]) -> Vec<Value> {
        let answer = self.topic(world, &[&["read", topic, "--json"], more].concat());
        answer.exits(0);
        answer.out.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
    }

    /// The values that are there, in order.
    pub(crate) fn values(&self, world: &World, topic: &str) -> Vec<String> {
        let text = |record: &Value| record["value"].as_str().expect("a text").to_owned();
        self.records(world, topic, &[]).iter().map(text).collect()
    }
}

/// Goal: what was acknowledged is there after kill -9, with key, headers and offset, and the log goes on behind it. Method:
/// write, kill, start again, read, write, end in order, start again.
#[test]
fn what_was_acknowledged_survives_a_kill() {
    let world = World::empty();
    let first = start(&world, "first.log", &["--data", "log"]);
    first.topic(&world, &["create", "orders", "--partitions", "2"]).exits(0).says(&["Made topic orders"]);
    let written = first.write(&world, "orders", &["--key-separator", ":", "--header", "host=web1"], "a:1\nb:2\na:3\n");
    written.exits(0).says(&["Wrote 3 records to orders"]);
    drop(first);
    let second = start(&world, "second.log", &["--data", "log"]);
    second.broker.until_it_says("one file in log, 1 topic.");
    let of_key = |key: &str| {
        let records = second.records(&world, "orders", &[]);
        let mine: Vec<Value> = records.into_iter().filter(|record| record["key"] == key).collect();
        let partition = mine[0]["partition"].clone();
        assert!(mine.iter().all(|record| record["partition"] == partition), "one key, one partition: {mine:?}");
        assert!(mine.iter().all(|record| record["headers"][0]["value"] == "web1"), "{mine:?}");
        mine.iter().map(|record| record["value"].as_str().expect("a text").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((of_key("a"), of_key("b")), (vec!["1".to_owned(), "3".into()], vec!["2".to_owned()]));
    second.write(&world, "orders", &["--partition", "1"], "4\n5\n").exits(0);
    let end = |running: &Running| {
        let told = running.topic(&world, &["describe", "orders", "--json"]).exits(0).json();
        told["partitions"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|it| it["end"].as_i64().expect("an offset"))
            .sum::<i64>()
    };
    assert_eq!(end(&second), 5);
    second.broker.terminate();
    second.broker.ends().exits(0).says(&["the broker ended in order"]);
    let third = start(&world, "third.log", &["--data", "log"]);
    assert_eq!(end(&third), 5, "nothing is lost, nothing doubled");
}

/// Goal: one folder has one broker. Method: a second one on the same folder, which leaves the first alone.
#[test]
fn a_second_broker_on_the_same_folder_is_refused() {
    let world = World::empty();
    let first = start(&world, "first.log", &["--data", "log"]);
    let second = world.hapax(&["broker", "--data", "log", "--listen", "127.0.0.1:0"]);
    second.exits(1).says(&["HX4551", "another broker uses this directory", "log"]);
    first.topic(&world, &["list"]).exits(0).says(&["There are no topics"]);
}

/// Goal: nobody opens the broker to other machines. Method: by a flag, by the configuration, by a taken port.
#[test]
fn a_broker_listens_on_this_machine_only() {
    let world = World::empty();
    let answer = world.hapax(&["broker", "--listen", "0.0.0.0:0"]);
    answer.exits(1).says(&["HX4570", "0.0.0.0", "listen on 127.0.0.1"]);
    world.write("hapax.yaml", "broker: { listen: \"0.0.0.0:9092\" }\n");
    for command in [&["broker"][..], &["check"]] {
        world.hapax(command).exits(2).says(&["HX1500", "hapax.yaml:1", "127.0.0.1"]);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    world.write("hapax.yaml", format!("broker: {{ listen: \"127.0.0.1:{port}\", data: log }}\n"));
    world.hapax(&["broker"]).exits(1).says(&["HX4571", &port.to_string()]);
}

/// Goal: mistakes are told before anything is made. Method: the configuration, the flags.
#[test]
fn mistakes_are_told_before_anything_is_made() {
    let world = World::empty();
    world
        .write("hapax.yaml", "broker:\n  data: log\n  topicDefaults: { retention.days: \"7\" }\n  idleTimeout: soon\n");
    world.hapax(&["broker"]).exits(2).says(&["HX1501", "hapax.yaml:3", "retention.days", "HX1016", "hapax.yaml:4"]);
    world.write("hapax.yaml", "broker: { data: log }\n");
    world.hapax(&["broker", "--store", "mysql://root@h/d"]).exits(2).says(&["HX5001", "postgres://"]);
    let both = ["broker", "--store", "postgres://u:s3cret@h/d", "--data", "log"];
    world.hapax(&both).exits(2).says(&["HX5001", "--data"]).keeps_silent_about(&["s3cret"]);
    world.hapax(&["broker", "--id", "0"]).exits(2).says(&["--id"]);
    assert!(!world.path("log").exists(), "nothing was made");
}

/// Goal: what the broker says no to, and a broker that is not there, are told with the cure. Method: one of each.
#[test]
fn refusals_are_told_with_the_cure() {
    let world = World::empty();
    let nobody = world.hapax(&["topic", "list", "--bootstrap", "127.0.0.1:1"]);
    nobody.exits(1).says(&["HX5100", "127.0.0.1:1", "hapax broker"]);
    let running = start(&world, "broker.log", &["--data", "log"]);
    running.topic(&world, &["create", "orders", "--set", "retention.ms=1000"]).exits(0);
    let again = running.topic(&world, &["create", "orders"]);
    again.exits(1).says(&["HX5101", "orders"]);
    running.topic(&world, &["create", "odd", "--set", "retention.days=1"]).exits(1).says(&["HX5101", "retention.days"]);
    running.topic(&world, &["create", "odd", "--set", "retention.ms"]).exits(2).says(&["NAME=VALUE"]);
    running.topic(&world, &["read", "nothing"]).exits(1).says(&["HX5101", "there is no topic nothing"]);
    let unwritten = running.write(&world, "nothing", &[], "x\n");
    unwritten.exits(1).says(&["HX5101", "there is no topic nothing", "hapax topic create nothing"]);
    running.topic(&world, &["read", "orders", "--partition", "7"]).exits(2).says(&["HX5001", "no partition 7"]);
    running.topic(&world, &["read", "orders", "--from", "yesterday"]).exits(2).says(&["10m"]);
    let described = running.topic(&world, &["describe", "orders"]);
    described.exits(0).says(&["partition", "retention.ms", "1000", "topic", "cleanup.policy", "default"]);
    let script = format!("exec \"$0\" topic write orders --bootstrap {} < .", running.address);
    world.start_by_shell("stdin.log", &script).ends().exits(1).says(&["HX5102", "standard input"]);
    running.topic(&world, &["delete", "orders"]).exits(2).says(&["HX5004", "--yes"]);
    running.topic(&world, &["delete", "orders", "--yes"]).exits(0).says(&["Deleted topic orders"]);
    running.topic(&world, &["list", "--json"]).exits(0).says(&["\"topics\": []"]);
}

/// Goal: a reader begins where it is told, stops where it is told, and follows. Method: offsets, times, a count; a
/// follower and a later line.
#[test]
fn a_reader_begins_where_it_is_told_and_follows() {
    let world = World::empty();
    let running = start(&world, "broker.log", &["--data", "log"]);
    running.topic(&world, &["create", "orders"]).exits(0);
    running.write(&world, "orders", &[], "one\r\ntwo\nthree").exits(0);
    let read = |more: &[&str]| running.topic(&world, &[&["read", "orders"], more].concat()).exits(0).out.clone();
    assert_eq!(read(&[]), "one\ntwo\nthree\n");
    assert_eq!(read(&["--from", "1", "--count", "1"]), "two\n");
    assert_eq!(read(&["--from", "end"]), "");
    assert_eq!(read(&["--from", "1h"]), "one\ntwo\nthree\n");
    assert_eq!(read(&["--from", "@99999999999999"]), "");
    assert!(read(&["--long", "--from", "2"]).starts_with("0 2 20"));
    let beyond = running.topic(&world, &["read", "orders", "--from", "99"]);
    beyond.exits(0);
    let arguments = ["topic", "read", "orders", "--from", "end", "--follow", "--count", "2", "--bootstrap"];
    let follower = world.start("follower.log", &[&arguments[..], &[&running.address]].concat());
    until("the follower has seen both", || {
        running.write(&world, "orders", &[], "later\n").exits(0);
        follower.said().matches("later").count() == 2
    });
    follower.ends().exits(0);
}

/// Goal: the pages show what the broker did. Method: write and read some, then ask.
#[test]
fn the_pages_of_a_broker_show_what_it_did() {
    let world = World::empty();
    world.write("hapax.yaml", "http: { listen: \"127.0.0.1:0\" }\nbroker: { data: log, partitions: 3 }\n");
    let running = start(&world, "broker.log", &[]);
    let pages = page_address(&running.broker);
    running.topic(&world, &["create", "orders"]).exits(0);
    running.write(&world, "orders", &["--partition", "2"], "a\nb\nc\n").exits(0);
    assert_eq!(running.values(&world, "orders"), ["a", "b", "c"]);
    running.topic(&world, &["create", "orders"]).exits(1);
    for (name, labels, value) in [
        ("hapax_broker_leads", &[][..], 1.0),
        ("hapax_broker_brokers", &[], 1.0),
        ("hapax_broker_topics", &[], 1.0),
        ("hapax_broker_partitions", &[], 3.0),
        ("hapax_broker_produced_records_total", &[], 3.0),
        ("hapax_broker_fetched_records_total", &[], 3.0),
        ("hapax_broker_commit_latency_seconds_count", &[], 1.0),
        ("hapax_broker_requests_total", &["api=\"Produce\""], 1.0),
        ("hapax_broker_errors_total", &["api=\"CreateTopics\"", "error=\"36\""], 1.0),
        ("hapax_broker_duplicates_total", &[], 0.0),
        ("hapax_broker_connections", &[], 0.0),
    ] {
        until_metric(&pages, name, labels, value);
    }
    let (status, ready) = get_json(&pages, "/readyz");
    assert_eq!((status, ready["status"].as_str()), (200, Some("ready")), "{ready:#}");
    assert_eq!(get_json(&pages, "/healthz").0, 200);
}
