//! Targets that are no longer what they were: restored, emptied, dropped, gone.

use crate::world::{KEYED, ORDERS, World, orders, until};

/// Removes the database with its log.
fn remove(world: &World) {
    for name in ["shop.db", "shop.db-wal", "shop.db-shm"] {
        std::fs::remove_file(world.path(name)).ok();
    }
}

/// Six lines were delivered, and then the target was restored to a copy from when it had three.
fn restored() -> World {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    world.hapax(&["run", "--once"]).exits(0);
    let copy = world.path("backup.db");
    world.sql(&format!("VACUUM INTO '{}'", copy.to_str().expect("a path")));
    world.append("orders.jsonl", orders(4..=6));
    world.hapax(&["run", "--once"]).exits(0);
    remove(&world);
    crate::world::rename(&copy, &world.path("shop.db"));
    assert_eq!(world.rows(), 3);
    world
}

/// Goal: a target restored to an older copy is rewound, as long as the source holds the range. Method: copy, deliver,
/// restore, deliver.
#[test]
fn a_restored_target_is_rewound() {
    let world = restored();
    let answer = world.hapax(&["run", "--once"]);
    answer.exits(0).says(&["the target went back", "rewinding"]);
    let (was, back) = (format!("was_at={}", orders(1..=6).len()), format!("goes_back_to={}", orders(1..=3).len()));
    answer.says(&[&was, &back]);
    assert_eq!(answer.err.matches("the target went back").count(), 1, "said once: {answer}");
    assert_eq!(world.rows(), 6);
    world.accounts_for(6, 0);
}

/// Goal: where the range is gone at the source too, a person decides: code 5 with the positions. Method: restore the
/// target after the input was rotated away.
#[test]
fn a_restored_target_whose_source_is_gone_stops_with_code_5() {
    let world = restored();
    std::fs::remove_file(world.path("orders.jsonl")).expect("the input is gone");
    world.write("orders.jsonl", orders(7..=8));
    let answer = world.hapax(&["run", "--once"]);
    let positions = [orders(1..=3).len().to_string(), orders(1..=6).len().to_string()];
    answer.exits(5).says(&["HX4018", "went back", "no longer what it was", &positions[0], &positions[1], "--accept"]);
    assert_eq!(world.rows(), 3);
}

/// How the files of a chain are named.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Names {
    DayBeforeExtension,
    DayAsSuffix,
    Numbers,
}

const ALL_NAMES: [Names; 3] = [Names::DayBeforeExtension, Names::DayAsSuffix, Names::Numbers];

impl Names {
    const fn rotation(self) -> &'static str {
        match self {
            Self::DayBeforeExtension => "beforeExtension",
            Self::DayAsSuffix | Self::Numbers => "suffixes",
        }
    }

    /// What the file that was begun as number `file` of three is called in the end.
    fn of(self, file: i64) -> String {
        match self {
            Self::DayBeforeExtension => format!("in/app-2026-11-1{}.log", 5 + file),
            Self::DayAsSuffix => format!("in/app.log-2026111{}", 5 + file),
            Self::Numbers if file == 3 => "in/app.log".to_owned(),
            Self::Numbers => format!("in/app.log.{}", 3 - file),
        }
    }

    /// Begins a file with three lines.
    fn begin(self, world: &World, file: i64) {
        let lines = orders(3 * file - 2..=3 * file);
        if self != Self::Numbers {
            return world.write(&self.of(file), lines);
        }
        for (from, to) in [("in/app.log.1", "in/app.log.2"), ("in/app.log", "in/app.log.1")] {
            if world.path(from).exists() {
                crate::world::rename(&world.path(from), &world.path(to));
            }
        }
        world.write("in/app.log", lines);
    }
}

/// Three files of a chain were delivered, and then the target was restored to a copy from after the first.
fn restored_in_chain(names: Names, path: &str) -> World {
    let world = World::empty();
    world.sql(ORDERS);
    std::fs::create_dir(world.path("in")).expect("a folder");
    let text = format!(
        "workflows:
  - id: orders
    source: {{ file: {{ path: '{path}', rotation: {} }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, onConflict: append }} }}
    delivery: {{ guarantee: exactly-once, epoch: {{ interval: 20ms }} }}
",
        names.rotation()
    );
    world.write("hapax.yaml", text);
    let copy = world.path("backup.db");
    for file in 1..=3 {
        names.begin(&world, file);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.rows(), 3 * file, "{names:?}");
        if file == 1 {
            world.sql(&format!("VACUUM INTO '{}'", copy.to_str().expect("a path")));
        }
    }
    remove(&world);
    crate::world::rename(&copy, &world.path("shop.db"));
    assert_eq!(world.rows(), 3);
    world
}

/// Goal: nobody rewinds over a file of the range that is gone: code 5 with both positions, and nothing is written. Method: three
/// files of a chain; the target goes back to the first, the second was removed.
#[test]
fn a_restored_target_is_not_rewound_over_a_file_that_is_gone() {
    for names in ALL_NAMES {
        let world = restored_in_chain(names, "in/*");
        let content = world.read(&names.of(2));
        std::fs::remove_file(world.path(&names.of(2))).expect("cleaned away");
        let words = ["HX4018", "went back", "cannot be read again", "file number 3", "--accept"];
        world.hapax(&["check", "--live"]).exits(5).says(&words);
        world.hapax(&["run", "--once"]).exits(5).says(&words);
        assert_eq!(world.rows(), 3, "{names:?}");
        // What a person accepts is given up, and no more.
        assert_eq!(content, orders(4..=6));
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.rows(), 6, "{names:?}");
    }
}

/// Goal: a range of whole files is read again as long as all of them are there, compressed or not. Method: the same chains with
/// all their files, then with the two older ones compressed.
#[test]
fn a_restored_target_is_rewound_over_whole_files() {
    for names in ALL_NAMES {
        for packed in [false, true] {
            if packed && !cfg!(feature = "compression") {
                continue;
            }
            let world = restored_in_chain(names, "in/*");
            for file in [1, 2].into_iter().filter(|_| packed) {
                let done = std::process::Command::new("gzip").arg(world.path(&names.of(file))).status();
                assert!(done.is_ok_and(|status| status.success()));
            }
            world.hapax(&["check", "--live"]).exits(0);
            world.hapax(&["run", "--once"]).exits(0).says(&["the target went back", "rewinding"]);
            assert_eq!(world.rows(), 9, "{names:?}, packed: {packed}");
            world.accounts_for(9, 0);
            world.hapax(&["reconcile"]).exits(0).says(&["adds up"]);
        }
    }
}

/// Goal: the rest of a file is read again also if the file was rotated and compressed meanwhile. Method: three lines of six are in the
/// restored target; a path and a pattern; with an empty file and with lines after it.
#[cfg(feature = "compression")]
#[test]
fn a_restored_target_is_rewound_within_a_file_that_was_compressed() {
    for (path, after) in [("orders.jsonl", 0), ("orders.jsonl", 2), ("orders.jsonl*", 0), ("orders.jsonl*", 2)] {
        let world = appending(path);
        world.write("orders.jsonl", orders(1..=3));
        world.hapax(&["run", "--once"]).exits(0);
        let copy = world.path("backup.db");
        world.sql(&format!("VACUUM INTO '{}'", copy.to_str().expect("a path")));
        world.append("orders.jsonl", orders(4..=6));
        world.hapax(&["run", "--once"]).exits(0);
        remove(&world);
        crate::world::rename(&copy, &world.path("shop.db"));
        compressed_by_rotation(&world);
        world.write("orders.jsonl", orders(7..=6 + after));
        world.hapax(&["check", "--live"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0).says(&["rewinding"]);
        assert_eq!(world.rows(), 6 + after, "{path}, {after} lines after it");
        world.accounts_for(6 + after.unsigned_abs(), 0);
    }
}

/// Goal: who accepts what is there repeats nothing that was delivered of a file that was compressed. Method: an archive of which a
/// part was read, and one that was read whole; a path and a pattern.
#[cfg(feature = "compression")]
#[test]
fn what_was_read_of_an_archive_is_not_repeated_by_an_acceptance() {
    for (path, unread) in [("orders.jsonl", 0), ("orders.jsonl", 2), ("orders.jsonl*", 0), ("orders.jsonl*", 2)] {
        let world = appending(path);
        world.write("orders.jsonl", orders(1..=3));
        world.hapax(&["run", "--once"]).exits(0);
        world.append("orders.jsonl", orders(4..=3 + unread));
        compressed_by_rotation(&world);
        world.write("orders.jsonl", orders(6..=7));
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.rows(), 5 + unread, "{path}, {unread} lines not read");
        world.accounts_for(5 + unread.unsigned_abs(), 0);
    }
}

/// A shop without an order yet, which appends what comes.
#[cfg(feature = "compression")]
fn appending(path: &str) -> World {
    let world = World::empty();
    world.sql(ORDERS);
    world.write(
        "hapax.yaml",
        format!(
            "workflows:
  - id: orders
    source: {{ file: {{ path: '{path}' }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, onConflict: append }} }}
    delivery: {{ guarantee: exactly-once, epoch: {{ interval: 20ms }} }}
"
        ),
    );
    world
}

#[cfg(feature = "compression")]
fn compressed_by_rotation(world: &World) {
    crate::world::rename(&world.path("orders.jsonl"), &world.path("orders.jsonl.1"));
    let done = std::process::Command::new("gzip").arg(world.path("orders.jsonl.1")).status();
    assert!(done.is_ok_and(|status| status.success()));
}

/// Goal: a target without any progress is not filled from the last file of a chain alone. Method: three files delivered, the
/// older two removed, and the target made anew.
#[test]
fn a_target_made_anew_is_not_filled_from_the_last_file_alone() {
    let world = restored_in_chain(Names::Numbers, "in/app.log");
    remove(&world);
    world.sql(ORDERS);
    for file in [1, 2] {
        std::fs::remove_file(world.path(&Names::Numbers.of(file))).expect("cleaned away");
    }
    world.hapax(&["check", "--live"]).exits(5).says(&["HX4018"]);
    world.hapax(&["run", "--once"]).exits(5).says(&["HX4018", "file number 3"]);
    assert_eq!(world.rows(), 0);
}

/// Goal: nobody goes on without a lane of a pattern whose files are gone whole and that was further before the target was restored.
/// Method: of one lane a part is in the copy, of another nothing; both are removed, named with both positions, and accepted.
#[test]
fn a_restored_target_is_not_gone_on_with_without_a_lane_whose_files_are_gone() {
    let lines = |range| orders(range).len();
    for (lane, before, after) in [("in/b.log", Some(11..=13), 14..=16), ("in/c.log", None, 21..=23)] {
        let world = World::shop("", KEYED);
        std::fs::create_dir(world.path("in")).expect("a folder");
        let text = world.read("hapax.yaml");
        assert!(text.contains("orders.jsonl"), "{text}");
        world.write("hapax.yaml", text.replace("orders.jsonl", "'in/*.log'"));
        world.write("in/a.log", orders(1..=3));
        if let Some(before) = before.clone() {
            world.write(lane, orders(before));
        }
        world.hapax(&["run", "--once"]).exits(0);
        let (copy, kept) = (world.path("backup.db"), world.rows());
        world.sql(&format!("VACUUM INTO '{}'", copy.to_str().expect("a path")));
        world.append(lane, orders(after.clone()));
        world.append("in/a.log", orders(4..=5));
        world.hapax(&["run", "--once"]).exits(0);
        remove(&world);
        crate::world::rename(&copy, &world.path("shop.db"));
        std::fs::remove_file(world.path(lane)).expect("cleaned away");
        let was = before.clone().map_or(0, lines);
        let (seen, now) = (format!("(position {} of", was + lines(after)), format!("(position {was}"));
        let words = ["HX4018", "went back", lane, &seen, &now, "cannot be read again", "is gone", "--accept"];
        world.hapax(&["check", "--live"]).exits(5).says(&words);
        world.hapax(&["run", "--once"]).exits(5).says(&words);
        world.hapax(&["run", "--once"]).exits(5).says(&words);
        assert_eq!(world.rows(), kept + 2, "{lane}: the other lane was rewound");
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
        world.hapax(&["check", "--live"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(world.rows(), kept + 2, "{lane}");
    }
}

/// Goal: a table dropped under a live worker stops it with code 5 and the reason, and nothing is lost. Method: drop, add
/// lines, make it anew, accept from the beginning.
#[test]
fn a_table_dropped_under_a_live_worker_stops_it_with_code_5() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    world.sql("DROP TABLE orders");
    world.append("orders.jsonl", orders(4..=5));
    worker.ends().exits(5).says(&["HX4012", "the table was dropped", "`hapax reset orders --accept`"]);
    world.sql(ORDERS);
    world.hapax(&["reset", "orders", "--accept", "--to", "earliest", "--yes"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 5);
}

/// Goal: a database deleted under a live worker stops it in the end, with its name. Method: delete, add a line.
#[test]
fn a_database_deleted_under_a_live_worker_is_named() {
    let world = World::shop("", KEYED);
    world.write("orders.jsonl", orders(1..=3));
    let worker = world.start("worker.log", &["run"]);
    until("the rows are there", || world.rows() == 3);
    remove(&world);
    world.append("orders.jsonl", orders(4..=4));
    worker.ends().exits(1).says(&["HX4001", "shop.db", "does not exist", "create the database"]);
    assert!(!world.path("shop.db").exists(), "no empty database takes its place");
}
