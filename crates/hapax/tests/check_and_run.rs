//! `hapax check --live` beside `hapax run --once`: in every situation both end with the same code, and the check changes no byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::world::{KEYED, ORDERS, World, order, orders, rename};

/// An event that the table refuses.
const BAD: &str = "{\"id\":4,\"amount\":\"many\"}\n";
const ONCE: &str = "guarantee: exactly-once";
const LEAST: &str = "guarantee: at-least-once";
const QUICK: &str = "epoch: { interval: 20ms }, lease: 2s, retries: { backoffMs: [50], giveUpAfter: 300ms }";

/// What it is called, the code with which both end, and what leads to it.
type Situation = (&'static str, i32, fn() -> World);

/// Every file of a folder and its bytes, but for the memory that SQLite's connections share.
pub(crate) fn bytes_of(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            found.extend(bytes_of(&entry));
            found.insert(entry, None);
        } else if !entry.to_string_lossy().ends_with("-shm") {
            let bytes = fs::read(&entry).expect("it can be read");
            found.insert(entry, Some(bytes));
        }
    }
    found
}

/// The names of what differs.
pub(crate) fn changed(
    before: &BTreeMap<PathBuf, Option<Vec<u8>>>,
    after: &BTreeMap<PathBuf, Option<Vec<u8>>>,
) -> Vec<String> {
    let names = before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path));
    names.map(|path| path.display().to_string()).collect()
}

/// Looks at each situation, then runs it; all that disagree are told.
#[track_caller]
fn agree(situations: &[Situation]) {
    let mut wrong = Vec::new();
    for (name, code, make) in situations {
        let world = make();
        let before = bytes_of(&world.path(""));
        let check = world.hapax(&["check", "--live"]);
        let changed = changed(&before, &bytes_of(&world.path("")));
        let run = world.hapax(&["run", "--once"]);
        if (check.code, run.code) != (*code, *code) || !changed.is_empty() {
            wrong.push(format!(
                "== {name}: both should end with {code}; the check changed {changed:?}\n-- check: {check}\n-- run: {run}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} disagree\n{}", wrong.len(), situations.len(), wrong.join("\n"));
}

/// A shop with two orders that are not delivered yet.
fn fresh(sink: &str, delivery: &str) -> World {
    let world = World::shop(sink, delivery);
    world.write("orders.jsonl", orders(1..=2));
    world
}

/// The same after a delivery.
fn delivered(sink: &str, delivery: &str) -> World {
    let world = fresh(sink, delivery);
    world.hapax(&["run", "--once"]).exits(0);
    world
}

fn with(world: World, change: impl FnOnce(&World)) -> World {
    change(&world);
    world
}

/// Writes the configuration of a shop with another source, and `more` beside its workflows.
fn configure(world: &World, more: &str, source: &str, sink: &str, delivery: &str) {
    world.write(
        "hapax.yaml",
        format!(
            "{more}
workflows:
  - id: orders
    source: {{ {source} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, {sink} }} }}
    delivery: {{ {QUICK}, {delivery} }}
"
        ),
    );
}

fn from(source: &str, sink: &str, delivery: &str) -> World {
    with(World::shop("", KEYED), |world| configure(world, "", source, sink, delivery))
}

fn with_state(state: &str) -> World {
    with(fresh("", KEYED), |world| {
        configure(world, &format!("state: \"{state}\""), "file: { path: orders.jsonl }", "", KEYED);
    })
}

fn replaced(world: &World, old: &str, new: &str) {
    let text = world.read("hapax.yaml");
    assert!(text.contains(old), "{old} is in {text}");
    world.write("hapax.yaml", text.replace(old, new));
}

/// Goal: what the target is like ends both alike. Method: tables and files of every kind, before and after a delivery.
#[test]
fn a_check_agrees_with_a_run_about_the_target() {
    agree(&[
        ("a table that fits", 0, || fresh("", KEYED)),
        ("nothing new since the last run", 0, || delivered("", KEYED)),
        ("more since the last run", 0, || with(delivered("", KEYED), |w| w.append("orders.jsonl", order(3, 3)))),
        ("no database", 1, || with(fresh("", KEYED), |w| fs::remove_file(w.path("shop.db")).expect("removed"))),
        ("no SQLite database", 1, || with(fresh("", KEYED), |w| w.write("shop.db", orders(1..=20)))),
        ("no table", 1, || with(fresh("", KEYED), |w| w.sql("DROP TABLE orders"))),
        ("a view", 1, || with(fresh("", KEYED), |w| w.sql("DROP TABLE orders; CREATE VIEW orders AS SELECT 1 AS id"))),
        ("no unique index", 1, || {
            with(fresh("", KEYED), |w| w.sql("DROP TABLE orders; CREATE TABLE orders (id INTEGER)"))
        }),
        ("a required column that nothing feeds", 1, || {
            let table = "DROP TABLE orders; CREATE TABLE orders (id INTEGER PRIMARY KEY, hapax_version TEXT NOT NULL)";
            with(fresh("", KEYED), |w| w.sql(table))
        }),
        ("a key field in another case", 1, || fresh("", "deduplication: { keyFields: [ID] }")),
        ("a column that is not there", 1, || fresh("columns: { Custmer: .customer }", KEYED)),
        ("a table that was made again", 5, || {
            with(delivered("", KEYED), |w| w.sql(&format!("DROP TABLE orders; {ORDERS}")))
        }),
        ("our tables damaged", 1, || with(delivered("", KEYED), |w| w.sql("DROP TABLE hapax_epochs"))),
        ("our tables of a newer program", 1, || {
            with(delivered("", KEYED), |w| w.sql("UPDATE hapax_meta SET value = '99' WHERE name = 'version'"))
        }),
        ("our tables gone, the witness left", 0, || {
            with(delivered("", KEYED), |w| {
                let names = ["meta", "progress", "epochs", "dead_letters", "adopted"];
                names.iter().for_each(|name| w.sql(&format!("DROP TABLE hapax_{name}")));
            })
        }),
        ("a column that was added", 0, || {
            with(delivered("", KEYED), |w| w.sql("ALTER TABLE orders ADD COLUMN note TEXT"))
        }),
    ]);
}

/// Goal: what was delivered before ends both alike. Method: each change of the configuration that a person must decide.
#[test]
fn a_check_agrees_with_a_run_about_what_was_delivered() {
    agree(&[
        ("another key", 5, || {
            with(delivered("onConflict: append", ONCE), |w| {
                w.configure(
                    "orders",
                    "onConflict: append",
                    "guarantee: exactly-once, deduplication: { keyFields: [id] }",
                )
            })
        }),
        ("another mode", 5, || {
            with(delivered("onConflict: append", ONCE), |w| w.configure("orders", "onConflict: update", KEYED))
        }),
        ("a renamed workflow", 5, || with(delivered("", KEYED), |w| w.configure("sales", "", KEYED))),
        ("progress from the sink to the state store", 5, || {
            with(delivered("onConflict: append", ONCE), |w| {
                w.configure("orders", "onConflict: append, progress: state", LEAST)
            })
        }),
        ("progress from the state store to the sink", 5, || {
            with(delivered("onConflict: append, progress: state", LEAST), |w| {
                w.configure("orders", "onConflict: append", ONCE)
            })
        }),
        ("progress moved, and the source away", 5, || {
            with(delivered("onConflict: append", ONCE), |w| {
                w.configure("orders", "onConflict: append, progress: state", LEAST);
                fs::remove_file(w.path("orders.jsonl")).expect("removed");
            })
        }),
        ("progress in the state store, never delivered", 0, || fresh("onConflict: append, progress: state", LEAST)),
        ("progress in the state store, delivered", 0, || delivered("onConflict: append, progress: state", LEAST)),
        ("another number of lanes", 5, || {
            let world = from("generate: { count: 20 }", "onConflict: append", ONCE);
            world.hapax(&["run", "--once"]).exits(0);
            with(world, |w| replaced(w, "count: 20", "count: 20, lanes: 2"))
        }),
        ("a target that went back", 0, || {
            with(delivered("", KEYED), |w| {
                w.append("orders.jsonl", order(3, 3));
                fs::copy(w.path("shop.db"), w.path("older.db")).expect("copied");
                w.hapax(&["run", "--once"]).exits(0);
                rename(&w.path("older.db"), &w.path("shop.db"));
            })
        }),
        ("a guarantee that is refused", 3, || fresh("onConflict: append, progress: state", "guarantee: exactly-once")),
        ("refused, without its table", 3, || {
            let world = fresh("onConflict: append, progress: state", "guarantee: exactly-once");
            with(world, |w| w.sql("DROP TABLE orders"))
        }),
        ("refused, without its source", 3, || {
            World::shop("onConflict: append, progress: state", "guarantee: exactly-once")
        }),
        ("refused after a delivery with progress elsewhere", 3, || {
            with(delivered("onConflict: append", ONCE), |w| {
                w.configure("orders", "onConflict: append, progress: state", "guarantee: exactly-once");
            })
        }),
        ("a worker that was killed", 0, || {
            let world = fresh("", KEYED);
            let mut worker = world.start("worker.log", &["run"]);
            crate::world::until("both are there", || world.rows() == 2);
            assert!(worker.is_alive());
            drop(worker);
            world
        }),
    ]);
}

/// Goal: what the source is like ends both alike. Method: files that are away, moved, rewritten, rotated; CSV headers.
#[test]
fn a_check_agrees_with_a_run_about_the_source() {
    agree(&[
        ("no file", 1, || World::shop("", KEYED)),
        ("an empty file", 0, || with(World::shop("", KEYED), |w| w.write("orders.jsonl", ""))),
        ("another path to the same file", 5, || {
            with(delivered("", KEYED), |w| {
                rename(&w.path("orders.jsonl"), &w.path("moved.jsonl"));
                replaced(w, "orders.jsonl", "moved.jsonl");
            })
        }),
        ("a file rewritten in place", 5, || with(delivered("", KEYED), |w| w.write("orders.jsonl", orders(7..=9)))),
        ("a file cut", 5, || with(delivered("", KEYED), |w| w.write("orders.jsonl", orders(1..=1)))),
        ("a pattern without a file", 0, || from("file: { path: 'in/*.jsonl' }", "", KEYED)),
        ("a CSV file", 0, || csv_shop()),
        ("a header without the key", 5, || with(csv_shop(), |w| w.write("orders.csv", "number,customer\n1,ann\n"))),
        ("a header in another case", 5, || with(csv_shop(), |w| w.write("orders.csv", "Id,customer\n1,ann\n"))),
        ("another delimiter after a delivery", 5, || {
            let world = csv_shop();
            world.hapax(&["run", "--once"]).exits(0);
            with(world, |w| replaced(w, "path: orders.csv", "path: orders.csv, csv: { delimiter: ';' }"))
        }),
        ("another header after a rotation", 5, || {
            let world = csv_shop();
            world.hapax(&["run", "--once"]).exits(0);
            rename(&world.path("orders.csv"), &world.path("orders.csv.1"));
            with(world, |w| w.write("orders.csv", "id,amount\n2,3\n"))
        }),
        ("two unread files whose times contradict their names", 5, || {
            let world = rotated_twice();
            with(world, |w| age(w, "orders.jsonl-20261117", 3600))
        }),
        ("a next file whose time contradicts its name", 5, || {
            let world = delivered("", KEYED);
            rename(&world.path("orders.jsonl"), &world.path("orders.jsonl-20261116"));
            world.write("orders.jsonl-20261117", orders(3..=4));
            age(&world, "orders.jsonl-20261117", 3600);
            with(world, |w| w.write("orders.jsonl", orders(5..=6)))
        }),
        ("files whose times agree with their names", 0, || rotated_twice()),
        ("a pattern", 0, || many_shop()),
        ("a file of a pattern rewritten", 5, || {
            let world = many_shop();
            world.hapax(&["run", "--once"]).exits(0);
            with(world, |w| w.write("in/b.jsonl", orders(7..=9)))
        }),
        ("a file of a pattern moved within it", 5, || {
            let world = many_shop();
            world.hapax(&["run", "--once"]).exits(0);
            with(world, |w| rename(&w.path("in/b.jsonl"), &w.path("in/c.jsonl")))
        }),
    ]);
}

/// Two rotated files and a live one, of which nothing was read, found by a pattern.
fn rotated_twice() -> World {
    let world = from("file: { path: 'orders.jsonl*' }", "", KEYED);
    for (number, name) in (0..).zip(["orders.jsonl-20261116", "orders.jsonl-20261117", "orders.jsonl"]) {
        world.write(name, orders(2 * number + 1..=2 * number + 2));
    }
    world
}

/// Makes a file older by its time of modification.
fn age(world: &World, name: &str, seconds: u64) {
    let file = fs::File::options().write(true).open(world.path(name)).expect("a file");
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
    file.set_modified(time).expect("a time");
}

fn csv_shop() -> World {
    let world = from("file: { path: orders.csv }", "", KEYED);
    with(world, |w| w.write("orders.csv", "id,customer,amount\n1,ann,2\n"))
}

fn many_shop() -> World {
    let world = from("file: { path: 'in/*.jsonl' }", "", KEYED);
    fs::create_dir(world.path("in")).expect("a folder");
    world.write("in/a.jsonl", orders(1..=2));
    with(world, |w| w.write("in/b.jsonl", orders(3..=4)))
}

/// Goal: events that would be too many dead letters end both alike, wherever a run would read next. Method: `onReject: stop` and
/// `maxRejects`, before, behind and without progress; lines that are too long; generated poison.
#[test]
fn a_check_agrees_with_a_run_about_dead_letters() {
    agree(&[
        ("a few", 0, || with(fresh("", KEYED), |w| w.append("orders.jsonl", BAD))),
        ("one, and onReject: stop", 1, || with(fresh("", STOP), |w| w.append("orders.jsonl", BAD))),
        ("one after a delivery, and onReject: stop", 1, || {
            with(delivered("", STOP), |w| w.append("orders.jsonl", BAD))
        }),
        ("one that stopped a run already", 1, || {
            let world = with(fresh("", STOP), |w| w.append("orders.jsonl", BAD));
            world.hapax(&["run", "--once"]).exits(1);
            world
        }),
        ("one before the start", 0, || {
            let world = from("file: { path: orders.jsonl, start: latest }", "", STOP);
            with(world, |w| w.write("orders.jsonl", orders(1..=2) + BAD))
        }),
        ("one that is no event, and onReject: stop", 1, || {
            with(fresh("", STOP), |w| w.append("orders.jsonl", "what\n"))
        }),
        ("one too long, and onReject: stop", 1, || {
            let world = from("file: { path: orders.jsonl, maxLine: 1KiB }", "", STOP);
            with(world, |w| w.write("orders.jsonl", orders(1..=2) + &"x".repeat(5000) + "\n"))
        }),
        ("too many", 1, || with(fresh("", KEYED), |w| w.append("orders.jsonl", many_bad(200)))),
        ("as many as are allowed", 0, || {
            with(fresh("", &format!("{KEYED}, maxRejects: 60%")), |w| w.append("orders.jsonl", many_bad(200)))
        }),
        ("too many after a delivery", 1, || with(delivered("", KEYED), |w| w.append("orders.jsonl", many_bad(200)))),
        ("too many that were delivered before", 0, || {
            let world =
                with(fresh("", &format!("{KEYED}, maxRejects: 60%")), |w| w.append("orders.jsonl", many_bad(200)));
            world.hapax(&["run", "--once"]).exits(0);
            with(world, |w| replaced(w, ", maxRejects: 60%", ""))
        }),
        ("one in the second file of a pattern", 1, || {
            let world = many_shop();
            replaced(&world, KEYED, STOP);
            with(world, |w| w.append("in/b.jsonl", BAD))
        }),
        ("generated ones", 1, || {
            from(
                "generate: { count: 50, poison: 50% }",
                "onConflict: append",
                "guarantee: exactly-once, onReject: stop",
            )
        }),
    ]);
}

const STOP: &str = "guarantee: exactly-once, deduplication: { keyFields: [id] }, onReject: stop";

/// Every other one is refused.
fn many_bad(count: i64) -> String {
    let line = |id: i64| format!("{{\"id\":{id},\"amount\":{}}}\n", if id % 2 == 0 { "\"x\"" } else { "1" });
    (10..10 + count).map(line).collect()
}

/// Goal: a state store that cannot be used ends both alike, and is not made. Method: of every kind, there and not there.
#[test]
fn a_check_agrees_with_a_run_about_the_state_store() {
    agree(&[
        ("one to be made", 0, || with_state("sqlite://deep/er/state.db")),
        ("none", 0, || with_state("none")),
        ("below a file", 1, || with_state("sqlite://orders.jsonl/state.db")),
        ("where nobody can make a file", 1, || with_state("sqlite:///proc/nowhere/state.db")),
        ("a folder", 1, || with(with_state("sqlite://state"), |w| fs::create_dir(w.path("state")).expect("a folder"))),
        ("no database", 1, || with_state("sqlite://orders.jsonl")),
        ("an empty file", 0, || with(with_state("sqlite://state.db"), |w| w.write("state.db", ""))),
        ("the target itself", 0, || with_state("sqlite://shop.db")),
        ("damaged", 1, || {
            let world = with_state("sqlite://state.db");
            world.hapax(&["run", "--once"]).exits(0);
            world.database("state.db").execute_batch("DROP TABLE hapax_progress").expect("dropped");
            world
        }),
        ("gone since the delivery", 0, || {
            with(delivered("", KEYED), |w| fs::remove_dir_all(w.path("hapax-data")).expect("removed"))
        }),
        ("unusable, and the guarantee refused", 1, || {
            let world = with_state("sqlite://orders.jsonl/state.db");
            with(world, |w| replaced(w, "table: orders, ", "table: orders, onConflict: append, progress: state"))
        }),
    ]);
}

/// Goal: an archive that is cut off or damaged ends both alike. Method: gzip and zstd, small and beyond the sample, again after a
/// run that met it.
#[cfg(feature = "compression")]
#[test]
fn a_check_agrees_with_a_run_about_archives() {
    fn archive(lines: i64, keep: fn(&mut Vec<u8>)) -> World {
        let world = from("file: { path: orders.jsonl.gz }", "", KEYED);
        let content: String = (1..=lines).map(|id| order(id, id * 7919 % 10007)).collect();
        let mut packed = crate::files::gzip(content.as_bytes());
        keep(&mut packed);
        with(world, |w| w.write("orders.jsonl.gz", packed))
    }
    fn cut_chain(world: &World) {
        let content: String = (1..=5000).map(|id| order(id, id * 7919 % 10007)).collect();
        let mut packed = crate::files::gzip(content.as_bytes());
        packed.truncate(packed.len() / 2);
        world.write("in/a.log.1.gz", packed);
        world.write("in/a.log", orders(6005..=6006));
    }
    fn chain(path: &str, change: fn(&World)) -> World {
        let world = from(&format!("file: {{ path: '{path}' }}"), "", KEYED);
        fs::create_dir(world.path("in")).expect("a folder");
        cut_chain(&world);
        with(world, change)
    }
    agree(&[
        ("whole", 0, || archive(5000, |_| ())),
        ("small, and cut off", 5, || archive(50, |packed| packed.truncate(packed.len() / 2))),
        ("cut off behind the sample", 5, || archive(5000, |packed| packed.truncate(packed.len() - 200))),
        ("its last bytes missing", 5, || archive(5000, |packed| packed.truncate(packed.len() - 4))),
        ("damaged", 5, || {
            archive(5000, |packed| {
                let checksum = packed.len() - 8;
                packed[checksum] ^= 0xff;
            })
        }),
        ("an older file of a chain cut off", 5, || chain("in/*", |_| ())),
        ("a file of a chain between others cut off", 5, || {
            chain("in/*", |w| {
                rename(&w.path("in/a.log.1.gz"), &w.path("in/a.log.2.gz"));
                rename(&w.path("in/a.log"), &w.path("in/a.log.3"));
                w.write("in/a.log.1", orders(6001..=6002));
                w.write("in/a.log", orders(6003..=6004));
            })
        }),
        ("the next file of a chain cut off", 5, || {
            let world = from("file: { path: in/a.log }", "", KEYED);
            fs::create_dir(world.path("in")).expect("a folder");
            world.write("in/a.log", orders(7001..=7002));
            world.hapax(&["run", "--once"]).exits(0);
            rename(&world.path("in/a.log"), &world.path("in/a.log.2"));
            with(world, cut_chain)
        }),
        ("cut off, met by a run already", 5, || {
            let world = archive(5000, |packed| packed.truncate(packed.len() - 200));
            world.hapax(&["run", "--once"]).exits(5);
            world
        }),
    ]);
}

/// Goal: times of modification that contradict the names end both alike, wherever in the chain a run is. Method: before a delivery, at
/// the next file and behind it, and where they concern only files that were read; as a single path and as a pattern.
#[test]
fn a_check_agrees_with_a_run_about_times_that_contradict_the_names() {
    /// One file was read; then it has a number, and so have those that follow, each last written to so many hours ago.
    fn rotated(path: &str, hours: &[u64]) -> World {
        let world = from(&format!("file: {{ path: '{path}' }}"), "", KEYED);
        fs::create_dir(world.path("in")).expect("a folder");
        world.write("in/a.log", orders(1..=2));
        world.hapax(&["run", "--once"]).exits(0);
        rename(&world.path("in/a.log"), &world.path(&format!("in/a.log.{}", hours.len())));
        for (number, hours) in (1..=hours.len()).rev().zip(hours) {
            let name = format!("in/a.log.{number}");
            let id = 10 * i64::try_from(number).expect("few");
            if !world.path(&name).exists() {
                world.write(&name, orders(id..=id + 1));
            }
            written_hours_ago(&world, &name, *hours);
        }
        with(world, |w| w.write("in/a.log", orders(3..=4)))
    }
    fn written_hours_ago(world: &World, name: &str, hours: u64) {
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(3600 * hours);
        let file = fs::File::options().append(true).open(world.path(name)).expect("a file");
        file.set_modified(then).expect("a time");
    }
    agree(&[
        ("all agree", 0, || rotated("in/a.log", &[3, 2, 1])),
        ("all agree, in a pattern", 0, || rotated("in/*", &[3, 2, 1])),
        ("the next file is older than the one that was read", 5, || rotated("in/a.log", &[2, 3])),
        ("the same in a pattern", 5, || rotated("in/*", &[2, 3])),
        ("behind the next file", 5, || rotated("in/a.log", &[3, 1, 2])),
        ("behind the next file of a pattern", 5, || rotated("in/*", &[3, 1, 2])),
        ("before the first delivery", 5, || {
            let world = rotated("in/*", &[2, 3]);
            with(world, |w| {
                let names = ["meta", "progress", "epochs", "dead_letters", "adopted"];
                names.iter().for_each(|name| w.sql(&format!("DROP TABLE hapax_{name}")));
                fs::remove_dir_all(w.path("hapax-data")).expect("removed");
            })
        }),
        ("among files that were read", 0, || {
            let world = rotated("in/*", &[3, 2]);
            world.hapax(&["run", "--once"]).exits(0);
            with(world, |w| written_hours_ago(w, "in/a.log.2", 1))
        }),
    ]);
}

/// Goal: where a check is stricter than a run, that is what its page says. Method: fewer inputs than `maxRejects` judges, all of
/// them dead.
#[test]
fn a_check_fails_where_nothing_of_the_sample_would_arrive() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", BAD);
    world.hapax(&["check", "--live"]).exits(1).says(&["1 of the first 1 input(s) would be dead letters"]);
    world.hapax(&["run", "--once"]).exits(0);
}

/// Goal: commands that look change no byte of any file: not of a target that is not in WAL mode, nor of a table that was made again.
/// Method: each command before any run, after one, after one was killed, and after the table was made again.
#[test]
fn commands_that_look_change_nothing() {
    const LOOKS: [&[&str]; 16] = [
        &["check", "--live"],
        &["check", "--live", "--explain", "--json"],
        &["status"],
        &["stuck"],
        &["reconcile"],
        &["reconcile", "--deep"],
        &["trace", "id=1", "--search"],
        &["tap", "orders", "--count", "2"],
        &["top", "--count", "1"],
        &["dlq", "list"],
        &["dlq", "show", "1"],
        &["dlq", "replay", "--dry-run"],
        &["dlq", "discard", "--dry-run"],
        &["reset", "orders", "--accept", "--dry-run"],
        &["reset", "orders", "--to", "earliest", "--dry-run"],
        &["setup", "--sql"],
    ];
    let bad = |world: World| with(world, |w| w.append("orders.jsonl", BAD));
    let states: [(&str, World); 4] = [
        ("never run", bad(fresh("", KEYED))),
        ("delivered", {
            let world = bad(fresh("", KEYED));
            world.hapax(&["run", "--once"]).exits(0);
            world
        }),
        ("killed", {
            let world = bad(fresh("", KEYED));
            let worker = world.start("worker.log", &["run"]);
            crate::world::until("both are there", || world.rows() == 2);
            drop(worker);
            world
        }),
        ("made again", with(bad(delivered("", KEYED)), |w| w.sql(&format!("DROP TABLE orders; {ORDERS}")))),
    ];
    let mut wrong = Vec::new();
    for (state, world) in &states {
        for look in LOOKS {
            let before = bytes_of(&world.path(""));
            let answer = world.hapax(look);
            let changed = changed(&before, &bytes_of(&world.path("")));
            let unknown = answer.err.contains("error: unexpected argument") || answer.err.contains("unrecognized");
            if !changed.is_empty() || unknown {
                wrong.push(format!("{state}: {look:?} changed {changed:?}: {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
