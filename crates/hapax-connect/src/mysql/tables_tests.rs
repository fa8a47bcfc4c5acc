use hapax_model::epoch::Epoch;

use super::super::progress;
use super::super::sample::{Place, id, number, run, take};
use super::*;

fn message(result: Result<impl std::fmt::Debug, SinkError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code(), "HX4015", "{error}");
    error.to_string()
}

/// Goal: making the tables twice changes nothing, and the id is made once. Method: ensure, again, and look.
#[tokio::test]
async fn the_tables_are_made_once() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    assert_eq!(database_id(&mut session).await.unwrap(), None);
    let first = ensure(&mut session).await.unwrap();
    assert_eq!((first.before, first.after, first.database.len()), (0, 1, 32));
    let again = ensure(&mut session).await.unwrap();
    assert_eq!((again.before, again.after), (1, 1));
    assert_eq!(database_id(&mut session).await.unwrap(), Some(first.database));
    assert!(session.is_reusable());
    let own = "SELECT CAST(@@SESSION.lock_wait_timeout AS SIGNED)";
    assert_eq!(number(&mut session, own).await, 5, "the session has its own limits again");
}

/// Goal: what `setup --sql` prints makes what `setup` makes, also when it is run twice. Method: by hand, then check.
#[tokio::test]
async fn the_printed_statements_make_the_tables() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    for _ in 0..2 {
        let text = ddl(session.server().flavour);
        run(&mut session, &text).await;
        assert_eq!(check(&mut session).await.unwrap().len(), 32);
    }
}

/// Goal: DDL commits at once, so a setup that was ended anywhere is finished by the next, and until then nobody takes
/// the tables for whole. Method: every beginning of the list of statements, by hand.
#[tokio::test]
async fn a_setup_that_was_ended_anywhere_is_finished_by_the_next() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    let statements = pending_statements(LAYOUT, 0, session.server().flavour);
    for done in 0..statements.len() {
        for statement in &statements[..done] {
            run(&mut session, statement).await;
        }
        let text = message(check(&mut session).await);
        assert!(text.contains("run `hapax setup`"), "after {done}: {text}");
        let made = ensure(&mut session).await.unwrap();
        assert_eq!((made.before, made.after), (0, 1), "after {done}");
        check(&mut session).await.unwrap();
        drop_all(&mut session).await.unwrap();
    }
}

/// Goal: a drop that was ended anywhere leaves nothing that looks like a new database. Method: every beginning of it.
#[tokio::test]
async fn a_drop_that_was_ended_anywhere_is_refused_until_it_is_finished() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    for dropped in 1..TABLES.len() {
        ensure(&mut session).await.unwrap();
        for name in TABLES.iter().rev().take(dropped) {
            run(&mut session, &format!("DROP TABLE {name}")).await;
        }
        let text = message(ensure(&mut session).await);
        assert!(text.contains("is gone while hapax_meta is here"), "{text}");
        drop_all(&mut session).await.unwrap();
    }
    assert_eq!(ensure(&mut session).await.unwrap().before, 0);
}

/// Goal: several setups at once are safe. Method: eight sessions.
#[tokio::test(flavor = "multi_thread")]
async fn several_setups_make_the_tables_at_once() {
    let place = Place::new().await;
    let mut makers = Vec::new();
    for _ in 0..8 {
        let mut session = place.bare().await;
        makers.push(tokio::spawn(async move { ensure(&mut session).await.unwrap() }));
    }
    let mut made = Vec::new();
    for maker in makers {
        made.push(maker.await.unwrap());
    }
    assert!(made.windows(2).all(|pair| pair[0].database == pair[1].database), "{made:?}");
    assert_eq!(made.iter().filter(|made| made.before == 0).count(), 1, "one made them, the others found them");
}

/// Goal: a run never makes tables, and says who does. Method: check where they are missing.
#[tokio::test]
async fn missing_tables_are_refused_with_the_cure() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    let missing = message(check(&mut session).await);
    assert!(missing.contains("run `hapax setup`"), "{missing}");
    assert!(!has_table(&mut session, "hapax_meta").await.unwrap());
    ensure(&mut session).await.unwrap();
    check(&mut session).await.unwrap();
}

/// Goal: a program never uses tables that it does not understand. Method: newer ones, and no number.
#[tokio::test]
async fn newer_tables_are_refused_with_both_versions() {
    let place = Place::new().await;
    let mut session = place.connect().await;
    for (version, expected) in [("7", "version 7, and this program knows up to version 1"), ("x", "no number")] {
        run(&mut session, &format!("UPDATE hapax_meta SET value = '{version}' WHERE name = 'version'")).await;
        for result in [check(&mut session).await.map(|_| ()), ensure(&mut session).await.map(|_| ())] {
            let text = message(result);
            assert!(text.contains(expected), "{text}");
        }
    }
    run(&mut session, "UPDATE hapax_meta SET value = '1' WHERE name = 'version'").await;
    check(&mut session).await.unwrap();
}

/// Goal: progress that was lost or could be torn off from its rows does not go on in silence. Method: another engine,
/// then one table dropped by hand.
#[tokio::test]
async fn a_missing_table_of_ours_is_refused() {
    let place = Place::new().await;
    let mut session = place.connect().await;
    run(&mut session, "ALTER TABLE hapax_meta ENGINE = MyISAM").await;
    let text = message(check(&mut session).await);
    assert!(text.contains("ALTER TABLE hapax_meta ENGINE = InnoDB"), "{text}");
    run(&mut session, "ALTER TABLE hapax_meta ENGINE = InnoDB").await;
    run(&mut session, "DROP TABLE hapax_progress").await;
    let text = message(ensure(&mut session).await);
    assert!(text.contains("hapax_progress is gone"), "{text}");
    let text = message(progress::claim(&mut session, &id("w"), &take(0)).await);
    assert!(text.contains("a table of ours is gone"), "{text}");
}

/// Goal: a stranger's table of our name is not taken for ours, and nothing is left half made. Method: one before setup.
#[tokio::test]
async fn a_table_that_is_not_ours_is_left_alone() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    run(&mut session, "CREATE TABLE hapax_epochs (mine int)").await;
    let error = ensure(&mut session).await.unwrap_err();
    assert_eq!(error.code(), "HX4451", "{error}");
    assert!(!has_table(&mut session, "hapax_meta").await.unwrap());
    run(&mut session, "ALTER TABLE hapax_epochs RENAME TO other").await;
    run(&mut session, "CREATE TABLE hapax_meta (mine int)").await;
    assert_eq!(check(&mut session).await.unwrap_err().code(), "HX4451");
    run(&mut session, "DROP TABLE hapax_meta").await;
    ensure(&mut session).await.unwrap();
}

/// Goal: nothing of ours stays, and nothing of the user's goes. Method: drop all beside a user's own table, twice.
#[tokio::test]
async fn dropping_takes_ours_and_leaves_the_users() {
    let place = Place::new().await;
    let mut session = place.connect().await;
    run(&mut session, "CREATE TABLE orders (id int)").await;
    for _ in 0..2 {
        drop_all(&mut session).await.unwrap();
        let left = "SELECT CAST(COUNT(*) AS SIGNED) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()";
        assert_eq!(number(&mut session, left).await, 1);
    }
    ensure(&mut session).await.unwrap();
}

/// What a later program might have: two more steps.
const LATER: Steps = &[
    LAYOUT[0],
    &["ALTER TABLE hapax_progress ADD COLUMN note varchar(20) NOT NULL DEFAULT 'moved'"],
    &[
        "CREATE INDEX epochs_times ON hapax_epochs (committed_at_ms)",
        "ALTER TABLE hapax_epochs DROP COLUMN opened_at_ms",
    ],
];

/// Goal: older tables are brought forward with their data, once, and the older program then keeps away from them.
/// Method: version 1 with progress in it, a later layout from several setups at once, then this program's check.
#[tokio::test(flavor = "multi_thread")]
async fn older_tables_are_migrated_with_their_data() {
    let place = Place::new().await;
    let mut session = place.connect().await;
    let before = progress::claim(&mut session, &id("w"), &take(5)).await.unwrap();
    assert_eq!(before.epoch, Epoch(0));
    let mut setups = Vec::new();
    for _ in 0..4 {
        let mut session = place.bare().await;
        setups.push(tokio::spawn(async move { migrate(&mut session, LATER).await.unwrap() }));
    }
    let mut moved = 0;
    for setup in setups {
        let made = setup.await.unwrap();
        assert_eq!(made.after, 3);
        moved += usize::from(made.before == 1);
    }
    assert_eq!(moved, 1, "the steps were taken once");
    let kept = "SELECT CAST(COUNT(*) AS SIGNED) FROM hapax_progress WHERE note = 'moved' AND generation = 1";
    assert_eq!(number(&mut session, kept).await, 1);
    let text = message(check(&mut session).await);
    assert!(text.contains("version 3, and this program knows up to version 1"), "{text}");
}

/// Goal: a migration that was ended in the middle of a step is finished by the next. Method: each of its statements
/// done by hand, with the version still the old one.
#[tokio::test]
async fn a_migration_that_was_ended_anywhere_is_finished_by_the_next() {
    let place = Place::new().await;
    let mut session = place.bare().await;
    let statements = pending_statements(LATER, 1, session.server().flavour);
    for done in 0..=statements.len() {
        ensure(&mut session).await.unwrap();
        for statement in &statements[..done] {
            run(&mut session, statement).await;
        }
        assert_eq!(migrate(&mut session, LATER).await.unwrap().after, 3, "after {done}");
        drop_all(&mut session).await.unwrap();
    }
}

/// Goal: a migration that fails says so, and the version tells how far it came. Method: a later step that cannot be
/// taken.
#[tokio::test]
async fn a_migration_that_fails_stops_at_its_step() {
    const BROKEN: Steps = &[
        LAYOUT[0],
        &["ALTER TABLE hapax_progress ADD COLUMN note text"],
        &["ALTER TABLE hapax_progress ADD COLUMN more no_such_type"],
    ];
    let place = Place::new().await;
    let mut session = place.connect().await;
    migrate(&mut session, BROKEN).await.unwrap_err();
    assert!(session.is_reusable());
    let text = message(check(&mut session).await);
    assert!(text.contains("version 2, and this program knows up to version 1"), "{text}");
}

/// Goal: each server gets the collation that compares byte by byte, and a database that is behind says so with both
/// versions. Method: pure.
#[test]
fn what_setup_must_do_is_said() {
    assert!(ddl(Flavour::MariaDb).contains("COLLATE utf8mb4_nopad_bin"));
    assert!(ddl(Flavour::Mysql).contains("COLLATE utf8mb4_0900_bin") && !ddl(Flavour::Mysql).contains('{'));
    assert_eq!(behind(1, 1), None);
    assert!(behind(0, 1).unwrap().contains("are not in this database"));
    assert!(behind(1, 3).unwrap().contains("of version 1 and this program needs version 3"));
}

/// Goal: a server that cannot tell two names apart gets none of our tables. Method: only the rule, with versions that no
/// test server has.
#[test]
fn a_server_that_is_too_old_is_refused() {
    let refused = |text: &str| refuse_old(Server::parse(text).unwrap(), "t".to_owned());
    for fit in ["8.0.17", "8.4.1", "10.11.14-MariaDB"] {
        refused(fit).unwrap();
    }
    for old in ["8.0.16", "5.7.44"] {
        let error = refused(old).unwrap_err();
        assert_eq!(error.code(), "HX4453", "{error}");
        assert!(error.to_string().contains(&format!("MySQL {old}")), "{error}");
    }
}
