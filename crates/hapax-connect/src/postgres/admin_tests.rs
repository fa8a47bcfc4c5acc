use hapax_engine::books::NO_DELIVERY;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::ledger::Totals;
use hapax_model::position::Position;

use super::super::letters::{self, insert_letters};
use super::super::progress::{claim, log_epoch, look, swap};
use super::super::sample::{Place, contract, id, letter, next, take};
use super::*;

/// One whole epoch with a dead letter.
async fn commit(session: &Session, id: &DeliveryId, was: &Progress) -> Progress {
    let record = next(was);
    let now = swap(session, id, was, &record).await.unwrap();
    let letters = [letter(3, "x")];
    insert_letters(session, id, was.generation, record.epoch, &record.from.incarnation, &letters).await.unwrap();
    log_epoch(session, id, was.generation, &record, record.counts).await.unwrap();
    now
}

fn code(result: Result<impl std::fmt::Debug, SinkError>) -> &'static str {
    result.unwrap_err().code()
}

async fn recent(session: &Session, id: &DeliveryId, limit: usize) -> Vec<LoggedEpoch> {
    recent_epochs(session, id, limit).await.unwrap()
}

/// Goal: a reset moves the position, keeps epoch and totals, and fences the worker. Method: reset under a worker.
#[tokio::test]
async fn a_reset_fences_the_worker_and_keeps_the_books() {
    let place = Place::new().await;
    let (worker, person) = place.connect_two().await;
    let was = claim(&worker, &id("w"), &take(0)).await.unwrap();
    let was = commit(&worker, &id("w"), &was).await;
    let to = Bookmark::new(was.bookmark.incarnation.next("inode 8"), Position::at(3));
    let now = reset(&person, &id("w"), &to, None).await.unwrap();
    assert_eq!((now.epoch, now.totals, &now.bookmark), (was.epoch, was.totals, &to));
    assert_eq!((now.generation, &now.contract), (Generation(2), &contract()));
    assert!(now.session.starts_with("reset by pid "));
    assert!(matches!(swap(&worker, &id("w"), &was, &next(&was)).await, Err(SinkError::FencedOut { .. })));
    let again = claim(&worker, &id("w"), &take(0)).await.unwrap();
    assert_eq!((again.generation, &again.bookmark), (Generation(3), &to));
}

/// Goal: a person can accept a changed contract, or start a delivery where they like. Method: both, and without tables.
#[tokio::test]
async fn a_reset_with_a_contract_accepts_it() {
    let place = Place::new().await;
    let to = Bookmark::at("inode 7", 42);
    assert_eq!(code(reset(&place.bare().await, &id("w"), &to, Some(&contract())).await), NO_DELIVERY);
    let session = place.connect().await;
    assert_eq!(code(reset(&session, &id("w"), &to, None).await), NO_DELIVERY);
    let other = contract().with("mode", "append");
    let made = reset(&session, &id("w"), &to, Some(&other)).await.unwrap();
    assert_eq!((made.generation, made.epoch, &made.contract), (Generation(1), Epoch(0), &other));
    let accepted = reset(&session, &id("w"), &to, Some(&contract())).await.unwrap();
    assert_eq!((accepted.contract, accepted.generation), (contract(), Generation(2)));
    assert_eq!(claim(&session, &id("w"), &take(0)).await.unwrap().bookmark, to);
}

/// Goal: adopting moves all that a workflow has and fences its old name for good, even a claim of it.
/// Method: adopt under a live worker, which then swaps, reclaims and claims again.
#[tokio::test]
async fn adopting_fences_the_old_name() {
    let place = Place::new().await;
    let (worker, person) = place.connect_two().await;
    let was = claim(&worker, &id("old"), &take(0)).await.unwrap();
    let was = commit(&worker, &id("old"), &was).await;
    let other_lane = DeliveryId { lane: "second".into(), ..id("old") };
    let other_sink = DeliveryId { sink: "other".into(), ..id("old") };
    claim(&worker, &other_lane, &take(7)).await.unwrap();
    claim(&worker, &other_sink, &take(0)).await.unwrap();

    assert_eq!(adopt(&person, "old", "new", "table").await.unwrap(), 2);

    assert!(matches!(swap(&worker, &id("old"), &was, &next(&was)).await, Err(SinkError::FencedOut { .. })));
    let error = claim(&worker, &id("old"), &take(0)).await.unwrap_err();
    assert!(matches!(error, SinkError::FencedOut { .. }) && error.to_string().contains("\"new\""), "{error}");
    assert_eq!(look(&worker, &id("old")).await.unwrap(), None);
    let now = look(&person, &id("new")).await.unwrap().unwrap();
    assert_eq!((now.epoch, &now.bookmark, now.totals), (was.epoch, &was.bookmark, was.totals));
    assert_eq!(now.generation, Generation(2));
    assert_eq!(letters::counts(&person, &id("new")).await.unwrap().dead, 1);
    assert_eq!(recent(&person, &id("new"), 9).await.len(), 1);
    assert_eq!(recent(&person, &id("old"), 9).await, []);
    assert!(look(&person, &other_sink).await.unwrap().is_some(), "another sink stays");
    let owner = claim(&person, &id("new"), &take(0)).await.unwrap();
    commit(&person, &id("new"), &owner).await;

    assert_eq!(adopt(&person, "new", "old", "table").await.unwrap(), 2);
    assert_eq!(claim(&worker, &id("old"), &take(0)).await.unwrap().epoch, Epoch(2));
}

/// Goal: adopting never overwrites progress, and says when there is nothing. Method: both, and without tables.
#[tokio::test]
async fn adopting_refuses_a_clash() {
    let place = Place::new().await;
    assert_eq!(code(adopt(&place.bare().await, "old", "new", "table").await), NO_DELIVERY);
    let session = place.connect().await;
    assert_eq!(code(adopt(&session, "old", "new", "table").await), NO_DELIVERY);
    claim(&session, &id("old"), &take(0)).await.unwrap();
    claim(&session, &id("new"), &take(5)).await.unwrap();
    assert_eq!(code(adopt(&session, "old", "new", "table").await), "HX4191");
    assert_eq!(deliveries(&session).await.unwrap().len(), 2);
    assert_eq!(look(&session, &id("new")).await.unwrap().unwrap().bookmark.position.offset, 5);
}

/// Goal: a first claim under the new name that comes between is a clash, not a fault of the database. Method: a claim
/// that is open while the adoption looks, and commits while it waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_comes_between_is_a_clash() {
    let place = Place::new().await;
    let (worker, person) = place.connect_two().await;
    claim(&worker, &id("old"), &take(0)).await.unwrap();
    worker.begin().await.unwrap();
    let sql = "INSERT INTO hapax.progress SELECT 'new', sink, lane, 1, epoch, position, incarnation, contract, \
               snapshot, session, read, delivered, filtered, dead, rows, updated_at_ms FROM hapax.progress";
    worker.client().batch_execute(sql).await.unwrap();
    let adopting = tokio::spawn(async move { adopt(&person, "old", "new", "table").await });
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    assert!(!adopting.is_finished(), "the adoption waits");
    ask::end(&worker, During::Look, Ok(())).await.unwrap();
    assert_eq!(code(adopting.await.unwrap()), "HX4191");
    assert_eq!(deliveries(&worker).await.unwrap().len(), 2);
}

/// Goal: lanes become one: their epochs follow one another, nothing is counted twice, letters and log have the new name and numbers
/// of their own, and the old names are fenced. Method: two lanes with an epoch each, under a live worker; then back to one name.
#[tokio::test]
async fn lanes_become_one() {
    let place = Place::new().await;
    let (worker, person) = place.connect_two().await;
    let lane = |name: &str| DeliveryId { lane: name.into(), ..id("w") };
    let first = claim(&worker, &lane("a.1"), &take(0)).await.unwrap();
    commit(&worker, &lane("a.1"), &first).await;
    let second = claim(&worker, &lane("a"), &take(0)).await.unwrap();
    let second = commit(&worker, &lane("a"), &second).await;
    let old = [lane("a.1"), lane("a")];
    let to = Bookmark::new(second.bookmark.incarnation.next("inode 8"), Position::at(9));
    let clash = adopt_lanes(&person, &old[..1], &lane("a"), &to, None, OldNames::Fenced).await;
    assert_eq!(code(clash), "HX4191");
    let missing = adopt_lanes(&person, &[lane("nobody")], &lane("new"), &to, None, OldNames::Fenced).await;
    assert_eq!(code(missing), NO_DELIVERY);

    let now = adopt_lanes(&person, &old, &lane("a"), &to, None, OldNames::Fenced).await.unwrap();

    assert_eq!((now.epoch, now.generation, &now.bookmark), (Epoch(2), Generation(4), &to));
    assert_eq!(now.totals, second.totals.plus(second.totals));
    assert!(matches!(swap(&worker, &lane("a"), &second, &next(&second)).await, Err(SinkError::FencedOut { .. })));
    let error = claim(&worker, &lane("a.1"), &take(0)).await.unwrap_err();
    assert!(matches!(error, SinkError::FencedOut { .. }) && error.to_string().contains("\"a.1\""), "{error}");
    assert_eq!(letters::counts(&person, &lane("a")).await.unwrap().dead, 2);
    let log: Vec<(u64, u64, u32)> = recent_epochs(&person, &lane("a"), 9)
        .await
        .unwrap()
        .iter()
        .map(|logged| (logged.epoch.0, logged.generation.0, logged.to.incarnation.number))
        .collect();
    assert_eq!(log, [(2, 3, 2), (1, 1, 1)]);

    let moved = adopt_lanes(&person, &[lane("a")], &lane("a.1"), &to, Some(&contract()), OldNames::Free).await.unwrap();
    assert_eq!((moved.epoch, moved.totals, moved.generation), (now.epoch, now.totals, Generation(5)));
    assert_eq!(claim(&worker, &lane("a.1"), &take(0)).await.unwrap().bookmark, to);
}

/// Goal: an adopted name can be used again when a person says so. Method: forget, then claim.
#[tokio::test]
async fn a_person_can_use_an_adopted_name_again() {
    let place = Place::new().await;
    let session = place.connect().await;
    claim(&session, &id("old"), &take(0)).await.unwrap();
    adopt(&session, "old", "new", "table").await.unwrap();
    assert_eq!(forget(&session, &id("old")).await.unwrap(), Forgotten::Nothing);
    claim(&session, &id("old"), &take(0)).await.unwrap();
}

/// Goal: the epoch log answers "did it arrive", newest first. Method: three epochs, a limit of two, a stretch of time.
#[tokio::test]
async fn the_last_epochs_are_listed_newest_first() {
    let place = Place::new().await;
    let session = place.connect().await;
    let mut was = claim(&session, &id("w"), &take(0)).await.unwrap();
    for _ in 0..3 {
        was = commit(&session, &id("w"), &was).await;
    }
    let found = recent(&session, &id("w"), 2).await;
    assert_eq!(found.iter().map(|epoch| epoch.epoch).collect::<Vec<_>>(), [Epoch(3), Epoch(2)]);
    assert_eq!((found[0].from, found[0].to.clone()), (Position::at(20), was.bookmark));
    let counts = Totals { read: 10, delivered: 8, filtered: 1, dead: 1, rows: 16 };
    assert_eq!((found[0].counts, found[0].opened_at_ms, found[0].closed_at_ms), (counts, 1, 2));
    assert!(found[0].committed_at_ms > 0);
}
