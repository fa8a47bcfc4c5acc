//! Several lanes: one delivery each, side by side, and the commands over all of them.

use super::{Server, Shop, on_every_server};
use crate::world::number;

on_every_server! {
    four_lanes_deliver_what_one_delivers,
    another_number_of_lanes_needs_a_person,
    lanes_into_a_table_with_a_trigger_take_turns,
    check_says_which_tables_are_written_in_lane_order,
}

fn generated<S: Server>(shop: &Shop<S>, lanes: u32) {
    let (url, kind) = (shop.url(), S::KIND);
    let state = S::state_beside(&url);
    let text = format!(
        "state: \"{state}\"
workflows:
  - id: stream
    source: {{ generate: {{ seed: 5, count: 4000, updates: 20%, lanes: {lanes} }} }}
    sink: {{ {kind}: {{ url: \"{url}\", table: stream }} }}
    delivery: {{ guarantee: exactly-once, epoch: {{ interval: 20ms }}, deduplication: {{ keyFields: [order_id] }} }}
"
    );
    shop.world.write("hapax.yaml", text);
}

fn table<S: Server>(shop: &Shop<S>) {
    shop.sql(
        "DROP TABLE IF EXISTS stream; CREATE TABLE stream (order_id bigint PRIMARY KEY, customer text, \
         amount_cents bigint, status text, version bigint)",
    );
}

fn digest<S: Server>(shop: &Shop<S>) -> String {
    let rows = S::in_one_line("concat(order_id, status, version)", "order_id");
    shop.ask(&format!("SELECT concat(count(*), ' ', md5({rows})) FROM stream"))
}

/// Goal: four lanes deliver what one delivers, each with its own books. Method: the same seeded stream in one lane and in
/// four; status, reset of one lane, another run.
fn four_lanes_deliver_what_one_delivers<S: Server>() {
    let shop = Shop::<S>::empty();
    table(&shop);
    generated(&shop, 1);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(4000, 0);
    let expected = digest(&shop);
    shop.hapax(&["setup", "--drop", "--yes"]).exits(0);
    table(&shop);
    generated(&shop, 4);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(digest(&shop), expected);
    shop.accounts_for(4000, 0);
    let lanes: Vec<String> = shop.world.status().iter().map(|line| line["lane"].to_string()).collect();
    assert_eq!(lanes, ["0-of-4", "1-of-4", "2-of-4", "3-of-4"].map(|lane| format!("\"{lane}\"")));
    let reset = shop.hapax(&["reset", "stream", "--lane", "2-of-4", "--to", "earliest", "--yes"]);
    reset.exits(0).says(&[&format!("stream/{}/2-of-4", S::KIND)]).keeps_silent_about(&["1-of-4"]);
    shop.hapax(&["run", "--once"]).exits(0);
    assert_eq!(digest(&shop), expected);
    let again = shop.world.status().iter().map(|line| number(&line["progress"]["read"])).sum::<u64>();
    assert!((4900..5100).contains(&again), "one lane's share was read twice: {again}");
}

/// Goal: another number of lanes is not delivered twice unseen. Method: from one lane to two.
fn another_number_of_lanes_needs_a_person<S: Server>() {
    let shop = Shop::<S>::empty();
    table(&shop);
    generated(&shop, 1);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.hapax(&["run", "--once"]).exits(0);
    generated(&shop, 2);
    shop.hapax(&["run", "--once"]).exits(5).says(&["HX5020", &format!("stream/{}/0", S::KIND), "--accept"]);
    shop.hapax(&["reset", "stream", "--accept", "--yes"]).exits(0).says(&["0-of-2", "1-of-2"]);
    shop.hapax(&["run", "--once"]).exits(0);
}

/// A trigger that counts events in seven rows which all lanes share: in which order they are locked is that of the events.
fn counted_by_a_trigger<S: Server>(shop: &Shop<S>) {
    table(shop);
    shop.sql("DROP TABLE IF EXISTS tally; CREATE TABLE tally (slot bigint PRIMARY KEY, n bigint NOT NULL)");
    shop.sql("INSERT INTO tally VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0)");
    S::on_each_row("stream", "UPDATE tally SET n = n + 1 WHERE slot = NEW.order_id % 7")
        .iter()
        .for_each(|sql| shop.sql(sql));
}

/// Goal: lanes into a table whose trigger locks rows of its own take turns: none ends another's transaction, no event is left
/// out. Method: a server of its own, four lanes, a trigger that counts events in rows that they share; the server's own
/// count of deadlocks.
fn lanes_into_a_table_with_a_trigger_take_turns<S: Server>() {
    let server = S::own_server();
    let shop = Shop::<S>::on_server(&S::address_of(&server));
    counted_by_a_trigger(&shop);
    generated(&shop, 4);
    shop.hapax(&["setup", "--yes"]).exits(0);
    let before = shop.ask(S::DEADLOCKS);
    shop.hapax(&["run", "--once"]).exits(0);
    shop.accounts_for(4000, 0);
    assert_eq!(shop.ask("SELECT sum(n) FROM tally"), "4000", "every event was written, none reduced away");
    assert_eq!(shop.ask(S::DEADLOCKS), before, "no lane ended another's transaction");
}

/// Goal: who looks before the first run is told that lanes take turns, and because of what. Method: `check --live` with a
/// trigger, with a second unique index, and with neither.
fn check_says_which_tables_are_written_in_lane_order<S: Server>() {
    let shop = Shop::<S>::empty();
    let words = ["rows are written in lane order, none left out, and one lane at a time", "where an epoch is cut"];
    table(&shop);
    generated(&shop, 4);
    shop.hapax(&["setup", "--yes"]).exits(0);
    shop.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&words);
    counted_by_a_trigger(&shop);
    let answer = shop.hapax(&["check", "--live"]);
    answer.exits(0).says(&words).says(&["because of the trigger \"on_each_row\""]);
    let notes = shop.hapax(&["check", "--live", "--json"]).exits(0).json()["checked"][0]["table"]["notes"].to_string();
    assert!(words.iter().all(|word| notes.contains(word)), "{notes}");
}
