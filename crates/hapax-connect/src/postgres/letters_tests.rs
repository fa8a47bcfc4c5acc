use hapax_model::letter::Stage;
use hapax_model::position::Position;

use super::super::sample::{Place, id, letter, run};
use super::*;

async fn write(session: &Session, workflow: &str, letters: &[Letter]) {
    let incarnation = Incarnation::new(2, "inode 7");
    insert_letters(session, &id(workflow), Generation(1), Epoch(5), &incarnation, letters).await.unwrap();
}

fn of(workflow: &str) -> LetterChoice {
    LetterChoice { workflow: Some(workflow.into()), ..LetterChoice::default() }
}

async fn ids(session: &Session, choice: &LetterChoice, after: i64, limit: usize) -> Vec<i64> {
    list(session, choice, after, limit).await.unwrap().into_iter().map(|letter| letter.id).collect()
}

/// Goal: a letter reads back as it was written, cut or whole, in lane order. Method: both kinds, byte for byte; a NUL
/// in a message, which PostgreSQL cannot hold, is shown instead of refusing the epoch.
#[tokio::test]
async fn a_letter_survives_its_store() {
    let place = Place::new().await;
    let session = place.connect().await;
    write(&session, "w", &[]).await;
    let cut = LetterBytes::Cut { head: vec![1, 2], length: 99, sha256: [7; 32] };
    let second = Letter { bytes: cut.clone(), event_key: Some("h1_x".into()), ..letter(4, "b\0") };
    write(&session, "w", &[letter(3, "a"), second]).await;
    let found = list(&session, &LetterChoice::default(), 0, 10).await.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].id, &found[0].delivery, found[0].epoch), (1, &id("w"), 5));
    assert_eq!((found[0].position, found[0].incarnation.as_str()), (Position::at(3), "2:inode 7"));
    assert_eq!((found[0].stage.as_str(), found[0].code.as_str()), ("decode", "HX2001"));
    assert_eq!((found[0].message.as_str(), found[0].fingerprint.as_str()), ("a at 3", "a"));
    assert_eq!(found[0].bytes, LetterBytes::Whole(vec![0xff, 0, b'x']));
    assert_eq!((found[0].state.as_str(), found[0].event_key.as_deref()), ("dead", None));
    assert_eq!((&found[1].bytes, found[1].event_key.as_deref()), (&cut, Some("h1_x")));
    assert_eq!(found[1].message, "b\u{2400} at 4");
}

/// Goal: more letters than one statement carries all arrive, in order. Method: two and a half statements' worth.
#[tokio::test]
async fn many_letters_are_cut_into_statements() {
    let place = Place::new().await;
    let session = place.connect().await;
    let many: Vec<Letter> = (0..2_500).map(|offset| letter(offset, "x")).collect();
    write(&session, "w", &many).await;
    let found = list(&session, &LetterChoice::default(), 0, 9_999).await.unwrap();
    assert_eq!(found.len(), 2_500);
    assert!(found.iter().zip(0..).all(|(letter, offset)| letter.position == Position::at(offset)));
    let large = Letter { bytes: LetterBytes::Whole(vec![0; BYTES_PER_STATEMENT]), ..letter(1, "x") };
    let large = [large.clone(), letter(2, "x"), large];
    assert_eq!((fitting(&large), fitting(&large[1..]), fitting(&many)), (1, 1, LETTERS_PER_STATEMENT));
}

/// Goal: every part of a choice narrows it, and pages do not overlap. Method: two workflows, two causes.
#[tokio::test]
async fn a_choice_means_what_it_says() {
    let place = Place::new().await;
    let session = place.connect().await;
    let keyed = Letter { event_key: Some("h1_x".into()), ..letter(3, "bad json") };
    write(&session, "a", &[letter(1, "bad json"), letter(2, "bad key"), keyed]).await;
    write(&session, "b", &[letter(4, "50% off"), letter(5, "bad json")]).await;
    let all = LetterChoice::default();
    let cause = |cause: &str| LetterChoice { cause: Some(cause.into()), ..LetterChoice::default() };
    assert_eq!(ids(&session, &all, 0, 100).await, [1, 2, 3, 4, 5]);
    assert_eq!(ids(&session, &all, 2, 2).await, [3, 4]);
    assert_eq!(ids(&session, &of("a"), 0, 100).await, [1, 2, 3]);
    assert_eq!(ids(&session, &cause("bad"), 0, 100).await, [1, 2, 3, 5]);
    assert_eq!(ids(&session, &cause("%"), 0, 100).await, [0; 0]);
    assert_eq!(ids(&session, &LetterChoice { sink: Some("other".into()), ..of("a") }, 0, 100).await, [0; 0]);
    assert_eq!(ids(&session, &LetterChoice { lane: Some("other".into()), ..of("a") }, 0, 100).await, [0; 0]);
    assert_eq!(ids(&session, &LetterChoice { ids: vec![5, 2, 77], ..all.clone() }, 0, 100).await, [2, 5]);
    assert_eq!(discard(&session, &[2, 3, 77]).await.unwrap(), 2);
    assert_eq!(discard(&session, &[2, 1]).await.unwrap(), 1);
    assert_eq!(discard(&session, &[2, 1]).await.unwrap(), 0);
    assert_eq!(ids(&session, &all, 0, 100).await, [4, 5]);
    assert_eq!(ids(&session, &LetterChoice { ids: vec![5, 2], ..all.clone() }, 0, 100).await, [2, 5], "in any state");
    assert_eq!(ids(&session, &LetterChoice { position: Some(Position::at(2)), ..all.clone() }, 0, 100).await, [2]);
    assert_eq!(ids(&session, &LetterChoice { event_key: Some("h1_x".into()), ..all }, 0, 100).await, [3]);
}

/// Goal: letters of one cause are one group, with the first one's message. Method: two causes, times set by hand.
#[tokio::test]
async fn letters_are_grouped_by_cause() {
    let place = Place::new().await;
    let session = place.connect().await;
    assert_eq!(causes(&session, &LetterChoice::default(), 0).await.unwrap(), []);
    write(&session, "a", &[letter(1, "x"), letter(2, "y"), letter(3, "y")]).await;
    run(&session, "UPDATE hapax.dead_letters SET written_at_ms = id * 100").await;
    let found = causes(&session, &LetterChoice::default(), 0).await.unwrap();
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
    assert_eq!(causes(&session, &of("b"), 0).await.unwrap(), []);
    let since = causes(&session, &LetterChoice::default(), 2).await.unwrap();
    assert_eq!((since.len(), since[0].count, since[0].first_id), (1, 1, 3));
}

/// Goal: a letter leaves the dead only once. Method: mark as replayed, then discard, then count.
#[tokio::test]
async fn a_letter_leaves_the_dead_only_once() {
    let place = Place::new().await;
    let session = place.connect().await;
    write(&session, "a", &[letter(1, "x"), letter(2, "x"), letter(3, "x")]).await;
    assert_eq!(still_dead(&session, &[3, 1, 9]).await.unwrap(), [1, 3]);
    assert_eq!(mark_replayed(&session, &[1, 3]).await.unwrap(), 2);
    assert_eq!(mark_replayed(&session, &[1]).await.unwrap(), 0);
    assert_eq!(discard(&session, &[1, 2]).await.unwrap(), 1);
    assert_eq!(still_dead(&session, &[1, 2, 3]).await.unwrap(), [0; 0]);
    assert_eq!(counts(&session, &id("a")).await.unwrap(), LetterCounts { dead: 0, replayed: 2, discarded: 1 });
    assert_eq!(counts(&session, &id("b")).await.unwrap(), LetterCounts::default());
}

/// Goal: of two replays at once one wins, and the other sees that. Method: both lock the same letters in another order;
/// the first commits while the second waits.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_replays_at_once_one_wins() {
    let place = Place::new().await;
    let (first, second) = place.connect_two().await;
    write(&first, "a", &[letter(1, "x"), letter(2, "x"), letter(3, "x")]).await;
    first.begin().await.unwrap();
    assert_eq!(still_dead(&first, &[1, 2]).await.unwrap(), [1, 2]);
    let other = tokio::spawn(async move {
        second.begin().await.unwrap();
        let dead = still_dead(&second, &[3, 2, 1]).await.unwrap();
        let marked = mark_replayed(&second, &dead).await.unwrap();
        ask::end(&second, During::Look, Ok(())).await.unwrap();
        (dead, marked)
    });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(!other.is_finished(), "the second waits");
    assert_eq!(mark_replayed(&first, &[1, 2]).await.unwrap(), 2);
    ask::end(&first, During::Look, Ok(())).await.unwrap();
    assert_eq!(other.await.unwrap(), (vec![3], 1));
    assert_eq!(counts(&first, &id("a")).await.unwrap(), LetterCounts { dead: 0, replayed: 3, discarded: 0 });
}

/// Goal: a letter is taken in doubt once, keeps what it said before, and is judged by what became of it. Method: take two, again
/// with a third, then mark one and refuse the other.
#[tokio::test]
async fn a_letter_is_taken_in_doubt_once() {
    let place = Place::new().await;
    let session = place.connect().await;
    write(&session, "a", &[letter(1, "x"), letter(2, "x"), letter(3, "x"), letter(4, "x")]).await;
    discard(&session, &[4]).await.unwrap();
    assert_eq!(take_in_doubt(&session, &[2, 1, 4]).await.unwrap(), [1, 2]);
    assert_eq!(take_in_doubt(&session, &[1, 2, 3]).await.unwrap(), [3], "of two replays one has it");
    let found = list(&session, &of("a"), 0, 9).await.unwrap();
    assert!(found.iter().all(StoredLetter::is_in_doubt) && found.len() == 3, "{found:?}");
    let message = &found[0].message;
    assert!(message.contains("a replay") && message.ends_with("HX2001: x at 1"), "{message}");
    let cause = Cause { stage: Stage::Write, code: "HX2050", message: "no".into(), fingerprint: "no".into() };
    assert_eq!(mark_written(&session, &[1], &BTreeMap::from([(2, cause)])).await.unwrap(), 1);
    let found = list(&session, &LetterChoice { ids: vec![1, 2, 3], ..of("a") }, 0, 9).await.unwrap();
    let said: Vec<(&str, &str)> = found.iter().map(|letter| (letter.state.as_str(), letter.code.as_str())).collect();
    assert_eq!(said, [("replayed", "HX2040"), ("dead", "HX2050"), ("dead", "HX2040")]);
}

/// Goal: a letter that is refused again keeps the newer reason, and only a dead one. Method: refuse one of each.
#[tokio::test]
async fn a_letter_refused_again_has_the_newer_reason() {
    let place = Place::new().await;
    let session = place.connect().await;
    write(&session, "a", &[letter(1, "x"), letter(2, "x")]).await;
    discard(&session, &[2]).await.unwrap();
    note_refused(&session, &BTreeMap::new()).await.unwrap();
    let cause = |message: &str| Cause {
        stage: Stage::Write,
        code: "HX2050",
        message: message.into(),
        fingerprint: "too long".into(),
    };
    note_refused(&session, &BTreeMap::from([(1, cause("one")), (2, cause("two"))])).await.unwrap();
    let found = list(&session, &LetterChoice { ids: vec![1, 2], ..of("a") }, 0, 9).await.unwrap();
    assert_eq!((found[0].stage.as_str(), found[0].message.as_str()), ("write", "one"));
    assert_eq!(found[1].message, "x at 2");
    assert_eq!(incarnations(&session, &[2, 99, 1]).await.unwrap(), [2, 1, 2]);
}
