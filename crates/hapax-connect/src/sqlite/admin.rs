//! What a person asks and does: list, reset, adopt, forget, pause. Each function is one transaction.
//!
//! Reads and writes our tables, in a target or in a state store. Invariant: whatever moves a delivery also fences the
//! worker that has it. Not here: questions, dry runs and the lease check, which are the command line's.

use hapax_engine::books::{Forgotten, LoggedEpoch, NotedDelivery, OldNames, Pause, StoredDelivery, StoredLease};
use hapax_engine::sink::SinkError;
use hapax_engine::state::DeliveryNote;
use hapax_model::contract::Contract;
use hapax_model::delivery_state::WorkerState;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::fault::point;
use hapax_model::ledger::Totals;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::{Progress, Witness};
use hapax_sql::process::session_name;
use hapax_sql::sqlite::checked_commit;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, named_params, params};

use super::error::{During, after_commit, path_of, target_name};
use super::progress::{self, delivery, key, unsigned};
use super::tables::{Role, damaged, ensure, has_table, look_error};
use crate::table::admin::{Joined, Raised, adopt_clash, no_delivery, nothing_to_adopt, stays_in_place};
use crate::table::kept::{now_ms, stored};
use crate::table::stored::bookmark;

/// All deliveries of the database.
///
/// # Errors
/// If the database cannot be read.
pub fn deliveries(connection: &Connection) -> Result<Vec<StoredDelivery>, SinkError> {
    let all = progress::all(connection)?.into_iter();
    Ok(all.map(|(id, progress, updated_at_ms)| StoredDelivery { id, progress, updated_at_ms }).collect())
}

/// Whose letters and logged epochs are here, in whatever state; also of deliveries that have no progress any more.
///
/// # Errors
/// If the database cannot be read.
pub fn owners(connection: &Connection) -> Result<Vec<DeliveryId>, SinkError> {
    let mut owners = Vec::new();
    for table in ["hapax_dead_letters", "hapax_epochs"] {
        if !has_table(connection, table)? {
            continue;
        }
        let read = || -> rusqlite::Result<Vec<DeliveryId>> {
            let mut statement = connection.prepare(&format!("SELECT DISTINCT workflow, sink, lane FROM {table}"))?;
            statement.query_map([], delivery)?.collect()
        };
        owners.extend(read().map_err(|error| look_error(connection, &error))?);
    }
    Ok(owners)
}

/// Moves a delivery to another place in its source, and fences the worker that has it, which then goes on from there.
///
/// `contract` replaces the stored one (a person accepts what changed); with it, a delivery without progress is made.
///
/// # Errors
/// `HX4192` if there is no such delivery and no contract to make it with; else what the database said.
pub fn reset(
    connection: &Connection,
    id: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
) -> Result<Progress, SinkError> {
    in_transaction(connection, |transaction| {
        let was = progress::look(transaction, id)?;
        let sql = "UPDATE hapax_progress SET generation = generation + 1, position = :position, \
                   incarnation = :incarnation, contract = coalesce(:contract, contract), session = :session, \
                   updated_at_ms = :now WHERE workflow = :workflow AND sink = :sink AND lane = :lane";
        let contract = contract.map(Contract::to_text);
        let values = named_params! {
            ":workflow": id.workflow, ":sink": id.sink, ":lane": id.lane, ":position": to.position.to_string(),
            ":incarnation": to.stored_incarnation(), ":contract": contract, ":now": stored(now_ms()),
            ":session": reset_session(),
        };
        let changed = transaction.execute(sql, values).map_err(|error| look_error(transaction, &error))?;
        point("reset.middle");
        match (changed, contract) {
            (0, None) => return Err(no_delivery(target_name(&path_of(transaction)), id)),
            (0, Some(contract)) => insert(transaction, id, to, &contract)?,
            (_, _) => {}
        }
        delete(transaction, "hapax_adopted", id)?;
        if was.is_some_and(|was| stays_in_place(&was.bookmark, to)) {
            keep_doubt(transaction, id)?;
        } else {
            delete(transaction, "hapax_intents", id)?;
        }
        progress::look(transaction, id)?.ok_or_else(|| no_delivery(target_name(&path_of(transaction)), id))
    })
}

fn reset_session() -> String {
    format!("reset by {}", session_name())
}

fn insert(connection: &Connection, id: &DeliveryId, to: &Bookmark, contract: &str) -> Result<(), SinkError> {
    let sql = "INSERT INTO hapax_progress (workflow, sink, lane, generation, epoch, position, incarnation, contract, \
               session, read, delivered, filtered, dead, rows, updated_at_ms) \
               VALUES (?1, ?2, ?3, 1, 0, ?4, ?5, ?6, ?7, 0, 0, 0, 0, 0, ?8)";
    let (position, incarnation) = (to.position.to_string(), to.stored_incarnation());
    let values =
        params![id.workflow, id.sink, id.lane, position, incarnation, contract, reset_session(), stored(now_ms())];
    connection.execute(sql, values).map_err(|error| look_error(connection, &error))?;
    Ok(())
}

/// What was about to be sent may have been sent, and stays in doubt; its keys are not expected again, for a person may have accepted
/// others.
fn keep_doubt(connection: &Connection, id: &DeliveryId) -> Result<(), SinkError> {
    if !has_table(connection, "hapax_intents")? {
        return Ok(());
    }
    let sql = "UPDATE hapax_intents SET digest = zeroblob(32) WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    connection.execute(sql, key(id)).map(|_| ()).map_err(|error| look_error(connection, &error))
}

fn delete(connection: &Connection, table: &'static str, id: &DeliveryId) -> Result<usize, SinkError> {
    if !has_table(connection, table)? {
        return Ok(0);
    }
    let sql = format!("DELETE FROM {table} WHERE workflow = ?1 AND sink = ?2 AND lane = ?3");
    connection.execute(&sql, key(id)).map_err(|error| look_error(connection, &error))
}

/// Gives all lanes of a sink of a renamed workflow to its new name, and fences the old one for good: its workers find
/// no progress, and a new claim under the old name is refused. Returns how many lanes moved.
///
/// # Errors
/// `HX4191` if the new name already has progress on one of these lanes, `HX4192` if the old one has none.
pub fn adopt(connection: &Connection, old: &str, new: &str, sink: &str) -> Result<u64, SinkError> {
    in_transaction(connection, |transaction| {
        refuse_clash(transaction, old, new, sink)?;
        let fail = |error: rusqlite::Error| look_error(transaction, &error);
        let now = stored(now_ms());
        let remember = "INSERT INTO hapax_adopted (workflow, sink, lane, by_workflow, adopted_at_ms) \
                        SELECT workflow, sink, lane, ?2, ?4 FROM hapax_progress WHERE workflow = ?1 AND sink = ?3 \
                        ON CONFLICT (workflow, sink, lane) DO UPDATE SET by_workflow = excluded.by_workflow";
        transaction.execute(remember, params![old, new, sink, now]).map_err(fail)?;
        let welcome = "DELETE FROM hapax_adopted WHERE workflow = ?1 AND sink = ?2";
        transaction.execute(welcome, params![new, sink]).map_err(fail)?;
        let progress = "UPDATE hapax_progress SET workflow = ?2, generation = generation + 1, session = ?4, \
                        updated_at_ms = ?5 WHERE workflow = ?1 AND sink = ?3";
        let session = format!("adopted by {}", session_name());
        let moved = transaction.execute(progress, params![old, new, sink, session, now]).map_err(fail)?;
        point("reset.middle");
        for table in ["hapax_epochs", "hapax_dead_letters"] {
            rename(transaction, table, old, new, sink)?;
        }
        move_memory(transaction, old, new, sink)?;
        match moved {
            0 => Err(nothing_to_adopt(target_name(&path_of(transaction)), old, sink)),
            lanes => Ok(u64::try_from(lanes).unwrap_or(u64::MAX)),
        }
    })
}

/// Gives a state store's memory of a renamed workflow to its new name: witness and intent. For a state store that is
/// another file than the one that holds progress, after [`adopt`] there.
///
/// # Errors
/// If the state store cannot be written.
pub fn adopt_memory(connection: &Connection, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
    in_transaction(connection, |transaction| move_memory(transaction, old, new, sink))
}

fn move_memory(connection: &Connection, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
    for table in ["hapax_witness", "hapax_intents"] {
        if has_table(connection, table)? {
            // What the new name may remember of these lanes is from before it was given their progress.
            let sql = format!(
                "DELETE FROM {table} WHERE workflow = ?2 AND sink = ?3 \
                 AND lane IN (SELECT lane FROM {table} WHERE workflow = ?1 AND sink = ?3)"
            );
            connection.execute(&sql, [old, new, sink]).map_err(|error| look_error(connection, &error))?;
        }
        rename(connection, table, old, new, sink)?;
    }
    Ok(())
}

fn rename(connection: &Connection, table: &'static str, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
    if !has_table(connection, table)? {
        return Ok(());
    }
    let sql = format!("UPDATE {table} SET workflow = ?2 WHERE workflow = ?1 AND sink = ?3");
    connection.execute(&sql, [old, new, sink]).map_err(|error| look_error(connection, &error))?;
    Ok(())
}

fn refuse_clash(connection: &Connection, old: &str, new: &str, sink: &str) -> Result<(), SinkError> {
    let all = deliveries(connection)?;
    let of = |workflow: &str| -> Vec<&DeliveryId> {
        all.iter().map(|found| &found.id).filter(|id| id.workflow == workflow && id.sink == sink).collect()
    };
    let clash = of(new).into_iter().find(|id| of(old).iter().any(|other| other.lane == id.lane));
    match clash {
        None => Ok(()),
        Some(id) => Err(adopt_clash(target_name(&path_of(connection)), id)),
    }
}

/// Gives the progress and letters of lanes to one lane, which goes on at `to`, and fences the workers that have the old ones. Their
/// epochs follow one another in the order of `old`; the last one keeps its memory. The new lane may be one of them.
///
/// # Errors
/// `HX4191` if the new lane has progress and is none of `old`, `HX4192` if one of these has none.
pub fn adopt_lanes(
    connection: &Connection,
    old: &[DeliveryId],
    new: &DeliveryId,
    to: &Bookmark,
    contract: Option<&Contract>,
    names: OldNames,
) -> Result<Progress, SinkError> {
    in_transaction(connection, |transaction| {
        let fail = |error: rusqlite::Error| look_error(transaction, &error);
        let target = || target_name(&path_of(transaction));
        let mut lanes = Vec::new();
        for id in old {
            lanes.push(progress::look(transaction, id)?.ok_or_else(|| no_delivery(target(), id))?);
        }
        if !old.contains(new) && progress::look(transaction, new)?.is_some() {
            return Err(adopt_clash(target(), new));
        }
        let Some(last) = old.last() else { return Err(no_delivery(target(), new)) };
        let (now, sum) = (stored(now_ms()), Joined::of(&lanes));
        for (id, raised) in old.iter().zip(&sum.raised) {
            raise_numbers(transaction, id, new, *raised)?;
            let remember = "INSERT INTO hapax_adopted (workflow, sink, lane, by_workflow, adopted_at_ms) \
                            VALUES (?1, ?2, ?3, ?1, ?4) ON CONFLICT (workflow, sink, lane) DO NOTHING";
            if names == OldNames::Fenced {
                transaction.execute(remember, params![id.workflow, id.sink, id.lane, now]).map_err(fail)?;
            }
            if id != last {
                for table in ["hapax_progress", "hapax_intents"] {
                    delete(transaction, table, id)?;
                }
            }
        }
        delete(transaction, "hapax_adopted", new)?;
        point("reset.middle");
        let sql = "UPDATE hapax_progress SET lane = :new, generation = :generation, epoch = :epoch, position = :position, \
                   incarnation = :incarnation, contract = coalesce(:contract, contract), session = :session, read = :read, \
                   delivered = :delivered, filtered = :filtered, dead = :dead, rows = :rows, updated_at_ms = :now \
                   WHERE workflow = :workflow AND sink = :sink AND lane = :lane";
        let totals = sum.totals;
        let values = named_params! {
            ":workflow": last.workflow, ":sink": last.sink, ":lane": last.lane, ":new": new.lane,
            ":generation": stored(sum.generation), ":epoch": stored(sum.epoch),
            ":position": to.position.to_string(), ":incarnation": to.stored_incarnation(),
            ":contract": contract.map(Contract::to_text), ":session": format!("adopted by {}", session_name()),
            ":read": stored(totals.read), ":delivered": stored(totals.delivered), ":filtered": stored(totals.filtered),
            ":dead": stored(totals.dead), ":rows": stored(totals.rows), ":now": now,
        };
        transaction.execute(sql, values).map_err(fail)?;
        let log =
            "UPDATE hapax_epochs SET epoch = -epoch WHERE workflow = ?1 AND sink = ?2 AND lane = ?3 AND epoch < 0";
        transaction.execute(log, key(new)).map_err(fail)?;
        move_lane_memory(transaction, last, new)?;
        progress::look(transaction, new)?.ok_or_else(|| no_delivery(target(), new))
    })
}

/// Gives the epoch log and the letters of a lane to another, with numbers that are above those of the lanes before it.
fn raise_numbers(connection: &Connection, id: &DeliveryId, new: &DeliveryId, raised: Raised) -> Result<(), SinkError> {
    const INCARNATION: &str = "incarnation = (CAST(substr(incarnation, 1, instr(incarnation, ':') - 1) AS INTEGER) + ?5) \
                               || substr(incarnation, instr(incarnation, ':'))";
    const OF: &str = "WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let fail = |error: rusqlite::Error| look_error(connection, &error);
    let Raised { epochs, generations, incarnations } = raised;
    // Below zero for a moment: two epochs never have one number.
    let log = format!(
        "UPDATE hapax_epochs SET lane = ?4, {INCARNATION}, epoch = -(epoch + ?6), generation = generation + ?7 \
         {OF} AND epoch > 0"
    );
    let values = params![id.workflow, id.sink, id.lane, new.lane, incarnations, epochs, generations];
    connection.execute(&log, values).map_err(fail)?;
    let letters = format!("UPDATE hapax_dead_letters SET lane = ?4, {INCARNATION}, epoch = epoch + ?6 {OF}");
    let values = params![id.workflow, id.sink, id.lane, new.lane, incarnations, epochs];
    connection.execute(&letters, values).map_err(fail)?;
    raise_doubt(connection, id, incarnations)
}

/// What a lane was about to send stays in doubt where it goes on under higher numbers of incarnations; its keys, and how its rows were
/// made, are not expected again.
fn raise_doubt(connection: &Connection, id: &DeliveryId, incarnations: i64) -> Result<(), SinkError> {
    if incarnations == 0 || !has_table(connection, "hapax_intents")? {
        return Ok(());
    }
    let raised = |column: &str| {
        format!(
            "{column} = (CAST(substr({column}, 1, instr({column}, ':') - 1) AS INTEGER) + ?4) || substr({column}, instr({column}, ':'))"
        )
    };
    let sql = format!(
        "UPDATE hapax_intents SET {}, {}, digest = zeroblob(32) WHERE workflow = ?1 AND sink = ?2 AND lane = ?3",
        raised("from_incarnation"),
        raised("to_incarnation")
    );
    let done = connection.execute(&sql, params![id.workflow, id.sink, id.lane, incarnations]);
    done.map(|_| ()).map_err(|error| look_error(connection, &error))
}

/// Gives a state store's memory of a lane to another: its intent; the witnesses and notes of both are forgotten.
///
/// # Errors
/// If the state store cannot be written.
pub fn adopt_lane_memory(connection: &Connection, old: &DeliveryId, new: &DeliveryId) -> Result<(), SinkError> {
    in_transaction(connection, |transaction| move_lane_memory(transaction, old, new))
}

fn move_lane_memory(connection: &Connection, old: &DeliveryId, new: &DeliveryId) -> Result<(), SinkError> {
    for id in [old, new] {
        delete(connection, "hapax_witness", id)?;
        delete(connection, "hapax_notes", id)?;
    }
    if old == new || !has_table(connection, "hapax_intents")? {
        return Ok(());
    }
    // Only if there is another to take its place: where progress is kept here too, the new one's came with it.
    let make_room = "DELETE FROM hapax_intents WHERE workflow = ?1 AND sink = ?2 AND lane = ?4 AND EXISTS \
                     (SELECT 1 FROM hapax_intents WHERE workflow = ?1 AND sink = ?2 AND lane = ?3)";
    let sql = "UPDATE hapax_intents SET lane = ?4 WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let values = params![old.workflow, old.sink, old.lane, new.lane];
    connection.execute(make_room, values).map_err(|error| look_error(connection, &error))?;
    connection.execute(sql, values).map_err(|error| look_error(connection, &error))?;
    Ok(())
}

/// Removes all that is known of one delivery: progress, epoch log, dead letters, witness, intent, note. Returns
/// whether there was progress. The user's rows stay. A worker that still has it finds itself fenced.
///
/// # Errors
/// If the database cannot be written.
pub fn forget(connection: &Connection, id: &DeliveryId) -> Result<Forgotten, SinkError> {
    in_transaction(connection, |transaction| {
        let progress = delete(transaction, "hapax_progress", id)?;
        for table in ["hapax_epochs", "hapax_dead_letters", "hapax_adopted"] {
            delete(transaction, table, id)?;
        }
        for table in ["hapax_witness", "hapax_intents", "hapax_notes", "hapax_leases", "hapax_suspects"] {
            delete(transaction, table, id)?;
        }
        Ok(if progress == 0 { Forgotten::Nothing } else { Forgotten::Progress })
    })
}

/// The last epochs of a delivery, the newest first, at most `limit`.
///
/// # Errors
/// If the database cannot be read.
pub fn recent_epochs(connection: &Connection, id: &DeliveryId, limit: usize) -> Result<Vec<LoggedEpoch>, SinkError> {
    if !has_table(connection, "hapax_epochs")? {
        return Ok(Vec::new());
    }
    let sql = "SELECT epoch, generation, from_position, to_position, incarnation, read, delivered, filtered, dead, \
               rows, opened_at_ms, closed_at_ms, committed_at_ms FROM hapax_epochs \
               WHERE workflow = ?1 AND sink = ?2 AND lane = ?3 \
               ORDER BY epoch DESC, generation DESC LIMIT ?4";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = params![id.workflow, id.sink, id.lane, limit];
    let read = || -> rusqlite::Result<Vec<Result<LoggedEpoch, String>>> {
        connection.prepare_cached(sql)?.query_map(values, read_epoch)?.collect()
    };
    let rows = read().map_err(|error| look_error(connection, &error))?;
    let broken = |what: String| damaged(connection, &format!("the epoch log of {id} is damaged: {what}"));
    rows.into_iter().map(|row| row.map_err(broken)).collect()
}

fn read_epoch(row: &Row<'_>) -> rusqlite::Result<Result<LoggedEpoch, String>> {
    let (from, position, incarnation): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
    let logged = |from: &Bookmark, to: Bookmark| -> rusqlite::Result<LoggedEpoch> {
        Ok(LoggedEpoch {
            epoch: Epoch(unsigned(row, 0)?),
            generation: Generation(unsigned(row, 1)?),
            from: from.position,
            to,
            counts: Totals {
                read: unsigned(row, 5)?,
                delivered: unsigned(row, 6)?,
                filtered: unsigned(row, 7)?,
                dead: unsigned(row, 8)?,
                rows: unsigned(row, 9)?,
            },
            opened_at_ms: unsigned(row, 10)?,
            closed_at_ms: unsigned(row, 11)?,
            committed_at_ms: unsigned(row, 12)?,
        })
    };
    match (bookmark(&from, &incarnation), bookmark(&position, &incarnation)) {
        (Ok(from), Ok(to)) => logged(&from, to).map(Ok),
        (Err(what), _) | (_, Err(what)) => Ok(Err(what)),
    }
}

/// What live and stopped workers noted of their deliveries.
///
/// # Errors
/// If the state store cannot be read.
pub fn notes(connection: &Connection) -> Result<Vec<NotedDelivery>, SinkError> {
    let sql = "SELECT workflow, sink, lane, state, exit_code, code, message, session, noted_at_ms FROM hapax_notes \
               ORDER BY workflow, sink, lane";
    rows_of(connection, "hapax_notes", sql, |row| {
        let state = WorkerState::of_name(&row.get::<_, String>(3)?);
        let note = DeliveryNote { state, exit_code: row.get(4)?, code: row.get(5)?, message: row.get(6)? };
        Ok(NotedDelivery { id: delivery(row)?, note, session: row.get(7)?, noted_at_ms: unsigned(row, 8)? })
    })
}

/// All leases, expired ones too.
///
/// # Errors
/// If the state store cannot be read.
pub fn leases(connection: &Connection) -> Result<Vec<StoredLease>, SinkError> {
    let sql = "SELECT workflow, sink, lane, holder, expires_at_ms FROM hapax_leases ORDER BY workflow, sink, lane";
    rows_of(connection, "hapax_leases", sql, |row| {
        Ok(StoredLease { id: delivery(row)?, holder: row.get(3)?, expires_at_ms: unsigned(row, 4)? })
    })
}

/// The witness of every delivery.
///
/// # Errors
/// If the state store cannot be read, or a witness is damaged.
pub fn witnesses(connection: &Connection) -> Result<Vec<(DeliveryId, Witness)>, SinkError> {
    let sql = "SELECT workflow, sink, lane, epoch, position, incarnation FROM hapax_witness \
               ORDER BY workflow, sink, lane";
    let rows = rows_of(connection, "hapax_witness", sql, |row| {
        Ok((delivery(row)?, Epoch(unsigned(row, 3)?), row.get::<_, String>(4)?, row.get::<_, String>(5)?))
    })?;
    rows.into_iter()
        .map(|(id, epoch, position, incarnation)| {
            let broken = |what: String| damaged(connection, &format!("the witness of {id} is damaged: {what}"));
            let bookmark = bookmark(&position, &incarnation).map_err(broken)?;
            Ok((id, Witness { epoch, bookmark }))
        })
        .collect()
}

/// Forgets the witness of a delivery, and what its last worker said: a person accepts that its progress went back.
///
/// # Errors
/// If the state store cannot be written.
pub fn reset_witness(connection: &Connection, id: &DeliveryId) -> Result<(), SinkError> {
    in_transaction(connection, |transaction| {
        delete(transaction, "hapax_notes", id)?;
        delete(transaction, "hapax_witness", id).map(|_| ())
    })
}

/// Asks the workers of a workflow to read no more. Makes the tables of a state store where they are missing.
///
/// # Errors
/// If the state store cannot be written.
pub fn pause(connection: &Connection, pause: &Pause) -> Result<(), SinkError> {
    ensure(connection, Role::State)?;
    in_transaction(connection, |transaction| {
        let sql = "INSERT INTO hapax_pauses (workflow, by, why, since_ms, until_ms) VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT (workflow) DO UPDATE SET by = excluded.by, why = excluded.why, \
                   since_ms = excluded.since_ms, until_ms = excluded.until_ms";
        let Pause { workflow, by, why, since_ms, until_ms } = pause;
        let done = transaction.execute(sql, params![workflow, by, why, stored(*since_ms), until_ms.map(stored)]);
        done.map(|_| ()).map_err(|error| look_error(transaction, &error))
    })
}

/// Takes a pause back; whether there was one.
///
/// # Errors
/// If the state store cannot be written.
pub fn resume(connection: &Connection, workflow: &str) -> Result<bool, SinkError> {
    if !has_table(connection, "hapax_pauses")? {
        return Ok(false);
    }
    in_transaction(connection, |transaction| {
        let done = transaction.execute("DELETE FROM hapax_pauses WHERE workflow = ?1", [workflow]);
        done.map(|removed| removed > 0).map_err(|error| look_error(transaction, &error))
    })
}

/// All pauses.
///
/// # Errors
/// If the state store cannot be read.
pub fn pauses(connection: &Connection) -> Result<Vec<Pause>, SinkError> {
    let sql = "SELECT workflow, by, why, since_ms, until_ms FROM hapax_pauses ORDER BY workflow";
    rows_of(connection, "hapax_pauses", sql, |row| {
        let until: Option<i64> = row.get(4)?;
        Ok(Pause {
            workflow: row.get(0)?,
            by: row.get(1)?,
            why: row.get(2)?,
            since_ms: unsigned(row, 3)?,
            until_ms: until.map(|ms| u64::try_from(ms).unwrap_or(0)),
        })
    })
}

fn rows_of<T>(
    connection: &Connection,
    table: &'static str,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, SinkError> {
    if !has_table(connection, table)? {
        return Ok(Vec::new());
    }
    let all = || -> rusqlite::Result<Vec<T>> { connection.prepare_cached(sql)?.query_map([], read)?.collect() };
    all().map_err(|error| look_error(connection, &error))
}

fn in_transaction<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, SinkError>,
) -> Result<T, SinkError> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
        .map_err(|error| look_error(connection, &error))?;
    let answer = work(&transaction)?;
    after_commit(&path_of(connection), During::Look, checked_commit(&transaction))?;
    Ok(answer)
}

#[cfg(test)]
#[path = "admin_tests.rs"]
mod tests;
