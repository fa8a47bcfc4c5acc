use super::super::rig::Server;
use crate::table::contract::clauses;

clauses!(replay, Server:
    a_replay_writes_and_marks_in_one,
    a_letter_refused_again_stays_dead_with_the_new_reason(
        "ALTER TABLE t ADD CONSTRAINT not_two CHECK (id <> 2)",
        "HX2032"
    ),
    two_replays_at_once_write_once,
    a_replayed_letter_keeps_its_place_in_the_lane,
    a_discarded_letter_is_gone,
    only_letters_without_a_row_are_replayed,
);
