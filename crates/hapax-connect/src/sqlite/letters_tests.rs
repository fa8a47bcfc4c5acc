use hapax_model::epoch::{Epoch, Generation};
use hapax_model::letter::{Letter, Stage};
use hapax_model::position::{Incarnation, Position};

use super::super::progress::insert_letters;
use super::super::sample::{Place, id, letter};
use super::*;

fn write(connection: &Connection, workflow: &str, letters: &[Letter]) {
    let incarnation = Incarnation::new(2, "inode 7");
    insert_letters(connection, &id(workflow), Generation(1), Epoch(5), &incarnation, letters).unwrap();
}

fn of(workflow: &str) -> LetterChoice {
    LetterChoice { workflow: Some(workflow.into()), ..LetterChoice::default() }
}

/// Goal: a letter reads back as it was written, cut or whole. Method: both kinds, byte for byte.
#[test]
fn a_letter_survives_its_store() {
    let place = Place::new();
    let connection = place.connect();
    let cut = LetterBytes::Cut { head: vec![1, 2], length: 99, sha256: [7; 32] };
    let second = Letter { bytes: cut.clone(), event_key: Some("h1_x".into()), ..letter(4, "b") };
    write(&connection, "w", &[letter(3, "a"), second]);
    let found = list(&connection, &LetterChoice::default(), 0, 10).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].id, &found[0].delivery, found[0].epoch), (1, &id("w"), 5));
    assert_eq!((found[0].position, found[0].incarnation.as_str()), (Position::at(3), "2:inode 7"));
    assert_eq!((found[0].stage.as_str(), found[0].code.as_str()), ("decode", "HX2001"));
    assert_eq!((found[0].message.as_str(), found[0].fingerprint.as_str()), ("a at 3", "a"));
    assert_eq!(found[0].bytes, LetterBytes::Whole(vec![0xff, 0, b'x']));
    assert_eq!((found[0].state.as_str(), found[0].event_key.as_deref()), ("dead", None));
    assert_eq!((&found[1].bytes, found[1].event_key.as_deref()), (&cut, Some("h1_x")));
}

/// Goal: every part of a choice narrows it, and pages do not overlap. Method: two workflows, two causes.
#[test]
fn a_choice_means_what_it_says() {
    let place = Place::new();
    let connection = place.connect();
    write(&connection, "a", &[letter(1, "bad json"), letter(2, "bad key"), letter(3, "bad json")]);
    write(&connection, "b", &[letter(4, "50% off"), letter(5, "bad json")]);
    let ids = |choice: &LetterChoice, after, limit| -> Vec<i64> {
        list(&connection, choice, after, limit).unwrap().into_iter().map(|letter| letter.id).collect()
    };
    let cause = |cause: &str| LetterChoice { cause: Some(cause.into()), ..LetterChoice::default() };
    assert_eq!(ids(&LetterChoice::default(), 0, 100), [1, 2, 3, 4, 5]);
    assert_eq!(ids(&LetterChoice::default(), 2, 2), [3, 4]);
    assert_eq!(ids(&of("a"), 0, 100), [1, 2, 3]);
    assert_eq!(ids(&cause("bad"), 0, 100), [1, 2, 3, 5]);
    assert_eq!(ids(&cause("%"), 0, 100), [0; 0]);
    assert_eq!(ids(&LetterChoice { sink: Some("other".into()), ..of("a") }, 0, 100), [0; 0]);
    assert_eq!(ids(&LetterChoice { ids: vec![5, 2, 77], ..LetterChoice::default() }, 0, 100), [2, 5]);
    assert_eq!(discard(&connection, &[2, 3, 77]).unwrap(), 2);
    assert_eq!(discard(&connection, &[2, 1]).unwrap(), 1);
    assert_eq!(ids(&LetterChoice::default(), 0, 100), [4, 5]);
    let shown = list(&connection, &LetterChoice { ids: vec![2], ..LetterChoice::default() }, 0, 9).unwrap();
    assert_eq!(shown[0].state, "discarded");
    let place = LetterChoice { position: Some(Position::at(2)), ..of("a") };
    assert_eq!((ids(&place, 0, 9), ids(&LetterChoice { lane: Some("x".into()), ..place }, 0, 9)), (vec![2], vec![]));
    connection.execute_batch("UPDATE hapax_dead_letters SET event_key = 'k' || id").unwrap();
    assert_eq!(ids(&LetterChoice { event_key: Some("k3".into()), ..LetterChoice::default() }, 0, 9), [3]);
}

/// Goal: letters are grouped by cause, counted, the largest first. Method: three causes of different size.
#[test]
fn letters_are_grouped_by_cause() {
    let place = Place::new();
    let connection = place.connect();
    write(&connection, "a", &[letter(1, "x"), letter(2, "y"), letter(3, "y")]);
    connection.execute_batch("UPDATE hapax_dead_letters SET written_at_ms = id * 100").unwrap();
    let found = causes(&connection, &LetterChoice::default(), 0).unwrap();
    let expected = LetterGroup {
        fingerprint: "y".into(),
        code: "HX2001".into(),
        stage: "decode".into(),
        count: 2,
        first_at_ms: 200,
        last_at_ms: 300,
        first_id: 2,
        last_id: 3,
        example: "y at 2".into(),
    };
    assert_eq!(found[0], expected);
    assert_eq!((found[1].count, found[1].example.as_str()), (1, "x at 1"));
    let since = causes(&connection, &LetterChoice::default(), 2).unwrap();
    assert_eq!((since.len(), since[0].count, since[0].first_id), (1, 1, 3));
    assert_eq!(causes(&connection, &of("b"), 0).unwrap(), []);
}

/// Goal: of two who want one letter, one gets it. Method: mark as replayed, then discard, then count.
#[test]
fn a_letter_leaves_the_dead_only_once() {
    let place = Place::new();
    let connection = place.connect();
    write(&connection, "a", &[letter(1, "x"), letter(2, "x"), letter(3, "x")]);
    assert_eq!(still_dead(&connection, &[3, 1, 9]).unwrap(), [1, 3]);
    assert_eq!(mark_replayed(&connection, &[1, 3]).unwrap(), 2);
    assert_eq!(mark_replayed(&connection, &[1]).unwrap(), 0);
    assert_eq!(discard(&connection, &[1, 2]).unwrap(), 1);
    assert_eq!(still_dead(&connection, &[1, 2, 3]).unwrap(), [0; 0]);
    assert_eq!(counts(&connection, &id("a")).unwrap(), LetterCounts { dead: 0, replayed: 2, discarded: 1 });
    assert_eq!(counts(&connection, &id("b")).unwrap(), LetterCounts::default());
}

/// Goal: a letter is taken in doubt once, keeps what it said before, and is judged by what became of it. Method: take two, again
/// with a third, then mark one and refuse the other.
#[test]
fn a_letter_is_taken_in_doubt_once() {
    let place = Place::new();
    let connection = place.connect();
    write(&connection, "a", &[letter(1, "x"), letter(2, "x"), letter(3, "x"), letter(4, "x")]);
    discard(&connection, &[4]).unwrap();
    assert_eq!(take_in_doubt(&connection, &[2, 1, 4]).unwrap(), [1, 2]);
    assert_eq!(take_in_doubt(&connection, &[1, 2, 3]).unwrap(), [3], "of two replays one has it");
    let found = list(&connection, &of("a"), 0, 9).unwrap();
    assert!(found.iter().all(StoredLetter::is_in_doubt) && found.len() == 3, "{found:?}");
    let message = &found[0].message;
    assert!(message.contains("a replay") && message.ends_with("HX2001: x at 1"), "{message}");
    let cause = Cause { stage: Stage::Write, code: "HX2050", message: "no".into(), fingerprint: "no".into() };
    assert_eq!(mark_written(&connection, &[1], &BTreeMap::from([(2, cause)])).unwrap(), 1);
    let found = list(&connection, &LetterChoice { ids: vec![1, 2, 3], ..of("a") }, 0, 9).unwrap();
    let said: Vec<(&str, &str)> = found.iter().map(|letter| (letter.state.as_str(), letter.code.as_str())).collect();
    assert_eq!(said, [("replayed", "HX2040"), ("dead", "HX2050"), ("dead", "HX2040")]);
}
