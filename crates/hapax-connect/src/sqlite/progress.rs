//! The progress row: looked at, claimed, and swapped inside the epoch's own transaction.
//!
//! Reads and writes `hapax_progress`, `hapax_epochs`, `hapax_dead_letters`. Only [`claim`] has a transaction of its
//! own; the others run inside the caller's. Invariant: a swap changes exactly the row that the worker last saw.

use hapax_engine::sink::{Claim, EpochRecord, SinkError};
use hapax_model::contract::Contract;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::fault::{Bug, planted, point};
use hapax_model::ledger::Totals;
use hapax_model::letter::{Letter, LetterBytes};
use hapax_model::position::{Bookmark, DeliveryId, Incarnation};
use hapax_model::progress::Progress;
use hapax_sql::sqlite::checked_commit;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, named_params, params};

use super::error::{During, after_commit, path_of, sink_error};
use super::tables::{damaged, has_table, look_error};
use crate::table::admin::adopted_away;
use crate::table::kept::{now_ms, stored};
use crate::table::stored::{StoredProgress, fenced_by};

/// How many epochs of a delivery the epoch log keeps.
pub const EPOCHS_KEPT: u64 = 10_000;
/// Old epochs are removed every so many epochs, so that most commits pay nothing for it.
const TRIM_EVERY: u64 = 1_000;

const COLUMNS: &str = "generation, epoch, position, incarnation, contract, snapshot, session, \
                       read, delivered, filtered, dead, rows";

/// Reads progress without fencing; none if there is no such delivery, or none of our tables.
///
/// # Errors
/// If the database cannot be read, or what it holds is damaged.
pub fn look(connection: &Connection, id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
    if !has_table(connection, "hapax_progress")? {
        return Ok(None);
    }
    let sql = format!("SELECT {COLUMNS} FROM hapax_progress WHERE workflow = ?1 AND sink = ?2 AND lane = ?3");
    let found = connection
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.query_row(key(id), |row| read(row, 0)).optional())
        .map_err(|error| look_error(connection, &error))?;
    found.map(|found| check(connection, id, found)).transpose()
}

/// Progress of all other deliveries in this database.
///
/// # Errors
/// If the database cannot be read, or what it holds is damaged.
pub fn others(connection: &Connection, id: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
    let all = all(connection)?;
    Ok(all.into_iter().map(|(other, progress, _)| (other, progress)).filter(|(other, _)| other != id).collect())
}

/// All deliveries in this database, with the time of their last commit or claim.
pub(crate) fn all(connection: &Connection) -> Result<Vec<(DeliveryId, Progress, u64)>, SinkError> {
    if !has_table(connection, "hapax_progress")? {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT workflow, sink, lane, updated_at_ms, {COLUMNS} FROM hapax_progress ORDER BY workflow, sink, lane"
    );
    let read = || -> rusqlite::Result<Vec<(DeliveryId, u64, StoredProgress)>> {
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map([], |row| Ok((delivery(row)?, unsigned(row, 3)?, read(row, 4)?)))?;
        rows.collect()
    };
    let rows = read().map_err(|error| look_error(connection, &error))?;
    rows.into_iter()
        .map(|(id, at, found)| {
            let progress = check(connection, &id, found)?;
            Ok((id, progress, at))
        })
        .collect()
}

/// Takes the delivery, or takes it back after doubt: raises the generation, *then* reads progress. A transaction of
/// its own.
///
/// # Errors
/// [`SinkError::FencedOut`] if a reclaim finds another owner, or the delivery was adopted by another workflow;
/// else what the database said.
pub fn claim(connection: &Connection, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
    let path = path_of(connection);
    let fail = |error| sink_error(&path, During::Claim, &error);
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
    let raised = match claim {
        Claim::Take { start, contract, session } => take(&transaction, id, start, contract, session)?,
        Claim::Reclaim { generation, session } => reclaim(&transaction, id, *generation, session)?,
    };
    // The engine passes `reclaim.sent` itself.
    if matches!(claim, Claim::Take { .. }) {
        point("claim.sent");
    }
    after_commit(&path, During::Claim, checked_commit(&transaction))?;
    Ok(raised)
}

fn take(
    connection: &Connection,
    id: &DeliveryId,
    start: &Bookmark,
    contract: &Contract,
    session: &str,
) -> Result<Progress, SinkError> {
    let sql = format!(
        "INSERT INTO hapax_progress (workflow, sink, lane, updated_at_ms, {COLUMNS}) \
         VALUES (:workflow, :sink, :lane, :now, 1, 0, :position, :incarnation, :contract, NULL, :session, 0, 0, 0, 0, 0) \
         ON CONFLICT (workflow, sink, lane) DO UPDATE \
         SET generation = generation + 1, session = excluded.session, updated_at_ms = excluded.updated_at_ms \
         RETURNING {COLUMNS}"
    );
    let values = named_params! {
        ":workflow": id.workflow, ":sink": id.sink, ":lane": id.lane, ":now": stored(now_ms()),
        ":position": start.position.to_string(), ":incarnation": start.stored_incarnation(),
        ":contract": contract.to_text(), ":session": session,
    };
    let found = connection
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.query_row(values, |row| read(row, 0)))
        .map_err(|error| sink_error(&path_of(connection), During::Claim, &error))?;
    if found.generation == 1 {
        refuse_adopted(connection, id)?;
    }
    check(connection, id, found)
}

/// A worker of a workflow that was renamed must not begin again from the start under the old name.
fn refuse_adopted(connection: &Connection, id: &DeliveryId) -> Result<(), SinkError> {
    let sql = "SELECT by_workflow FROM hapax_adopted WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let by: Option<String> = connection
        .query_row(sql, key(id), |row| row.get(0))
        .optional()
        .map_err(|error| sink_error(&path_of(connection), During::Claim, &error))?;
    by.map_or(Ok(()), |by| Err(adopted_away(id, &by)))
}

fn reclaim(
    connection: &Connection,
    id: &DeliveryId,
    generation: Generation,
    session: &str,
) -> Result<Progress, SinkError> {
    let ours = match planted(Bug::UnconditionalReclaim) {
        false => "generation = :generation",
        true => ":generation IS NOT NULL",
    };
    let sql = format!(
        "UPDATE hapax_progress SET generation = generation + 1, session = :session, updated_at_ms = :now \
         WHERE workflow = :workflow AND sink = :sink AND lane = :lane AND {ours} \
         RETURNING {COLUMNS}"
    );
    let values = named_params! {
        ":workflow": id.workflow, ":sink": id.sink, ":lane": id.lane, ":now": stored(now_ms()),
        ":generation": stored(generation.0), ":session": session,
    };
    let found = connection
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.query_row(values, |row| read(row, 0)).optional())
        .map_err(|error| sink_error(&path_of(connection), During::Claim, &error))?;
    match found {
        Some(found) => check(connection, id, found),
        None => Err(fenced(connection, id, generation)?),
    }
}

/// The compare-and-swap, first statement of the epoch's transaction: progress must be exactly what `was` says, and
/// moves to `record.to`, with the epoch's counts added as if nothing were rejected.
///
/// # Errors
/// [`SinkError::FencedOut`] if it is not; then the caller rolls back.
pub fn swap(
    connection: &Connection,
    id: &DeliveryId,
    was: &Progress,
    record: &EpochRecord,
) -> Result<Progress, SinkError> {
    let fence = match planted(Bug::NoFence) {
        false => {
            "generation = :generation AND epoch = :was_epoch AND position = :was_position \
             AND incarnation = :was_incarnation"
        }
        true => "coalesce(:generation, :was_epoch, :was_position, :was_incarnation) IS NOT NULL",
    };
    let sql = format!(
        "UPDATE hapax_progress SET epoch = :epoch, position = :position, incarnation = :incarnation, read = :read, \
         delivered = :delivered, filtered = :filtered, dead = :dead, rows = :rows, updated_at_ms = :now \
         WHERE workflow = :workflow AND sink = :sink AND lane = :lane AND {fence}"
    );
    let totals = was.totals.plus(record.counts);
    let values = named_params! {
        ":workflow": id.workflow, ":sink": id.sink, ":lane": id.lane, ":now": stored(now_ms()),
        ":generation": stored(was.generation.0), ":was_epoch": stored(was.epoch.0),
        ":was_position": was.bookmark.position.to_string(),
        ":was_incarnation": was.bookmark.stored_incarnation(),
        ":epoch": stored(record.epoch.0), ":position": record.to.position.to_string(),
        ":incarnation": record.to.stored_incarnation(), ":read": stored(totals.read),
        ":delivered": stored(totals.delivered), ":filtered": stored(totals.filtered), ":dead": stored(totals.dead),
        ":rows": stored(totals.rows),
    };
    let during = During::Epoch(record.epoch);
    let changed = connection
        .prepare_cached(&sql)
        .and_then(|mut statement| statement.execute(values))
        .map_err(|error| sink_error(&path_of(connection), during, &error))?;
    match changed {
        1 => Ok(Progress { epoch: record.epoch, bookmark: record.to.clone(), totals, ..was.clone() }),
        _ => Err(fenced(connection, id, was.generation)?),
    }
}

/// Writes other totals than [`swap`] did: the target rejected some rows. Inside the same transaction.
///
/// # Errors
/// What the database said.
pub fn correct_totals(connection: &Connection, id: &DeliveryId, epoch: Epoch, totals: Totals) -> Result<(), SinkError> {
    let sql = "UPDATE hapax_progress SET read = ?4, delivered = ?5, filtered = ?6, dead = ?7, rows = ?8 \
               WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let values = params![
        id.workflow,
        id.sink,
        id.lane,
        stored(totals.read),
        stored(totals.delivered),
        stored(totals.filtered),
        stored(totals.dead),
        stored(totals.rows)
    ];
    let changed = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(values))
        .map_err(|error| sink_error(&path_of(connection), During::Epoch(epoch), &error))?;
    match changed {
        1 => Ok(()),
        _ => Err(damaged(connection, &format!("the progress of {id} vanished inside its own transaction"))),
    }
}

/// Moves the position to an earlier end than [`swap`] did: only the epoch's first inputs belong to it. Inside the same
/// transaction.
///
/// # Errors
/// What the database said.
pub fn end_earlier(connection: &Connection, id: &DeliveryId, epoch: Epoch, to: &Bookmark) -> Result<(), SinkError> {
    let sql =
        "UPDATE hapax_progress SET position = ?4, incarnation = ?5 WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let values = params![id.workflow, id.sink, id.lane, to.position.to_string(), to.stored_incarnation()];
    let changed = connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(values))
        .map_err(|error| sink_error(&path_of(connection), During::Epoch(epoch), &error))?;
    match changed {
        1 => Ok(()),
        _ => Err(damaged(connection, &format!("the progress of {id} vanished inside its own transaction"))),
    }
}

/// The epoch's log row, last statement before COMMIT: its success shows that the transaction lives.
///
/// # Errors
/// What the database said.
pub fn log_epoch(
    connection: &Connection,
    id: &DeliveryId,
    generation: Generation,
    record: &EpochRecord,
    counts: Totals,
) -> Result<(), SinkError> {
    let fail = |error| sink_error(&path_of(connection), During::Epoch(record.epoch), &error);
    let sql = "INSERT INTO hapax_epochs (workflow, sink, lane, epoch, generation, from_position, to_position, \
               incarnation, read, delivered, filtered, dead, rows, opened_at_ms, closed_at_ms, committed_at_ms) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    let values = params![
        id.workflow,
        id.sink,
        id.lane,
        stored(record.epoch.0),
        stored(generation.0),
        record.from.position.to_string(),
        record.to.position.to_string(),
        record.to.incarnation.to_string(),
        stored(counts.read),
        stored(counts.delivered),
        stored(counts.filtered),
        stored(counts.dead),
        stored(counts.rows),
        stored(record.opened_at_ms),
        stored(record.closed_at_ms),
        stored(now_ms()),
    ];
    if record.epoch.0.is_multiple_of(TRIM_EVERY) {
        trim_epochs(connection, id, record.epoch).map_err(fail)?;
    }
    connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values)).map_err(fail)?;
    Ok(())
}

fn trim_epochs(connection: &Connection, id: &DeliveryId, epoch: Epoch) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM hapax_epochs WHERE workflow = ?1 AND sink = ?2 AND lane = ?3 AND epoch <= ?4";
    let values = params![id.workflow, id.sink, id.lane, stored(epoch.0.saturating_sub(EPOCHS_KEPT))];
    connection.prepare_cached(sql)?.execute(values)
}

/// Writes an epoch's dead letters, inside its transaction.
///
/// # Errors
/// What the database said.
pub fn insert_letters(
    connection: &Connection,
    id: &DeliveryId,
    generation: Generation,
    epoch: Epoch,
    incarnation: &Incarnation,
    letters: &[Letter],
) -> Result<(), SinkError> {
    if letters.is_empty() {
        return Ok(());
    }
    let (now, incarnation) = (stored(now_ms()), incarnation.to_string());
    let sql = "INSERT INTO hapax_dead_letters (workflow, sink, lane, epoch, generation, position, incarnation, stage, \
               code, message, fingerprint, bytes, length, sha256, event_key, written_at_ms) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    let write = || -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(sql)?;
        for letter in letters {
            let (bytes, length, sha256) = match &letter.bytes {
                LetterBytes::Whole(bytes) => (bytes, u64::try_from(bytes.len()).unwrap_or(u64::MAX), None),
                LetterBytes::Cut { head, length, sha256 } => (head, *length, Some(sha256.as_slice())),
            };
            let cause = &letter.cause;
            statement.execute(params![
                id.workflow,
                id.sink,
                id.lane,
                stored(epoch.0),
                stored(generation.0),
                letter.position.to_string(),
                incarnation,
                cause.stage.name(),
                cause.code,
                cause.message,
                cause.fingerprint,
                bytes,
                stored(length),
                sha256,
                letter.event_key,
                now,
            ])?;
        }
        Ok(())
    };
    write().map_err(|error| sink_error(&path_of(connection), During::Epoch(epoch), &error))
}

/// Who has the delivery now, for the message of a fenced worker. The outer error: even that could not be read.
pub(super) fn fenced(connection: &Connection, id: &DeliveryId, ours: Generation) -> Result<SinkError, SinkError> {
    Ok(fenced_by(look(connection, id)?.as_ref(), ours))
}

/// The three columns that name a delivery, as parameters ?1 to ?3.
pub(crate) fn key(id: &DeliveryId) -> [&str; 3] {
    [&id.workflow, &id.sink, &id.lane]
}

/// The delivery named by the first three columns of a row.
pub(crate) fn delivery(row: &Row<'_>) -> rusqlite::Result<DeliveryId> {
    Ok(DeliveryId { workflow: row.get(0)?, sink: row.get(1)?, lane: row.get(2)? })
}

/// A counter as it was stored.
pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let found: i64 = row.get(column)?;
    u64::try_from(found).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, found))
}

/// A progress row, from column `first` on.
fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<StoredProgress> {
    Ok(StoredProgress {
        generation: unsigned(row, first)?,
        epoch: unsigned(row, first + 1)?,
        position: row.get(first + 2)?,
        incarnation: row.get(first + 3)?,
        contract: row.get(first + 4)?,
        snapshot: row.get(first + 5)?,
        session: row.get(first + 6)?,
        totals: Totals {
            read: unsigned(row, first + 7)?,
            delivered: unsigned(row, first + 8)?,
            filtered: unsigned(row, first + 9)?,
            dead: unsigned(row, first + 10)?,
            rows: unsigned(row, first + 11)?,
        },
    })
}

fn check(connection: &Connection, id: &DeliveryId, found: StoredProgress) -> Result<Progress, SinkError> {
    found.check(id).map_err(|what| damaged(connection, &what))
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
