//! `hapax dlq`: letters are listed, shown, replayed and discarded with no worker alive.

use crate::world::{KEYED, World, number, order, orders, until};

/// Two good lines around one that does not fit, delivered in a mode whose letters are safe to replay.
fn with_a_letter(mode: &str) -> World {
    let world = World::shop(mode, "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER NOT NULL UNIQUE, customer TEXT, amount INTEGER CHECK (amount < 100))");
    world.write("orders.jsonl", [order(1, 10), order(2, 200), order(3, 30)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    world.accounts_for(3, 1);
    world
}

/// Removes the reason for which the letter died.
fn mend(world: &World) {
    world.sql("PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, ' CHECK (amount < 100)', '') WHERE name = 'orders'; PRAGMA writable_schema = RESET");
}

fn states(world: &World) -> (u64, u64, u64) {
    let letters = world.status()[0]["letters"].clone();
    (number(&letters["dead"]), number(&letters["replayed"]), number(&letters["discarded"]))
}

/// Goal: a letter is grouped by cause, shown whole, and replayed once its cause is gone. Method: `append`, where it is
/// safe; dry run, question, replay, replay again.
#[test]
fn a_letter_is_replayed_once_its_cause_is_gone() {
    let world = with_a_letter("onConflict: append");
    world.hapax(&["dlq", "list"]).exits(0).says(&["HX2032", "amount < 100"]);
    let listed = world.hapax(&["dlq", "list", "--json"]).exits(0).json();
    assert_eq!((&listed["causes"][0]["count"], listed["causes"][0]["code"].as_str()), (&1.into(), Some("HX2032")));
    let shown = world.hapax(&["dlq", "show", "1"]);
    shown.exits(0).says(&["letter 1 of orders/sqlite/", "(dead)", "HX2032", order(2, 200).trim_end()]);
    let json = world.hapax(&["dlq", "show", "1", "--json"]).exits(0).json();
    assert_eq!(json["input"], order(2, 200).trim_end());

    world.hapax(&["dlq", "replay", "--yes"]).exits(1).says(&["1 refused again", "letter 1", "amount < 100"]);
    assert_eq!(states(&world), (1, 0, 0));
    mend(&world);
    let dry = world.hapax(&["dlq", "replay", "--dry-run"]);
    dry.exits(0).says(&["1 letter(s): safe", "Dry run: nothing was changed"]);
    world.hapax(&["dlq", "replay"]).exits(2).says(&["HX5004", "--yes", "--dry-run"]);
    assert_eq!(world.amounts(), "1:10 3:30");
    world.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["1 replayed"]);
    assert_eq!(world.amounts(), "1:10 2:200 3:30");
    assert_eq!(states(&world), (0, 1, 0));
    world.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["Nothing to replay"]);
    world.hapax(&["dlq", "list"]).exits(0).says(&["No dead letters"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 3, "a replay moves no position");
}

/// Goal: in `update` an older value may overwrite a newer one: refused without `--overwrite`. Method: a newer value of the
/// same key is delivered before the replay.
#[test]
fn a_replay_out_of_order_is_refused_unless_a_person_says_so() {
    let world = with_a_letter("onConflict: update");
    mend(&world);
    world.append("orders.jsonl", order(2, 22));
    world.hapax(&["run", "--once"]).exits(0);
    let refused = world.hapax(&["dlq", "replay", "--yes"]);
    refused.exits(1).says(&["out of order", "--overwrite", "Nothing to replay"]);
    assert_eq!(world.amounts(), "1:10 2:22 3:30");
    let json = world.hapax(&["dlq", "replay", "--yes", "--json"]).exits(1).json();
    assert_eq!((&json["verdicts"]["outOfOrder"], &json["replayed"]), (&1.into(), &0.into()));
    world.hapax(&["dlq", "replay", "--yes", "--overwrite"]).exits(0).says(&["1 replayed"]);
    assert_eq!(world.amounts(), "1:10 2:200 3:30");
    assert_eq!(states(&world), (0, 1, 0));
}

/// Goal: in `update` each letter is judged by itself: those whose key has no row are replayed, the rest is named and stays.
/// Method: two letters of new keys, one of a key that has a newer row by now.
#[test]
fn in_update_letters_without_a_row_are_replayed_and_the_rest_is_named() {
    let world = World::shop("onConflict: update", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER NOT NULL UNIQUE, customer TEXT, amount INTEGER CHECK (amount < 100))");
    world.write("orders.jsonl", [order(1, 10), order(2, 200), order(3, 300), order(4, 400), order(4, 401)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    world.append("orders.jsonl", order(2, 22));
    world.hapax(&["run", "--once"]).exits(0);
    mend(&world);
    let dry = world.hapax(&["dlq", "replay", "--dry-run"]);
    dry.exits(1).says(&[
        "3 letter(s): safe",
        "1 letter(s): out of order",
        "out of order: letter 1",
        "nothing was changed",
    ]);
    assert_eq!(world.amounts(), "1:10 2:22");
    let json = world.hapax(&["dlq", "replay", "--yes", "--json"]).exits(1).json();
    assert_eq!((&json["replayed"], &json["outOfOrder"]), (&3.into(), &serde_json::json!([1])));
    assert_eq!(world.amounts(), "1:10 2:22 3:300 4:401", "two letters of one key come in their order");
    assert_eq!(states(&world), (1, 3, 0));
    world.hapax(&["dlq", "replay", "--yes", "--overwrite"]).exits(0).says(&["1 replayed"]);
    assert_eq!(world.amounts(), "1:10 2:200 3:300 4:401");
}

/// Goal: where events delete rows, a missing row may be the newer state: nothing is replayed unasked. Method: a letter
/// whose key was deleted after it died.
#[test]
fn where_events_delete_a_missing_row_is_no_proof() {
    let mode = "onConflict: update, deleteWhen: '.customer == \"gone\"'";
    let world = with_a_letter(mode);
    mend(&world);
    world.append("orders.jsonl", "{\"id\":2,\"customer\":\"gone\"}\n");
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["dlq", "replay", "--yes"]).exits(1).says(&["order unknown: deleteWhen", "Nothing to replay"]);
    assert_eq!(world.amounts(), "1:10 3:30");
}

/// Goal: a cause is named by its number, its code, or its text. Method: letters of two causes; each name takes its own.
#[test]
fn a_cause_has_a_number_and_a_code() {
    let world = with_a_letter("onConflict: append");
    world.append("orders.jsonl", "no json\n");
    world.hapax(&["run", "--once"]).exits(0);
    let listed = world.hapax(&["dlq", "list", "--json"]).exits(0).json();
    let causes = listed["causes"].as_array().expect("causes").clone();
    let number = |code: &str| {
        let cause = causes.iter().find(|cause| cause["code"] == code).expect("the cause");
        cause["number"].as_i64().expect("a number").to_string()
    };
    assert_eq!(causes.len(), 2, "{listed:#}");
    world.hapax(&["dlq", "list", "--cause", "hx2001"]).exits(0).says(&["HX2001"]).keeps_silent_about(&["HX2032"]);
    world.hapax(&["dlq", "list", "--cause", &number("HX2032")]).says(&["HX2032"]).keeps_silent_about(&["HX2001"]);
    let dry = world.hapax(&["dlq", "replay", "--cause", "HX2001", "--dry-run"]);
    dry.exits(0).says(&["1 letter(s)"]).keeps_silent_about(&["2 letter(s)"]);
    world.hapax(&["dlq", "discard", "--cause", &number("HX2001"), "--yes"]).exits(0).says(&["1 letter(s) discarded"]);
    assert_eq!(states(&world), (1, 0, 1));
    world.hapax(&["dlq", "discard", "--cause", "HX2032", "--yes"]).exits(0).says(&["1 letter(s) discarded"]);
    assert_eq!(states(&world), (0, 0, 2));
}

/// Two workflows with a letter each, in one database; then a configuration that has only the second.
fn two_owners() -> World {
    let world = World::shop("onConflict: append", "guarantee: exactly-once");
    world
        .sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER CHECK (amount < 100))");
    world.write("orders.jsonl", [order(1, 10), order(2, 200), order(3, 30)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    world.configure("others", "onConflict: append", "guarantee: exactly-once");
    world.hapax(&["reset", "others", "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(letters_by_owner(&world), "orders:dead others:dead");
    world
}

fn letters_by_owner(world: &World) -> String {
    world.ask(
        "SELECT group_concat(workflow || ':' || state, ' ') FROM (SELECT * FROM hapax_dead_letters ORDER BY workflow)",
    )
}

/// Goal: `dlq` reaches only letters of workflows that are in the configuration, and more only with `--all`, after a list.
/// Method: two configurations share a database; the letters of the other one are listed, shown and discarded.
#[test]
fn letters_of_others_are_touched_only_with_all() {
    let world = two_owners();
    let listed = world.hapax(&["dlq", "list"]);
    listed.exits(0).says(&["others/sqlite", "1 more letter(s)", "--all"]).keeps_silent_about(&["orders/sqlite"]);
    world.hapax(&["dlq", "list", "--all"]).exits(0).says(&["others/sqlite", "orders/sqlite"]);
    world.hapax(&["dlq", "show", "1"]).exits(2).says(&["HX5007", "belongs to orders/sqlite", "--all"]);
    world.hapax(&["dlq", "show", "1", "--all"]).exits(0).says(&["letter 1 of orders/sqlite"]);
    world.hapax(&["dlq", "discard", "--workflow", "orders", "--yes"]).exits(2).says(&["HX5001"]);
    world.hapax(&["dlq", "discard", "--id", "1", "--yes"]).exits(0).says(&["No dead letters to discard"]);
    world.hapax(&["dlq", "discard", "--yes"]).exits(0).says(&["1 letter(s) of others/sqlite", "1 letter(s) discarded"]);
    assert_eq!(letters_by_owner(&world), "orders:dead others:discarded");
    world.hapax(&["dlq", "discard", "--all", "--dry-run"]).exits(0).says(&["1 letter(s) of orders/sqlite"]);
    let all = world.hapax(&["dlq", "discard", "--all", "--yes"]);
    all.exits(0).says(&["1 letter(s) of orders/sqlite", "1 letter(s) discarded"]);
    assert_eq!(letters_by_owner(&world), "orders:discarded others:discarded");
    world.hapax(&["dlq", "replay", "--all", "--yes"]).exits(2).says(&["HX5001", "--all"]);
}

/// Goal: the same where the letters are in a state store that several configurations share, with targets of their own. Method:
/// `progress: state`, two configurations, two databases.
#[test]
fn letters_of_others_in_a_shared_state_store_are_touched_only_with_all() {
    let world = World::shop("onConflict: append, progress: state", "guarantee: at-least-once");
    let ours = format!("state: \"sqlite://shared.db\"\n{}", world.read("hapax.yaml"));
    for (workflow, target) in [("orders", "shop.db"), ("others", "other.db")] {
        let table = "DROP TABLE IF EXISTS orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER CHECK (amount < 100))";
        world.database(target).execute_batch(table).expect("a table");
        world.write(&format!("{workflow}.jsonl"), [order(1, 10), order(2, 200), order(3, 30)].concat());
        let text = ours.replace("id: orders", &format!("id: {workflow}")).replace("shop.db", target);
        world.write("hapax.yaml", text.replace("orders.jsonl", &format!("{workflow}.jsonl")));
        world.hapax(&["run", "--once"]).exits(0);
    }
    let by_owner = || -> String {
        world.ask_of(
            "shared.db",
            "SELECT group_concat(workflow || ':' || state, ' ') FROM (SELECT * FROM hapax_dead_letters ORDER BY id)",
        )
    };
    assert_eq!(by_owner(), "orders:dead others:dead");
    let listed = world.hapax(&["dlq", "list"]);
    listed.exits(0).says(&["others/sqlite", "1 more letter(s)", "--all"]).keeps_silent_about(&["orders/sqlite"]);
    world.hapax(&["dlq", "show", "1"]).exits(2).says(&["HX5007", "belongs to orders/sqlite", "--all"]);
    world.hapax(&["dlq", "discard", "--id", "1", "--yes"]).exits(0).says(&["No dead letters to discard"]);
    world.hapax(&["dlq", "discard", "--yes"]).exits(0).says(&["1 letter(s) of others/sqlite", "1 letter(s) discarded"]);
    assert_eq!(by_owner(), "orders:dead others:discarded");
    world.hapax(&["dlq", "discard", "--all"]).exits(2).says(&["1 letter(s) of orders/sqlite", "--yes"]);
    assert_eq!(by_owner(), "orders:dead others:discarded", "there was a list, and no answer");
    world.hapax(&["dlq", "discard", "--all", "--yes"]).exits(0).says(&["1 letter(s) of orders/sqlite"]);
    assert_eq!(by_owner(), "orders:discarded others:discarded");
}

/// Goal: `setup --drop` says whose progress goes, and takes only what is in the configuration; more needs `--all`.
/// Method: two configurations share a database.
#[test]
fn a_drop_takes_only_what_the_configuration_owns() {
    let world = two_owners();
    let asked = world.hapax(&["setup", "--drop"]);
    asked.exits(2).says(&["others/sqlite: 1 lane(s), 3 input(s) read, 1 dead letter(s)", "orders/sqlite", "stays"]);
    let dropped = world.hapax(&["setup", "--drop", "--yes"]);
    dropped.exits(0).says(&["forgotten: 1 delivery(s)", "its tables stay"]);
    assert_eq!(world.ask::<String>("SELECT group_concat(workflow) FROM hapax_progress"), "orders");
    assert_eq!(letters_by_owner(&world), "orders:dead");
    let left = "SELECT (SELECT count(*) FROM hapax_notes WHERE workflow = 'others') || ' ' || \
                (SELECT count(*) FROM hapax_notes WHERE workflow = 'orders')";
    assert_eq!(world.ask_of::<String>("hapax-data/state.db", left), "0 1");
    world.hapax(&["setup", "--drop", "--all", "--yes"]).exits(0).says(&["orders/sqlite", "dropped: "]);
    assert_eq!(world.ask::<i64>("SELECT count(*) FROM sqlite_master WHERE name LIKE 'hapax%'"), 0);
}

/// Goal: in `newer` an older letter loses against what is there, so its replay is safe.
#[test]
fn a_replay_in_newer_cannot_overwrite_a_newer_row() {
    let world = World::shop("onConflict: newer", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER NOT NULL UNIQUE, amount INTEGER CHECK (amount < 100), hapax_version BLOB, hapax_deleted INTEGER)");
    for lines in [[order(1, 10), order(2, 200)].concat(), order(2, 22)] {
        world.append("orders.jsonl", lines);
        world.hapax(&["run", "--once"]).exits(0);
    }
    mend(&world);
    world.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["safe", "1 replayed"]);
    assert_eq!(world.amounts(), "1:10 2:22");
    assert_eq!(states(&world), (0, 1, 0));
}

/// Goal: a discarded letter is never delivered and stays readable. Method: discard by cause; show; replay.
#[test]
fn a_discarded_letter_stays_readable() {
    let world = with_a_letter("onConflict: append");
    world.hapax(&["dlq", "discard", "--dry-run"]).exits(0).says(&["1 letter(s)", "nothing was changed"]);
    world
        .hapax(&["dlq", "discard", "--cause", "something else", "--yes"])
        .exits(0)
        .says(&["No dead letters to discard"]);
    world.hapax(&["dlq", "discard"]).exits(2).says(&["HX5004", "--yes"]);
    world.hapax(&["dlq", "discard", "--id", "1", "--yes"]).exits(0).says(&["1 letter(s) discarded"]);
    assert_eq!(states(&world), (0, 0, 1));
    world.hapax(&["dlq", "show", "1"]).exits(0).says(&["(discarded)", order(2, 200).trim_end()]);
    mend(&world);
    world.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["Nothing to replay"]);
    assert_eq!(world.amounts(), "1:10 3:30");
}

/// Goal: letters of `progress: state` may repeat, and the verdict says so. Method: letters in the state store.
#[test]
fn letters_kept_apart_from_the_rows_may_repeat() {
    let world = World::shop("onConflict: append, progress: state", "guarantee: at-least-once");
    world
        .sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER CHECK (amount < 100))");
    world.write("orders.jsonl", [order(1, 10), order(2, 200)].concat());
    world.hapax(&["run", "--once"]).exits(0);
    mend(&world);
    world.hapax(&["dlq", "replay", "--dry-run"]).exits(0).says(&["may repeat"]);
    world.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["1 replayed"]);
    assert_eq!(world.amounts(), "1:10 2:200");
    assert_eq!(states(&world), (0, 1, 0));
}

/// Goal: a letter that does not exist, and folders without letters, are told plainly.
#[test]
fn without_letters_it_says_so() {
    let world = World::shop("", "");
    world.hapax(&["dlq", "list"]).exits(0).says(&["No dead letters"]);
    world.write("orders.jsonl", orders(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["dlq", "list"]).exits(0).says(&["No dead letters"]);
    world.hapax(&["dlq", "list", "--workflow", "order"]).exits(2).says(&["HX5001", "there are orders"]);
    world.hapax(&["dlq", "show", "7"]).exits(2).says(&["HX5007", "no letter number 7", "`hapax dlq list`"]);
    world.hapax(&["dlq", "replay", "--dry-run"]).exits(0).says(&["Nothing to replay"]);
}

/// Goal: where it cannot be told which letters are older than what is there, a replay says why and what to do, and writes
/// nothing; told to, it does. Method: `update` with progress elsewhere, and with events that delete rows.
#[test]
fn a_replay_that_cannot_tell_the_order_says_why() {
    let keyed = "guarantee: at-least-once, deduplication: { keyFields: [id] }, maxRejects: 100%";
    for (sink, why) in [
        ("onConflict: update, progress: state", "order unknown: with progress: state nothing keeps a worker from"),
        ("onConflict: update, deleteWhen: '.amount == 0'", "order unknown: deleteWhen removes rows"),
    ] {
        let world = World::shop(sink, keyed);
        world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER CHECK (amount < 100))");
        world.write("orders.jsonl", [order(1, 10), order(2, 200)].concat());
        world.hapax(&["run", "--once"]).exits(0);
        mend(&world);
        let refused = world.hapax(&["dlq", "replay", "--yes"]);
        refused.exits(1).says(&["1 letter(s)", why, "They stay", "`hapax trace`", "--id NUMBER --overwrite"]);
        refused.says(&["Nothing to replay."]);
        let json = world.hapax(&["dlq", "replay", "--yes", "--json"]).exits(1).json();
        assert_eq!(json["verdicts"]["orderUnknown"], 1, "{json:#}");
        assert_eq!((world.amounts(), states(&world)), ("1:10".to_owned(), (1, 0, 0)));
        world.hapax(&["dlq", "replay", "--id", "1", "--overwrite", "--yes"]).exits(0).says(&["1 replayed"]);
        assert_eq!((world.amounts(), states(&world)), ("1:10 2:200".to_owned(), (0, 1, 0)));
    }
}

/// Goal: letters of a lane that has no progress any more have an owner too: those of others stay, with their tables, and ours
/// go. Method: two workflows in one database, both without progress.
#[test]
fn dropping_finds_letters_without_progress() {
    let world = two_owners();
    world.sql("DELETE FROM hapax_progress; DELETE FROM hapax_epochs");
    let asked = world.hapax(&["setup", "--drop"]);
    asked.exits(2).says(&["others/sqlite: 1 lane(s), 0 input(s) read, 1 dead letter(s)"]);
    asked.says(&["orders/sqlite: 1 lane(s), 0 input(s) read, 1 dead letter(s)", "stays"]);
    world.hapax(&["setup", "--drop", "--yes"]).exits(0).says(&["its tables stay"]);
    assert_eq!(letters_by_owner(&world), "orders:dead");
}

/// `update` with letters that died because a row of `parents` was missing, which is there by now.
fn with_letters_of(lines: &str) -> World {
    let delivery = "guarantee: exactly-once, deduplication: { keyFields: [id] }, maxRejects: 100%";
    let world = World::shop("onConflict: update", delivery);
    world.sql("DROP TABLE orders; CREATE TABLE parents (amount INTEGER PRIMARY KEY); CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER REFERENCES parents (amount))");
    world.write("orders.jsonl", lines);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 0, "all are dead");
    let parents: Vec<String> = (1..=3).map(|amount| format!("INSERT INTO parents VALUES ({amount})")).collect();
    world.sql(&parents.join(";"));
    world
}

/// Goal: what a replay wrote itself is no newer row of somebody else: of several letters of one key the newest stays, in however
/// many transactions. Method: a slow replay; one that is killed after its first transaction and repeated; more letters than
/// one page has.
#[test]
fn letters_of_one_key_are_replayed_together() {
    let lines = [order(2, 1), order(3, 1), order(2, 2), order(2, 3)].concat();
    let slow = with_letters_of(&lines);
    slow.hapax(&["dlq", "replay", "--yes", "--rate", "4/s"]).exits(0).says(&["4 replayed"]);
    assert_eq!((slow.amounts(), states(&slow)), ("2:3 3:1".to_owned(), (0, 4, 0)));

    let killed = with_letters_of(&lines);
    let replay = killed.start("replay.log", &["dlq", "replay", "--yes", "--rate", "1/m"]);
    until("the first transaction is done", || killed.rows() > 0);
    drop(replay);
    assert_eq!((killed.amounts(), states(&killed)), ("2:3".to_owned(), (1, 3, 0)), "no key is replayed in part");
    killed.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["1 replayed"]);
    assert_eq!((killed.amounts(), states(&killed)), ("2:3 3:1".to_owned(), (0, 4, 0)));
    killed.hapax(&["reconcile"]).exits(0).says(&["adds up"]);

    let many: String = (1..1200).map(|id| order(id, 1)).chain([order(1, 2)]).collect();
    let many = with_letters_of(&many);
    many.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["1200 replayed"]);
    assert_eq!(many.ask::<i64>("SELECT amount FROM orders WHERE id = 1"), 2, "the newest event of the key");
}

/// Goal: what was not done changes no file. Method: `setup --drop` and `dlq discard` without an answer, `dlq replay` and `dlq discard`
/// without letters; the bytes of a database that has a rollback journal.
#[test]
fn what_was_not_done_changes_no_file() {
    let world = with_a_letter("onConflict: append");
    let fresh = World::shop("", "");
    world.sql("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE");
    fresh.write("orders.jsonl", orders(1..=1));
    let commands: [(&World, &[&str], i32); 6] = [
        (&world, &["setup", "--drop"], 2),
        (&world, &["dlq", "discard"], 2),
        (&world, &["dlq", "replay"], 2),
        (&fresh, &["setup", "--drop"], 2),
        (&fresh, &["dlq", "replay", "--yes"], 0),
        (&fresh, &["dlq", "discard", "--yes"], 0),
    ];
    for (world, command, code) in commands {
        let bytes = || std::fs::read(world.path("shop.db")).expect("the database");
        let before = bytes();
        world.hapax(command).exits(code);
        assert!(bytes() == before, "{command:?} changed the file");
    }
    world.hapax(&["dlq", "discard", "--yes"]).exits(0).says(&["1 letter(s) discarded"]);
    world.hapax(&["setup", "--drop", "--yes"]).exits(0).says(&["dropped: "]);
}

/// Goal: texts that stand for no value are a cause of their own, so that its example has the cure; and a later run does not point at
/// letters that are gone. Method: CSV with three texts for a number; list, discard, run again.
#[test]
fn texts_for_no_value_are_told_from_others() {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY NOT NULL, amount INTEGER)");
    world.write("in.csv", "id,amount\n1,\"1,50\"\n2,NA\n3,NULL\n4,NA\n5,5\n");
    let text = "workflows:
  - id: orders
    source: { file: { path: in.csv } }
    sink: { sqlite: { path: shop.db, table: orders, onConflict: update } }
    delivery: { guarantee: exactly-once, deduplication: { keyFields: [id] } }
";
    world.write("hapax.yaml", text);
    world.hapax(&["run", "--once"]).exits(0).says(&["4 dead in all; `hapax dlq list` says why"]);
    let listed = world.hapax(&["dlq", "list"]);
    listed.exits(0).says(&["csv: { null: \"NA\" }", "csv: { null: \"NULL\" }", "1,50"]);
    let json = world.hapax(&["dlq", "list", "--json"]).exits(0).json();
    let mut counts: Vec<u64> =
        json["causes"].as_array().expect("causes").iter().map(|c| c["count"].as_u64().expect("a count")).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 2], "{json:#}");
    world.hapax(&["dlq", "discard", "--yes"]).exits(0);
    world.append("in.csv", "6,6\n");
    let again = world.hapax(&["run", "--once"]);
    again.exits(0).says(&["4 dead in all, none of them in this run"]).keeps_silent_about(&["dlq list"]);
}

/// Goal: letters go into the table that their delivery writes to, and into no other that a changed configuration names, or that
/// took the name: such a replay marked them as delivered, and they were missing where they belong. Method: letters of one table;
/// another table, another key and a table made anew are refused as `check --live` and `run` refuse them, also by a dry run, with
/// progress in both places; back on the first table they are replayed.
#[test]
fn a_replay_under_other_terms_is_refused_as_a_run_is() {
    let elsewhere = "guarantee: idempotent-keys, deduplication: { keyFields: [id], unique: true }";
    for (sink, delivery) in [("", KEYED), ("progress: state, onConflict: ignore", elsewhere)] {
        let world = World::shop(sink, delivery);
        world.write("orders.jsonl", format!("{}not json\n{}", orders(1..=2), order(3, 300)));
        world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, amount INTEGER, UNIQUE (customer, id))");
        world.sql("CREATE TRIGGER small BEFORE INSERT ON orders WHEN new.amount > 99 BEGIN SELECT RAISE(ABORT, 'too much'); END");
        world.hapax(&["run", "--once"]).exits(0);
        world.accounts_for(4, 2);
        world.sql("DROP TRIGGER small; CREATE TABLE elsewhere (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)");
        let (right, all) = (world.read("hapax.yaml"), ["dlq", "replay", "--overwrite"]);
        for wrong in [right.replace("table: orders", "table: elsewhere"), right.replace("[id]", "[customer, id]")] {
            world.write("hapax.yaml", &wrong);
            world.hapax(&["check", "--live"]).exits(5).says(&["HX4012"]);
            for how in ["--dry-run", "--yes"] {
                let refused = world.hapax(&[&all[..], &[how]].concat());
                refused.exits(5).says(&["HX4012", "hapax reset orders --accept"]).keeps_silent_about(&["safe"]);
            }
        }
        assert_eq!(world.ask::<i64>("SELECT count(*) FROM elsewhere"), 0);
        world.write("hapax.yaml", &right);
        world.accounts_for(4, 2);
        world.hapax(&[&all[..], &["--yes"]].concat()).exits(1).says(&["1 replayed"]);
        assert_eq!(world.amounts(), "1:10 2:20 3:300");
    }
}

/// Goal: a table that was made anew is another one, until a person says that it is meant. Method: drop and create it; dry run,
/// replay, reset, replay.
#[test]
fn a_replay_into_a_table_made_anew_waits_for_a_person() {
    let world = with_a_letter("onConflict: append");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER NOT NULL UNIQUE, customer TEXT, amount INTEGER)");
    for how in ["--dry-run", "--yes"] {
        world.hapax(&["dlq", "replay", how]).exits(5).says(&["HX4012", "made anew", "hapax reset orders --accept"]);
    }
    assert_eq!((world.rows(), states(&world)), (0, (1, 0, 0)));
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["dlq", "replay", "--yes"]).exits(0).says(&["1 replayed"]);
    assert_eq!((world.rows(), states(&world)), (1, (0, 1, 0)));
}
