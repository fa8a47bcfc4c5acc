use hapax_engine::books::NO_DELIVERY;
use hapax_model::position::Position;

use super::super::letters;
use super::super::sample::{Place, contract, id, letter, next, take};
use super::*;
use crate::sqlite::progress::{claim, insert_letters, log_epoch, look, swap};

/// One whole epoch with a dead letter.
fn commit(connection: &Connection, id: &DeliveryId, was: &Progress) -> Progress {
    let record = next(was);
    let now = swap(connection, id, was, &record).unwrap();
    let letters = [letter(3, "x")];
    insert_letters(connection, id, was.generation, record.epoch, &record.from.incarnation, &letters).unwrap();
    log_epoch(connection, id, was.generation, &record, record.counts).unwrap();
    now
}

fn code(result: Result<impl std::fmt::Debug, SinkError>) -> &'static str {
    result.unwrap_err().code()
}

/// Goal: a reset moves the position, keeps epoch and totals, and fences the worker. Method: reset under a worker.
#[test]
fn a_reset_fences_the_worker_and_keeps_the_books() {
    let place = Place::new();
    let (worker, person) = (place.connect(), place.connect());
    let was = claim(&worker, &id("w"), &take(0)).unwrap();
    let was = commit(&worker, &id("w"), &was);
    let to = Bookmark::new(was.bookmark.incarnation.next("inode 8"), Position::at(3));
    let now = reset(&person, &id("w"), &to, None).unwrap();
    assert_eq!((now.epoch, now.totals, &now.bookmark), (was.epoch, was.totals, &to));
    assert_eq!((now.generation, &now.contract), (Generation(2), &contract()));
    assert!(now.session.starts_with("reset by pid "));
    assert!(matches!(swap(&worker, &id("w"), &was, &next(&was)), Err(SinkError::FencedOut { .. })));
    let again = claim(&worker, &id("w"), &take(0)).unwrap();
    assert_eq!((again.generation, &again.bookmark), (Generation(3), &to));
}

/// Goal: a person can accept a changed contract, or start a delivery where they like. Method: both.
#[test]
fn a_reset_with_a_contract_accepts_it() {
    let place = Place::new();
    let connection = place.connect();
    let to = Bookmark::at("inode 7", 42);
    assert_eq!(code(reset(&connection, &id("w"), &to, None)), NO_DELIVERY);
    let other = contract().with("mode", "append");
    let made = reset(&connection, &id("w"), &to, Some(&other)).unwrap();
    assert_eq!((made.generation, made.epoch, &made.contract), (Generation(1), Epoch(0), &other));
    let accepted = reset(&connection, &id("w"), &to, Some(&contract())).unwrap();
    assert_eq!(accepted.contract, contract());
    assert_eq!(claim(&connection, &id("w"), &take(0)).unwrap().bookmark, to);
}

/// Goal: adopting moves all that a workflow has and fences its old name for good, even a claim of it.
/// Method: adopt under a live worker, which then swaps, reclaims and claims again.
#[test]
fn adopting_fences_the_old_name() {
    let place = Place::new();
    let (worker, person) = (place.connect(), place.connect());
    let was = claim(&worker, &id("old"), &take(0)).unwrap();
    let was = commit(&worker, &id("old"), &was);
    let other_lane = DeliveryId { lane: "second".into(), ..id("old") };
    let other_sink = DeliveryId { sink: "other".into(), ..id("old") };
    claim(&worker, &other_lane, &take(7)).unwrap();
    claim(&worker, &other_sink, &take(0)).unwrap();

    assert_eq!(adopt(&person, "old", "new", "sqlite").unwrap(), 2);

    assert!(matches!(swap(&worker, &id("old"), &was, &next(&was)), Err(SinkError::FencedOut { .. })));
    let error = claim(&worker, &id("old"), &take(0)).unwrap_err();
    assert!(matches!(error, SinkError::FencedOut { .. }) && error.to_string().contains("\"new\""), "{error}");
    assert_eq!(look(&worker, &id("old")).unwrap(), None);
    let now = look(&person, &id("new")).unwrap().unwrap();
    assert_eq!((now.epoch, &now.bookmark, now.totals), (was.epoch, &was.bookmark, was.totals));
    assert_eq!(now.generation, Generation(2));
    assert_eq!(letters::counts(&person, &id("new")).unwrap().dead, 1);
    assert_eq!(recent_epochs(&person, &id("new"), 9).unwrap().len(), 1);
    assert_eq!(recent_epochs(&person, &id("old"), 9).unwrap(), []);
    assert!(look(&person, &other_sink).unwrap().is_some(), "another sink stays");
    let owner = claim(&person, &id("new"), &take(0)).unwrap();
    commit(&person, &id("new"), &owner);

    assert_eq!(adopt(&person, "new", "old", "sqlite").unwrap(), 2);
    assert_eq!(claim(&worker, &id("old"), &take(0)).unwrap().epoch, Epoch(2));
}

/// Goal: adopting never overwrites progress, and says when there is nothing. Method: both.
#[test]
fn adopting_refuses_a_clash() {
    let place = Place::new();
    let connection = place.connect();
    assert_eq!(code(adopt(&connection, "old", "new", "sqlite")), NO_DELIVERY);
    claim(&connection, &id("old"), &take(0)).unwrap();
    claim(&connection, &id("new"), &take(5)).unwrap();
    assert_eq!(code(adopt(&connection, "old", "new", "sqlite")), "HX4191");
    assert_eq!(deliveries(&connection).unwrap().len(), 2);
    assert_eq!(look(&connection, &id("new")).unwrap().unwrap().bookmark.position.offset, 5);
}

/// Goal: lanes become one: their epochs follow one another, nothing is counted twice, letters and log have the new name and numbers
/// of their own, and the old names are fenced. Method: two lanes with an epoch each, under a live worker; then back to one name.
#[test]
fn lanes_become_one() {
    let place = Place::new();
    let (worker, person) = (place.connect(), place.connect());
    let lane = |name: &str| DeliveryId { lane: name.into(), ..id("w") };
    let first = claim(&worker, &lane("a.1"), &take(0)).unwrap();
    commit(&worker, &lane("a.1"), &first);
    let second = claim(&worker, &lane("a"), &take(0)).unwrap();
    let second = commit(&worker, &lane("a"), &second);
    let old = [lane("a.1"), lane("a")];
    let to = Bookmark::new(second.bookmark.incarnation.next("inode 8"), Position::at(9));
    let clash = adopt_lanes(&person, &old[..1], &lane("a"), &to, None, OldNames::Fenced);
    assert_eq!(code(clash), "HX4191");
    let missing = adopt_lanes(&person, &[lane("nobody")], &lane("new"), &to, None, OldNames::Fenced);
    assert_eq!(code(missing), NO_DELIVERY);

    let now = adopt_lanes(&person, &old, &lane("a"), &to, None, OldNames::Fenced).unwrap();

    assert_eq!((now.epoch, now.generation, &now.bookmark), (Epoch(2), Generation(4), &to));
    assert_eq!(now.totals, second.totals.plus(second.totals));
    assert!(matches!(swap(&worker, &lane("a"), &second, &next(&second)), Err(SinkError::FencedOut { .. })));
    let error = claim(&worker, &lane("a.1"), &take(0)).unwrap_err();
    assert!(matches!(error, SinkError::FencedOut { .. }) && error.to_string().contains("\"a.1\""), "{error}");
    assert_eq!(letters::counts(&person, &lane("a")).unwrap().dead, 2);
    let log: Vec<(u64, u64, u32)> = recent_epochs(&person, &lane("a"), 9)
        .unwrap()
        .iter()
        .map(|logged| (logged.epoch.0, logged.generation.0, logged.to.incarnation.number))
        .collect();
    assert_eq!(log, [(2, 3, 2), (1, 1, 1)]);

    let moved = adopt_lanes(&person, &[lane("a")], &lane("a.1"), &to, Some(&contract()), OldNames::Free).unwrap();
    assert_eq!((moved.epoch, moved.totals, moved.generation), (now.epoch, now.totals, Generation(5)));
    assert_eq!(claim(&worker, &lane("a.1"), &take(0)).unwrap().bookmark, to);
}

/// Goal: an adopted name can be used again when a person says so. Method: reset with a contract, and forget.
#[test]
fn a_person_can_use_an_adopted_name_again() {
    let place = Place::new();
    let connection = place.connect();
    claim(&connection, &id("old"), &take(0)).unwrap();
    adopt(&connection, "old", "new", "sqlite").unwrap();
    assert_eq!(forget(&connection, &id("old")).unwrap(), Forgotten::Nothing);
    claim(&connection, &id("old"), &take(0)).unwrap();
}

/// Goal: forgetting takes all of one delivery and nothing of another. Method: two deliveries.
#[test]
fn forgetting_takes_one_delivery_whole() {
    let place = Place::new();
    let connection = place.connect();
    for workflow in ["a", "b"] {
        let was = claim(&connection, &id(workflow), &take(0)).unwrap();
        commit(&connection, &id(workflow), &was);
    }
    assert_eq!(forget(&connection, &id("a")).unwrap(), Forgotten::Progress);
    assert_eq!(look(&connection, &id("a")).unwrap(), None);
    assert_eq!(recent_epochs(&connection, &id("a"), 9).unwrap(), []);
    assert_eq!(letters::counts(&connection, &id("a")).unwrap().dead, 0);
    assert_eq!(letters::counts(&connection, &id("b")).unwrap().dead, 1);
    let found = deliveries(&connection).unwrap().remove(0);
    assert_eq!((found.id, found.progress.epoch), (id("b"), Epoch(1)));
    assert!(found.updated_at_ms > 0);
}

/// Goal: the epoch log answers "did it arrive", newest first. Method: three epochs, a limit of two.
#[test]
fn the_last_epochs_are_listed_newest_first() {
    let place = Place::new();
    let connection = place.connect();
    let mut was = claim(&connection, &id("w"), &take(0)).unwrap();
    for _ in 0..3 {
        was = commit(&connection, &id("w"), &was);
    }
    let found = recent_epochs(&connection, &id("w"), 2).unwrap();
    assert_eq!(found.iter().map(|epoch| epoch.epoch).collect::<Vec<_>>(), [Epoch(3), Epoch(2)]);
    assert_eq!((found[0].from, found[0].to.clone()), (Position::at(20), was.bookmark));
    assert_eq!((found[0].counts, found[0].opened_at_ms, found[0].closed_at_ms), (next_counts(), 1, 2));
    assert!(found[0].committed_at_ms > 0);
}

fn next_counts() -> Totals {
    Totals { read: 10, delivered: 8, filtered: 1, dead: 1, rows: 16 }
}
