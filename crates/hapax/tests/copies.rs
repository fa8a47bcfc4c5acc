//! Archives beside, behind and in place of what was read; and files that hold the same.

use std::fs;
use std::io::Write as _;

use crate::files::gzip;
use crate::world::{World, rename, until};

/// Workflow `orders` from `source`, appended: what is read twice is seen.
fn shop(source: &str) -> World {
    let world = World::empty();
    world.sql("CREATE TABLE orders (id INTEGER)");
    fs::create_dir(world.path("in")).expect("a folder");
    let text = format!(
        "state: 'sqlite://state.db'
workflows:
  - id: orders
    source: {{ file: {{ {source} }} }}
    sink: {{ sqlite: {{ path: shop.db, table: orders, onConflict: append }} }}
    delivery: {{ guarantee: exactly-once, epoch: {{ interval: 20ms }}, lease: 2s, retries: {{ backoffMs: [50], giveUpAfter: 300ms }} }}
"
    );
    world.write("hapax.yaml", text);
    world
}

fn lines(ids: &[i64]) -> String {
    ids.iter().map(|id| format!("{{\"id\":{id}}}\n")).collect()
}

fn packed(ids: &[i64]) -> Vec<u8> {
    gzip(lines(ids).as_bytes())
}

/// The ids in the order in which they came.
fn ids(world: &World) -> String {
    world.ask("SELECT coalesce(group_concat(id, ' '), '') FROM (SELECT id FROM orders ORDER BY rowid)")
}

/// The ids, sorted.
fn sorted(world: &World) -> String {
    world.ask("SELECT coalesce(group_concat(id, ' '), '') FROM (SELECT id FROM orders ORDER BY id)")
}

fn compress(world: &World, name: &str) {
    let content = fs::read(world.path(name)).expect("it is there");
    world.write(&format!("{name}.gz"), gzip(&content));
    fs::remove_file(world.path(name)).expect("removed");
}

fn add_member(world: &World, name: &str, ids: &[i64]) {
    let mut file = fs::OpenOptions::new().append(true).open(world.path(name)).expect("it is there");
    file.write_all(&packed(ids)).expect("written");
}

fn restore(world: &World) {
    for name in ["shop.db-wal", "shop.db-shm"] {
        _ = fs::remove_file(world.path(name));
    }
    fs::copy(world.path("backup.db"), world.path("shop.db")).expect("restored");
}

fn goes_on(world: &World, expected: &str) {
    world.hapax(&["check", "--live"]).exits(0);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(ids(world), expected);
}

fn stops(world: &World, words: &[&str], expected: &str) {
    world.hapax(&["check", "--live"]).exits(5).says(words);
    world.hapax(&["run", "--once"]).exits(5).says(words);
    assert_eq!(ids(world), expected);
}

/// Goal: an archive beside a file of the same name is compared with it: a copy, whole, older or cut off, changes nothing; what holds
/// something else, or more, stops the chain with both names. Method: each before the first start, beside the file that is read, and
/// beside one that was left, with each rule that makes chains.
#[test]
fn an_archive_beside_a_file_is_its_copy_or_stops_the_chain() {
    let chains = [
        ("path: 'in/b-*', order: name", "b-1", "b-2"),
        ("path: 'in/app.log'", "app.log.1", "app.log"),
        ("path: 'in/day-*', rotation: beforeExtension", "day-2026-01-01.jsonl", "day-2026-01-02.jsonl"),
    ];
    for (source, first, second) in chains {
        for (archive, is_copy) in [
            (packed(&[1, 2]), true),
            (packed(&[1]), true),
            (packed(&[1, 2])[..12].to_vec(), true),
            (Vec::new(), true),
            (packed(&[3, 4]), false),
            (packed(&[1, 2, 3]), false),
        ] {
            let world = shop(source);
            let name = format!("in/{first}.gz");
            let live = second == "app.log";
            world.write(&format!("in/{}", if live { second } else { first }), lines(&[1, 2]));
            if live {
                world.hapax(&["run", "--once"]).exits(0);
                rename(&world.path("in/app.log"), &world.path("in/app.log.1"));
            }
            world.write(&name, &archive);
            let read = if live { "1 2" } else { "" };
            if !is_copy {
                stops(&world, &[first, &name[3..], "something else"], read);
                fs::remove_file(world.path(&name)).expect("removed");
            }
            goes_on(&world, "1 2");
            world.write(&format!("in/{second}"), lines(&[5]));
            goes_on(&world, "1 2 5");
            world.write(&name, &archive);
            match is_copy {
                true => goes_on(&world, "1 2 5"),
                false => stops(&world, &[first, &name[3..]], "1 2 5"),
            }
        }
    }
}

/// Goal: a lane that takes over the progress of a file goes on inside its archive, also if the file had grown before it was compressed.
/// Method: read, grown, compressed, refused, taken over as it says.
#[test]
fn an_archive_that_holds_more_than_was_read_is_taken_over_at_its_byte() {
    let world = shop("path: 'in/*', rotation: none");
    world.write("in/f1", lines(&[1, 2]));
    goes_on(&world, "1 2");
    world.append("in/f1", lines(&[3, 4]));
    compress(&world, "in/f1");
    world.hapax(&["run", "--once"]).exits(5).says(&["HX3014"]);
    world.hapax(&["reset", "orders", "--lane", "in/f1.gz", "--adopt-lane", "in/f1", "--yes"]).exits(0);
    goes_on(&world, "1 2 3 4");
    goes_on(&world, "1 2 3 4");
}

/// Goal: an archive counts as a file that was read only if its name allows it and it holds that file and nothing more; of two that hold
/// the same nobody can say which it is. Method: another name of equal content, a left file's name with more, two of equal content.
#[test]
fn an_archive_of_equal_content_is_not_taken_for_another_file() {
    let world = shop("path: 'in/b-*', order: name");
    world.write("in/b-1", lines(&[1]));
    goes_on(&world, "1");
    fs::remove_file(world.path("in/b-1")).expect("removed");
    world.write("in/b-2.gz", packed(&[1]));
    world.write("in/b-3", lines(&[2]));
    world.hapax(&["check", "--live"]).exits(5);
    world.hapax(&["run", "--once"]).exits(5);
    assert_eq!(ids(&world), "1");

    let world = shop("path: 'in/b-*', order: name");
    world.write("in/b-1", lines(&[1]));
    world.write("in/b-2", lines(&[2]));
    goes_on(&world, "1 2");
    fs::remove_file(world.path("in/b-1")).expect("removed");
    world.write("in/b-1.gz", packed(&[1, 3]));
    stops(&world, &["b-1.gz", "never read"], "1 2");
    world.write("in/b-1.gz", packed(&[1]));
    goes_on(&world, "1 2");

    let world = shop("path: in/app.log");
    world.write("in/app.log", lines(&[1, 2]));
    goes_on(&world, "1 2");
    fs::remove_file(world.path("in/app.log")).expect("removed");
    world.write("in/app.log.2.gz", packed(&[1, 2]));
    world.write("in/app.log.1.gz", packed(&[1, 2]));
    world.write("in/app.log", lines(&[3]));
    stops(&world, &["app.log.2.gz", "app.log.1.gz", "which it became"], "1 2");
}

/// Goal: what comes to an archive that was read to its end is not lost: as long as it is the last of its lane it is read on, and one
/// that was left, or rewritten, stops. Method: a second gzip member before a start and under a worker, behind a file and as the last;
/// an archive of nothing that is rewritten in place.
#[test]
fn an_archive_that_grows_is_read_on_or_stops() {
    for source in ["path: 'in/b-*', order: name", "path: 'in/b-*', rotation: none", "path: 'in/b-*'", "path: in/b-1.gz"]
    {
        let world = shop(source);
        world.write("in/b-1.gz", packed(&[1, 2]));
        goes_on(&world, "1 2");
        add_member(&world, "in/b-1.gz", &[3, 4]);
        goes_on(&world, "1 2 3 4");
        goes_on(&world, "1 2 3 4");
    }
    let world = shop("path: 'in/b-*', order: name");
    world.write("in/b-1.gz", packed(&[1, 2]));
    let worker = world.start("worker.log", &["run"]);
    until("the archive is read", || ids(&world) == "1 2");
    add_member(&world, "in/b-1.gz", &[3, 4]);
    until("its second member is read", || ids(&world) == "1 2 3 4");
    world.write("in/b-2", lines(&[5]));
    until("the next file is read", || ids(&world) == "1 2 3 4 5");
    worker.terminate();
    worker.ends().exits(0);
    add_member(&world, "in/b-1.gz", &[6]);
    stops(&world, &["b-1.gz", "not read"], "1 2 3 4 5");

    let world = shop("path: 'in/b-*', order: name");
    world.write("in/b-1.gz", packed(&[]));
    goes_on(&world, "");
    world.write("in/b-1.gz", packed(&[1, 2]));
    stops(&world, &["rewritten in place"], "");
}

/// Goal: a file that has grown and was then compressed under its own name is read on in that archive, and the next file of its name
/// follows; an archive of something else stops. Method: single paths and patterns that do not find the archive.
#[test]
fn a_file_that_became_an_archive_of_its_own_name_is_read_on() {
    for source in [
        "path: in/app.jsonl",
        "path: 'in/*.jsonl'",
        "path: in/app.jsonl, rotation: beforeExtension",
        "path: 'in/*.jsonl', rotation: none",
    ] {
        let world = shop(source);
        world.write("in/app.jsonl", lines(&[1, 2]));
        goes_on(&world, "1 2");
        world.append("in/app.jsonl", lines(&[3, 4]));
        compress(&world, "in/app.jsonl");
        goes_on(&world, "1 2 3 4");
        goes_on(&world, "1 2 3 4");
        if !source.ends_with("none") {
            world.write("in/app.jsonl", lines(&[5]));
            goes_on(&world, "1 2 3 4 5");
            world.append("in/app.jsonl", lines(&[6]));
            goes_on(&world, "1 2 3 4 5 6");
        }
    }
    let world = shop("path: 'in/*.jsonl'");
    world.write("in/app.jsonl", lines(&[1, 2]));
    goes_on(&world, "1 2");
    fs::remove_file(world.path("in/app.jsonl")).expect("removed");
    world.write("in/app.jsonl.gz", packed(&[7, 8]));
    world.hapax(&["check", "--live"]).exits(5);
    world.hapax(&["run", "--once"]).exits(5);
    assert_eq!(ids(&world), "1 2");

    let world = shop("path: in/app.jsonl");
    world.write("in/app.jsonl", lines(&[1, 2]));
    let worker = world.start("worker.log", &["run"]);
    until("it is read", || ids(&world) == "1 2");
    compress(&world, "in/app.jsonl");
    world.write("in/app.jsonl", lines(&[3]));
    until("what follows is read", || ids(&world) == "1 2 3");
    worker.terminate();
    worker.ends().exits(0);
}

/// Goal: files of a drop folder that lie there side by side are as many files, whatever they hold; a lane whose own file is gone is
/// still not delivered twice. Method: equal files before the first start and later, in two folders; one copied and removed.
#[test]
fn equal_files_side_by_side_are_all_delivered() {
    for _ in 0..3 {
        let world = shop("path: 'in/**/*', rotation: none");
        fs::create_dir(world.path("in/deep")).expect("a folder");
        for name in ["in/a", "in/b", "in/c", "in/d", "in/deep/a"] {
            world.write(name, lines(&[1]));
        }
        goes_on(&world, "1 1 1 1 1");
        world.write("in/e", lines(&[1]));
        goes_on(&world, "1 1 1 1 1 1");
        fs::copy(world.path("in/deep/a"), world.path("in/deep/z")).expect("copied");
        fs::remove_file(world.path("in/deep/a")).expect("removed");
        stops(&world, &["HX3014", "in/deep/z"], "1 1 1 1 1 1");
    }
}

/// Goal: a lane that a restored target does not know yet is delivered again from its beginning if its file is there; if that is gone, or
/// another, the run stops. Method: a backup before the second file, and before the first delivery.
#[test]
fn a_restored_target_that_does_not_know_a_lane_yet_is_rewound() {
    for source in ["path: 'in/b-*.jsonl', rotation: none", "path: 'in/b-*.jsonl'"] {
        let world = shop(source);
        world.write("in/b-1.jsonl", lines(&[1, 2]));
        goes_on(&world, "1 2");
        world.sql(&format!("VACUUM INTO '{}'", world.path("backup.db").to_str().expect("a path")));
        world.write("in/b-2.jsonl", lines(&[3]));
        goes_on(&world, "1 2 3");
        restore(&world);
        assert_eq!(ids(&world), "1 2");
        world.hapax(&["check", "--live"]).exits(0);
        world.hapax(&["run", "--once"]).exits(0).says(&["the target went back", "rewinding"]);
        assert_eq!(sorted(&world), "1 2 3");
        restore(&world);
        fs::remove_file(world.path("in/b-2.jsonl")).expect("removed");
        stops(&world, &["HX4018", "b-2.jsonl"], "1 2");
        world.write("in/b-2.jsonl", lines(&[4]));
        stops(&world, &["HX4018", "b-2.jsonl"], "1 2");
    }
}

/// Goal: a check agrees with a run where the file that is read was rotated and none is at the path yet. Method: with a rest to read,
/// and without; and a path that never had a file.
#[test]
fn a_check_agrees_about_a_path_whose_file_was_rotated_away() {
    let world = shop("path: in/app.jsonl");
    world.hapax(&["check", "--live"]).exits(1).says(&["HX3001"]);
    world.write("in/app.jsonl", lines(&[1, 2]));
    goes_on(&world, "1 2");
    world.append("in/app.jsonl", lines(&[3]));
    rename(&world.path("in/app.jsonl"), &world.path("in/app.jsonl.1"));
    goes_on(&world, "1 2 3");
    goes_on(&world, "1 2 3");
}

/// Goal: who moves a whole workflow passes over compressed copies of what was read, as a run does; one that is named is begun, and said to
/// be delivered again. Method: files that were read and compressed, another that was rewritten; accept, then name the archive.
#[test]
fn a_reset_passes_over_archives_of_files_that_were_read() {
    for source in ["path: 'in/*', rotation: none", "path: 'in/*'"] {
        let world = shop(source);
        world.write("in/f1", lines(&[1, 2]));
        world.write("in/f2", lines(&[3]));
        world.hapax(&["run", "--once"]).exits(0);
        compress(&world, "in/f1");
        world.hapax(&["run", "--once"]).exits(0);
        world.write("in/f2", lines(&[40]));
        world.hapax(&["run", "--once"]).exits(5);
        let answer = world.hapax(&["reset", "orders", "--accept", "--yes"]);
        answer.exits(0).says(&["in/f1.gz: passed over", "compressed copy of in/f1"]);
        answer.keeps_silent_about(&["in/f1.gz: no progress yet"]);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(sorted(&world), "1 2 3 40", "{source}");
        let answer = world.hapax(&["reset", "orders", "--lane", "in/f1.gz", "--accept", "--yes"]);
        answer.exits(0).says(&["warning", "compressed copy of in/f1", "delivered again"]);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(sorted(&world), "1 1 2 2 3 40", "{source}");
    }
}

/// Goal: a person who accepts that the last file is gone has a lane that rests, whatever becomes of the older files, and goes on with the
/// next that comes. Method: remove the last file that was read to its end; accept; compress the older one; a next file.
#[test]
fn a_lane_whose_last_file_is_gone_rests_once_that_is_accepted() {
    for (source, first, second, third) in [
        ("path: 'in/b-*', order: name", "in/b-1", "in/b-2", "in/b-3"),
        ("path: 'in/*.jsonl'", "in/app.jsonl.1", "in/app.jsonl", "in/app.jsonl"),
    ] {
        let world = shop(source);
        let begun = if first.ends_with(".1") { second } else { first };
        world.write(begun, lines(&[1, 2]));
        world.hapax(&["run", "--once"]).exits(0);
        if begun != first {
            rename(&world.path(begun), &world.path(first));
        }
        world.write(second, lines(&[3, 4]));
        goes_on(&world, "1 2 3 4");
        fs::remove_file(world.path(second)).expect("removed");
        let older = first.trim_start_matches("in/");
        stops(&world, &["HX3002", "read to its end", older, "--accept"], "1 2 3 4");
        let answer = world.hapax(&["reset", "orders", "--accept", "--yes"]);
        answer.exits(0).says(&["goes on with the next file that comes", "nothing is delivered again"]);
        goes_on(&world, "1 2 3 4");
        compress(&world, first);
        goes_on(&world, "1 2 3 4");
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0);
        goes_on(&world, "1 2 3 4");
        world.write(third, lines(&[5]));
        goes_on(&world, "1 2 3 4 5");
        goes_on(&world, "1 2 3 4 5");
    }
}

/// Goal: lines that came to files after they were left are named, all of them, by who stops and by who gives them up. Method: two such
/// files; the stop, a dry run, the acceptance.
#[test]
fn late_lines_are_named_where_they_stop_and_where_they_are_given_up() {
    let world = shop("path: 'in/b-*', order: name");
    for id in 1..=3 {
        world.write(&format!("in/b-{id}"), lines(&[id]));
    }
    goes_on(&world, "1 2 3");
    world.append("in/b-1", lines(&[4]));
    world.append("in/b-2", lines(&[5]));
    stops(&world, &["written to b-1 behind byte 9", "written to b-2 behind byte 9"], "1 2 3");
    for doing in ["--dry-run", "--yes"] {
        let answer = world.hapax(&["reset", "orders", "--accept", doing]);
        answer.exits(0).says(&["given up unread: bytes 9 to 18 of b-1", "given up unread: bytes 9 to 18 of b-2"]);
    }
    goes_on(&world, "1 2 3");
}

fn append_packed(world: &World, name: &str, content: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(world.path(name)).expect("it is there");
    file.write_all(&gzip(content.as_bytes())).expect("written");
}

/// Goal: a line of an archive that was delivered without its newline is never torn by a later member, and its newline may still come.
/// Method: each sort of lane, asked once and under a worker; after the stop a person accepts what is there.
#[test]
fn a_member_that_goes_on_with_a_delivered_line_stops() {
    let (torn, words) = ("{\"id\":1}\n{\"id\":2}", ["HX3002", "without its newline", "before it was complete"]);
    let lanes = [
        ("path: in/b-1.gz", "in/b-1.gz"),
        ("path: 'in/b-*'", "in/b-1.gz"),
        ("path: 'in/b-*', rotation: none", "in/b-1.gz"),
        ("path: 'in/b-*', order: name", "in/b-1.gz"),
        ("path: 'in/day-*', rotation: beforeExtension", "in/day-2026-01-01.jsonl.gz"),
    ];
    for (source, name) in lanes {
        let world = shop(source);
        world.write(name, gzip(torn.as_bytes()));
        goes_on(&world, "1 2");
        append_packed(&world, name, "\n{\"id\":3}");
        goes_on(&world, "1 2 3");
        goes_on(&world, "1 2 3");
        append_packed(&world, name, "{\"id\":4}\n{\"id\":5}\n");
        stops(&world, &words, "1 2 3");
        world.hapax(&["reset", "orders", "--accept", "--yes"]).exits(0).says(&["delivers again"]);
        world.hapax(&["run", "--once"]).exits(0);
        assert_eq!(ids(&world), "1 2 3 1 2 5", "{source}: the line is a letter now, whole");
        assert!(world.letters().contains("trailing characters, at character 9"), "{}", world.letters());
    }
    for (source, name) in &lanes[1..] {
        let world = shop(source);
        world.write(name, gzip(torn.as_bytes()));
        let worker = world.start("worker.log", &["run"]);
        until("the last line is read without its newline", || ids(&world) == "1 2");
        append_packed(&world, name, "{\"id\":3}\n");
        worker.ends().exits(5).says(&words);
        assert_eq!(ids(&world), "1 2", "{source}");
    }
}

/// Goal: under a worker too the last lines of archives that have no newline are delivered, however many wait. Method: more archives than
/// are open at once, just written.
#[test]
fn a_folder_of_archives_without_a_last_newline_is_delivered() {
    let world = shop("path: 'in/*.gz', rotation: none");
    for n in 0..20 {
        world.write(&format!("in/{n}.gz"), gzip(format!("{{\"id\":{}}}\n{{\"id\":{}}}", 2 * n, 2 * n + 1).as_bytes()));
    }
    let worker = world.start("worker.log", &["run"]);
    until("all are delivered", || world.rows() == 40);
    worker.terminate();
    worker.ends().exits(0);
    assert_eq!(world.ask::<i64>("SELECT count(DISTINCT id) FROM orders"), 40);
    world.hapax(&["run", "--once"]).exits(0);
    assert_eq!(world.rows(), 40);
}

/// Goal: an archive that is made of the file that is read, while that has its own name still, is no file that nobody has read; one that
/// holds anything else is. Method: single path and pattern; a copy, an older one, more and something else; then the original goes, and
/// rotations go on.
#[test]
fn an_archive_of_the_live_file_is_no_unread_file() {
    for source in ["path: in/app.log", "path: 'in/app.log*'"] {
        let world = shop(source);
        world.write("in/app.log", lines(&[1, 2, 3]));
        goes_on(&world, "1 2 3");
        world.write("in/app.log.1.gz", packed(&[1, 2, 3]));
        goes_on(&world, "1 2 3");
        world.append("in/app.log", lines(&[4]));
        goes_on(&world, "1 2 3 4");
        for other in [&[1, 2, 9][..], &[1, 2, 3, 4, 5]] {
            world.write("in/app.log.1.gz", packed(other));
            stops(&world, &["app.log.1.gz lies before app.log", "never read"], "1 2 3 4");
        }
        world.write("in/app.log.1.gz", packed(&[1, 2, 3, 4]));
        goes_on(&world, "1 2 3 4");
        fs::remove_file(world.path("in/app.log")).expect("removed");
        rename(&world.path("in/app.log.1.gz"), &world.path("in/app.log.2.gz"));
        world.write("in/app.log.1", lines(&[7]));
        world.write("in/app.log", lines(&[8]));
        goes_on(&world, "1 2 3 4 7 8");
        // A copy that stays, of less than the file holds by then, is known through the next rotation too.
        world.write("in/app.log.1.gz", packed(&[7]));
        goes_on(&world, "1 2 3 4 7 8");
        fs::remove_file(world.path("in/app.log.1.gz")).expect("removed");
        rename(&world.path("in/app.log.2.gz"), &world.path("in/app.log.4.gz"));
        rename(&world.path("in/app.log.1"), &world.path("in/app.log.3"));
        world.write("in/app.log.2.gz", packed(&[8]));
        world.append("in/app.log", lines(&[9]));
        rename(&world.path("in/app.log"), &world.path("in/app.log.1"));
        world.write("in/app.log", lines(&[10]));
        goes_on(&world, "1 2 3 4 7 8 9 10");
        goes_on(&world, "1 2 3 4 7 8 9 10");
    }
}
