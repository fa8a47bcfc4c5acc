use std::time::Duration;

use hapax_engine::sink::SinkError;
use hapax_model::epoch::{Epoch, Generation};
use hapax_sql::mysql::Limits;

use super::super::progress::{claim, claim_past_blockers, look, swap};
use super::super::sample::{Place, id, next, run, take};
use super::*;

fn pool(place: &Place) -> Pool {
    let limits = Limits { lock: Duration::from_secs(1), ..Limits::default() };
    Pool::new(place.url(), limits, 4)
}

/// Goal: a worker that was stopped in mid-transaction does not keep the lane. Method: one that swapped and stays silent;
/// the claim ends its session, and finds the progress of before.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_ends_the_session_of_a_stopped_worker() {
    let place = Place::new().await;
    let mut zombie = place.connect().await;
    let was = claim(&mut zombie, &id("w"), &take(0)).await.unwrap();
    zombie.begin().await.unwrap();
    swap(&mut zombie, &id("w"), &was, &next(&was)).await.unwrap();

    let pool = pool(&place);
    let mut session = pool.take(Duration::from_secs(1)).await.unwrap();
    let (id, wanted) = (id("w"), take(0));
    let claiming = claim_past_blockers(&pool, &mut session, &id, &wanted, Duration::from_millis(1_500));
    let found = claiming.await.unwrap();
    assert_eq!((found.generation, found.epoch), (Generation(2), Epoch(0)));
    zombie.text("SELECT 1").await.unwrap_err();
}

/// Goal: the very first claim of a lane can be held too. Method: a claim that stays open after its INSERT.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_claim_that_never_committed_is_ended() {
    let place = Place::new().await;
    let mut zombie = place.connect().await;
    zombie.begin().await.unwrap();
    let row = format!(
        "INSERT INTO hapax_progress VALUES ('w', 'table', 'lane', 1, 0, '9', '1:a', '', NULL, 'zombie', {}, 0, 0, 0, 0, 0, 1)",
        zombie.connection_id()
    );
    run(&mut zombie, &row).await;
    let pool = pool(&place);
    let mut session = pool.take(Duration::from_secs(1)).await.unwrap();
    let (id, wanted) = (id("w"), take(5));
    let claiming = claim_past_blockers(&pool, &mut session, &id, &wanted, Duration::from_secs(1));
    let found = claiming.await.unwrap();
    assert_eq!((found.generation, found.bookmark.position.offset), (Generation(1), 5));
}

/// Goal: nobody else's session is ever ended, not even that of the worker that wrote the row last. Method: a person's
/// lock on the row; the claim gives up and says what to look for.
#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_lock_is_named_and_left_alone() {
    let place = Place::new().await;
    let mut worker = place.connect().await;
    claim(&mut worker, &id("w"), &take(0)).await.unwrap();
    let mut person = place.stranger();
    person.query("BEGIN").unwrap();
    person.query("SELECT * FROM hapax_progress FOR UPDATE").unwrap();
    let pool = pool(&place);
    let mut session = pool.take(Duration::from_secs(1)).await.unwrap();
    let (id, wanted) = (id("w"), take(0));
    let claiming = claim_past_blockers(&pool, &mut session, &id, &wanted, Duration::from_millis(500));
    let error = claiming.await.unwrap_err();
    assert!(
        matches!(error, SinkError::Locked { .. }) && error.to_string().contains("not ours: end its transaction"),
        "{error}"
    );
    person.query("SELECT 1").unwrap();
    assert!(look(&mut worker, &id).await.unwrap().is_some());
}

/// Goal: without the right to see who blocks whom, a stopped worker is ended all the same, and a stranger is spoken of.
/// Method: a user with rights on our tables only.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_worker_is_ended_without_any_right() {
    let place = Place::new().await;
    let mut owner = place.connect().await;
    let user = format!("poor_{}", place.name());
    run(&mut owner, &format!("CREATE USER {user}; GRANT ALL ON {}.* TO {user}", place.name())).await;
    let mut zombie = Session::connect(&place.url_of(&user), &Limits::default()).await.unwrap();
    let was = claim(&mut zombie, &id("w"), &take(0)).await.unwrap();
    zombie.begin().await.unwrap();
    swap(&mut zombie, &id("w"), &was, &next(&was)).await.unwrap();
    let limits = Limits { lock: Duration::from_secs(1), ..Limits::default() };
    let pool = Pool::new(place.url_of(&user), limits, 2);
    let mut session = pool.take(Duration::from_secs(1)).await.unwrap();
    let (id, wanted) = (id("w"), take(0));
    let found = claim_past_blockers(&pool, &mut session, &id, &wanted, Duration::from_secs(1)).await.unwrap();
    assert_eq!(found.generation, Generation(2));
    let mut person = place.stranger();
    person.query("BEGIN").unwrap();
    person.query("SELECT * FROM hapax_progress FOR UPDATE").unwrap();
    let claiming = claim_past_blockers(&pool, &mut session, &id, &wanted, Duration::from_millis(400));
    let error = claiming.await.unwrap_err().to_string();
    assert!(error.contains("GRANT PROCESS"), "{error}");
    drop((zombie, session, pool));
    run(&mut owner, &format!("DROP USER {user}")).await;
}

/// Goal: a row that nobody holds has no holder, and one that is held names its writer. Method: before and during.
#[tokio::test]
async fn the_holder_is_who_wrote_the_row_and_has_not_committed() {
    let place = Place::new().await;
    let (mut worker, mut watcher) = place.connect_two().await;
    let was = claim(&mut worker, &id("w"), &take(0)).await.unwrap();
    for workflow in ["w", "x"] {
        assert_eq!(end_seen_by(&mut watcher, &id(workflow), 0, &take(0)).await.unwrap(), None);
    }
    worker.begin().await.unwrap();
    swap(&mut worker, &id("w"), &was, &next(&was)).await.unwrap();
    let ended = end_seen_by(&mut watcher, &id("w"), 0, &take(0)).await.unwrap().unwrap();
    assert_eq!(ended, Holder::Ended { connection: worker.connection_id(), name: "pid 1 on here".into() });
    assert!(ended.to_string().contains("ended"), "{ended}");
    let stays = Holder::Stays { connection: 7, name: "w".into(), why: "no".into() }.to_string();
    assert!(stays.contains("KILL 7"), "{stays}");
}

/// Goal: a worker that is fenced already ends nobody while it waits to find that out. Method: the new owner in the middle
/// of a long epoch; the old one's reclaim waits past its claim timeout; a lock without a write, as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_reclaim_leaves_the_new_owner_alone() {
    let place = Place::new().await;
    let mut owner = place.connect().await;
    let fenced = claim(&mut owner, &id("w"), &take(0)).await.unwrap().generation;
    let was = claim(&mut owner, &id("w"), &take(0)).await.unwrap();
    let (id, reclaim) = (id("w"), Claim::Reclaim { generation: fenced, session: "the old one".into() });
    for holds in ["writes", "locks"] {
        owner.begin().await.unwrap();
        match holds {
            "writes" => drop(swap(&mut owner, &id, &was, &next(&was)).await.unwrap()),
            _ => run(&mut owner, "SELECT * FROM hapax_progress FOR UPDATE").await,
        }
        let pool = pool(&place);
        let mut session = pool.take(Duration::from_secs(1)).await.unwrap();
        let claiming = claim_past_blockers(&pool, &mut session, &id, &reclaim, Duration::from_millis(300));
        let epoch = async {
            tokio::time::sleep(Duration::from_millis(800)).await;
            owner.rollback().await
        };
        let (error, epoch) = tokio::join!(claiming, epoch);
        assert!(epoch.is_ok(), "the new owner, who {holds}, was ended: {epoch:?}");
        assert!(matches!(error, Err(SinkError::FencedOut { .. })), "{error:?}");
    }
}
