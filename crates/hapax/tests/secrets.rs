//! Passwords: whatever they hold, no command prints a part of one.

use crate::world::World;

/// Everything that stands before the last @ but the user's name.
const PARTS: [&str; 3] = ["p4ss", "w0rd", "s3cret"];

/// Passwords with characters that were not percent-encoded, as people paste them.
const PASSWORDS: [&str; 4] = ["p4ss@w0rd/s3cret", "p4ss@w0rd?s3cret=1", "p4ss/w0rd@s3cret", "p4ss@w0rd@s3cret/"];

fn configured(state: &str, sink: &str, more: &str) -> World {
    let world = World::empty();
    world.write("orders.jsonl", "{\"id\":1}\n");
    world.write(
        "hapax.yaml",
        format!(
            "state: {state}\nworkflows:\n  - id: orders\n    source: {{ file: {{ path: orders.jsonl }} }}\n    sink: {sink}\n{more}"
        ),
    );
    world
}

/// Goal: a password with an unescaped @ is answered with %40, and no part of it is ever taken for a host and printed.
/// Method: every place of a configuration that holds an address, several passwords, every kind of command.
#[test]
fn a_password_with_an_at_sign_is_never_printed() {
    let sqlite = "{ sqlite: { path: shop.db, table: orders } }";
    for password in PASSWORDS {
        let postgres = format!("postgres://me:{password}@127.0.0.1:1/shop");
        let mysql = format!("mysql://me:{password}@127.0.0.1:1/shop");
        for world in [
            configured("none", &format!("{{ postgres: {{ url: \"{postgres}\", table: orders }} }}"), ""),
            configured("none", &format!("{{ mysql: {{ url: \"{mysql}\", table: orders }} }}"), ""),
            configured(&format!("\"{postgres}\""), sqlite, ""),
            configured("none", sqlite, &format!("broker: {{ store: \"{postgres}\" }}\n")),
        ] {
            for command in [
                &["check", "--live"][..],
                &["run", "--once"],
                &["status"],
                &["setup", "--yes"],
                &["config", "show"],
                &["dlq", "list", "--json"],
                &["broker"],
            ] {
                world.hapax(command).exits(2).says(&["%40"]).keeps_silent_about(&PARTS);
            }
        }
        let world = configured("none", sqlite, "");
        for to in [&postgres, &mysql] {
            let arguments = ["init", "--from", "orders.jsonl", "--to", to, "--output", "new.yaml"];
            world.hapax(&arguments).exits(2).says(&["%40"]).keeps_silent_about(&PARTS);
            assert!(!world.path("new.yaml").exists());
        }
    }
}

/// Addresses with a password whose scheme, `://` or place in the file is wrong.
const MISTYPED: [&str; 9] = [
    "postgres:/me:p4ss@w0rd/s3cret@127.0.0.1/shop",
    "postgres:me:p4ss@127.0.0.1/shop",
    "postgresql//me:p4ss@127.0.0.1/shop",
    "me:p4ss@127.0.0.1/shop",
    "p4ss@127.0.0.1/shop",
    "postgres;//me:p4ss:w0rd@127.0.0.1/shop",
    "me:p4ss@tail://127.0.0.1/shop",
    "postgres:/me:p4ss/127.0.0.1",
    "host=127.0.0.1 user=me password=p4ss",
];

/// Goal: an address with a password that is mistyped, or written where none belongs, is not printed by any command. Method:
/// addresses with a typo in every field that takes one, in fields that take something else, as a key and as a tag; every
/// kind of command; what is quoted shows no more than what follows the last @.
#[test]
fn a_mistyped_address_is_never_printed() {
    let sqlite = "{ sqlite: { path: shop.db, table: orders } }";
    for url in MISTYPED {
        for (state, sink, more) in [
            (format!("\"{url}\""), sqlite.to_owned(), String::new()),
            ("none".into(), sqlite.into(), format!("broker: {{ store: \"{url}\" }}\n")),
            ("none".into(), format!("{{ postgres: {{ url: \"{url}\", table: orders }} }}"), String::new()),
            ("none".into(), format!("{{ mysql: {{ url: \"{url}\", table: orders }} }}"), String::new()),
            ("none".into(), format!("{{ postgres: \"{url}\" }}"), String::new()),
            ("none".into(), sqlite.into(), format!("alerts: {{ webhook: \"{url}\" }}\n")),
            ("none".into(), sqlite.into(), format!("http: {{ listen: \"{url}\" }}\n")),
        ] {
            let world = configured(&state, &sink, &more);
            for command in [
                &["check", "--live"][..],
                &["check", "--json"],
                &["run", "--once"],
                &["status"],
                &["config", "show"],
                &["topic", "list"],
                &["broker"],
            ] {
                world.hapax(command).exits(2).keeps_silent_about(&PARTS);
            }
        }
        let world = configured("none", sqlite, "");
        world.hapax(&["broker", "--store", url]).exits(2).keeps_silent_about(&PARTS);
        let to = ["init", "--from", "orders.jsonl", "--to", url, "--output", "new.yaml"];
        world.hapax(&to).exits(2).keeps_silent_about(&PARTS);
        let world = configured("\"${STATE}\"", sqlite, "");
        world.hapax_with(&["check"], &[("STATE", url)]).exits(2).keeps_silent_about(&PARTS);
    }
}

/// Goal: an address in a place that takes no text is not printed either, nor is a secret that was taken for a number.
/// Method: one as a key, twice, as a tag, behind a unit, as a name, in braces of a variable, as an address to listen on.
#[test]
fn an_address_in_the_wrong_place_is_not_printed() {
    let sqlite = "{ sqlite: { path: shop.db, table: orders } }";
    let url = "postgres:/me:p4ss@127.0.0.1/w0rd@s3cret@127.0.0.1/shop";
    for more in [
        format!("\"{url}\": 1\n"),
        format!("broker: {{ topicDefaults: {{ \"{url}\": \"1\" }} }}\n"),
        format!("broker: {{ topicDefaults: {{ retention.ms: \"{url}\" }} }}\n"),
        format!("broker: {{ topicDefaults: {{ \"{url}\": 7 }} }}\n"),
        format!("alerts: {{ \"{url}\": 1, \"{url}\": 2 }}\n"),
        "http: !me:p4ss@tail {}\n".into(),
        format!("memory: \"5 {url}\"\n"),
        format!("broker: {{ idleTimeout: \"5 {url}\" }}\n"),
        format!("broker: \"{url}\"\n"),
        "alerts: { webhook: \"postgres://me:${p4ss!w0rd}@127.0.0.1/shop\" }\n".into(),
        "broker: { listen: \"me:p4ss@127.0.0.1:9092\" }\n".into(),
        format!("tests: [ {{ name: a, workflow: \"{url}\", input: {{}}, expect: {{}} }} ]\n"),
        "http: { listen: \"127.0.0.1:1\", token: 7845512345678901 }\n".into(),
        "alerts: { webhook: true }\n".into(),
    ] {
        let world = configured("none", sqlite, &more);
        for command in [&["check"][..], &["check", "--json"], &["config", "show"]] {
            world.hapax(command).exits(2).keeps_silent_about(&PARTS).keeps_silent_about(&["78455"]);
        }
    }
}

/// Goal: the address of alerts prints nothing but its host, and one with a password is refused. Method: both.
#[test]
fn the_address_of_alerts_is_not_printed() {
    let sqlite = "{ sqlite: { path: shop.db, table: orders } }";
    for url in ["https://me:p4ss@w0rd/s3cret@127.0.0.1/hook", "https://me:p4ss@127.0.0.1/w0rd/s3cret"] {
        let world = configured("none", sqlite, &format!("alerts: {{ webhook: \"{url}\" }}\n"));
        for command in [&["check"][..], &["config", "show"], &["run", "--once"]] {
            world.hapax(command).exits(2).keeps_silent_about(&PARTS);
        }
    }
}

/// Goal: letters hold what the source held, so nobody else may read a state store. Method: a worker under a generous umask writes one;
/// the file and what SQLite lays beside it.
#[test]
fn a_state_store_is_read_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let keyed = "    delivery: { deduplication: { keyFields: [id] } }\n";
    let world = configured("\"sqlite://own.db\"", "{ sqlite: { path: shop.db, table: orders } }", keyed);
    world.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)");
    world.write("orders.jsonl", crate::world::orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    crate::world::until("rows are there", || world.rows() == 3);
    for name in ["own.db", "own.db-wal", "own.db-shm"] {
        let mode = std::fs::metadata(world.path(name)).expect(name).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    worker.terminate();
    worker.ends().exits(0);
}
