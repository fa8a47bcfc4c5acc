//! A PostgreSQL database as state store: leases, witnesses, notes, intents, pauses, and progress where a target may not
//! hold it.
//!
//! All clones share a few sessions. Every call is a short transaction of its own. Invariant: makes no tables; a store
//! that lacks them is refused with "hapax setup". Not here: safety. A lease is manners; the fence is in `progress`.

use std::sync::Arc;
use std::time::Duration;

use hapax_engine::sink::{Claim, EpochRecord, SinkError};
use hapax_engine::state::{DeliveryNote, Intent, Lease, ProgressStore, StateError, StateStore, Suspicion, TakeOver};
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::letter::Letter;
use hapax_model::position::DeliveryId;
use hapax_model::progress::{Progress, Witness};
use hapax_sql::postgres::{Limits, Pool, PostgresUrl, Session, Taken};
use hapax_sql::process::{ProcessId, session_name};

use super::error::{During, connect_error};
use super::lease::{self, Holder};
use super::memory::Fenced;
use super::tables::{self, Role};
use super::{ask, letters, memory, progress};

/// How many sessions one process has with its state store: a claim that waits must not keep heartbeats waiting.
const CONNECTIONS: usize = 4;
/// How long a call waits for a free session.
const PATIENCE: Duration = Duration::from_secs(10);

/// A state store in a PostgreSQL database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PostgresState {
    pool: Pool,
    name: Arc<str>,
    claim_timeout: Duration,
    holder: Arc<Holder>,
}

impl PostgresState {
    /// Opens the store, and checks that its tables are there, in this program's version, and may be used.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses us; if our tables are missing, too old or too new, with the cure.
    pub async fn open(url: &PostgresUrl, limits: Limits, claim_timeout: Duration) -> Result<Self, SinkError> {
        let name = url.target();
        let pool = Pool::new(url.clone(), limits, CONNECTIONS);
        let session = pool.take(PATIENCE).await.map_err(|error| connect_error(&name, &error))?;
        tables::check(&session, Role::State).await?;
        let token = ask::one(&session, During::Look, "SELECT gen_random_uuid()::text", &[]).await?;
        let token = ask::get(&session, &token, 0)?;
        drop(session);
        let holder = Holder { name: session_name(), token, process: ProcessId::own() };
        Ok(Self { pool, name: name.into(), claim_timeout, holder: Arc::new(holder) })
    }

    /// The database as messages name it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    async fn session(&self) -> Result<Taken, SinkError> {
        self.pool.take(PATIENCE).await.map_err(|error| connect_error(&self.name, &error))
    }

    fn state_error(&self, error: &SinkError) -> StateError {
        StateError { store: self.name.to_string(), message: error.to_string() }
    }
}

/// Does one thing with a session of the store; what goes wrong is a [`StateError`].
macro_rules! note_down {
    ($store:expr, $session:ident => $work:expr) => {{
        let work = async {
            let $session = $store.session().await?;
            $work.await
        };
        work.await.map_err(|error: SinkError| $store.state_error(&error))
    }};
}

impl StateStore for PostgresState {
    async fn lease(&mut self, id: &DeliveryId, ttl: Duration, take_over: TakeOver) -> Result<Lease, StateError> {
        note_down!(self, session => lease::lease(&session, id, &self.holder, ttl, take_over))
    }

    async fn release(&mut self, id: &DeliveryId) -> Result<(), StateError> {
        note_down!(self, session => lease::release(&session, id, &self.holder))
    }

    async fn load_witness(&mut self, id: &DeliveryId) -> Result<Option<Witness>, StateError> {
        note_down!(self, session => memory::load_witness(&session, id))
    }

    async fn save_witness(&mut self, id: &DeliveryId, witness: &Witness) -> Result<(), StateError> {
        note_down!(self, session => memory::save_witness(&session, id, witness))
    }

    async fn note(&mut self, id: &DeliveryId, note: &DeliveryNote) -> Result<(), StateError> {
        note_down!(self, session => memory::note(&session, id, note, &self.holder.name))
    }

    async fn paused(&mut self, workflow: &str) -> Result<bool, StateError> {
        note_down!(self, session => memory::paused(&session, workflow))
    }

    async fn suspect(&mut self, id: &DeliveryId, suspicion: &Suspicion) -> Result<(), StateError> {
        note_down!(self, session => memory::suspect(&session, id, suspicion))
    }

    async fn suspicion(&mut self, id: &DeliveryId) -> Result<Option<Suspicion>, StateError> {
        note_down!(self, session => memory::suspicion(&session, id))
    }

    async fn clear_suspicion(&mut self, id: &DeliveryId) -> Result<(), StateError> {
        note_down!(self, session => memory::clear_suspicion(&session, id))
    }
}

impl ProgressStore for PostgresState {
    async fn look(&mut self, id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
        progress::look(&*self.session().await?, id).await
    }

    async fn others(&mut self, id: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        progress::others(&*self.session().await?, id).await
    }

    async fn claim(&mut self, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
        let session = self.session().await?;
        progress::claim_past_blockers(&self.pool, &session, id, claim, self.claim_timeout).await
    }

    async fn save(
        &mut self,
        id: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
        letters: &[Letter],
    ) -> Result<Progress, SinkError> {
        let session = self.session().await?;
        let during = During::Epoch(record.epoch);
        ask::begin(&session, during).await?;
        let saved = save(&session, id, was, record, letters).await;
        ask::end(&session, during, saved).await
    }

    async fn load_intent(&mut self, id: &DeliveryId) -> Result<Option<Intent>, SinkError> {
        memory::load_intent(&*self.session().await?, id).await
    }

    async fn save_intent(
        &mut self,
        id: &DeliveryId,
        generation: Generation,
        epoch: Epoch,
        intent: &Intent,
    ) -> Result<(), SinkError> {
        let session = self.session().await?;
        match memory::save_intent(&session, id, generation, epoch, intent).await? {
            Fenced::No => Ok(()),
            Fenced::Yes => Err(progress::fenced(&session, During::Epoch(epoch), id, generation).await?),
        }
    }
}

async fn save(
    session: &Session,
    id: &DeliveryId,
    was: &Progress,
    record: &EpochRecord,
    letters: &[Letter],
) -> Result<Progress, SinkError> {
    let now = progress::swap(session, id, was, record).await?;
    let incarnation = record.incarnation();
    letters::insert_letters(session, id, was.generation, record.epoch, incarnation, letters).await?;
    progress::log_epoch(session, id, was.generation, record, record.counts).await?;
    Ok(now)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
