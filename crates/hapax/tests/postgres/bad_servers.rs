//! A server that is away, full, or does not know us: the message has place, code and cure, and nothing is lost.

use std::net::{TcpListener, TcpStream};

use super::world::Shop;
use crate::world::{orders, until};

const KEYED: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }";

/// Goal: an unreachable database is told with its address and never with a password. Method: a port that nobody listens
/// on, for a sink and for the state store, and a database that does not exist.
#[test]
fn an_unreachable_database_is_told_without_its_password() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let nowhere = "postgres://me:hunter2@127.0.0.1:1/shop";
    shop.configure_as(nowhere, "", KEYED);
    let answer = shop.hapax(&["run", "--once"]);
    answer.exits(1).says(&["postgres://me@127.0.0.1:1/shop"]).keeps_silent_about(&["hunter2"]);
    let with_state = shop.world.read("hapax.yaml");
    let (_, rest) = with_state.split_once('\n').expect("lines");
    shop.world.write("hapax.yaml", format!("state: none\n{rest}"));
    let answer = shop.hapax(&["run", "--once"]);
    answer.exits(1).says(&["HX4001", "cannot start yet", "127.0.0.1:1"]).keeps_silent_about(&["hunter2"]);
    shop.hapax(&["check", "--live"]).exits(1).says(&["HX4001", "127.0.0.1:1"]);
    shop.hapax(&["setup", "--yes"]).exits(1).says(&["HX4001"]);

    let gone = shop.url().replace(shop.database(), "no_such_database");
    shop.configure_as(&gone, "", KEYED);
    shop.hapax(&["run", "--once"]).exits(1).says(&["no_such_database"]);
    shop.configure("", KEYED);
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 0);
}

/// Goal: a target that is away at the start is waited for by who follows. Method: a port behind which the server appears
/// later.
#[test]
fn a_worker_waits_for_a_target_that_comes_later() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let door = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = door.local_addr().expect("an address").port();
    drop(door);
    shop.configure_as(&shop.url_at(port), "", KEYED);
    let text = shop.world.read("hapax.yaml").replace("giveUpAfter: 500ms", "giveUpAfter: 60s");
    let (_, rest) = text.split_once('\n').expect("lines");
    shop.world.write("hapax.yaml", format!("state: none\n{rest}"));
    let worker = shop.start("worker.log", &["run"]);
    worker.until_it_says("cannot start yet");
    let door = TcpListener::bind(("127.0.0.1", port)).expect("the port is still free");
    let server = shop.server_address();
    std::thread::spawn(move || door.incoming().flatten().for_each(|client| lead(client, &server)));
    until("the rows are there", || shop.rows() == 3);
    worker.terminate();
    worker.ends().exits(0);
    shop.accounts_for(3, 0);
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

/// Goal: missing rights are told at each step with the GRANT that cures them, and once all are given it runs. Method: a
/// role without any, which gets them one by one as it is told.
#[test]
fn missing_rights_are_told_step_by_step() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let role = format!("worker_of_{}", shop.database());
    shop.sql(&format!("CREATE ROLE {role} LOGIN"));
    shop.configure_as(&shop.url_of(Some(&role)), "", KEYED);
    let mut told = 0;
    loop {
        let answer = shop.hapax(&["run", "--once"]);
        if answer.code == 0 {
            break;
        }
        answer.exits(1).says(&["HX4016", "GRANT "]);
        assert_eq!(shop.rows(), 0);
        let all = format!("{}{}", answer.out, answer.err);
        let grant = all.lines().find_map(|line| line.split_once("GRANT ")).expect("a GRANT").1;
        let end = grant.find(['\'', '`', ';']).unwrap_or(grant.len());
        shop.sql(&format!("GRANT {}", &grant[..end]));
        told += 1;
        assert!(told < 40, "it asks for ever more: {answer}");
    }
    assert!(told >= 3, "it was told {told} times");
    shop.accounts_for(3, 0);
    shop.sql(&format!("DROP OWNED BY {role}"));
    shop.sql(&format!("DROP ROLE {role}"));
}

/// Goal: a right that is taken away under a running worker stops it, and nothing is lost. Method: REVOKE, then GRANT.
#[test]
fn a_right_that_is_taken_away_stops_the_worker() {
    let shop = Shop::ready("", KEYED);
    let role = format!("revoked_of_{}", shop.database());
    shop.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT ALL ON SCHEMA hapax TO {role}; \
        GRANT ALL ON ALL TABLES IN SCHEMA hapax TO {role}; GRANT SELECT, INSERT, UPDATE ON orders TO {role}"
    ));
    shop.configure_as(&shop.url_of(Some(&role)), "", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    let worker = shop.start("worker.log", &["run"]);
    until("the first rows are there", || shop.rows() == 3);
    shop.sql(&format!("REVOKE INSERT ON orders FROM {role}"));
    shop.world.append("orders.jsonl", orders(4..=5));
    worker.ends().exits(1).says(&["HX4016", "orders"]);
    shop.sql(&format!("GRANT INSERT ON orders TO {role}"));
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(shop.rows(), 5);
    shop.accounts_for(5, 0);
    shop.sql(&format!("DROP OWNED BY {role}"));
    shop.sql(&format!("DROP ROLE {role}"));
}

/// Goal: a server or role without a free connection is told, waited for, and nothing is lost. Method: a role that may
/// have no more connections than are taken.
#[test]
fn too_many_connections_are_told() {
    let shop = Shop::ready("", KEYED);
    let role = format!("crowded_of_{}", shop.database());
    shop.sql(&format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 0; GRANT ALL ON SCHEMA hapax TO {role}; \
        GRANT ALL ON ALL TABLES IN SCHEMA hapax TO {role}; GRANT SELECT, INSERT, UPDATE ON orders TO {role}"
    ));
    shop.configure_as(&shop.url_of(Some(&role)), "", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["run", "--once"]).exits(1).says(&["too many connections", &role]);
    assert_eq!(shop.rows(), 0);
    shop.sql(&format!("ALTER ROLE {role} CONNECTION LIMIT -1"));
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 0);
    shop.sql(&format!("DROP OWNED BY {role}"));
    shop.sql(&format!("DROP ROLE {role}"));
}

/// Goal: a role that is not known is told at once, never with the password. Method: a role that does not exist.
#[test]
fn an_unknown_role_is_refused_at_once() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.configure_as(&shop.url_of(Some("nobody_at_all:hunter2")), "", KEYED);
    let answer = shop.hapax(&["run", "--once"]);
    answer.exits(1).says(&["nobody_at_all"]).keeps_silent_about(&["hunter2", "trying again"]);
    assert_eq!(shop.rows(), 0);
}
