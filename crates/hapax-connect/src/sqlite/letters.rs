//! Dead letters at rest: listed, grouped by cause, discarded, marked as replayed.
//!
//! Reads and writes `hapax_dead_letters`, with no worker alive. Invariant: only a letter that is still `dead` changes
//! its state, and `dead` in the ledger never changes. Not here: writing letters (`progress`), replaying (the sink).

use std::collections::BTreeMap;

use hapax_engine::books::{LetterCounts, LetterGroup};
use hapax_engine::in_doubt::in_doubt_after_replay;
use hapax_engine::letters::{LetterChoice, StoredLetter};
use hapax_engine::sink::SinkError;
use hapax_model::letter::{Cause, LetterBytes};
use hapax_model::position::DeliveryId;
use hapax_sql::sqlite::checked_commit;
use rusqlite::{Connection, Row, ToSql, Transaction, TransactionBehavior, params};

use super::error::{During, after_commit, path_of};
use super::progress::{delivery, unsigned};
use super::tables::{damaged, has_table, look_error};
use crate::table::kept::{now_ms, stored};

/// What a [`LetterChoice`] means, above the number `:after`: a condition, and the values that it names. Only what narrows
/// the choice is written, so that the index over the dead letters of a sink serves where it can.
struct Chosen<'a> {
    choice: &'a LetterChoice,
    after: i64,
    position: Option<String>,
    ids: Option<String>,
}

impl<'a> Chosen<'a> {
    fn new(choice: &'a LetterChoice, after: i64) -> Self {
        let position = choice.position.map(|position| position.to_string());
        Self { choice, after, position, ids: (!choice.ids.is_empty()).then(|| json(&choice.ids)) }
    }

    fn parts(&self) -> [(&'static str, &'static str, &Option<String>); 7] {
        let choice = self.choice;
        [
            (" AND workflow = :workflow", ":workflow", &choice.workflow),
            (" AND sink = :sink", ":sink", &choice.sink),
            (" AND lane = :lane", ":lane", &choice.lane),
            (" AND substr(fingerprint, 1, length(:cause)) = :cause", ":cause", &choice.cause),
            (" AND position = :position", ":position", &self.position),
            (" AND event_key = :event_key", ":event_key", &choice.event_key),
            (" AND id IN (SELECT value FROM json_each(:ids))", ":ids", &self.ids),
        ]
    }

    fn condition(&self) -> String {
        let state = if self.choice.means_any_state() { "" } else { " AND state = 'dead'" };
        let narrowed = self.parts().into_iter().filter(|(_, _, value)| value.is_some()).map(|(text, _, _)| text);
        format!("id > :after{state}{}", narrowed.collect::<String>())
    }

    fn values(&self) -> Vec<(&'static str, &dyn ToSql)> {
        let named = self.parts().into_iter().filter(|(_, _, value)| value.is_some());
        let named = named.map(|(_, name, value)| (name, value as &dyn ToSql));
        std::iter::once((":after", &self.after as &dyn ToSql)).chain(named).collect()
    }
}

fn json(ids: &[i64]) -> String {
    serde_json::to_string(ids).expect("a list of numbers is always JSON")
}

/// Letters in the order of their numbers, `after` exclusive, at most `limit`.
///
/// # Errors
/// If the database cannot be read, or what it holds is damaged.
pub fn list(
    connection: &Connection,
    choice: &LetterChoice,
    after: i64,
    limit: usize,
) -> Result<Vec<StoredLetter>, SinkError> {
    if !has_table(connection, "hapax_dead_letters")? {
        return Ok(Vec::new());
    }
    let chosen = Chosen::new(choice, after);
    let sql = format!(
        "SELECT workflow, sink, lane, id, epoch, position, incarnation, stage, code, message, fingerprint, bytes, \
         length, sha256, event_key, written_at_ms, state FROM hapax_dead_letters \
         WHERE {} ORDER BY id LIMIT {}",
        chosen.condition(),
        i64::try_from(limit).unwrap_or(i64::MAX)
    );
    let read = || -> rusqlite::Result<Vec<(StoredLetter, String)>> {
        connection.prepare_cached(&sql)?.query_map(chosen.values().as_slice(), read_letter)?.collect()
    };
    let rows = read().map_err(|error| look_error(connection, &error))?;
    rows.into_iter()
        .map(|(letter, position)| {
            let position = position.parse().map_err(|error: hapax_model::position::NoPosition| {
                damaged(connection, &format!("dead letter {} is damaged: {error}", letter.id))
            })?;
            Ok(StoredLetter { position, ..letter })
        })
        .collect()
}

fn read_letter(row: &Row<'_>) -> rusqlite::Result<(StoredLetter, String)> {
    let (bytes, length): (Vec<u8>, u64) = (row.get(11)?, unsigned(row, 12)?);
    let sha256: Option<[u8; 32]> = row.get(13)?;
    let letter = StoredLetter {
        id: row.get(3)?,
        delivery: delivery(row)?,
        epoch: unsigned(row, 4)?,
        position: hapax_model::position::Position::default(),
        incarnation: row.get(6)?,
        stage: row.get(7)?,
        code: row.get(8)?,
        message: row.get(9)?,
        fingerprint: row.get(10)?,
        bytes: match sha256 {
            Some(sha256) => LetterBytes::Cut { head: bytes, length, sha256 },
            None => LetterBytes::Whole(bytes),
        },
        event_key: row.get(14)?,
        written_at_ms: unsigned(row, 15)?,
        state: row.get(16)?,
    };
    Ok((letter, row.get(5)?))
}

/// The chosen letters above the number `after`, grouped by cause, the largest group first.
///
/// # Errors
/// If the database cannot be read.
pub fn causes(connection: &Connection, choice: &LetterChoice, after: i64) -> Result<Vec<LetterGroup>, SinkError> {
    if !has_table(connection, "hapax_dead_letters")? {
        return Ok(Vec::new());
    }
    // One pass over the letters, then one look at the first of each group: there may be millions of few causes.
    let chosen = Chosen::new(choice, after);
    let sql = format!(
        "WITH grouped AS (SELECT fingerprint, code, stage, count(*) AS letters, min(id) AS first, \
         max(written_at_ms) AS latest, max(id) AS last FROM hapax_dead_letters WHERE {} \
         GROUP BY fingerprint, code, stage) \
         SELECT g.fingerprint, g.code, g.stage, g.letters, g.first, d.message, d.written_at_ms, g.latest, g.last \
         FROM grouped AS g JOIN hapax_dead_letters AS d ON d.id = g.first ORDER BY 4 DESC, 5",
        chosen.condition()
    );
    let read = || -> rusqlite::Result<Vec<LetterGroup>> {
        let mut statement = connection.prepare_cached(&sql)?;
        let rows = statement.query_map(chosen.values().as_slice(), |row| {
            Ok(LetterGroup {
                fingerprint: row.get(0)?,
                code: row.get(1)?,
                stage: row.get(2)?,
                count: unsigned(row, 3)?,
                first_id: row.get(4)?,
                example: row.get(5)?,
                first_at_ms: unsigned(row, 6)?,
                last_at_ms: unsigned(row, 7)?,
                last_id: row.get(8)?,
            })
        })?;
        rows.collect()
    };
    read().map_err(|error| look_error(connection, &error))
}

/// How many letters of one delivery are in each state.
///
/// # Errors
/// If the database cannot be read.
pub fn counts(connection: &Connection, id: &DeliveryId) -> Result<LetterCounts, SinkError> {
    if !has_table(connection, "hapax_dead_letters")? {
        return Ok(LetterCounts::default());
    }
    let sql = "SELECT count(*) FILTER (WHERE state = 'dead'), count(*) FILTER (WHERE state = 'replayed'), \
               count(*) FILTER (WHERE state = 'discarded') FROM hapax_dead_letters \
               WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let read = |row: &Row<'_>| {
        Ok(LetterCounts { dead: unsigned(row, 0)?, replayed: unsigned(row, 1)?, discarded: unsigned(row, 2)? })
    };
    connection.query_row(sql, super::progress::key(id), read).map_err(|error| look_error(connection, &error))
}

/// Marks letters as discarded, in one transaction of its own; returns how many were still `dead`.
///
/// # Errors
/// If the database cannot be written.
pub fn discard(connection: &Connection, ids: &[i64]) -> Result<u64, SinkError> {
    let fail = |error: rusqlite::Error| look_error(connection, &error);
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
    let sql = "UPDATE hapax_dead_letters SET state = 'discarded', state_at_ms = ?2 \
               WHERE state = 'dead' AND id IN (SELECT value FROM json_each(?1))";
    let changed = transaction.execute(sql, params![json(ids), stored(now_ms())]).map_err(fail)?;
    after_commit(&path_of(connection), During::Look, checked_commit(&transaction))?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

/// Those of `ids` that are still `dead`, ascending. Inside a transaction that began IMMEDIATE this also locks them:
/// no other replay or discard can take them before its end.
///
/// # Errors
/// If the database cannot be read.
pub fn still_dead(connection: &Connection, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
    let sql = "SELECT id FROM hapax_dead_letters \
               WHERE state = 'dead' AND id IN (SELECT value FROM json_each(?1)) ORDER BY id";
    let read = || -> rusqlite::Result<Vec<i64>> {
        connection.prepare_cached(sql)?.query_map([json(ids)], |row| row.get(0))?.collect()
    };
    read().map_err(|error| look_error(connection, &error))
}

/// Marks letters as replayed, inside the transaction that wrote their outputs; returns how many were still `dead`.
///
/// # Errors
/// If the database cannot be written.
pub fn mark_replayed(connection: &Connection, ids: &[i64]) -> Result<u64, SinkError> {
    let sql = "UPDATE hapax_dead_letters SET state = 'replayed', state_at_ms = ?2, replay_count = replay_count + 1 \
               WHERE state = 'dead' AND id IN (SELECT value FROM json_each(?1))";
    let changed = connection
        .execute(sql, params![json(ids), stored(now_ms())])
        .map_err(|error| look_error(connection, &error))?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

/// Letters that were refused again stay dead, with the newer reason; inside the replay's transaction.
///
/// # Errors
/// If the database cannot be written.
pub fn note_refused(connection: &Connection, refused: &BTreeMap<i64, Cause>) -> Result<(), SinkError> {
    let sql = "UPDATE hapax_dead_letters SET stage = ?2, code = ?3, message = ?4, fingerprint = ?5, \
               replay_count = replay_count + 1 WHERE id = ?1 AND state = 'dead'";
    for (id, cause) in refused {
        let values = params![id, cause.stage.name(), cause.code, cause.message, cause.fingerprint];
        let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        done.map_err(|error| look_error(connection, &error))?;
    }
    Ok(())
}

/// Marks letters whose outputs were written elsewhere, in one transaction of its own; returns how many of `good` were
/// still `dead`.
///
/// # Errors
/// If the database cannot be written.
pub fn mark_written(connection: &Connection, good: &[i64], refused: &BTreeMap<i64, Cause>) -> Result<u64, SinkError> {
    let fail = |error: rusqlite::Error| look_error(connection, &error);
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
    let marked = mark_replayed(&transaction, good)?;
    note_refused(&transaction, refused)?;
    after_commit(&path_of(connection), During::Look, checked_commit(&transaction))?;
    Ok(marked)
}

/// Makes those of `ids` that are `dead` and not in doubt letters in doubt, in one transaction of its own; returns them.
///
/// # Errors
/// If the database cannot be written.
pub fn take_in_doubt(connection: &Connection, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
    let fail = |error: rusqlite::Error| look_error(connection, &error);
    let cause = in_doubt_after_replay();
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
    let sql = "UPDATE hapax_dead_letters SET message = ?3 || code || ': ' || message, code = ?2, stage = ?4, \
               fingerprint = ?5 WHERE state = 'dead' AND code <> ?2 AND id IN (SELECT value FROM json_each(?1)) RETURNING id";
    let values = params![json(ids), cause.code, cause.message, cause.stage.name(), cause.fingerprint];
    let take = || -> rusqlite::Result<Vec<i64>> {
        transaction.prepare_cached(sql)?.query_map(values, |row| row.get(0))?.collect()
    };
    let taken = take().map_err(fail)?;
    after_commit(&path_of(connection), During::Look, checked_commit(&transaction))?;
    Ok(taken)
}

#[cfg(test)]
#[path = "letters_tests.rs"]
mod tests;
