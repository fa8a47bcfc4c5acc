use super::super::rig::{SLEEPY, Server, end_the_sleeper};
use crate::table::contract::{self, clauses};
use crate::table::rig::Database as _;

clauses!(idempotent, Server:
    writing_twice_leaves_what_writing_once_leaves,
    a_replayed_batch_leaves_the_same_rows,
    refused_rows_are_returned,
    too_many_refused_rows_leave_nothing_behind,
    a_row_is_judged_whoever_takes_its_place,
    the_target_gets_nothing_of_ours(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"
    ),
    the_key_follows_from_the_mode,
    a_changed_schema_is_healed_or_named,
);

/// Goal: an upsert whose session is ended is repeated by the same sink. Method: the clause of all servers.
#[tokio::test(flavor = "multi_thread")]
async fn an_upsert_whose_session_was_ended_is_repeated() {
    let database = Server::foreign(SLEEPY).await;
    let ending = end_the_sleeper(database.place.bare().await);
    contract::idempotent::an_upsert_whose_session_was_ended_is_repeated(database, ending).await;
}
