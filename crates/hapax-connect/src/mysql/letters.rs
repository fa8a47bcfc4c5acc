//! Dead letters: written inside an epoch, listed, grouped by cause, discarded, locked and marked by a replay.
//!
//! Reads and writes `hapax_dead_letters`. Invariant: only a letter that is still `dead` changes its state, and `dead`
//! in the ledger never changes. Not here: transactions of the caller, replaying itself (the sink).

use std::collections::BTreeMap;

use hapax_engine::batch::LETTER_HEAD_BYTES;
use hapax_engine::books::{LetterCounts, LetterGroup};
use hapax_engine::in_doubt::in_doubt_after_replay;
use hapax_engine::letters::{LetterChoice, StoredLetter};
use hapax_engine::sink::SinkError;
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::letter::{Cause, Letter, LetterBytes};
use hapax_model::position::{DeliveryId, Incarnation};
use hapax_sql::mysql::{Session, Value};
use sha2::{Digest as _, Sha256};

use super::ask::{self, values};
use super::error::During;
use super::layout::{LONGEST_FINGERPRINT, LONGEST_KEY};
use super::tables::{damaged, has_table};
use crate::table::kept::{now_ms, stored};
use crate::table::own_row::OwnRow as _;

/// One statement carries so many letters, or so many numbers of letters: a few sizes only, so that the statements that
/// a session keeps prepared are few. What does not fill one goes into smaller ones.
const SIZES: [usize; 5] = [256, 64, 16, 4, 1];
/// One statement carries about so many bytes of letters, and never more than a quarter of `max_allowed_packet`.
const BYTES_PER_STATEMENT: usize = 8 << 20;

/// Writes an epoch's dead letters, inside its transaction.
///
/// # Errors
/// What the database said.
pub async fn insert_letters(
    session: &mut Session,
    id: &DeliveryId,
    generation: Generation,
    epoch: Epoch,
    incarnation: &Incarnation,
    letters: &[Letter],
) -> Result<(), SinkError> {
    let room = BYTES_PER_STATEMENT.min(session.largest_packet() / 4);
    let (now, incarnation) = (stored(now_ms()), incarnation.to_string());
    let mut rest = letters;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(fitting(rest, room));
        rest = after;
        let row = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let sql = format!(
            "INSERT INTO hapax_dead_letters (workflow, sink, lane, epoch, generation, incarnation, written_at_ms, \
             position, stage, code, message, fingerprint, bytes, length, sha256, event_key) VALUES {}",
            vec![row; chunk.len()].join(", ")
        );
        let mut given = Vec::with_capacity(chunk.len() * 16);
        for letter in chunk {
            given.extend(values![
                &id.workflow,
                &id.sink,
                &id.lane,
                stored(epoch.0),
                stored(generation.0),
                &incarnation,
                now,
            ]);
            given.extend(letter_values(letter, room));
        }
        ask::execute(session, During::Epoch(epoch), &sql, given).await?;
    }
    Ok(())
}

/// How many of the first letters one statement takes; at least one.
fn fitting(letters: &[Letter], room: usize) -> usize {
    let fits = |size: &usize| {
        let bytes = letters.iter().take(*size).map(|letter| kept_bytes(&letter.bytes, room)).sum::<usize>();
        letters.len() >= *size && bytes <= room
    };
    SIZES.into_iter().find(fits).unwrap_or(1)
}

/// How many bytes of the input the letter keeps.
fn kept_bytes(bytes: &LetterBytes, room: usize) -> usize {
    match bytes {
        LetterBytes::Whole(bytes) if bytes.len() > room => LETTER_HEAD_BYTES.min(room),
        LetterBytes::Whole(bytes) | LetterBytes::Cut { head: bytes, .. } => bytes.len().min(room),
    }
}

/// From `position` on. An input that the server would not take in one packet is kept as one that was too large: its
/// beginning, its length and its hash. It may be the very reason why the letter is written.
fn letter_values(letter: &Letter, room: usize) -> Vec<Value> {
    let kept = kept_bytes(&letter.bytes, room);
    let (head, length, hash) = match &letter.bytes {
        LetterBytes::Whole(bytes) if kept < bytes.len() => {
            (&bytes[..kept], whole_length(bytes), Some(Sha256::digest(bytes).to_vec()))
        }
        LetterBytes::Whole(bytes) => (bytes.as_slice(), whole_length(bytes), None),
        LetterBytes::Cut { head, length, sha256 } => (&head[..kept], *length, Some(sha256.to_vec())),
    };
    let message = cut(&letter.cause.message, room);
    values![
        letter.position.to_string(),
        letter.cause.stage.name(),
        letter.cause.code,
        message,
        cut(&letter.cause.fingerprint, LONGEST_FINGERPRINT),
        head,
        stored(length),
        hash,
        letter.event_key.as_deref().map(|key| cut(key, LONGEST_KEY)),
    ]
}

fn whole_length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// The first `most` characters, and not more bytes than a mediumtext has room for.
fn cut(text: &str, most: usize) -> &str {
    const MEDIUM: usize = (1 << 24) - 1;
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    &text[..text.floor_char_boundary(end.min(MEDIUM))]
}

/// Which letters a [`LetterChoice`] means: the conditions and their values.
struct Chosen {
    tests: String,
    values: Vec<Value>,
}

impl Chosen {
    fn new(choice: &LetterChoice, after: i64) -> Self {
        let mut tests = vec!["id > ?".to_owned()];
        let mut given = values![after];
        let mut add = |test: &str, value: Option<Value>| {
            if let Some(value) = value {
                tests.push(test.to_owned());
                given.push(value);
            }
        };
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        add("workflow = ?", text(&choice.workflow));
        add("sink = ?", text(&choice.sink));
        add("lane = ?", text(&choice.lane));
        add("fingerprint LIKE ? ESCAPE '!'", choice.cause.as_deref().map(|cause| Value::from(beginning(cause))));
        add("position = ?", choice.position.map(|position| Value::from(position.to_string())));
        add("event_key = ?", text(&choice.event_key));
        add("state = ?", (!choice.means_any_state()).then(|| Value::from("dead")));
        if !choice.ids.is_empty() {
            tests.push(format!("id IN ({})", places(choice.ids.len())));
            given.extend(choice.ids.iter().map(|id| Value::from(*id)));
        }
        Self { tests: tests.join(" AND "), values: given }
    }
}

/// The pattern of texts that begin like this.
fn beginning(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 1);
    for character in cut(text, LONGEST_FINGERPRINT).chars() {
        if matches!(character, '!' | '%' | '_') {
            pattern.push('!');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// Letters in the order of their numbers, `after` exclusive, at most `limit`.
///
/// # Errors
/// If the database cannot be read, or what it holds is damaged.
pub async fn list(
    session: &mut Session,
    choice: &LetterChoice,
    after: i64,
    limit: usize,
) -> Result<Vec<StoredLetter>, SinkError> {
    if !has_table(session, "hapax_dead_letters").await? {
        return Ok(Vec::new());
    }
    let mut chosen = Chosen::new(choice, after);
    let sql = format!(
        "SELECT workflow, sink, lane, id, epoch, position, incarnation, stage, code, message, fingerprint, bytes, \
         length, sha256, event_key, written_at_ms, state FROM hapax_dead_letters {} WHERE {} ORDER BY id LIMIT ?",
        by_index(choice),
        chosen.tests
    );
    chosen.values.push(Value::from(i64::try_from(limit).unwrap_or(i64::MAX)));
    let rows = ask::rows(session, During::Look, &sql, chosen.values).await?;
    rows.iter().map(|row| ask::ours(session, row).letter()).collect()
}

/// Pages of dead letters are read where the last one ended, and no row that is dead no longer is touched. Left to itself
/// the server begins every page at the first letter.
fn by_index(choice: &LetterChoice) -> &'static str {
    if choice.means_any_state() || choice.cause.is_some() { "" } else { "FORCE INDEX (dead_letters_states)" }
}

/// The chosen letters with a number above `after`, grouped by cause, the largest group first.
///
/// # Errors
/// If the database cannot be read.
pub async fn causes(session: &mut Session, choice: &LetterChoice, after: i64) -> Result<Vec<LetterGroup>, SinkError> {
    if !has_table(session, "hapax_dead_letters").await? {
        return Ok(Vec::new());
    }
    let chosen = Chosen::new(choice, after);
    // The first letter of a group tells its example; it is looked up once per group, by its number.
    let sql = format!(
        "SELECT g.fingerprint, g.code, g.stage, g.letters, g.first_id, g.last_id, f.message, f.written_at_ms, \
         g.last_at FROM (SELECT fingerprint, code, stage, COUNT(*) AS letters, MIN(id) AS first_id, MAX(id) AS last_id, \
         MAX(written_at_ms) AS last_at FROM hapax_dead_letters WHERE {} GROUP BY fingerprint, code, stage) AS g \
         JOIN hapax_dead_letters AS f ON f.id = g.first_id ORDER BY g.letters DESC, g.first_id",
        chosen.tests
    );
    let rows = ask::rows(session, During::Look, &sql, chosen.values).await?;
    rows.iter().map(|row| ask::ours(session, row).letter_group()).collect()
}

/// How many letters of one delivery are in each state.
///
/// # Errors
/// If the database cannot be read.
pub async fn counts(session: &mut Session, id: &DeliveryId) -> Result<LetterCounts, SinkError> {
    if !has_table(session, "hapax_dead_letters").await? {
        return Ok(LetterCounts::default());
    }
    let sql = "SELECT state, COUNT(*) FROM hapax_dead_letters WHERE workflow = ? AND sink = ? AND lane = ? \
               GROUP BY state";
    let mut counts = LetterCounts::default();
    for row in ask::rows(session, During::Look, sql, values![&id.workflow, &id.sink, &id.lane]).await? {
        let (state, count): (String, u64) = (ask::get(session, &row, 0)?, ask::unsigned(session, &row, 1)?);
        match state.as_str() {
            "dead" => counts.dead = count,
            "replayed" => counts.replayed = count,
            "discarded" => counts.discarded = count,
            other => return Err(damaged(session, &format!("a dead letter is in the state {other:?}; restore it"))),
        }
    }
    Ok(counts)
}

/// Marks letters as discarded, in one transaction of its own; returns how many were still `dead`.
///
/// # Errors
/// If the database cannot be written.
pub async fn discard(session: &mut Session, ids: &[i64]) -> Result<u64, SinkError> {
    ask::begin(session, During::Look).await?;
    let changed = match still_dead(session, ids).await {
        Ok(dead) => mark(session, &dead, "state = 'discarded', state_at_ms = ?").await,
        Err(error) => Err(error),
    };
    ask::end(session, During::Look, changed).await
}

/// Those of `ids` that are still `dead`, ascending, locked until the caller's transaction ends: of two replays at once
/// the second waits here for the first, and then finds them no longer dead.
///
/// # Errors
/// If the database cannot be read, or the other one does not end in time.
pub async fn still_dead(session: &mut Session, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut dead = Vec::with_capacity(sorted.len());
    for chunk in chunks(&sorted) {
        // All lock in the order of the numbers and by the same index, so that nobody waits in a circle.
        let sql = format!(
            "SELECT id FROM hapax_dead_letters FORCE INDEX (PRIMARY) WHERE id IN ({}) AND state = 'dead' \
             ORDER BY id FOR UPDATE",
            places(chunk.len())
        );
        let given = chunk.iter().map(|id| Value::from(*id)).collect();
        for row in ask::rows(session, During::Look, &sql, given).await? {
            dead.push(ask::get(session, &row, 0)?);
        }
    }
    Ok(dead)
}

/// Cut into pieces of few sizes.
fn chunks(ids: &[i64]) -> impl Iterator<Item = &[i64]> {
    let mut rest = ids;
    std::iter::from_fn(move || {
        let size = SIZES.into_iter().find(|size| *size <= rest.len())?;
        let (chunk, after) = rest.split_at(size);
        rest = after;
        Some(chunk)
    })
}

/// Marks letters as replayed, inside the transaction that wrote their outputs; returns how many were still `dead`.
///
/// # Errors
/// If the database cannot be written.
pub async fn mark_replayed(session: &mut Session, ids: &[i64]) -> Result<u64, SinkError> {
    mark(session, ids, "state = 'replayed', state_at_ms = ?, replay_count = replay_count + 1").await
}

async fn mark(session: &mut Session, ids: &[i64], change: &str) -> Result<u64, SinkError> {
    let now = stored(now_ms());
    let mut changed = 0;
    for chunk in chunks(ids) {
        let sql = format!(
            "UPDATE hapax_dead_letters FORCE INDEX (PRIMARY) SET {change} WHERE id IN ({}) AND state = 'dead'",
            places(chunk.len())
        );
        let given = std::iter::once(now).chain(chunk.iter().copied()).map(Value::from).collect();
        changed += ask::execute(session, During::Look, &sql, given).await?;
    }
    Ok(changed)
}

/// Letters that were refused again stay dead, with the newer reason; inside the replay's transaction.
///
/// # Errors
/// If the database cannot be written.
pub async fn note_refused(session: &mut Session, refused: &BTreeMap<i64, Cause>) -> Result<(), SinkError> {
    let sql = "UPDATE hapax_dead_letters SET stage = ?, code = ?, message = ?, fingerprint = ?, \
               replay_count = replay_count + 1 WHERE id = ? AND state = 'dead'";
    let room = session.largest_packet() / 4;
    for (id, cause) in refused {
        let given = values![
            cause.stage.name(),
            cause.code,
            cut(&cause.message, room),
            cut(&cause.fingerprint, LONGEST_FINGERPRINT),
            *id,
        ];
        ask::execute(session, During::Look, sql, given).await?;
    }
    Ok(())
}

/// Marks letters whose outputs were written elsewhere, inside a transaction; returns how many of `good` were still `dead`.
///
/// # Errors
/// If the database cannot be written.
pub async fn mark_written(
    session: &mut Session,
    good: &[i64],
    refused: &BTreeMap<i64, Cause>,
) -> Result<u64, SinkError> {
    let all: Vec<i64> = good.iter().chain(refused.keys()).copied().collect();
    still_dead(session, &all).await?;
    note_refused(session, refused).await?;
    mark_replayed(session, good).await
}

/// Makes those of `ids` that are `dead` and not in doubt letters in doubt, inside a transaction; returns them.
///
/// # Errors
/// If the database cannot be written.
pub async fn take_in_doubt(session: &mut Session, ids: &[i64]) -> Result<Vec<i64>, SinkError> {
    let (dead, cause) = (still_dead(session, ids).await?, in_doubt_after_replay());
    let mut taken = Vec::with_capacity(dead.len());
    for chunk in chunks(&dead) {
        let those = format!("id IN ({}) AND code <> ?", places(chunk.len()));
        let mut given: Vec<Value> = chunk.iter().map(|id| Value::from(*id)).collect();
        given.push(Value::from(cause.code));
        let sql = format!("SELECT id FROM hapax_dead_letters FORCE INDEX (PRIMARY) WHERE {those} ORDER BY id");
        for row in ask::rows(session, During::Look, &sql, given.clone()).await? {
            taken.push(ask::get(session, &row, 0)?);
        }
        // Assigned from left to right: the message takes the code that the letter had.
        let sql = format!(
            "UPDATE hapax_dead_letters FORCE INDEX (PRIMARY) SET message = CONCAT(?, code, ': ', message), code = ?, \
             stage = ?, fingerprint = ? WHERE {those}"
        );
        let mut all = values![&cause.message, cause.code, cause.stage.name(), &cause.fingerprint];
        all.extend(given);
        ask::execute(session, During::Look, &sql, all).await?;
    }
    Ok(taken)
}

/// The number of the incarnation that each letter's position belongs to, in the order of `ids`.
///
/// # Errors
/// If the database cannot be read.
pub async fn incarnations(session: &mut Session, ids: &[i64]) -> Result<Vec<u32>, SinkError> {
    let mut found: BTreeMap<i64, u32> = BTreeMap::new();
    for chunk in chunks(ids) {
        let sql = format!("SELECT id, incarnation FROM hapax_dead_letters WHERE id IN ({})", places(chunk.len()));
        let given = chunk.iter().map(|id| Value::from(*id)).collect();
        for row in ask::rows(session, During::Look, &sql, given).await? {
            let text: String = ask::get(session, &row, 1)?;
            let number = text.parse::<Incarnation>().map_or(1, |incarnation| incarnation.number);
            found.insert(ask::get(session, &row, 0)?, number);
        }
    }
    Ok(ids.iter().map(|id| found.get(id).copied().unwrap_or(1)).collect())
}

#[cfg(test)]
#[path = "letters_tests.rs"]
mod tests;
