//! Who holds a progress row, and the end of one of ours that was stopped: how a claim gets past it.
//!
//! Reads `hapax_progress` twice: as it would be if every open transaction committed, and as it is. If they differ, the
//! session that wrote the first holds the row, and it put its connection id there: that needs no right. If they do not,
//! somebody locked the row without writing it, whom the server names to those with the right PROCESS. Writes nothing.

use std::fmt;

use hapax_engine::sink::{Claim, SinkError};
use hapax_model::position::DeliveryId;
use hapax_sql::mysql::{Blocker, Pool, Session, end_blockers};

use super::ask::{self, values};
use super::error::{During, connect_error};
use crate::table::kept::stored;

/// Who kept a claim waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holder {
    /// This session of ours was ended: its locks are free in a moment.
    Ended { connection: u64, name: String },
    /// It was ours, and could not be ended.
    Stays { connection: u64, name: String, why: String },
    /// Nobody wrote the row; what the server says of those who locked it, and what became of them.
    Blockers(Vec<Blocker>),
}

impl fmt::Display for Holder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { connection, name } => write!(formatter, "connection {connection} ({name}), ended"),
            Self::Stays { connection, name, why } => write!(
                formatter,
                "connection {connection} ({name}), which could not be ended: {why}; run both workers as one user, or \
                 KILL {connection}"
            ),
            Self::Blockers(blockers) => {
                let all: Vec<String> = blockers.iter().map(ToString::to_string).collect();
                formatter.write_str(&all.join("; "))
            }
        }
    }
}

/// Ends the session that holds the progress row of `id`, for which the session `waiting` waits with `wanted`, if it is one
/// of ours and may be ended for it. The claim goes on waiting meanwhile: if this fails, it runs into its own limit, and
/// says so.
pub(super) async fn end_holder(pool: &Pool, id: &DeliveryId, waiting: u64, wanted: &Claim) -> Option<Holder> {
    let ended = match pool.extra().await {
        Ok(mut watcher) => end_seen_by(&mut watcher, id, waiting, wanted).await,
        Err(error) => Err(connect_error(&pool.url().target(), &error)),
    };
    match ended {
        Ok(holder) => {
            if let Some(holder) = &holder {
                tracing::warn!(%holder, "a session blocks our claim");
            }
            holder
        }
        Err(error) => {
            tracing::warn!(%error, "a claim waits, and who blocks it cannot be asked");
            None
        }
    }
}

/// None if nobody holds the row at this moment, or whoever waits for it is fenced.
async fn end_seen_by(
    watcher: &mut Session,
    id: &DeliveryId,
    waiting: u64,
    wanted: &Claim,
) -> Result<Option<Holder>, SinkError> {
    // In this order: a transaction that commits between the two looks is no holder any more, and must not be taken for one.
    let dirty = written(watcher, "READ UNCOMMITTED", id).await?;
    let clean = written(watcher, "READ COMMITTED", id).await?;
    // InnoDB locks a row before it compares the generation, so a fenced reclaim waits for the new owner's epoch. It has
    // nothing to gain from that owner's end: it finds no row of its generation, now or when the epoch is over.
    if let Claim::Reclaim { generation, .. } = wanted
        && clean.as_ref().is_none_or(|row| row.generation != stored(generation.0))
    {
        tracing::info!(delivery = %id, "another worker took this delivery over; its session is left alone");
        return Ok(None);
    }
    let Some(holder) = dirty.filter(|dirty| clean.as_ref() != Some(dirty)) else {
        let blockers =
            end_blockers(watcher, waiting).await.map_err(|fault| ask::own(watcher, During::Claim, &fault))?;
        return Ok((!blockers.is_empty()).then_some(Holder::Blockers(blockers)));
    };
    let (connection, name) = (holder.connection, holder.session);
    match watcher.text(&format!("KILL CONNECTION {connection}")).await {
        Ok(_) => Ok(Some(Holder::Ended { connection, name })),
        Err(fault) => Ok(Some(Holder::Stays { connection, name, why: fault.to_string() })),
    }
}

/// What the row says, and who wrote it.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    connection: u64,
    session: String,
    generation: i64,
    epoch: i64,
    updated_at_ms: i64,
}

async fn written(
    watcher: &mut Session,
    isolation: &'static str,
    id: &DeliveryId,
) -> Result<Option<Written>, SinkError> {
    ask::run(watcher, During::Claim, &format!("SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")).await?;
    let sql = "SELECT connection_id, session, generation, epoch, updated_at_ms FROM hapax_progress \
               WHERE workflow = ? AND sink = ? AND lane = ?";
    let row = ask::optional(watcher, During::Claim, sql, values![&id.workflow, &id.sink, &id.lane]).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Written {
        connection: ask::unsigned(watcher, &row, 0)?,
        session: ask::get(watcher, &row, 1)?,
        generation: ask::get(watcher, &row, 2)?,
        epoch: ask::get(watcher, &row, 3)?,
        updated_at_ms: ask::get(watcher, &row, 4)?,
    }))
}

#[cfg(test)]
#[path = "holder_tests.rs"]
mod tests;
