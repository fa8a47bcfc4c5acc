//! What a person does to deliveries: list, reset, adopt, forget. Each function is one transaction.
//!
//! Reads and writes our tables, in a target or in a state store. Invariant: whatever moves a delivery also fences the
//! worker that has it. Not here: questions, dry runs and the lease check, which are the command line's.

use hapax_engine::books::{Forgotten, LoggedEpoch, OldNames, StoredDelivery};
use hapax_engine::sink::SinkError;
use hapax_model::contract::Contract;
use hapax_model::fault::point;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Progress;
use hapax_sql::postgres::Session;
use hapax_sql::process::session_name;

use super::ask;
use super::error::{During, target_name};
use super::progress;
use super::tables::has_table;
use crate::table::admin::{Joined, Raised, adopt_clash, no_delivery, nothing_to_adopt, stays_in_place};
use crate::table::kept::{now_ms, stored, stored_totals};
use crate::table::own_row::OwnRow as _;

/// All deliveries of the database.
///
/// # Errors
/// If the database cannot be read.
pub async fn deliveries(session: &Session) -> Result<Vec<StoredDelivery>, SinkError> {
    let all = progress::all(session).await?;
    Ok(all.into_iter().map(|(id, progress, updated_at_ms)| StoredDelivery { id, progress, updated_at_ms }).collect())
}

/// Whose letters and logged epochs are here, in whatever state; also of deliveries that have no progress any more.
///
/// # Errors
/// If the database cannot be read.
pub async fn owners(session: &Session) -> Result<Vec<DeliveryId>, SinkError> {
    let mut owners = Vec::new();
    for table in ["dead_letters", "epochs"] {
        if !has_table(session, table).await? {
            continue;
        }
        let sql = format!("SELECT DISTINCT workflow, sink, lane FROM hapax.{table}");
        for row in ask::rows(session, During::Look, &sql, &[]).await? {
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
    session: &Session,
    id: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
) -> Result<Progress, SinkError> {
    if !has_table(session, "progress").await? {
        return Err(no_delivery(target_name(session), id));
    }
    ask::begin(session, During::Look).await?;
    let moved = move_to(session, id, to, contract).await;
    ask::end(session, During::Look, moved).await
}

async fn move_to(
    session: &Session,
    id: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
) -> Result<Progress, SinkError> {
    let update = "UPDATE hapax.progress SET generation = generation + 1, position = $4, incarnation = $5, \
                  session = $6, updated_at_ms = $7 WHERE workflow = $1 AND sink = $2 AND lane = $3";
    // One statement, so that a claim at the same time is waited for instead of being a clash.
    let upsert = "INSERT INTO hapax.progress (workflow, sink, lane, generation, epoch, position, incarnation, \
                  session, read, delivered, filtered, dead, rows, updated_at_ms, contract) \
                  VALUES ($1, $2, $3, 1, 0, $4, $5, $6, 0, 0, 0, 0, 0, $7, $8) \
                  ON CONFLICT (workflow, sink, lane) DO UPDATE SET generation = progress.generation + 1, \
                  position = excluded.position, incarnation = excluded.incarnation, session = excluded.session, \
                  updated_at_ms = excluded.updated_at_ms, contract = excluded.contract";
    let (position, incarnation) = (to.position.to_string(), to.stored_incarnation());
    let (by, now) = (format!("reset by {}", session_name()), stored(now_ms()));
    let was = progress::look(session, id).await?;
    let changed = match contract.map(Contract::to_text) {
        None => {
            let values: ask::Values<'_> = &[&id.workflow, &id.sink, &id.lane, &position, &incarnation, &by, &now];
            ask::execute(session, During::Look, update, values).await?
        }
        Some(contract) => {
            let values: ask::Values<'_> =
                &[&id.workflow, &id.sink, &id.lane, &position, &incarnation, &by, &now, &contract];
            ask::execute(session, During::Look, upsert, values).await?
        }
    };
    point("reset.middle");
    if changed == 0 {
        return Err(no_delivery(target_name(session), id));
    }
    delete(session, "adopted", id).await?;
    if was.is_some_and(|was| stays_in_place(&was.bookmark, to)) {
        keep_doubt(session, id).await?;
    } else {
        delete(session, "intents", id).await?;
    }
    progress::look(session, id).await?.ok_or_else(|| no_delivery(target_name(session), id))
}

/// What was about to be sent may have been sent, and stays in doubt; its keys are not expected again, for a person may have accepted
/// others.
async fn keep_doubt(session: &Session, id: &DeliveryId) -> Result<(), SinkError> {
    if !has_table(session, "intents").await? {
        return Ok(());
    }
    let sql = "UPDATE hapax.intents SET digest = decode(repeat('00', 32), 'hex') \
               WHERE workflow = $1 AND sink = $2 AND lane = $3";
    ask::execute(session, During::Look, sql, &[&id.workflow, &id.sink, &id.lane]).await.map(|_| ())
}

/// Removes the row or rows of one delivery from one of our tables, if that table is here.
pub(super) async fn delete(session: &Session, table: &'static str, id: &DeliveryId) -> Result<u64, SinkError> {
    if !has_table(session, table).await? {
        return Ok(0);
    }
    let sql = format!("DELETE FROM hapax.{table} WHERE workflow = $1 AND sink = $2 AND lane = $3");
    ask::execute(session, During::Look, &sql, &[&id.workflow, &id.sink, &id.lane]).await
}

/// Gives all lanes of a sink of a renamed workflow to its new name, and fences the old one for good: its workers find
/// no progress, and a new claim under the old name is refused. Returns how many lanes moved.
///
/// # Errors
/// `HX4191` if the new name already has progress on one of these lanes, `HX4192` if the old one has none.
pub async fn adopt(session: &Session, old: &str, new: &str, sink: &str) -> Result<u64, SinkError> {
    if !has_table(session, "progress").await? {
        return Err(nothing_to_adopt(target_name(session), old, sink));
    }
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

async fn move_name(session: &Session, old: &str, new: &str, sink: &str) -> Result<u64, SinkError> {
    refuse_clash(session, old, new, sink).await?;
    let now = stored(now_ms());
    let remember = "INSERT INTO hapax.adopted (workflow, sink, lane, by_workflow, adopted_at_ms) \
                    SELECT workflow, sink, lane, $2, $4 FROM hapax.progress WHERE workflow = $1 AND sink = $3 \
                    ON CONFLICT (workflow, sink, lane) DO UPDATE SET by_workflow = excluded.by_workflow";
    ask::execute(session, During::Look, remember, &[&old, &new, &sink, &now]).await?;
    let welcome = "DELETE FROM hapax.adopted WHERE workflow = $1 AND sink = $2";
    ask::execute(session, During::Look, welcome, &[&new, &sink]).await?;
    let progress = "UPDATE hapax.progress SET workflow = $2, generation = generation + 1, session = $4, \
                    updated_at_ms = $5 WHERE workflow = $1 AND sink = $3";
    let by = format!("adopted by {}", session_name());
    let moved = ask::execute(session, During::Look, progress, &[&old, &new, &sink, &by, &now]).await?;
    point("reset.middle");
    for table in ["epochs", "dead_letters"] {
        rename(session, table, old, new, sink).await?;
    }
    move_memory(session, old, new, sink).await?;
    match moved {
        0 => Err(nothing_to_adopt(target_name(session), old, sink)),
        lanes => Ok(lanes),
    }
}

async fn refuse_clash(session: &Session, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
    let sql = "SELECT n.workflow, n.sink, n.lane FROM hapax.progress n JOIN hapax.progress o USING (sink, lane) \
               WHERE n.workflow = $2 AND o.workflow = $1 AND sink = $3 ORDER BY lane LIMIT 1";
    let Some(row) = ask::optional(session, During::Look, sql, &[&old, &new, &sink]).await? else { return Ok(()) };
    let id = ask::delivery(session, &row)?;
    Err(adopt_clash(target_name(session), &id))
}

/// Gives a state store's memory of a renamed workflow to its new name: witness and intent. For a state store that is
/// another database than the one that holds progress, after [`adopt`] there.
///
/// # Errors
/// If the state store cannot be written.
pub async fn adopt_memory(session: &Session, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
    ask::begin_perhaps_empty(session).await?;
    let moved = move_memory(session, old, new, sink).await;
    ask::end(session, During::Look, moved).await
}

async fn move_memory(session: &Session, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
    for table in ["witness", "intents"] {
        if has_table(session, table).await? {
            // What the new name may remember of these lanes is from before it was given their progress.
            let sql = format!(
                "DELETE FROM hapax.{table} WHERE workflow = $2 AND sink = $3 \
                 AND lane IN (SELECT lane FROM hapax.{table} WHERE workflow = $1 AND sink = $3)"
            );
            ask::execute(session, During::Look, &sql, &[&old, &new, &sink]).await?;
        }
        rename(session, table, old, new, sink).await?;
    }
    Ok(())
}

async fn rename(session: &Session, table: &'static str, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
    if !has_table(session, table).await? {
        return Ok(());
    }
    let sql = format!("UPDATE hapax.{table} SET workflow = $2 WHERE workflow = $1 AND sink = $3");
    ask::execute(session, During::Look, &sql, &[&old, &new, &sink]).await?;
    Ok(())
}

/// Gives the progress and letters of lanes to one lane, which goes on at `to`, and fences the workers that have the old ones. Their
/// epochs follow one another in the order of `old`; the last one keeps its memory. The new lane may be one of them.
///
/// # Errors
/// `HX4191` if the new lane has progress and is none of `old`, `HX4192` if one of these has none.
pub async fn adopt_lanes(
    session: &Session,
    old: &[DeliveryId],
    new: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
    names: OldNames,
) -> Result<Progress, SinkError> {
    if !has_table(session, "progress").await? {
        return Err(no_delivery(target_name(session), new));
    }
    ask::begin(session, During::Look).await?;
    let moved = move_lanes(session, old, new, to, contract, names).await;
    ask::end(session, During::Look, moved).await
}

async fn move_lanes(
    session: &Session,
    old: &[DeliveryId],
    new: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
    names: OldNames,
) -> Result<Progress, SinkError> {
    let mut lanes = Vec::new();
    for id in old {
        // Waits for a worker in the middle of an epoch, and keeps others from beginning one.
        let lock = "SELECT 1 FROM hapax.progress WHERE workflow = $1 AND sink = $2 AND lane = $3 FOR UPDATE";
        ask::optional(session, During::Look, lock, &[&id.workflow, &id.sink, &id.lane]).await?;
        lanes.push(progress::look(session, id).await?.ok_or_else(|| no_delivery(target_name(session), id))?);
    }
    if !old.contains(new) && progress::look(session, new).await?.is_some() {
        return Err(adopt_clash(target_name(session), new));
    }
    let Some(last) = old.last() else { return Err(no_delivery(target_name(session), new)) };
    let (now, sum) = (stored(now_ms()), Joined::of(&lanes));
    for (id, raised) in old.iter().zip(&sum.raised) {
        raise_numbers(session, id, new, *raised).await?;
        let remember = "INSERT INTO hapax.adopted (workflow, sink, lane, by_workflow, adopted_at_ms) \
                        VALUES ($1, $2, $3, $1, $4) ON CONFLICT (workflow, sink, lane) DO NOTHING";
        if names == OldNames::Fenced {
            ask::execute(session, During::Look, remember, &[&id.workflow, &id.sink, &id.lane, &now]).await?;
        }
        if id != last {
            for table in ["progress", "intents"] {
                delete(session, table, id).await?;
            }
        }
    }
    delete(session, "adopted", new).await?;
    point("reset.middle");
    let sql = "UPDATE hapax.progress SET lane = $4, generation = $5, epoch = $6, position = $7, incarnation = $8, \
               contract = coalesce($9, contract), session = $10, read = $11, delivered = $12, filtered = $13, dead = $14, \
               rows = $15, updated_at_ms = $16 WHERE workflow = $1 AND sink = $2 AND lane = $3";
    let (generation, epoch) = (stored(sum.generation), stored(sum.epoch));
    let (position, incarnation) = (to.position.to_string(), to.stored_incarnation());
    let (contract, by) = (contract.map(Contract::to_text), format!("adopted by {}", session_name()));
    let [read, delivered, filtered, dead, rows] = stored_totals(sum.totals);
    let values: ask::Values<'_> = &[
        &last.workflow,
        &last.sink,
        &last.lane,
        &new.lane,
        &generation,
        &epoch,
        &position,
        &incarnation,
        &contract,
        &by,
        &read,
        &delivered,
        &filtered,
        &dead,
        &rows,
        &now,
    ];
    ask::execute(session, During::Look, sql, values).await?;
    let log = "UPDATE hapax.epochs SET epoch = -epoch WHERE workflow = $1 AND sink = $2 AND lane = $3 AND epoch < 0";
    ask::execute(session, During::Look, log, &[&new.workflow, &new.sink, &new.lane]).await?;
    move_lane_memory(session, last, new).await?;
    progress::look(session, new).await?.ok_or_else(|| no_delivery(target_name(session), new))
}

/// Gives the epoch log and the letters of a lane to another, with numbers that are above those of the lanes before it.
async fn raise_numbers(session: &Session, id: &DeliveryId, new: &DeliveryId, raised: Raised) -> Result<(), SinkError> {
    const INCARNATION: &str = "incarnation = (split_part(incarnation, ':', 1)::bigint + $5) \
                               || substr(incarnation, strpos(incarnation, ':'))";
    const OF: &str = "WHERE workflow = $1 AND sink = $2 AND lane = $3";
    let Raised { epochs, generations, incarnations } = raised;
    // Below zero for a moment: two epochs never have one number.
    let log = format!(
        "UPDATE hapax.epochs SET lane = $4, {INCARNATION}, epoch = -(epoch + $6), generation = generation + $7 \
         {OF} AND epoch > 0"
    );
    let values: ask::Values<'_> = &[&id.workflow, &id.sink, &id.lane, &new.lane, &incarnations, &epochs, &generations];
    ask::execute(session, During::Look, &log, values).await?;
    let letters = format!("UPDATE hapax.dead_letters SET lane = $4, {INCARNATION}, epoch = epoch + $6 {OF}");
    let values: ask::Values<'_> = &[&id.workflow, &id.sink, &id.lane, &new.lane, &incarnations, &epochs];
    ask::execute(session, During::Look, &letters, values).await?;
    raise_doubt(session, id, incarnations).await
}

/// What a lane was about to send stays in doubt where it goes on under higher numbers of incarnations; its keys, and how its rows were
/// made, are not expected again.
async fn raise_doubt(session: &Session, id: &DeliveryId, incarnations: i64) -> Result<(), SinkError> {
    if incarnations == 0 || !has_table(session, "intents").await? {
        return Ok(());
    }
    let raised = |column: &str| {
        format!("{column} = (split_part({column}, ':', 1)::bigint + $4) || substr({column}, strpos({column}, ':'))")
    };
    let sql = format!(
        "UPDATE hapax.intents SET {}, {}, digest = decode(repeat('00', 32), 'hex') \
         WHERE workflow = $1 AND sink = $2 AND lane = $3",
        raised("from_incarnation"),
        raised("to_incarnation")
    );
    ask::execute(session, During::Look, &sql, &[&id.workflow, &id.sink, &id.lane, &incarnations]).await.map(|_| ())
}

async fn rename_lane(
    session: &Session,
    table: &'static str,
    old: &DeliveryId,
    new: &DeliveryId,
) -> Result<(), SinkError> {
    let sql = format!("UPDATE hapax.{table} SET lane = $4 WHERE workflow = $1 AND sink = $2 AND lane = $3");
    ask::execute(session, During::Look, &sql, &[&old.workflow, &old.sink, &old.lane, &new.lane]).await.map(|_| ())
}

/// Gives a state store's memory of a lane to another: its intent; the witnesses and notes of both are forgotten.
///
/// # Errors
/// If the state store cannot be written.
pub async fn adopt_lane_memory(session: &Session, old: &DeliveryId, new: &DeliveryId) -> Result<(), SinkError> {
    ask::begin_perhaps_empty(session).await?;
    let moved = move_lane_memory(session, old, new).await;
    ask::end(session, During::Look, moved).await
}

async fn move_lane_memory(session: &Session, old: &DeliveryId, new: &DeliveryId) -> Result<(), SinkError> {
    for id in [old, new] {
        delete(session, "witness", id).await?;
        delete(session, "notes", id).await?;
    }
    if old == new || !has_table(session, "intents").await? {
        return Ok(());
    }
    // Only if there is another to take its place: where progress is kept here too, the new one's came with it.
    let make_room = "DELETE FROM hapax.intents WHERE workflow = $1 AND sink = $2 AND lane = $4 AND EXISTS \
                     (SELECT 1 FROM hapax.intents WHERE workflow = $1 AND sink = $2 AND lane = $3)";
    ask::execute(session, During::Look, make_room, &[&old.workflow, &old.sink, &old.lane, &new.lane]).await?;
    rename_lane(session, "intents", old, new).await
}

/// Removes all that is known of one delivery: progress, epoch log, dead letters, witness, intent, note. Returns
/// whether there was progress. The user's rows stay. A worker that still has it finds itself fenced.
///
/// # Errors
/// If the database cannot be written.
pub async fn forget(session: &Session, id: &DeliveryId) -> Result<Forgotten, SinkError> {
    ask::begin_perhaps_empty(session).await?;
    let forgotten = delete_all(session, id).await;
    ask::end(session, During::Look, forgotten).await
}

async fn delete_all(session: &Session, id: &DeliveryId) -> Result<Forgotten, SinkError> {
    let progress = delete(session, "progress", id).await?;
    for table in ["epochs", "dead_letters", "adopted", "witness", "intents", "notes", "leases", "suspects"] {
        delete(session, table, id).await?;
    }
    Ok(if progress == 0 { Forgotten::Nothing } else { Forgotten::Progress })
}

/// The last epochs of a delivery, the newest first, at most `limit`.
///
/// # Errors
/// If the database cannot be read.
pub async fn recent_epochs(session: &Session, id: &DeliveryId, limit: usize) -> Result<Vec<LoggedEpoch>, SinkError> {
    if !has_table(session, "epochs").await? {
        return Ok(Vec::new());
    }
    let sql = "SELECT epoch, generation, from_position, to_position, incarnation, read, delivered, filtered, dead, \
               rows, opened_at_ms, closed_at_ms, committed_at_ms FROM hapax.epochs \
               WHERE workflow = $1 AND sink = $2 AND lane = $3 \
               ORDER BY epoch DESC, generation DESC LIMIT $4";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = ask::rows(session, During::Look, sql, &[&id.workflow, &id.sink, &id.lane, &limit]).await?;
    rows.iter().map(|row| ask::ours(session, row).epoch(id)).collect()
}

#[cfg(test)]
#[path = "admin_tests.rs"]
mod tests;
