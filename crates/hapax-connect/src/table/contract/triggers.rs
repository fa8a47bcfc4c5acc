//! The clauses of a table whose triggers leave out rows without a word.

use hapax_model::mode::ConflictMode;

use crate::table::config::Deletes;
use crate::table::rig::{Database, Rig, by_id, strs};

/// What a trigger leaves out in [`a_row_that_a_trigger_leaves_out_is_a_dead_letter`], in the words of a database.
pub(crate) struct LeavingOut {
    /// The column types of `hapax_version` and `hapax_deleted`.
    pub(crate) version_and_deleted: [&'static str; 2],
    /// What follows the columns of `t`: triggers that leave out new rows with b = 13, updates to b = 14, whatever would become of a
    /// row with b = 15.
    pub(crate) rules: String,
    /// Makes the row with id 5 newer than any event.
    pub(crate) newest: &'static str,
}

/// Goal: a row that a trigger leaves out without a word is a dead letter in every mode, and one that had nothing to do is not.
/// Method: new rows, updates, deletes and tombstones that are left out, beside a key that is there, a newer row, a row that
/// is not there.
pub(crate) async fn a_row_that_a_trigger_leaves_out_is_a_dead_letter<D: Database>(words: LeavingOut) {
    let first = ["1:1", "2:13", "3:15", "4:1", "5:1"].map(|row| {
        let (id, b) = row.split_once(':').expect("id and b");
        format!(r#"{{"id":{id},"b":{b}}}"#)
    });
    let second = [
        r#"{"id":1,"b":14}"#,
        r#"{"id":4,"b":4}"#,
        r#"{"id":3,"op":"d"}"#,
        r#"{"id":5,"op":"d"}"#,
        r#"{"id":9,"op":"d"}"#,
        r#"{"id":6,"b":6}"#,
    ];
    let [version, deleted] = words.version_and_deleted;
    let columns = format!(", hapax_version {version}, hapax_deleted {deleted}");
    for (mode, extra, dead, left) in [
        (ConflictMode::Ignore, "", vec![], ["1 1", "3 15", "4 1", "5 1", "6 6"].as_slice()),
        (ConflictMode::Update, "", vec![0, 2], &["1 1", "3 15", "4 4", "6 6"]),
        (ConflictMode::Newer, &columns, vec![0, 2], &["1 1", "3 15", "4 4", "5 1", "6 6"]),
    ] {
        let ddl = format!("CREATE TABLE t (id int NOT NULL PRIMARY KEY, b int{extra}) {}", words.rules);
        let mut rig: Rig<D> = Rig::new(&ddl, |config| {
            by_id(D::table(config), mode);
            D::table(config).deletes = if mode == ConflictMode::Ignore { Deletes::Never } else { Deletes::Some };
        })
        .await;
        let done = rig.deliver(&strs(&first)).await;
        assert_eq!(done.dead_inputs, [1], "{mode:?}");
        if mode == ConflictMode::Newer {
            rig.run(words.newest).await;
        }
        let asked = second.iter().filter(|event| mode != ConflictMode::Ignore || !event.contains("op")).copied();
        let done = rig.deliver(&asked.collect::<Vec<_>>()).await;
        assert_eq!(done.dead_inputs, dead, "{mode:?}");
        let there = if mode == ConflictMode::Newer { "WHERE b IS NOT NULL" } else { "" };
        let rows = rig.texts(&format!("SELECT concat_ws(' ', id, b) FROM t {there} ORDER BY id")).await;
        assert_eq!(rows, left, "{mode:?}");
        let totals = done.progress.totals;
        assert!(totals.adds_up() && totals.dead == 1 + dead.len() as u64, "{mode:?}: {totals:?}");
    }
}
