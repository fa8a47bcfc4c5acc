//! Dead letters: written inside an epoch, listed, grouped by cause, discarded, locked and marked by a replay.
//!
//! Reads and writes `hapax.dead_letters`. Invariant: only a letter that is still `dead` changes its state, and `dead`
//! in the ledger never changes. Not here: transactions of the caller, replaying itself (the sink).

use std::collections::BTreeMap;

use hapax_engine::books::{LetterCounts, LetterGroup};
use hapax_engine::in_doubt::in_doubt_after_replay;
use hapax_engine::letters::{LetterChoice, StoredLetter};
use hapax_engine::sink::SinkError;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::letter::{Cause, Letter, LetterBytes};
use hapax_model::position::{DeliveryId, Incarnation};
use hapax_sql::postgres::Session;

use super::ask;
use super::error::During;
use super::plain;
use super::tables::has_table;
use crate::table::kept::{now_ms, stored};
use crate::table::own_row::OwnRow as _;

/// One statement carries at most so many letters, and about so many of their bytes.
const LETTERS_PER_STATEMENT: usize = 1_000;
const BYTES_PER_STATEMENT: usize = 16 << 20;

/// Writes an epoch's dead letters, inside its transaction.
///
/// # Errors
/// What the database said.
pub async fn insert_letters(
    session: &Session,
    id: &DeliveryId,
    generation: Generation,
    epoch: Epoch,
    incarnation: &Incarnation,
    letters: &[Letter],
) -> Result<(), SinkError> {
    let sql = "INSERT INTO hapax.dead_letters (workflow, sink, lane, epoch, generation, incarnation, written_at_ms, \
               position, stage, code, message, fingerprint, bytes, length, sha256, event_key) \
               SELECT $1, $2, $3, $4, $5, $6, $7, l.position, l.stage, l.code, l.message, l.fingerprint, l.bytes, \
               l.length, l.sha256, l.event_key \
               FROM unnest($8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::bytea[], $14::bigint[], \
               $15::bytea[], $16::text[]) WITH ORDINALITY \
               AS l (position, stage, code, message, fingerprint, bytes, length, sha256, event_key, nth) ORDER BY l.nth";
    let (now, incarnation) = (stored(now_ms()), incarnation.to_string());
    let (epoch_number, generation) = (stored(epoch.0), stored(generation.0));
    let mut rest = letters;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(fitting(rest));
        rest = after;
        let c = Columns::of(chunk);
        ask::execute(
            session,
            During::Epoch(epoch),
            sql,
            &[
                &id.workflow,
                &id.sink,
                &id.lane,
                &epoch_number,
                &generation,
                &incarnation,
                &now,
                &c.positions,
                &c.stages,
                &c.codes,
                &c.messages,
                &c.fingerprints,
                &c.bytes,
                &c.lengths,
                &c.hashes,
                &c.event_keys,
            ],
        )
        .await?;
    }
    Ok(())
}

/// How many of the first letters one statement takes; at least one.
fn fitting(letters: &[Letter]) -> usize {
    let mut bytes = 0;
    let fits = |letter: &&Letter| {
        bytes += head(&letter.bytes).len();
        bytes <= BYTES_PER_STATEMENT
    };
    letters.iter().take(LETTERS_PER_STATEMENT).take_while(fits).count().max(1)
}

const fn head(bytes: &LetterBytes) -> &Vec<u8> {
    match bytes {
        LetterBytes::Whole(bytes) => bytes,
        LetterBytes::Cut { head, .. } => head,
    }
}

/// Letters as one array per column.
#[derive(Default)]
struct Columns<'a> {
    positions: Vec<String>,
    stages: Vec<&'static str>,
    codes: Vec<&'static str>,
    messages: Vec<String>,
    fingerprints: Vec<String>,
    bytes: Vec<&'a [u8]>,
    lengths: Vec<i64>,
    hashes: Vec<Option<&'a [u8]>>,
    event_keys: Vec<Option<String>>,
}

impl<'a> Columns<'a> {
    fn of(letters: &'a [Letter]) -> Self {
        let mut columns = Self::default();
        for letter in letters {
            let head = head(&letter.bytes);
            let (length, hash) = match &letter.bytes {
                LetterBytes::Whole(_) => (u64::try_from(head.len()).unwrap_or(u64::MAX), None),
                LetterBytes::Cut { length, sha256, .. } => (*length, Some(sha256.as_slice())),
            };
            columns.positions.push(letter.position.to_string());
            columns.stages.push(letter.cause.stage.name());
            columns.codes.push(letter.cause.code);
            columns.messages.push(plain(&letter.cause.message));
            columns.fingerprints.push(plain(&letter.cause.fingerprint));
            columns.bytes.push(head);
            columns.lengths.push(stored(length));
            columns.hashes.push(hash);
            columns.event_keys.push(letter.event_key.as_deref().map(plain));
        }
        columns
    }
}

/// Which letters a [`LetterChoice`] means, as the parameters of [`Chosen::values`].
macro_rules! chosen {
    () => {
        "($1::text IS NULL OR workflow = $1) AND ($2::text IS NULL OR sink = $2) AND ($3::text IS NULL OR lane = $3) \
         AND ($4::text IS NULL OR starts_with(fingerprint, $4)) AND ($5::text IS NULL OR position = $5) \
         AND ($6::text IS NULL OR event_key = $6) AND ($7::bigint[] IS NULL OR id = ANY ($7)) \
         AND ($8::bool OR state = 'dead') AND id > $9"
    };
}

/// A choice as parameters: what is none, or empty, does not narrow it.
struct Chosen<'a> {
    choice: &'a LetterChoice,
    position: Option<String>,
    ids: Option<&'a Vec<i64>>,
    any_state: bool,
    after: i64,
}

impl<'a> Chosen<'a> {
    fn new(choice: &'a LetterChoice, after: i64) -> Self {
        Self {
            choice,
            position: choice.position.map(|position| position.to_string()),
            ids: (!choice.ids.is_empty()).then_some(&choice.ids),
            any_state: choice.means_any_state(),
            after,
        }
    }

    fn values(&self) -> [ask::Value<'_>; 9] {
        let choice = self.choice;
        [
            &choice.workflow,
            &choice.sink,
            &choice.lane,
            &choice.cause,
            &self.position,
            &choice.event_key,
            &self.ids,
            &self.any_state,
            &self.after,
        ]
    }
}

/// Letters in the order of their numbers, `after` exclusive, at most `limit`.
///
/// # Errors
/// If the database cannot be read, or what it holds is damaged.
pub async fn list(
    session: &Session,
    choice: &LetterChoice,
    after: i64,
    limit: usize,
) -> Result<Vec<StoredLetter>, SinkError> {
    if !has_table(session, "dead_letters").await? {
        return Ok(Vec::new());
    }
    let sql = concat!(
        "SELECT workflow, sink, lane, id, epoch, position, incarnation, stage, code, message, fingerprint, bytes, \
         length, sha256, event_key, written_at_ms, state FROM hapax.dead_letters WHERE ",
        chosen!(),
        " ORDER BY id LIMIT $10"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let chosen = Chosen::new(choice, after);
    let values: Vec<ask::Value<'_>> = chosen.values().into_iter().chain([&limit as ask::Value<'_>]).collect();
    let rows = ask::rows(session, During::Look, sql, &values).await?;
    rows.iter().map(|row| ask::ours(session, row).letter()).collect()
}

/// The chosen letters with a number above `after`, grouped by cause, the largest group first.
///
/// # Errors
/// If the database cannot be read.
pub async fn causes(session: &Session, choice: &LetterChoice, after: i64) -> Result<Vec<LetterGroup>, SinkError> {
    if !has_table(session, "dead_letters").await? {
        return Ok(Vec::new());
    }
    // Counted first, then one look at the first of each group: there may be millions of few causes.
    let sql = concat!(
        "WITH grouped AS (SELECT fingerprint, code, stage, count(*) AS letters, min(id) AS first, max(id) AS last, \
         max(written_at_ms) AS latest FROM hapax.dead_letters WHERE ",
        chosen!(),
        " GROUP BY fingerprint, code, stage) \
         SELECT g.fingerprint, g.code, g.stage, g.letters, g.first, g.last, d.message, d.written_at_ms, g.latest \
         FROM grouped AS g JOIN hapax.dead_letters AS d ON d.id = g.first ORDER BY 4 DESC, 5"
    );
    let rows = ask::rows(session, During::Look, sql, &Chosen::new(choice, after).values()).await?;
    rows.iter().map(|row| ask::ours(session, row).letter_group()).collect()
}

/// How many letters of one delivery are in each state.
///
/// # Errors
/// If the database cannot be read.
pub async fn counts(session: &Session, id: &DeliveryId) -> Result<LetterCounts, SinkError> {
    if !has_table(session, "dead_letters").await? {
        return Ok(LetterCounts::default());
    }
    let sql = "SELECT count(*) FILTER (WHERE state = 'dead'), count(*) FILTER (WHERE state = 'replayed'), \
               count(*) FILTER (WHERE state = 'discarded') FROM hapax.dead_letters \
               WHERE workflow = $1 AND sink = $2 AND lane = $3";
    let row = ask::one(session, During::Look, sql, &[&id.workflow, &id.sink, &id.lane]).await?;
    Ok(LetterCounts {
        dead: ask::unsigned(session, &row, 0)?,
        replayed: ask::unsigned(session, &row, 1)?,
        discarded: ask::unsigned(session, &row, 2)?,
    })
}

/// Marks letters as discarded, in one transaction of its own; returns how many were still `dead`.
///
/// # Errors
/// If the database cannot be written.
pub async fn discard(session: &Session, ids: &[i64]) -> Result<u64, SinkError> {
    ask::begin_perhaps_empty(session).await?;
    let changed = discard_locked(session, ids).await;
    ask::end(session, During::Look, changed).await
}

async fn discard_locked(session: &Session, ids: &[i64]) -> Result<u64, SinkError> {
    let dead = still_dead(session, ids).await?;
    let sql =
        "UPDATE hapax.dead_letters SET state = 'discarded', state_at_ms = $2 WHERE state = 'dead' AND id = ANY ($1)";
    ask::execute(session, During::Look, sql, &[&dead, &stored(now_ms())]).await
}

/// Those of `ids` that are still `dead`, ascending, locked until the caller's transaction ends: of two replays at once
/// the second waits here for the first, and then finds them no longer dead.
///
/// # Errors
/// If the database cannot be read, or the other one does not end in time.
pub async fn still_dead(session: &Session, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
    // All lock in the order of the numbers, so that nobody waits in a circle.
    let sql = "SELECT id FROM hapax.dead_letters WHERE state = 'dead' AND id = ANY ($1) ORDER BY id FOR UPDATE";
    let rows = ask::rows(session, During::Look, sql, &[&ids]).await?;
    rows.iter().map(|row| ask::get(session, row, 0)).collect()
}

/// Marks letters as replayed, inside the transaction that wrote their outputs; returns how many were still `dead`.
///
/// # Errors
/// If the database cannot be written.
pub async fn mark_replayed(session: &Session, ids: &[i64]) -> Result<u64, SinkError> {
    let sql = "UPDATE hapax.dead_letters SET state = 'replayed', state_at_ms = $2, replay_count = replay_count + 1 \
               WHERE state = 'dead' AND id = ANY ($1)";
    ask::execute(session, During::Look, sql, &[&ids, &stored(now_ms())]).await
}

/// Letters that were refused again stay dead, with the newer reason; inside the replay's transaction.
///
/// # Errors
/// If the database cannot be written.
pub async fn note_refused(session: &Session, refused: &BTreeMap<i64, Cause>) -> Result<(), SinkError> {
    if refused.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE hapax.dead_letters AS d SET stage = l.stage, code = l.code, message = l.message, \
               fingerprint = l.fingerprint, replay_count = d.replay_count + 1 \
               FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[]) \
               AS l (id, stage, code, message, fingerprint) WHERE d.id = l.id AND d.state = 'dead'";
    let ids: Vec<i64> = refused.keys().copied().collect();
    let stages: Vec<&str> = refused.values().map(|cause| cause.stage.name()).collect();
    let codes: Vec<&str> = refused.values().map(|cause| cause.code).collect();
    let messages: Vec<String> = refused.values().map(|cause| plain(&cause.message)).collect();
    let fingerprints: Vec<String> = refused.values().map(|cause| plain(&cause.fingerprint)).collect();
    ask::execute(session, During::Look, sql, &[&ids, &stages, &codes, &messages, &fingerprints]).await?;
    Ok(())
}

/// Marks letters whose outputs were written elsewhere, inside a transaction; returns how many of `good` were still `dead`.
///
/// # Errors
/// If the database cannot be written.
pub async fn mark_written(session: &Session, good: &[i64], refused: &BTreeMap<i64, Cause>) -> Result<u64, SinkError> {
    let all: Vec<i64> = good.iter().chain(refused.keys()).copied().collect();
    still_dead(session, &all).await?;
    note_refused(session, refused).await?;
    mark_replayed(session, good).await
}

/// Makes those of `ids` that are `dead` and not in doubt letters in doubt, inside a transaction; returns them.
///
/// # Errors
/// If the database cannot be written.
pub async fn take_in_doubt(session: &Session, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
    let (dead, cause) = (still_dead(session, ids).await?, in_doubt_after_replay());
    let sql = "UPDATE hapax.dead_letters SET message = $3 || code || ': ' || message, code = $2, stage = $4, \
               fingerprint = $5 WHERE code <> $2 AND id = ANY ($1) RETURNING id";
    let given: [ask::Value<'_>; 5] = [&dead, &cause.code, &cause.message, &cause.stage.name(), &cause.fingerprint];
    let rows = ask::rows(session, During::Look, sql, &given).await?;
    rows.iter().map(|row| ask::get(session, row, 0)).collect()
}

/// The number of the incarnation that each letter's position belongs to, in the order of `ids`.
///
/// # Errors
/// If the database cannot be read.
pub async fn incarnations(session: &Session, ids: &[i64]) -> Result<Vec<u32>, SinkError> {
    let sql = "SELECT d.incarnation FROM unnest($1::bigint[]) WITH ORDINALITY AS l (id, nth) \
               LEFT JOIN hapax.dead_letters AS d ON d.id = l.id ORDER BY l.nth";
    let rows = ask::rows(session, During::Look, sql, &[&ids]).await?;
    rows.iter()
        .map(|row| {
            let text: Option<String> = ask::get(session, row, 0)?;
            Ok(text.and_then(|text| text.parse::<Incarnation>().ok()).map_or(1, |found| found.number))
        })
        .collect()
}

#[cfg(test)]
#[path = "letters_tests.rs"]
mod tests;
