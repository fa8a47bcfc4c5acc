//! Compressed files: which archive is which, and which was read before it was compressed.

use std::fs;

use crate::files::gzip;
use crate::world::{World, rename, until};

/// Workflow `orders` from `path` into table `orders`.
fn shop(path: &str, rotation: &str) -> World {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER, note TEXT)");
    fs::create_dir(world.path("in")).expect("a folder");
    configure(&world, path, rotation);
    world
}

fn configure(world: &World, path: &str, rotation: &str) {
    let text = format!(
        "workflows:
  - id: orders
    source: {{ file: {{ path: '{path}', rotation: {rotation} }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, onConflict: append }} }}
    delivery: {{ guarantee: exactly-once, epoch: {{ interval: 20ms }}, retries: {{ backoffMs: [50], giveUpAfter: 300ms }} }}
"
    );
    world.write("hapax.yaml", text);
}

fn lines(ids: std::ops::Range<i64>) -> String {
    ids.map(|id| format!("{{\"id\":{id},\"note\":\"{}\"}}\n", id * 7_919 % 10_007)).collect()
}

fn counts(world: &World) -> (i64, i64) {
    let count = |what: &str| world.ask::<i64>(&format!("SELECT count({what}) FROM orders"));
    (count("*"), count("DISTINCT id"))
}

/// Compresses a file as gzip does: the archive is whole before the original goes.
fn compress(world: &World, name: &str) {
    let content = fs::read(world.path(name)).expect("it is there");
    world.write(&format!("{name}.gz"), gzip(&content));
    fs::remove_file(world.path(name)).expect("removed");
}

/// Goal: an archive that is rewritten in place is noticed, however small it is and wherever it differs. Method: smaller than what
/// its beginning is known by, shorter, longer, of equal content but for its end; as a single path and inside a pattern.
#[test]
fn an_archive_that_is_rewritten_is_noticed() {
    let (small, large) = (lines(0..10), lines(0..20_000));
    let other_end = format!("{}{}", &large[..large.len() - 60], lines(70_000..70_003));
    for path in ["in/a.jsonl.gz", "in/*.gz"] {
        for (before, after) in [(&small, lines(50..70)), (&small, lines(50..55)), (&large, other_end.clone())] {
            let world = shop(path, "suffixes");
            world.write("in/a.jsonl.gz", gzip(before.as_bytes()));
            world.hapax(&["run", "--once"]).exits(0);
            let read = counts(&world);
            world.hapax(&["run", "--once"]).exits(0);
            world.hapax(&["check", "--live"]).exits(0);
            world.write("in/a.jsonl.gz", gzip(after.as_bytes()));
            world.hapax(&["check", "--live"]).exits(5).says(&["HX3004", "rewritten in place"]);
            world.hapax(&["run", "--once"]).exits(5).says(&["HX3004", "rewritten in place", "a.jsonl.gz"]);
            assert_eq!(counts(&world), read, "{path}");
        }
    }
}

/// Goal: a file of a pattern that was read and then compressed is not read again, and what nobody read of it stops. Method: under a
/// live worker and before a start, with both rules; then an archive that holds more than was read.
#[test]
fn a_file_that_was_read_and_then_compressed_is_not_read_again() {
    for rotation in ["suffixes", "none"] {
        let world = shop("in/*", rotation);
        world.write("in/a.jsonl", lines(0..2_000));
        world.write("in/b.jsonl", lines(2_000..2_010));
        let worker = world.start("worker.log", &["run"]);
        until("both are read", || counts(&world) == (2_010, 2_010));
        compress(&world, "in/a.jsonl");
        worker.until_it_says("a compressed copy of a file that was read to its end");
        world.write("in/c.jsonl", lines(3_000..3_010));
        until("the third is read", || counts(&world).0 >= 2_020);
        worker.terminate();
        worker.ends().exits(0);
        assert_eq!(counts(&world), (2_020, 2_020), "{rotation}");
        compress(&world, "in/b.jsonl");
        world.hapax(&["check", "--live"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(counts(&world), (2_020, 2_020), "{rotation}");
        world.append("in/c.jsonl", lines(3_010..3_020));
        compress(&world, "in/c.jsonl");
        world.hapax(&["run", "--once"]).exits(5);
        assert_eq!(counts(&world), (2_020, 2_020), "{rotation}: nothing of it was delivered again");
    }
}

/// Goal: a path that follows its file into an archive, or an archive to another disk, goes on where it was. Method: refused with both
/// names, taken over as it says, nothing delivered again.
#[test]
fn a_path_that_follows_the_compression_is_taken_over() {
    let world = shop("in/a.jsonl", "suffixes");
    world.write("in/a.jsonl", lines(0..2_000));
    world.hapax(&["run", "--once"]).exits(0);
    compress(&world, "in/a.jsonl");
    fs::create_dir(world.path("other")).expect("a folder");
    for (old, new) in [("in/a.jsonl", "in/a.jsonl.gz"), ("in/a.jsonl.gz", "other/a.jsonl.gz")] {
        if new.starts_with("other") {
            fs::copy(world.path(old), world.path(new)).expect("copied");
            fs::remove_file(world.path(old)).expect("removed");
        }
        configure(&world, new, "suffixes");
        world.hapax(&["run", "--once"]).exits(5).says(&["HX3014", "--adopt-lane"]);
        let name = |path: &str| world.path(path).to_string_lossy().into_owned();
        let (new, old) = (name(new), name(old));
        world.hapax(&["reset", "orders", "--lane", &new, "--adopt-lane", &old, "--yes"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(counts(&world), (2_000, 2_000), "{new}");
    }
}

/// A lane of CSV that has come to a file with nothing but its header, after one whose record is delivered.
fn at_a_header() -> World {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER)");
    world.write(
        "hapax.yaml",
        "workflows:
  - id: orders
    source: { file: { path: 'orders.csv*', format: csv } }
    sink: { sqlite: { path: shop.db, table: orders, onConflict: append } }
    delivery: { guarantee: exactly-once, epoch: { interval: 20ms } }
",
    );
    world.write("orders.csv", "id\n1\n");
    world.hapax(&["run", "--once"]).exits(0);
    rename(&world.path("orders.csv"), &world.path("orders.csv-20261101"));
    world.write("orders.csv", "id\n");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 1);
    world
}

/// Goal: an archive is not taken for a file of which only the header is known, because it begins with the same header: that file's
/// records would be lost. Method: the file is filled, rotated and removed with the one before it; later ones are archives.
#[test]
fn an_archive_with_the_same_header_is_no_copy() {
    for later in [1, 2] {
        let world = at_a_header();
        for name in ["orders.csv", "orders.csv-20261101"] {
            fs::remove_file(world.path(name)).expect("cleaned away");
        }
        for number in 3..3 + later {
            world.write(&format!("orders.csv-2026110{number}.gz"), gzip(format!("id\n{number}\n").as_bytes()));
        }
        world.write("orders.csv", "id\n9\n");
        world.hapax(&["check", "--live"]).exits(5);
        world.hapax(&["run", "--once"]).exits(5);
        assert_eq!(world.rows(), 1, "{later} archives");
    }
}

/// Goal: the same file goes on if the one before it tells which it is. Method: filled, rotated and compressed while no worker runs.
#[test]
fn an_archive_behind_the_last_file_that_was_read_is_known() {
    let world = at_a_header();
    fs::remove_file(world.path("orders.csv")).expect("compressed");
    world.write("orders.csv-20261102.gz", gzip(b"id\n2\n"));
    world.write("orders.csv", "id\n3\n");
    world.hapax(&["check", "--live"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 3);
    world.accounts_for(3, 0);
}

/// The lane's file gets a rotated name and is compressed, and another takes its place.
fn rotate(world: &World, rotated: &str, next: &str) {
    rename(&world.path("in/a.log"), &world.path(rotated));
    compress(world, rotated);
    world.write("in/a.log", next);
}

/// Goal: a file that was claimed while it was empty is known by its first record once that was read, so that its archive is the same
/// file. Method: filled and read by a live worker and by a later one, rotated and compressed with lines that nobody had read.
#[test]
fn a_file_that_was_claimed_empty_is_known_once_it_was_read() {
    for path in ["in/a.log", "in/*.log"] {
        let world = shop(path, "suffixes");
        world.write("in/a.log", "");
        let worker = world.start("worker.log", &["run"]);
        worker.until_it_says("claimed");
        world.append("in/a.log", lines(0..5));
        until("it was read", || counts(&world) == (5, 5));
        rotate(&world, "in/a.log.1", &lines(5..7));
        until("its successor was read", || counts(&world).0 >= 7);
        worker.terminate();
        worker.ends().exits(0);
        assert_eq!(counts(&world), (7, 7), "{path}");

        let world = shop(path, "suffixes");
        world.write("in/a.log", "");
        world.hapax(&["run", "--once"]).exits(0);
        world.append("in/a.log", lines(0..5));
        world.hapax(&["run", "--once"]).exits(0);
        world.append("in/a.log", lines(5..8));
        rotate(&world, "in/a.log.1", &lines(8..10));
        world.hapax(&["check", "--live"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(counts(&world), (10, 10), "{path}");
    }
}

/// Goal: of a file that was empty at every look nobody guesses which archive it is, since another may have followed it and be the
/// one that is there; the stop names both. Method: filled, rotated and compressed while nobody looked; then accepted.
#[test]
fn a_file_that_was_empty_at_every_look_is_not_guessed() {
    for path in ["in/a.log", "in/*.log"] {
        let world = shop(path, "suffixes");
        world.write("in/a.log", "");
        world.hapax(&["run", "--once"]).exits(0);
        world.append("in/a.log", lines(0..5));
        rotate(&world, "in/a.log.1", &lines(5..7));
        let words = ["HX3004", "no record yet", "a.log.1.gz may be what it became", "--accept"];
        world.hapax(&["check", "--live"]).exits(5).says(&words);
        world.hapax(&["run", "--once"]).exits(5).says(&words);
        assert_eq!(counts(&world), (0, 0), "{path}");
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(counts(&world), (7, 7), "{path}");
    }
}

/// Goal: who accepts what is there goes on where the archive of the file that was read goes on, and repeats nothing; it is said
/// beforehand. Method: an older file that nobody read, beside an archive with more lines than were read.
#[test]
fn accepting_goes_on_in_the_archive_of_what_was_read() {
    let world = shop("in/a.log", "suffixes");
    world.write("in/a.log", lines(0..50));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("in/a.log", lines(50..60));
    rotate(&world, "in/a.log.1", &lines(60..62));
    world.write("in/a.log.2", lines(900..902));
    world.hapax(&["run", "--once"]).exits(5).says(&["a.log.2 lies before a.log.1.gz", "never read"]);
    let answer = world.hapax(&["reset", "orders", "--accept", "--yes"]);
    answer.exits(0).says(&["goes on where it was: nothing is delivered again", "given up unread: a.log.2"]);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(counts(&world), (62, 62));
}

/// Goal: who accepts that a file of the chain is gone goes on behind the archive that was read to its end. Method: a number that is
/// missing behind such an archive.
#[test]
fn accepting_goes_on_behind_an_archive_that_was_read() {
    let world = shop("in/a.log", "suffixes");
    world.write("in/a.log", lines(0..50));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("in/a.log", lines(50..60));
    rotate(&world, "in/a.log.2", &lines(60..62));
    world.hapax(&["run", "--once"]).exits(5).says(&["a.log.1, between a.log.2.gz and a.log"]);
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(counts(&world), (62, 62));
}

/// Goal: `reconcile` and `trace` find the archive of the file that the log means, though all begin with one record and are of one
/// length, and never take another for it. Method: days that begin alike, compressed after the last run, or between runs; all of
/// them there, then one missing.
#[test]
fn archives_that_begin_alike_are_told_apart_by_what_looks_back() {
    for between in [false, true] {
        let world = World::empty();
        world.sql("CREATE TABLE orders (id INTEGER PRIMARY KEY NOT NULL, note TEXT)");
        fs::create_dir(world.path("in")).expect("a folder");
        let text = "workflows:
  - id: orders
    source: { file: { path: 'in/day-*.jsonl', order: name } }
    sink: { sqlite: { path: shop.db, table: orders, onConflict: update } }
    delivery: { guarantee: exactly-once, deduplication: { keyFields: [id] }, epoch: { interval: 20ms } }
";
        world.write("hapax.yaml", text);
        let day = |day: i64| format!("in/day-{day}.jsonl");
        let first = "{\"id\":0,\"note\":\"begin of day\"}\n";
        for at in 11..=15 {
            let rest: String = (1..=3).map(|n| format!("{{\"id\":{},\"note\":\"x\"}}\n", at * 10 + n)).collect();
            world.write(&day(at), format!("{first}{rest}"));
            world.hapax(&["run", "--once"]).exits(0);
            if between && at > 11 {
                compress(&world, &day(at - 1));
            }
        }
        if !between {
            (11..=14).for_each(|at| compress(&world, &day(at)));
        }
        let answer = world.hapax(&["reconcile", "--deep"]);
        answer.exits(0).says(&["16 keys of 20 inputs", "all as they should be"]).keeps_silent_about(&["passed over"]);
        let place = (first.len() + 2).to_string();
        let answer = world.hapax(&["trace", &place, "--file", "2"]);
        answer.exits(0).says(&["id=121", "delivered"]).keeps_silent_about(&["cannot be read again"]);
        fs::remove_file(world.path(&format!("{}.gz", day(13)))).expect("removed");
        world.hapax(&["reconcile", "--deep"]).exits(0).says(&["all as they should be", "passed over"]);
        world.hapax(&["trace", &place, "--file", "3"]).exits(0).says(&["cannot be read again"]);
    }
}

/// Goal: `reconcile` and `trace` find what was read in an archive of the lane's own name, between an older file and the next one at
/// the path, and never take the latter for it. Method: rotated, read, grown, compressed under its own name, followed by another; with
/// one row for each order, and one for each event.
#[test]
fn an_archive_of_the_lanes_own_name_is_found_by_what_looks_back() {
    for (mode, path) in [
        ("onConflict: update", "in/app.jsonl"),
        ("onConflict: ignore, keyColumn: hapax_key", "in/app.jsonl"),
        ("onConflict: update", "in/*.jsonl"),
    ] {
        let world = World::empty();
        world.sql("CREATE TABLE by_id (id INTEGER PRIMARY KEY NOT NULL, note TEXT)");
        world.sql("CREATE TABLE by_event (id INTEGER NOT NULL, note TEXT, hapax_key TEXT PRIMARY KEY NOT NULL)");
        let table = if mode.contains("ignore") { "by_event" } else { "by_id" };
        fs::create_dir(world.path("in")).expect("a folder");
        let text = format!(
            "workflows:
  - id: orders
    source: {{ file: {{ path: '{path}' }} }}
    sink: {{ sqlite: {{ path: shop.db, table: {table}, {mode} }} }}
    delivery: {{ guarantee: exactly-once, deduplication: {{ keyFields: [id] }}, epoch: {{ interval: 20ms }} }}
"
        );
        world.write("hapax.yaml", text);
        let line = |id: i64| format!("{{\"id\":{id},\"note\":\"x\"}}\n");
        let some = |ids: std::ops::Range<i64>| ids.map(line).collect::<String>();
        world.write("in/app.jsonl", some(1..4));
        world.hapax(&["run", "--once"]).exits(0);
        rename(&world.path("in/app.jsonl"), &world.path("in/app.jsonl.1"));
        world.write("in/app.jsonl", some(11..15));
        world.hapax(&["run", "--once"]).exits(0);
        world.append("in/app.jsonl", some(15..17));
        compress(&world, "in/app.jsonl");
        world.hapax(&["run", "--once"]).exits(0);
        world.write("in/app.jsonl", some(21..23));
        world.hapax(&["run", "--once"]).exits(0);
        let answer = world.hapax(&["reconcile", "--deep"]);
        answer.exits(0).says(&["of 11 inputs", "all as they should be"]).keeps_silent_about(&["passed over"]);
        let place = (2 * line(11).len()).to_string();
        world.hapax(&["trace", &place, "--file", "2"]).exits(0).says(&["id=13", "delivered"]);
    }
}

/// Goal: an archive that is still written is waited for by a worker that follows, which says so and names it; what is there of it is
/// delivered. Method: the half of it, then nothing for longer than `run --once` waits, then all of it; alone and inside a pattern.
#[test]
fn a_worker_waits_for_an_archive_that_is_still_written() {
    for path in ["in/a.jsonl.gz", "in/*.gz"] {
        let world = shop(path, "suffixes");
        let whole = gzip(lines(0..20_000).as_bytes());
        world.write("in/a.jsonl.gz", &whole[..whole.len() / 2]);
        let worker = world.start("worker.log", &["run"]);
        worker.until_it_says("the archive is not complete: waiting for the rest of it");
        worker.until_it_says("in/a.jsonl.gz");
        until("what is there is delivered", || counts(&world).0 > 1_000);
        std::thread::sleep(std::time::Duration::from_millis(2_500));
        assert!(counts(&world).0 < 20_000);
        world.write("in/a.jsonl.gz", &whole);
        until("all is delivered", || counts(&world) == (20_000, 20_000));
        worker.terminate();
        worker.ends().exits(0);
    }
}

/// Goal: an archive that is being made of a file, beside it, is not begun as a file of its own: all of it would be delivered again.
/// Method: under a live worker of a pattern that finds both; empty, the half of it for a while, then whole, and the original removed.
#[test]
fn an_archive_that_is_being_made_is_not_read_as_another_file() {
    for rotation in ["suffixes", "none"] {
        let world = shop("in/*", rotation);
        world.write("in/a.jsonl", lines(0..2_000));
        let worker = world.start("worker.log", &["run"]);
        until("it is read", || counts(&world) == (2_000, 2_000));
        let whole = gzip(lines(0..2_000).as_bytes());
        for part in [&whole[..0], &whole[..3], &whole[..whole.len() / 2]] {
            world.write("in/a.jsonl.gz", part);
            // Longer than a worker takes to look for files, and to take an archive for cut off.
            std::thread::sleep(std::time::Duration::from_millis(2_500));
        }
        world.write("in/a.jsonl.gz", &whole);
        fs::remove_file(world.path("in/a.jsonl")).expect("removed");
        worker.until_it_says("a compressed copy of a file that was read to its end");
        worker.terminate();
        worker.ends().exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(counts(&world), (2_000, 2_000), "{rotation}");
    }
}
