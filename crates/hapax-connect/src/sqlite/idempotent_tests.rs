use hapax_engine::sink::IdempotentSink as _;

use super::super::rig::File;
use super::super::sample::{Place, bare};
use super::*;
use crate::table::contract::clauses;

clauses!(idempotent, File:
    writing_twice_leaves_what_writing_once_leaves,
    a_replayed_batch_leaves_the_same_rows,
    refused_rows_are_returned,
    too_many_refused_rows_leave_nothing_behind,
    a_row_is_judged_whoever_takes_its_place,
    the_target_gets_nothing_of_ours(
        "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"
    ),
    the_key_follows_from_the_mode,
    a_changed_schema_is_healed_or_named,
);

/// Goal: a file without our marker is known by where it is. Method: the identity of a table in it.
#[tokio::test]
async fn a_foreign_file_is_known_by_its_path() {
    let place = Place::new();
    bare(&place.path()).execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY)").unwrap();
    let mut sink = SqliteIdempotentSink::new(SqliteSinkConfig::new(place.path(), "t"), DedupStrategy::SourceOffset);
    let identity = sink.inspect().await.unwrap();
    assert!(identity.0.ends_with("a.db:t"), "{identity:?}");
}
