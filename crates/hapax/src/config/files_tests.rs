use super::*;
use crate::config::load;
use crate::config::tests::World;

/// The problems of the configuration at `path`, as line, code and text.
fn problems_at(world: &World, path: &str) -> Vec<(String, usize, &'static str, String)> {
    let problems = world.load(path).err().unwrap_or_default();
    problems.iter().map(|it| (it.place.file.to_string(), it.place.line, it.code, it.to_string())).collect()
}

/// Goal: a folder is one configuration. Method: three files and some that are none, workflows in order of names.
#[test]
fn the_files_of_a_folder_are_one_configuration() {
    let world = World::default()
        .with("conf/b.yaml", "workflows: [{ id: b }]\ndelivery: { lease: 9s }\n")
        .with("conf/a.yml", "workflows: [{ id: a1 }, { id: a2, source: { file: { path: x } } }]\n")
        .with("conf/c.yaml", "# nothing yet\n")
        .with("conf/.hidden.yaml", "no: 1\n")
        .with("conf/notes.txt", "no");
    let loaded = world.load("conf").expect("a configuration");
    let ids: Vec<_> = loaded.config.workflows.iter().map(|workflow| workflow.id.as_str()).collect();
    assert_eq!(ids, ["a1", "a2", "b"]);
    assert!(loaded.config.workflows.iter().all(|workflow| workflow.delivery.lease.as_secs() == 9));
    let Some(crate::config::checked::Source::File(file)) = &loaded.config.workflows[1].source else { panic!("a file") };
    assert_eq!(file.path, Path::new("conf/x"));
}

/// Goal: files that contradict each other are told with both places. Method: an id, a field, a wrong type twice.
#[test]
fn files_that_contradict_each_other_are_told_with_both_places() {
    let world = World::default()
        .with("conf/a.yaml", "memory: 64MiB\nworkflows: [{ id: w }]\n")
        .with("conf/b.yaml", "memory: 32MiB\nworkflows:\n  - id: w\n")
        .with("conf/c.yaml", "workflows: none\n");
    let told = problems_at(&world, "conf");
    let short: Vec<_> = told.iter().map(|(file, line, code, _)| (file.as_str(), *line, *code)).collect();
    assert_eq!(short, [("conf/b.yaml", 1, "HX1032"), ("conf/b.yaml", 3, "HX1030"), ("conf/c.yaml", 1, "HX1011")]);
    assert!(told[0].3.contains("already set at conf/a.yaml:1:1") && told[0].3.contains("keep one"), "{}", told[0].3);
    assert!(told[1].3.contains("already at conf/a.yaml:2:19"), "{}", told[1].3);
}

/// Goal: a file that is not there, is empty, too large or no text is told. Method: each.
#[test]
fn what_cannot_be_read_is_told() {
    let large = "#".repeat(yaml::LARGEST_FILE + 1);
    let mut world =
        World::of("").with("conf/notes.txt", "").with("large.yaml", &large).with("text.yaml", "just words\n");
    world.files.insert("bytes.yaml".into(), b"a: 1\nb: \xff\n".to_vec());
    for (path, line, code, part) in [
        ("nowhere.yaml", 0, "HX1001", "--config"),
        ("conf", 0, "HX1001", "hapax.yaml"),
        ("etc/hapax.yaml", 0, "HX1015", "workflows:"),
        ("large.yaml", 0, "HX1002", "split it"),
        ("bytes.yaml", 2, "HX1007", "UTF-8"),
        ("text.yaml", 1, "HX1006", "workflows:"),
    ] {
        let told = problems_at(&world, path);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((told[0].1, told[0].2), (line, code), "{}", told[0].3);
        assert!(told[0].3.contains(part), "{}", told[0].3);
    }
}

/// A world in which everything is there and nothing may be read.
struct Forbidden;

impl Surroundings for Forbidden {
    fn variable(&self, _: &str) -> Option<OsString> {
        None
    }

    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn list(&self, _: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        Ok(None)
    }
}

/// Goal: a file that we may not read is told as such. Method: a world that forbids it.
#[test]
fn a_file_without_the_right_to_read_it_is_told() {
    let problems = load(Path::new("hapax.yaml"), &Forbidden).expect_err("forbidden");
    let expected = "hapax.yaml: HX1001 we may not read it\n    give the user that runs hapax the right to read it";
    assert_eq!(problems.to_string(), expected);
}

/// Goal: the real file system does what the tests' one does. Method: a file, a folder, one unreadable, one missing.
#[test]
fn real_files_and_folders_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hapax.yaml");
    std::fs::write(&file, "workflows:\n  - id: \"${file:id}\"\n").expect("written");
    std::fs::write(folder.path().join("id"), "from-a-file\n").expect("written");
    for path in [file.as_path(), folder.path()] {
        let loaded = load(path, &System).expect("a configuration");
        assert_eq!(loaded.config.workflows[0].id, "from-a-file");
        let state = crate::config::checked::StateUrl::Sqlite(folder.path().join("hapax-data/state.db"));
        assert_eq!(loaded.config.state, state);
    }
    let missing = load(&folder.path().join("nowhere.yaml"), &System).expect_err("no such file");
    assert_eq!(missing.iter().map(|it| it.code).collect::<Vec<_>>(), ["HX1001"]);
    assert_eq!(System.read(&file, 3).expect("bytes").len(), 4);
}
