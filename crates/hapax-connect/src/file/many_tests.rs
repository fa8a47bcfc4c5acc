use std::fs;

use super::*;

fn lanes(found: &FoundStems) -> Vec<(&str, Vec<&str>)> {
    found.stems.iter().map(|stem| (stem.lane.as_str(), stem.names())).collect()
}

/// Goal: the lanes of a pattern are stems, the same whoever looks and whenever. Method: rotate between two looks.
#[test]
fn a_rotation_adds_no_lane() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("app.log"), "a\n").expect("written");
    for (pattern, first) in [("app.log*", "app.log.1"), ("*.log", "app.log")] {
        let before = find_stems(pattern, folder.path(), RotationRule::Suffixes);
        assert_eq!(before.stems.len(), 1);
        fs::rename(at("app.log"), at("app.log.1")).expect("moved");
        fs::write(at("app.log"), "b\nb\n").expect("written");
        let after = find_stems(pattern, folder.path(), RotationRule::Suffixes);
        assert_eq!(lanes(&after), [("app.log", vec!["app.log.1", "app.log"])]);
        let stem = &after.stems[0];
        let begins = |born, name: &str| {
            let first = stem.first(born, &FileFormat::JsonLines).expect("a file");
            stem.members.iter().all(|member| first.is(member) == (member.name == name))
        };
        assert!(begins(Born::Before, first), "the oldest that {pattern} finds");
        assert!(begins(Born::Since, "app.log.1"));
        assert_ne!(stem.signature(), before.stems[0].signature());
        fs::remove_file(at("app.log.1")).expect("gone");
    }
    let alone = find_stems("app.log*", folder.path(), RotationRule::None);
    assert_eq!(lanes(&alone), [("app.log", vec!["app.log"])]);
}

/// Goal: what a lane has before it is told by its folder. Method: each state of a lane that was read to its end.
#[test]
fn a_lane_at_rest_is_told_from_one_that_has_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("app.log"), "a\n").expect("written");
    let found = find_stems("app.log*", folder.path(), RotationRule::Suffixes);
    let identity = found.stems[0].members[0].identity.clone();
    let bookmark =
        |end: &str, offset: u64| Bookmark::at(&format!("{identity}, first 2 bytes 0123456789abcdef{end}"), offset);
    let ended = bookmark(", read to its end", 2);
    assert_eq!(prospect(&ended, found.stems.first()), Prospect::Finished);
    assert_eq!(prospect(&bookmark("", 2), found.stems.first()), Prospect::Unfinished);
    assert_eq!((prospect(&ended, None), prospect(&bookmark("", 2), None)), (Prospect::Gone, Prospect::Vanished));
    fs::write(at("app.log"), "a\nb\n").expect("grown");
    let grown = find_stems("app.log*", folder.path(), RotationRule::Suffixes);
    assert_eq!(prospect(&ended, grown.stems.first()), Prospect::Unfinished);
    fs::write(at("app.log"), "a\n").expect("as before");
    fs::rename(at("app.log"), at("app.log.1")).expect("moved");
    let rotated = find_stems("app.log*", folder.path(), RotationRule::Suffixes);
    assert_eq!(prospect(&ended, rotated.stems.first()), Prospect::Finished, "nothing follows yet");
    fs::write(at("app.log"), "b\n").expect("written");
    let followed = find_stems("app.log*", folder.path(), RotationRule::Suffixes);
    assert_eq!(prospect(&ended, followed.stems.first()), Prospect::Unfinished);
}

/// Goal: equal inodes on two devices are two files, and on one device they are one. Method: one lane's file with the other's identity, on
/// its own device and on another.
#[test]
fn equal_inodes_on_two_devices_are_two_files() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.log", "b.log"] {
        fs::write(folder.path().join(name), "x\n").expect("written");
    }
    let mut found = find_stems("*.log", folder.path(), RotationRule::Suffixes);
    assert_eq!(found.twice(), None);
    let first = found.stems[0].members[0].clone();
    found.stems[1].members[0].identity = first.identity;
    assert_eq!(found.twice(), Some(("a.log", "b.log", "a.log")));
    found.stems[1].members[0].device = first.device + 1;
    assert_eq!(found.twice(), None);
}

/// Goal: what cannot be looked at is named. Method: a link that leads to itself beside a file.
#[test]
fn what_cannot_be_looked_at_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.log"), "x\n").expect("written");
    std::os::unix::fs::symlink("loop.log", at("loop.log")).expect("a link");
    let found = find_stems("*.log", folder.path(), RotationRule::Suffixes);
    assert!(matches!(&found.unreadable[..], [one] if one.contains("loop.log")), "{:?}", found.unreadable);
}

/// Goal: patterns find files, in order, also below folders. Method: a tree.
#[test]
fn patterns_find_files_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("in/deep.csv")).expect("folders");
    for name in ["in/b.csv", "in/a.csv", "in/deep.csv/c.csv", "in/x.txt"] {
        fs::write(folder.path().join(name), "x\n").expect("written");
    }
    let shown = |pattern: &str| -> Vec<String> {
        find_stems(pattern, folder.path(), RotationRule::Suffixes).stems.into_iter().map(|stem| stem.lane).collect()
    };
    assert_eq!(shown("in/*.csv"), ["in/a.csv", "in/b.csv"]);
    assert_eq!(shown("**/*.csv"), ["in/a.csv", "in/b.csv", "in/deep.csv/c.csv"]);
    assert!(check_pattern("in/[a").is_err() && check_pattern("in/**/x").is_ok());
    assert!(is_pattern("a*") && !is_pattern("orders-1.csv"));
    assert_eq!(["in/a.log.1", "in/a.log", "b-20261117"].map(lane_of), ["in/a.log", "in/a.log", "b"]);
}
