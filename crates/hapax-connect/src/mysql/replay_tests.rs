use super::super::rig::Server;
use crate::table::contract::clauses;

clauses!(replay, Server:
    a_replay_writes_and_marks_in_one,
    a_letter_refused_again_stays_dead_with_the_new_reason(
        "CREATE TRIGGER not_two BEFORE INSERT ON t FOR EACH ROW IF NEW.id = 2 THEN SIGNAL SQLSTATE '45000' \
         SET MESSAGE_TEXT = 'not_two'; END IF",
        "HX2036"
    ),
    two_replays_at_once_write_once,
    a_replayed_letter_keeps_its_place_in_the_lane,
    a_discarded_letter_is_gone,
    only_letters_without_a_row_are_replayed,
);
