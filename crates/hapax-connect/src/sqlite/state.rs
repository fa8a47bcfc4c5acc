//! A SQLite file as state store: leases, witnesses, notes, intents, and progress where a target may not hold it.
//!
//! All clones share one connection, so that a process never waits for itself. Short writes that come together share
//! a transaction. Not here: safety. A lease is manners, a witness is memory; the fence is in `progress`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hapax_engine::pulse::Verdict;
use hapax_engine::sink::{Claim, EpochRecord, SinkError};
use hapax_engine::state::{DeliveryNote, Intent, Lease, ProgressStore, StateError, StateStore, Suspicion, TakeOver};
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::letter::Letter;
use hapax_model::position::{Bookmark, DeliveryId};
use hapax_model::progress::{Progress, Witness};
use hapax_sql::process::{Life, ProcessId, session_name};
use hapax_sql::sqlite::{Open, Session, checked_commit, make_folder, why_not_made};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, named_params, params};
use tokio::sync::Mutex;

use super::error::{During, after_commit, open_error, path_of, session_lost, sink_error, target_name};
use super::progress::{self, key, unsigned};
use super::tables::{self, Role, damaged, look_error};
use super::together::Together;
use crate::table::kept::{now_ms, stored};
use crate::table::stored::bookmark;

/// A state store in a SQLite file. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SqliteState {
    session: Arc<Mutex<Session>>,
    together: Together,
    name: Arc<str>,
    holder: Arc<Holder>,
}

/// Who we are to those who want our leases.
#[derive(Debug)]
struct Holder {
    /// For people.
    name: String,
    /// Random: two stores opened by one process are two holders.
    token: String,
    /// So that others need not wait for the lease of a process that has ended.
    process: ProcessId,
}

impl SqliteState {
    /// Opens the store at `path`, making the folder, the file and our tables where they are missing.
    ///
    /// # Errors
    /// If the file cannot be opened or made, or holds tables that this program does not know.
    pub async fn open(path: &Path, busy_timeout: Duration) -> Result<Self, SinkError> {
        let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if !path.exists() {
            refuse_unmakable(path)?;
        }
        if let Some(folder) = path.parent() {
            make_folder(folder).map_err(|error| unmade(path, folder, &error.to_string()))?;
        }
        let mut session = Session::open(path, Open::OrCreate, busy_timeout).await.map_err(|e| open_error(&e))?;
        let made = session.run(|connection| tables::ensure(connection, Role::State).and_then(|_| token(connection)));
        let token = made.await.map_err(|lost| session_lost(path, During::Look, &lost))??;
        Ok(Self::over(session, token))
    }

    /// Opens the store at `path` to look, as far as there is one: nothing is made, and nothing can be written down.
    ///
    /// # Errors
    /// If the file cannot be opened, or made where it is missing, or holds tables that this program does not know.
    pub async fn look_at(path: &Path, busy_timeout: Duration) -> Result<Option<Self>, SinkError> {
        let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if !path.exists() {
            return refuse_unmakable(path).map(|()| None);
        }
        let mut session = Session::open(path, Open::ToLook, busy_timeout).await.map_err(|e| open_error(&e))?;
        let found = session.run(|connection| {
            let found = tables::has_tables(connection, Role::State)?;
            Ok::<_, SinkError>((found, token(connection)?))
        });
        let (found, token) = found.await.map_err(|lost| session_lost(path, During::Look, &lost))??;
        Ok(found.then(|| Self::over(session, token)))
    }

    fn over(session: Session, token: String) -> Self {
        let holder = Holder { name: session_name(), token, process: ProcessId::own() };
        let name = target_name(session.path()).into();
        let (session, together) = (Arc::new(Mutex::new(session)), Together::default());
        Self { session, together, name, holder: Arc::new(holder) }
    }

    /// Runs `work` on the store's connection; for what the command line lists ([`admin`](super::admin)).
    ///
    /// # Errors
    /// What `work` returned, or that the session was lost.
    pub async fn run<R, F>(&self, during: During, work: F) -> Result<R, SinkError>
    where
        F: FnOnce(&Connection) -> Result<R, SinkError> + Send + 'static,
        R: Send + 'static,
    {
        let mut session = self.session.lock().await;
        let done = session.run(move |connection| work(connection)).await;
        let answer = done.map_err(|lost| session_lost(session.path(), during, &lost))?;
        if answer.is_err() {
            // Perhaps in doubt: a new connection costs a millisecond, an old one might lie.
            session.discard();
        }
        answer
    }

    /// Writes something down, in one transaction with what other deliveries of this process write down meanwhile.
    async fn note_down<R, F>(&self, work: F) -> Result<R, StateError>
    where
        F: FnOnce(&Connection) -> Result<R, SinkError> + Send + 'static,
        R: Send + 'static,
    {
        let done = self.together.run(&self.session, work).await;
        done.map_err(|message| StateError { store: self.name.to_string(), message })
    }

    /// Looks something up.
    async fn look_up<R, F>(&self, work: F) -> Result<R, StateError>
    where
        F: FnOnce(&Connection) -> Result<R, SinkError> + Send + 'static,
        R: Send + 'static,
    {
        let done = self.run(During::Look, work).await;
        done.map_err(|error| StateError { store: self.name.to_string(), message: error.to_string() })
    }
}

/// A store that is not there yet, and could not be made.
fn refuse_unmakable(path: &Path) -> Result<(), SinkError> {
    match why_not_made(path) {
        Some((folder, why)) => Err(unmade(path, &folder, &why)),
        None => Ok(()),
    }
}

fn unmade(path: &Path, folder: &Path, why: &str) -> SinkError {
    let (target, folder) = (target_name(path), folder.display());
    let message = format!(
        "it is not there, and cannot be made in {folder}: {why}; let this user write in {folder}, or name another place with `state:`"
    );
    SinkError::ConnectionFailed { target, message }
}

fn token(connection: &Connection) -> Result<String, SinkError> {
    let sql = "SELECT lower(hex(randomblob(16)))";
    connection.query_row(sql, [], |row| row.get(0)).map_err(|error| look_error(connection, &error))
}

impl StateStore for SqliteState {
    async fn lease(&mut self, id: &DeliveryId, ttl: Duration, take_over: TakeOver) -> Result<Lease, StateError> {
        let (id, holder) = (id.clone(), Arc::clone(&self.holder));
        self.note_down(move |connection| lease(connection, &id, &holder, ttl, take_over, now_ms())).await
    }

    async fn release(&mut self, id: &DeliveryId) -> Result<(), StateError> {
        let (id, holder) = (id.clone(), Arc::clone(&self.holder));
        let sql = "DELETE FROM hapax_leases WHERE workflow = ?1 AND sink = ?2 AND lane = ?3 AND token = ?4";
        self.note_down(move |c| execute(c, sql, params![id.workflow, id.sink, id.lane, holder.token])).await
    }

    async fn load_witness(&mut self, id: &DeliveryId) -> Result<Option<Witness>, StateError> {
        let id = id.clone();
        self.look_up(move |connection| load_witness(connection, &id)).await
    }

    async fn save_witness(&mut self, id: &DeliveryId, witness: &Witness) -> Result<(), StateError> {
        let (id, witness) = (id.clone(), witness.clone());
        let sql = "INSERT INTO hapax_witness (workflow, sink, lane, epoch, position, incarnation, saved_at_ms) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (workflow, sink, lane) DO UPDATE \
                   SET epoch = excluded.epoch, position = excluded.position, incarnation = excluded.incarnation, \
                   saved_at_ms = excluded.saved_at_ms WHERE excluded.epoch >= hapax_witness.epoch";
        self.note_down(move |connection| {
            let place = &witness.bookmark;
            let (position, incarnation) = (place.position.to_string(), place.incarnation.to_string());
            let (epoch, now) = (stored(witness.epoch.0), stored(now_ms()));
            execute(connection, sql, params![id.workflow, id.sink, id.lane, epoch, position, incarnation, now])
        })
        .await
    }

    async fn note(&mut self, id: &DeliveryId, note: &DeliveryNote) -> Result<(), StateError> {
        let (id, note, holder) = (id.clone(), note.clone(), Arc::clone(&self.holder));
        let sql = "INSERT INTO hapax_notes (workflow, sink, lane, state, exit_code, code, message, session, \
                   noted_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                   ON CONFLICT (workflow, sink, lane) DO UPDATE SET state = excluded.state, \
                   exit_code = excluded.exit_code, code = excluded.code, message = excluded.message, \
                   session = excluded.session, noted_at_ms = excluded.noted_at_ms";
        self.note_down(move |connection| {
            let now = stored(now_ms());
            let values = params![
                id.workflow,
                id.sink,
                id.lane,
                note.state.name(),
                note.exit_code,
                note.code,
                note.message,
                holder.name,
                now
            ];
            execute(connection, sql, values)
        })
        .await
    }

    async fn paused(&mut self, workflow: &str) -> Result<bool, StateError> {
        let workflow = workflow.to_owned();
        self.look_up(move |connection| {
            let found = connection
                .prepare_cached(
                    "SELECT 1 FROM hapax_pauses WHERE workflow = ?1 AND (until_ms IS NULL OR until_ms > ?2)",
                )
                .and_then(|mut statement| statement.exists(params![workflow, stored(now_ms())]));
            found.map_err(|error| look_error(connection, &error))
        })
        .await
    }

    async fn suspect(&mut self, id: &DeliveryId, suspicion: &Suspicion) -> Result<(), StateError> {
        let (id, suspicion) = (id.clone(), suspicion.clone());
        let sql = "INSERT OR REPLACE INTO hapax_suspects (workflow, sink, lane, position, incarnation, lives, verdict, \
                   noted_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        self.note_down(move |connection| {
            let Suspicion { at, lives, verdict } = &suspicion;
            let (position, incarnation) = (at.position.to_string(), at.incarnation.to_string());
            let (verdict, now) = (verdict.map(Verdict::name), stored(now_ms()));
            let values = params![id.workflow, id.sink, id.lane, position, incarnation, lives, verdict, now];
            execute(connection, sql, values)
        })
        .await
    }

    async fn suspicion(&mut self, id: &DeliveryId) -> Result<Option<Suspicion>, StateError> {
        let id = id.clone();
        self.look_up(move |connection| suspicion(connection, &id)).await
    }

    async fn clear_suspicion(&mut self, id: &DeliveryId) -> Result<(), StateError> {
        let id = id.clone();
        let sql = "DELETE FROM hapax_suspects WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
        self.note_down(move |connection| execute(connection, sql, key(&id))).await
    }
}

/// A suspicion that cannot be read is none: it is a help, and no input is held back for it.
fn suspicion(connection: &Connection, id: &DeliveryId) -> Result<Option<Suspicion>, SinkError> {
    let sql = "SELECT position, incarnation, lives, verdict FROM hapax_suspects \
               WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let row = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get::<_, Option<String>>(3)?))
    };
    let found = connection.prepare_cached(sql).and_then(|mut statement| statement.query_row(key(id), row).optional());
    let found = found.map_err(|error| look_error(connection, &error))?;
    Ok(found.and_then(|(position, incarnation, lives, verdict)| {
        let at = Bookmark::new(incarnation.parse().ok()?, position.parse().ok()?);
        Some(Suspicion { at, lives, verdict: verdict.as_deref().and_then(Verdict::of_name) })
    }))
}

fn execute(connection: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<(), SinkError> {
    let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
    done.map(|_| ()).map_err(|error| look_error(connection, &error))
}

/// Takes the lease if it is free, expired, ours, or its holder has ended; the clock is passed in. The caller's transaction
/// keeps others out between the look and the write.
fn lease(
    connection: &Connection,
    id: &DeliveryId,
    ours: &Holder,
    ttl: Duration,
    take_over: TakeOver,
    now: u64,
) -> Result<Lease, SinkError> {
    let fail = |error: rusqlite::Error| look_error(connection, &error);
    let held = held_by_another(connection, id, ours, now).map_err(fail)?;
    if let (Some(held), TakeOver::Never) = (held, take_over) {
        return Ok(held);
    }
    let sql = "INSERT INTO hapax_leases (workflow, sink, lane, holder, token, expires_at_ms, machine, pid, started) \
               VALUES (:workflow, :sink, :lane, :holder, :token, :expires, :machine, :pid, :started) \
               ON CONFLICT (workflow, sink, lane) DO UPDATE SET holder = excluded.holder, token = excluded.token, \
               expires_at_ms = excluded.expires_at_ms, machine = excluded.machine, pid = excluded.pid, \
               started = excluded.started";
    let expires = now.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    let values = named_params! {
        ":workflow": id.workflow, ":sink": id.sink, ":lane": id.lane, ":holder": ours.name, ":token": ours.token,
        ":expires": stored(expires), ":machine": ours.process.machine, ":pid": ours.process.pid,
        ":started": stored(ours.process.started),
    };
    connection.execute(sql, values).map_err(fail)?;
    Ok(Lease::Ours)
}

fn held_by_another(
    connection: &Connection,
    id: &DeliveryId,
    ours: &Holder,
    now: u64,
) -> rusqlite::Result<Option<Lease>> {
    let sql = "SELECT token, holder, expires_at_ms, machine, pid, started FROM hapax_leases \
               WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let found = connection.prepare_cached(sql)?.query_row(key(id), |row| {
        let process = ProcessId { machine: row.get(3)?, pid: row.get(4)?, started: unsigned(row, 5)? };
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, unsigned(row, 2)?, process))
    });
    let Some((token, by, expires_at_ms, process)) = found.optional()? else { return Ok(None) };
    let remaining = Duration::from_millis(expires_at_ms.saturating_sub(now));
    if token == ours.token || remaining.is_zero() || process.life() == Life::Ended {
        return Ok(None);
    }
    Ok(Some(Lease::Held { by, remaining }))
}

fn load_witness(connection: &Connection, id: &DeliveryId) -> Result<Option<Witness>, SinkError> {
    let sql = "SELECT epoch, position, incarnation FROM hapax_witness WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let found = connection
        .query_row(sql, key(id), |row| {
            Ok((Epoch(unsigned(row, 0)?), row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        })
        .optional()
        .map_err(|error| look_error(connection, &error))?;
    let Some((epoch, position, incarnation)) = found else { return Ok(None) };
    let broken = |what: String| damaged(connection, &format!("the witness of {id} is damaged: {what}"));
    Ok(Some(Witness { epoch, bookmark: bookmark(&position, &incarnation).map_err(broken)? }))
}

impl ProgressStore for SqliteState {
    async fn look(&mut self, id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
        let id = id.clone();
        self.run(During::Look, move |connection| progress::look(connection, &id)).await
    }

    async fn others(&mut self, id: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        let id = id.clone();
        self.run(During::Look, move |connection| progress::others(connection, &id)).await
    }

    async fn claim(&mut self, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
        let (id, claim) = (id.clone(), claim.clone());
        self.run(During::Claim, move |connection| progress::claim(connection, &id, &claim)).await
    }

    async fn save(
        &mut self,
        id: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
        letters: &[Letter],
    ) -> Result<Progress, SinkError> {
        let (id, was, record, letters) = (id.clone(), was.clone(), record.clone(), letters.to_vec());
        let during = During::Epoch(record.epoch);
        self.run(during, move |connection| save(connection, &id, &was, &record, &letters)).await
    }

    async fn load_intent(&mut self, id: &DeliveryId) -> Result<Option<Intent>, SinkError> {
        let id = id.clone();
        self.run(During::Look, move |connection| load_intent(connection, &id)).await
    }

    async fn save_intent(
        &mut self,
        id: &DeliveryId,
        generation: Generation,
        epoch: Epoch,
        intent: &Intent,
    ) -> Result<(), SinkError> {
        let (id, intent) = (id.clone(), intent.clone());
        let work = move |connection: &Connection| save_intent(connection, &id, generation, epoch, &intent);
        self.run(During::Epoch(epoch), work).await
    }
}

fn save(
    connection: &Connection,
    id: &DeliveryId,
    was: &Progress,
    record: &EpochRecord,
    letters: &[Letter],
) -> Result<Progress, SinkError> {
    let (path, during) = (path_of(connection), During::Epoch(record.epoch));
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
        .map_err(|error| sink_error(&path, during, &error))?;
    let now = progress::swap(&transaction, id, was, record)?;
    let incarnation = record.incarnation();
    progress::insert_letters(&transaction, id, was.generation, record.epoch, incarnation, letters)?;
    progress::log_epoch(&transaction, id, was.generation, record, record.counts)?;
    after_commit(&path, during, checked_commit(&transaction))?;
    Ok(now)
}

fn load_intent(connection: &Connection, id: &DeliveryId) -> Result<Option<Intent>, SinkError> {
    let sql = "SELECT from_position, from_incarnation, to_position, to_incarnation, digest FROM hapax_intents \
               WHERE workflow = ?1 AND sink = ?2 AND lane = ?3";
    let found = connection
        .query_row(sql, key(id), |row| {
            let texts: [String; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
            Ok((texts, row.get::<_, [u8; 32]>(4)?))
        })
        .optional()
        .map_err(|error| look_error(connection, &error))?;
    let Some(([from, from_incarnation, to, to_incarnation], digest)) = found else { return Ok(None) };
    let broken = |what: String| damaged(connection, &format!("the intent of {id} is damaged: {what}"));
    let from = bookmark(&from, &from_incarnation).map_err(broken)?;
    let to = bookmark(&to, &to_incarnation).map_err(broken)?;
    Ok(Some(Intent { from, to, digest }))
}

/// One statement, so that no claim comes between the fence and the intent.
fn save_intent(
    connection: &Connection,
    id: &DeliveryId,
    generation: Generation,
    epoch: Epoch,
    intent: &Intent,
) -> Result<(), SinkError> {
    let sql = "INSERT INTO hapax_intents (workflow, sink, lane, epoch, from_position, from_incarnation, to_position, \
               to_incarnation, digest, saved_at_ms) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 \
               FROM hapax_progress WHERE workflow = ?1 AND sink = ?2 AND lane = ?3 AND generation = ?11 \
               ON CONFLICT (workflow, sink, lane) DO UPDATE SET epoch = excluded.epoch, \
               from_position = excluded.from_position, from_incarnation = excluded.from_incarnation, \
               to_position = excluded.to_position, to_incarnation = excluded.to_incarnation, \
               digest = excluded.digest, saved_at_ms = excluded.saved_at_ms";
    let values = params![
        id.workflow,
        id.sink,
        id.lane,
        stored(epoch.0),
        intent.from.position.to_string(),
        intent.from.incarnation.to_string(),
        intent.to.position.to_string(),
        intent.to.incarnation.to_string(),
        intent.digest.as_slice(),
        stored(now_ms()),
        stored(generation.0),
    ];
    let done = connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
    match done.map_err(|error| sink_error(&path_of(connection), During::Epoch(epoch), &error))? {
        0 => Err(progress::fenced(connection, id, generation)?),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
