use std::fs;

use super::super::chain::RotationRule;
use super::super::many::{FoundStems, find_stems};
use super::*;

struct Folder(tempfile::TempDir);

impl Folder {
    /// `app.log.2`, `app.log.1` and `app.log`, with two, three and four bytes.
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        for (name, text) in [("app.log.2", "a\n"), ("app.log.1", "bb\n"), ("app.log", "ccc\n")] {
            fs::write(folder.0.path().join(name), text).expect("written");
        }
        folder
    }

    fn look(&self) -> FoundStems {
        find_stems("*", self.0.path(), RotationRule::Suffixes)
    }

    /// A lane that has read the file of this name up to `offset`.
    fn lane(&self, lane: &str, name: &str, offset: u64, end: &str) -> (String, Bookmark) {
        let found = self.look();
        let member = found.stems[0].members().iter().find(|member| member.name == name).expect("a member");
        (lane.to_owned(), Bookmark::at(&format!("{}, first 2 bytes 00{end}", member.identity), offset))
    }
}

fn together(folder: &Folder, lanes: &[(String, Bookmark)]) -> Result<Together, String> {
    bring_together(folder.look().stems.first(), lanes, &FileFormat::JsonLines)
}

/// Goal: finished, begun, unread is an order; the lane goes on in the one that was begun, above all numbers. Method: each prefix.
#[test]
fn what_was_read_must_be_the_older_part() {
    let folder = Folder::new();
    let end = ", read to its end";
    let (two, one) = (folder.lane("app.log#2", "app.log.2", 2, end), folder.lane("app.log.1", "app.log.1", 3, ""));
    let live = folder.lane("app.log", "app.log", 0, "");
    for (lanes, goes_on, offset, read) in [
        (vec![two.clone()], "app.log#2", 2, 0),
        (vec![one.clone(), two.clone()], "app.log.1", 3, 1),
        (vec![live.clone(), one.clone(), two.clone()], "app.log", 0, 2),
    ] {
        let done = together(&folder, &lanes).expect("an order");
        let facts = Facts::from_text(done.at.facts.as_deref().expect("facts")).expect("readable");
        assert_eq!((done.lanes.last().map(String::as_str), done.lanes.len()), (Some(goes_on), lanes.len()));
        assert_eq!(
            (done.at.position.offset, done.at.incarnation.number, facts.read.len()),
            (offset, u32::try_from(lanes.len()).expect("few"), read)
        );
    }
}

/// Goal: anything else is refused by name. Method: a hole, two begun files, a file that is gone unread, and one that is gone and
/// was read, which is none.
#[test]
fn what_has_no_order_is_refused() {
    let folder = Folder::new();
    let end = ", read to its end";
    let two = folder.lane("app.log#2", "app.log.2", 2, end);
    let (begun, live) = (folder.lane("app.log.1", "app.log.1", 1, ""), folder.lane("app.log", "app.log", 4, end));
    let refused = |lanes: &[(String, Bookmark)]| together(&folder, lanes).expect_err("no order");
    assert!(refused(&[two.clone(), live.clone()]).contains("app.log.1 was not read"));
    assert!(refused(&[two.clone(), begun, live.clone()]).contains("\"app.log.1\" was not read to its end"));
    let twin = ("twin".to_owned(), two.1.clone());
    assert!(refused(&[two.clone(), twin]).contains("have both read app.log.2"));
    let gone =
        |end: &str| ("app.log#3".to_owned(), Bookmark::at(&format!("inode 1, created 1.1, first 2 bytes 00{end}"), 9));
    assert!(refused(&[gone(""), two.clone()]).contains("\"app.log#3\" is gone"));
    assert_eq!(together(&folder, &[gone(end), two]).expect("an order").lanes, ["app.log#3", "app.log#2"]);
}

/// Goal: only lanes of earlier versions are grouped. Method: names with and without a rotation's suffix or a number.
#[test]
fn lanes_of_earlier_versions_are_told_by_their_names() {
    let at = || Bookmark::at("inode 1, no record yet", 0);
    let known = ["a.log", "a.log.1", "a.log#2", "b.log", "c#1", "d.log.1"].map(|lane| (lane.to_owned(), at()));
    let groups = earlier_lanes(&known.into_iter().collect(), |lane| lane == "c#1" || lane == "b.log");
    let names: Vec<(String, usize)> = groups.into_iter().map(|(stem, lanes)| (stem, lanes.len())).collect();
    assert_eq!(names, [("a.log".to_owned(), 3), ("d.log".to_owned(), 1)]);
}
