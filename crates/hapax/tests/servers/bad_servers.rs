//! A server that is away, or does not know us: the message has place, code and cure, and nothing is lost.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};

use super::{Server, Shop, on_every_server};
use crate::files::gzip;
use crate::world::{KEYED, orders, until};

on_every_server! {
    an_unreachable_database_is_told_without_its_password,
    a_worker_waits_for_a_target_that_comes_later,
    missing_rights_are_told_all_at_once,
    what_is_told_is_enough_for_a_persons_commands,
    a_replay_says_first_which_rights_are_missing,
    a_right_that_is_taken_away_stops_the_worker,
}

/// Goal: an unreachable database is told with its address and never with a password. Method: a port that nobody listens
/// on, for what the server is used for and for a sink alone, and a database that does not exist.
fn an_unreachable_database_is_told_without_its_password<S: Server>() {
    let shop = Shop::<S>::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.configure_as(&format!("{}://me:hunter2@127.0.0.1:1/shop", S::KIND), "", KEYED);
    let answer = shop.hapax(&["run", "--once"]);
    let shown = format!("{}://me@127.0.0.1:1/shop", S::KIND);
    answer.exits(1).says(&[&shown]).keeps_silent_about(&["hunter2"]);
    shop.keep_state_in("none");
    let answer = shop.hapax(&["run", "--once"]);
    answer.exits(1).says(&["HX4001", "cannot start yet", "127.0.0.1:1"]).keeps_silent_about(&["hunter2"]);
    let check = shop.hapax(&["check", "--live"]);
    check.exits(1).says(&["HX4001", "127.0.0.1:1", "not judged"]).keeps_silent_about(&["exactly-once holds"]);
    shop.hapax(&["setup", "--yes"]).exits(1).says(&["HX4001"]);
    let gone = shop.url().replace(shop.database(), "no_such_database");
    shop.configure_as(&gone, "", KEYED);
    shop.hapax(&["run", "--once"]).exits(1).says(&["no_such_database"]);
    shop.configure("", KEYED);
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 0);
}

/// Goal: a target that is away at the start is waited for by who follows, with the file that was found. Method: a port behind which
/// the server appears later, while the file is rotated and compressed and others follow it; a single file, and a pattern.
fn a_worker_waits_for_a_target_that_comes_later<S: Server>() {
    for (path, waits) in [("orders.jsonl", "cannot start yet"), ("order*.jsonl", "cannot look for files yet")] {
        waits_for_a_target::<S>(path, waits);
    }
}

fn waits_for_a_target<S: Server>(path: &str, waits: &str) {
    let shop = Shop::<S>::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let door = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = door.local_addr().expect("an address").port();
    drop(door);
    shop.configure_as(&shop.url_at(port), "", KEYED);
    shop.keep_state_in("none");
    shop.reconfigure("giveUpAfter: 500ms", "giveUpAfter: 60s");
    shop.reconfigure("path: orders.jsonl", &format!("path: '{path}'"));
    let worker = shop.start("worker.log", &["run"]);
    worker.until_it_says(waits);
    shop.world.write("orders.jsonl.2.gz", gzip(orders(1..=3).as_bytes()));
    std::fs::remove_file(shop.world.path("orders.jsonl")).expect("compressed");
    shop.world.write("orders.jsonl.1", orders(4..=4));
    shop.world.write("orders.jsonl", orders(5..=5));
    let door = TcpListener::bind(("127.0.0.1", port)).expect("the port is still free");
    let server = shop.server_address().to_owned();
    std::thread::spawn(move || door.incoming().flatten().for_each(|client| lead(client, &server)));
    until("the rows are there", || shop.rows() == 5);
    worker.terminate();
    worker.ends().exits(0);
    shop.accounts_for(5, 0);
}

/// Leads a client's bytes to the server, and back, until both are done.
fn lead(client: TcpStream, server: &str) {
    let Ok(server) = TcpStream::connect(server) else { return };
    let ways = [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))];
    for (from, to) in ways {
        let (Ok(mut from), Ok(mut to)) = (from, to) else { return };
        std::thread::spawn(move || {
            std::io::copy(&mut from, &mut to).ok();
            to.shutdown(std::net::Shutdown::Both).ok();
        });
    }
}

/// Goal: missing rights are told all at once, as statements that can be pasted, by `check --live` and by a run. Method: a
/// user without any, who gets what it is told once.
fn missing_rights_are_told_all_at_once<S: Server>() {
    let shop = Shop::<S>::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let user = format!("worker_of_{}", shop.database());
    shop.sql(&S::user_made(&user));
    shop.configure_as(&shop.url_of(&user), "", KEYED);
    let told = |arguments: &[&str]| {
        let answer = shop.hapax(arguments);
        answer.exits(1).says(&["HX4016"]);
        grants_in(&format!("{}{}", answer.out, answer.err))
    };
    let grants = told(&["run", "--once"]);
    assert_eq!(told(&["check", "--live"]), grants);
    assert_eq!(shop.rows(), 0);
    shop.sql(&Vec::from_iter(grants).join("; "));
    shop.hapax(&["check", "--live"]).exits(0);
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 0);
    shop.sql(&S::user_dropped(&user));
}

/// With this an order whose amount is not known is refused; the table itself need not be altered to know it.
const KNOWN_AMOUNTS: &str = "CREATE TABLE known (amount integer PRIMARY KEY); INSERT INTO known VALUES (10), (30); \
                             ALTER TABLE orders ADD CONSTRAINT known FOREIGN KEY (amount) REFERENCES known (amount)";
const ONE_MORE: &str = "INSERT INTO known VALUES (20)";

/// Goal: who pastes what HX4016 names can run, and replay, discard and pause too, and is told which rights are for
/// those. Method: a user without any right, who gets what `check --live` names; a letter, its replay, a pause.
fn what_is_told_is_enough_for_a_persons_commands<S: Server>() {
    let shop = Shop::<S>::ready("", KEYED);
    shop.sql(KNOWN_AMOUNTS);
    shop.world.write("orders.jsonl", orders(1..=3));
    let user = format!("person_of_{}", shop.database());
    shop.sql(&S::user_made(&user));
    shop.configure_as(&shop.url_of(&user), "", KEYED);
    let told = shop.hapax(&["check", "--live"]);
    let text = format!("{}{}", told.exits(1).says(&["HX4016"]).out, told.err);
    let (run, person) = text.split_once("/* for dlq").expect("what is a person's is named");
    for (part, right) in [(run, "GRANT SELECT, INSERT ON"), (person, "GRANT UPDATE, DELETE ON")] {
        assert!(
            grants_in(part).iter().any(|grant| grant.starts_with(right) && grant.contains("dead_letters")),
            "{told}"
        );
    }
    shop.sql(&Vec::from_iter(grants_in(&text)).join("; "));
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 1);
    shop.sql(ONE_MORE);
    shop.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["1 replayed"]);
    assert_eq!(shop.amounts(), "1:10 2:20 3:30");
    shop.hapax(&["pause", "orders"]).exits(0);
    shop.hapax(&["resume", "orders"]).exits(0);
    shop.sql(&S::user_dropped(&user));
}

/// Goal: `dlq replay` and `dlq discard` say which rights on the letters are missing before they promise anything, with
/// --dry-run too. Method: a user who may do all but that, then that as well.
fn a_replay_says_first_which_rights_are_missing<S: Server>() {
    let shop = Shop::<S>::ready("", KEYED);
    shop.sql(KNOWN_AMOUNTS);
    shop.world.write("orders.jsonl", orders(1..=3));
    let (user, letters) = (format!("reader_of_{}", shop.database()), S::own("dead_letters"));
    let (made, ours) = (S::user_made(&user), S::own_granted(&user));
    shop.sql(&format!("{made}; {ours}; GRANT SELECT, INSERT, UPDATE ON orders TO {user}"));
    shop.configure_as(&shop.url_of(&user), "", KEYED);
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 1);
    shop.sql(&format!("{ONE_MORE}; REVOKE UPDATE ON {letters} FROM {user}"));
    shop.hapax(&["check", "--live"]).exits(0);
    let mut told = BTreeSet::new();
    for arguments in [["replay", "--dry-run"], ["replay", "--yes"], ["discard", "--dry-run"], ["discard", "--yes"]] {
        let answer = shop.hapax(&[["dlq"].as_slice(), &arguments].concat());
        answer
            .exits(1)
            .says(&["HX4016", "GRANT UPDATE ON", "dead_letters"])
            .keeps_silent_about(&["safe", "letter(s) of"]);
        told.extend(grants_in(&format!("{}{}", answer.out, answer.err)));
    }
    assert_eq!(shop.amounts(), "1:10 3:30");
    assert_eq!(told.len(), 1, "{told:?}");
    shop.sql(&Vec::from_iter(told).join("; "));
    shop.hapax(&["dlq", "replay", "--dry-run"]).exits(0).says(&["1 letter(s): safe"]);
    shop.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["1 replayed"]);
    // A right of a worker's that a replay needs as well.
    shop.sql(&format!("REVOKE INSERT ON {letters} FROM {user}; UPDATE {letters} SET state = 'dead'"));
    shop.hapax(&["dlq", "replay", "--dry-run"]).exits(1).says(&["HX4016", "GRANT INSERT ON"]);
    shop.sql(&S::user_dropped(&user));
}

/// All GRANT statements in a text.
fn grants_in(text: &str) -> BTreeSet<String> {
    let statements = text.split("GRANT ").skip(1).filter_map(|rest| rest.split_once(';'));
    statements.map(|(statement, _)| format!("GRANT {statement}")).collect()
}

/// Goal: a right that is taken away under a running worker stops it, and nothing is lost. Method: REVOKE, then GRANT.
fn a_right_that_is_taken_away_stops_the_worker<S: Server>() {
    let shop = Shop::<S>::ready("", KEYED);
    let user = format!("revoked_of_{}", shop.database());
    let (made, ours) = (S::user_made(&user), S::own_granted(&user));
    shop.sql(&format!("{made}; {ours}; GRANT SELECT, INSERT, UPDATE ON orders TO {user}"));
    shop.configure_as(&shop.url_of(&user), "", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let worker = shop.start("worker.log", &["run"]);
    until("the first rows are there", || shop.rows() == 3);
    shop.sql(&format!("REVOKE INSERT ON orders FROM {user}"));
    shop.world.append("orders.jsonl", orders(4..=5));
    worker.ends().exits(1).says(&["HX4016", "orders"]);
    shop.sql(&format!("GRANT INSERT ON orders TO {user}"));
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.rows(), 5);
    shop.accounts_for(5, 0);
    shop.sql(&S::user_dropped(&user));
}
