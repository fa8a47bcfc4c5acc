use super::super::sample::{Place, bare, contract, epoch_of, id, letter, next, take};
use super::*;

/// Goal: `latest` is resolved once, ever. Method: claim twice with two starts; the second is ignored.
#[test]
fn only_the_first_claim_uses_its_start() {
    let place = Place::new();
    let connection = place.connect();
    assert_eq!(look(&connection, &id("w")).unwrap(), None);
    let first = claim(&connection, &id("w"), &take(100)).unwrap();
    assert_eq!((first.generation, first.epoch), (Generation(1), Epoch(0)));
    assert_eq!((first.bookmark.position.offset, &first.contract), (100, &contract()));
    let second = claim(&connection, &id("w"), &take(999)).unwrap();
    assert_eq!(second, Progress { generation: Generation(2), ..first });
    assert_eq!(look(&connection, &id("w")).unwrap(), Some(second));
    assert_eq!(connection.query_row("SELECT count(*) FROM hapax_progress", [], |row| row.get::<_, i64>(0)), Ok(1));
}

/// Goal: looking never makes tables. Method: look at a database that has none.
#[test]
fn a_look_at_a_new_database_finds_nothing_and_makes_nothing() {
    let place = Place::new();
    let connection = bare(&place.path());
    assert_eq!(look(&connection, &id("w")).unwrap(), None);
    assert!(others(&connection, &id("w")).unwrap().is_empty());
    assert_eq!(connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0)), Ok(0));
}

/// Goal: others shows every delivery but our own. Method: three deliveries.
#[test]
fn others_leaves_out_our_own() {
    let place = Place::new();
    let connection = place.connect();
    for workflow in ["a", "b", "c"] {
        claim(&connection, &id(workflow), &take(0)).unwrap();
    }
    let found: Vec<_> = others(&connection, &id("b")).unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(found, [id("a"), id("c")]);
}

/// Goal: a swap moves progress by exactly one epoch, totals included. Method: swap twice, look after each.
#[test]
fn a_swap_moves_progress_and_adds_totals() {
    let place = Place::new();
    let connection = place.connect();
    let first = claim(&connection, &id("w"), &take(0)).unwrap();
    let second = swap(&connection, &id("w"), &first, &next(&first)).unwrap();
    assert_eq!(look(&connection, &id("w")).unwrap(), Some(second.clone()));
    let third = swap(&connection, &id("w"), &second, &next(&second)).unwrap();
    assert_eq!(look(&connection, &id("w")).unwrap(), Some(third.clone()));
    assert_eq!((third.epoch, third.bookmark.position.offset), (Epoch(2), 20));
    assert_eq!(third.totals, Totals { read: 20, delivered: 16, filtered: 2, dead: 2, rows: 32 });
    assert!(third.totals.adds_up());
    let corrected = Totals { delivered: 15, dead: 3, ..third.totals };
    correct_totals(&connection, &id("w"), Epoch(2), corrected).unwrap();
    assert_eq!(look(&connection, &id("w")).unwrap().map(|found| found.totals), Some(corrected));
    let nobody = correct_totals(&connection, &id("x"), Epoch(2), corrected).unwrap_err();
    assert!(matches!(nobody, SinkError::OwnTables { .. }));
}

/// Goal: each of generation, epoch, position and incarnation alone fences. Method: change one of them in the row.
#[test]
fn a_swap_is_fenced_by_each_part_of_progress() {
    let changes = [
        "generation = generation + 1, session = 'pid 2 on there'",
        "epoch = epoch + 1",
        "position = '7'",
        "position = '0.1'",
        "incarnation = '2:inode 7'",
    ];
    for change in changes {
        let place = Place::new();
        let connection = place.connect();
        let was = claim(&connection, &id("w"), &take(0)).unwrap();
        connection.execute_batch(&format!("UPDATE hapax_progress SET {change}")).unwrap();
        let before = look(&connection, &id("w")).unwrap();
        let error = swap(&connection, &id("w"), &was, &next(&was)).unwrap_err();
        let SinkError::FencedOut { ours, by } = &error else { panic!("{change}: {error}") };
        assert_eq!(*ours, Generation(1), "{change}");
        let expected = if change.starts_with("generation") { "pid 2 on there" } else { "still ours, but progress" };
        assert!(by.as_ref().is_some_and(|by| by.contains(expected)), "{change}: {by:?}");
        assert_eq!(look(&connection, &id("w")).unwrap(), before, "{change}");
    }
    let place = Place::new();
    let connection = place.connect();
    let was = claim(&connection, &id("w"), &take(0)).unwrap();
    connection.execute_batch("DELETE FROM hapax_progress").unwrap();
    let error = swap(&connection, &id("w"), &was, &next(&was)).unwrap_err().to_string();
    assert!(error.contains("its progress is gone"), "{error}");
}

/// Goal: of two workers the newer one writes and the older one does not, whatever the order of their transactions.
/// Method: two connections; the older one wakes after the take-over.
#[test]
fn a_zombie_is_fenced_by_the_claim_of_another_session() {
    let place = Place::new();
    let (old, new) = (place.connect(), place.connect());
    let zombie = claim(&old, &id("w"), &take(0)).unwrap();
    let owner = claim(&new, &id("w"), &take(0)).unwrap();
    let owner = swap(&new, &id("w"), &owner, &next(&owner)).unwrap();
    assert!(matches!(swap(&old, &id("w"), &zombie, &next(&zombie)), Err(SinkError::FencedOut { .. })));
    let reclaim = Claim::Reclaim { generation: zombie.generation, session: "zombie".into() };
    let error = claim(&old, &id("w"), &reclaim).unwrap_err();
    assert!(matches!(error, SinkError::FencedOut { ours: Generation(1), .. }), "{error}");
    assert_eq!(look(&new, &id("w")).unwrap(), Some(owner.clone()));
    let reclaim = Claim::Reclaim { generation: owner.generation, session: "owner".into() };
    let again = claim(&new, &id("w"), &reclaim).unwrap();
    assert_eq!(again, Progress { generation: Generation(3), session: "owner".into(), ..owner });
}

/// Goal: a claim waits for the old transaction, then reads: fence before read. Method: the old worker commits while
/// the claim waits.
#[test]
fn a_claim_reads_what_the_old_worker_committed_while_it_waited() {
    let place = Place::new();
    let old = place.connect();
    let was = claim(&old, &id("w"), &take(0)).unwrap();
    old.execute_batch("BEGIN IMMEDIATE").unwrap();
    swap(&old, &id("w"), &was, &next(&was)).unwrap();
    let path = place.path();
    let claimer = std::thread::spawn(move || claim(&bare(&path), &id("w"), &take(0)).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(!claimer.is_finished(), "the claim waits");
    old.execute_batch("COMMIT").unwrap();
    let found = claimer.join().unwrap();
    assert_eq!((found.generation, found.epoch), (Generation(2), Epoch(1)));
}

/// Goal: a claim that cannot get the lock names its holder. Method: another connection of this process holds it.
#[test]
fn a_locked_claim_names_the_holder() {
    let place = Place::new();
    let (holder, waiter) = (place.connect(), place.connect());
    waiter.busy_timeout(std::time::Duration::ZERO).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = claim(&waiter, &id("w"), &take(0)).unwrap_err();
    let SinkError::Locked { holder: named, .. } = &error else { panic!("{error}") };
    assert!(named.starts_with(&format!("pid {}", std::process::id())), "{named}");
}

/// Goal: what is rolled back leaves no trace. Method: a whole epoch, rolled back, then committed.
#[test]
fn an_epoch_is_visible_all_or_not_at_all() {
    let place = Place::new();
    let (connection, reader) = (place.connect(), place.connect());
    let was = claim(&connection, &id("w"), &take(0)).unwrap();
    let record = next(&was);
    let cut = LetterBytes::Cut { head: vec![1], length: 99, sha256: [7; 32] };
    let letters = [letter(3, "a"), Letter { bytes: cut, event_key: Some("k".into()), ..letter(4, "b") }];
    let seen = |reader: &Connection| {
        let count = |table: &str| {
            reader.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0)).unwrap()
        };
        (epoch_of(reader, &id("w")), count("hapax_epochs"), count("hapax_dead_letters"))
    };
    for (end, expected) in [("ROLLBACK", (Some(Epoch(0)), 0, 0)), ("COMMIT", (Some(Epoch(1)), 1, 2))] {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        swap(&connection, &id("w"), &was, &record).unwrap();
        insert_letters(&connection, &id("w"), was.generation, record.epoch, &record.from.incarnation, &letters)
            .unwrap();
        log_epoch(&connection, &id("w"), was.generation, &record, record.counts).unwrap();
        assert_eq!(seen(&reader), (Some(Epoch(0)), 0, 0));
        connection.execute_batch(end).unwrap();
        assert_eq!(seen(&reader), expected);
    }
}

/// Goal: the epoch log is bounded and keeps the newest. Method: log past the bound, in one transaction.
#[test]
fn the_epoch_log_keeps_only_the_last_epochs() {
    let place = Place::new();
    let connection = place.connect();
    let was = claim(&connection, &id("w"), &take(0)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    for epoch in 1..=EPOCHS_KEPT + 2 * TRIM_EVERY {
        let record = EpochRecord { epoch: Epoch(epoch), ..next(&was) };
        log_epoch(&connection, &id("w"), was.generation, &record, record.counts).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    let found = connection.query_row("SELECT min(epoch), max(epoch) FROM hapax_epochs", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    });
    assert_eq!(found, Ok((stored(2 * TRIM_EVERY + 1), stored(EPOCHS_KEPT + 2 * TRIM_EVERY))));
}

/// Goal: a damaged row is an error with a name, never a panic or a wrong position. Method: spoil each text.
#[test]
fn damaged_progress_is_refused() {
    for change in ["position = 'x'", "incarnation = 'x'", "contract = '['", "epoch = -1"] {
        let place = Place::new();
        let connection = place.connect();
        claim(&connection, &id("w"), &take(0)).unwrap();
        connection.execute_batch(&format!("UPDATE hapax_progress SET {change}")).unwrap();
        look(&connection, &id("w")).unwrap_err();
        claim(&connection, &id("w"), &take(0)).unwrap_err();
        let generation: i64 =
            connection.query_row("SELECT generation FROM hapax_progress", [], |row| row.get(0)).unwrap();
        assert_eq!(generation, 1, "{change}: a refused claim fences nobody");
    }
}
