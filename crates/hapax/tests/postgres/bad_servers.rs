//! A server of PostgreSQL that is full, or does not know us: the message has place, code and cure, and nothing is lost.

use super::world::{Postgres, Shop};
use crate::servers::Server as _;
use crate::world::{KEYED, orders};

/// Goal: a server or role without a free connection is told, waited for, and nothing is lost. Method: a role that may
/// have no more connections than are taken.
#[test]
fn too_many_connections_are_told() {
    let shop = Shop::ready("", KEYED);
    let role = format!("crowded_of_{}", shop.database());
    let ours = Postgres::own_granted(&role);
    shop.sql(&format!(
        "CREATE ROLE {role} LOGIN CONNECTION LIMIT 0; {ours}; GRANT SELECT, INSERT, UPDATE ON orders TO {role}"
    ));
    shop.configure_as(&shop.url_of(&role), "", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.hapax(&["run", "--once"]).exits(1).says(&["too many connections", &role]);
    assert_eq!(shop.rows(), 0);
    shop.sql(&format!("ALTER ROLE {role} CONNECTION LIMIT -1"));
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 0);
    shop.sql(&Postgres::user_dropped(&role));
}

/// Goal: a role that is not known is told at once, never with the password. Method: a role that does not exist.
#[test]
fn an_unknown_role_is_refused_at_once() {
    let shop = Shop::ready("", KEYED);
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.configure_as(&shop.url_of("nobody_at_all:hunter2"), "", KEYED);
    let answer = shop.hapax(&["run", "--once"]);
    answer.exits(1).says(&["nobody_at_all"]).keeps_silent_about(&["hunter2", "trying again"]);
    assert_eq!(shop.rows(), 0);
}

/// Goal: a wrong password is told at once, never with a part of it, by a run and by a check, which judges nothing then. Method: a
/// server of its own that asks this role for its password; the wrong one, and the right one.
#[test]
fn a_wrong_password_is_refused_at_once() {
    let server = hapax_services::Postgres::builder().hba("host all locked 127.0.0.1/32 scram-sha-256").start();
    let server = server.expect("a server");
    let shop = Shop::on_server(&server.url(""));
    shop.sql(Postgres::ORDERS);
    shop.configure("", KEYED);
    shop.hapax(&["setup", "--yes"]).exits(0);
    let ours = Postgres::own_granted("locked");
    shop.sql(&format!(
        "CREATE ROLE locked LOGIN PASSWORD 'right'; {ours}; GRANT SELECT, INSERT, UPDATE ON orders TO locked"
    ));
    shop.world.write("orders.jsonl", orders(1..=3));
    shop.configure_as(&shop.url_of("locked:hunter2"), "", KEYED);
    let run = shop.hapax(&["run", "--once"]);
    run.exits(1).says(&["locked"]).keeps_silent_about(&["hunter2", "trying again"]);
    let check = shop.hapax(&["check", "--live"]);
    check.exits(1).says(&["not judged"]).keeps_silent_about(&["hunter2", "exactly-once holds"]);
    assert_eq!(shop.rows(), 0);
    shop.configure_as(&shop.url_of("locked:right"), "", KEYED);
    shop.hapax(&["check", "--live"]).exits(0).says(&["exactly-once holds"]).keeps_silent_about(&["right@"]);
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(3, 0);
}
