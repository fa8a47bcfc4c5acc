//! What a person does to deliveries: list, reset, adopt, forget. Each function is one transaction.
//!
//! Reads and writes our tables. Invariant: whatever moves a delivery also fences the worker that has it. Not here:
//! questions, dry runs and the lease check, which are the command line's.

use hapax_engine::books::{Forgotten, LoggedEpoch, OldNames, StoredDelivery};
use hapax_engine::sink::SinkError;
use hapax_model::contract::Contract;
use hapax_model::fault::point;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Progress;
use hapax_sql::mysql::Session;
use hapax_sql::process::session_name;

use super::ask::{self, values};
use super::error::{During, target_name};
use super::progress;
use super::tables::has_table;
use crate::table::admin::{Joined, Raised, adopt_clash, no_delivery, nothing_to_adopt};
use crate::table::kept::{now_ms, stored, stored_totals};
use crate::table::own_row::OwnRow as _;

/// All deliveries of the database.
///
/// # Errors
/// If the database cannot be read.
pub async fn deliveries(session: &mut Session) -> Result<Vec<StoredDelivery>, SinkError> {
    let all = progress::all(session).await?;
    Ok(all.into_iter().map(|(id, progress, updated_at_ms)| StoredDelivery { id, progress, updated_at_ms }).collect())
}

/// Whose letters and logged epochs are here, in whatever state; also of deliveries that have no progress any more.
///
/// # Errors
/// If the database cannot be read.
pub async fn owners(session: &mut Session) -> Result<Vec<DeliveryId>, SinkError> {
    let mut owners = Vec::new();
    for table in ["hapax_dead_letters", "hapax_epochs"] {
        if !has_table(session, table).await? {
            continue;
        }
        let sql = format!("SELECT DISTINCT workflow, sink, lane FROM {table}");
        for row in ask::rows(session, During::Look, &sql, values![]).await? {
            owners.push(ask::delivery(session, &row)?);
        }
    }
    Ok(owners)
}

/// Moves a delivery to another place in its source, and fences the worker that has it, which then goes on from there.
///
/// `contract` replaces the stored one (a person accepts what changed); with it, a delivery without progress is made.
///
/// # Errors
/// `HX4192` if there is no such delivery and no contract to make it with; else what the database said.
pub async fn reset(
    session: &mut Session,
    id: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
) -> Result<Progress, SinkError> {
    if !has_table(session, "hapax_progress").await? {
        return Err(no_delivery(target_name(session), id));
    }
    progress::refuse_long_names(session, id)?;
    ask::begin(session, During::Look).await?;
    let moved = move_to(session, id, to, contract).await;
    ask::end(session, During::Look, moved).await
}

async fn move_to(
    session: &mut Session,
    id: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
) -> Result<Progress, SinkError> {
    let update = "UPDATE hapax_progress SET generation = generation + 1, position = ?, incarnation = ?, session = ?, \
                  connection_id = ?, updated_at_ms = ? WHERE workflow = ? AND sink = ? AND lane = ?";
    // One statement, so that a claim at the same time is waited for instead of being a clash.
    let upsert = "INSERT INTO hapax_progress (workflow, sink, lane, generation, epoch, position, incarnation, \
                  contract, session, connection_id, `read`, delivered, filtered, dead, `rows`, updated_at_ms) \
                  VALUES (?, ?, ?, 1, 0, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, ?) \
                  ON DUPLICATE KEY UPDATE generation = generation + 1, position = ?, incarnation = ?, contract = ?, \
                  session = ?, connection_id = ?, updated_at_ms = ?";
    let (position, incarnation) = (to.position.to_string(), to.stored_incarnation());
    let (by, now, connection) = (format!("reset by {}", session_name()), stored(now_ms()), session.connection_id());
    let changed = match contract.map(Contract::to_text) {
        None => {
            let given = values![position, incarnation, by, connection, now, &id.workflow, &id.sink, &id.lane];
            ask::execute(session, During::Look, update, given).await?
        }
        Some(contract) => {
            let row = values![position, incarnation, contract, by, connection, now];
            let given = values![&id.workflow, &id.sink, &id.lane].into_iter().chain(row.clone()).chain(row).collect();
            ask::execute(session, During::Look, upsert, given).await?
        }
    };
    point("reset.middle");
    if changed == 0 {
        return Err(no_delivery(target_name(session), id));
    }
    // What no longer holds: that it was adopted away.
    delete(session, "hapax_adopted", id).await?;
    progress::look(session, id).await?.ok_or_else(|| no_delivery(target_name(session), id))
}

/// Removes the row or rows of one delivery from one of our tables.
async fn delete(session: &mut Session, table: &'static str, id: &DeliveryId) -> Result<u64, SinkError> {
    let sql = format!("DELETE FROM {table} WHERE workflow = ? AND sink = ? AND lane = ?");
    ask::execute(session, During::Look, &sql, values![&id.workflow, &id.sink, &id.lane]).await
}

/// Gives all lanes of a sink of a renamed workflow to its new name, and fences the old one for good: its workers find
/// no progress, and a new claim under the old name is refused. Returns how many lanes moved.
///
/// # Errors
/// `HX4191` if the new name already has progress on one of these lanes, `HX4192` if the old one has none.
pub async fn adopt(session: &mut Session, old: &str, new: &str, sink: &str) -> Result<u64, SinkError> {
    if !has_table(session, "hapax_progress").await? {
        return Err(nothing_to_adopt(target_name(session), old, sink));
    }
    let id = DeliveryId { workflow: new.to_owned(), sink: sink.to_owned(), lane: String::new() };
    progress::refuse_long_names(session, &id)?;
    ask::begin(session, During::Look).await?;
    let moved = move_name(session, old, new, sink).await;
    match ask::end(session, During::Look, moved).await {
        Ok(lanes) => Ok(lanes),
        Err(error) => {
            // Perhaps a first claim under the new name committed between the look and the move: then that is the reason.
            refuse_clash(session, old, new, sink).await?;
            Err(error)
        }
    }
}

async fn move_name(session: &mut Session, old: &str, new: &str, sink: &str) -> Result<u64, SinkError> {
    refuse_clash(session, old, new, sink).await?;
    let now = stored(now_ms());
    // Progress first: a worker in the middle of an epoch holds that row, and everything else it writes comes after.
    let progress = "UPDATE hapax_progress SET workflow = ?, generation = generation + 1, session = ?, \
                    connection_id = ?, updated_at_ms = ? WHERE workflow = ? AND sink = ?";
    let by = format!("adopted by {}", session_name());
    let given = values![new, &by, session.connection_id(), now, old, sink];
    let moved = ask::execute(session, During::Look, progress, given).await?;
    let welcome = "DELETE FROM hapax_adopted WHERE workflow = ? AND sink = ?";
    ask::execute(session, During::Look, welcome, values![new, sink]).await?;
    let remember = "INSERT INTO hapax_adopted (workflow, sink, lane, by_workflow, adopted_at_ms) \
                    SELECT ?, p.sink, p.lane, ?, ? FROM hapax_progress AS p \
                    WHERE p.workflow = ? AND p.sink = ? AND p.session = ? AND p.updated_at_ms = ? \
                    ON DUPLICATE KEY UPDATE by_workflow = ?";
    // Those that were moved just now: the new name may have other lanes of its own.
    ask::execute(session, During::Look, remember, values![old, new, now, new, sink, by, now, new]).await?;
    point("reset.middle");
    for table in ["hapax_epochs", "hapax_dead_letters"] {
        let sql = format!("UPDATE {table} SET workflow = ? WHERE workflow = ? AND sink = ?");
        ask::execute(session, During::Look, &sql, values![new, old, sink]).await?;
    }
    match moved {
        0 => Err(nothing_to_adopt(target_name(session), old, sink)),
        lanes => Ok(lanes),
    }
}

async fn refuse_clash(session: &mut Session, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
    let sql = "SELECT n.workflow, n.sink, n.lane FROM hapax_progress AS n JOIN hapax_progress AS o \
               ON o.sink = n.sink AND o.lane = n.lane \
               WHERE n.workflow = ? AND o.workflow = ? AND n.sink = ? ORDER BY n.lane LIMIT 1";
    let Some(row) = ask::optional(session, During::Look, sql, values![new, old, sink]).await? else { return Ok(()) };
    let id = ask::delivery(session, &row)?;
    Err(adopt_clash(target_name(session), &id))
}

/// Gives the progress and letters of lanes to one lane, which goes on at `to`, and fences the workers that have the old ones. Their
/// epochs follow one another in the order of `old`; the last one keeps its memory. The new lane may be one of them.
///
/// # Errors
/// `HX4191` if the new lane has progress and is none of `old`, `HX4192` if one of these has none.
pub async fn adopt_lanes(
    session: &mut Session,
    old: &[DeliveryId],
    new: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
    names: OldNames,
) -> Result<Progress, SinkError> {
    if !has_table(session, "hapax_progress").await? {
        return Err(no_delivery(target_name(session), new));
    }
    progress::refuse_long_names(session, new)?;
    ask::begin(session, During::Look).await?;
    let moved = move_lanes(session, old, new, to, contract, names).await;
    ask::end(session, During::Look, moved).await
}

async fn move_lanes(
    session: &mut Session,
    old: &[DeliveryId],
    new: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
    names: OldNames,
) -> Result<Progress, SinkError> {
    let (now, mut lanes) = (stored(now_ms()), Vec::new());
    for id in old {
        // Waits for a worker in the middle of an epoch, and keeps others from beginning one.
        let lock = "SELECT 1 FROM hapax_progress WHERE workflow = ? AND sink = ? AND lane = ? FOR UPDATE";
        ask::optional(session, During::Look, lock, values![&id.workflow, &id.sink, &id.lane]).await?;
        let found = progress::look(session, id).await?;
        lanes.push(found.ok_or_else(|| no_delivery(target_name(session), id))?);
    }
    if !old.contains(new) && progress::look(session, new).await?.is_some() {
        return Err(adopt_clash(target_name(session), new));
    }
    let Some(last) = old.last() else { return Err(no_delivery(target_name(session), new)) };
    let sum = Joined::of(&lanes);
    for (id, raised) in old.iter().zip(&sum.raised) {
        raise_numbers(session, id, new, *raised).await?;
        let remember = "INSERT IGNORE INTO hapax_adopted (workflow, sink, lane, by_workflow, adopted_at_ms) \
                        VALUES (?, ?, ?, ?, ?)";
        if names == OldNames::Fenced {
            let given = values![&id.workflow, &id.sink, &id.lane, &id.workflow, now];
            ask::execute(session, During::Look, remember, given).await?;
        }
        if id != last {
            delete(session, "hapax_progress", id).await?;
        }
    }
    delete(session, "hapax_adopted", new).await?;
    point("reset.middle");
    let sql = "UPDATE hapax_progress SET lane = ?, generation = ?, epoch = ?, position = ?, incarnation = ?, \
               contract = coalesce(?, contract), session = ?, connection_id = ?, `read` = ?, delivered = ?, filtered = ?, \
               dead = ?, `rows` = ?, updated_at_ms = ? WHERE workflow = ? AND sink = ? AND lane = ?";
    let (generation, epoch) = (stored(sum.generation), stored(sum.epoch));
    let (contract, by) = (contract.map(Contract::to_text), format!("adopted by {}", session_name()));
    let [read, delivered, filtered, dead, rows] = stored_totals(sum.totals);
    let given = values![
        &new.lane,
        generation,
        epoch,
        to.position.to_string(),
        to.stored_incarnation(),
        contract,
        by,
        session.connection_id(),
        read,
        delivered,
        filtered,
        dead,
        rows,
        now,
        &last.workflow,
        &last.sink,
        &last.lane
    ];
    ask::execute(session, During::Look, sql, given).await?;
    let log = "UPDATE hapax_epochs SET epoch = -epoch WHERE workflow = ? AND sink = ? AND lane = ? AND epoch < 0";
    ask::execute(session, During::Look, log, values![&new.workflow, &new.sink, &new.lane]).await?;
    progress::look(session, new).await?.ok_or_else(|| no_delivery(target_name(session), new))
}

/// Gives the epoch log and the letters of a lane to another, with numbers that are above those of the lanes before it.
async fn raise_numbers(
    session: &mut Session,
    id: &DeliveryId,
    new: &DeliveryId,
    raised: Raised,
) -> Result<(), SinkError> {
    const INCARNATION: &str = "incarnation = CONCAT(CAST(SUBSTRING_INDEX(incarnation, ':', 1) AS SIGNED) + ?, \
                               SUBSTRING(incarnation, LOCATE(':', incarnation)))";
    const OF: &str = "WHERE workflow = ? AND sink = ? AND lane = ?";
    let Raised { epochs, generations, incarnations } = raised;
    // Below zero for a moment: two epochs never have one number.
    let log = format!(
        "UPDATE hapax_epochs SET lane = ?, {INCARNATION}, epoch = -(epoch + ?), generation = generation + ? \
         {OF} AND epoch > 0"
    );
    let given = values![&new.lane, incarnations, epochs, generations, &id.workflow, &id.sink, &id.lane];
    ask::execute(session, During::Look, &log, given).await?;
    let letters = format!("UPDATE hapax_dead_letters SET lane = ?, {INCARNATION}, epoch = epoch + ? {OF}");
    let given = values![&new.lane, incarnations, epochs, &id.workflow, &id.sink, &id.lane];
    ask::execute(session, During::Look, &letters, given).await.map(|_| ())
}

/// Removes all that is known of one delivery: progress, epoch log, dead letters. Returns whether there was progress.
/// The user's rows stay. A worker that still has it finds itself fenced.
///
/// # Errors
/// If the database cannot be written.
pub async fn forget(session: &mut Session, id: &DeliveryId) -> Result<Forgotten, SinkError> {
    if !has_table(session, "hapax_progress").await? {
        return Ok(Forgotten::Nothing);
    }
    ask::begin(session, During::Look).await?;
    let forgotten = delete_all(session, id).await;
    ask::end(session, During::Look, forgotten).await
}

async fn delete_all(session: &mut Session, id: &DeliveryId) -> Result<Forgotten, SinkError> {
    let progress = delete(session, "hapax_progress", id).await?;
    for table in ["hapax_epochs", "hapax_dead_letters", "hapax_adopted"] {
        delete(session, table, id).await?;
    }
    Ok(if progress == 0 { Forgotten::Nothing } else { Forgotten::Progress })
}

/// The last epochs of a delivery, the newest first, at most `limit`.
///
/// # Errors
/// If the database cannot be read.
pub async fn recent_epochs(
    session: &mut Session,
    id: &DeliveryId,
    limit: usize,
) -> Result<Vec<LoggedEpoch>, SinkError> {
    if !has_table(session, "hapax_epochs").await? {
        return Ok(Vec::new());
    }
    let sql = "SELECT epoch, generation, from_position, to_position, incarnation, `read`, delivered, filtered, dead, \
               `rows`, opened_at_ms, closed_at_ms, committed_at_ms FROM hapax_epochs \
               WHERE workflow = ? AND sink = ? AND lane = ? ORDER BY epoch DESC, generation DESC LIMIT ?";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = ask::rows(session, During::Look, sql, values![&id.workflow, &id.sink, &id.lane, limit]).await?;
    rows.iter().map(|row| ask::ours(session, row).epoch(id)).collect()
}

#[cfg(test)]
#[path = "admin_tests.rs"]
mod tests;
