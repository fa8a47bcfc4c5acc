//! What a workflow says about its MySQL or MariaDB database and table.

use std::time::Duration;

use hapax_sql::mysql::{DEFAULT_CONNECTIONS, Limits, MysqlUrl, Pool};

pub use crate::table::config::{Columns, Deletes, Strictness, TableConfig, UniqueKeys};

/// How many rows one statement carries unless the workflow says otherwise.
pub const ROWS_PER_STATEMENT: usize = 1_000;
/// How long to wait for a connection of the pool.
const POOL_PATIENCE: Duration = Duration::from_secs(60);
/// How long a claim waits for the transaction of another worker unless the workflow says otherwise.
pub const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);

/// A table of a MySQL or MariaDB database as a target.
#[derive(Debug, Clone)]
pub struct MysqlSinkConfig {
    /// The database.
    pub url: MysqlUrl,
    /// The table: `orders`, or `sales.orders`; each part as the catalogue spells it, in backticks if it has a dot.
    pub table: TableConfig,
    /// The limits that every session sets for itself.
    pub limits: Limits,
    /// How long a claim waits for the transaction of a worker that is still at it (`claimTimeout`) before it ends the
    /// session of one that is ours.
    pub claim_timeout: Duration,
    /// How many sessions the pool of this target may open.
    pub connections: usize,
    /// How long a delivery waits for one of them.
    pub patience: Duration,
    /// How many rows one statement carries at most; at least 1.
    pub rows_per_statement: usize,
}

impl MysqlSinkConfig {
    /// The table `table` of the database at `url`, with the defaults for everything else.
    #[must_use]
    pub fn new(url: MysqlUrl, table: &str) -> Self {
        Self {
            url,
            table: TableConfig::new(table),
            limits: Limits::default(),
            claim_timeout: CLAIM_TIMEOUT,
            connections: DEFAULT_CONNECTIONS,
            patience: POOL_PATIENCE,
            rows_per_statement: ROWS_PER_STATEMENT,
        }
    }

    /// The pool that all lanes into this target share. Connects nowhere yet.
    #[must_use]
    pub fn pool(&self) -> Pool {
        Pool::new(self.url.clone(), self.limits.clone(), self.connections)
    }

    /// The target as messages name it.
    #[must_use]
    pub fn target_name(&self) -> String {
        format!("table {} of MySQL database {}", self.table.name, self.url.target())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the defaults are those that the reference states, and no password is ever shown.
    #[test]
    fn the_defaults_are_the_documented_ones() {
        let url = MysqlUrl::parse("mysql://me:secret@db.example/shop").unwrap();
        let config = MysqlSinkConfig::new(url, "sales.orders");
        assert_eq!((config.rows_per_statement, config.connections), (1_000, 8));
        assert_eq!(config.claim_timeout, Duration::from_secs(10));
        let shown = format!("{} {config:?}", config.target_name());
        assert!(shown.contains("sales.orders") && !shown.contains("secret"), "{shown}");
    }
}
