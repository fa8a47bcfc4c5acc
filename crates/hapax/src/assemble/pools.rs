//! The process's own sessions with servers: one pool per database, shared by all lanes and workflows.
//!
//! Invariant: a pool is made once and lives as long as the process. Not here: how many sessions are taken when (the pool).

use std::sync::{Mutex, PoisonError};

use hapax_sql::pool::{Pool, Pooled};

use super::parts;
use crate::config::{Config, Target};

/// All pools of one kind of this process. A workflow whose limits differ has other sessions, for a session sets its
/// limits once.
pub(super) struct Pools<S: Pooled>(Mutex<Vec<Pool<S>>>);

#[cfg(feature = "postgres")]
pub(super) static POSTGRES: Pools<hapax_sql::postgres::Session> = Pools(Mutex::new(Vec::new()));
#[cfg(feature = "mysql")]
pub(super) static MYSQL: Pools<hapax_sql::mysql::Session> = Pools(Mutex::new(Vec::new()));

impl<S: Pooled<Url: Clone + PartialEq, Limits: Clone + PartialEq>> Pools<S> {
    /// The pool of the database at `url` with sessions of these limits; `connections` counts only if it is new.
    pub(super) fn pool(&self, url: &S::Url, limits: &S::Limits, connections: usize) -> Pool<S> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.iter().find(|pool| pool.url() == url && pool.limits() == limits) {
            return pool.clone();
        }
        let pool = Pool::new(url.clone(), limits.clone(), connections);
        pools.push(pool.clone());
        pool
    }

    /// All that there are.
    fn all(&self) -> Vec<Pool<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// All pools with PostgreSQL.
#[cfg(feature = "postgres")]
pub(crate) fn postgres_pools() -> Vec<hapax_sql::postgres::Pool> {
    POSTGRES.all()
}

/// Makes the pools that a configuration needs before the first is used: of several workflows with one database, the
/// largest number of `connections` counts.
pub(crate) fn make_pools(config: &Config) {
    let mut targets: Vec<&Target> = parts(config).map(|part| &part.sink.target).collect();
    targets.sort_by_key(|target| std::cmp::Reverse(connections(target)));
    for target in targets {
        match target {
            Target::Sqlite(_) => {}
            #[cfg(feature = "postgres")]
            Target::Postgres(postgres) => {
                POSTGRES.pool(&postgres.url, &postgres.limits(), postgres.connections);
            }
            #[cfg(feature = "mysql")]
            Target::Mysql(mysql) => {
                MYSQL.pool(&mysql.url, &mysql.limits(), mysql.connections);
            }
        }
    }
}

const fn connections(target: &Target) -> usize {
    match target {
        Target::Sqlite(_) => 0,
        #[cfg(feature = "postgres")]
        Target::Postgres(postgres) => postgres.connections,
        #[cfg(feature = "mysql")]
        Target::Mysql(mysql) => mysql.connections,
    }
}
