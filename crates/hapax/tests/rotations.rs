//! Rotations inside a pattern while something else is wrong, and who reads its lanes meanwhile.

use crate::chains::{APPEND, ids, lines, rotate, shop};
use crate::world::{World, rename, until};

/// A pattern into a table without a key, for a worker that waits for a locked target as long as it is locked.
fn patient(path: &str) -> World {
    let world = shop(path, &format!("{}, busyTimeout: 200ms", APPEND.0), APPEND.1);
    world.write("hapax.yaml", world.read("hapax.yaml").replace(", giveUpAfter: 300ms", ""));
    world
}

/// Nothing is left to read, nothing comes again, and the books add up.
fn nothing_is_left(world: &World, expected: &str) {
    assert_eq!(ids(world), expected);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(world), expected, "nothing is left, nothing comes again");
    world.hapax(&["reconcile", "orders"]).exits(0);
}

/// Goal: who waits for its target over two rotations loses and doubles nothing. Method: lock the target, rotate twice with new lines,
/// give the lock back; a single path, and patterns that find the rotated names or do not.
#[test]
fn a_locked_target_over_two_rotations_loses_and_doubles_nothing() {
    for path in ["in/app.log", "in/*.log*", "in/*.log"] {
        let world = patient(path);
        world.write("in/app.log", lines(1..=2));
        let worker = world.start("worker.log", &["run"]);
        until("the first lines are read", || world.rows() == 2);
        let lock = world.database("shop.db");
        lock.execute_batch("BEGIN IMMEDIATE").expect("the lock is taken");
        world.append("in/app.log", lines(3..=3));
        worker.until_it_says("HX4003");
        for n in [4, 6] {
            world.append("in/app.log", lines(n..=n));
            rotate(&world);
            world.write("in/app.log", lines(n + 1..=n + 1));
        }
        lock.execute_batch("ROLLBACK").expect("the lock is given back");
        until("all lines are read", || world.rows() >= 7);
        worker.terminate();
        worker.ends().exits(0);
        nothing_is_left(&world, "1 2 3 4 5 6 7");
    }
}

/// Goal: a lane that waits for one of the eight places waits with its file, whatever happens to its name. Method: twelve lanes, of which
/// eight wait for a locked target; all are rotated twice with new lines.
#[test]
fn lanes_that_wait_for_a_place_lose_and_double_nothing() {
    for path in ["in/*.log*", "in/*.log"] {
        let world = patient(path);
        let name = |stem: i64| format!("in/{stem}.log");
        for stem in 10..22 {
            world.write(&name(stem), lines(stem * 10..=stem * 10));
        }
        let worker = world.start("worker.log", &["run"]);
        until("the first lines are read", || world.rows() == 12);
        let lock = world.database("shop.db");
        lock.execute_batch("BEGIN IMMEDIATE").expect("the lock is taken");
        for stem in 10..22 {
            world.append(&name(stem), lines(stem * 10 + 1..=stem * 10 + 1));
        }
        worker.until_it_says("HX4003");
        for n in [2, 4] {
            for stem in 10..22 {
                let [live, first, second] = ["", ".1", ".2"].map(|suffix| world.path(&(name(stem) + suffix)));
                world.append(&name(stem), lines(stem * 10 + n..=stem * 10 + n));
                if first.exists() {
                    rename(&first, &second);
                }
                rename(&live, &first);
                world.write(&name(stem), lines(stem * 10 + n + 1..=stem * 10 + n + 1));
            }
        }
        lock.execute_batch("ROLLBACK").expect("the lock is given back");
        until("all lines are read", || world.rows() >= 72);
        worker.terminate();
        worker.ends().exits(0);
        let expected: Vec<String> =
            (10..22).flat_map(|stem| (0..6).map(move |n| (stem * 10 + n).to_string())).collect();
        nothing_is_left(&world, &expected.join(" "));
    }
}

/// Goal: a worker that was down over several rotations reads each file once, also into a table that would show it twice. Method: three
/// rotations, lines before and after each.
#[test]
fn a_worker_that_was_down_over_three_rotations_loses_and_doubles_nothing() {
    for path in ["in/app.log", "in/*.log*", "in/*.log"] {
        let world = shop(path, APPEND.0, APPEND.1);
        world.write("in/app.log", lines(1..=2));
        let worker = world.start("worker.log", &["run"]);
        until("the first lines are read", || world.rows() == 2);
        worker.terminate();
        worker.ends().exits(0);
        for n in [3, 5, 7] {
            world.append("in/app.log", lines(n..=n));
            rotate(&world);
            world.write("in/app.log", lines(n + 1..=n + 1));
        }
        let worker = world.start("worker.log", &["run"]);
        until("all lines are read", || world.rows() >= 8);
        worker.terminate();
        worker.ends().exits(0);
        nothing_is_left(&world, "1 2 3 4 5 6 7 8");
    }
}

/// Goal: a lane that was read to its end is not claimed again while nothing happens to its files. Method: more lanes than may be open at
/// once; then new files, one after the other, each of which is found by a look at all of them.
#[test]
fn lanes_that_were_read_are_not_claimed_again() {
    let world = shop("in/*.log", APPEND.0, APPEND.1);
    for stem in 10..22 {
        world.write(&format!("in/{stem}.log"), lines(stem..=stem));
    }
    let worker = world.start("worker.log", &["run"]);
    until("all are read", || world.rows() == 12);
    for stem in 22..27 {
        // Whole at once: a file that is found empty is claimed, and again when it has lines.
        world.write("in/new", lines(stem..=stem));
        rename(&world.path("in/new"), &world.path(&format!("in/{stem}.log")));
        until("the new file is read", || world.rows() == stem - 9);
    }
    // A lane that makes room before it was quiet for long enough to count as read is opened once more.
    let claims: String = world
        .ask("SELECT coalesce(group_concat(lane || ' ' || generation), '') FROM hapax_progress WHERE generation > 2");
    assert_eq!(claims, "", "they are claimed again and again: {}", worker.said());
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: who looks after a pattern was taken over is told of the worker that lives. Method: take over, then `status` and `stuck`.
#[test]
fn after_a_pattern_was_taken_over_the_living_worker_is_told() {
    let world = shop("in/*.log", APPEND.0, APPEND.1);
    world.write("in/a.log", lines(1..=2));
    let first = world.start("first.log", &["run"]);
    until("the first lines are read", || world.rows() == 2);
    let second = world.start("second.log", &["run", "--take-over"]);
    first.ends().exits(4).says(&["HX4009"]);
    world.append("in/a.log", lines(3..=3));
    until("the second goes on", || world.rows() == 3);
    let status = world.status();
    let worker = status[0]["worker"].as_str().unwrap_or_default();
    assert!(worker.contains(&second.process().to_string()), "it is {}: {status:#?}", second.process());
    assert_eq!(status[0]["state"], "running", "{status:#?}");
    world.hapax(&["stuck"]).exits(0).says(&["Nothing is stuck"]).keeps_silent_about(&["no worker", "HX4009"]);
    second.terminate();
    second.ends().exits(0);
}

/// Goal: a file that comes while a second worker stands by is delivered once, by the first. Method: two new files, one after the other.
#[test]
fn a_new_file_beside_a_standby_is_delivered_by_the_first() {
    let world = shop("in/*.log", APPEND.0, APPEND.1);
    world.write("in/a.log", lines(1..=1));
    let first = world.start("first.log", &["run"]);
    until("the first line is read", || world.rows() == 1);
    let second = world.start("second.log", &["run"]);
    second.until_it_says("standing by");
    for (name, id) in [("in/b.log", 2), ("in/c.log", 3)] {
        world.write(name, lines(id..=id));
        until("the new file is read", || world.rows() == id);
    }
    for delivery in world.status() {
        let worker = delivery["worker"].as_str().unwrap_or_default();
        assert!(worker.contains(&first.process().to_string()), "it is {}: {delivery:#}", first.process());
    }
    assert!(!second.said().contains("claimed"), "{}", second.said());
    for worker in [second, first] {
        worker.terminate();
        worker.ends().exits(0);
    }
    nothing_is_left(&world, "1 2 3");
}

/// Goal: while something in a folder cannot be looked at it is named, and no file is judged as vanished. Method: a file that is gone
/// unread beside a link that leads to itself; then without the link.
#[test]
fn nothing_is_judged_as_vanished_while_something_cannot_be_looked_at() {
    let world = shop("in/*.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=1));
    world.hapax(&["run", "--once"]).exits(0);
    world.sql("UPDATE hapax_progress SET incarnation = replace(incarnation, ', read to its end', '')");
    std::fs::remove_file(world.path("in/app.log")).expect("gone");
    std::os::unix::fs::symlink("loop.log", world.path("in/loop.log")).expect("a link");
    let named = world.hapax(&["run", "--once"]);
    named.exits(0).says(&["cannot be looked at", "loop.log"]).keeps_silent_about(&["the file is gone"]);
    std::fs::remove_file(world.path("in/loop.log")).expect("gone");
    world.hapax(&["run", "--once"]).exits(5).says(&["app.log", "the file is gone"]);
}
