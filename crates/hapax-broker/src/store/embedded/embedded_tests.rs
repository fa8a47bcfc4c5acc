//! The contract over the embedded store, and what only this store must do.

use tempfile::TempDir;

use super::{Embedded, EmbeddedOptions};

async fn make() -> (TempDir, Embedded) {
    let directory = TempDir::new().unwrap();
    let store = Embedded::open(directory.path(), EmbeddedOptions::default()).unwrap();
    (directory, store)
}

mod contract {
    crate::store::contract::contract_tests!(super::make);
}
