//! SIGHUP: the configuration is read again, and only what differs is touched.

use crate::web::{address, get, metric, until_metric};
use crate::world::{World, orders, until};

fn workflow(id: &str, interval: &str) -> String {
    format!(
        "  - id: {id}
    source: {{ file: {{ path: {id}.jsonl }} }}
    sink: {{ sqlite: {{ path: shop.db, table: {id} }} }}
    delivery: {{ epoch: {{ interval: {interval} }}, lease: 2s, deduplication: {{ keyFields: [id] }} }}
"
    )
}

fn world(workflows: &[String]) -> World {
    let world = World::empty();
    for table in ["a", "b", "c"] {
        world.sql(&format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)"));
        world.write(&format!("{table}.jsonl"), orders(1..=2));
    }
    configure(&world, workflows, "");
    world
}

fn configure(world: &World, workflows: &[String], more: &str) {
    let text = format!("http: {{ listen: \"127.0.0.1:0\" }}\n{more}workflows:\n{}", workflows.concat());
    world.write("hapax.yaml", text);
}

fn rows(world: &World, table: &str) -> i64 {
    world.ask(&format!("SELECT count(*) FROM {table}"))
}

/// Goal: added workflows start, removed ones drain, changed ones are drained and started anew, and the others are not
/// touched. Method: a, b → a, changed b, c → a, c; counters of `a` go on.
#[test]
fn only_what_differs_is_touched() {
    let world = world(&[workflow("a", "20ms"), workflow("b", "20ms")]);
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    until("both deliver", || rows(&world, "a") == 2 && rows(&world, "b") == 2);
    until_metric(&address, "hapax_epochs_total", &["workflow=\"a\"", "result=\"committed\""], 1.0);
    configure(&world, &[workflow("a", "20ms"), workflow("b", "30ms"), workflow("c", "20ms")], "memory: 64MiB\n");
    worker.hang_up();
    worker.until_it_says("the configuration was read again");
    until("c delivers", || rows(&world, "c") == 2);
    for word in ["added=\"c\"", "changed=\"b\"", "until the process is started again: memory"] {
        worker.until_it_says(word);
    }
    until_metric(&address, "hapax_delivery_state", &["workflow=\"b\"", "state=\"running\""], 1.0);
    world.append("a.jsonl", orders(3..=4));
    world.append("b.jsonl", orders(3..=4));
    until("all go on", || rows(&world, "a") == 4 && rows(&world, "b") == 4);
    until_metric(&address, "hapax_epochs_total", &["workflow=\"a\"", "result=\"committed\""], 2.0);
    until_metric(&address, "hapax_epochs_total", &["workflow=\"b\"", "result=\"committed\""], 1.0);
    configure(&world, &[workflow("a", "20ms"), workflow("c", "20ms")], "");
    worker.hang_up();
    until("b is gone", || metric(&get(&address, "/metrics").1, "hapax_epoch", &["workflow=\"b\""]).is_none());
    world.append("b.jsonl", orders(5..=5));
    world.append("c.jsonl", orders(3..=3));
    until("c goes on", || rows(&world, "c") == 3);
    assert_eq!(rows(&world, "b"), 4);
    until_metric(&address, "hapax_reloads_total", &["result=\"done\""], 2.0);
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: a wrong configuration changes nothing. Method: a broken file, then the right one again.
#[test]
fn a_wrong_configuration_changes_nothing() {
    let world = world(&[workflow("a", "20ms")]);
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    until("it delivers", || rows(&world, "a") == 2);
    world.write("hapax.yaml", "workflows:\n  - idd: a\n");
    worker.hang_up();
    worker.until_it_says("HX5061");
    worker.until_it_says("HX1010");
    until_metric(&address, "hapax_reloads_total", &["result=\"refused\""], 1.0);
    world.append("a.jsonl", orders(3..=4));
    until("it goes on", || rows(&world, "a") == 4);
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: a workflow that needs a state store does not start in a process that has none, and the others go on. Method: a
/// reload that names the store and the workflow at once; then a start.
#[test]
fn a_workflow_that_needs_a_state_store_waits_for_a_start() {
    let world = world(&[workflow("a", "20ms")]);
    configure(&world, &[workflow("a", "20ms")], "state: none\n");
    let worker = world.start("worker.log", &["run"]);
    until("it delivers", || rows(&world, "a") == 2);
    let by_state = workflow("b", "20ms").replace("table: b", "table: b, progress: state");
    let stated = by_state.replace("keyFields: [id] }", "keyFields: [id] }, conditions: [one-worker]");
    configure(&world, &[workflow("a", "20ms"), stated], "");
    worker.hang_up();
    worker.until_it_says("HX5003");
    worker.until_it_says("runs without one");
    world.append("a.jsonl", orders(3..=4));
    until("the other goes on", || rows(&world, "a") == 4);
    assert_eq!(rows(&world, "b"), 0);
    drop(worker);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(rows(&world, "b"), 2);
}

/// Goal: the service manager hears when the process is ready and when it ends. Method: the socket that systemd would name.
#[test]
fn the_service_manager_is_told() {
    let world = world(&[workflow("a", "20ms")]);
    let path = world.path("notify.socket");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a timeout");
    world.hapax_with(&["run", "--once"], &[("NOTIFY_SOCKET", &path.display().to_string())]).exits(0);
    let mut told = [0; 64];
    let length = socket.recv(&mut told).expect("a message");
    assert_eq!(&told[..length], b"READY=1");
}

/// Goal: a pattern that stopped is opened again by a reload, and stays open. Method: a pattern whose table is missing, then a
/// file that was rewritten, each beside a workflow that is well; the cause goes, SIGHUP.
#[test]
fn a_pattern_that_stopped_is_opened_again() {
    let pattern = "  - id: many
    source: { file: { path: many-*.jsonl } }
    sink: { sqlite: { path: shop.db, table: many } }
    delivery: { epoch: { interval: 20ms }, lease: 2s, deduplication: { keyFields: [id] } }
";
    let world = world(&[workflow("a", "20ms"), pattern.to_owned()]);
    world.write("many-1.jsonl", orders(1..=2));
    let worker = world.start("worker.log", &["run"]);
    until("the other one delivers", || rows(&world, "a") == 2);
    worker.until_it_says("HX4110");
    world.sql("CREATE TABLE many (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)");
    worker.hang_up();
    until("the pattern is read", || rows(&world, "many") == 2);
    world.write("many-1.jsonl", orders(7..=8));
    worker.until_it_says("HX3002");
    world.write("many-1.jsonl", orders(1..=2) + &orders(3..=3));
    worker.hang_up();
    until("the pattern is read again", || rows(&world, "many") == 3);
    world.append("many-1.jsonl", orders(4..=4));
    until("and stays open", || rows(&world, "many") == 4);
    worker.terminate();
    worker.ends().exits(0);
}
