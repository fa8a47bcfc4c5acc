use hapax_engine::sink::Written;

use super::*;
use crate::table::booked::book;

fn answer(affected: u64, info: &str, insert_id: u64) -> Outcome {
    Outcome { affected, info: info.to_owned(), insert_id, ..Outcome::default() }
}

/// Goal: created, overwritten and untouched rows are told apart. Method: the answers of a server, one row and several.
#[test]
fn an_answer_tells_what_became_of_the_rows() {
    use ConflictMode::{Append, Ignore, Newer, Update};
    // Two new, one changed, one as it was.
    let several = answer(5, "Records: 4  Duplicates: 2  Warnings: 0", 0);
    let was = answer(1, "", WAS_THERE);
    for (mode, outcome, sent, expected) in [
        (Update, &several, 4, (4, 2)),
        (Ignore, &several, 4, (2, 2)),
        (Newer, &several, 4, (3, 2)),
        (Append, &answer(4, "Records: 4  Duplicates: 0  Warnings: 0", 0), 4, (4, 4)),
        (Update, &answer(1, "", 0), 1, (1, 1)),
        (Update, &was, 1, (1, 0)),
        (Update, &answer(2, "", WAS_THERE), 1, (1, 0)),
        (Ignore, &was, 1, (0, 0)),
        (Ignore, &answer(1, "", 17), 1, (1, 1)),
        (Newer, &was, 1, (0, 0)),
        (Newer, &answer(2, "", WAS_THERE), 1, (1, 0)),
    ] {
        let done = done(RowKind::Upsert, mode, sent, outcome);
        assert_eq!((done.changed, done.created), expected, "{mode:?} {outcome:?}");
    }
    let removed = done(RowKind::Delete, Update, 3, &answer(2, "", 0));
    assert_eq!((removed.changed, removed.sent), (2, 3));
}

/// Goal: a server that changed fewer rows than it was given is noticed. Method: one row missing.
#[test]
fn a_row_that_vanished_is_noticed() {
    let short = Done { kind: RowKind::Upsert, sent: 3, changed: 2, created: 2, idle: None };
    let mut written = Written::default();
    assert!(book(&mut written, ConflictMode::Append, "t", short).is_err());
    assert!(book(&mut written, ConflictMode::Update, "t", short).is_err());
    book(&mut written, ConflictMode::Ignore, "t", short).unwrap();
    assert_eq!((written.inserts, written.unchanged), (2, 1));
}
