//! The progress row: looked at, claimed, and swapped inside the epoch's own transaction.
//!
//! Reads and writes `hapax_progress` and `hapax_epochs`. Only [`claim`] has a transaction of its own; the others run
//! inside the caller's. Invariant: a swap changes exactly the row that the worker last saw; whoever writes the row puts
//! its connection id there. Not here: `letters`, whom a claim may end (`holder`).

use std::pin::pin;
use std::time::{Duration, Instant};

use hapax_engine::sink::{Claim, EpochRecord, SinkError};
use hapax_model::contract::Contract;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::fault::{Bug, planted, point};
use hapax_model::ledger::Totals;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Progress;
use hapax_sql::mysql::{Pool, Session};

use super::ask::{self, values};
use super::error::{During, target_name};
use super::holder::{self, Holder};
use super::layout::{LONGEST_LANE, LONGEST_NAME};
use super::tables::{damaged, has_table};
use crate::table::admin::adopted_away;
use crate::table::kept::{now_ms, stored, stored_totals};
use crate::table::own_row::OwnRow as _;
use crate::table::stored::{StoredProgress, fenced_by};

/// How many epochs of a delivery the epoch log keeps.
pub const EPOCHS_KEPT: u64 = 10_000;
/// Old epochs are removed every so many epochs, so that most commits pay nothing for it.
const TRIM_EVERY: u64 = 1_000;
/// A name of the delivery is longer than a key of MySQL can hold.
pub const NAME_TOO_LONG: &str = "HX4450";

/// The columns that `OwnRow::progress` reads, in its order. READ and ROWS are words of the language.
macro_rules! columns {
    () => {
        "generation, epoch, position, incarnation, contract, snapshot, session, `read`, delivered, filtered, dead, \
         `rows`"
    };
}

/// Which row is meant: the first three values of the statement, or the last.
macro_rules! this_delivery {
    () => {
        "workflow = ? AND sink = ? AND lane = ?"
    };
}

/// Reads progress without fencing; none if there is no such delivery, or none of our tables.
///
/// # Errors
/// If the database cannot be read, or what it holds is damaged.
pub async fn look(session: &mut Session, id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
    if !has_table(session, "hapax_progress").await? {
        return Ok(None);
    }
    stored_progress(session, During::Look, id).await
}

async fn stored_progress(
    session: &mut Session,
    during: During,
    id: &DeliveryId,
) -> Result<Option<Progress>, SinkError> {
    let sql = concat!("SELECT ", columns!(), " FROM hapax_progress WHERE ", this_delivery!());
    let found = ask::optional(session, during, sql, values![&id.workflow, &id.sink, &id.lane]).await?;
    found.map(|row| check(session, id, ask::ours(session, &row).progress(0)?)).transpose()
}

/// Progress of all other deliveries in this database.
///
/// # Errors
/// If the database cannot be read, or what it holds is damaged.
pub async fn others(session: &mut Session, id: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
    let all = all(session).await?;
    Ok(all.into_iter().map(|(other, progress, _)| (other, progress)).filter(|(other, _)| other != id).collect())
}

/// All deliveries in this database, with the time of their last commit or claim.
pub(crate) async fn all(session: &mut Session) -> Result<Vec<(DeliveryId, Progress, u64)>, SinkError> {
    if !has_table(session, "hapax_progress").await? {
        return Ok(Vec::new());
    }
    let sql = concat!(
        "SELECT workflow, sink, lane, updated_at_ms, ",
        columns!(),
        " FROM hapax_progress ORDER BY workflow, sink, lane"
    );
    let rows = ask::rows(session, During::Look, sql, values![]).await?;
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
pub async fn claim(session: &mut Session, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
    refuse_long_names(session, id)?;
    ask::begin(session, During::Claim).await?;
    let raised = raise(session, id, claim).await;
    ask::end(session, During::Claim, raised).await
}

/// [`claim`], but whoever blocks it for longer than `claim_timeout` and is one of ours is ended: a worker that was
/// stopped in the middle of its transaction holds the row until then. A reclaim ends nobody once it is fenced.
///
/// # Errors
/// As [`claim`]; [`SinkError::Locked`] names whom it is blocked by and may not end.
pub async fn claim_past_blockers(
    pool: &Pool,
    session: &mut Session,
    id: &DeliveryId,
    wanted: &Claim,
    claim_timeout: Duration,
) -> Result<Progress, SinkError> {
    let begun = Instant::now();
    // Long enough to end the blocker, and those who queued behind it. One wait for a lock may be shorter.
    let limit = claim_timeout.saturating_mul(3);
    let mut look_at = tokio::time::Instant::now() + claim_timeout;
    let mut blocker: Option<Holder> = None;
    let waiting = session.connection_id();
    loop {
        let mut claiming = pin!(claim(session, id, wanted));
        let done = loop {
            match tokio::time::timeout_at(look_at, &mut claiming).await {
                Ok(done) => break done,
                Err(_) => {
                    // Between two waits nobody is in the way: what was seen before counts.
                    blocker = holder::end_holder(pool, id, waiting, wanted).await.or(blocker);
                    look_at += claim_timeout;
                }
            }
        };
        match (done, &blocker) {
            (Err(SinkError::Locked { .. }), _) if begun.elapsed() < limit => {}
            (Err(SinkError::Locked { target, .. }), Some(blocker)) => {
                return Err(SinkError::Locked { target, holder: blocker.to_string() });
            }
            (done, _) => return done,
        }
    }
}

/// A name that does not fit its column would be refused by the server with words about a row.
pub(super) fn refuse_long_names(session: &Session, id: &DeliveryId) -> Result<(), SinkError> {
    let parts =
        [("workflow", &id.workflow, LONGEST_NAME), ("sink", &id.sink, LONGEST_NAME), ("lane", &id.lane, LONGEST_LANE)];
    let Some((what, name, most)) = parts.into_iter().find(|(_, name, most)| name.chars().count() > *most) else {
        return Ok(());
    };
    let message = format!(
        "the {what} {:?}… has {} characters, and a key of MySQL has room for {most}; give it a shorter name",
        name.chars().take(40).collect::<String>(),
        name.chars().count()
    );
    Err(SinkError::Unfit { code: NAME_TOO_LONG, target: target_name(session), message })
}

async fn raise(session: &mut Session, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
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
    session: &mut Session,
    id: &DeliveryId,
    start: &Bookmark,
    contract: &Contract,
    name: &str,
) -> Result<Progress, SinkError> {
    let sql = concat!(
        "INSERT INTO hapax_progress (workflow, sink, lane, updated_at_ms, connection_id, ",
        columns!(),
        ") VALUES (?, ?, ?, ?, ?, 1, 0, ?, ?, ?, NULL, ?, 0, 0, 0, 0, 0) \
         ON DUPLICATE KEY UPDATE generation = generation + 1, session = ?, connection_id = ?, updated_at_ms = ?"
    );
    let (now, connection) = (stored(now_ms()), session.connection_id());
    let (position, incarnation) = (start.position.to_string(), start.stored_incarnation());
    let given = values![
        &id.workflow,
        &id.sink,
        &id.lane,
        now,
        connection,
        position,
        incarnation,
        contract.to_text(),
        name,
        name,
        connection,
        now,
    ];
    ask::execute(session, During::Claim, sql, given).await?;
    let found = ours(session, id).await?;
    if found.generation == 1 {
        // A statement of its own: only now is a rename visible that committed while the INSERT waited for it.
        refuse_adopted(session, id).await?;
    }
    check(session, id, found)
}

/// The row that this transaction has just written. FOR UPDATE: a plain SELECT may be sent to a replica by a proxy.
async fn ours(session: &mut Session, id: &DeliveryId) -> Result<StoredProgress, SinkError> {
    let sql = concat!("SELECT ", columns!(), " FROM hapax_progress WHERE ", this_delivery!(), " FOR UPDATE");
    let row = ask::one(session, During::Claim, sql, values![&id.workflow, &id.sink, &id.lane]).await?;
    ask::ours(session, &row).progress(0)
}

/// A worker of a workflow that was renamed must not begin again from the start under the old name.
async fn refuse_adopted(session: &mut Session, id: &DeliveryId) -> Result<(), SinkError> {
    let sql = concat!("SELECT by_workflow FROM hapax_adopted WHERE ", this_delivery!());
    let found = ask::optional(session, During::Claim, sql, values![&id.workflow, &id.sink, &id.lane]).await?;
    let Some(row) = found else { return Ok(()) };
    let by: String = ask::get(session, &row, 0)?;
    Err(adopted_away(id, &by))
}

async fn reclaim(
    session: &mut Session,
    id: &DeliveryId,
    generation: Generation,
    name: &str,
) -> Result<Progress, SinkError> {
    let fence = match planted(Bug::UnconditionalReclaim) {
        false => "generation = ?",
        true => "? IS NOT NULL",
    };
    let sql = format!(
        "UPDATE hapax_progress SET generation = generation + 1, session = ?, connection_id = ?, updated_at_ms = ? \
         WHERE {} AND {fence}",
        this_delivery!()
    );
    let (now, connection) = (stored(now_ms()), session.connection_id());
    let given = values![name, connection, now, &id.workflow, &id.sink, &id.lane, stored(generation.0)];
    match ask::execute(session, During::Claim, &sql, given).await? {
        1 => {
            let found = ours(session, id).await?;
            check(session, id, found)
        }
        _ => Err(fenced(session, During::Claim, id, generation).await?),
    }
}

/// The compare-and-swap, first statement of the epoch's transaction: progress must be exactly what `was` says, and
/// moves to `record.to`, with the epoch's counts added as if nothing were rejected.
///
/// # Errors
/// [`SinkError::FencedOut`] if it is not; then the caller rolls back.
pub async fn swap(
    session: &mut Session,
    id: &DeliveryId,
    was: &Progress,
    record: &EpochRecord,
) -> Result<Progress, SinkError> {
    let fence = match planted(Bug::NoFence) {
        false => "generation = ? AND epoch = ? AND position = ? AND incarnation = ?",
        true => "? IS NOT NULL AND ? IS NOT NULL AND ? IS NOT NULL AND ? IS NOT NULL",
    };
    let sql = format!(
        "UPDATE hapax_progress SET epoch = ?, position = ?, incarnation = ?, `read` = ?, delivered = ?, filtered = ?, \
         dead = ?, `rows` = ?, updated_at_ms = ?, connection_id = ? WHERE {} AND {fence}",
        this_delivery!()
    );
    let totals = was.totals.plus(record.counts);
    let [read, delivered, filtered, dead, rows] = stored_totals(totals);
    let given = values![
        stored(record.epoch.0),
        record.to.position.to_string(),
        record.to.stored_incarnation(),
        read,
        delivered,
        filtered,
        dead,
        rows,
        stored(now_ms()),
        session.connection_id(),
        &id.workflow,
        &id.sink,
        &id.lane,
        stored(was.generation.0),
        stored(was.epoch.0),
        was.bookmark.position.to_string(),
        was.bookmark.stored_incarnation(),
    ];
    let during = During::Epoch(record.epoch);
    // Found rows, not changed ones: every session asks for them.
    match ask::execute(session, during, &sql, given).await? {
        1 => Ok(Progress { epoch: record.epoch, bookmark: record.to.clone(), totals, ..was.clone() }),
        _ => Err(fenced(session, during, id, was.generation).await?),
    }
}

/// Writes other totals than [`swap`] did: the target rejected some rows. Inside the same transaction.
///
/// # Errors
/// What the database said.
pub async fn correct_totals(
    session: &mut Session,
    id: &DeliveryId,
    epoch: Epoch,
    totals: Totals,
) -> Result<(), SinkError> {
    let sql = concat!(
        "UPDATE hapax_progress SET `read` = ?, delivered = ?, filtered = ?, dead = ?, `rows` = ? WHERE ",
        this_delivery!()
    );
    let [read, delivered, filtered, dead, rows] = stored_totals(totals);
    let given = values![read, delivered, filtered, dead, rows, &id.workflow, &id.sink, &id.lane];
    match ask::execute(session, During::Epoch(epoch), sql, given).await? {
        1 => Ok(()),
        _ => Err(damaged(session, &format!("the progress of {id} vanished inside its own transaction"))),
    }
}

/// Moves the position to an earlier end than [`swap`] did: only the epoch's first inputs belong to it. Inside the same
/// transaction.
///
/// # Errors
/// What the database said.
pub async fn end_earlier(session: &mut Session, id: &DeliveryId, epoch: Epoch, to: &Bookmark) -> Result<(), SinkError> {
    let sql = concat!("UPDATE hapax_progress SET position = ?, incarnation = ? WHERE ", this_delivery!());
    let (position, incarnation) = (to.position.to_string(), to.stored_incarnation());
    let given = values![&position, &incarnation, &id.workflow, &id.sink, &id.lane];
    match ask::execute(session, During::Epoch(epoch), sql, given).await? {
        1 => Ok(()),
        _ => Err(damaged(session, &format!("the progress of {id} vanished inside its own transaction"))),
    }
}

/// Writes another contract: the server gave the table a new number, and it is known to be the same. Inside the
/// transaction of the epoch that goes into it.
///
/// # Errors
/// What the database said.
pub async fn set_contract(
    session: &mut Session,
    id: &DeliveryId,
    epoch: Epoch,
    contract: &Contract,
) -> Result<(), SinkError> {
    let sql = concat!("UPDATE hapax_progress SET contract = ? WHERE ", this_delivery!());
    let given = values![contract.to_text(), &id.workflow, &id.sink, &id.lane];
    match ask::execute(session, During::Epoch(epoch), sql, given).await? {
        1 => Ok(()),
        _ => Err(damaged(session, &format!("the progress of {id} vanished inside its own transaction"))),
    }
}

/// The epoch's log row, last statement before COMMIT: its success shows that the transaction lives.
///
/// # Errors
/// What the database said.
pub async fn log_epoch(
    session: &mut Session,
    id: &DeliveryId,
    generation: Generation,
    record: &EpochRecord,
    counts: Totals,
) -> Result<(), SinkError> {
    let sql = "INSERT INTO hapax_epochs (workflow, sink, lane, epoch, generation, from_position, to_position, \
               incarnation, `read`, delivered, filtered, dead, `rows`, opened_at_ms, closed_at_ms, committed_at_ms) \
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    if record.epoch.0.is_multiple_of(TRIM_EVERY) {
        trim_epochs(session, id, record.epoch).await?;
    }
    let [read, delivered, filtered, dead, rows] = stored_totals(counts);
    let given = values![
        &id.workflow,
        &id.sink,
        &id.lane,
        stored(record.epoch.0),
        stored(generation.0),
        record.from.position.to_string(),
        record.to.position.to_string(),
        record.to.incarnation.to_string(),
        read,
        delivered,
        filtered,
        dead,
        rows,
        stored(record.opened_at_ms),
        stored(record.closed_at_ms),
        stored(now_ms()),
    ];
    ask::execute(session, During::Epoch(record.epoch), sql, given).await?;
    Ok(())
}

async fn trim_epochs(session: &mut Session, id: &DeliveryId, epoch: Epoch) -> Result<u64, SinkError> {
    let sql = concat!("DELETE FROM hapax_epochs WHERE ", this_delivery!(), " AND epoch <= ?");
    let last = stored(epoch.0.saturating_sub(EPOCHS_KEPT));
    ask::execute(session, During::Epoch(epoch), sql, values![&id.workflow, &id.sink, &id.lane, last]).await
}

/// Who has the delivery now, for the message of a fenced worker. The outer error: even that could not be read.
async fn fenced(
    session: &mut Session,
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
