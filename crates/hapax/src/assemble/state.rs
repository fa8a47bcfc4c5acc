//! The state store of any kind, behind the engine's traits.

use std::time::Duration;

#[cfg(feature = "postgres")]
use hapax_connect::postgres::PostgresState;
use hapax_connect::sqlite::config::BUSY_TIMEOUT;
use hapax_connect::sqlite::state::SqliteState;
use hapax_engine::sink::{Claim, EpochRecord, SinkError};
use hapax_engine::state::{DeliveryNote, Intent, Lease, ProgressStore, StateError, StateStore, Suspicion, TakeOver};
use hapax_model::epoch::{Epoch, Generation};
use hapax_model::letter::Letter;
use hapax_model::position::DeliveryId;
use hapax_model::progress::{Progress, Witness};
#[cfg(feature = "postgres")]
use hapax_sql::postgres::{Limits, PostgresUrl};

use crate::config::{Config, StateUrl};
use crate::exit::Failure;

/// How long a claim waits where no workflow says it.
#[cfg(feature = "postgres")]
const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);

/// A state store of any kind. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum AnyState {
    Sqlite(SqliteState),
    #[cfg(feature = "postgres")]
    Postgres(PostgresState),
}

impl AnyState {
    /// The state store, if the configuration has one. A SQLite file is made where it is missing; a PostgreSQL database
    /// without our tables is refused.
    pub(crate) async fn open(config: &Config) -> Result<Option<Self>, Failure> {
        let opened = match &config.state {
            StateUrl::Sqlite(path) => SqliteState::open(path, BUSY_TIMEOUT).await.map(Self::Sqlite),
            #[cfg(feature = "postgres")]
            StateUrl::Postgres(url) => open_server(url, config).await.map(Self::Postgres),
            StateUrl::None => return Ok(None),
        };
        opened.map(Some).map_err(|error| {
            let failure = Failure::from(error);
            Failure { message: format!("the state store (`state:`): {}", failure.message), ..failure }
        })
    }

    /// The same to look: a file is not made, nor are our tables in it. None where there is none yet.
    pub(crate) async fn look(config: &Config) -> Result<Option<Self>, Failure> {
        match &config.state {
            StateUrl::Sqlite(path) => Ok(SqliteState::look_at(path, BUSY_TIMEOUT).await?.map(Self::Sqlite)),
            #[cfg(feature = "postgres")]
            StateUrl::Postgres(url) => Ok(Some(Self::Postgres(open_server(url, config).await?))),
            StateUrl::None => Ok(None),
        }
    }
}

#[cfg(feature = "postgres")]
async fn open_server(url: &PostgresUrl, config: &Config) -> Result<PostgresState, SinkError> {
    let longest = config.workflows.iter().map(|workflow| workflow.delivery.claim_timeout).max();
    PostgresState::open(url, Limits::default(), longest.unwrap_or(CLAIM_TIMEOUT)).await
}

macro_rules! each {
    ($self:expr, $state:ident => $answer:expr) => {
        match $self {
            AnyState::Sqlite($state) => $answer,
            #[cfg(feature = "postgres")]
            AnyState::Postgres($state) => $answer,
        }
    };
}

impl StateStore for AnyState {
    async fn lease(&mut self, id: &DeliveryId, ttl: Duration, take_over: TakeOver) -> Result<Lease, StateError> {
        each!(self, state => state.lease(id, ttl, take_over).await)
    }

    async fn release(&mut self, id: &DeliveryId) -> Result<(), StateError> {
        each!(self, state => state.release(id).await)
    }

    async fn load_witness(&mut self, id: &DeliveryId) -> Result<Option<Witness>, StateError> {
        each!(self, state => state.load_witness(id).await)
    }

    async fn save_witness(&mut self, id: &DeliveryId, witness: &Witness) -> Result<(), StateError> {
        each!(self, state => state.save_witness(id, witness).await)
    }

    async fn note(&mut self, id: &DeliveryId, note: &DeliveryNote) -> Result<(), StateError> {
        each!(self, state => state.note(id, note).await)
    }

    async fn paused(&mut self, workflow: &str) -> Result<bool, StateError> {
        each!(self, state => state.paused(workflow).await)
    }

    async fn suspect(&mut self, id: &DeliveryId, suspicion: &Suspicion) -> Result<(), StateError> {
        each!(self, state => state.suspect(id, suspicion).await)
    }

    async fn suspicion(&mut self, id: &DeliveryId) -> Result<Option<Suspicion>, StateError> {
        each!(self, state => state.suspicion(id).await)
    }

    async fn clear_suspicion(&mut self, id: &DeliveryId) -> Result<(), StateError> {
        each!(self, state => state.clear_suspicion(id).await)
    }
}

impl ProgressStore for AnyState {
    async fn look(&mut self, id: &DeliveryId) -> Result<Option<Progress>, SinkError> {
        each!(self, state => state.look(id).await)
    }

    async fn others(&mut self, id: &DeliveryId) -> Result<Vec<(DeliveryId, Progress)>, SinkError> {
        each!(self, state => state.others(id).await)
    }

    async fn claim(&mut self, id: &DeliveryId, claim: &Claim) -> Result<Progress, SinkError> {
        each!(self, state => state.claim(id, claim).await)
    }

    async fn save(
        &mut self,
        id: &DeliveryId,
        was: &Progress,
        record: &EpochRecord,
        letters: &[Letter],
    ) -> Result<Progress, SinkError> {
        each!(self, state => state.save(id, was, record, letters).await)
    }

    async fn load_intent(&mut self, id: &DeliveryId) -> Result<Option<Intent>, SinkError> {
        each!(self, state => state.load_intent(id).await)
    }

    async fn save_intent(
        &mut self,
        id: &DeliveryId,
        generation: Generation,
        epoch: Epoch,
        intent: &Intent,
    ) -> Result<(), SinkError> {
        each!(self, state => state.save_intent(id, generation, epoch, intent).await)
    }
}
