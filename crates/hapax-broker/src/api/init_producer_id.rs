//! InitProducerId 0–5: who a producer is from now on. Any broker answers, whoever leads.
//!
//! A transactional id is refused with 53 until transactions are served; the rules for it are kept, and tested.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::log::now;
use crate::rules::init_producer::{Ask, Plan, apply, plan};
use crate::rules::producer_error::{Asked, ProducerError};
use crate::store::{ProducerRow, Store, StoreError};

/// How often a row that others change meanwhile is read again.
const ATTEMPTS: u32 = 20;

/// Why there is no answer.
enum Refused {
    Rule(ProducerError),
    Store(StoreError),
}

impl From<ProducerError> for Refused {
    fn from(error: ProducerError) -> Self {
        Self::Rule(error)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    call: &Call,
    request: InitProducerIdRequest,
) -> Result<InitProducerIdResponse, Close> {
    let ask = Ask {
        transactional_id: request.transactional_id.as_ref().map(|id| id.to_string()),
        timeout_ms: request.transaction_timeout_ms,
        producer: (request.producer_id.0, request.producer_epoch),
    };
    let answer = InitProducerIdResponse::default();
    let identity = if is_transactional(&ask) {
        // Transactions cannot be ended here yet. Every client takes this code for final; with an id it would go on, and wait.
        Err(ResponseError::TransactionalIdAuthorizationFailed)
    } else {
        identify(broker, call, &ask).await
    };
    Ok(match identity {
        Ok((producer_id, epoch)) => answer.with_producer_id(ProducerId(producer_id)).with_producer_epoch(epoch),
        Err(code) => answer.with_producer_epoch(-1).with_error_code(code.code()),
    })
}

fn is_transactional(ask: &Ask) -> bool {
    ask.transactional_id.as_deref().is_some_and(|id| !id.is_empty())
}

/// Producer id and epoch by the rules, or the code that refuses them.
pub(super) async fn identify<S: Store>(
    broker: &Broker<S>,
    call: &Call,
    ask: &Ask,
) -> Result<(i64, i16), ResponseError> {
    decide(broker, call, ask).await.map_err(|refused| code(&refused, call.version))
}

fn code(refused: &Refused, version: i16) -> ResponseError {
    match refused {
        Refused::Rule(error) => error.to_kafka_error(Asked::InitProducerId(version)),
        Refused::Store(StoreError::Conflict) => ResponseError::ConcurrentTransactions,
        // Clients ask again after this one without looking for another coordinator.
        Refused::Store(StoreError::Away(_) | StoreError::InDoubt(_) | StoreError::Fenced) => {
            ResponseError::CoordinatorLoadInProgress
        }
        Refused::Store(error @ (StoreError::Full(_) | StoreError::Broken(_) | StoreError::Damaged(_))) => {
            tracing::error!(%error, "a producer got no id");
            ResponseError::KafkaStorageError
        }
    }
}

async fn decide<S: Store>(broker: &Broker<S>, call: &Call, ask: &Ask) -> Result<(i64, i16), Refused> {
    for _ in 0..ATTEMPTS {
        let row = match ask.transactional_id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => broker.store.transactional(id).await?,
            None => None,
        };
        let plan = plan(row.as_ref(), ask)?;
        let fresh = match plan {
            Plan::Fresh | Plan::Begin | Plan::Rotate { .. } => broker.logs.new_producer_id().await?,
            Plan::Raise { .. } | Plan::Repeat => -1,
        };
        match plan {
            Plan::Fresh => {
                let client_id = call.client_id.as_deref().map(str::to_owned);
                let note = ProducerRow { producer_id: fresh, epoch: 0, client_id, transactional_id: None };
                broker.store.note_producer(note).await?;
                return Ok((fresh, 0));
            }
            Plan::Repeat => {
                if let Some(row) = row {
                    return Ok((row.producer_id, row.epoch));
                }
            }
            Plan::Begin | Plan::Raise { .. } | Plan::Rotate { .. } => {
                let next = apply(row.as_ref(), plan, ask, fresh, now());
                let answer = (next.producer_id, next.epoch);
                match broker.store.swap_transactional(row.map(|row| row.revision), next).await {
                    Ok(()) => return Ok(answer),
                    // Somebody else was faster: look again.
                    Err(StoreError::Conflict) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    Err(StoreError::Conflict.into())
}
