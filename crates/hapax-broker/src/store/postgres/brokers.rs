//! Which brokers live: a lock that only a living session holds, and a lease by the database's clock.
//!
//! Invariant: nobody renews but who holds the lock on the number in the same session. Not here: who leads (`lead`).

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use hapax_sql::postgres::Session;
use tokio::sync::Mutex;

use super::link::{Failure, Link, run};
use super::{LEASE, PostgresStore};
use crate::model::{BrokerId, LiveBroker, PartitionId};
use crate::store::{Address, Brokers, StoreError};

/// How long we wait for our own number: a session of ours that was killed may still be there for a moment.
const NUMBER_WAIT: Duration = Duration::from_secs(6);
/// A renewal without an answer leaves time for another within the lease.
const RENEW_LIMIT: Duration = Duration::from_secs(2);
const NUMBER_ASK: Duration = Duration::from_millis(200);

/// Together with our number: which lock is our life. The same number is in `kafka.living`.
const LOCK: &str = "SELECT pg_try_advisory_lock(1214345336, $1)";

/// Only the incarnation that has the row renews it; a row that a crash of the server took away is written again.
const RENEW: &str = "INSERT INTO kafka.brokers AS b (id, incarnation, host, port, lease_until) \
     VALUES ($1, $2::text::uuid, $3, $4, clock_timestamp() + $5::bigint * interval '1 millisecond') \
     ON CONFLICT (id) DO UPDATE SET lease_until = EXCLUDED.lease_until WHERE b.incarnation = EXCLUDED.incarnation RETURNING b.id";

const JOIN: &str = "INSERT INTO kafka.brokers (id, incarnation, host, port, lease_until) \
     VALUES ($1, $2::text::uuid, $3, $4, clock_timestamp() + $5::bigint * interval '1 millisecond') \
     ON CONFLICT (id) DO UPDATE SET incarnation = EXCLUDED.incarnation, host = EXCLUDED.host, port = EXCLUDED.port, \
       lease_until = EXCLUDED.lease_until RETURNING id";

/// The age of the oldest transaction that keeps dead rows from being removed. Others' sessions are seen only by a role
/// that has pg_read_all_stats.
const OLDEST: &str = "SELECT max(age)::double precision FROM ( \
       SELECT extract(epoch FROM clock_timestamp() - xact_start) AS age FROM pg_stat_activity \
         WHERE datname = current_database() AND backend_type = 'client backend' AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) \
       UNION ALL SELECT extract(epoch FROM clock_timestamp() - prepared) FROM pg_prepared_xacts WHERE database = current_database()) a";

/// The session that is our life.
#[derive(Debug)]
pub(super) struct Keeper {
    link: Link,
    me: BrokerId,
    /// The session that holds the lock on our number.
    holder: RwLock<Option<Arc<Session>>>,
    address: Mutex<Option<Address>>,
}

impl Keeper {
    pub(super) fn new(link: Link, me: BrokerId) -> Self {
        Self { link, me, holder: RwLock::new(None), address: Mutex::new(None) }
    }

    /// Ends the session, and with it our lock.
    pub(super) async fn close(&self) {
        self.hold(None);
        self.link.close().await;
    }

    /// The session, with our number locked in it. `None`: another session has the number.
    async fn locked(&self) -> Result<Option<Arc<Session>>, StoreError> {
        let session = self.link.session().await?;
        if self.holder().is_some_and(|holder| Arc::ptr_eq(&holder, &session)) {
            return Ok(Some(session));
        }
        self.hold(None);
        let rows = run(&session, LOCK, &[&self.me.0]).await.map_err(Failure::of_a_read)?;
        if !rows.first().is_some_and(|row| row.get(0)) {
            return Ok(None);
        }
        self.hold(Some(&session));
        Ok(Some(session))
    }

    fn holder(&self) -> Option<Arc<Session>> {
        self.holder.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hold(&self, session: Option<&Arc<Session>>) {
        *self.holder.write().unwrap_or_else(PoisonError::into_inner) = session.cloned();
    }

    async fn write(
        &self,
        session: &Session,
        sql: &str,
        store: &PostgresStore,
        address: &Address,
    ) -> Result<bool, StoreError> {
        let lease = i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX);
        let incarnation = store.incarnation.to_string();
        let rows =
            run(session, sql, &[&self.me.0, &incarnation, &address.host, &i32::from(address.port), &lease]).await;
        rows.map(|rows| !rows.is_empty()).map_err(Failure::of_a_write)
    }
}

impl Brokers for PostgresStore {
    fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    fn me(&self) -> BrokerId {
        self.me
    }

    async fn join(&self, address: Address) -> Result<(), StoreError> {
        let begun = Instant::now();
        let session = loop {
            match self.keeper.locked().await? {
                Some(session) => break session,
                None if begun.elapsed() > NUMBER_WAIT => return Err(StoreError::Fenced),
                None => tokio::time::sleep(NUMBER_ASK).await,
            }
        };
        *self.keeper.address.lock().await = Some(address.clone());
        self.keeper.write(&session, JOIN, self, &address).await?;
        Ok(())
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let address = self.keeper.address.lock().await.clone();
        let address = address.ok_or_else(|| StoreError::Away("this broker has not joined".to_owned()))?;
        let before = self.keeper.holder();
        let Some(session) = self.keeper.locked().await? else {
            return self.who_has_our_number().await;
        };
        let renewal = self.keeper.write(&session, RENEW, self, &address);
        match tokio::time::timeout(RENEW_LIMIT, renewal).await {
            Ok(Ok(false)) => Err(StoreError::Fenced),
            Ok(Ok(true)) if before.is_none_or(|before| !Arc::ptr_eq(&before, &session)) => {
                Err(StoreError::InDoubt("the session that holds our number was lost, and is back".to_owned()))
            }
            Ok(renewed) => renewed.map(drop),
            Err(_) => {
                // Perhaps only this connection is dead: the next renewal opens another.
                session.spoil();
                Err(StoreError::Away("no answer to the renewal of the lease".to_owned()))
            }
        }
    }

    fn lease(&self) -> Option<Duration> {
        Some(LEASE)
    }

    fn attached(&self) -> bool {
        self.keeper.holder().is_some_and(|session| session.is_reusable())
    }

    async fn brokers(&self) -> Result<Vec<LiveBroker>, StoreError> {
        let sql = "SELECT id, host, port FROM kafka.brokers WHERE id = ANY (kafka.living()) ORDER BY id";
        let rows = self.keeper.link.read(sql, &[]).await?;
        let live = |row: &hapax_sql::postgres::tokio_postgres::Row| LiveBroker {
            id: BrokerId(row.get(0)),
            host: row.get(1),
            port: u16::try_from(row.get::<_, i32>(2)).unwrap_or(0),
        };
        Ok(rows.iter().map(live).collect())
    }

    async fn leaders(&self) -> Result<Vec<(PartitionId, Option<BrokerId>, i32)>, StoreError> {
        let sql = "SELECT id, leader, leader_epoch FROM kafka.partitions ORDER BY id";
        let rows = self.keeper.link.read(sql, &[]).await?;
        let leader = |row: &hapax_sql::postgres::tokio_postgres::Row| {
            (PartitionId(row.get(0)), row.get::<_, Option<i32>>(1).map(BrokerId), row.get(2))
        };
        Ok(rows.iter().map(leader).collect())
    }

    async fn give_back(&self) -> Result<(), StoreError> {
        self.keeper.link.write("SELECT kafka.give_back($1)", &[&self.me.0]).await?;
        Ok(())
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.give_back().await?;
        let sql = "DELETE FROM kafka.brokers WHERE id = $1 AND incarnation = $2::text::uuid";
        self.keeper.link.write(sql, &[&self.me.0, &self.incarnation.to_string()]).await?;
        *self.keeper.address.lock().await = None;
        self.keeper.close().await;
        Ok(())
    }

    async fn oldest_transaction(&self) -> Result<Option<Duration>, StoreError> {
        let rows = self.side.read(OLDEST, &[]).await?;
        let seconds: Option<f64> = rows.first().and_then(|row| row.get(0));
        Ok(seconds.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 1e9))))
    }
}

impl PostgresStore {
    /// Our number is locked by another session: by our own old one, which ends soon, or by another process?
    async fn who_has_our_number(&self) -> Result<(), StoreError> {
        let sql = "SELECT incarnation = $2::text::uuid FROM kafka.brokers WHERE id = $1";
        let rows = self.keeper.link.read(sql, &[&self.me.0, &self.incarnation.to_string()]).await?;
        if rows.first().is_none_or(|row| row.get(0)) {
            return Err(StoreError::Away(format!("an older session still holds the number {}", self.me)));
        }
        Err(StoreError::Fenced)
    }
}
