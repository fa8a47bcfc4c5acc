//! `hapax reset`: a person moves a delivery, accepts a change, or gives a renamed workflow its progress.

use crate::world::{KEYED, World, order, orders};

/// An `append` table that shows every repetition, with three lines delivered.
fn delivered() -> World {
    let world = World::shop("onConflict: append", "guarantee: exactly-once");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER)");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 3);
    world
}

/// Goal: after a reset nobody reads of the stop that it cured. Method: a contract that changed stops; accept it; status.
#[test]
fn a_reset_takes_the_last_word_of_the_stopped_worker_away() {
    let world = delivered();
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)");
    world.hapax(&["run", "--once"]).exits(5);
    world.hapax(&["status"]).exits(0).says(&["stopped", "HX4012"]);
    world.hapax(&["reset", "orders", "--accept", "--dry-run"]).exits(0);
    world.hapax(&["status"]).exits(0).says(&["stopped", "HX4012"]);
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["status"]).exits(0).keeps_silent_about(&["stopped", "HX4012"]);
    assert_eq!(world.status()[0]["exitCode"], serde_json::Value::Null);
}

/// Goal: `earliest`, `latest` and a byte move the position, and only after a yes. Method: count what each run repeats.
#[test]
fn a_delivery_is_moved_to_where_a_person_says() {
    let world = delivered();
    world.hapax(&["reset", "orders", "--to", "earliest"]).exits(2).says(&["HX5004", "--yes"]);
    world.hapax(&["reset", "orders", "--to", "earliest", "--dry-run"]).exits(0).says(&["to 0", "nothing was changed"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 3, "nothing was moved yet");
    world.hapax(&["reset", "orders", "--to", "earliest", "--yes"]).exits(0).says(&["orders/sqlite/", "now at 0"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 6, "all three again");
    let second = order(1, 10).len().to_string();
    world.hapax(&["reset", "orders", "--to", &second, "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 8, "the last two again");
    world.append("orders.jsonl", orders(4..=5));
    world.hapax(&["reset", "orders", "--to", "latest", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 8, "what lay between was skipped");
    world.status();
}

/// Goal: a workflow goes over to exactly-once with its position, and nothing is doubled. Method: by the word alone where
/// progress is beside the rows; with `reset --to` where it was in the state store.
#[test]
fn a_workflow_goes_over_to_exactly_once() {
    for (place, moves) in [("", false), (", progress: state", true)] {
        let world = World::shop(&format!("onConflict: append{place}"), "guarantee: at-least-once");
        world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER)");
        world.write("orders.jsonl", orders(1..=5));
        world.hapax(&["run", "--once"]).exits(0);
        let position = world.status()[0]["progress"]["position"].as_str().expect("a position").to_owned();
        world.configure("orders", "onConflict: append", "guarantee: exactly-once");
        if moves {
            world.hapax(&["run", "--once"]).exits(5).says(&["HX5021", "hapax reset orders --to", &position]);
            world.hapax(&["reset", "orders", "--to", &position, "--yes"]).exits(0).says(&["no progress yet"]);
        }
        world.append("orders.jsonl", orders(6..=7));
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!((world.rows(), world.ask::<i64>("SELECT count(DISTINCT id) FROM orders")), (7, 7), "{place}");
    }
}

/// Goal: a workflow whose progress was kept elsewhere for a while does not go on from where it stood before. Method: to the
/// state store, deliver, and back; then there and back without an event.
#[test]
fn progress_that_moves_there_and_back_takes_its_position_along() {
    let in_sink = |world: &World| world.configure("orders", "onConflict: append", "guarantee: at-least-once");
    let in_state =
        |world: &World| world.configure("orders", "onConflict: append, progress: state", "guarantee: at-least-once");
    let position = |world: &World| world.status()[0]["progress"]["position"].as_str().expect("a position").to_owned();
    let world = World::shop("onConflict: append", "guarantee: at-least-once");
    world.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER, customer TEXT, amount INTEGER)");
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    let first = position(&world);

    in_state(&world);
    world.hapax(&["run", "--once"]).exits(5).says(&["HX5021", "has no progress"]);
    world.hapax(&["reset", "orders", "--to", &first, "--yes"]).exits(0);
    world.append("orders.jsonl", orders(4..=5));
    world.hapax(&["run", "--once"]).exits(0);
    let second = position(&world);

    in_sink(&world);
    world.append("orders.jsonl", orders(6..=7));
    let refused = world.hapax(&["run", "--once"]);
    refused.exits(5).says(&["HX5021", &format!("is at position {first}"), &format!("reset orders --to {second}")]);
    assert_eq!(world.rows(), 5, "nothing was delivered");
    world.hapax(&["reset", "orders", "--to", &second, "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!((world.rows(), world.ask::<i64>("SELECT count(DISTINCT id) FROM orders")), (7, 7));

    let third = position(&world);
    in_state(&world);
    world.hapax(&["reset", "orders", "--to", &third, "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    in_sink(&world);
    world.append("orders.jsonl", orders(8..=8));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!((world.rows(), world.ask::<i64>("SELECT count(DISTINCT id) FROM orders")), (8, 8), "same place");
}

/// Goal: a position inside a line, behind the end, or that is no number is refused with the reason.
#[test]
fn an_impossible_position_is_refused() {
    let world = delivered();
    world.hapax(&["reset", "orders", "--to", "3", "--yes"]).exits(1).says(&[
        "HX3002",
        "inside a line",
        "after a newline",
    ]);
    world.hapax(&["reset", "orders", "--to", "9999", "--yes"]).exits(1).says(&["HX3002", "9999", "the file ends at"]);
    world.hapax(&["reset", "orders", "--to", "soon", "--yes"]).exits(2).says(&["HX5001", "soon"]);
    world
        .hapax(&["reset", "orders"])
        .exits(2)
        .says(&["HX5001", "--to POSITION, --accept, --adopt OLD, or --lane NEW --adopt-lane OLD"]);
    world.hapax(&["reset", "order", "--accept", "--yes"]).exits(2).says(&["HX5001", "\"order\""]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 3);
}

/// Goal: a renamed workflow stops with code 5 and names the old one; `--adopt` gives it progress and letters, and fences
/// the old id. Method: rename, run, adopt, run; then the old name again.
#[test]
fn a_renamed_workflow_adopts_the_progress_of_its_old_name() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3) + "{oops\n");
    world.hapax(&["run", "--once"]).exits(0);
    world.configure("sales", "", KEYED);
    world.append("orders.jsonl", orders(4..=5));
    let refused = world.hapax(&["run", "--once"]);
    refused.exits(5).says(&["HX4017", "orders/sqlite/", "`hapax reset sales --adopt orders`"]);
    assert_eq!(world.rows(), 3);
    let adopted = world.hapax(&["reset", "sales", "--adopt", "orders", "--yes"]);
    adopted.exits(0).says(&["1 lane(s) taken over"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 5);
    world.accounts_for(6, 1);
    world.hapax(&["dlq", "show", "1"]).exits(0).says(&["sales/sqlite/"]);
    world.hapax(&["reset", "sales", "--adopt", "orders", "--yes"]).exits(1).says(&[
        "HX4192",
        "\"orders\"",
        "no progress",
    ]);
}

/// Goal: `--accept` under a new name starts a delivery of its own.
#[test]
fn a_new_workflow_on_an_old_target_may_begin_anew() {
    let world = delivered();
    world.configure("sales", "onConflict: append", "guarantee: exactly-once");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX4017", "`hapax reset sales --accept`"]);
    world.hapax(&["reset", "sales", "--accept", "--yes"]).exits(0).says(&["no progress yet; starts at 0"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 6);
}

/// Goal: a live worker is fenced by a reset, and its successor goes on from there.
#[test]
fn a_reset_fences_a_live_worker() {
    let world = delivered();
    let worker = world.start("worker.log", &["run"]);
    worker.until_it_says("claimed");
    world.hapax(&["reset", "orders", "--to", "earliest", "--yes"]).exits(0).says(&["now at 0"]);
    world.append("orders.jsonl", orders(4..=4));
    crate::world::until("the worker that still holds its lease claims again", || world.rows() == 7);
    worker.terminate();
    worker.ends().exits(0);
    world.status();
}

/// Goal: fewer lanes than before are not delivered twice unseen. Method: from three lanes to one.
#[test]
fn another_number_of_lanes_needs_a_person() {
    let world = World::empty();
    let text = |lanes: u32| {
        format!(
            "workflows:\n  - id: w\n    source: {{ generate: {{ count: 100, lanes: {lanes} }} }}\n    \
             sink: {{ sqlite: {{ path: shop.db, table: t, onConflict: append }} }}\n    \
             delivery: {{ guarantee: exactly-once }}\n"
        )
    };
    world.sql("CREATE TABLE t (order_id INTEGER)");
    world.write("hapax.yaml", text(3));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.ask::<i64>("SELECT count(DISTINCT order_id) FROM t"), 100);
    world.write("hapax.yaml", text(1));
    world.hapax(&["run", "--once"]).exits(5).says(&["HX5020"]);
    assert_eq!(world.ask::<i64>("SELECT count(*) FROM t"), 100);
}

/// Goal: a byte inside of quotes is refused, where no record begins though a line does. Method: a field with line ends; the bytes of its
/// lines, of records, and of the end.
#[test]
fn a_byte_inside_of_quotes_is_refused() {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER, note TEXT)");
    let (header, first, second) = ("id,note\n", "1,\"one\n2,two\n\"\n", "3,three\n");
    world.write("in.csv", [header, first, second].concat());
    let text = "workflows:
  - id: orders
    source: { file: { path: in.csv } }
    sink: { sqlite: { path: shop.db, table: orders, onConflict: append } }
    delivery: { guarantee: exactly-once }
";
    world.write("hapax.yaml", text);
    let to = |byte: usize| world.hapax(&["reset", "orders", "--to", &byte.to_string(), "--dry-run"]);
    let inside = header.len() + "1,\"one\n".len();
    for progress in ["none", "some"] {
        let begins = format!("the record that begins at {}", header.len());
        let answer = to(inside);
        answer.exits(to(inside - 1).code).says(&["HX3002", "in quotes", &begins]);
        assert_ne!(answer.code, 0, "{progress}: {answer}");
        to(header.len()).exits(0).keeps_silent_about(&["warning"]);
        to(header.len() + first.len()).exits(0).keeps_silent_about(&["warning"]);
        to(header.len() + first.len() + second.len()).exits(0).keeps_silent_about(&["warning"]);
        world.hapax(&["run", "--once"]).exits(0);
    }
    assert_eq!(world.rows(), 2);
}
