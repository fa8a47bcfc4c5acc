use hapax_model::letter::{Letter, LetterBytes};
use hapax_sql::postgres::Limits;

use super::super::letters::insert_letters;
use super::super::sample::{Place, contract, id, letter, next, number, run, take};
use super::*;

/// Goal: `latest` is resolved once, ever. Method: claim twice with two starts; the second is ignored.
#[tokio::test]
async fn only_the_first_claim_uses_its_start() {
    let place = Place::new().await;
    let session = place.connect().await;
    assert_eq!(look(&session, &id("w")).await.unwrap(), None);
    let first = claim(&session, &id("w"), &take(100)).await.unwrap();
    assert_eq!((first.generation, first.epoch), (Generation(1), Epoch(0)));
    assert_eq!((first.bookmark.position.offset, &first.contract), (100, &contract()));
    let second = claim(&session, &id("w"), &take(999)).await.unwrap();
    assert_eq!(second, Progress { generation: Generation(2), ..first });
    assert_eq!(look(&session, &id("w")).await.unwrap(), Some(second));
    assert_eq!(number(&session, "SELECT count(*) FROM hapax.progress").await, 1);
}

/// Goal: looking never makes tables. Method: look at a database that has none.
#[tokio::test]
async fn a_look_at_a_new_database_finds_nothing_and_makes_nothing() {
    let place = Place::new().await;
    let session = place.bare().await;
    assert_eq!(look(&session, &id("w")).await.unwrap(), None);
    assert!(others(&session, &id("w")).await.unwrap().is_empty());
    assert_eq!(number(&session, "SELECT count(*) FROM pg_namespace WHERE nspname = 'hapax'").await, 0);
}

/// Goal: others shows every delivery but our own. Method: three deliveries.
#[tokio::test]
async fn others_leaves_out_our_own() {
    let place = Place::new().await;
    let session = place.connect().await;
    for workflow in ["a", "b", "c"] {
        claim(&session, &id(workflow), &take(0)).await.unwrap();
    }
    let found: Vec<_> = others(&session, &id("b")).await.unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(found, [id("a"), id("c")]);
}

/// Goal: of many claims at once each gets a generation of its own. Method: ten sessions, the first claim included.
#[tokio::test(flavor = "multi_thread")]
async fn claims_at_once_get_generations_of_their_own() {
    let place = Place::new().await;
    place.connect().await;
    let mut claims = Vec::new();
    for start in 0..10 {
        let session = place.bare().await;
        claims.push(tokio::spawn(async move { claim(&session, &id("w"), &take(start)).await.unwrap() }));
    }
    let mut found = Vec::new();
    for claim in claims {
        found.push(claim.await.unwrap());
    }
    found.sort_by_key(|progress| progress.generation.0);
    let generations: Vec<u64> = found.iter().map(|progress| progress.generation.0).collect();
    assert_eq!(generations, (1..=10).collect::<Vec<_>>());
    assert!(found.iter().all(|progress| progress.bookmark == found[0].bookmark), "one start for all");
}

/// Goal: a swap moves progress by exactly one epoch, totals included. Method: swap twice, look after each.
#[tokio::test]
async fn a_swap_moves_progress_and_adds_totals() {
    let place = Place::new().await;
    let session = place.connect().await;
    let first = claim(&session, &id("w"), &take(0)).await.unwrap();
    let second = swap(&session, &id("w"), &first, &next(&first)).await.unwrap();
    assert_eq!(look(&session, &id("w")).await.unwrap(), Some(second.clone()));
    let third = swap(&session, &id("w"), &second, &next(&second)).await.unwrap();
    assert_eq!(look(&session, &id("w")).await.unwrap(), Some(third.clone()));
    assert_eq!((third.epoch, third.bookmark.position.offset), (Epoch(2), 20));
    assert_eq!(third.totals, Totals { read: 20, delivered: 16, filtered: 2, dead: 2, rows: 32 });
    let corrected = Totals { delivered: 15, dead: 3, ..third.totals };
    correct_totals(&session, &id("w"), Epoch(2), corrected).await.unwrap();
    assert_eq!(look(&session, &id("w")).await.unwrap().map(|found| found.totals), Some(corrected));
    let nobody = correct_totals(&session, &id("x"), Epoch(2), corrected).await.unwrap_err();
    assert!(matches!(nobody, SinkError::OwnTables { .. }));
}

/// Goal: each of generation, epoch, position and incarnation alone fences. Method: change one of them in the row.
#[tokio::test]
async fn a_swap_is_fenced_by_each_part_of_progress() {
    let place = Place::new().await;
    let session = place.connect().await;
    let changes = [
        "generation = generation + 1, session = 'pid 2 on there'",
        "epoch = epoch + 1",
        "position = '7'",
        "position = '0.1'",
        "incarnation = '2:inode 7'",
    ];
    for (nth, change) in changes.iter().enumerate() {
        let id = id(&format!("w{nth}"));
        let was = claim(&session, &id, &take(0)).await.unwrap();
        run(&session, &format!("UPDATE hapax.progress SET {change} WHERE workflow = 'w{nth}'")).await;
        let before = look(&session, &id).await.unwrap();
        let error = swap(&session, &id, &was, &next(&was)).await.unwrap_err();
        let SinkError::FencedOut { ours, by } = &error else { panic!("{change}: {error}") };
        assert_eq!(*ours, Generation(1), "{change}");
        let expected = if change.starts_with("generation") { "pid 2 on there" } else { "still ours, but progress" };
        assert!(by.as_ref().is_some_and(|by| by.contains(expected)), "{change}: {by:?}");
        assert_eq!(look(&session, &id).await.unwrap(), before, "{change}");
    }
    let was = claim(&session, &id("w"), &take(0)).await.unwrap();
    run(&session, "DELETE FROM hapax.progress").await;
    let error = swap(&session, &id("w"), &was, &next(&was)).await.unwrap_err().to_string();
    assert!(error.contains("its progress is gone"), "{error}");
}

/// Goal: of two workers the newer one writes and the older one does not. Method: two sessions; the older one wakes
/// after the take-over.
#[tokio::test]
async fn a_zombie_is_fenced_by_the_claim_of_another_session() {
    let place = Place::new().await;
    let (old, new) = place.connect_two().await;
    let zombie = claim(&old, &id("w"), &take(0)).await.unwrap();
    let owner = claim(&new, &id("w"), &take(0)).await.unwrap();
    let owner = swap(&new, &id("w"), &owner, &next(&owner)).await.unwrap();
    assert!(matches!(swap(&old, &id("w"), &zombie, &next(&zombie)).await, Err(SinkError::FencedOut { .. })));
    let reclaim = Claim::Reclaim { generation: zombie.generation, session: "zombie".into() };
    let error = claim(&old, &id("w"), &reclaim).await.unwrap_err();
    assert!(matches!(error, SinkError::FencedOut { ours: Generation(1), .. }), "{error}");
    assert!(old.is_reusable(), "a refused claim leaves no open transaction");
    assert_eq!(look(&new, &id("w")).await.unwrap(), Some(owner.clone()));
    let reclaim = Claim::Reclaim { generation: owner.generation, session: "owner".into() };
    let again = claim(&new, &id("w"), &reclaim).await.unwrap();
    assert_eq!(again, Progress { generation: Generation(3), session: "owner".into(), ..owner });
}

/// Goal: of two swaps at once from the same progress one lands. Method: two sessions of one generation, ten rounds.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_swaps_at_once_one_lands() {
    let place = Place::new().await;
    let (first, second) = place.connect_two().await;
    let mut was = claim(&first, &id("w"), &take(0)).await.unwrap();
    for _ in 0..10 {
        let (target, record) = (id("w"), next(&was));
        let (one, two) = tokio::join!(swap(&first, &target, &was, &record), swap(&second, &target, &was, &record));
        let landed: Vec<_> = [one, two].into_iter().filter_map(Result::ok).collect();
        assert_eq!(landed.len(), 1);
        was = landed.into_iter().next().unwrap();
    }
    assert_eq!(look(&first, &id("w")).await.unwrap(), Some(was));
}

/// Goal: a claim waits for the old transaction, then reads: fence before read. Method: the old worker commits while
/// the claim waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_reads_what_the_old_worker_committed_while_it_waited() {
    let place = Place::new().await;
    let (old, new) = place.connect_two().await;
    let was = claim(&old, &id("w"), &take(0)).await.unwrap();
    old.begin().await.unwrap();
    swap(&old, &id("w"), &was, &next(&was)).await.unwrap();
    let claimer = tokio::spawn(async move { claim(&new, &id("w"), &take(0)).await.unwrap() });
    place.until_waiting(1).await;
    assert!(!claimer.is_finished(), "the claim waits");
    ask::end(&old, During::Look, Ok(())).await.unwrap();
    let found = claimer.await.unwrap();
    assert_eq!((found.generation, found.epoch), (Generation(2), Epoch(1)));
}

/// Goal: a claim under a name that is being adopted away does not begin again from the start. Method: the adoption
/// commits while the claim waits for its row.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_waited_for_an_adoption_is_refused() {
    let place = Place::new().await;
    let (person, worker) = place.connect_two().await;
    claim(&person, &id("old"), &take(0)).await.unwrap();
    person.begin().await.unwrap();
    run(&person, "INSERT INTO hapax.adopted VALUES ('old', 'table', 'lane', 'new', 1)").await;
    run(&person, "UPDATE hapax.progress SET workflow = 'new', generation = generation + 1").await;
    let claimer = tokio::spawn(async move { claim(&worker, &id("old"), &take(0)).await });
    place.until_waiting(1).await;
    assert!(!claimer.is_finished(), "the claim waits");
    ask::end(&person, During::Look, Ok(())).await.unwrap();
    let error = claimer.await.unwrap().unwrap_err();
    assert!(matches!(error, SinkError::FencedOut { .. }) && error.to_string().contains("\"new\""), "{error}");
    assert_eq!(look(&person, &id("old")).await.unwrap(), None);
}

/// Goal: what is rolled back leaves no trace. Method: a whole epoch, rolled back, then committed; another session looks.
#[tokio::test]
async fn an_epoch_is_visible_all_or_not_at_all() {
    let place = Place::new().await;
    let (session, reader) = place.connect_two().await;
    let was = claim(&session, &id("w"), &take(0)).await.unwrap();
    let record = next(&was);
    let cut = LetterBytes::Cut { head: vec![1], length: 99, sha256: [7; 32] };
    let letters = [letter(3, "a"), Letter { bytes: cut, event_key: Some("k".into()), ..letter(4, "b") }];
    let seen = "SELECT (SELECT epoch FROM hapax.progress) * 100 + (SELECT count(*) FROM hapax.epochs) * 10 \
                + (SELECT count(*) FROM hapax.dead_letters)";
    for commits in [false, true] {
        session.begin().await.unwrap();
        swap(&session, &id("w"), &was, &record).await.unwrap();
        insert_letters(&session, &id("w"), was.generation, record.epoch, &record.from.incarnation, &letters)
            .await
            .unwrap();
        log_epoch(&session, &id("w"), was.generation, &record, record.counts).await.unwrap();
        assert_eq!(number(&reader, seen).await, 0);
        if commits {
            ask::end(&session, During::Epoch(record.epoch), Ok(())).await.unwrap();
        } else {
            session.rollback().await.unwrap();
        }
        assert_eq!(number(&reader, seen).await, if commits { 112 } else { 0 });
    }
}

/// Goal: the epoch log is bounded and keeps the newest. Method: log at the places where it is trimmed.
#[tokio::test]
async fn the_epoch_log_keeps_only_the_last_epochs() {
    let place = Place::new().await;
    let session = place.connect().await;
    let was = claim(&session, &id("w"), &take(0)).await.unwrap();
    let last = EPOCHS_KEPT + 2 * TRIM_EVERY;
    run(
        &session,
        &format!(
            "INSERT INTO hapax.epochs SELECT 'w', 'table', 'lane', n, 1, '0', '1', '1:a', 0, 0, 0, 0, 0, 0, 0, 0 \
             FROM generate_series(1, {}) AS n",
            last - 1
        ),
    )
    .await;
    let record = EpochRecord { epoch: Epoch(last), ..next(&was) };
    log_epoch(&session, &id("w"), was.generation, &record, record.counts).await.unwrap();
    assert_eq!(number(&session, "SELECT min(epoch) FROM hapax.epochs").await, stored(2 * TRIM_EVERY + 1));
    assert_eq!(number(&session, "SELECT max(epoch) FROM hapax.epochs").await, stored(last));
}

/// Goal: a damaged row is an error with a name, never a panic or a wrong position. Method: spoil each part.
#[tokio::test]
async fn damaged_progress_is_refused() {
    let place = Place::new().await;
    let session = place.connect().await;
    for (nth, change) in ["position = 'x'", "incarnation = 'x'", "contract = '['", "epoch = -1"].into_iter().enumerate()
    {
        let id = id(&format!("w{nth}"));
        claim(&session, &id, &take(0)).await.unwrap();
        run(&session, &format!("UPDATE hapax.progress SET {change} WHERE workflow = 'w{nth}'")).await;
        assert_eq!(look(&session, &id).await.unwrap_err().code(), "HX4015");
        claim(&session, &id, &take(0)).await.unwrap_err();
        let sql = format!("SELECT generation FROM hapax.progress WHERE workflow = 'w{nth}'");
        assert_eq!(number(&session, &sql).await, 1, "{change}: a refused claim fences nobody");
    }
    run(&session, "ALTER TABLE hapax.progress ALTER COLUMN epoch TYPE text").await;
    session.forget_statements();
    assert_eq!(look(&session, &id("w0")).await.unwrap_err().code(), "HX4015");
}

/// Goal: a worker that is fenced already ends nobody while it waits to find that out. Method: its reclaim begins to wait
/// before the new owner's claim commits, behind that owner's first epoch, and goes on waiting for the epoch.
#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_reclaim_leaves_the_new_owner_alone() {
    let place = Place::new().await;
    let (claimer, owner) = place.connect_two().await;
    let was = claim(&claimer, &id("w"), &take(0)).await.unwrap();
    run(&claimer, "BEGIN; UPDATE hapax.progress SET generation = generation + 1").await;
    let owning = async {
        run(&owner, "BEGIN; UPDATE hapax.progress SET epoch = epoch + 1").await;
        tokio::time::sleep(Duration::from_millis(900)).await;
        owner.client().batch_execute("COMMIT").await
    };
    let reclaiming = async {
        place.until_waiting(1).await;
        let pool = Pool::new(place.url(), Limits::default(), 4);
        let session = pool.take(Duration::from_secs(60)).await.unwrap();
        let reclaim = Claim::Reclaim { generation: was.generation, session: "the old one".into() };
        claim_past_blockers(&pool, &session, &id("w"), &reclaim, Duration::from_millis(600)).await
    };
    let committing = async {
        place.until_waiting(2).await;
        run(&claimer, "COMMIT").await;
    };
    let (epoch, error, ()) = tokio::join!(owning, reclaiming, committing);
    assert!(epoch.is_ok(), "the new owner's session was ended: {epoch:?}");
    assert!(matches!(error, Err(SinkError::FencedOut { .. })), "{error:?}");
}
