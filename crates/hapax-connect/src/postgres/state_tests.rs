use hapax_engine::contract::state::{Disguise, Harness, every_clause};

use super::super::books::PostgresBooks;
use super::super::sample::{Place, id, next, run, take};
use super::*;

const CLAIM: Duration = Duration::from_millis(300);

struct Databases {
    place: Place,
}

impl Harness for Databases {
    type Store = PostgresState;
    type Books = PostgresBooks;

    async fn empty(&mut self) {
        let session = self.place.connect().await;
        tables::drop_all(&session).await.unwrap();
        tables::ensure(&session, Role::State).await.unwrap();
    }

    async fn open(&self) -> PostgresState {
        PostgresState::open(&self.place.url(), Limits::default(), CLAIM).await.unwrap()
    }

    async fn books(&self) -> PostgresBooks {
        PostgresBooks::open(&self.place.url(), Limits::default()).await.unwrap()
    }

    async fn disguise_holders(&self, holder: Disguise) {
        let sql = match holder {
            Disguise::Ended => "UPDATE hapax.leases SET started = started + 1",
            Disguise::Elsewhere => "UPDATE hapax.leases SET started = started + 1, machine = 'elsewhere'",
        };
        run(&self.place.bare().await, sql).await;
    }
}

/// Goal: a PostgreSQL database is a state store. Method: every clause of the contract.
#[tokio::test(flavor = "multi_thread")]
async fn the_contract_of_a_state_store_holds() {
    every_clause(&mut Databases { place: Place::new().await }).await;
}

/// Goal: a state store is never made by a run. Method: open a database without our tables, and one with half of them.
#[tokio::test]
async fn a_store_without_tables_is_refused() {
    let place = Place::new().await;
    let open = || async { PostgresState::open(&place.url(), Limits::default(), CLAIM).await };
    let refused = open().await.unwrap_err();
    assert!(refused.code() == "HX4015" && refused.to_string().contains("hapax setup"), "{refused}");
    tables::ensure(&place.bare().await, Role::Target).await.unwrap();
    let refused = open().await.unwrap_err().to_string();
    assert!(refused.contains("state store"), "{refused}");
    tables::ensure(&place.bare().await, Role::State).await.unwrap();
    assert!(!open().await.unwrap().paused("w").await.unwrap());
}

/// Goal: a store outlives its sessions. Method: the server ends all of them between two calls.
#[tokio::test]
async fn a_store_connects_again() {
    let place = Place::new().await;
    let other = place.connect().await;
    let mut state = PostgresState::open(&place.url(), Limits::default(), CLAIM).await.unwrap();
    assert_eq!(state.lease(&id("w"), Duration::from_secs(9), TakeOver::Never).await.unwrap(), Lease::Ours);
    let end = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    run(&other, end).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(state.lease(&id("w"), Duration::from_secs(9), TakeOver::Never).await.unwrap(), Lease::Ours);
}

/// Goal: a server that takes no writes for a while, as in a failover, is waited out with new sessions. Method: a
/// read-only database, then a writable one again.
#[tokio::test]
async fn a_store_that_takes_no_writes_is_tried_again() {
    let place = Place::new().await;
    let other = place.connect().await;
    let mode = |value: &str| {
        format!("ALTER DATABASE \"{}\" SET default_transaction_read_only = {value}", place.url().database().unwrap())
    };
    run(&other, &mode("on")).await;
    let mut state = PostgresState::open(&place.url(), Limits::default(), CLAIM).await.unwrap();
    let error = state.claim(&id("w"), &take(0)).await.unwrap_err();
    assert_eq!((error.code(), error.reaction()), ("HX4002", hapax_engine::sink::Reaction::Retry), "{error}");
    let error = state.lease(&id("w"), Duration::from_secs(9), TakeOver::Never).await.unwrap_err().to_string();
    assert!(error.contains("25006"), "{error}");
    run(&other, &mode("off")).await;
    assert_eq!(state.claim(&id("w"), &take(0)).await.unwrap().generation.0, 1);
    assert_eq!(state.lease(&id("w"), Duration::from_secs(9), TakeOver::Never).await.unwrap(), Lease::Ours);
}

/// Goal: an unreachable store, a wrong user and a missing database are told apart. Method: each, with its code.
#[tokio::test]
async fn what_keeps_a_store_from_opening_is_said() {
    let place = Place::new().await;
    let nowhere = PostgresUrl::parse("postgres://a:secret@127.0.0.1:1/b").unwrap();
    for (url, code) in [
        (nowhere, "HX4001"),
        (place.url_of("nobody_of_this_name"), "HX4204"),
        (place.url().with_database("no_such_database"), "HX4203"),
    ] {
        let error = PostgresState::open(&url, Limits::default(), CLAIM).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

/// Goal: a worker that was stopped in its transaction does not keep its successor out. Method: a save that is left
/// open; the claim of another store ends that session, and the save is not there.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_ends_the_session_of_a_stopped_worker() {
    let place = Place::new().await;
    let zombie = place.connect().await;
    let was = progress::claim(&zombie, &id("w"), &take(0)).await.unwrap();
    zombie.begin().await.unwrap();
    progress::swap(&zombie, &id("w"), &was, &next(&was)).await.unwrap();
    let mut state = PostgresState::open(&place.url(), Limits::default(), CLAIM).await.unwrap();
    let owner = state.claim(&id("w"), &take(0)).await.unwrap();
    assert_eq!((owner.generation.0, owner.epoch), (2, Epoch(0)));
    assert!(zombie.client().simple_query("SELECT 1").await.is_err(), "its session has ended");
}

/// Goal: a stranger's lock is named, not broken. Method: a session without our name locks the row.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_names_a_stranger_that_blocks_it() {
    let place = Place::new().await;
    let stranger = place.connect().await;
    progress::claim(&stranger, &id("w"), &take(0)).await.unwrap();
    run(&stranger, "SET application_name = 'psql'; BEGIN; LOCK TABLE hapax.progress").await;
    let mut state = PostgresState::open(&place.url(), Limits::default(), CLAIM).await.unwrap();
    let error = state.claim(&id("w"), &take(0)).await.unwrap_err();
    let SinkError::Locked { holder, .. } = &error else { panic!("{error}") };
    assert!(holder.contains("\"psql\"") && holder.contains("not ours"), "{holder}");
    run(&stranger, "COMMIT").await;
    assert_eq!(state.claim(&id("w"), &take(0)).await.unwrap().generation.0, 2);
}
