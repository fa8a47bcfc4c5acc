//! `hapax setup`: our tables are printed, made and dropped; the user's own stay.

use crate::world::{KEYED, World, orders};

fn our_tables(world: &World) -> i64 {
    world.ask("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name LIKE 'hapax%'")
}

/// Goal: `--sql` prints statements that work, and changes nothing. Method: run them on a database of their own.
#[test]
fn the_printed_statements_make_the_tables() {
    let world = World::shop("", KEYED);
    let printed = world.hapax(&["setup", "--sql"]);
    printed.exits(0).says(&[
        "shop.db",
        "CREATE TABLE IF NOT EXISTS hapax_progress",
        "CREATE TABLE \"orders\"",
        "rights",
    ]);
    assert_eq!(our_tables(&world), 0);
    world.database("empty.db").execute_batch(&printed.out).expect("the statements work as printed");
    assert!(!world.path("hapax-data").exists());
}

/// Goal: `--yes` makes the tables, twice without harm; without a terminal and without `--yes` nothing happens.
#[test]
fn setup_makes_the_tables_after_a_yes() {
    let world = World::shop("", KEYED);
    let asked = world.hapax(&["setup"]);
    asked.exits(2).says(&["HX5004", "--yes", "--sql"]).keeps_silent_about(&["--dry-run"]);
    assert_eq!(our_tables(&world), 0);
    world.hapax(&["setup", "--yes"]).exits(0).says(&["made: ", "shop.db", "state.db"]);
    let again = world.hapax(&["setup", "--yes"]);
    again.exits(0).says(&["there already: ", "shop.db", "state.db"]).keeps_silent_about(&["made: "]);
    assert!(our_tables(&world) > 3);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    world.accounts_for(3, 0);
}

/// Goal: `--drop --yes` drops ours and leaves the user's. Method: deliver, drop, deliver anew.
#[test]
fn dropped_tables_leave_the_user_s_own() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["setup", "--drop"]).exits(2).says(&["HX5004", "--yes", "your own tables stay"]);
    assert!(our_tables(&world) > 3);
    world.hapax(&["setup", "--drop", "--yes"]).exits(0).says(&["dropped: ", "shop.db"]);
    assert_eq!(our_tables(&world), 0);
    let triggers = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'";
    assert_eq!(world.ask::<i64>(triggers), 0, "no trigger of ours is left");
    assert_eq!(world.amounts(), "1:10 2:20 3:30");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.amounts(), "1:10 2:20 3:30");
}

/// Goal: `--sql` and `--yes` together are a mistake of usage.
#[test]
fn printing_and_doing_exclude_each_other() {
    World::shop("", KEYED).hapax(&["setup", "--sql", "--yes"]).exits(2).says(&["--sql", "--yes"]);
}
