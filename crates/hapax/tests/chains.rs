//! A lane is a chain of files, not a name: rotations, rewrites and moves under workers, between them, and while they wait.

use std::fs;

use crate::world::{World, rename, until};

const QUICK: &str = "epoch: { interval: 20ms }, lease: 2s, retries: { backoffMs: [50], giveUpAfter: 300ms }";

/// Workflow `orders` from `path` into table `orders`, which has what `table` says.
pub(crate) fn shop(path: &str, sink: &str, table: &str) -> World {
    let world = World::empty();
    world.sql(&format!("CREATE TABLE orders ({table})"));
    fs::create_dir(world.path("in")).expect("a folder");
    configure(&world, path, sink);
    world
}

fn configure(world: &World, path: &str, sink: &str) {
    let text = format!(
        "workflows:
  - id: orders
    source: {{ file: {{ path: '{path}' }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, {sink} }} }}
    delivery: {{ guarantee: exactly-once, deduplication: {{ keyFields: [id] }}, {QUICK} }}
"
    );
    world.write("hapax.yaml", text);
}

pub(crate) const APPEND: (&str, &str) = ("onConflict: append", "id INTEGER, amount INTEGER");

fn line(id: i64, amount: i64) -> String {
    format!("{{\"id\":{id},\"amount\":{amount}}}\n")
}

pub(crate) fn lines(ids: std::ops::RangeInclusive<i64>) -> String {
    ids.map(|id| line(id, id)).collect()
}

pub(crate) fn ids(world: &World) -> String {
    world.ask("SELECT coalesce(group_concat(id, ' '), '') FROM (SELECT id FROM orders ORDER BY id)")
}

/// Moves `app.log.1` to `app.log.2`, and `app.log` to `app.log.1`.
pub(crate) fn rotate(world: &World) {
    for n in (0..5).rev() {
        let name = |n: u32| if n == 0 { "in/app.log".to_owned() } else { format!("in/app.log.{n}") };
        if world.path(&name(n)).exists() {
            rename(&world.path(&name(n)), &world.path(&name(n + 1)));
        }
    }
}

/// Goal: who rests over two rotations loses and doubles nothing. Method: pause, rotate twice with new lines, resume; a single
/// path, and patterns that find the rotated names or do not.
#[test]
fn a_pause_over_two_rotations_loses_and_doubles_nothing() {
    for path in ["in/app.log", "in/*.log*", "in/*.log"] {
        let world = shop(path, APPEND.0, APPEND.1);
        world.write("in/app.log", lines(1..=2));
        let worker = world.start("worker.log", &["run"]);
        until("the first lines are read", || world.rows() == 2);
        world.hapax(&["pause", "orders"]).exits(0);
        until("the worker rests", || world.status()[0]["state"] == "paused");
        for n in [3, 5] {
            world.append("in/app.log", lines(n..=n));
            rotate(&world);
            world.write("in/app.log", lines(n + 1..=n + 1));
        }
        world.hapax(&["resume", "orders"]).exits(0);
        until("all lines are read", || world.rows() >= 6);
        worker.terminate();
        worker.ends().exits(0);
        assert_eq!(ids(&world), "1 2 3 4 5 6", "{path}");
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 3 4 5 6", "{path}: nothing is left, nothing comes again");
        world.hapax(&["reconcile", "orders"]).exits(0);
    }
}

/// Goal: after a restart the older file is read first, so that the newer value wins, in `update` and by version in `newer`.
/// Method: one key in three files that rotated while nobody read.
#[test]
fn the_newest_value_wins_across_rotations() {
    let newer = "id INTEGER PRIMARY KEY, amount INTEGER, hapax_version BLOB";
    for (sink, table) in
        [("onConflict: update", "id INTEGER PRIMARY KEY, amount INTEGER"), ("onConflict: newer", newer)]
    {
        let world = shop("in/*.log*", sink, table);
        world.write("in/app.log", line(1, 10) + &line(1, 11));
        world.hapax(&["run", "--once"]).exits(0);
        for amount in [20, 30] {
            rotate(&world);
            world.write("in/app.log", line(1, amount));
        }
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.ask::<i64>("SELECT amount FROM orders"), 30, "{sink}");
    }
}

/// Goal: a worker and its standby agree about every file. Method: rotate under both, again and again, and change places.
#[test]
fn a_standby_agrees_about_every_file() {
    let world = shop("in/*.log*", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=1));
    let first = world.start("first.log", &["run"]);
    until("the first line is read", || world.rows() == 1);
    let second = world.start("second.log", &["run"]);
    second.until_it_says("standing by");
    for n in 2..=4 {
        rotate(&world);
        world.write("in/app.log", lines(n..=n));
        until("the next file is read", || world.rows() == n);
    }
    drop(first); // SIGKILL
    rotate(&world);
    world.write("in/app.log", lines(5..=5));
    until("the standby goes on", || world.rows() >= 5);
    second.terminate();
    second.ends().exits(0);
    assert_eq!(ids(&world), "1 2 3 4 5");
}

/// Goal: a worker that loses a pattern ends with code 4 instead of living on. Method: a second one takes over.
#[test]
fn a_worker_that_loses_its_pattern_ends_with_code_4() {
    let world = shop("in/*.log", APPEND.0, APPEND.1);
    world.write("in/a.log", lines(1..=2));
    let first = world.start("first.log", &["run"]);
    until("the first lines are read", || world.rows() == 2);
    let second = world.start("second.log", &["run", "--take-over"]);
    first.ends().exits(4).says(&["HX4009"]);
    world.append("in/a.log", lines(3..=3));
    world.write("in/b.log", lines(4..=4));
    until("the second has all", || world.rows() >= 4);
    second.terminate();
    second.ends().exits(0);
    assert_eq!(ids(&world), "1 2 3 4");
}

/// Goal: another path to the same file delivers nothing again. Method: move the folder, rename the file, pattern and single path
/// in each other's place, a copy; each is refused with both names, before anything is written.
#[test]
fn another_path_to_the_same_file_is_refused() {
    for (from, to) in [("in/app.log", "moved/app.log"), ("in/*.log", "in/app.log"), ("in/app.log", "in/*.log")] {
        let world = shop(from, APPEND.0, APPEND.1);
        world.write("in/app.log", lines(1..=3));
        world.hapax(&["run", "--once"]).exits(0);
        if to.starts_with("moved") {
            rename(&world.path("in"), &world.path("moved"));
        }
        configure(&world, to, APPEND.0);
        world.hapax(&["check", "--live"]).exits(5).says(&["a run would stop", "HX3014", "--adopt-lane"]);
        world.hapax(&["run", "--once"]).exits(5).says(&["HX3014", "app.log", "delivered again"]);
        assert_eq!(ids(&world), "1 2 3", "{from} became {to}");
        configure(&world, from, APPEND.0);
        if to.starts_with("moved") {
            rename(&world.path("moved"), &world.path("in"));
        }
        world.hapax(&["check", "--live"]).exits(0).keeps_silent_about(&["would stop"]);
        world.hapax(&["run", "--once"]).exits(0);
    }
    let world = shop("in/app.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    fs::copy(world.path("in/app.log"), world.path("in/copy.log")).expect("copied");
    configure(&world, "in/copy.log", APPEND.0);
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3014", "app.log", "copy.log"]);
    let copy = world.path("in/copy.log").to_string_lossy().into_owned();
    world.hapax(&["reset", "orders", "--lane", &copy, "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 1 2 2 3 3", "who asks for it gets it again");
}

/// Goal: a file that was read and is rewritten in place is noticed at a start, at whatever size. Method: equal size, as a single path
/// and inside a pattern.
#[test]
fn a_read_file_that_is_rewritten_at_equal_size_is_noticed() {
    for path in ["in/app.log", "in/*.log"] {
        let world = shop(path, APPEND.0, APPEND.1);
        world.write("in/app.log", lines(1..=5));
        world.hapax(&["run", "--once"]).exits(0);
        world.hapax(&["check", "--live"]).exits(0);
        world.write("in/app.log", line(1, 1) + &lines(6..=9));
        world.hapax(&["check", "--live", "--json"]).exits(5).says(&["wouldStop", "HX3004", "rewritten in place"]);
        world.hapax(&["run", "--once"]).exits(5).says(&["HX3004", "rewritten in place", "app.log"]);
        assert_eq!(ids(&world), "1 2 3 4 5", "{path}");
    }
}

/// Goal: a lane that is reached by another path goes on where it was. Method: move the folder, pattern and single path in each
/// other's place, copy all files as to another disk; refused, taken over, then more lines; the old name is fenced.
#[test]
fn a_moved_lane_goes_on_where_it_was() {
    for (from, to) in [("in/app.log", "moved/app.log"), ("in/*.log*", "in/app.log"), ("in/app.log", "in/*.log*")] {
        for copied in [false, true] {
            let world = shop(from, APPEND.0, APPEND.1);
            world.write("in/app.log.1", lines(1..=2));
            world.write("in/app.log", lines(3..=4));
            world.hapax(&["run", "--once"]).exits(0);
            let first = ids(&world);
            move_files(&world, if to.starts_with("moved") { "moved" } else { "in" }, copied);
            configure(&world, to, APPEND.0);
            world.hapax(&["run", "--once"]).exits(5).says(&["HX3014", "--adopt-lane"]);
            let name = |path: &str| match path.contains('*') {
                true => "in/app.log".to_owned(),
                false => world.path(path).to_string_lossy().into_owned(),
            };
            let (old, new) = (name(from), name(to));
            let adopt = ["reset", "orders", "--lane", &new, "--adopt-lane", &old, "--yes"];
            world.hapax(&adopt).exits(0).says(&["takes over", "nothing left out"]);
            world.append(if to.starts_with("moved") { "moved/app.log" } else { "in/app.log" }, lines(5..=6));
            world.hapax(&["run", "--once"]).exits(0);
            assert_eq!(ids(&world), format!("{first} 5 6"), "{from} became {to}, copied: {copied}");
            world.hapax(&["reconcile", "orders"]).exits(0);
            world.hapax(&adopt).exits(2).says(&["no progress"]);
            assert_eq!(world.ask::<i64>("SELECT count(*) FROM hapax_progress"), 1);
        }
    }
}

/// Moves the files of `in` there, by renaming the folder, or by copies with other inodes.
fn move_files(world: &World, there: &str, copied: bool) {
    if !copied {
        if there != "in" {
            rename(&world.path("in"), &world.path(there));
        }
        return;
    }
    fs::create_dir(world.path("copies")).expect("a folder");
    for name in ["app.log.1", "app.log"] {
        fs::copy(world.path(&format!("in/{name}")), world.path(&format!("copies/{name}"))).expect("copied");
    }
    rename(&world.path("in"), &world.path("gone"));
    rename(&world.path("copies"), &world.path(there));
}

/// Goal: progress is taken over only onto files that hold what was read. Method: another content, a lane that has progress, a lane
/// that nobody knows.
#[test]
fn only_what_was_read_is_taken_over() {
    let world = shop("in/app.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    world.write("in/other.log", lines(7..=9));
    configure(&world, "in/other.log", APPEND.0);
    let [old, new] = ["in/app.log", "in/other.log"].map(|name| world.path(name).to_string_lossy().into_owned());
    let adopt = |old: &str| world.hapax(&["reset", "orders", "--lane", &new, "--adopt-lane", old, "--yes"]);
    adopt(&old).exits(1).says(&["none of its files holds what the other lane has read"]);
    adopt("nobody.log").exits(2).says(&["no progress", "nobody.log"]);
    world.hapax(&["run", "--once"]).exits(0);
    fs::copy(world.path("in/app.log"), world.path("in/other.log")).expect("copied");
    adopt(&old).exits(1).says(&["HX4191", "progress of its own"]);
    assert_eq!(ids(&world), "1 2 7 8 9");
}

/// Goal: a person can give up the rest of a file, and go on with the next. Method: a file that was rewritten in place while it was
/// read, its successor behind it; a lane that has no next file says so.
#[test]
fn a_person_goes_on_with_the_next_file() {
    for path in ["in/app.log", "in/*.log*"] {
        let world = shop(path, APPEND.0, APPEND.1);
        world.write("in/app.log", lines(1..=2));
        world.hapax(&["run", "--once"]).exits(0);
        let next = ["reset", "orders", "--to", "next", "--yes"];
        world.hapax(&next).exits(1).says(&["no file follows"]);
        world.write("in/app.log", line(1, 1) + &lines(8..=9));
        world.hapax(&["run", "--once"]).exits(5);
        rotate(&world);
        world.write("in/app.log", lines(3..=4));
        world.hapax(&["run", "--once"]).exits(5);
        world.hapax(&next).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 3 4", "{path}");
        world.append("in/app.log", lines(5..=5));
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 3 4 5", "{path}");
    }
}

/// Goal: after a file was given up at its beginning, what was read behind it is compared with the file that it came from. Method:
/// a worker that ended right after its step to a file; `reset --to next`; two more files.
#[test]
fn a_file_that_was_given_up_at_its_beginning_is_no_difference() {
    let world = shop("in/app.log", "onConflict: update", "id INTEGER PRIMARY KEY, amount INTEGER");
    world.write("in/app.log", lines(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    rotate(&world);
    world.write("in/app.log", lines(3..=4));
    world.hapax(&["run", "--once"]).exits(0);
    world.sql(
        "DELETE FROM orders WHERE id > 2; DELETE FROM hapax_epochs WHERE epoch = 3;
         UPDATE hapax_progress SET epoch = 2, position = '0', read = 2, delivered = 2, rows = 2",
    );
    rotate(&world);
    world.write("in/app.log", lines(5..=6));
    world.hapax(&["reset", "orders", "--to", "next", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    rotate(&world);
    world.write("in/app.log", lines(7..=9));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 5 6 7 8 9");
    world.hapax(&["reconcile", "--deep"]).exits(0).says(&["7 keys of 7 inputs from epoch 1", "verdict  adds up"]);
    world.sql("DELETE FROM orders WHERE id = 5");
    world.hapax(&["reconcile", "--deep"]).exits(1).says(&["expected a row, found no row", "\"id\":5"]);
}

/// Goal: lanes of an earlier version, every rotated file one of its own, become one lane, in order and without a row lost or
/// doubled. Method: rows as it left them: two files read, one begun, one not; then all is read, and `newer` lets the newest win.
#[test]
fn lanes_of_an_earlier_version_become_one() {
    let table = "id INTEGER PRIMARY KEY, amount INTEGER, hapax_version BLOB";
    let world = shop("in/*.log*", "onConflict: newer", table);
    let whole = fs::read_to_string(world.path("hapax.yaml")).expect("the configuration");
    world.write("hapax.yaml", whole.replace("path: 'in/*.log*'", "path: 'in/*.log*', rotation: none"));
    world.write("in/app.log.2", line(1, 10) + &line(2, 10));
    world.write("in/app.log.1", line(1, 20));
    world.write("in/app.log", line(1, 30));
    world.hapax(&["run", "--once"]).exits(0);
    let newest = || world.ask::<i64>("SELECT amount FROM orders WHERE id = 1");
    // As an earlier version wrote it: no facts, no rule of rotation.
    world.sql(
        "UPDATE hapax_progress SET contract = replace(contract, '\"rotation\":\"none\",', ''),
         incarnation = substr(incarnation, 1, instr(incarnation, char(10)) - 1);
         UPDATE hapax_progress SET lane = 'in/app.log#2' WHERE lane = 'in/app.log.1';
         UPDATE hapax_epochs SET lane = 'in/app.log#2' WHERE lane = 'in/app.log.1'",
    );
    world.write("hapax.yaml", whole);
    rotate(&world);
    world.append("in/app.log.1", line(2, 31));
    world.write("in/app.log", line(1, 40));
    world.hapax(&["run", "--once"]).exits(0).says(&["one lane now"]);
    assert_eq!((newest(), world.ask("SELECT amount FROM orders WHERE id = 2")), (40, 31));
    assert_eq!(world.ask::<String>("SELECT group_concat(lane) FROM hapax_progress"), "in/app.log");
    assert_eq!(world.ask::<i64>("SELECT read FROM hapax_progress"), 6, "nothing is read twice");
    world.hapax(&["run", "--once"]).exits(0);
    world.hapax(&["reconcile", "orders"]).exits(0);
}

/// Goal: lanes of an earlier version that cannot be brought into an order are refused by name. Method: a younger file read before an
/// older one; one file read by two lanes.
#[test]
fn lanes_without_an_order_are_refused() {
    let world = shop("in/*.log*", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    let twin = "INSERT INTO hapax_progress SELECT workflow, sink, lane || '#2', generation, epoch, position, incarnation, contract,
         snapshot, session, read, delivered, filtered, dead, rows, updated_at_ms FROM hapax_progress";
    world.sql(twin);
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3015", "in/app.log#2", "have both read app.log"]);
    world.sql("DELETE FROM hapax_progress WHERE lane = 'in/app.log'");
    world.write("in/app.log.1", lines(3..=3));
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3015", "app.log.1 was not read, but younger files"]);
    assert_eq!(ids(&world), "1 2");
}

/// Goal: whoever looks at the first events of a chain goes from one file to the next. Method: `check --live` and a run without its
/// table, over three short files, as a single path and as a pattern.
#[test]
fn a_look_at_a_chain_comes_to_its_end() {
    for path in ["in/app.log", "in/*.log*"] {
        let world = shop(path, APPEND.0, APPEND.1);
        for (name, id) in [("in/app.log.2", 1), ("in/app.log.1", 2), ("in/app.log", 3)] {
            world.write(name, lines(id..=id));
        }
        world.hapax(&["check", "--live"]).exits(0).says(&["app.log.2", "app.log.1"]);
        world.sql("DROP TABLE orders");
        world.hapax(&["check", "--live"]).exits(1).says(&["HX4110"]);
        world.hapax(&["run", "--once"]).exits(1).says(&["HX4110", "CREATE TABLE"]);
    }
}

/// Goal: who accepts what is there now, or goes back to the earliest, skips no file that lies there unread. Method: the file that is
/// read vanishes with a line in it, two others lie behind it; then everything again.
#[test]
fn accepting_what_is_there_skips_no_unread_file() {
    for path in ["in/app.log", "in/*.log*"] {
        let world = shop(path, APPEND.0, APPEND.1);
        world.write("in/app.log", lines(1..=2));
        world.hapax(&["run", "--once"]).exits(0);
        world.append("in/app.log", lines(9..=9));
        rotate(&world);
        world.write("in/app.log", lines(3..=4));
        rotate(&world);
        world.write("in/app.log", lines(5..=6));
        fs::remove_file(world.path("in/app.log.2")).expect("gone");
        world.hapax(&["run", "--once"]).exits(5);
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 3 4 5 6", "{path}");
        world.hapax(&["reset", "orders", "--to", "earliest", "--yes"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 3 3 4 4 5 5 6 6", "{path}");
    }
}

/// Goal: a position that a person names is one of the file that is read, not of the one at the path. Method: a file that was
/// rotated with lines unread, back to its beginning.
#[test]
fn a_position_is_one_of_the_file_that_is_read() {
    for path in ["in/app.log", "in/*.log*"] {
        let world = shop(path, APPEND.0, APPEND.1);
        world.write("in/app.log", lines(1..=2));
        world.hapax(&["run", "--once"]).exits(0);
        world.append("in/app.log", lines(3..=3));
        rotate(&world);
        world.write("in/app.log", lines(4..=5));
        world.hapax(&["reset", "orders", "--to", "20", "--yes"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 2 3 4 5", "{path}");
    }
}

/// Goal: a read file that got a late line is accepted without being read again, and the place stays. Method: late lines, `--accept`.
#[test]
fn accepting_a_late_line_keeps_the_place() {
    let world = shop("in/app.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    rotate(&world);
    world.write("in/app.log", lines(3..=4));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("in/app.log.1", lines(9..=9));
    world.append("in/app.log", lines(5..=5));
    world.hapax(&["run", "--once"]).exits(5);
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4 5");
}

/// Goal: one file under two names of a pattern is delivered by neither, at the first start and under a running worker. Method: a hard
/// link, a symbolic one, a folder that leads back to itself.
#[test]
fn one_file_under_two_names_stops_before_anything_is_claimed() {
    use std::os::unix::fs::symlink;
    for kind in ["hard", "soft", "folder"] {
        let world = shop(if kind == "folder" { "in/**/*.log" } else { "in/*.log" }, APPEND.0, APPEND.1);
        world.write("in/app.log", lines(1..=3));
        let link = || match kind {
            "hard" => fs::hard_link(world.path("in/app.log"), world.path("in/again.log")),
            "soft" => symlink(world.path("in/app.log"), world.path("in/again.log")),
            _ => symlink(world.path("in"), world.path("in/loop"))
                .and_then(|()| symlink(world.path("in"), world.path("in/other"))),
        };
        link().expect("a link");
        world.hapax(&["check", "--live"]).exits(5).says(&["a run would stop", "HX3014", "the same file"]);
        world.hapax(&["run", "--once"]).exits(5).says(&["HX3014", "the same file", "be delivered twice"]);
        assert_eq!(world.rows(), 0, "{kind}");
        for name in ["in/again.log", "in/loop", "in/other"] {
            fs::remove_file(world.path(name)).ok();
        }
        let worker = world.start("worker.log", &["run"]);
        until("the file is read", || world.rows() == 3);
        link().expect("a link");
        worker.ends().exits(5).says(&["HX3014"]);
        assert_eq!(ids(&world), "1 2 3", "{kind}");
    }
}

/// Goal: what was not read of a rotated file is read though no live file follows and the pattern does not find its name. Method: a lane
/// that was read to its end gets lines and is rotated; `run --once`, and a worker that runs.
#[test]
fn the_rest_of_a_rotated_file_is_read_without_a_live_one() {
    let world = shop("in/*.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    world.append("in/app.log", lines(3..=4));
    rename(&world.path("in/app.log"), &world.path("in/app.log.1"));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 4");
    let worker = world.start("worker.log", &["run"]);
    world.write("in/app.log", lines(5..=5));
    until("the next one is read", || world.rows() == 5);
    worker.terminate();
    worker.ends().exits(0);
    world.append("in/app.log", lines(6..=6));
    rotate(&world);
    let worker = world.start("worker.log", &["run"]);
    until("the rest is read", || world.rows() == 6);
    worker.terminate();
    worker.ends().exits(0);
    assert_eq!(ids(&world), "1 2 3 4 5 6");
}

/// Goal: with `replaced` a file counts as read only once it was quiet, also for who asks once; what grew unread is never passed. Method:
/// a run over a file that was written just now, which then grows and is replaced.
#[test]
fn a_replaced_file_that_grew_unread_stops() {
    let world = shop("in/app.log", APPEND.0, APPEND.1);
    let text = fs::read_to_string(world.path("hapax.yaml")).expect("the configuration");
    world.write("hapax.yaml", text.replace("path: 'in/app.log'", "path: 'in/app.log', rotation: replaced"));
    world.write("in/app.log", lines(1..=2));
    let writer = world.path("in/app.log");
    let grows = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        fs::OpenOptions::new().append(true).open(writer).and_then(|mut file| {
            use std::io::Write as _;
            file.write_all(lines(3..=3).as_bytes())
        })
    });
    world.hapax(&["run", "--once"]).exits(0);
    grows.join().expect("no panic").expect("written");
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3");
}

/// Goal: after a move another file may come to the old name. Method: a pattern, rename, adopt, a new file with the old name.
#[test]
fn a_new_file_under_the_old_name_begins_a_lane() {
    let world = shop("in/*.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    rename(&world.path("in/app.log"), &world.path("in/new.log"));
    world.hapax(&["reset", "orders", "--lane", "in/new.log", "--adopt-lane", "in/app.log", "--yes"]).exits(0);
    world.write("in/app.log", lines(7..=8));
    world.append("in/new.log", lines(3..=3));
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 7 8");
}

/// Goal: who accepts that a number is missing goes on with the files that are there. Method: `.3` read, `.1` gone.
#[test]
fn accepting_a_missing_number_goes_on() {
    let world = shop("in/app.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=2));
    world.hapax(&["run", "--once"]).exits(0);
    for n in [3, 4, 5] {
        rotate(&world);
        world.write("in/app.log", lines(n..=n));
    }
    fs::remove_file(world.path("in/app.log.1")).expect("gone");
    world.hapax(&["run", "--once"]).exits(5).says(&["app.log.1"]);
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(5);
    world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3 5");
}

/// Goal: a name that is no UTF-8 is named, since no pattern can find it, and hides no file that vanished. Method: one beside another,
/// which then vanishes unread.
#[test]
fn a_name_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = shop("in/*.log", APPEND.0, APPEND.1);
    world.write("in/app.log", lines(1..=1));
    fs::write(world.path("in").join(std::ffi::OsStr::from_bytes(b"b\xffd.log")), lines(2..=2)).expect("written");
    world.hapax(&["run", "--once"]).exits(0).says(&["no UTF-8"]);
    world.append("in/app.log", lines(3..=3));
    world.sql("UPDATE hapax_progress SET incarnation = replace(incarnation, ', read to its end', '')");
    fs::remove_file(world.path("in/app.log")).expect("gone");
    world.write("in/other.log", lines(4..=4));
    world.hapax(&["run", "--once"]).exits(5).says(&["app.log", "gone"]);
}

/// Goal: a chain whose times contradict its names is not begun. Method: numbers that rise, so that the older file has the lower one.
#[test]
fn times_that_contradict_the_names_stop_a_first_start() {
    let world = shop("in/app*", APPEND.0, APPEND.1);
    let hours_ago = |name: &str, hours: u64| {
        let file = fs::File::options().append(true).open(world.path(name)).expect("a file");
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(3600 * hours);
        file.set_modified(then).expect("a time");
    };
    for (name, id) in [("in/app.1", 1), ("in/app.2", 2), ("in/app", 3)] {
        world.write(name, lines(id..=id));
    }
    hours_ago("in/app.1", 3);
    hours_ago("in/app.2", 2);
    world.hapax(&["run", "--once"]).exits(5).says(&["app.2 is older than app.1", "written to later"]);
    assert_eq!(world.rows(), 0);
    hours_ago("in/app.2", 4);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(&world), "1 2 3");
}
