//! What a state store remembers for workers and people: witnesses, notes, intents, pauses, suspects.
//!
//! Reads and writes `hapax.witness`, `hapax.notes`, `hapax.intents`, `hapax.pauses`; every function is one statement.
//! Invariant: a witness is never lowered. Not here: leases (`lease`), progress (`progress`).

use hapax_engine::books::{NotedDelivery, Pause};
use hapax_engine::pulse::Verdict;
use hapax_engine::sink::SinkError;
use hapax_engine::state::{DeliveryNote, Intent, Suspicion};
use hapax_model::delivery_state::WorkerState;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::Witness;
use hapax_sql::postgres::Session;
use tokio_postgres::Row;

use super::ask;
use super::error::During;
use super::plain;
use super::tables::{damaged, has_table};
use crate::table::kept::{now_ms, stored};
use crate::table::stored::bookmark;

pub(super) async fn load_witness(session: &Session, id: &DeliveryId) -> Result<Option<Witness>, SinkError> {
    let sql = "SELECT workflow, sink, lane, epoch, position, incarnation FROM hapax.witness \
               WHERE workflow = $1 AND sink = $2 AND lane = $3";
    let found = ask::optional(session, During::Look, sql, &[&id.workflow, &id.sink, &id.lane]).await?;
    found.map(|row| read_witness(session, &row).map(|(_, witness)| witness)).transpose()
}

pub(super) async fn witnesses(session: &Session) -> Result<Vec<(DeliveryId, Witness)>, SinkError> {
    if !has_table(session, "witness").await? {
        return Ok(Vec::new());
    }
    let sql = "SELECT workflow, sink, lane, epoch, position, incarnation FROM hapax.witness \
               ORDER BY workflow, sink, lane";
    let rows = ask::rows(session, During::Look, sql, &[]).await?;
    rows.iter().map(|row| read_witness(session, row)).collect()
}

fn read_witness(session: &Session, row: &Row) -> Result<(DeliveryId, Witness), SinkError> {
    let id = ask::delivery(session, row)?;
    let broken = |what: String| damaged(session, &format!("the witness of {id} is damaged: {what}"));
    let (position, incarnation): (String, String) = (ask::get(session, row, 4)?, ask::get(session, row, 5)?);
    let bookmark = bookmark(&position, &incarnation).map_err(broken)?;
    Ok((id, Witness { epoch: Epoch(ask::unsigned(session, row, 3)?), bookmark }))
}

pub(super) async fn save_witness(session: &Session, id: &DeliveryId, witness: &Witness) -> Result<(), SinkError> {
    let sql = "INSERT INTO hapax.witness AS w (workflow, sink, lane, epoch, position, incarnation, saved_at_ms) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (workflow, sink, lane) DO UPDATE \
               SET epoch = excluded.epoch, position = excluded.position, incarnation = excluded.incarnation, \
               saved_at_ms = excluded.saved_at_ms WHERE excluded.epoch >= w.epoch";
    let place = &witness.bookmark;
    let (position, incarnation) = (place.position.to_string(), place.incarnation.to_string());
    let (epoch, now) = (stored(witness.epoch.0), stored(now_ms()));
    let values: ask::Values<'_> = &[&id.workflow, &id.sink, &id.lane, &epoch, &position, &incarnation, &now];
    ask::execute(session, During::Look, sql, values).await?;
    Ok(())
}

pub(super) async fn note(session: &Session, id: &DeliveryId, note: &DeliveryNote, by: &str) -> Result<(), SinkError> {
    let sql = "INSERT INTO hapax.notes (workflow, sink, lane, state, exit_code, code, message, session, noted_at_ms) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (workflow, sink, lane) DO UPDATE \
               SET state = excluded.state, exit_code = excluded.exit_code, code = excluded.code, \
               message = excluded.message, session = excluded.session, noted_at_ms = excluded.noted_at_ms";
    let (exit_code, message, now) = (note.exit_code.map(i64::from), plain(&note.message), stored(now_ms()));
    let values: ask::Values<'_> =
        &[&id.workflow, &id.sink, &id.lane, &note.state.name(), &exit_code, &note.code, &message, &by, &now];
    ask::execute(session, During::Look, sql, values).await?;
    Ok(())
}

pub(super) async fn notes(session: &Session) -> Result<Vec<NotedDelivery>, SinkError> {
    if !has_table(session, "notes").await? {
        return Ok(Vec::new());
    }
    let sql = "SELECT workflow, sink, lane, state, exit_code, code, message, session, noted_at_ms FROM hapax.notes \
               ORDER BY workflow, sink, lane";
    let rows = ask::rows(session, During::Look, sql, &[]).await?;
    rows.iter()
        .map(|row| {
            let exit_code: Option<i64> = ask::get(session, row, 4)?;
            let note = DeliveryNote {
                state: WorkerState::of_name(&ask::get::<String>(session, row, 3)?),
                exit_code: exit_code.and_then(|code| u8::try_from(code).ok()),
                code: ask::get(session, row, 5)?,
                message: ask::get(session, row, 6)?,
            };
            Ok(NotedDelivery {
                id: ask::delivery(session, row)?,
                note,
                session: ask::get(session, row, 7)?,
                noted_at_ms: ask::unsigned(session, row, 8)?,
            })
        })
        .collect()
}

pub(super) async fn load_intent(session: &Session, id: &DeliveryId) -> Result<Option<Intent>, SinkError> {
    let sql = "SELECT from_position, from_incarnation, to_position, to_incarnation, digest FROM hapax.intents \
               WHERE workflow = $1 AND sink = $2 AND lane = $3";
    let found = ask::optional(session, During::Look, sql, &[&id.workflow, &id.sink, &id.lane]).await?;
    let Some(row) = found else { return Ok(None) };
    let broken = |what: String| damaged(session, &format!("the intent of {id} is damaged: {what}"));
    let text = |column| ask::get::<String>(session, &row, column);
    let from = bookmark(&text(0)?, &text(1)?).map_err(&broken)?;
    let to = bookmark(&text(2)?, &text(3)?).map_err(&broken)?;
    let digest: Vec<u8> = ask::get(session, &row, 4)?;
    let digest = digest.try_into().map_err(|_| broken("its digest has no 32 bytes".to_owned()))?;
    Ok(Some(Intent { from, to, digest }))
}

/// Whether another worker owns the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fenced {
    Yes,
    No,
}

/// The owner's row is locked until the intent is there: a claim comes before it, and fences it, or after it, and reads it.
pub(super) async fn save_intent(
    session: &Session,
    id: &DeliveryId,
    generation: Generation,
    epoch: Epoch,
    intent: &Intent,
) -> Result<Fenced, SinkError> {
    let sql = "WITH owner AS (SELECT workflow, sink, lane FROM hapax.progress \
               WHERE workflow = $1 AND sink = $2 AND lane = $3 AND generation = $11 FOR SHARE) \
               INSERT INTO hapax.intents (workflow, sink, lane, epoch, from_position, from_incarnation, to_position, \
               to_incarnation, digest, saved_at_ms) \
               SELECT workflow, sink, lane, $4::bigint, $5, $6, $7, $8, $9::bytea, $10::bigint FROM owner \
               ON CONFLICT (workflow, sink, lane) DO UPDATE SET epoch = excluded.epoch, \
               from_position = excluded.from_position, from_incarnation = excluded.from_incarnation, \
               to_position = excluded.to_position, to_incarnation = excluded.to_incarnation, \
               digest = excluded.digest, saved_at_ms = excluded.saved_at_ms";
    let (from, from_incarnation) = (intent.from.position.to_string(), intent.from.incarnation.to_string());
    let (to, to_incarnation) = (intent.to.position.to_string(), intent.to.incarnation.to_string());
    let (number, digest, now) = (stored(epoch.0), intent.digest.as_slice(), stored(now_ms()));
    let ours = stored(generation.0);
    let values: ask::Values<'_> = &[
        &id.workflow,
        &id.sink,
        &id.lane,
        &number,
        &from,
        &from_incarnation,
        &to,
        &to_incarnation,
        &digest,
        &now,
        &ours,
    ];
    match ask::execute(session, During::Epoch(epoch), sql, values).await? {
        0 => Ok(Fenced::Yes),
        _ => Ok(Fenced::No),
    }
}

pub(super) async fn paused(session: &Session, workflow: &str) -> Result<bool, SinkError> {
    let sql = "SELECT FROM hapax.pauses WHERE workflow = $1 AND (until_ms IS NULL OR until_ms > $2)";
    Ok(ask::optional(session, During::Look, sql, &[&workflow, &stored(now_ms())]).await?.is_some())
}

pub(super) async fn pause(session: &Session, pause: &Pause) -> Result<(), SinkError> {
    let sql = "INSERT INTO hapax.pauses (workflow, paused_by, why, since_ms, until_ms) VALUES ($1, $2, $3, $4, $5) \
               ON CONFLICT (workflow) DO UPDATE SET paused_by = excluded.paused_by, why = excluded.why, \
               since_ms = excluded.since_ms, until_ms = excluded.until_ms";
    let (since, until) = (stored(pause.since_ms), pause.until_ms.map(stored));
    let values: ask::Values<'_> = &[&pause.workflow, &plain(&pause.by), &plain(&pause.why), &since, &until];
    ask::execute(session, During::Look, sql, values).await?;
    Ok(())
}

pub(super) async fn resume(session: &Session, workflow: &str) -> Result<bool, SinkError> {
    if !has_table(session, "pauses").await? {
        return Ok(false);
    }
    let sql = "DELETE FROM hapax.pauses WHERE workflow = $1";
    Ok(ask::execute(session, During::Look, sql, &[&workflow]).await? > 0)
}

pub(super) async fn pauses(session: &Session) -> Result<Vec<Pause>, SinkError> {
    if !has_table(session, "pauses").await? {
        return Ok(Vec::new());
    }
    let sql = "SELECT workflow, paused_by, why, since_ms, until_ms FROM hapax.pauses ORDER BY workflow";
    let rows = ask::rows(session, During::Look, sql, &[]).await?;
    rows.iter()
        .map(|row| {
            let until: Option<i64> = ask::get(session, row, 4)?;
            Ok(Pause {
                workflow: ask::get(session, row, 0)?,
                by: ask::get(session, row, 1)?,
                why: ask::get(session, row, 2)?,
                since_ms: ask::unsigned(session, row, 3)?,
                until_ms: until.map(|ms| u64::try_from(ms).unwrap_or(0)),
            })
        })
        .collect()
}

pub(super) async fn suspect(session: &Session, id: &DeliveryId, suspicion: &Suspicion) -> Result<(), SinkError> {
    let sql = "INSERT INTO hapax.suspects (workflow, sink, lane, position, incarnation, lives, verdict, noted_at_ms) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (workflow, sink, lane) DO UPDATE SET \
               position = excluded.position, incarnation = excluded.incarnation, lives = excluded.lives, \
               verdict = excluded.verdict, noted_at_ms = excluded.noted_at_ms";
    let Suspicion { at, lives, verdict } = suspicion;
    let (position, incarnation) = (at.position.to_string(), at.incarnation.to_string());
    let (lives, verdict, now) = (i64::from(*lives), verdict.map(Verdict::name), stored(now_ms()));
    let values: ask::Values<'_> = &[&id.workflow, &id.sink, &id.lane, &position, &incarnation, &lives, &verdict, &now];
    ask::execute(session, During::Look, sql, values).await?;
    Ok(())
}

/// A suspicion that cannot be read is none: it is a help, and no input is held back for it.
pub(super) async fn suspicion(session: &Session, id: &DeliveryId) -> Result<Option<Suspicion>, SinkError> {
    let sql = "SELECT position, incarnation, lives, verdict FROM hapax.suspects \
               WHERE workflow = $1 AND sink = $2 AND lane = $3";
    let found = ask::optional(session, During::Look, sql, &[&id.workflow, &id.sink, &id.lane]).await?;
    let Some(row) = found else { return Ok(None) };
    let (position, incarnation): (String, String) = (ask::get(session, &row, 0)?, ask::get(session, &row, 1)?);
    let (lives, verdict): (i64, Option<String>) = (ask::get(session, &row, 2)?, ask::get(session, &row, 3)?);
    let (Ok(position), Ok(incarnation)) = (position.parse(), incarnation.parse()) else { return Ok(None) };
    let (at, lives) = (Bookmark::new(incarnation, position), u32::try_from(lives).unwrap_or(u32::MAX));
    Ok(Some(Suspicion { at, lives, verdict: verdict.as_deref().and_then(Verdict::of_name) }))
}

pub(super) async fn clear_suspicion(session: &Session, id: &DeliveryId) -> Result<(), SinkError> {
    let sql = "DELETE FROM hapax.suspects WHERE workflow = $1 AND sink = $2 AND lane = $3";
    ask::execute(session, During::Look, sql, &[&id.workflow, &id.sink, &id.lane]).await?;
    Ok(())
}
