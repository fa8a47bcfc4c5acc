use super::super::rig::Server;
use crate::table::contract::clauses;

clauses!(idempotent, Server:
    writing_twice_leaves_what_writing_once_leaves,
    a_replayed_batch_leaves_the_same_rows,
    refused_rows_are_returned,
    too_many_refused_rows_leave_nothing_behind,
    the_target_gets_nothing_of_ours(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND oid > 16384 \
         UNION SELECT nspname FROM pg_namespace WHERE nspname LIKE 'hapax%'"
    ),
    the_key_follows_from_the_mode,
    a_changed_schema_is_healed_or_named,
);
