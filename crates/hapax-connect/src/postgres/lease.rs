//! Leases, by the clock of the database: two machines whose clocks differ agree about when one ends.
//!
//! Reads and writes `hapax.leases`. Every statement is a transaction of its own, and takes a lease only from the holder
//! that it names. Not here: safety; a lease is manners, the fence is in `progress`.

use std::time::Duration;

use hapax_engine::books::StoredLease;
use hapax_engine::sink::SinkError;
use hapax_engine::state::{Lease, TakeOver};
use hapax_model::position::DeliveryId;
use hapax_sql::postgres::Session;
use hapax_sql::process::{Life, ProcessId};

use super::ask;
use super::error::During;
use super::tables::has_table;
use crate::table::kept::{now_ms, stored};

/// The database's clock in milliseconds since 1970; read when the statement gets there, not when it began to wait.
macro_rules! clock {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}

/// How often a lease is tried for that was free for a moment and then another's again.
const TRIES: u32 = 5;

/// Who we are to those who want our leases.
#[derive(Debug)]
pub(super) struct Holder {
    /// For people.
    pub(super) name: String,
    /// Random: two stores opened by one process are two holders.
    pub(super) token: String,
    /// So that others need not wait for the lease of a process that has ended.
    pub(super) process: ProcessId,
}

/// Whom a lease may be taken from, besides ourselves and whoever let it expire.
enum From<'a> {
    Nobody,
    /// The holder with this token: its process has ended.
    Ended(&'a str),
    Anybody,
}

/// Takes or renews the lease if it is free, expired, ours, or its holder has ended.
pub(super) async fn lease(
    session: &Session,
    id: &DeliveryId,
    ours: &Holder,
    ttl: Duration,
    take_over: TakeOver,
) -> Result<Lease, SinkError> {
    let mut ended: Option<String> = None;
    let mut held = Lease::Held { by: "another worker".to_owned(), remaining: ttl };
    for _ in 0..TRIES {
        let from = match (take_over, ended.as_deref()) {
            (TakeOver::Now, _) => From::Anybody,
            (TakeOver::Never, Some(token)) => From::Ended(token),
            (TakeOver::Never, None) => From::Nobody,
        };
        if take(session, id, ours, ttl, &from).await? {
            return Ok(Lease::Ours);
        }
        let Some(found) = stored_lease(session, id).await? else { continue };
        held = Lease::Held { by: found.by, remaining: found.remaining };
        match found.process.life() {
            Life::Ended => ended = Some(found.token),
            Life::Alive | Life::Unknown => return Ok(held),
        }
    }
    Ok(held)
}

async fn take(
    session: &Session,
    id: &DeliveryId,
    ours: &Holder,
    ttl: Duration,
    from: &From<'_>,
) -> Result<bool, SinkError> {
    let sql = concat!(
        "INSERT INTO hapax.leases AS l (workflow, sink, lane, holder, token, expires_at_ms, machine, pid, started) \
         VALUES ($1, $2, $3, $4, $5, ",
        clock!(),
        " + $6, $7, $8, $9) ON CONFLICT (workflow, sink, lane) DO UPDATE SET holder = excluded.holder, \
         token = excluded.token, expires_at_ms = ",
        clock!(),
        " + $6, machine = excluded.machine, pid = excluded.pid, started = excluded.started \
         WHERE l.token = excluded.token OR l.expires_at_ms <= ",
        clock!(),
        " OR l.token = $10 OR $11"
    );
    let lasts = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    let (pid, started) = (i64::from(ours.process.pid), stored(ours.process.started));
    let (ended, anybody): (Option<&str>, bool) = match from {
        From::Nobody => (None, false),
        From::Ended(token) => (Some(token), false),
        From::Anybody => (None, true),
    };
    let values: ask::Values<'_> = &[
        &id.workflow,
        &id.sink,
        &id.lane,
        &ours.name,
        &ours.token,
        &lasts,
        &ours.process.machine,
        &pid,
        &started,
        &ended,
        &anybody,
    ];
    Ok(ask::execute(session, During::Look, sql, values).await? == 1)
}

struct Found {
    token: String,
    by: String,
    remaining: Duration,
    process: ProcessId,
}

async fn stored_lease(session: &Session, id: &DeliveryId) -> Result<Option<Found>, SinkError> {
    let sql = concat!(
        "SELECT token, holder, greatest(expires_at_ms - ",
        clock!(),
        ", 0), machine, pid, started FROM hapax.leases WHERE workflow = $1 AND sink = $2 AND lane = $3"
    );
    let found = ask::optional(session, During::Look, sql, &[&id.workflow, &id.sink, &id.lane]).await?;
    let Some(row) = found else { return Ok(None) };
    let pid = u32::try_from(ask::unsigned(session, &row, 4)?).unwrap_or(0);
    Ok(Some(Found {
        token: ask::get(session, &row, 0)?,
        by: ask::get(session, &row, 1)?,
        remaining: Duration::from_millis(ask::unsigned(session, &row, 2)?),
        process: ProcessId { machine: ask::get(session, &row, 3)?, pid, started: ask::unsigned(session, &row, 5)? },
    }))
}

/// Gives the lease back, if it is ours.
pub(super) async fn release(session: &Session, id: &DeliveryId, ours: &Holder) -> Result<(), SinkError> {
    let sql = "DELETE FROM hapax.leases WHERE workflow = $1 AND sink = $2 AND lane = $3 AND token = $4";
    ask::execute(session, During::Look, sql, &[&id.workflow, &id.sink, &id.lane, &ours.token]).await?;
    Ok(())
}

/// All leases, expired ones too. Their ends are told by this machine's clock, so that whoever asks can compare.
pub(super) async fn leases(session: &Session) -> Result<Vec<StoredLease>, SinkError> {
    if !has_table(session, "leases").await? {
        return Ok(Vec::new());
    }
    let sql = concat!(
        "SELECT workflow, sink, lane, holder, expires_at_ms - ",
        clock!(),
        " FROM hapax.leases ORDER BY workflow, sink, lane"
    );
    let rows = ask::rows(session, During::Look, sql, &[]).await?;
    let now = now_ms();
    rows.iter()
        .map(|row| {
            let remaining: i64 = ask::get(session, row, 4)?;
            Ok(StoredLease {
                id: ask::delivery(session, row)?,
                holder: ask::get(session, row, 3)?,
                expires_at_ms: now.saturating_add_signed(remaining),
            })
        })
        .collect()
}
