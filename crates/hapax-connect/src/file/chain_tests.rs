use std::fs;

use super::*;

fn chain(folder: &Path, name: &str) -> Vec<String> {
    let stem = Stem { folder: folder.to_path_buf(), name: name.into() };
    stem.list(RotationRule::Suffixes).expect("listed").into_iter().map(|member| member.name).collect()
}

fn member(name: &str, stem: &str, length: u64, age: u64) -> Member {
    let (suffix, packed) = parse_suffix(&name[stem.len()..]).expect("a member");
    Member {
        name: name.into(),
        path: name.into(),
        identity: format!("inode of {name}"),
        device: 1,
        length,
        modified: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age),
        suffix,
        packed,
    }
}

/// Goal: rotated names are told from others, and have one order. Method: names that rotations make, and neighbours.
#[test]
fn rotated_names_belong_to_their_stem_and_others_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = [
        "app.log",
        "app.log.1",
        "app.log.2.gz",
        "app.log.10",
        "app.log.bak",
        "app.log2",
        "app.log.1.tmp",
        "app.logs",
        "other.log.1",
        "day.log",
        "day.log-20261116",
        "day.log-20261117.gz",
        "day.log.2026-11-15",
        "hour.log",
        "hour.log.2026-11-17.2",
        "hour.log.2026-11-17.10",
        "hour.log.2026-11-18.0",
        "app.log.1.gz",
    ];
    for name in names {
        fs::write(folder.path().join(name), name).expect("written");
    }
    assert_eq!(chain(folder.path(), "app.log"), ["app.log.10", "app.log.2.gz", "app.log.1", "app.log"]);
    assert_eq!(
        chain(folder.path(), "day.log"),
        ["day.log.2026-11-15", "day.log-20261116", "day.log-20261117.gz", "day.log"]
    );
    let hours = ["hour.log.2026-11-17.2", "hour.log.2026-11-17.10", "hour.log.2026-11-18.0", "hour.log"];
    assert_eq!(chain(folder.path(), "hour.log"), hours);
    for (name, stem) in [
        ("app.log.3", "app.log"),
        ("app.log", "app.log"),
        ("day-20261117.csv", "day-20261117.csv"),
        ("x.csv.gz", "x.csv.gz"),
        ("app.log-20261117.gz", "app.log"),
        ("hour.log.2026-11-17.10", "hour.log"),
        ("2026-11-17.jsonl", "2026-11-17.jsonl"),
        ("k8s.log.20261117-101112", "k8s.log"),
        ("k8s.log.20261117-101112.gz", "k8s.log"),
        (".1", ".1"),
    ] {
        assert_eq!(stem_name(name), stem, "{name}");
    }
}

/// Goal: with `beforeExtension` numbers and dates are found before the extension, and nowhere else. Method: names that such
/// rotations make, and neighbours; of each name its lane, of each lane its files.
#[test]
fn numbers_and_dates_before_the_extension_belong_to_their_stem() {
    let rule = RotationRule::BeforeExtension;
    for (name, stem) in [
        ("app.3.log", "app.log"),
        ("app.log", "app.log"),
        ("app.3.log.gz", "app.log"),
        ("app.log.3", "app.log.3"),
        ("app-20261117.log", "app.log"),
        ("app.2026-11-17.4.log.zst", "app.log"),
        ("day-2026-11-17.csv", "day.csv"),
        ("app.log.gz", "app.log.gz"),
        ("2026-11-17.jsonl", "2026-11-17.jsonl"),
        ("app-7.log", "app-7.log"),
        ("app.20261117", "app.20261117"),
        (".1.log", ".1.log"),
    ] {
        assert_eq!(rule.stem_of(name), stem, "{name}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let names = [
        "app.log",
        "app.1.log",
        "app.10.log.gz",
        "app.2.log",
        "app.2.log.gz",
        "app.log.1",
        "app.1.logs",
        "apps.1.log",
        "app.x.log",
    ];
    for name in names {
        fs::write(folder.path().join(name), name).expect("written");
    }
    let stem = Stem { folder: folder.path().to_path_buf(), name: "app.log".into() };
    let listed: Vec<String> = stem.list(rule).expect("listed").into_iter().map(|member| member.name).collect();
    assert_eq!(listed, ["app.10.log.gz", "app.2.log", "app.1.log", "app.log"]);
    let grouped = group_by_stem(folder.path(), &BTreeSet::from(["app.log".to_owned()]), rule).expect("grouped");
    let grouped: Vec<&str> = grouped["app.log"].iter().map(|member| member.name.as_str()).collect();
    assert_eq!(grouped, listed);
    let members = stem.list(rule).expect("listed");
    let missing = "app.9.log, between app.10.log.gz and app.log";
    assert_eq!(decide_successor(&members, 0, |_| false), Successor::Missing(missing.into()));
    assert!(rule.names_of("day.csv").contains(&"day-2026-01-01.csv".to_owned()));
}

/// Goal: in the order of names bytes decide, archives stand where their originals stood, and times say nothing. Method: a folder
/// whose files were written in another order; then what follows each, also where one file has two names.
#[test]
fn names_are_in_the_order_of_their_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in
        ["b-9.csv", "b-10.csv.gz", "b-Z.csv", "b-2.csv", "b-2.csv.gz", "b-é.csv", "c-1.csv", "b-1.txt", "b-*.csv"]
    {
        std::fs::write(folder.path().join(name), name).expect("written");
    }
    let stem = Stem::of(&folder.path().join("b-*.csv"), RotationRule::ByName).expect("a folder");
    let listing = stem.list(RotationRule::ByName).expect("a listing");
    let names: Vec<&str> = listing.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["b-*.csv", "b-10.csv.gz", "b-2.csv", "b-9.csv", "b-Z.csv", "b-é.csv"]);
    assert_eq!(contradiction_among(&listing), None);
    for at in 0..listing.len() {
        let follows = match decide_successor(&listing, at, |_| false) {
            Successor::Next { member, passed } => Some((member, passed.len())),
            Successor::None => None,
            other @ (Successor::Missing(_) | Successor::Contradiction(_)) => panic!("{other:?}"),
        };
        assert_eq!(follows, listing.get(at + 1).map(|next| (next.clone(), 0)));
    }
    let mut twice = listing.clone();
    twice[3].identity = listing[2].identity.clone();
    let Successor::Contradiction(what) = decide_successor(&twice, 2, |_| false) else { panic!("one file is two") };
    assert!(what.contains("b-2.csv") && what.contains("b-9.csv"), "{what}");
}

/// Goal: who has forgotten files says that it may be that. Method: facts that are full, and facts that are not.
#[test]
fn a_file_that_may_be_forgotten_is_not_only_called_unread() {
    use super::super::facts::{Facts, READ_MAX, ReadMember};
    use super::super::recognise::never_read;
    let (older, current) = (member("a.2", "a", 5, 20), member("a.1", "a", 5, 10));
    let mut facts = Facts::default();
    assert_eq!(never_read(&older, &current, &facts), "a.2 lies before a.1 in its chain, and was never read");
    facts.read = vec![ReadMember::passed(&current); READ_MAX];
    assert!(never_read(&older, &current, &facts).contains("the last 1000 files"));
}

/// Goal: a file belongs to the lane that its name says: none is met by a pattern and then left out. Method: names made of all
/// the parts that mean something, under each rule.
#[test]
fn every_name_has_its_place_in_its_own_lane() {
    let parts = ["app", "log", "1", "22", "20261117", "2026-11-17", "T10", ".", "-", "_", ".gz", ".zst", "Z", ":", "é"];
    let mut random = fastrand::Rng::with_seed(7);
    let mut placed = 0;
    for _ in 0..20_000 {
        let name: String = (0..random.usize(1..7)).map(|_| parts[random.usize(..parts.len())]).collect();
        for rule in [RotationRule::Suffixes, RotationRule::BeforeExtension, RotationRule::None, RotationRule::Replaced]
        {
            let stem = rule.stem_of(&name);
            let place = rule.place_of(&name, &stem);
            assert!(place.is_some(), "{name:?} is of the lane {stem:?} under {rule:?}, and no file of it");
            placed += usize::from(place != Some((Suffix::Live, false)));
        }
    }
    assert!(placed > 500, "{placed} names had something that a rotation adds");
}

/// Goal: the file that follows is the next younger one, and no other. Method: chains with each shape of trouble.
#[test]
fn the_next_younger_file_follows() {
    let three =
        [member("a.3", "a", 5, 30), member("a.2", "a", 5, 20), member("a.1", "a", 5, 10), member("a", "a", 5, 0)];
    let next = |members: &[Member], at: usize| decide_successor(members, at, |_| false);
    let named = |successor: Successor| match successor {
        Successor::Next { member, passed } => (member.name, passed.len()),
        other @ (Successor::None | Successor::Missing(_) | Successor::Contradiction(_)) => panic!("{other:?}"),
    };
    assert_eq!(named(next(&three, 0)), ("a.2".into(), 0));
    assert_eq!(named(next(&three, 2)), ("a".into(), 0));
    assert_eq!(next(&three, 3), Successor::None);
    let known = decide_successor(&three, 0, |member| member.name == "a.2");
    assert_eq!(named(known), ("a.1".into(), 0), "what was read is passed");
    let gap = [three[0].clone(), three[2].clone(), three[3].clone()];
    assert!(matches!(next(&gap, 0), Successor::Missing(what) if what.contains("a.2")));
    let empty = [three[1].clone(), member("a.1", "a", 0, 10), member("a", "a", 0, 0)];
    assert_eq!(next(&empty, 0), Successor::None, "an empty live file is none yet");
    let passed = [three[1].clone(), member("a.1", "a", 0, 10), member("a", "a", 1, 0)];
    assert_eq!(named(next(&passed, 0)), ("a".into(), 1), "an empty rotated one is passed");
    let mixed = [member("a.1", "a", 5, 9), member("a-20261117", "a", 5, 5), three[3].clone()];
    assert!(matches!(next(&mixed, 0), Successor::Contradiction(what) if what.contains("two kinds")));
    let turned = [member("a.3", "a", 5, 30), member("a.2", "a", 5, 1), member("a.1", "a", 5, 10), three[3].clone()];
    assert!(matches!(next(&turned, 0), Successor::Contradiction(what) if what.contains("written to later")));
    let after = [member("a.2", "a", 5, 5), member("a.1", "a", 5, 10), three[3].clone()];
    assert!(matches!(next(&after, 0), Successor::Contradiction(what) if what.contains("a.2 is older than a.1")));
    let packed = [member("a.2.gz", "a", 5, 5), member("a.1", "a", 5, 10), three[3].clone()];
    assert_eq!(named(next(&packed, 0)), ("a.1".into(), 0), "it may have been compressed since");
}

/// Goal: a lane behind a link lies where the link leads. Method: a link into another folder.
#[test]
fn a_link_is_followed_to_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("pods")).expect("a folder");
    fs::write(folder.path().join("pods/0.log"), "x").expect("written");
    std::os::unix::fs::symlink(folder.path().join("pods/0.log"), folder.path().join("app.log")).expect("a link");
    let stem = Stem::of(&folder.path().join("app.log"), RotationRule::Suffixes).expect("found");
    assert_eq!((stem.name.as_str(), stem.folder.ends_with("pods")), ("0.log", true));
    assert_eq!(Stem::of(&folder.path().join("none.log"), RotationRule::Suffixes).expect("a name").name, "none.log");
}

/// Goal: a name says which archive a file may have become. Method: numbers that rise and fall, dates, the lane's own name, kinds that
/// do not go together, and a name that nobody kept.
#[test]
fn a_name_says_which_archive_a_file_may_have_become() {
    let cases = [
        ("app.log", "app.log.1.gz", true),
        ("app.log", "app.log-20261117.gz", true),
        ("app.log.2", "app.log.2.gz", true),
        ("app.log.2", "app.log.3.gz", true),
        ("app.log.2", "app.log.1.gz", false),
        ("app.log.2", "app.log-20261117.gz", false),
        ("app.log-20261117", "app.log-20261117.gz", true),
        ("app.log-20261117", "app.log-20261118.gz", false),
        ("", "app.log.1.gz", true),
    ];
    for (was, now, may) in cases {
        let now = member(now, "app.log", 1, 0);
        assert_eq!(may_have_become(RotationRule::Suffixes, "app.log", was, &now), may, "{was} {}", now.name);
    }
    let named = |name: &str| Member { suffix: Suffix::Name(name.into()), ..member("app.log.1.gz", "app.log", 1, 0) };
    assert!(may_have_become(RotationRule::ByName, "b-*", "b-1", &named("b-1")));
    assert!(!may_have_become(RotationRule::ByName, "b-*", "b-1", &named("b-2")));
}
