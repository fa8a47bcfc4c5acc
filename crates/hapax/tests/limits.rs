//! Limits of the process: few descriptors, many connections to its pages, blocked targets beside healthy ones.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::web::{address, get, get_with, metric};
use crate::world::{KEYED, ORDERS, Worker, World, orders, until};

/// Workflow `orders` from the files of `in/` into `shop.db`, with pages.
fn pattern() -> World {
    let world = World::shop("", KEYED);
    std::fs::create_dir(world.path("in")).expect("a folder");
    let text = world.read("hapax.yaml").replace("path: orders.jsonl", "path: \"in/*.jsonl\"");
    world.write("hapax.yaml", format!("http: {{ listen: \"127.0.0.1:0\" }}\n{text}"));
    world
}

/// Starts the program with so many descriptors.
fn start_with_descriptors(world: &World, count: u32) -> Worker {
    world.start_by_shell("worker.log", &format!("ulimit -n {count}; exec \"$0\" run"))
}

/// A request that has begun and does not end.
fn half_request(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the port is open");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: loc").expect("half a request is sent");
    stream
}

/// Goal: whoever connects to the pages takes nothing from deliveries, and a probe is answered. Method: 300 half requests
/// beside a worker with few descriptors; then a probe, and a file that is new.
#[test]
fn half_requests_take_nothing_from_deliveries() {
    let world = pattern();
    world.write("in/a.jsonl", orders(1..=3));
    let worker = start_with_descriptors(&world, 80);
    until("the first file is there", || world.rows() == 3);
    let address = address(&worker);
    let halves: Vec<TcpStream> = (0..300).map(|_| half_request(&address)).collect();
    assert_eq!(get(&address, "/healthz").0, 200);
    world.write("in/b.jsonl", orders(4..=6));
    until("the new file is there", || world.rows() == 6);
    let (status, page) = get(&address, "/metrics");
    assert_eq!(status, 200);
    assert!(metric(&page, "hapax_http_connections_closed_total", &[]).is_some_and(|count| count > 200.0), "{page}");
    assert_eq!(metric(&page, "hapax_descriptors_exhausted_total", &[]), Some(0.0), "{page}");
    assert_eq!(metric(&page, "hapax_descriptors_limit", &[]), Some(80.0), "{page}");
    drop(halves);
    worker.terminate();
    worker.ends().exits(0).says(&["closed connections to the pages: there are too many"]);
}

/// A connection from another address of this machine.
fn visitor(from: Ipv4Addr, to: &str) -> TcpStream {
    let to: SocketAddr = to.parse().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from((from, 0))).expect("all of 127.0.0.0/8 is this machine");
        socket.connect(to).await
    });
    let stream = connected.expect("the port is open").into_std().expect("a socket");
    stream.set_nonblocking(false).expect("it can wait");
    stream.set_read_timeout(Some(Duration::from_secs(100))).expect("a timeout");
    stream
}

/// Asks over a connection that stays open; the status.
fn asks(stream: &mut TcpStream) -> Option<u16> {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        answer.push(byte[0]);
    }
    String::from_utf8(answer).ok()?.split(' ').nth(1)?.parse().ok()
}

/// Goal: one address takes no connection from another. Method: 300 half requests and 300 connections that wait for their next one
/// from one address; a probe from another that keeps its connection asks in between, a third one and the first one afterwards.
#[test]
fn one_address_takes_no_connection_from_another() {
    let world = pattern();
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    let mut probe = visitor(Ipv4Addr::new(127, 0, 0, 2), &address);
    let mut open = Vec::new();
    for n in 0..300 {
        open.push(half_request(&address));
        let mut whole = TcpStream::connect(&address).expect("the port is open");
        whole.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok();
        open.push(whole);
        // More often than a connection may be idle.
        if n % 50 == 49 {
            assert_eq!(asks(&mut probe), Some(200), "its connection is still there beside {}", open.len());
        }
    }
    assert_eq!(asks(&mut visitor(Ipv4Addr::new(127, 0, 0, 3), &address)), Some(200));
    assert_eq!(get(&address, "/healthz").0, 200, "also to the address that has too many");
    let closed = metric(&get(&address, "/metrics").1, "hapax_http_connections_closed_total", &[]);
    assert!(closed.is_some_and(|count| count > 100.0), "{closed:?}");
}

/// Goal: half a request is not waited for without end. Method: one, until the process closes it.
#[test]
fn half_a_request_is_closed_after_a_while() {
    let world = pattern();
    let worker = world.start("worker.log", &["run"]);
    let mut half = half_request(&address(&worker));
    half.set_read_timeout(Some(Duration::from_secs(100))).expect("a timeout");
    let begun = Instant::now();
    half.read_to_end(&mut Vec::new()).expect("the process closes it before the test gives up");
    assert!(begun.elapsed() >= Duration::from_secs(5), "a slow peer has time: {:?}", begun.elapsed());
}

/// Goal: the pages answer only to names of this machine, and take no body. Method: a foreign name, a body, then a plain
/// request.
#[test]
fn a_foreign_host_and_a_body_are_refused() {
    let world = pattern();
    let worker = world.start("worker.log", &["run"]);
    let address = address(&worker);
    for path in ["/healthz", "/metrics"] {
        assert_eq!(get_with(&address, path, "Host: evil.example").0, 421, "{path}");
        assert_eq!(get_with(&address, path, "Content-Length: 5\r\n").0, 413, "{path}");
        assert_eq!(get_with(&address, path, "Host: localhost").0, 200, "{path}");
    }
}

/// Goal: a process that has no descriptor left says so, in its log and in its metrics, and still answers a probe. Method:
/// more databases than it may have open.
#[test]
fn running_out_of_descriptors_is_said() {
    let world = World::empty();
    let mut text = String::from("http: { listen: \"127.0.0.1:0\" }\nworkflows:\n");
    for n in 0..16 {
        world.database(&format!("{n}.db")).execute_batch(ORDERS).expect("a table");
        world.write(&format!("{n}.jsonl"), orders(1..=3));
        text += &format!(
            "  - {{ id: w{n}, source: {{ file: {{ path: {n}.jsonl }} }}, sink: {{ sqlite: {{ path: {n}.db, table: orders }} }}, \
             delivery: {{ {KEYED} }} }}\n"
        );
    }
    world.write("hapax.yaml", text);
    let worker = start_with_descriptors(&world, 40);
    worker.until_it_says("HX5064");
    let address = address(&worker);
    until("it is counted", || {
        metric(&get(&address, "/metrics").1, "hapax_descriptors_exhausted_total", &[]).is_some_and(|count| count >= 1.0)
    });
    assert_eq!(get(&address, "/healthz").0, 200);
}

/// A worker whose target is locked by the test, with something read that it cannot deliver.
fn locked_worker(world: &World) -> (Worker, rusqlite::Connection) {
    world.write("hapax.yaml", world.read("hapax.yaml").replace(", giveUpAfter: 300ms", ""));
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the first rows are there", || world.rows() == 3);
    let lock = world.database("shop.db");
    lock.execute_batch("BEGIN IMMEDIATE").expect("the lock is taken");
    world.append("orders.jsonl", orders(4..=6));
    worker.until_it_says("HX4003");
    (worker, lock)
}

/// Goal: a process that is asked to end does so in time although its target is locked, says what it waits for, and loses
/// nothing. Method: a lock that is never given back; then a run without it.
#[test]
fn a_locked_target_does_not_keep_a_process_from_ending() {
    let world = World::shop("", KEYED);
    let (worker, lock) = locked_worker(&world);
    worker.terminate();
    worker.ends().exits(1).says(&["draining", "still draining", "HX4003", "is locked by"]);
    drop(lock);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 6);
    world.accounts_for(6, 0);
}

/// Goal: a second signal ends at once; two that come together, as `timeout` sends them, are one. Method: while the target is
/// locked, two in one moment, and one later.
#[test]
fn a_second_signal_ends_at_once() {
    let world = World::shop("", KEYED);
    let (worker, _lock) = locked_worker(&world);
    worker.terminate();
    worker.terminate();
    worker.until_it_says("draining");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(!worker.said().contains("asked twice"), "{}", worker.said());
    worker.terminate();
    worker.ends().exits(1).says(&["asked twice"]);
}

/// Goal: a process that reads its configuration again hears the word to end meanwhile. Method: a pattern into a server that
/// takes connections and never answers.
#[cfg(feature = "postgres")]
#[test]
fn a_reload_that_waits_for_a_server_does_not_keep_a_process_from_ending() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the first rows are there", || world.rows() == 3);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let more = format!(
        "  - {{ id: other, source: {{ file: {{ path: \"in/*.jsonl\" }} }}, delivery: {{ {KEYED} }}, \
         sink: {{ postgres: {{ url: \"postgres://hapax@127.0.0.1:{port}/shop\", table: orders }} }} }}\n"
    );
    world.write("hapax.yaml", world.read("hapax.yaml") + &more);
    worker.hang_up();
    let _unanswered = silent.accept().expect("the server is asked");
    worker.terminate();
    worker.ends().exits(0).says(&["draining"]).keeps_silent_about(&["cannot be watched"]);
}

/// Goal: a state store that answers nobody keeps no process from ending in the time that a service manager is told to give, and
/// the process says what it left. Method: patterns so many that giving their leases back one after the other, each within its
/// limit, takes longer than a test waits; a lock on the store that is never given back, and the word to end; as it is, and while
/// the configuration is read again.
#[test]
fn a_locked_state_store_does_not_keep_a_process_from_ending() {
    const PATTERNS: usize = 30;
    for (reloads, left) in [(true, "the state store or the target did not answer"), (false, "it ends by itself")] {
        let world = World::empty();
        let mut text = String::from("state: \"sqlite://state.db\"\nworkflows:\n");
        for n in 0..PATTERNS {
            world.database(&format!("{n}.db")).execute_batch(ORDERS).expect("a table");
            text += &format!(
                "  - {{ id: w{n}, source: {{ file: {{ path: \"{n}/*.jsonl\" }} }}, sink: {{ sqlite: {{ path: {n}.db, table: orders }} }}, \
                 delivery: {{ {KEYED}, lease: 60s }} }}\n"
            );
        }
        world.write("hapax.yaml", &text);
        let worker = world.start("worker.log", &["run"]);
        until("all patterns are watched", || worker.said().matches("looked for files").count() == PATTERNS);
        let lock = world.database("state.db");
        lock.execute_batch("BEGIN EXCLUSIVE").expect("the lock is taken");
        if reloads {
            world.write("hapax.yaml", text.replace("lease: 60s", "lease: 50s"));
            worker.hang_up();
            worker.until_it_says("the configuration was read again");
        }
        worker.terminate();
        worker.ends().exits(0).says(&["draining", left]);
        drop(lock);
    }
}
