//! The process's own sessions with PostgreSQL: one pool per database, shared by all lanes and workflows.
//!
//! Invariant: a pool is made once and lives as long as the process. Not here: how many sessions are taken when (the pool).

use std::sync::{Mutex, PoisonError};

use hapax_sql::postgres::{Limits, Pool, PostgresUrl};

use super::parts;
use crate::config::{Config, Target};

/// All pools of this process. A workflow whose limits differ has other sessions, for a session sets its limits once.
static POOLS: Mutex<Vec<Pool>> = Mutex::new(Vec::new());

/// The pool of the database at `url` with sessions of these limits; `connections` counts only if it is new.
pub(super) fn pool(url: &PostgresUrl, limits: &Limits, connections: usize) -> Pool {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.iter().find(|pool| pool.url() == url && pool.limits() == limits) {
        return pool.clone();
    }
    let pool = Pool::new(url.clone(), limits.clone(), connections);
    pools.push(pool.clone());
    pool
}

/// All pools that there are.
pub(crate) fn all_pools() -> Vec<Pool> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Makes the pools that a configuration needs before the first is used: of several workflows with one database, the
/// largest number of `connections` counts.
pub(crate) fn make_pools(config: &Config) {
    for part in parts(config) {
        let Target::Postgres(postgres) = &part.sink.target else { continue };
        let same =
            |other: &&crate::config::PostgresSink| other.url == postgres.url && other.limits() == postgres.limits();
        let all = parts(config).filter_map(|part| match &part.sink.target {
            Target::Postgres(postgres) => Some(postgres),
            Target::Sqlite(_) => None,
        });
        let connections = all.filter(same).map(|other| other.connections).max().unwrap_or(postgres.connections);
        pool(&postgres.url, &postgres.limits(), connections);
    }
}
