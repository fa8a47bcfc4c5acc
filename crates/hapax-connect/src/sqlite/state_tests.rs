use hapax_engine::contract::state::{Disguise, Harness, every_clause};

use super::super::books::SqliteBooks;
use super::super::sample::{Place, id};
use super::*;

const WAIT: Duration = Duration::from_secs(20);

struct Files {
    place: Place,
}

impl Harness for Files {
    type Store = SqliteState;
    type Books = SqliteBooks;

    async fn empty(&mut self) {
        self.place = Place::new();
        self.place.connect();
    }

    async fn open(&self) -> SqliteState {
        SqliteState::open(&self.place.path(), WAIT).await.unwrap()
    }

    async fn books(&self) -> SqliteBooks {
        SqliteBooks::open(&self.place.path(), Open::Existing, WAIT).await.unwrap()
    }

    async fn disguise_holders(&self, holder: Disguise) {
        let sql = match holder {
            Disguise::Ended => "UPDATE hapax_leases SET started = started + 1",
            Disguise::Elsewhere => "UPDATE hapax_leases SET started = started + 1, machine = 'elsewhere'",
        };
        self.place.connect().execute_batch(sql).unwrap();
    }
}

/// Goal: a SQLite file is a state store. Method: every clause of the contract.
#[tokio::test(flavor = "multi_thread")]
async fn the_contract_of_a_state_store_holds() {
    every_clause(&mut Files { place: Place::new() }).await;
}

/// Goal: the store makes its own folder and file. Method: a path two folders deep that does not exist.
#[tokio::test]
async fn the_store_makes_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/state.db");
    let mut state = SqliteState::open(&path, WAIT).await.unwrap();
    assert_eq!(state.load_witness(&id("w")).await.unwrap(), None);
    assert!(path.exists());
    let below_a_file = SqliteState::open(&path.join("c/state.db"), WAIT).await.unwrap_err();
    assert_eq!(below_a_file.code(), "HX4001");
}
