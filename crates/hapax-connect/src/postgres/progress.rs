//! The progress row: looked at, claimed, and swapped inside the epoch's own transaction.
//!
//! Reads and writes `hapax.progress` and `hapax.epochs`. Only [`claim`] has a transaction of its own; the others run
//! inside the caller's. Invariant: a swap changes exactly the row that the worker last saw. Not here: `letters`.

use std::pin::pin;
use std::time::Duration;

use hapax_engine::sink::{Claim, EpochRecord, SinkError};
use hapax_model::contract::Contract;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::fault::{Bug, planted, point};
use hapax_model::ledger::Totals;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Progress;
use hapax_sql::postgres::{Blocker, Pool, Session, end_blockers};

use super::ask;
use super::error::During;
use super::plain;
use super::tables::{damaged, has_table};
use crate::table::admin::adopted_away;
use crate::table::kept::{now_ms, stored, stored_totals};
use crate::table::own_row::OwnRow as _;
use crate::table::stored::{StoredProgress, fenced_by};

/// How many epochs of a delivery the epoch log keeps.
pub const EPOCHS_KEPT: u64 = 10_000;
/// Old epochs are removed every so many epochs, so that most commits pay nothing for it.
const TRIM_EVERY: u64 = 1_000;

/// The columns that `OwnRow::progress` reads, in its order.
macro_rules! columns {
    () => {
        "generation, epoch, position, incarnation, contract, snapshot, session, read, delivered, filtered, dead, rows"
    };
}

/// Reads progress without fencing; none if there is no such delivery, or none of our tables.
///
/// # Errors
/// If the database cannot be read, or what it holds is damaged.
pub async fn look(session: &Session, id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
    if !has_table(session, "progress").await? {
        return Ok(None);
    }
    stored_progress(session, During::Look, id).await
}

async fn stored_progress(session: &Session, during: During, id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
    let sql = concat!("SELECT ", columns!(), " FROM hapax.progress WHERE workflow = $1 AND sink = $2 AND lane = $3");
    let found = ask::optional(session, during, sql, &[&id.workflow, &id.sink, &id.lane]).await?;
    found.map(|row| check(session, id, ask::ours(session, &row).progress(0)?)).transpose()
}

/// Progress of all other deliveries in this database.
///
/// # Errors
/// If the database cannot be read, or what it holds is damaged.
pub async fn others(session: &Session, id: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
    let all = all(session).await?;
    Ok(all.into_iter().map(|(other, progress, _)| (other, progress)).filter(|(other, _)| other != id).collect())
}

/// All deliveries in this database, with the time of their last commit or claim.
pub(crate) async fn all(session: &Session) -> Result<Vec<(DeliveryId, Progress, u64)>, SinkError> {
    if !has_table(session, "progress").await? {
        return Ok(Vec::new());
    }
    let sql = concat!(
        "SELECT workflow, sink, lane, updated_at_ms, ",
        columns!(),
        " FROM hapax.progress ORDER BY workflow, sink, lane"
    );
    let rows = ask::rows(session, During::Look, sql, &[]).await?;
    rows.iter()
        .map(|row| {
            let id = ask::delivery(session, row)?;
            let progress = check(session, &id, ask::ours(session, row).progress(4)?)?;
            Ok((id, progress, ask::unsigned(session, row, 3)?))
        })
        .collect()
}

/// Takes the delivery, or takes it back after doubt: raises the generation, *then* reads progress. A transaction of
/// its own. If the future is dropped, the session must not be used again.
///
/// # Errors
/// [`SinkError::FencedOut`] if a reclaim finds another owner, or the delivery was adopted by another workflow;
/// else what the database said.
pub async fn claim(session: &Session, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
    claim_within(session, id, claim, None).await
}

async fn claim_within(
    session: &Session,
    id: &DeliveryId,
    claim: &Claim,
    limit: Option<Duration>,
) -> Result<Progress, SinkError> {
    ask::begin(session, During::Claim).await?;
    let raised = match wait_for(session, limit).await {
        Ok(()) => raise(session, id, claim).await,
        Err(error) => Err(error),
    };
    ask::end(session, During::Claim, raised).await
}

/// [`claim`], but whoever blocks it for longer than `claim_timeout` and carries our name is ended: a worker that was
/// stopped in the middle of its transaction holds the row until then. A reclaim ends nobody once it is fenced.
///
/// # Errors
/// As [`claim`]; [`SinkError::Locked`] names those who block it and are not ours to end.
pub async fn claim_past_blockers(
    pool: &Pool,
    session: &Session,
    id: &DeliveryId,
    wanted: &Claim,
    claim_timeout: Duration,
) -> Result<Progress, SinkError> {
    // Long enough to end the blockers, and those who queued behind them.
    let limit = claim_timeout.saturating_mul(3);
    let mut claiming = pin!(claim_within(session, id, wanted, Some(limit)));
    let mut blockers: Vec<Blocker> = Vec::new();
    let done = loop {
        match tokio::time::timeout(claim_timeout, &mut claiming).await {
            Ok(done) => break done,
            Err(_) => blockers = blockers_ended(pool, session, id, wanted).await,
        }
    };
    match done {
        Err(SinkError::Locked { target, .. }) if !blockers.is_empty() => {
            let holder = blockers.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            Err(SinkError::Locked { target, holder })
        }
        done => done,
    }
}

/// For this transaction, how long a lock is waited for; else the session's own limits hold.
async fn wait_for(session: &Session, limit: Option<Duration>) -> Result<(), SinkError> {
    let Some(limit) = limit else { return Ok(()) };
    let lock = limit.as_millis().clamp(1, 3_600_000);
    let statement = lock + 10_000;
    let sql = format!("SET LOCAL lock_timeout = {lock}; SET LOCAL statement_timeout = {statement}");
    ask::batch(session, During::Claim, &sql).await
}

/// Ends those who block this session and are ours, unless it waits with a claim that is fenced. The claim goes on waiting
/// meanwhile: if this fails, it runs into its own limit, and says so.
async fn blockers_ended(pool: &Pool, session: &Session, id: &DeliveryId, wanted: &Claim) -> Vec<Blocker> {
    let watcher = match pool.extra().await {
        Ok(watcher) => watcher,
        Err(error) => {
            tracing::warn!(%error, "a claim waits, and who blocks it cannot be asked");
            return Vec::new();
        }
    };
    match is_fenced(&watcher, id, wanted).await {
        Ok(false) => {}
        Ok(true) => {
            tracing::info!(delivery = %id, "another worker took this delivery over; its session is left alone");
            return Vec::new();
        }
        Err(error) => {
            tracing::warn!(%error, "a claim waits, and whose the delivery is cannot be asked");
            return Vec::new();
        }
    }
    match end_blockers(&watcher, session.backend_pid()).await {
        Ok(blockers) => {
            for blocker in &blockers {
                tracing::warn!(%blocker, "a session blocks our claim");
            }
            blockers
        }
        Err(fault) => {
            tracing::warn!(error = %fault, "a claim waits, and who blocks it cannot be asked");
            Vec::new()
        }
    }
}

/// Whether this claim is a reclaim of a delivery that another worker has. Mostly such a one does not wait: its statement
/// sees the new generation and finds no row. But one that began to wait before the new owner's claim committed goes on to
/// the newest version of the row, and waits for the epoch that the owner may have begun on it. It has nothing to gain from
/// that owner's end.
async fn is_fenced(watcher: &Session, id: &DeliveryId, wanted: &Claim) -> Result<bool, SinkError> {
    let Claim::Reclaim { generation, .. } = wanted else { return Ok(false) };
    let found = look(watcher, id).await?;
    Ok(found.is_none_or(|progress| progress.generation != *generation))
}

async fn raise(session: &Session, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
    let raised = match claim {
        Claim::Take { start, contract, session: name } => take(session, id, start, contract, name).await,
        Claim::Reclaim { generation, session: name } => reclaim(session, id, *generation, name).await,
    };
    // The engine passes `reclaim.sent` itself.
    if raised.is_ok() && matches!(claim, Claim::Take { .. }) {
        point("claim.sent");
    }
    raised
}

async fn take(
    session: &Session,
    id: &DeliveryId,
    start: &Bookmark,
    contract: &Contract,
    name: &str,
) -> Result<Progress, SinkError> {
    let sql = concat!(
        "INSERT INTO hapax.progress (workflow, sink, lane, updated_at_ms, ",
        columns!(),
        ") VALUES ($1, $2, $3, $4, 1, 0, $5, $6, $7, NULL, $8, 0, 0, 0, 0, 0) \
         ON CONFLICT (workflow, sink, lane) DO UPDATE SET generation = progress.generation + 1, \
         session = excluded.session, updated_at_ms = excluded.updated_at_ms RETURNING ",
        columns!()
    );
    let (now, position, incarnation) = (stored(now_ms()), start.position.to_string(), start.stored_incarnation());
    let (contract, name) = (contract.to_text(), plain(name));
    let row = ask::one(
        session,
        During::Claim,
        sql,
        &[&id.workflow, &id.sink, &id.lane, &now, &position, &incarnation, &contract, &name],
    )
    .await?;
    let found = ask::ours(session, &row).progress(0)?;
    if found.generation == 1 {
        // A statement of its own: only now is a rename visible that committed while the INSERT waited for it.
        refuse_adopted(session, id).await?;
    }
    check(session, id, found)
}

/// A worker of a workflow that was renamed must not begin again from the start under the old name.
async fn refuse_adopted(session: &Session, id: &DeliveryId) -> Result<(), SinkError> {
    let sql = "SELECT by_workflow FROM hapax.adopted WHERE workflow = $1 AND sink = $2 AND lane = $3";
    let found = ask::optional(session, During::Claim, sql, &[&id.workflow, &id.sink, &id.lane]).await?;
    let Some(row) = found else { return Ok(()) };
    let by: String = ask::get(session, &row, 0)?;
    Err(adopted_away(id, &by))
}

async fn reclaim(
    session: &Session,
    id: &DeliveryId,
    generation: Generation,
    name: &str,
) -> Result<Progress, SinkError> {
    let ours = match planted(Bug::UnconditionalReclaim) {
        false => "generation = $6",
        true => "$6::bigint IS NOT NULL",
    };
    let sql = format!(
        "UPDATE hapax.progress SET generation = generation + 1, session = $4, updated_at_ms = $5 \
         WHERE workflow = $1 AND sink = $2 AND lane = $3 AND {ours} RETURNING {}",
        columns!()
    );
    let (name, now, mine) = (plain(name), stored(now_ms()), stored(generation.0));
    let found =
        ask::optional(session, During::Claim, &sql, &[&id.workflow, &id.sink, &id.lane, &name, &now, &mine]).await?;
    match found {
        Some(row) => check(session, id, ask::ours(session, &row).progress(0)?),
        None => Err(fenced(session, During::Claim, id, generation).await?),
    }
}

/// The compare-and-swap, first statement of the epoch's transaction: progress must be exactly what `was` says, and
/// moves to `record.to`, with the epoch's counts added as if nothing were rejected.
///
/// # Errors
/// [`SinkError::FencedOut`] if it is not; then the caller rolls back.
pub async fn swap(
    session: &Session,
    id: &DeliveryId,
    was: &Progress,
    record: &EpochRecord,
) -> Result<Progress, SinkError> {
    let fence = match planted(Bug::NoFence) {
        false => "generation = $13 AND epoch = $14 AND position = $15 AND incarnation = $16",
        true => "coalesce($13::bigint, $14::bigint) IS NOT NULL AND coalesce($15::text, $16::text) IS NOT NULL",
    };
    let sql = format!(
        "UPDATE hapax.progress SET epoch = $4, position = $5, incarnation = $6, read = $7, delivered = $8, \
         filtered = $9, dead = $10, rows = $11, updated_at_ms = $12 \
         WHERE workflow = $1 AND sink = $2 AND lane = $3 AND {fence}"
    );
    let totals = was.totals.plus(record.counts);
    let numbers = stored_totals(totals);
    let (now, epoch) = (stored(now_ms()), stored(record.epoch.0));
    let (position, incarnation) = (record.to.position.to_string(), record.to.stored_incarnation());
    let (generation, was_epoch) = (stored(was.generation.0), stored(was.epoch.0));
    let (was_position, was_incarnation) = (was.bookmark.position.to_string(), was.bookmark.stored_incarnation());
    let [read, delivered, filtered, dead, rows] = &numbers;
    let during = During::Epoch(record.epoch);
    let changed = ask::execute(
        session,
        during,
        &sql,
        &[
            &id.workflow,
            &id.sink,
            &id.lane,
            &epoch,
            &position,
            &incarnation,
            read,
            delivered,
            filtered,
            dead,
            rows,
            &now,
            &generation,
            &was_epoch,
            &was_position,
            &was_incarnation,
        ],
    )
    .await?;
    match changed {
        1 => Ok(Progress { epoch: record.epoch, bookmark: record.to.clone(), totals, ..was.clone() }),
        _ => Err(fenced(session, during, id, was.generation).await?),
    }
}

/// Writes other totals than [`swap`] did: the target rejected some rows. Inside the same transaction.
///
/// # Errors
/// What the database said.
pub async fn correct_totals(session: &Session, id: &DeliveryId, epoch: Epoch, totals: Totals) -> Result<(), SinkError> {
    let sql = "UPDATE hapax.progress SET read = $4, delivered = $5, filtered = $6, dead = $7, rows = $8 \
               WHERE workflow = $1 AND sink = $2 AND lane = $3";
    let [read, delivered, filtered, dead, rows] = &stored_totals(totals);
    let values: ask::Values<'_> = &[&id.workflow, &id.sink, &id.lane, read, delivered, filtered, dead, rows];
    match ask::execute(session, During::Epoch(epoch), sql, values).await? {
        1 => Ok(()),
        _ => Err(damaged(session, &format!("the progress of {id} vanished inside its own transaction"))),
    }
}

/// Moves the position to an earlier end than [`swap`] did: only the epoch's first inputs belong to it. Inside the same
/// transaction.
///
/// # Errors
/// What the database said.
pub async fn end_earlier(session: &Session, id: &DeliveryId, epoch: Epoch, to: &Bookmark) -> Result<(), SinkError> {
    let sql =
        "UPDATE hapax.progress SET position = $4, incarnation = $5 WHERE workflow = $1 AND sink = $2 AND lane = $3";
    let (position, incarnation) = (to.position.to_string(), to.stored_incarnation());
    let values: ask::Values<'_> = &[&id.workflow, &id.sink, &id.lane, &position, &incarnation];
    match ask::execute(session, During::Epoch(epoch), sql, values).await? {
        1 => Ok(()),
        _ => Err(damaged(session, &format!("the progress of {id} vanished inside its own transaction"))),
    }
}

/// The epoch's log row, last statement before COMMIT: its success shows that the transaction lives.
///
/// # Errors
/// What the database said.
pub async fn log_epoch(
    session: &Session,
    id: &DeliveryId,
    generation: Generation,
    record: &EpochRecord,
    counts: Totals,
) -> Result<(), SinkError> {
    let sql = "INSERT INTO hapax.epochs (workflow, sink, lane, epoch, generation, from_position, to_position, \
               incarnation, read, delivered, filtered, dead, rows, opened_at_ms, closed_at_ms, committed_at_ms) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
    if record.epoch.0.is_multiple_of(TRIM_EVERY) {
        trim_epochs(session, id, record.epoch).await?;
    }
    let (epoch, generation) = (stored(record.epoch.0), stored(generation.0));
    let (from, to) = (record.from.position.to_string(), record.to.position.to_string());
    let incarnation = record.to.incarnation.to_string();
    let (opened, closed, now) = (stored(record.opened_at_ms), stored(record.closed_at_ms), stored(now_ms()));
    let [read, delivered, filtered, dead, rows] = &stored_totals(counts);
    ask::execute(
        session,
        During::Epoch(record.epoch),
        sql,
        &[
            &id.workflow,
            &id.sink,
            &id.lane,
            &epoch,
            &generation,
            &from,
            &to,
            &incarnation,
            read,
            delivered,
            filtered,
            dead,
            rows,
            &opened,
            &closed,
            &now,
        ],
    )
    .await?;
    Ok(())
}

async fn trim_epochs(session: &Session, id: &DeliveryId, epoch: Epoch) -> Result<u64, SinkError> {
    let sql = "DELETE FROM hapax.epochs WHERE workflow = $1 AND sink = $2 AND lane = $3 AND epoch <= $4";
    let last = stored(epoch.0.saturating_sub(EPOCHS_KEPT));
    ask::execute(session, During::Epoch(epoch), sql, &[&id.workflow, &id.sink, &id.lane, &last]).await
}

/// Who has the delivery now, for the message of a fenced worker. The outer error: even that could not be read.
pub(super) async fn fenced(
    session: &Session,
    during: During,
    id: &DeliveryId,
    ours: Generation,
) -> Result<SinkError, SinkError> {
    Ok(fenced_by(stored_progress(session, during, id).await?.as_ref(), ours))
}

fn check(session: &Session, id: &DeliveryId, found: StoredProgress) -> Result<Progress, SinkError> {
    found.check(id).map_err(|what| damaged(session, &what))
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
