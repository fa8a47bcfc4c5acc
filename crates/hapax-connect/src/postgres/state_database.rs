//! A state store in a database of its own on the test server, for the contract of every sink over `progress: state`.

use std::time::Duration;

use hapax_sql::postgres::Limits;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::rig::texts;
use super::sample::{Place, run};
use super::state::PostgresState;
use crate::table::contract::state_store::StateStoreOfTest;
use crate::table::rig::block_on;

/// Every table that a worker writes.
const ALL_BUT_META: &str = "hapax.progress, hapax.epochs, hapax.dead_letters, hapax.adopted, hapax.leases, \
                            hapax.witness, hapax.notes, hapax.intents, hapax.pauses, hapax.suspects";

pub(crate) struct StateDatabase {
    place: Place,
}

impl StateDatabase {
    pub(crate) async fn new() -> Self {
        let place = Place::new().await;
        place.connect().await;
        Self { place }
    }
}

impl StateStoreOfTest for StateDatabase {
    type Store = PostgresState;

    fn empty(&mut self) {
        // One database for all clauses: making one takes longer than a clause.
        block_on(async { run(&self.place.bare().await, &format!("TRUNCATE {ALL_BUT_META}")).await });
    }

    fn open(&self) -> PostgresState {
        // In the test's own runtime: the sessions live as long as the one that they were opened in.
        let url = self.place.url();
        let open = PostgresState::open(&url, Limits::default(), Duration::from_millis(300));
        block_in_place(|| Handle::current().block_on(open)).expect("the store opens")
    }

    fn letters(&self) -> Vec<u64> {
        let sql = "SELECT position FROM hapax.dead_letters ORDER BY position::bigint";
        let found = block_on(async { texts(&self.place.bare().await, sql).await });
        found.iter().map(|text| text.parse().expect("an offset")).collect()
    }
}
