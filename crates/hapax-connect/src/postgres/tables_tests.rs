use hapax_model::epoch::Epoch;

use super::super::progress;
use super::super::sample::{Place, id, number, run, take};
use super::*;

fn message(result: Result<impl std::fmt::Debug, SinkError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code(), "HX4015", "{error}");
    error.to_string()
}

/// Goal: making the tables twice changes nothing, and the id is made once. Method: ensure in each role, again.
#[tokio::test]
async fn the_tables_are_made_once() {
    let place = Place::new().await;
    let session = place.bare().await;
    assert_eq!(database_id(&session).await.unwrap(), None);
    let first = ensure(&session, Role::Target).await.unwrap();
    assert_eq!((first.before, first.after), (Versions::default(), Versions { target: 1, state: 0 }));
    assert_eq!(first.database.len(), 32);
    assert!(!has_table(&session, "leases").await.unwrap());
    let state = ensure(&session, Role::State).await.unwrap();
    assert_eq!((state.before.state, state.after.state, &state.database), (0, 1, &first.database));
    assert!(has_table(&session, "leases").await.unwrap());
    let again = ensure(&session, Role::Target).await.unwrap();
    assert_eq!((again.before, again.after), (state.after, state.after));
    assert_eq!(database_id(&session).await.unwrap(), Some(first.database));
}

/// Goal: what `setup --sql` prints makes what `setup` makes. Method: run the printed text by hand, then check.
#[tokio::test]
async fn the_printed_statements_make_the_tables() {
    for role in [Role::Target, Role::State] {
        let place = Place::new().await;
        let session = place.bare().await;
        run(&session, &ddl(role)).await;
        assert_eq!(check(&session, role).await.unwrap().len(), 32);
    }
    assert!(ddl(Role::State).contains("hapax.intents") && !ddl(Role::Target).contains("hapax.intents"));
}

/// Goal: several setups at once are safe. Method: eight sessions, both roles.
#[tokio::test(flavor = "multi_thread")]
async fn several_setups_make_the_tables_at_once() {
    let place = Place::new().await;
    let mut makers = Vec::new();
    for n in 0..8 {
        let session = place.bare().await;
        let role = if n % 2 == 0 { Role::Target } else { Role::State };
        makers.push(tokio::spawn(async move { ensure(&session, role).await.unwrap() }));
    }
    let mut made = Vec::new();
    for maker in makers {
        made.push(maker.await.unwrap());
    }
    assert!(made.windows(2).all(|pair| pair[0].database == pair[1].database), "{made:?}");
    assert_eq!(made.iter().filter(|made| made.before.target == 0).count(), 1, "one made them, the others found them");
    assert_eq!(made.iter().filter(|made| made.before.state == 0 && made.after.state == 1).count(), 1);
}

/// Goal: a run never makes tables, and says who does. Method: check in each role where they are missing.
#[tokio::test]
async fn missing_tables_are_refused_with_the_cure() {
    let place = Place::new().await;
    let session = place.bare().await;
    let missing = message(check(&session, Role::Target).await);
    assert!(missing.contains("run `hapax setup`"), "{missing}");
    assert!(!has_table(&session, "meta").await.unwrap());
    ensure(&session, Role::Target).await.unwrap();
    check(&session, Role::Target).await.unwrap();
    let missing = message(check(&session, Role::State).await);
    assert!(missing.contains("state store") && missing.contains("`hapax setup`"), "{missing}");
}

/// Goal: a program never uses tables that it does not understand. Method: newer ones of each role, and no number.
#[tokio::test]
async fn newer_tables_are_refused_with_both_versions() {
    let place = Place::new().await;
    let session = place.connect().await;
    for (name, version, expected) in [
        ("version", "7", "version 7, and this program knows up to version 1"),
        ("state_version", "3", "version 3, and this program knows up to version 1"),
        ("version", "x", "no number"),
    ] {
        run(&session, &format!("UPDATE hapax.meta SET value = '{version}' WHERE name = '{name}'")).await;
        for result in [check(&session, Role::Target).await.map(|_| ()), ensure(&session, Role::State).await.map(|_| ())]
        {
            let text = message(result);
            assert!(text.contains(expected), "{text}");
        }
        run(&session, &format!("UPDATE hapax.meta SET value = '1' WHERE name = '{name}'")).await;
    }
    check(&session, Role::State).await.unwrap();
}

/// Goal: progress that was lost does not start again from nothing in silence. Method: drop one table by hand.
#[tokio::test]
async fn a_missing_table_of_ours_is_refused() {
    let place = Place::new().await;
    let session = place.connect().await;
    run(&session, "ALTER TABLE hapax.progress SET UNLOGGED").await;
    let text = message(check(&session, Role::Target).await);
    assert!(text.contains("ALTER TABLE hapax.progress SET LOGGED"), "{text}");
    run(&session, "DROP TABLE hapax.progress").await;
    for role in [Role::Target, Role::State] {
        let text = message(ensure(&session, role).await);
        assert!(text.contains("hapax.progress is gone"), "{text}");
    }
    let text = message(progress::claim(&session, &id("w"), &take(0)).await);
    assert!(text.contains("a table of ours is gone"), "{text}");
}

/// Goal: a stranger's table of our name is not taken for ours, and nothing is left half made. Method: one before setup.
#[tokio::test]
async fn a_table_that_is_not_ours_is_left_alone() {
    let place = Place::new().await;
    let session = place.bare().await;
    run(&session, "CREATE SCHEMA hapax; CREATE TABLE hapax.epochs (mine int)").await;
    let error = ensure(&session, Role::Target).await.unwrap_err();
    assert_eq!(error.code(), "HX4301", "{error}");
    assert!(!has_table(&session, "meta").await.unwrap());
    run(&session, "ALTER TABLE hapax.epochs RENAME TO other").await;
    ensure(&session, Role::Target).await.unwrap();
}

/// Goal: a database that cannot hold every text is refused at setup. Method: a LATIN1 database.
#[tokio::test]
async fn a_database_of_another_encoding_is_refused() {
    let place = Place::with("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'").await;
    let error = ensure(&place.bare().await, Role::Target).await.unwrap_err();
    assert_eq!(error.code(), "HX4300");
    assert!(error.to_string().contains("LATIN1"), "{error}");
}

/// Goal: nothing of ours stays, and nothing of the user's goes. Method: drop all beside a user's own things, twice.
#[tokio::test]
async fn dropping_takes_ours_and_leaves_the_users() {
    let place = Place::new().await;
    let session = place.connect().await;
    run(&session, "CREATE TABLE hapax.orders (id int); CREATE TABLE orders (id int)").await;
    drop_all(&session).await.unwrap();
    let left = "SELECT count(*) FROM pg_class WHERE relnamespace = 'hapax'::regnamespace AND relkind = 'r'";
    assert_eq!(number(&session, left).await, 1);
    run(&session, "DROP TABLE hapax.orders").await;
    drop_all(&session).await.unwrap();
    assert_eq!(number(&session, "SELECT count(*) FROM pg_namespace WHERE nspname = 'hapax'").await, 0);
    drop_all(&session).await.unwrap();
    assert_eq!(number(&session, "SELECT count(*) FROM orders").await, 0);
    ensure(&session, Role::Target).await.unwrap();
}

/// What a later program might have: one more step for each role.
const LATER: Layout = Layout {
    target: &[LAYOUT.target[0], "ALTER TABLE hapax.progress ADD COLUMN note text NOT NULL DEFAULT 'moved';"],
    state: &[
        LAYOUT.state[0],
        "CREATE INDEX notes_states ON hapax.notes (state);",
        "ALTER TABLE hapax.notes ADD COLUMN extra bigint;",
    ],
};

/// Goal: older tables are brought forward with their data, once, and the older program then keeps away from them.
/// Method: version 1 with progress in it, a later layout from several setups at once, then this program's check.
#[tokio::test(flavor = "multi_thread")]
async fn older_tables_are_migrated_with_their_data() {
    let place = Place::new().await;
    let session = place.connect().await;
    let before = progress::claim(&session, &id("w"), &take(5)).await.unwrap();
    let mut setups = Vec::new();
    for _ in 0..4 {
        let session = place.bare().await;
        setups.push(tokio::spawn(async move { migrate(&session, Role::State, LATER).await.unwrap() }));
    }
    let mut moved = 0;
    for setup in setups {
        let made = setup.await.unwrap();
        assert_eq!(made.after, Versions { target: 2, state: 3 });
        moved += usize::from(made.before == Versions { target: 1, state: 1 });
    }
    assert_eq!(moved, 1, "the steps were taken once");
    assert_eq!(number(&session, "SELECT count(*) FROM hapax.progress WHERE note = 'moved'").await, 1);
    let row = session.client().query_one("SELECT generation, epoch FROM hapax.progress", &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (stored_of(before.generation.0), 0));
    assert_eq!(before.epoch, Epoch(0));
    let text = message(check(&session, Role::Target).await);
    assert!(text.contains("version 2, and this program knows up to version 1"), "{text}");
}

fn stored_of(count: u64) -> i64 {
    crate::table::kept::stored(count)
}

/// Goal: a migration that fails leaves the old version whole. Method: a later step that cannot be taken.
#[tokio::test]
async fn a_migration_is_all_or_nothing() {
    const BROKEN: Layout = Layout {
        target: &[LAYOUT.target[0], "ALTER TABLE hapax.progress ADD COLUMN note text;", "SELECT no_such_function();"],
        state: LAYOUT.state,
    };
    let place = Place::new().await;
    let session = place.connect().await;
    migrate(&session, Role::Target, BROKEN).await.unwrap_err();
    assert!(session.is_reusable());
    let columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'hapax.progress'::regclass AND attname = 'note'";
    assert_eq!(number(&session, columns).await, 0);
    check(&session, Role::State).await.unwrap();
}

/// Goal: a database that is behind says so, with both versions. Method: pure, over what might be present.
#[test]
fn what_setup_must_do_first_is_said() {
    let at = |target, state| Present { versions: Versions { target, state }, ..Present::default() };
    assert_eq!(outdated(&at(1, 0), Role::Target), None);
    assert_eq!(outdated(&at(1, 1), Role::State), None);
    assert!(outdated(&at(0, 0), Role::Target).unwrap().contains("are not in this database"));
    assert!(outdated(&at(1, 0), Role::State).unwrap().contains("the tables of a state store"));
    assert!(behind("our tables", 1, 3).unwrap().contains("of version 1 and this program needs version 3"));
}
