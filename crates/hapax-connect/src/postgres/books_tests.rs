use hapax_model::epoch::{Epoch, Generation};
use hapax_model::position::Incarnation;

use super::super::letters::insert_letters;
use super::super::sample::{Place, id, letter, pause};
use super::*;

/// Goal: a database without our tables has empty books, and later ones are seen. Method: ask everything, write beside
/// it, ask again.
#[tokio::test]
async fn books_are_read_with_no_worker_alive() {
    let place = Place::new().await;
    let mut books = PostgresBooks::open(&place.url(), Limits::default()).await.unwrap();
    let all = LetterChoice::default();
    assert_eq!((books.deliveries().await.unwrap(), books.list(&all, 0, 10).await.unwrap()), (vec![], vec![]));
    assert_eq!((books.pauses().await.unwrap(), books.notes().await.unwrap()), (vec![], vec![]));
    assert_eq!((books.leases().await.unwrap(), books.witnesses().await.unwrap()), (vec![], vec![]));
    assert_eq!(
        (books.recent_epochs(&id("a"), 9).await.unwrap(), books.causes(&all, 0).await.unwrap()),
        (vec![], vec![])
    );
    assert_eq!(books.forget(&id("a")).await.unwrap(), Forgotten::Nothing);
    assert!(!books.resume("w").await.unwrap());
    let refused = books.pause(&pause("w")).await.unwrap_err();
    assert!(refused.code() == "HX4015" && refused.to_string().contains("hapax setup"), "{refused}");

    let made = books.make_tables(Role::State).await.unwrap();
    assert_eq!((made.before.target, made.after.target), (0, 1));
    let (beside, incarnation) = (place.bare().await, Incarnation::new(2, "inode 7"));
    let letters = [letter(1, "x"), letter(2, "x")];
    insert_letters(&beside, &id("a"), Generation(1), Epoch(5), &incarnation, &letters).await.unwrap();
    assert_eq!(books.list(&all, 0, 10).await.unwrap().len(), 2);
    assert_eq!(books.discard(&[1]).await.unwrap(), 1);
    assert_eq!(books.discard(&[1]).await.unwrap(), 0);
    assert_eq!(books.causes(&all, 0).await.unwrap()[0].count, 1);
    assert_eq!(books.mark_replayed(&[1], &BTreeMap::new()).await.unwrap(), 0);
    assert_eq!(books.letter_counts(&id("a")).await.unwrap().discarded, 1);
    books.drop_tables().await.unwrap();
    assert_eq!(books.list(&all, 0, 10).await.unwrap(), []);
}
